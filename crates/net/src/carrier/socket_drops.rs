//! Datagrams that the kernel drops because a socket's receive buffer is full: the column *drops* of `/proc/net/udp`
//! (proc(5)). Kernels other than Linux do not report it.

use std::fs;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use rustix::fs::fstat;

/// The tables have a line for every socket of the network namespace: reading them may take this part of the time.
const PART_OF_TIME: u32 = 100;

/// The counter of one socket, as last read.
#[derive(Debug)]
pub(super) struct SocketDrops {
    /// The socket's inode in the tables; `None` if it is unknown.
    inode: Option<u64>,
    table: &'static str,
    dropped: Option<u64>,
    /// When to read again at the earliest.
    next: Instant,
}

impl SocketDrops {
    /// Begins to watch a bound socket.
    pub(super) fn of(socket: &UdpSocket) -> Self {
        let is_v6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
        let table = if is_v6 { "/proc/self/net/udp6" } else { "/proc/self/net/udp" };
        let inode = fstat(socket).ok().map(|status| status.st_ino);
        Self { inode, table, dropped: None, next: Instant::now() }
    }

    /// Reads the counter, unless that was done just before.
    pub(super) fn look(&mut self) {
        let (Some(inode), begun) = (self.inode, Instant::now()) else { return };
        if begun < self.next {
            return;
        }
        let table = fs::read_to_string(self.table).unwrap_or_default();
        self.dropped = dropped(&table, inode).or(self.dropped);
        let took = begun.elapsed().max(Duration::from_micros(100));
        self.next = begun + took * PART_OF_TIME;
    }

    /// Returns the number of datagrams dropped when it was last read; `None` if the kernel does not report it.
    pub(super) const fn dropped(&self) -> Option<u64> {
        self.dropped
    }
}

/// Finds the socket with this inode in a table: the tenth column. The last is the number of dropped datagrams.
fn dropped(table: &str, inode: u64) -> Option<u64> {
    let mut lines = table.lines().skip(1).map(str::split_ascii_whitespace);
    let mut line = lines.find(|line| line.clone().nth(9).and_then(|it| it.parse().ok()) == Some(inode))?;
    line.nth(12)?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::net::sockopt;

    use super::*;

    #[test]
    fn every_datagram_that_finds_the_buffer_full_is_counted() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(receiver) = UdpSocket::bind(address) else { continue };
            sockopt::set_socket_recv_buffer_size(&receiver, 20_000).unwrap();
            receiver.set_nonblocking(true).unwrap();
            let mut overflow = SocketDrops::of(&receiver);
            overflow.look();
            assert_eq!(overflow.dropped(), Some(0));
            let sender = UdpSocket::bind(address).unwrap();
            let to = receiver.local_addr().unwrap();
            for _ in 0..100 {
                assert_eq!(sender.send_to(&[7; 1_000], to).unwrap(), 1_000);
            }
            let mut received = 0;
            while receiver.recv(&mut [0; 2_000]).is_ok() {
                received += 1;
            }
            assert!((1..100).contains(&received), "{received} of 100 fit");
            overflow.next = Instant::now() + Duration::from_secs(60);
            overflow.look();
            assert_eq!(overflow.dropped(), Some(0), "it is not read again yet");
            overflow.next = Instant::now();
            overflow.look();
            assert_eq!(overflow.dropped(), Some(100 - received));
        }
    }

    #[test]
    fn a_socket_is_found_by_its_inode() {
        let table = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops\n\
                      8: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 77 2 0000000000000000 12\n\
                    9999: 00000000:1194 00000000:0000 07 00000000:00000300 00:00000000 00000000     0        0 78 2 0000000000000000 345\n";
        assert_eq!([77, 78, 79, 101].map(|inode| dropped(table, inode)), [Some(12), Some(345), None, None]);
        assert_eq!(dropped("", 77), None);
    }
}
