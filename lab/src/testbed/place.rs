//! A thread in namespaces of its own.

use std::fs;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Work for the thread.
type Work = Box<dyn FnOnce() + Send>;

/// A thread, and the namespaces that it has entered: its sockets and processes belong to them. It ends when this is
/// dropped.
#[derive(Debug)]
pub(super) struct NamespaceThread {
    thread: Sender<Work>,
}

impl NamespaceThread {
    /// Starts a thread that first calls `arrive`, and returns its result too.
    pub(super) fn new<T: Send + 'static>(
        name: &str,
        arrive: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<(Self, T)> {
        let (thread, work) = channel::<Work>();
        let (arrived, arrival) = channel();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let result = arrive();
            let stays = result.is_ok();
            // The caller is gone, and so is its work.
            let _ = arrived.send(result);
            if stays {
                work.into_iter().for_each(|work| work());
            }
        })?;
        let result = arrival.recv().map_err(|_| io::Error::other("the thread of a host ended"))??;
        Ok((Self { thread }, result))
    }

    /// Runs `work` in the namespaces.
    pub(super) fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let work = Box::new(move || drop(done.send(work())));
        self.thread.send(work).expect("the thread ends with its handle");
        result.recv().expect("work in namespaces does not panic")
    }

    /// Returns the counts of an interface in the namespaces so far.
    pub(super) fn counts(&self, interface: &str) -> io::Result<InterfaceCounts> {
        let table = self.within(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        InterfaceCounts::find(&table, interface).ok_or_else(|| io::Error::other("no such interface in /proc/net/dev"))
    }
}

/// The counts of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterfaceCounts {
    /// Packets that arrived.
    pub received: u64,
    /// Packets that arrived and were dropped by the interface.
    pub receive_drops: u64,
    /// Packets that left.
    pub sent: u64,
    /// Packets that could not leave.
    pub send_drops: u64,
}

impl InterfaceCounts {
    /// Parses the row of an interface in `/proc/net/dev`.
    fn find(table: &str, interface: &str) -> Option<Self> {
        let row = table.lines().find_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))?;
        let numbers: Vec<u64> = row.split_whitespace().map_while(|number| number.parse().ok()).collect();
        // Bytes, packets, errors, drops, and four more; then the same for sent packets.
        Some(Self {
            received: *numbers.get(1)?,
            receive_drops: *numbers.get(3)?,
            sent: *numbers.get(9)?,
            send_drops: *numbers.get(11)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_counts_are_read_from_columns() {
        let table = "Inter-|   Receive\n face |bytes\n    lo:       1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0: 1000      7    0    3    0     0          0         0     9000      60    0    2    0     0       0          0\n";
        let expected = InterfaceCounts { received: 7, receive_drops: 3, sent: 60, send_drops: 2 };
        assert_eq!(InterfaceCounts::find(table, "eth0"), Some(expected));
        assert_eq!(InterfaceCounts::find(table, "eth"), None);
    }
}
