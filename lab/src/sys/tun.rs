//! TUN devices that deliver packets as for a network card with offloads: up to 64 KiB with a header that describes
//! their split (`linux/virtio_net.h`), and without computed checksums.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use super::call::{check, interface_request};

const NODE: &str = "/dev/net/tun";
/// Bytes of the header before each packet.
const HEADER_BYTES: usize = 10;
const SEGMENTATION: libc::c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
/// For UDP; since Linux 6.2.
const UDP_SEGMENTATION: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// The program's end of a TUN device. The device is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Tun {
    file: File,
}

/// An error in creating a TUN device.
#[derive(Debug, thiserror::Error)]
pub enum TunError {
    /// The device node exists, but this user may not open it.
    #[error("permission denied on {NODE}: omit --fast, or allow all users: sudo chmod 666 {NODE}")]
    Closed,
    /// There is no device node, or no driver for it.
    #[error("{NODE} does not exist ({0}): omit --fast, or load the driver: sudo modprobe tun")]
    Absent(io::Error),
    /// The kernel cannot create such a device.
    #[error("cannot create a TUN device with offloads: {0}")]
    Device(#[from] io::Error),
}

impl TunError {
    fn opening(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Self::Closed,
            Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Self::Absent(error),
            _ => Self::Device(error),
        }
    }
}

impl Tun {
    /// Creates the device `name` in the network namespace of the calling thread. If the kernel cannot deliver UDP in
    /// large frames, it delivers it in small ones.
    ///
    /// # Errors
    /// A device node that this user may not open, or a kernel without TUN devices.
    pub(crate) fn create(name: &str) -> Result<Self, TunError> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(NODE);
        let file = file.map_err(TunError::opening)?;
        let mut request = interface_request(name)?;
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        let header_bytes = HEADER_BYTES as libc::c_int;
        // SAFETY: the requests point to an interface request and an int, as these commands want, that outlive the
        // calls.
        unsafe {
            check(libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request))?;
            check(libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const header_bytes))?;
        }
        // SAFETY: the argument is a number.
        let offload =
            |kinds| check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, libc::c_ulong::from(kinds)) });
        offload(SEGMENTATION | UDP_SEGMENTATION).or_else(|_| offload(SEGMENTATION))?;
        Ok(Self { file })
    }

    /// Reads the next packet that the host has sent: its header and the bytes written to `packet`; `None` if none
    /// waits.
    ///
    /// # Errors
    /// A removed device, or one that is down.
    pub(crate) fn read(&self, header: &mut [u8; HEADER_BYTES], packet: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::readv(&self.file, &mut [IoSliceMut::new(header), IoSliceMut::new(packet)]) {
            Ok(length) => Ok(Some(length.saturating_sub(HEADER_BYTES))),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Delivers a packet to the host: its header first, in any number of parts.
    ///
    /// # Errors
    /// A packet that the kernel does not accept, or a device that is down.
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        rustix::io::writev(&self.file, parts)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
