//! The activity of this process, as reported to `downpour status` and on SIGUSR1.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use downpour::activity::{Activity, Announcement, State};
use downpour::remote::Location;
use downpour::tunnel::{ConnectionEvent, PeerEvent, TunnelEvent};

use crate::args::{Args, Command};
use crate::print;
use crate::progress::Figures;

/// The activity of this process.
static ACTIVITY: OnceLock<Mutex<Activity>> = OnceLock::new();
/// Bytes that a pipe or a stream has read.
static PIPED: OnceLock<Arc<AtomicU64>> = OnceLock::new();
/// Open connections of tunnels.
static OPEN: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());
static ANNOUNCEMENT: Mutex<Option<Announcement>> = Mutex::new(None);

/// Announces the activity of a command, if it transfers data.
pub(crate) fn begin(args: &Args) {
    let Some(activity) = activity(args) else { return };
    if ACTIVITY.set(Mutex::new(activity)).is_ok() {
        // The command works without it, but `downpour status` does not list it.
        let announcement = Announcement::start(|| snapshot().unwrap_or_default()).ok();
        *ANNOUNCEMENT.lock().unwrap_or_else(PoisonError::into_inner) = announcement;
    }
}

/// Withdraws the announcement at the end of the process.
pub(crate) fn end() {
    drop(ANNOUNCEMENT.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Changes the announced activity.
pub(crate) fn update(change: impl FnOnce(&mut Activity)) {
    if let Some(activity) = ACTIVITY.get() {
        change(&mut activity.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Announces the bytes that a pipe or a stream reads.
pub(crate) fn piped(bytes: Arc<AtomicU64>) {
    let _ = PIPED.set(bytes);
}

/// Follows the events of a tunnel.
pub(crate) fn tunnel(event: &TunnelEvent) {
    match event {
        TunnelEvent::Open => update(|activity| {
            activity.state = State::Connected;
            activity.connections.get_or_insert_default();
        }),
        TunnelEvent::Connection(number, event) => connection((0, *number), event),
        TunnelEvent::Note(_)
        | TunnelEvent::Listening(..)
        | TunnelEvent::ListeningRemotely(_)
        | TunnelEvent::Metrics(..) => {}
    }
}

/// Follows the events of peers that have connected with a ticket.
pub(crate) fn peer(event: &PeerEvent) {
    match event {
        PeerEvent::Joined(_) => update(|activity| {
            activity.state = State::Connected;
            activity.connections.get_or_insert_default();
        }),
        PeerEvent::Connection(tunnel, number, event) => connection((*tunnel, *number), event),
        PeerEvent::Left(..) | PeerEvent::Expired => {}
    }
}

/// Follows a connection, by the numbers of its tunnel and its own.
fn connection(number: (u64, u64), event: &ConnectionEvent) {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = match event {
        ConnectionEvent::Open { .. } => open.insert(number),
        // A lost connection may never have been open.
        ConnectionEvent::Closed { .. } => {
            open.remove(&number);
            false
        }
        ConnectionEvent::OpenRequested { .. } | ConnectionEvent::Refused { .. } => return,
    };
    update(|activity| {
        let (now, all) = activity.connections.get_or_insert_default();
        (*now, *all) = (open.len() as u64, *all + u64::from(is_new));
    });
}

/// Prints the progress on stderr after SIGUSR1, whatever the options.
pub(crate) fn print_progress() {
    if let Some(line) = line() {
        print::err(line);
    }
}

/// Returns the progress of this process in one line; `None` if it transfers nothing.
pub(crate) fn line() -> Option<String> {
    snapshot().map(|activity| describe(&activity))
}

/// Returns the progress of an activity in one line.
pub(crate) fn describe(activity: &Activity) -> String {
    match (&activity.progress, activity.piped, activity.connections, activity.state) {
        (_, _, _, State::Stopping) => "stopping".to_owned(),
        _ if activity.receivers > 1 => units::count(activity.receivers, "receiver", "receivers"),
        (_, _, _, State::Asking) => "waiting for an answer at the prompt".to_owned(),
        (Some(progress), ..) => Figures::from(progress).line().trim_start().to_owned(),
        (None, Some(bytes), ..) if activity.command == "recv" => format!("{} received", units::bytes(bytes)),
        (None, Some(bytes), ..) => format!("{} of stdin read", units::bytes(bytes)),
        (None, None, Some((open, all)), _) => {
            format!("{} open, {all} in total", units::count(open, "connection", "connections"))
        }
        (None, None, None, State::Waiting) => "waiting for the peer".to_owned(),
        (None, None, None, State::Connected) => "connected".to_owned(),
    }
}

fn snapshot() -> Option<Activity> {
    let mut activity = ACTIVITY.get()?.lock().unwrap_or_else(PoisonError::into_inner).clone();
    activity.piped = PIPED.get().map(|bytes| bytes.load(Ordering::Relaxed));
    Some(activity)
}

/// Returns the activity of a command; `None` if it transfers nothing or leaves this to another process.
fn activity(args: &Args) -> Option<Activity> {
    let begun = |from, to| Some(Activity::begun(args.command.name(), from, to));
    match args.command {
        Command::Cp | Command::Sync | Command::Verify => {
            let (sources, target) = args.sources_and_target()?;
            begun(sources.iter().map(place).collect(), Some(place(target)))
        }
        Command::Send => begun(args.paths.iter().map(|path| text(path)).collect(), None),
        Command::Recv => begun(Vec::new(), Some(text(&args.receive.target))),
        Command::Tunnel if args.tunnel.control.is_some() || (args.tunnel.background && !args.tunnel.in_background) => {
            None
        }
        // The command of a pipe may contain secrets.
        Command::Pipe | Command::Tunnel | Command::Proxy => begun(Vec::new(), args.host.clone()),
        Command::Demo => begun(Vec::new(), None),
        // The library announces what it serves.
        Command::Remote => None,
        Command::Doctor
        | Command::Bootstrap
        | Command::Clean
        | Command::Status
        | Command::Complete
        | Command::ProfileList
        | Command::ProfileShow
        | Command::ProfileDiff
        | Command::Completions
        | Command::Man => None,
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

fn place(location: &Location) -> String {
    match location {
        Location::Local(path) => text(path),
        Location::Remote { host, path } => format!("{host}:{}", String::from_utf8_lossy(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_described() {
        let of = |change: fn(&mut Activity)| {
            let mut activity = Activity::default();
            change(&mut activity);
            describe(&activity)
        };
        assert_eq!(of(|_| {}), "waiting for the peer");
        assert_eq!(of(|activity| activity.state = State::Connected), "connected");
        assert_eq!(of(|activity| activity.state = State::Asking), "waiting for an answer at the prompt");
        assert_eq!(of(|activity| activity.receivers = 3), "3 receivers");
        assert_eq!(of(|activity| activity.piped = Some(1_200_000)), "1.2 MB of stdin read");
        let received = |activity: &mut Activity| (activity.command, activity.piped) = ("recv".to_owned(), Some(7));
        assert_eq!(of(received), "7 B received");
        assert_eq!(of(|activity| activity.connections = Some((1, 12))), "1 connection open, 12 in total");
        assert_eq!(of(|activity| activity.state = State::Stopping), "stopping");
    }
}
