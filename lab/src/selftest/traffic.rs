//! The lab's own traffic: numbered datagrams from one host to another, at a steady rate.
//!
//! The two ends have real-time priority if that is allowed: the link should be measured, not the wait for a processor.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::sys::scheduling::make_real_time;
use crate::testbed::Host;

/// IPv4 and UDP header.
pub(super) const HEADERS: usize = 28;
/// The requested size; the kernel grants an ordinary user at most `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 16 << 20;
/// After this time without a datagram, a receiver has received all.
const SILENCE: Duration = Duration::from_millis(500);
/// The interval at which due datagrams are sent.
const TICK: Duration = Duration::from_micros(200);

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ReceivedDatagram {
    pub(super) number: u32,
    pub(super) at: Instant,
}

/// Opens a socket on a host.
pub(super) fn open(host: &Host) -> io::Result<UdpSocket> {
    let address = SocketAddr::from((host.address(), 0));
    host.within(move || {
        let socket = UdpSocket::bind(address)?;
        if set_socket_recv_buffer_size_force(&socket, RECEIVE_BUFFER).is_err() {
            set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)?;
        }
        Ok(socket)
    })
}

/// Sends datagrams of `ip_bytes`, numbered from zero, one each `interval`; returns those that arrived, in order, and
/// how long sending took.
pub(super) fn send_numbered(
    from: &UdpSocket,
    to: &UdpSocket,
    count: u32,
    ip_bytes: usize,
    interval: Duration,
) -> io::Result<(Vec<ReceivedDatagram>, Duration)> {
    let address = to.local_addr()?;
    thread::scope(|scope| {
        let listener = scope.spawn(|| listen(to, ip_bytes));
        let sender = scope.spawn(|| send_steadily(from, address, count, ip_bytes, interval));
        let sent_in = sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let heard = listener.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok((heard, sent_in))
    })
}

fn send_steadily(
    socket: &UdpSocket,
    to: SocketAddr,
    count: u32,
    ip_bytes: usize,
    interval: Duration,
) -> io::Result<Duration> {
    let _ = make_real_time();
    let start = Instant::now();
    let mut payload = vec![0; ip_bytes - HEADERS];
    for number in 0..count {
        while start.elapsed() < interval * number {
            thread::sleep(TICK.min((interval * number).saturating_sub(start.elapsed())));
        }
        payload[..4].copy_from_slice(&number.to_be_bytes());
        socket.send_to(&payload, to)?;
    }
    Ok(start.elapsed())
}

/// Receives datagrams until no more arrive.
fn listen(socket: &UdpSocket, ip_bytes: usize) -> io::Result<Vec<ReceivedDatagram>> {
    let _ = make_real_time();
    let mut buffer = vec![0; ip_bytes];
    let mut heard = Vec::new();
    // The first may take a while.
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    loop {
        match socket.recv(&mut buffer) {
            Ok(_) => {
                let number = u32::from_be_bytes([buffer[0], buffer[1], buffer[2], buffer[3]]);
                heard.push(ReceivedDatagram { number, at: Instant::now() });
                if heard.len() == 1 {
                    socket.set_read_timeout(Some(SILENCE))?;
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Ok(heard);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sends `count` datagrams, one each `interval`, to a host that sends them back; returns the round-trip time of each
/// with an echo.
pub(super) fn echo(from: &UdpSocket, to: &UdpSocket, count: u32, interval: Duration) -> io::Result<Vec<Duration>> {
    let address = to.local_addr()?;
    thread::scope(|scope| {
        let echoing = scope.spawn(|| -> io::Result<()> {
            let _ = make_real_time();
            to.set_read_timeout(Some(SILENCE + interval))?;
            let mut buffer = [0; 64];
            while let Ok((length, sender)) = to.recv_from(&mut buffer) {
                to.send_to(&buffer[..length], sender)?;
            }
            Ok(())
        });
        let asking = scope.spawn(|| ask(from, address, count, interval));
        let times = asking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        echoing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        Ok(times)
    })
}

fn ask(socket: &UdpSocket, to: SocketAddr, count: u32, interval: Duration) -> io::Result<Vec<Duration>> {
    let _ = make_real_time();
    socket.set_read_timeout(Some(SILENCE))?;
    let mut times = Vec::new();
    for number in 0..count {
        let sent = Instant::now();
        socket.send_to(&number.to_be_bytes(), to)?;
        let mut buffer = [0; 64];
        // One without an echo is missing in the result.
        if socket.recv(&mut buffer).is_ok() {
            times.push(sent.elapsed());
        }
        thread::sleep(interval);
    }
    Ok(times)
}
