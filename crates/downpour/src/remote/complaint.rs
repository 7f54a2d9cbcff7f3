//! The last words of an ssh that asks its user nothing.

use std::io::Read as _;
use std::process::ChildStderr;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::Error;

/// What an ssh says on stderr that nobody is to read there.
pub(super) struct Complaint {
    said: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Complaint {
    /// Longest that is kept, in bytes.
    const LONGEST: usize = 4096;
    /// How long to wait for the rest once ssh has ended: a process that it has left behind may keep the pipe open.
    const REST: Duration = Duration::from_millis(500);

    pub(super) fn listen(mut stderr: ChildStderr) -> Result<Self, Error> {
        let (said, (over, end)) = (Arc::<Mutex<Vec<u8>>>::default(), channel());
        let kept = Arc::clone(&said);
        let listen = move || {
            let mut buffer = [0; 1024];
            // An error is an end, too.
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend_from_slice(&buffer[..count]);
                let excess = kept.len().saturating_sub(Self::LONGEST);
                kept.drain(..excess);
            }
            let _ = over.send(());
        };
        thread::Builder::new().name("downpour-complaint".into()).spawn(listen).map_err(Error::System)?;
        Ok(Self { said, end })
    }

    /// Returns the last line.
    pub(super) fn last(self) -> Option<String> {
        _ = self.end.recv_timeout(Self::REST);
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&said);
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty())?;
        Some(line.trim_end_matches('.').to_owned())
    }
}
