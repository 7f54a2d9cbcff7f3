//! The UDP socket of an endpoint: dual-stack if the host has IPv6, segmentation offload and ECN in both directions, no
//! fragmentation (`quinn-udp` disables it and enables receive offload when it is given the socket).

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt;
use transport::ReceivedEcn;
use transport::recovery::EcnCodepoint;

use super::datagram::{Outgoing, Received, Sent};
use super::error_queue::{self, SocketError, is_of_an_earlier_datagram};
use super::refused::CarrierRefused;
use super::socket_drops::SocketDrops;

/// Number of buffers filled by one system call.
const BUFFERS: usize = 16;

/// Size of a buffer in bytes: the kernel coalesces at most this many bytes of equal-sized datagrams.
const BUFFER_SIZE: usize = 1 << 16;

/// Requested size of the kernel's queues in bytes, in both directions: 8 ms at 8 Gbit/s, the delay to expect on a busy
/// core. The same on any path, since a queue takes only the memory of its datagrams (docs/design/flow-control.md).
pub(crate) const KERNEL_BUFFER: usize = 8 << 20;

/// Maximum number of addresses remembered for which the kernel refused segmentation offload; beyond it offload is not
/// used at all.
const MAX_WITHOUT_OFFLOAD: usize = 1024;

/// Consecutive receive errors after which the socket counts as broken.
const MAX_ERRORS_IN_A_ROW: u32 = 64;

/// Maximum number of errors of earlier datagrams processed in a row, since anyone can cause them.
const MAX_ERRORS: usize = 64;

/// A bound socket with its receive buffers.
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    dual_stack: bool,
    buffers: Vec<u8>,
    without_offload: BTreeSet<IpAddr>,
    errors_in_a_row: u32,
    /// Whether errors about earlier datagrams may be pending.
    in_error: bool,
    send_error: Option<io::Error>,
    refused: CarrierRefused,
    overflow: SocketDrops,
}

impl Socket {
    /// Prepares a bound socket for large batches.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let dual_stack = socket.local_addr()?.is_ipv6();
        enlarge(&socket);
        if let Err(error) = error_queue::enable(&socket) {
            tracing::debug!(%error, "no error queue: an absent peer is detected by timeout only");
        }
        Ok(Self {
            overflow: SocketDrops::of(&socket),
            socket,
            state,
            dual_stack,
            buffers: vec![0; BUFFERS * BUFFER_SIZE],
            without_offload: BTreeSet::new(),
            errors_in_a_row: 0,
            in_error: false,
            send_error: None,
            refused: CarrierRefused::default(),
        })
    }

    /// Returns the address to which the socket is bound.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Returns the socket, to wait for it.
    pub(crate) fn descriptor(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns the maximum numbers of datagrams that one system call sends, and that the kernel coalesces on receipt.
    pub(crate) fn segments(&self) -> (usize, usize) {
        (self.state.max_gso_segments(), self.state.gro_segments())
    }

    /// Returns the counts of empty datagrams, and of errors about our datagrams without information about a peer.
    pub(crate) const fn refused(&self) -> CarrierRefused {
        self.refused
    }

    /// Reads the kernel's counter of dropped datagrams, unless that was done just before.
    pub(crate) fn update_socket_drops(&mut self) {
        self.overflow.look();
    }

    /// Returns how many datagrams the kernel had dropped then because the receive buffer was full.
    pub(crate) const fn overflowed(&self) -> Option<u64> {
        self.overflow.dropped()
    }

    /// Takes the last error of sending, which may explain why a peer was never reached.
    pub(crate) fn take_send_error(&mut self) -> Option<io::Error> {
        self.send_error.take()
    }

    /// Passes the datagrams of one system call to `each`; returns the number of buffers, at most [`Self::BATCH`].
    ///
    /// # Errors
    /// Only if the socket is unusable.
    pub(crate) fn receive(&mut self, mut each: impl FnMut(Received<'_>)) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); BUFFERS];
        let (rest, []) = self.buffers.as_chunks_mut::<BUFFER_SIZE>() else {
            return Err(io::Error::other("receive buffers of a wrong size"));
        };
        let mut rest = rest.iter_mut();
        let mut slices: [IoSliceMut<'_>; BUFFERS] =
            std::array::from_fn(|_| IoSliceMut::new(rest.next().map_or(&mut [], |buffer| &mut buffer[..])));
        let count = match self.state.recv((&self.socket).into(), &mut slices, &mut metas) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            // Unrelated to the datagrams received.
            Err(error) if is_of_an_earlier_datagram(&error) => {
                self.in_error = true;
                return Ok(0);
            }
            Err(error) => {
                self.in_error = true;
                self.errors_in_a_row += 1;
                return if self.errors_in_a_row > MAX_ERRORS_IN_A_ROW { Err(error) } else { Ok(0) };
            }
        };
        self.errors_in_a_row = 0;
        for (meta, slice) in metas[..count].iter().zip(&mut slices) {
            let bytes = &mut slice[..meta.len];
            if bytes.is_empty() {
                self.refused.empty += 1;
                continue;
            }
            each(Received {
                from: canonical(meta.addr),
                local: meta.dst_ip.map(|ip| ip.to_canonical()),
                ecn: received_ecn(meta.ecn),
                stride: meta.stride.clamp(1, bytes.len()),
                bytes,
            });
        }
        Ok(count)
    }

    /// Maximum number of buffers filled by one [`Self::receive`].
    pub(crate) const BATCH: usize = BUFFERS;

    /// Records that errors are pending: `poll` reports them until they are processed.
    pub(crate) const fn note_error(&mut self) {
        self.in_error = true;
    }

    /// Passes the addresses reported as unreachable to `each`, which returns whether the report is useful. Returns
    /// whether more may follow.
    pub(crate) fn unreachable(&mut self, mut each: impl FnMut(SocketAddr) -> bool) -> bool {
        for _ in 0..MAX_ERRORS {
            if !self.in_error {
                return false;
            }
            match error_queue::next(&self.socket) {
                Some(SocketError::Unreachable(address)) => self.refused.icmp += u64::from(!each(canonical(address))),
                Some(SocketError::Other) => self.refused.icmp += 1,
                Some(SocketError::Local) => {}
                None => self.in_error = false,
            }
        }
        self.in_error
    }

    /// Sends `out` from byte `sent` on and advances `sent` by the bytes that the kernel took.
    pub(crate) fn send(&mut self, out: Outgoing<'_>, sent: &mut usize) -> Sent {
        let mut source = out.source;
        let mut again = false;
        while *sent < out.bytes.len() {
            let rest = &out.bytes[*sent..];
            let step = if self.offloads(out.destination.ip()) { rest.len() } else { out.segment_size.min(rest.len()) };
            let result = self.state.try_send(
                (&self.socket).into(),
                &Transmit {
                    destination: self.mapped(out.destination),
                    ecn: sent_ecn(out.ecn),
                    contents: &rest[..step],
                    segment_size: (step > out.segment_size).then_some(out.segment_size),
                    src_ip: source,
                },
            );
            match result {
                Ok(()) => (*sent, again) = (*sent + step, false),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Sent::Blocked,
                // Nothing of this datagram was sent. Trying again shows whether an earlier one or this one caused the
                // error.
                Err(error) if !again && is_of_an_earlier_datagram(&error) => {
                    (self.in_error, again) = (true, true);
                }
                // A host that has changed networks has lost the address to which the peer sent: let the kernel choose
                // another source.
                Err(error) if source.is_some() && blames_source(&error) => source = None,
                // No checksum offload for sending (EIO), or a kernel or tunnel without segmentation (EINVAL): send one
                // by one.
                Err(error) if step > out.segment_size && refuses_offload(&error) => {
                    self.remember_refusal(out.destination.ip());
                    // The source address was not the cause.
                    source = out.source;
                }
                // No buffers, no route, a firewall: counts as lost on the path. So do datagrams too large for the path,
                // which the engine detects by that.
                Err(error) => {
                    if Errno::from_io_error(&error) != Some(Errno::MSGSIZE) {
                        self.send_error = Some(error);
                    }
                    (*sent, again) = (*sent + step, false);
                }
            }
        }
        Sent::All
    }

    fn offloads(&self, to: IpAddr) -> bool {
        self.without_offload.len() < MAX_WITHOUT_OFFLOAD && !self.without_offload.contains(&to)
    }

    fn remember_refusal(&mut self, to: IpAddr) {
        tracing::debug!(%to, "the kernel does not support segmentation offload");
        self.without_offload.insert(to);
    }

    /// Returns an IPv4 address in the form that a dual-stack socket uses.
    fn mapped(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.dual_stack => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            other => other,
        }
    }
}

/// Returns the IPv4 address of an IPv4 peer of a dual-stack socket.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => (v4, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

fn refuses_offload(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::INVAL))
}

/// Whether sending may have failed because of the source address: it is no longer this host's, or has no route.
fn blames_source(error: &io::Error) -> bool {
    let blamed = [Errno::ADDRNOTAVAIL, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|error| blamed.contains(&error))
}

/// Requests large kernel queues: beyond the administrator's limit if permitted, otherwise up to it.
fn enlarge(socket: &UdpSocket) {
    let receive = sockopt::set_socket_recv_buffer_size_force(socket, KERNEL_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, KERNEL_BUFFER));
    let send = sockopt::set_socket_send_buffer_size_force(socket, KERNEL_BUFFER)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, KERNEL_BUFFER));
    for (which, result) in [("receive", receive), ("send", send)] {
        if let Err(error) = result {
            tracing::debug!(which, %error, "cannot enlarge the kernel's buffer");
        }
    }
}

const fn received_ecn(ecn: Option<quinn_udp::EcnCodepoint>) -> ReceivedEcn {
    match ecn {
        None => ReceivedEcn::NotEct,
        Some(quinn_udp::EcnCodepoint::Ect0) => ReceivedEcn::Ect0,
        Some(quinn_udp::EcnCodepoint::Ect1) => ReceivedEcn::Ect1,
        Some(quinn_udp::EcnCodepoint::Ce) => ReceivedEcn::Ce,
    }
}

const fn sent_ecn(ecn: EcnCodepoint) -> Option<quinn_udp::EcnCodepoint> {
    match ecn {
        EcnCodepoint::NotEct => None,
        EcnCodepoint::Ect0 => Some(quinn_udp::EcnCodepoint::Ect0),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;
    use crate::Bind;

    /// Sender, destination address, ECN mark, bytes, stride.
    type Datagrams = (SocketAddr, Option<IpAddr>, ReceivedEcn, Vec<u8>, usize);

    fn bound(address: Option<&str>) -> Socket {
        Socket::new(Bind::from(address.map(|address| address.parse().unwrap())).open().unwrap()).unwrap()
    }

    fn received(socket: &mut Socket) -> Vec<Datagrams> {
        let mut all = Vec::new();
        while all.is_empty() {
            let mut wait = [PollFd::new(&socket.socket, PollFlags::IN)];
            assert_eq!(poll(&mut wait, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap(), 1, "no datagram arrived");
            socket.receive(|r| all.push((r.from, r.local, r.ecn, r.bytes.to_vec(), r.stride))).unwrap();
        }
        all
    }

    #[test]
    fn dual_stack_socket_names_an_ipv4_peer_by_its_ipv4_address() {
        let mut local = bound(None);
        let remote = UdpSocket::bind("127.0.0.1:0").unwrap();
        remote.send_to(b"hello", ("127.0.0.1", local.local_address().unwrap().port())).unwrap();
        let all = received(&mut local);
        assert_eq!(all[0].0, remote.local_addr().unwrap());
        assert_eq!(all[0].1, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), "the receiving address");
        assert_eq!(all[0].3, b"hello");
    }

    #[test]
    fn a_batch_arrives_with_its_segments_and_its_ecn_mark() {
        for (from, to) in [("127.0.0.1:0", "127.0.0.1:0"), ("[::]:0", "127.0.0.1:0")] {
            let mut sender = bound(Some(from));
            let mut receiver = bound(Some(to));
            let bytes: Vec<u8> = (0..10_500).map(|i| (i / 1000) as u8).collect();
            for offloaded in [true, false] {
                if !offloaded {
                    sender.remember_refusal(IpAddr::V4(Ipv4Addr::LOCALHOST));
                }
                let out = Outgoing {
                    destination: receiver.local_address().unwrap(),
                    source: None,
                    ecn: EcnCodepoint::Ect0,
                    segment_size: 1000,
                    bytes: &bytes,
                };
                let mut sent = 0;
                assert_eq!(sender.send(out, &mut sent), Sent::All);
                assert_eq!(sent, bytes.len());
                let mut datagrams: Vec<Vec<u8>> = Vec::new();
                while datagrams.len() < 11 {
                    for (_, _, ecn, joined, stride) in received(&mut receiver) {
                        assert_eq!(ecn, ReceivedEcn::Ect0);
                        datagrams.extend(joined.chunks(stride).map(<[u8]>::to_vec));
                    }
                }
                assert_eq!(datagrams.concat(), bytes);
                assert_eq!(datagrams[10].len(), 500);
            }
        }
    }

    #[test]
    fn socket_lost_source_address_unpinned() {
        for from in ["0.0.0.0:0", "[::]:0"] {
            let mut sender = bound(Some(from));
            let mut receiver = bound(Some("127.0.0.1:0"));
            let bytes = vec![7; 2_500];
            for offloaded in [true, false] {
                if !offloaded {
                    sender.remember_refusal(IpAddr::V4(Ipv4Addr::LOCALHOST));
                }
                let refusals = sender.without_offload.len();
                let out = Outgoing {
                    destination: receiver.local_address().unwrap(),
                    // Reserved for documentation: no host has it (RFC 5737).
                    source: Some("192.0.2.1".parse().unwrap()),
                    ecn: EcnCodepoint::NotEct,
                    segment_size: 1_000,
                    bytes: &bytes,
                };
                let mut sent = 0;
                assert_eq!((sender.send(out, &mut sent), sent), (Sent::All, bytes.len()), "from {from}");
                assert!(sender.take_send_error().is_none(), "from {from}");
                assert_eq!(sender.without_offload.len(), refusals, "offload is not to blame");
                let mut came = 0;
                while came < bytes.len() {
                    came += received(&mut receiver).iter().map(|(.., bytes, _)| bytes.len()).sum::<usize>();
                }
            }
        }
    }

    #[test]
    fn a_datagram_rejected_by_the_kernel_is_lost_and_recorded() {
        let mut sender = bound(Some("0.0.0.0:0"));
        let bytes = vec![0; 70_000];
        // Larger than any datagram: no error. To the broadcast address: not allowed.
        for (to, length, expected) in [("127.0.0.1:9", 70_000, None), ("255.255.255.255:9", 100, Some(Errno::ACCESS))] {
            let out = Outgoing {
                destination: to.parse().unwrap(),
                source: None,
                ecn: EcnCodepoint::NotEct,
                segment_size: length,
                bytes: &bytes[..length],
            };
            let mut sent = 0;
            assert_eq!((sender.send(out, &mut sent), sent), (Sent::All, length));
            assert_eq!(sender.take_send_error().and_then(|error| Errno::from_io_error(&error)), expected, "{to}");
        }
    }
}
