//! The kernel's TCP between two hosts.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use netsim::Duplex;
use sim::WatchedState;

use super::{Begin, LinkHandle, TransferCounts, wait_for};
use crate::peers::UnconnectedSocket;
use crate::sys::tcp_info;
use crate::testbed;
use crate::web::demonstration::transfer::{Kind, Transfer, TransferProgress};
use crate::web::lock;

const CONGESTION: &str = "cubic";
/// Bytes that the receiver reads at a time.
const CHUNK: usize = 64 << 10;

/// A transfer by TCP, for the lifetime of the process.
pub(super) struct Tcp {
    shared: Arc<Shared>,
    link: LinkHandle,
}

/// The shared state of the threads of a transfer.
#[derive(Default)]
struct Shared {
    /// The sender's socket, once it is connected.
    sender: OnceLock<TcpStream>,
    received: Mutex<ReceivedBytes>,
}

#[derive(Default)]
struct ReceivedBytes {
    /// Arrived bytes that are not shown yet.
    fresh: Vec<u8>,
    /// The number of arrived bytes.
    count: u64,
    /// The time from the start to the last byte.
    completed: Option<Duration>,
    /// Whether an end has failed.
    gave_up: bool,
}

impl Tcp {
    /// Starts a transfer of `picture`.
    ///
    /// # Errors
    /// A host without sockets, or a system without threads.
    pub(super) fn start(
        link: LinkHandle,
        [sender, receiver]: &[testbed::Host; 2],
        picture: &Arc<[u8]>,
        begin: &Begin,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot send by TCP over a link: {error}");
        let address = receiver.address();
        let listener = receiver.within(move || TcpListener::bind((address, 0))).map_err(failed)?;
        let socket = sender.within(|| UnconnectedSocket::new(Some(CONGESTION))).map_err(failed)?;
        let to = SocketAddrV4::new(address, listener.local_addr().map_err(failed)?.port());
        let shared = Arc::<Shared>::default();
        let (sends, receives) = (Arc::clone(&shared), Arc::clone(&shared));
        let (bytes, length) = (Arc::clone(picture), picture.len() as u64);
        let (sent, received) = (Arc::clone(begin), Arc::clone(begin));
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work).map(drop).map_err(failed)
        };
        spawn("tcp-receive", Box::new(move || receives.receive(&listener, length, &received)))?;
        spawn("tcp-send", Box::new(move || sends.send(socket, to, &bytes, &sent)))?;
        Ok(Self { shared, link })
    }
}

impl Shared {
    fn send(&self, socket: UnconnectedSocket, to: SocketAddrV4, bytes: &[u8], begin: &Begin) {
        wait_for(begin);
        let sent = socket.connect(to).and_then(|mut socket| {
            let _ = self.sender.set(socket.try_clone()?);
            socket.write_all(bytes)?;
            socket.shutdown(Shutdown::Write)
        });
        if sent.is_err() {
            lock(&self.received).gave_up = true;
        }
    }

    fn receive(&self, listener: &TcpListener, length: u64, begin: &Begin) {
        let begin = wait_for(begin);
        let received = listener.accept().and_then(|(mut socket, _)| {
            let mut chunk = vec![0; CHUNK];
            loop {
                let count = socket.read(&mut chunk)?;
                let at = begin.elapsed();
                let mut received = lock(&self.received);
                received.fresh.extend_from_slice(&chunk[..count]);
                received.count += count as u64;
                if received.count == length {
                    received.completed = Some(at);
                    return Ok(());
                }
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        });
        if received.is_err() {
            lock(&self.received).gave_up = true;
        }
    }
}

impl Transfer for Tcp {
    fn run_until(&mut self, _: Duration) -> Result<(), String> {
        Ok(())
    }

    fn set_link(&mut self, link: &Duplex) -> Result<(), String> {
        self.link.set_link(link)
    }

    fn take_progress(&mut self) -> TransferProgress {
        let info = self.shared.sender.get().and_then(|socket| tcp_info::of(socket).ok()).unwrap_or_default();
        let TransferCounts { lost, arrived } = self.link.counted();
        let mut received = lock(&self.shared.received);
        let fresh = std::mem::take(&mut received.fresh);
        let offset = received.count - fresh.len() as u64;
        let ReceivedBytes { completed, gave_up, .. } = *received;
        TransferProgress {
            pieces: if fresh.is_empty() { Vec::new() } else { vec![(offset, Kind::Unknown, fresh)] },
            open: Vec::new(),
            state: WatchedState {
                completed,
                gave_up: gave_up && completed.is_none(),
                arrived,
                lost,
                in_flight: info.in_flight,
                resent: info.resent,
                repair: 0,
            },
            is_over: completed.is_some() || gave_up,
        }
    }
}
