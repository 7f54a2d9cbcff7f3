//! Drivers joined in one process. What they share is here; each part has its own file.

mod measure;
mod pipes;
#[cfg(target_os = "linux")]
mod unreachable;
mod workers;

use std::io::{self, pipe};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use transport::{AcceptOptions, ConnectOptions, Profile};

use crate::error::NetError;
use crate::{Accepted, Driver, Link, LinkEvent, PIPE_PEER, Storage};

const KEY: [u8; 32] = [7; 32];

/// Longer than anything here takes, shorter than anybody waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// Nothing is heard for so long only where a test waits for it in vain.
const DEAD_AFTER: Duration = Duration::from_secs(30);

/// Byte `offset` of every object.
fn byte(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// Sends a pattern, and keeps what comes.
#[derive(Default)]
struct Memory {
    received: Mutex<Vec<u8>>,
}

impl Storage for Memory {
    fn read(&self, _: u64, offset: u64, out: &mut [u8]) -> io::Result<()> {
        (offset..).zip(out).for_each(|(at, out)| *out = byte(at));
        Ok(())
    }

    fn write(&self, _: u64, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let offset = usize::try_from(offset).unwrap();
        let mut received = self.received.lock().unwrap();
        let length = received.len().max(offset + bytes.len());
        received.resize(length, 0);
        received[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// One end of a connection, as a test holds it.
struct End {
    link: Link,
    events: Receiver<LinkEvent>,
}

impl End {
    /// The first event of which `wanted` makes something.
    fn wait<T>(&self, mut wanted: impl FnMut(LinkEvent) -> Option<T>) -> T {
        loop {
            let event = self.events.recv_timeout(PATIENCE).expect("the event comes");
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    }
}

fn sink(sender: Sender<LinkEvent>) -> super::EventSink {
    // A test that has seen enough has no use for more.
    Box::new(move |event| sender.send(event).unwrap_or_default())
}

fn connect(driver: &Driver, storage: Arc<dyn Storage>) -> End {
    connect_to(driver, PIPE_PEER, storage)
}

fn connect_to(driver: &Driver, remote: SocketAddr, storage: Arc<dyn Storage>) -> End {
    let (sender, events) = channel();
    let options = ConnectOptions {
        profile: Profile::auto(),
        application: Vec::new(),
        remotes: vec![remote],
        handshake_timeout: PATIENCE,
        qlog: false,
    };
    let link = driver.connect(KEY, options, Accepted { events: sink(sender), storage });
    End { link, events }
}

/// Listens; whoever comes is handed out.
fn listen(driver: &Driver, storage: Arc<dyn Storage>) -> Receiver<End> {
    let (sender, ends) = channel();
    let options = AcceptOptions { profile: Profile::auto(), application: Vec::new(), qlog: false };
    let acceptor = Box::new(move |link| {
        let (events_sender, events) = channel();
        sender.send(End { link, events }).unwrap_or_default();
        Accepted { events: sink(events_sender), storage: Arc::clone(&storage) }
    });
    driver.listen(KEY, SystemTime::now() + Duration::from_secs(600), options, acceptor);
    ends
}

/// What a driver is started over.
type Way = (OwnedFd, OwnedFd);

/// Both ends of a way of two pipes.
fn pipes() -> (Way, Way) {
    let ((read_a, write_b), (read_b, write_a)) = (pipe().unwrap(), pipe().unwrap());
    ((read_a.into(), write_a.into()), (read_b.into(), write_b.into()))
}

/// Both ends of a way of one socket pair.
fn sockets() -> (Way, Way) {
    let (a, b) = UnixStream::pair().unwrap();
    ((a.try_clone().unwrap().into(), a.into()), (b.try_clone().unwrap().into(), b.into()))
}

fn start(way: Way) -> Driver {
    Driver::start_over(way.0, way.1, DEAD_AFTER, ()).unwrap()
}

/// Sends one object of `length` bytes and waits until the receiver has it.
fn transfer(sending: &End, receiving: &End, length: u64) {
    sending.wait(|event| matches!(event, LinkEvent::Connected { .. }).then_some(()));
    sending.link.send_object(1, length);
    let flow = receiving.wait(|event| if let LinkEvent::Announced { flow, .. } = event { Some(flow) } else { None });
    receiving.link.accept_flow(flow);
    receiving.wait(|event| matches!(event, LinkEvent::Received { tag: 1 }).then_some(()));
}

fn pattern(length: u64) -> Vec<u8> {
    (0..length).map(byte).collect()
}
