//! Small writes over a connection that a peer carries. Each is stamped when it is due and when it has arrived at the
//! far end or, if echoed, back at the near one. At the same time a file may be sent over a second connection.
//!
//! Both hosts have the same clock, so the stamps of both programs can be compared.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use rustix::net::sockopt::tcp_congestion;
use serde::{Deserialize, Serialize};

use super::carrier::Carrier;
use super::error::PeerError;
use super::own::{self, PeerMessage, TcpHear, TcpWrite};
use super::peer::TimedSpan;
use super::run::{TransferRun, Unfinished};
use super::tcp::{CHUNK, RECEIVED, dial, receive_share, send_share};
use crate::clock;
use crate::plan::Writes;

/// The first byte from the far end: the connection is open.
const READY: u8 = 1;
/// The period of the written bytes: a prime, so that writes of a common size begin with different bytes.
const PERIOD: u64 = 251;

/// The delays of the writes of a run, in milliseconds: from the due time of each to the arrival of its last byte, at
/// the near end if it was echoed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// The number of writes.
    pub count: u64,
    /// The median.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

impl Delays {
    /// Returns the delays between two lists of times in nanoseconds; `None` if they do not match.
    fn between(written: &[u64], arrived: &[u64]) -> Option<Self> {
        if written.len() != arrived.len() {
            return None;
        }
        let mut delays: Vec<u64> =
            written.iter().zip(arrived).map(|(from, to)| to.checked_sub(*from)).collect::<Option<_>>()?;
        delays.sort_unstable();
        let count = delays.len();
        // The least delay that this share of the writes did not exceed.
        let percentile = |percent: usize| delays.get((count * percent).div_ceil(100).checked_sub(1)?);
        let millis = |percent| percentile(percent).map(|nanos| *nanos as f64 / 1e6);
        Some(Self {
            count: count as u64,
            p50_ms: millis(50)?,
            p90_ms: millis(90)?,
            p99_ms: millis(99)?,
            max_ms: millis(100)?,
        })
    }
}

/// Returns the two ends of the clock.
pub(super) fn clock() -> TimedSpan {
    TimedSpan {
        starts: "a program is started that connects to the near end of the open path".to_owned(),
        ends: "the last write, or its echo, has arrived".to_owned(),
    }
}

/// Opens the path and writes; returns when the last write had arrived.
pub(super) fn play(
    run: &mut TransferRun<'_>,
    open: fn(&mut TransferRun<'_>, SocketAddrV4) -> Result<Carrier, Unfinished>,
    writes: &Writes,
) -> Result<Duration, Unfinished> {
    let mut hear = run.own("tcp-hear");
    hear.arg(format!("--listen={}", run.at_receiver(0))).arg(format!("--size={}", run.job.size));
    hear.args(writes.echo.then_some("--echo")).arg(run.stage.target());
    let mut far = run.start_read(run.to, hear)?;
    let port = own::port(run, &mut far)?;
    let mut carrier = open(run, run.at_receiver(port))?;
    let described = serde_json::to_string(writes).map_err(io::Error::from).map_err(PeerError::at("JSON"))?;
    let mut write = run.own("tcp-write");
    write.arg(format!("--to={}", carrier.entry)).arg(format!("--size={}", run.job.size));
    write.args(carrier.congestion.map(|name| format!("--congestion={name}")));
    write.arg(format!("--seed={}", run.job.seed)).arg(format!("--writes={described}")).arg(run.stage.source());
    run.start_clock();
    let mut near = run.start_read(run.from, write)?;
    let congestion = own::congestion(run, &mut near, &mut carrier.others(&mut far))?;
    run.congestion = carrier.congestion.map(|_| congestion);
    let written = own::stamps(run, &mut near, &mut carrier.others(&mut far))?;
    let arrived = if writes.echo {
        own::stamps(run, &mut near, &mut carrier.others(&mut far))?
    } else {
        own::stamps(run, &mut far, &mut carrier.others(&mut near))?
    };
    let delays = Delays::between(&written, &arrived);
    let unexpected_output = || {
        let line = format!("{} writes, {} arrivals", written.len(), arrived.len());
        PeerError::UnexpectedOutput { program: "the reader".to_owned(), line }
    };
    run.delays = Some(delays.ok_or_else(unexpected_output)?);
    Ok(Duration::from_nanos(arrived.last().copied().unwrap_or_default()))
}

/// `downpour-lab peer tcp-write`.
pub(super) fn write(args: &TcpWrite) -> io::Result<()> {
    let mut socket = dial(args.to, args.congestion.as_deref())?;
    socket.set_nodelay(true)?;
    PeerMessage::Congestion(tcp_congestion(&socket)?).print()?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    if answer != [READY] {
        return Err(io::Error::other(format!("the far end sent {} instead of {READY}", answer[0])));
    }
    let (stamp, stamps) = channel();
    if args.writes.echo {
        let (socket, size) = (socket.try_clone()?, args.size);
        thread::spawn(move || read_all(socket, size, &stamp));
    }
    let upload = match args.writes.beside {
        Some(bytes) => {
            let (socket, file) = (dial(args.to, args.congestion.as_deref())?, File::open(&args.file)?);
            Some(thread::spawn(move || send_share(socket, file, 0, bytes)))
        }
        None => None,
    };
    let begun = clock::now();
    let mut written = Vec::new();
    let (mut record, mut offset) = (Vec::new(), 0);
    for due in args.writes.times(args.seed) {
        thread::sleep((begun + due).saturating_sub(clock::now()));
        // Nothing is written after the end of the upload.
        if upload.as_ref().is_some_and(thread::JoinHandle::is_finished) {
            break;
        }
        record.clear();
        record.extend((offset..offset + args.size).map(byte));
        offset += args.size;
        // A program that waits for the path is late with the next write.
        written.push(own::nanos(begun + due));
        socket.write_all(&record)?;
    }
    if let Some(upload) = upload.filter(thread::JoinHandle::is_finished) {
        upload.join().expect("an upload does not panic")?;
    }
    let count = written.len();
    if !args.writes.echo {
        socket.shutdown(Shutdown::Write)?;
    }
    PeerMessage::Stamps(written).print()?;
    if args.writes.echo {
        // The connection stays open until all echoes have arrived: not every path can finish one direction.
        let echoed = stamps.iter().take(count).collect::<io::Result<Vec<u64>>>()?;
        PeerMessage::Stamps(echoed).print()?;
    }
    Ok(())
}

/// `downpour-lab peer tcp-hear`.
pub(super) fn hear(args: &TcpHear) -> io::Result<()> {
    let listener = TcpListener::bind(args.listen)?;
    let file = File::create_new(&args.file)?;
    PeerMessage::Listening(listener.local_addr()?.port()).print()?;
    let (mut socket, _) = listener.accept()?;
    socket.set_nodelay(true)?;
    socket.write_all(&[READY])?;
    thread::spawn(move || {
        let (socket, _) = listener.accept()?;
        // It ends with the writes at the latest.
        let (mut socket, _) = receive_share(socket, &file, u64::MAX)?;
        socket.write_all(&[RECEIVED])
    });
    if args.echo {
        return io::copy(&mut socket.try_clone()?, &mut socket).map(drop);
    }
    let (stamp, stamps) = channel();
    read_all(socket, args.size, &stamp);
    drop(stamp);
    PeerMessage::Stamps(stamps.into_iter().collect::<io::Result<_>>()?).print()
}

/// Reads to the end, and stamps each write when its last byte has arrived. Also ends when the receiver of stamps is
/// gone.
fn read_all(mut socket: TcpStream, size: u64, stamp: &Sender<io::Result<u64>>) {
    let mut chunk = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        let part = match socket.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => &chunk[..read],
            Err(error) => return drop(stamp.send(Err(error))),
        };
        let now = own::nanos(clock::now());
        for found in part {
            if *found != byte(offset) {
                let message = format!("byte {offset} is {found} instead of {}", byte(offset));
                return drop(stamp.send(Err(io::Error::other(message))));
            }
            offset += 1;
            if offset % size == 0 && stamp.send(Ok(now)).is_err() {
                return;
            }
        }
    }
}

/// Returns the byte written at an offset.
const fn byte(offset: u64) -> u8 {
    (offset % PERIOD) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_delays() {
        let written: Vec<u64> = (0..200).map(|index| index * 1_000_000).collect();
        // 1 to 200 ms, not in order.
        let arrived: Vec<u64> =
            written.iter().enumerate().map(|(at, from)| from + (200 - at as u64) * 1_000_000).collect();
        let delays = Delays::between(&written, &arrived).expect("matching lists");
        assert_eq!(delays, Delays { count: 200, p50_ms: 100.0, p90_ms: 180.0, p99_ms: 198.0, max_ms: 200.0 });
        let one = Delays::between(&[5], &[2_500_005]).expect("one");
        assert_eq!(one, Delays { count: 1, p50_ms: 2.5, p90_ms: 2.5, p99_ms: 2.5, max_ms: 2.5 });
    }

    #[test]
    fn delays_of_mismatched_lists_is_none() {
        assert_eq!(Delays::between(&[1, 2], &[3]), None, "one is missing");
        assert_eq!(Delays::between(&[4], &[3]), None, "it arrived before it was written");
        assert_eq!(Delays::between(&[], &[]), None);
    }

    /// Returns the number of stamps for these writes, and the error.
    fn stamped(pieces: &[&[u8]], size: u64) -> (usize, Option<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut near = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (far, _) = listener.accept().expect("a connection");
        for piece in pieces {
            near.write_all(piece).expect("room");
        }
        near.shutdown(Shutdown::Write).expect("an end");
        let (stamp, stamps) = channel();
        read_all(far, size, &stamp);
        drop(stamp);
        let (good, bad): (Vec<_>, Vec<_>) = stamps.into_iter().partition(Result::is_ok);
        (good.len(), bad.into_iter().find_map(Result::err).map(|error| error.to_string()))
    }

    #[test]
    fn stamp_needs_a_complete_and_equal_write() {
        let bytes: Vec<u8> = (0..1000).map(byte).collect();
        assert_eq!(stamped(&[&bytes[..150], &bytes[150..999]], 100), (9, None), "the tenth lacks a byte");
        assert_eq!(stamped(&[&bytes], 100), (10, None));
        let mut other = bytes;
        other[250] ^= 1;
        assert_eq!(stamped(&[&other], 100), (2, Some("byte 250 is 251 instead of 250".to_owned())));
    }
}
