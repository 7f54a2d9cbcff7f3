//! Packets of an interface as its wire carries them: a packet socket with a ring that the kernel fills (`packet(7)`,
//! `PACKET_RX_RING`).
//!
//! It uses a ring because `net.core.rmem_max` does not limit its size: an ordinary user may stall for as long as root
//! without loss. It uses version 2 because version 3 delivers whole blocks, up to a tick of the clock late.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::call::{check, set_option};

/// Frames of a ring, and the bytes of each: its header, the link-layer header and 1500 bytes of IP fit.
const FRAMES: u32 = 8192;
const FRAME_BYTES: u32 = 2048;
/// Bytes of the ring that the kernel allocates in one piece.
const BLOCK_BYTES: u32 = 1 << 16;
const RING_BYTES: usize = FRAMES as usize * FRAME_BYTES as usize;
/// Frames leave without passing a queueing discipline.
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_TIMESTAMP: libc::c_int = 17;
/// Stamp when the interface takes a packet, not when it reaches the socket.
const SOF_TIMESTAMPING_SOFTWARE: libc::c_int = 1 << 4;
/// IPv4, in network byte order as the kernel wants it.
const PROTOCOL: u16 = (libc::ETH_P_IP as u16).to_be();

/// A packet socket on one interface. It receives arriving IPv4, not its own packets.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    ring: Ring,
    /// Frames that the kernel dropped because the ring was full; reading the kernel's count resets it.
    dropped: u64,
}

/// A frame that arrived.
#[derive(Debug)]
pub(crate) struct ReceivedFrame<'a> {
    /// From the link-layer header on.
    pub(crate) frame: &'a [u8],
    /// When the interface took it, since 1970 (`CLOCK_REALTIME`).
    pub(crate) stamp: Duration,
    /// Whether it fitted the ring completely.
    pub(crate) is_whole: bool,
}

impl PacketSocket {
    /// Opens a socket on `interface`, by its index, of the current network namespace.
    ///
    /// # Errors
    /// No permission for packet sockets (`CAP_NET_RAW`), no such interface, no memory for the ring.
    pub(crate) fn open(interface: u32) -> io::Result<Self> {
        // Protocol 0: no frame arrives before the ring exists. SAFETY: no pointers.
        let socket = check(unsafe {
            libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
        })?;
        // SAFETY: the descriptor is new and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let request = libc::tpacket_req {
            tp_block_size: BLOCK_BYTES,
            tp_block_nr: FRAMES / (BLOCK_BYTES / FRAME_BYTES),
            tp_frame_size: FRAME_BYTES,
            tp_frame_nr: FRAMES,
        };
        // SAFETY: each option takes an int, except the last, which takes this request.
        unsafe {
            let fd = socket.as_fd();
            set_option(
                fd,
                libc::SOL_PACKET,
                libc::PACKET_VERSION,
                &(libc::tpacket_versions::TPACKET_V2 as libc::c_int),
            )?;
            set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1_i32)?;
            set_option(fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1_i32)?;
            set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1_i32)?;
            set_option(fd, libc::SOL_PACKET, PACKET_TIMESTAMP, &SOF_TIMESTAMPING_SOFTWARE)?;
            set_option(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        }
        let ring = Ring::map(socket.as_fd())?;
        let address = link_address(interface)?;
        let length = libc::socklen_t::try_from(mem::size_of::<libc::sockaddr_ll>()).expect("an address is small");
        // SAFETY: pointer and length are those of an address of the family of the socket.
        check(unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) })?;
        Ok(Self { socket, ring, dropped: 0 })
    }

    /// Passes the next frame to `take`; returns false if there is none.
    pub(crate) fn receive(&mut self, take: impl FnOnce(ReceivedFrame<'_>)) -> bool {
        self.ring.next(take)
    }

    /// Returns the frames that the kernel dropped so far because the ring was full.
    ///
    /// # Errors
    /// None known.
    pub(crate) fn dropped(&mut self) -> io::Result<u64> {
        let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = libc::socklen_t::try_from(mem::size_of_val(&counts)).expect("counts are small");
        // SAFETY: the kernel writes at most `length` bytes to `counts`.
        check(unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut counts).cast(),
                &raw mut length,
            )
        })?;
        self.dropped += u64::from(counts.tp_drops);
        Ok(self.dropped)
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn link_address(interface: u32) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: all zeroes is a valid address: plain numbers.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = PROTOCOL;
    address.sll_ifindex = i32::try_from(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
    Ok(address)
}

/// The memory shared with the kernel. A frame whose status has the user bit is ours until we reset it.
#[derive(Debug)]
struct Ring {
    start: NonNull<u8>,
    next: u32,
}

// SAFETY: the memory belongs to the ring alone, and the kernel does not care which thread reads it.
unsafe impl Send for Ring {}

impl Ring {
    fn map(socket: BorrowedFd<'_>) -> io::Result<Self> {
        // SAFETY: a new mapping, of exactly the requested size of the ring.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                RING_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, next: 0 })
    }

    fn next(&mut self, take: impl FnOnce(ReceivedFrame<'_>)) -> bool {
        // SAFETY: the frame lies in the mapping, and starts with its header, whose first field is the status.
        let frame = unsafe { self.start.add((self.next * FRAME_BYTES) as usize) };
        // SAFETY: aligned, and written by the kernel and us as one word.
        let status = unsafe { AtomicU32::from_ptr(frame.as_ptr().cast()) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return false;
        }
        // SAFETY: the status means that the kernel has written header and frame, and does not touch them until it is
        // reset.
        let header = unsafe { frame.cast::<libc::tpacket2_hdr>().read() };
        let offset = u32::from(header.tp_mac).min(FRAME_BYTES);
        let length = header.tp_snaplen.min(FRAME_BYTES - offset);
        // SAFETY: within the frame, as just bounded.
        let bytes = unsafe { std::slice::from_raw_parts(frame.as_ptr().add(offset as usize), length as usize) };
        let stamp = Duration::new(header.tp_sec.into(), header.tp_nsec);
        take(ReceivedFrame { frame: bytes, stamp, is_whole: header.tp_len == length });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        true
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`; no slice of it outlives a call of `next`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), RING_BYTES) };
    }
}
