//! The queue of messages to the network thread, and the means to wake it: one lock, and at most one wake-up for any
//! number of messages.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

/// A queue with many writers and one reader that sleeps in `ppoll`.
pub(crate) struct Inbox<T> {
    /// `None` once the reader is dropped.
    messages: Mutex<Option<Vec<T>>>,
    /// Whether the reader sleeps, or is about to and will check the queue once more.
    sleeping: AtomicBool,
    event: OwnedFd,
}

impl<T> Inbox<T> {
    /// Creates an empty queue.
    ///
    /// # Errors
    /// The process cannot open another descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { messages: Mutex::new(Some(Vec::new())), sleeping: AtomicBool::new(false), event })
    }

    /// Adds a message, and wakes the reader if it sleeps. Drops the message if the reader is dropped.
    pub(crate) fn push(&self, message: T) {
        match &mut *self.lock() {
            Some(messages) => messages.push(message),
            // The message is dropped by the caller's frame, after the lock: it may hold a value that sends another
            // message when dropped.
            None => return,
        }
        if self.sleeping.swap(false, Ordering::SeqCst) {
            // Fails only if the counter is full, in which case the reader is awake.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }

    /// Moves all messages to `out`.
    pub(crate) fn take(&self, out: &mut Vec<T>) {
        if let Some(messages) = &mut *self.lock() {
            out.append(messages);
        }
    }

    /// Closes the queue for its reader: waiting and later messages are dropped.
    pub(crate) fn close(&self) {
        let messages = self.lock().take();
        drop(messages);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<T>>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Announces that the reader is about to sleep. Returns false if messages wait: the reader must not sleep then.
    pub(crate) fn begin_wait(&self) -> bool {
        self.sleeping.store(true, Ordering::SeqCst);
        let empty = self.lock().as_ref().is_none_or(Vec::is_empty);
        if !empty {
            self.sleeping.store(false, Ordering::SeqCst);
        }
        empty
    }

    /// Records that the reader is awake, so that messages need no wake-up. `woken`: the descriptor was readable.
    pub(crate) fn awake(&self, woken: bool) {
        self.sleeping.store(false, Ordering::SeqCst);
        if woken {
            let _ = rustix::io::read(&self.event, &mut [0; 8]);
        }
    }

    /// Returns the descriptor that becomes readable with a message for a sleeping reader.
    pub(crate) const fn descriptor(&self) -> &OwnedFd {
        &self.event
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::sync::Arc;

    /// Like a stream, which resets itself.
    struct SendsWhenDropped(Arc<Inbox<Option<Self>>>);

    impl Drop for SendsWhenDropped {
        fn drop(&mut self) {
            self.0.push(None);
        }
    }

    #[test]
    fn a_queue_without_a_reader_keeps_nothing() {
        let inbox = Arc::new(Inbox::new().unwrap());
        inbox.push(Some(SendsWhenDropped(Arc::clone(&inbox))));
        inbox.close();
        inbox.push(Some(SendsWhenDropped(Arc::clone(&inbox))));
        let mut out = Vec::new();
        inbox.take(&mut out);
        assert!(out.is_empty());
        assert_eq!(Arc::strong_count(&inbox), 1, "every message has been dropped");
    }

    #[test]
    fn every_message_is_read_though_the_reader_sleeps_between_them() {
        let inbox = Arc::new(Inbox::new().unwrap());
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let inbox = Arc::clone(&inbox);
                std::thread::spawn(move || (0..10_000).for_each(|i| inbox.push(writer * 10_000 + i)))
            })
            .collect();
        let (mut all, mut batch) = (Vec::new(), Vec::new());
        while all.len() < 20_000 {
            if inbox.begin_wait() {
                let mut fds = [PollFd::new(inbox.descriptor(), PollFlags::IN)];
                poll(&mut fds, None).unwrap();
                inbox.awake(true);
            }
            inbox.take(&mut batch);
            all.append(&mut batch);
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..20_000));
    }
}
