//! The state that a remote program reports to `downpour status` on its host.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::activity::{Activity, Announcement, State};
use crate::transfer::{Task, TransferEvent};

/// A transfer that `downpour status` lists on this host until this is dropped.
pub(super) struct Announced {
    activity: Arc<Mutex<Activity>>,
    _announcement: Option<Announcement>,
}

impl Announced {
    /// Announces a transfer, unless its login is restricted to a directory, which forbids files outside it. Without a
    /// directory for a socket the transfer works, but is not listed.
    pub(super) fn new(task: &Task, is_limited: bool) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (from, to) = match task {
            Task::Send { spec, .. } => (spec.roots.iter().map(|root| text(&root.path)).collect(), None),
            Task::Receive { spec, .. } => (Vec::new(), Some(text(&spec.target))),
        };
        let activity = Arc::new(Mutex::new(Activity::begun("remote", from, to)));
        let now = Arc::clone(&activity);
        let current = move || now.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let announcement = if is_limited { None } else { Announcement::start(current).ok() };
        Self { activity, _announcement: announcement }
    }

    /// Notes the state of the transfer.
    pub(super) fn follow(&self, event: &TransferEvent) {
        let mut activity = self.activity.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            TransferEvent::Connected { .. } => activity.state = State::Connected,
            TransferEvent::Progress(progress) => activity.progress = Some(progress.clone()),
            _ => {}
        }
    }
}
