//! The one UDP socket of an endpoint: dual-stack where the host has IPv6, segmentation offload both ways, ECN both ways, no
//! fragmentation (`quinn-udp` forbids it and asks for offload on receipt when the socket is handed to it).

use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt;
use transport::ReceivedEcn;
use transport::recovery::EcnCodepoint;

use super::datagram::{Outgoing, Received, Sent};
use super::unreachable::{self, Told, is_of_an_earlier_datagram};
use crate::stats::CarrierRefused;

/// Buffers filled by one call to the kernel.
const BUFFERS: usize = 16;

/// Bytes of one buffer: the kernel joins at most this many bytes of equal datagrams.
const BUFFER_SIZE: usize = 1 << 16;

/// Bytes asked for in the kernel's queues, both ways: 8 ms of 8 Gbit/s, what a busy core may be late.
pub(crate) const KERNEL_BUFFER: usize = 8 << 20;

/// Addresses remembered for which the kernel refused segmentation offload; beyond it nothing more is offloaded.
const MAX_WITHOUT_OFFLOAD: usize = 1024;

/// Receive errors in a row after which the socket counts as broken.
const MAX_ERRORS_IN_A_ROW: u32 = 64;

/// Errors of earlier datagrams looked at before anything else gets its turn: anybody may send them.
const MAX_ERRORS: usize = 64;

/// A bound socket with its receive buffers.
pub(crate) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    dual_stack: bool,
    buffers: Vec<u8>,
    without_offload: BTreeSet<IpAddr>,
    errors_in_a_row: u32,
    /// The network may have said something of earlier datagrams.
    in_error: bool,
    send_error: Option<io::Error>,
    refused: CarrierRefused,
}

impl Socket {
    /// Makes a bound socket ready for large batches.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        let dual_stack = socket.local_addr()?.is_ipv6();
        enlarge(&socket);
        if let Err(error) = unreachable::ask(&socket) {
            tracing::debug!(%error, "nobody will say that the peer is gone");
        }
        Ok(Self {
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

    /// The address the socket is bound to.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The socket, to wait on.
    pub(crate) fn descriptor(&self) -> &UdpSocket {
        &self.socket
    }

    /// Datagrams that one call to the kernel sends, and joins, at most.
    pub(crate) fn segments(&self) -> (usize, usize) {
        (self.state.max_gso_segments(), self.state.gro_segments())
    }

    /// Datagrams without a byte, and messages of the network about datagrams of ours that say nothing of a peer.
    pub(crate) const fn refused(&self) -> CarrierRefused {
        self.refused
    }

    /// The last error of sending, to explain a peer that was never reached.
    pub(crate) fn take_send_error(&mut self) -> Option<io::Error> {
        self.send_error.take()
    }

    /// Hands what one call to the kernel brings to `each`; how many buffers that were, at most [`Self::BATCH`].
    ///
    /// # Errors
    /// Only when the socket is of no more use.
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
            // It means nothing for those that have come.
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

    /// Most buffers that one [`Self::receive`] brings.
    pub(crate) const BATCH: usize = BUFFERS;

    /// There are errors to look at: `poll` says so until somebody does.
    pub(crate) const fn note_error(&mut self) {
        self.in_error = true;
    }

    /// Hands the addresses where nobody listens to `each`, which knows whether that is of use; true when there may be more.
    pub(crate) fn unreachable(&mut self, mut each: impl FnMut(SocketAddr) -> bool) -> bool {
        for _ in 0..MAX_ERRORS {
            if !self.in_error {
                return false;
            }
            match unreachable::next(&self.socket) {
                Some(Told::Unreachable(address)) => self.refused.icmp += u64::from(!each(canonical(address))),
                Some(Told::Other) => self.refused.icmp += 1,
                Some(Told::Local) => {}
                None => self.in_error = false,
            }
        }
        self.in_error
    }

    /// Sends `out` from byte `sent` on and moves `sent` over what the kernel took.
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
                // Nothing of this one has left. Which of the two is to blame shows when it is tried again.
                Err(error) if !again && is_of_an_earlier_datagram(&error) => {
                    (self.in_error, again) = (true, true);
                }
                // A host that has changed its network has lost the address that was hit: the kernel chooses another.
                Err(error) if source.is_some() && blames_source(&error) => source = None,
                // No checksum offload on the way out (EIO), or a kernel or tunnel that cannot segment (EINVAL): one by one.
                Err(error) if step > out.segment_size && refuses_offload(&error) => {
                    self.remember_refusal(out.destination.ip());
                    // It was not to blame.
                    source = out.source;
                }
                // No buffers, no route, a firewall: as lost as on the path, and so is what is too large for it, which is how the
                // engine finds out.
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
        tracing::debug!(%to, "the kernel refuses segmentation offload");
        self.without_offload.insert(to);
    }

    /// An IPv4 address as a dual-stack socket names it.
    fn mapped(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if self.dual_stack => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            other => other,
        }
    }
}

/// An IPv4 peer of a dual-stack socket under its IPv4 address.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => (v4, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

fn refuses_offload(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::IO | Errno::INVAL))
}

/// Whether sending may have failed for the address to send from: it is no longer this host's, or leads nowhere.
fn blames_source(error: &io::Error) -> bool {
    let blamed = [Errno::ADDRNOTAVAIL, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::INVAL];
    Errno::from_io_error(error).is_some_and(|error| blamed.contains(&error))
}

/// Asks for large kernel queues: beyond the administrator's limit where we may, up to it otherwise.
fn enlarge(socket: &UdpSocket) {
    let receive = sockopt::set_socket_recv_buffer_size_force(socket, KERNEL_BUFFER)
        .or_else(|_| sockopt::set_socket_recv_buffer_size(socket, KERNEL_BUFFER));
    let send = sockopt::set_socket_send_buffer_size_force(socket, KERNEL_BUFFER)
        .or_else(|_| sockopt::set_socket_send_buffer_size(socket, KERNEL_BUFFER));
    for (which, result) in [("receive", receive), ("send", send)] {
        if let Err(error) = result {
            tracing::debug!(which, %error, "the kernel's buffer stays as it is");
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

    /// Sender, address that was hit, mark, bytes, stride.
    type Datagrams = (SocketAddr, Option<IpAddr>, ReceivedEcn, Vec<u8>, usize);

    fn bound(address: Option<&str>) -> Socket {
        Socket::new(Bind::from(address.map(|address| address.parse().unwrap())).open().unwrap()).unwrap()
    }

    fn received(socket: &mut Socket) -> Vec<Datagrams> {
        let mut all = Vec::new();
        while all.is_empty() {
            let mut wait = [PollFd::new(&socket.socket, PollFlags::IN)];
            assert_eq!(poll(&mut wait, Some(&Timespec { tv_sec: 10, tv_nsec: 0 })).unwrap(), 1, "nothing came");
            socket.receive(|r| all.push((r.from, r.local, r.ecn, r.bytes.to_vec(), r.stride))).unwrap();
        }
        all
    }

    #[test]
    fn dual_stack_socket_names_an_ipv4_peer_by_its_ipv4_address() {
        let mut here = bound(None);
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        there.send_to(b"hello", ("127.0.0.1", here.local_address().unwrap().port())).unwrap();
        let all = received(&mut here);
        assert_eq!(all[0].0, there.local_addr().unwrap());
        assert_eq!(all[0].1, Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), "the address that was hit");
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
    fn an_address_that_this_host_has_lost_is_not_insisted_on() {
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
                    // For documents: no host has it (RFC 5737).
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
    fn what_the_kernel_refuses_is_lost_and_remembered() {
        let mut sender = bound(Some("0.0.0.0:0"));
        let bytes = vec![0; 70_000];
        // Larger than any datagram: no news. To everybody: not allowed.
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
