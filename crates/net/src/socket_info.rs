//! The kernel's grants to a UDP socket and its network thread: possible local causes of a slow transfer.

use std::fs;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};

use crate::carrier::{KERNEL_BUFFER, Socket};

/// The kernel's grants to the UDP socket of an endpoint when it was bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SocketInfo {
    /// Datagrams that one system call can send (`UDP_SEGMENT`); 1 without segmentation offload.
    pub send_segments: usize,
    /// Datagrams that the kernel can coalesce into one buffer (`UDP_GRO`); 1 without receive offload.
    pub receive_segments: usize,
    /// The receive buffer.
    pub receive_buffer: BufferFacts,
    /// The send buffer.
    pub send_buffer: BufferFacts,
    /// Whether the kernel reports the ECN marks of datagrams. The path may still erase them.
    pub ecn: bool,
}

/// A socket buffer, in bytes. The kernel itself counts twice as many, for its bookkeeping (socket(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferFacts {
    /// The requested size.
    pub asked: usize,
    /// Granted.
    pub granted: usize,
    /// The limit for unprivileged programs (`net.core.rmem_max`, `net.core.wmem_max`), where it can be read.
    pub limit: Option<usize>,
}

impl SocketInfo {
    /// Reads them from a socket.
    ///
    /// # Errors
    /// The kernel does not report the options of the socket.
    pub(crate) fn of(socket: &Socket) -> io::Result<Self> {
        let descriptor = socket.descriptor();
        let buffer = |counted: usize, limit| BufferFacts { asked: KERNEL_BUFFER, granted: counted / 2, limit };
        let (send_segments, receive_segments) = socket.segments();
        Ok(Self {
            send_segments,
            receive_segments,
            receive_buffer: buffer(sockopt::socket_recv_buffer_size(descriptor)?, kernel_limit("rmem_max")),
            send_buffer: buffer(sockopt::socket_send_buffer_size(descriptor)?, kernel_limit("wmem_max")),
            ecn: if socket.local_address()?.is_ipv6() {
                sockopt::ipv6_recvtclass(descriptor)?
            } else {
                sockopt::ip_recvtos(descriptor)?
            },
        })
    }
}

/// Reads a number in `/proc/sys/net/core`, which a network namespace may not have.
fn kernel_limit(name: &str) -> Option<usize> {
    fs::read_to_string(format!("/proc/sys/net/core/{name}")).ok()?.trim().parse().ok()
}

/// A thread of this process, to query its CPU time. Unknown until the thread runs.
#[derive(Clone, Debug, Default)]
pub struct ThreadClock(Arc<OnceLock<rustix::process::Pid>>);

/// The CPU time of a thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Time it ran.
    pub running: Duration,
    /// Time it was ready to run and waited for a core.
    pub waiting: Duration,
}

impl ThreadClock {
    /// Sets it to the calling thread.
    pub(crate) fn begin(&self) {
        self.0.get_or_init(rustix::thread::gettid);
    }

    /// Returns the CPU time; `None` if the kernel keeps no such statistics (proc(5), schedstat), or the thread has
    /// ended.
    pub fn time(&self) -> Option<ThreadTime> {
        ThreadTime::read(&format!("/proc/self/task/{}/schedstat", self.0.get()?.as_raw_pid()))
    }
}

impl ThreadTime {
    /// Returns the CPU time of the calling thread; `None` if the kernel keeps no such statistics.
    pub(crate) fn of_this_thread() -> Option<Self> {
        Self::read("/proc/thread-self/schedstat")
    }

    fn read(path: &str) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut nanoseconds = text.split_whitespace().map_while(|word| word.parse().ok()).map(Duration::from_nanos);
        Some(Self { running: nanoseconds.next()?, waiting: nanoseconds.next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bind;

    #[test]
    fn a_thread_that_works_has_had_a_core() {
        let thread = ThreadClock::default();
        assert_eq!(thread.time(), None);
        thread.begin();
        let Some(before) = thread.time() else { return };
        while thread.time().is_some_and(|now| now.running < before.running + Duration::from_millis(2)) {}
        assert!(thread.time().unwrap().waiting >= before.waiting);
    }

    #[test]
    fn facts_are_those_of_the_kernel() {
        for address in ["127.0.0.1:0", "[::]:0"] {
            let bind = Bind::Address(address.parse().unwrap());
            let facts = SocketInfo::of(&Socket::new(bind.open().unwrap()).unwrap()).unwrap();
            assert!((1..=64).contains(&facts.send_segments), "{facts:?}");
            assert!((1..=64).contains(&facts.receive_segments), "{facts:?}");
            assert!(facts.ecn, "every Linux reports marks: {facts:?}");
            for buffer in [facts.receive_buffer, facts.send_buffer] {
                assert_eq!(buffer.asked, KERNEL_BUFFER);
                // Everything requested for privileged processes, as much as is allowed for others.
                let limited = buffer.limit.is_none_or(|limit| buffer.granted == limit);
                assert!(buffer.granted == buffer.asked || limited && buffer.granted > 0, "{facts:?}");
            }
        }
    }
}
