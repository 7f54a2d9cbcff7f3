//! A file read during its writing.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::series::name_of;
use crate::trace::{Limits, Trace};
use crate::web::lock;
use crate::web::topic::{Retention, Topic};

use super::view;

/// Interval of reads, and of updates to viewers.
const EVERY: Duration = Duration::from_millis(250);
/// Limits of the stored part of a file: some MB, whatever its length.
const LIMITS: Limits = Limits { buckets: 8192, connections: 8 };
const CHUNK: usize = 64 << 10;
/// Bytes read before an update to viewers, for a file that is already long.
const MOST_AT_ONCE: u64 = 4 << 20;
/// Bytes at the beginning that identify a file.
const BEGINNING: usize = 1024;

/// A file, its content so far, and its viewers.
#[derive(Debug)]
pub(super) struct FollowedTrace {
    path: PathBuf,
    pub(super) name: String,
    pub(super) topic: Arc<Topic>,
    state: Mutex<TraceView>,
    /// Whether the next read is the last.
    is_ending: AtomicBool,
    /// The reading thread.
    thread: OnceLock<JoinHandle<()>>,
}

/// The content so far.
#[derive(Debug)]
pub(super) struct TraceView {
    pub(super) trace: Trace,
    pub(super) bytes: u64,
    /// The number of replacements and truncations.
    pub(super) replacements: usize,
    /// The reason why the file cannot be read at present.
    pub(super) trouble: Option<String>,
}

impl FollowedTrace {
    /// Starts to follow a file, which may not exist yet.
    pub(super) fn start(path: PathBuf) -> io::Result<Arc<Self>> {
        let followed = Arc::new(Self::new(path));
        let follower = Arc::clone(&followed);
        let thread = thread::Builder::new().name("trace".into()).spawn(move || {
            let mut reader = TraceReader::default();
            loop {
                let is_last = follower.is_ending.load(Ordering::Relaxed);
                follower.poll(&mut reader);
                if is_last {
                    return follower.end();
                }
                thread::park_timeout(EVERY);
            }
        })?;
        let _ = followed.thread.set(thread);
        Ok(followed)
    }

    fn new(path: PathBuf) -> Self {
        let state = TraceView { trace: Trace::new(LIMITS), bytes: 0, replacements: 0, trouble: None };
        let (name, topic) = (name_of(&path), Topic::new(Retention::Last));
        Self { name, path, topic, state: Mutex::new(state), is_ending: AtomicBool::new(false), thread: OnceLock::new() }
    }

    /// Requests a last read, after which viewers are notified of the end.
    pub(super) fn finish(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.get() {
            thread.thread().unpark();
        }
    }

    /// Notifies the viewers of the end.
    fn end(&self) {
        let mut last = view::state(&self.name, &self.state());
        last["is_over"] = true.into();
        self.topic.publish(&last);
        self.topic.end();
    }

    /// Returns the content so far.
    pub(super) fn state(&self) -> MutexGuard<'_, TraceView> {
        lock(&self.state)
    }

    /// Returns whether this is the file with that path.
    pub(super) fn is(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Reads new content, and notifies the viewers.
    fn poll(&self, reader: &mut TraceReader) {
        let mut is_published = false;
        loop {
            let found = reader.find(&self.path);
            let mut state = self.state();
            let mut changed = !is_published && self.topic.kept().is_empty();
            let mut is_more = false;
            let trouble = match found {
                Ok(is_replaced) => {
                    if is_replaced && state.bytes > 0 {
                        (state.trace, state.bytes) = (Trace::new(LIMITS), 0);
                        state.replacements += 1;
                    }
                    changed |= is_replaced;
                    drop(state);
                    let read = self.read(reader);
                    state = self.state();
                    match read {
                        Ok(length) => {
                            changed |= length > 0;
                            is_more = length >= MOST_AT_ONCE;
                            None
                        }
                        Err(error) => Some(format!("cannot read it: {error}")),
                    }
                }
                Err(trouble) => Some(trouble),
            };
            changed |= state.trouble != trouble;
            state.trouble = trouble;
            if changed {
                let update = view::state(&self.name, &state);
                drop(state);
                self.topic.publish(&update);
                is_published = true;
            }
            if !is_more {
                return;
            }
        }
    }

    /// Reads a bounded number of further bytes; returns the number.
    fn read(&self, reader: &mut TraceReader) -> io::Result<u64> {
        let (mut chunk, mut total) = (vec![0; CHUNK], 0);
        while total < MOST_AT_ONCE {
            let bytes = reader.next(&mut chunk)?;
            if bytes.is_empty() {
                break;
            }
            let mut state = self.state();
            state.trace.push(bytes);
            state.bytes += bytes.len() as u64;
            total += bytes.len() as u64;
        }
        self.state().trace.settle();
        Ok(total)
    }
}

/// An open file, and the read position.
#[derive(Debug, Default)]
struct TraceReader {
    file: Option<File>,
    id: (u64, u64),
    at: u64,
    beginning: Vec<u8>,
}

impl TraceReader {
    /// Opens the file; returns whether it was replaced or truncated. The error is the reason why it cannot be opened.
    fn find(&mut self, path: &Path) -> Result<bool, String> {
        let is_file =
            |found: Metadata| if found.is_file() { Ok(found) } else { Err("it is not a regular file".to_owned()) };
        let found = path.metadata().map_err(|error| trouble(&error)).and_then(is_file)?;
        if self.file.is_some() && self.id == id(&found) && found.len() >= self.at && self.begins_as_before() {
            return Ok(false);
        }
        // The file may have become a FIFO, whose opening would wait.
        let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|error| trouble(&error))?;
        let found = file.metadata().map_err(|error| trouble(&error)).and_then(is_file)?;
        *self = Self { id: id(&found), file: Some(file), at: 0, beginning: Vec::new() };
        Ok(true)
    }

    /// Returns whether the file still begins with the same bytes: a truncated one may have become longer since.
    fn begins_as_before(&self) -> bool {
        let mut now = vec![0; self.beginning.len()];
        let read = self.file.as_ref().map(|file| file.read_exact_at(&mut now, 0));
        matches!(read, Some(Ok(()))) && now == self.beginning
    }

    fn next<'a>(&mut self, chunk: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let Some(file) = &self.file else { return Ok(&[]) };
        let length = file.read_at(chunk, self.at)?;
        let bytes = &chunk[..length];
        let room = BEGINNING - self.beginning.len();
        self.beginning.extend_from_slice(&bytes[..length.min(room)]);
        self.at += length as u64;
        Ok(bytes)
    }
}

fn id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn trouble(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it does not exist yet: waiting for it".to_owned(),
        _ => format!("cannot read it: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write as _;

    const HEADER: &str = "\u{1e}{\"file_schema\":\"x\"}\n";

    fn event(time: u32) -> String {
        format!("\u{1e}{{\"time\":{time},\"name\":\"recovery:metrics_updated\",\"data\":{{\"loss\":0.5}}}}\n")
    }

    /// Returns the seconds of the last connection, the number of replacements, and the error.
    fn seen(followed: &FollowedTrace) -> (Option<f64>, usize, Option<String>) {
        let state = followed.state();
        (
            state.trace.connections().back().map(crate::trace::TracedConnection::seconds),
            state.replacements,
            state.trouble.clone(),
        )
    }

    #[test]
    fn follow_reads_appended_replaced_and_truncated_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.qlog");
        let (followed, mut reader) = (FollowedTrace::new(path.clone()), TraceReader::default());
        let mut poll = || {
            followed.poll(&mut reader);
            seen(&followed)
        };
        let absent = "it does not exist yet: waiting for it".to_owned();
        assert_eq!(poll(), (None, 0, Some(absent.clone())));
        assert_eq!(followed.topic.kept().len(), 1, "viewers are notified");
        let mut file = File::options().create(true).append(true).open(&path).expect("a file");
        file.write_all(format!("{HEADER}{}", event(1000)).as_bytes()).expect("written");
        assert_eq!(poll(), (Some(1.0), 0, None));
        let (first, second) = (event(2000), event(3000));
        file.write_all(format!("{first}{}", &second[..20]).as_bytes()).expect("written");
        assert_eq!(poll(), (Some(2.0), 0, None));
        file.write_all(&second.as_bytes()[20..]).expect("written");
        assert_eq!(poll(), (Some(3.0), 0, None));
        // Shorter, and then longer than before.
        fs::write(&path, HEADER).expect("written");
        assert_eq!(poll(), (Some(0.0), 1, None));
        fs::write(&path, format!("{HEADER}{}", event(3500))).expect("written");
        assert_eq!(poll(), (Some(3.5), 1, None), "as if appended");
        fs::write(&path, format!("{HEADER}{}", event(4000).repeat(9))).expect("written");
        assert_eq!(poll(), (Some(4.0), 2, None));
        let other = directory.path().join("other");
        fs::write(&other, format!("{HEADER}{}{}", event(4000).repeat(9), event(5000))).expect("written");
        fs::rename(&other, &path).expect("replaced");
        assert_eq!(poll(), (Some(5.0), 3, None));
        fs::remove_file(&path).expect("removed");
        assert_eq!(poll(), (Some(5.0), 3, Some(absent)));
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).expect("a FIFO");
        assert_eq!(poll().2.as_deref(), Some("it is not a regular file"));
    }

    #[test]
    fn follow_sends_no_update_without_a_change() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.qlog");
        fs::write(&path, HEADER).expect("written");
        let (followed, mut reader) = (FollowedTrace::new(path), TraceReader::default());
        followed.poll(&mut reader);
        let sent = followed.topic.kept();
        followed.poll(&mut reader);
        assert!(Arc::ptr_eq(&sent[0], &followed.topic.kept()[0]));
    }
}
