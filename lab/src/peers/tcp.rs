//! The kernel's TCP: a file over one connection or several, each with a share of it.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};
use rustix::net::{AddressFamily, SocketType, connect, socket};

use super::carrier::Carrier;
use super::own::{self, PeerMessage, TcpReceive, TcpSend};
use super::peer::{Need, Peer, PeerKind};
use super::process::Process;
use super::run::{TransferRun, Unfinished};
use crate::sys::grow_only;

/// The kernel's TCP, unencrypted.
const TCP: Peer = Peer {
    name: "",
    needs: &[],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: ["the sender is started", "the receiver's own stamp when the last byte is in its file"],
    play: PeerKind::Connections(|_, target| Ok(Carrier::direct(target, "reno"))),
};

/// The same over eight connections.
const TCP8: Peer = Peer { play: PeerKind::File(|run| transfer(run, "reno", 8)), ..TCP };

pub(super) const PEERS: &[Peer] = &[
    Peer {
        name: "tcp-cubic",
        needs: &[Need::Congestion("cubic")],
        play: PeerKind::Connections(|_, target| Ok(Carrier::direct(target, "cubic"))),
        ..TCP
    },
    Peer { name: "tcp-reno", needs: &[Need::Congestion("reno")], ..TCP },
    Peer {
        name: "tcp-cubic-ecn",
        needs: &[Need::Congestion("cubic")],
        ecn: true,
        play: PeerKind::Connections(|_, target| Ok(Carrier::direct(target, "cubic"))),
        ..TCP
    },
    Peer { name: "tcp-reno-ecn", needs: &[Need::Congestion("reno")], ecn: true, ..TCP },
    Peer {
        name: "tcp-bbr",
        needs: &[Need::Congestion("bbr")],
        play: PeerKind::Connections(|_, target| Ok(Carrier::direct(target, "bbr"))),
        ..TCP
    },
    Peer {
        name: "tcp-grow-only",
        needs: &[Need::OwnCongestion],
        play: PeerKind::Connections(|_, target| Ok(Carrier::direct(target, grow_only::NAME))),
        ..TCP
    },
    Peer {
        name: "tcp8-cubic",
        needs: &[Need::Congestion("cubic")],
        play: PeerKind::File(|run| transfer(run, "cubic", 8)),
        ..TCP8
    },
    Peer { name: "tcp8-reno", needs: &[Need::Congestion("reno")], ..TCP8 },
    Peer {
        name: "tcp8-bbr",
        needs: &[Need::Congestion("bbr")],
        play: PeerKind::File(|run| transfer(run, "bbr", 8)),
        ..TCP8
    },
];

/// Bytes that a receiver reads at a time.
pub(super) const CHUNK: usize = 256 << 10;
/// Sent by the receiver on every connection when it has the complete file.
pub(super) const RECEIVED: u8 = 1;

fn transfer(run: &mut TransferRun<'_>, congestion: &str, streams: u64) -> Result<Duration, Unfinished> {
    let (mut receiver, port) = start_receiver(run, streams)?;
    run.start_clock();
    let mut sender = start_sender(run, run.at_receiver(port), Some(congestion), streams)?;
    run.congestion = Some(own::congestion(run, &mut sender, &mut [&mut receiver])?);
    own::complete(run, &mut receiver, &mut [&mut sender])
}

/// Starts a receiver, and returns it with the port on which it listens.
pub(super) fn start_receiver(run: &mut TransferRun<'_>, streams: u64) -> Result<(Process, u16), Unfinished> {
    let mut receive = run.own("tcp-receive");
    receive.arg(format!("--listen={}", run.at_receiver(0)));
    receive.arg(format!("--streams={streams}")).arg(format!("--size={}", run.job.size)).arg(run.stage.target());
    let mut receiver = run.start_read(run.to, receive)?;
    let port = own::port(run, &mut receiver)?;
    Ok((receiver, port))
}

/// Starts a sender to a receiver, or to a tunnel to it.
pub(super) fn start_sender(
    run: &mut TransferRun<'_>,
    to: SocketAddrV4,
    congestion: Option<&str>,
    streams: u64,
) -> Result<Process, Unfinished> {
    let mut send = run.own("tcp-send");
    send.arg(format!("--to={to}")).arg(format!("--streams={streams}"));
    send.args(congestion.map(|name| format!("--congestion={name}"))).arg(run.stage.source());
    run.start_read(run.from, send)
}

/// `downpour-lab peer tcp-send`.
pub(super) fn send(args: &TcpSend) -> io::Result<()> {
    let size = args.file.metadata()?.len();
    let streams = args.streams.max(1);
    let sockets: Vec<TcpStream> =
        (0..streams).map(|_| dial(args.to, args.congestion.as_deref())).collect::<io::Result<_>>()?;
    PeerMessage::Congestion(sockets.first().map(tcp_congestion).transpose()?.unwrap_or_default()).print()?;
    let end = |stream: u64| size / streams * stream + (size % streams).min(stream);
    let shares: Vec<_> = sockets
        .into_iter()
        .zip(0..)
        .map(|(socket, stream)| {
            let mut file = File::open(&args.file)?;
            file.seek(SeekFrom::Start(end(stream)))?;
            let (offset, length) = (end(stream), end(stream + 1) - end(stream));
            Ok(thread::spawn(move || send_share(socket, file, offset, length)))
        })
        .collect::<io::Result<_>>()?;
    join(shares).map(drop)
}

/// Connects with the requested congestion control, as verified with the kernel once connected.
pub(super) fn dial(to: SocketAddrV4, congestion: Option<&str>) -> io::Result<TcpStream> {
    UnconnectedSocket::new(congestion)?.connect(to)
}

/// A socket in the network of the thread that created it, which any thread may connect.
pub(crate) struct UnconnectedSocket {
    socket: OwnedFd,
    congestion: Option<String>,
}

impl UnconnectedSocket {
    /// Creates a socket with the requested congestion control.
    ///
    /// # Errors
    /// Those of the system, for example no such congestion control.
    pub(crate) fn new(congestion: Option<&str>) -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        if let Some(name) = congestion {
            let refused = |error: &dyn Display| io::Error::other(format!("TCP with {name}: {error}"));
            // The socket keeps the chosen one.
            let held = (name == grow_only::NAME).then(grow_only::load).transpose().map_err(|error| refused(&error))?;
            set_tcp_congestion(&socket, name).map_err(|error| refused(&error))?;
            drop(held);
        }
        Ok(Self { socket, congestion: congestion.map(str::to_owned) })
    }

    /// Connects it, and verifies the congestion control with the kernel.
    ///
    /// # Errors
    /// Those of the system, and another congestion control than the requested one.
    pub(crate) fn connect(self, to: SocketAddrV4) -> io::Result<TcpStream> {
        let Self { socket, congestion } = self;
        connect(&socket, &to).map_err(|error| io::Error::other(format!("{to}: {error}")))?;
        let used = tcp_congestion(&socket)?;
        match congestion {
            // The route's setting takes precedence over the socket's.
            Some(wanted) if wanted != used => Err(io::Error::other(format!(
                "TCP uses {used} instead of {wanted}: remove `congctl {used}` from the route"
            ))),
            _ => Ok(socket.into()),
        }
    }
}

/// Sends a share: its offset and its length, as 8 bytes each in network byte order, and its bytes.
pub(super) fn send_share(mut socket: TcpStream, file: File, offset: u64, length: u64) -> io::Result<()> {
    socket.write_all(&[offset.to_be_bytes(), length.to_be_bytes()].concat())?;
    // In the kernel, by sendfile(2).
    let sent = io::copy(&mut file.take(length), &mut socket)?;
    if sent < length {
        return Err(io::Error::other("the file shrank"));
    }
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    if answer == [RECEIVED] {
        Ok(())
    } else {
        Err(io::Error::other(format!("unexpected answer of the receiver: {}", answer[0])))
    }
}

/// `downpour-lab peer tcp-receive`.
pub(super) fn receive(args: &TcpReceive) -> io::Result<()> {
    let listener = TcpListener::bind(args.listen)?;
    let file = File::create_new(&args.file)?;
    PeerMessage::Listening(listener.local_addr()?.port()).print()?;
    let shares: Vec<_> = (0..args.streams.max(1))
        .map(|_| {
            let (socket, _) = listener.accept()?;
            let (file, size) = (file.try_clone()?, args.size);
            Ok(thread::spawn(move || receive_share(socket, &file, size)))
        })
        .collect::<io::Result<_>>()?;
    let shares = join(shares)?;
    let bytes: u64 = shares.iter().map(|(_, length)| length).sum();
    if bytes != args.size {
        return Err(io::Error::other(format!("the shares have {bytes} bytes, but the file has {}", args.size)));
    }
    PeerMessage::complete_now().print()?;
    for (mut socket, _) in shares {
        socket.write_all(&[RECEIVED])?;
        socket.shutdown(Shutdown::Write)?;
    }
    Ok(())
}

/// Returns the connection and how many bytes arrived on it.
pub(super) fn receive_share(mut socket: TcpStream, file: &File, size: u64) -> io::Result<(TcpStream, u64)> {
    let mut number = || {
        let mut bytes = [0; 8];
        socket.read_exact(&mut bytes).map(|()| u64::from_be_bytes(bytes))
    };
    let (mut offset, length) = (number()?, number()?);
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(io::Error::other(format!("a share of {length} bytes at {offset} exceeds the file of {size}")));
    }
    let end = offset + length;
    let mut chunk = vec![0; CHUNK];
    while offset < end {
        let most = usize::try_from(end - offset).unwrap_or(CHUNK).min(CHUNK);
        let part = match socket.read(&mut chunk[..most])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => &chunk[..read],
        };
        file.write_all_at(part, offset)?;
        offset += part.len() as u64;
    }
    Ok((socket, length))
}

fn join<T>(threads: Vec<thread::JoinHandle<io::Result<T>>>) -> io::Result<Vec<T>> {
    let join = |thread: thread::JoinHandle<io::Result<T>>| thread.join().expect("a share does not panic");
    threads.into_iter().map(join).collect()
}
