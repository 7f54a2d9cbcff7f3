//! The folder of a receiving session, as the driver's workers and the settling thread see it.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use net::Storage;

use super::config::{Case, Otherwise};
use super::mailbox::Mailbox;
use super::step::Input;
use crate::error::Error;
use crate::files::{Entry, FileSink, FilesError, Kind, ReceiveSettings, SourceId, display_name};

/// How long another process may have the staging folder: longer than one that has lost its peer takes to end.
const PATIENCE: Duration = Duration::from_secs(6);
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(100);

/// Where received blocks are written.
#[derive(Debug)]
pub(super) struct Target {
    files: FileSink,
    other: Option<Other>,
    /// As it is told in the handshake. By now another transfer may have come or gone.
    may_hold_some: bool,
    /// Whether it is the other's case, once that is known.
    is_other: OnceLock<bool>,
    started: AtomicBool,
    /// Nobody wants it any more.
    stopped: Mutex<bool>,
    on_stop: Condvar,
}

/// The same elsewhere, for another case.
#[derive(Debug)]
struct Other {
    case: Case,
    into: PathBuf,
    /// `None` where nothing can be received.
    files: Option<FileSink>,
}

impl Target {
    /// Looks at the folder; touches nothing.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub(super) fn new(settings: ReceiveSettings, otherwise: Option<Otherwise>) -> Result<Self, Error> {
        let other = otherwise.map(|Otherwise { case, settings }| Other {
            case,
            into: settings.into.clone(),
            files: FileSink::new(*settings).ok(),
        });
        let files = FileSink::new(settings)?;
        let other_may = |other: &Other| match (&other.case, &other.files) {
            (Case::Earlier, Some(files)) => files.may_go_on(),
            (Case::Named { .. }, Some(files)) => files.may_hold_some(),
            (_, None) => false,
        };
        Ok(Self {
            may_hold_some: files.may_hold_some() || other.as_ref().is_some_and(other_may),
            files,
            other,
            is_other: OnceLock::new(),
            started: AtomicBool::new(false),
            stopped: Mutex::new(false),
            on_stop: Condvar::new(),
        })
    }

    /// What is sent is known. Nothing was asked of the files before.
    ///
    /// # Errors
    /// What keeps an earlier transfer from going on; [`FilesError::Over`] after [`Target::stop`].
    pub(super) fn begin(&self, source: SourceId) -> Result<(), Error> {
        if let Some(Other { case, files: Some(other), .. }) = &self.other {
            match case {
                // What has begun since then, in another process, is none that this one goes on with.
                Case::Earlier if !self.may_hold_some => {}
                Case::Earlier => match self.patiently(|| other.goes_on(source)) {
                    Ok(goes_on) => drop(self.is_other.set(goes_on)),
                    Err(error @ (FilesError::Busy { .. } | FilesError::Over)) => return Err(error.into()),
                    // Nothing can be found there, so nothing goes on there.
                    Err(_) => {}
                },
                Case::Named { .. } => self.patiently(|| other.begin(source))?,
            }
        }
        Ok(self.patiently(|| self.files().begin(source))?)
    }

    /// An entry is known: the first of all may decide where they go. `None`: there is none, or none soon.
    ///
    /// # Errors
    /// A target that should be a folder then, and is none.
    pub(super) fn decide(&self, entry: Option<&Entry>) -> Result<(), Error> {
        let Some(Other { case: Case::Named { folder, unless }, into, files }) = &self.other else { return Ok(()) };
        let is_case = |first: &Entry| {
            let has_other_name = unless.as_ref().is_some_and(|name| *name != first.path);
            has_other_name || (*folder && matches!(first.kind, Kind::Directory))
        };
        let is_other = *self.is_other.get_or_init(|| entry.is_some_and(is_case));
        if is_other && files.is_none() {
            return Err(FilesError::TargetNotAFolder { path: into.clone() }.into());
        }
        Ok(())
    }

    /// Whether it is known where everything goes.
    pub(super) fn is_decided(&self) -> bool {
        self.is_other.get().is_some() || !matches!(self.other, Some(Other { case: Case::Named { .. }, .. }))
    }

    /// Whether the sender is to wait for what is wanted of each batch.
    pub(super) const fn may_hold_some(&self) -> bool {
        self.may_hold_some
    }

    /// Starts a thread that settles files: once for each `()` it is sent, or once for several.
    ///
    /// # Errors
    /// No thread.
    pub(super) fn start(self: &Arc<Self>, session: &Mailbox) -> Result<Sender<()>, Error> {
        if self.started.swap(true, Ordering::SeqCst) {
            return Err(Error::Internal("a folder is opened twice"));
        }
        let (settle, requests) = channel();
        let (target, mailbox) = (Arc::clone(self), session.clone());
        session.spawn("downpour-settle", move || settle_files(&target, &requests, &mailbox))?;
        Ok(settle)
    }

    /// Whether [`Target::start`] was called.
    pub(super) fn is_started(&self) -> bool {
        self.started.load(Ordering::SeqCst)
    }

    /// Ends soon what takes long, with [`FilesError::Over`]: comparing, deleting, waiting for another process. What has come can still
    /// be made safe.
    pub(super) fn stop(&self) {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.on_stop.notify_all();
        self.files.stop();
        self.other.iter().filter_map(|other| other.files.as_ref()).for_each(FileSink::stop);
    }

    /// Whether [`Target::stop`] was called.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries again while another process has what is needed: the same transfer, broken a moment ago, may still be telling its end.
    fn patiently<T>(&self, mut attempt: impl FnMut() -> Result<T, FilesError>) -> Result<T, FilesError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match attempt() {
                Err(FilesError::Busy { .. }) if Instant::now() < deadline => {
                    let stopped = self.stopped.lock().unwrap_or_else(PoisonError::into_inner);
                    let waited = self.on_stop.wait_timeout_while(stopped, BETWEEN_ATTEMPTS, |stopped| !*stopped);
                    if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                        return Err(FilesError::Over);
                    }
                }
                result => return result,
            }
        }
    }

    /// The files.
    pub(super) fn files(&self) -> &FileSink {
        match &self.other {
            Some(Other { files: Some(other), .. }) if self.is_other.get() == Some(&true) => other,
            _ => &self.files,
        }
    }
}

impl Storage for Target {
    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(Error::Internal("a receiver reads").into())
    }

    fn write(&self, tag: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        Ok(self.files().write(batch_number(tag)?, offset, bytes).map_err(Error::from)?)
    }
}

/// Tags are batch numbers.
pub(super) fn batch_number(tag: u64) -> Result<u32, Error> {
    u32::try_from(tag).map_err(|_| Error::Violation(format!("it sends an object {tag}, which is no batch")))
}

/// FileSink that have their final names are told when there are so many.
const TOLD_AT_ONCE: usize = 256;

/// Settles verified files, which waits for the disk, whenever there may be some.
fn settle_files(target: &Target, requests: &Receiver<()>, session: &Mailbox) {
    while requests.recv().is_ok() {
        // One call settles all there is.
        let count = 1 + requests.try_iter().count();
        let mut files = Vec::new();
        let result = target.files().settle(|path, bytes| {
            files.push((display_name(path), bytes));
            if files.len() >= TOLD_AT_ONCE {
                session.put(Input::Verified(std::mem::take(&mut files)));
            }
        });
        if !files.is_empty() {
            session.put(Input::Verified(files));
        }
        match result {
            Ok(()) => session.put(Input::Settled(count)),
            Err(error) => {
                session.put(Input::Failed(error.into()));
                return;
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::files::Mtime;

    fn entry(path: &str, kind: Kind) -> Entry {
        Entry { path: path.into(), kind, mode: 0o755, mtime: Mtime::default() }
    }

    /// A target that takes one item under the name `name`, or that folder itself in another case.
    fn target(dir: &Path, folder: bool, unless: Option<&str>) -> Target {
        let named = ReceiveSettings { rename: Some(b"name".to_vec()), ..ReceiveSettings::new(dir) };
        let settings = Box::new(ReceiveSettings::new(dir.join("name")));
        let case = Case::Named { folder, unless: unless.map(|name| name.as_bytes().to_vec()) };
        Target::new(named, Some(Otherwise { case, settings })).unwrap()
    }

    #[test]
    fn what_comes_decides_whether_the_target_is_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let file = || Kind::File { size: 0, version: 0, hash: None };
        for (folder, unless, first, is_folder) in [
            (true, None, entry("a", file()), false),
            (true, None, entry("a", Kind::Directory), true),
            (false, Some("a[1]"), entry("a[1]", file()), false),
            (false, Some("a[1]"), entry("a1", file()), true),
            (false, Some("a*"), entry("a*", Kind::Directory), false),
            (true, Some("a*"), entry("a*", Kind::Directory), true),
        ] {
            let target = target(dir.path(), folder, unless);
            target.begin(SourceId([1; 16])).unwrap();
            target.decide(Some(&first)).unwrap();
            // What comes later does not count.
            target.decide(Some(&entry("z", Kind::Directory))).unwrap();
            target.decide(None).unwrap();
            let into = if is_folder { dir.path().join("name") } else { dir.path().to_owned() };
            assert_eq!(target.files().settings().into, into, "{folder} {unless:?} {first:?}");
        }
    }

    #[test]
    fn what_the_sender_was_told_holds_whatever_comes_and_goes_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let into = dir.path().join("name");
        std::fs::create_dir(&into).unwrap();
        let target = || {
            let named = ReceiveSettings { rename: Some(b"name".to_vec()), ..ReceiveSettings::new(dir.path()) };
            let otherwise = Otherwise { case: Case::Earlier, settings: Box::new(named) };
            Target::new(ReceiveSettings::new(&into), Some(otherwise)).unwrap()
        };
        let before = target();
        assert!(!before.may_hold_some());
        let staging = dir.path().join(".downpour-aaaaaaaa");
        std::fs::create_dir(&staging).unwrap();
        let during = target();
        assert!(during.may_hold_some() && !before.may_hold_some());
        std::fs::remove_dir(&staging).unwrap();
        assert!(during.may_hold_some());
    }

    #[test]
    fn a_folder_does_not_go_into_a_file() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("name"), "mine").unwrap();
        let target = target(dir.path(), true, None);
        target.begin(SourceId([1; 16])).unwrap();
        let error = target.decide(Some(&entry("a", Kind::Directory))).unwrap_err();
        assert!(matches!(error, Error::Files(FilesError::TargetNotAFolder { .. })), "{error}");
    }
}
