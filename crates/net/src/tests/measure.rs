//! Throughput of the carriers on this machine: printed, not asserted, and only on request.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Instant;

use super::pipes::through_cats;
use super::*;

const LONG: u64 = 1 << 30;

/// A source and sink that does nothing.
struct Nothing;

impl Source for Nothing {
    fn read(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for Nothing {
    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

fn measure(name: &str, length: u64, connecting: &Endpoint, listening: &Endpoint, remote: SocketAddr) {
    let arrivals = listen(listening);
    let sending = connect_to(connecting, remote);
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    let started = Instant::now();
    transfer(&sending, &receiving, length, Arc::new(Nothing), Arc::new(Nothing));
    let seconds = started.elapsed().as_secs_f64();
    let stats = sending.stats().connection;
    println!(
        "{name:>12}: {:.2} Gbit/s; rtt {:?} (least {:?}), window {} kB, lost {}, sent again {}",
        length as f64 * 8e-9 / seconds,
        stats.path.rtt.unwrap_or_default(),
        stats.path.min_rtt.unwrap_or_default(),
        stats.congestion.window / 1000,
        stats.packets.lost,
        stats.symbols.resent,
    );
}

/// Moves bytes at `rate` bits per second, holding 2 MB: like a pipe through ssh, whose channel holds as much.
fn slow(from: OwnedFd, to: OwnedFd, rate: f64) {
    let (mut from, mut to) = (File::from(from), File::from(to));
    let (pieces, held) = sync_channel::<Vec<u8>>(128);
    thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if pieces.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        let (started, mut moved) = (Instant::now(), 0);
        for piece in held {
            moved += piece.len();
            let due = started + Duration::from_secs_f64(moved as f64 * 8.0 / rate);
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                return;
            }
        }
    });
}

#[test]
#[ignore = "a measurement: run with --ignored --nocapture, in a release build"]
fn throughput_of_each_carrier() {
    let udp = || {
        Endpoint::builder()
            .options(EndpointOptions::new(DEAD_AFTER))
            .bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .unwrap()
    };
    let (connecting, listening) = (udp(), udp());
    measure("udp", LONG, &connecting, &listening, listening.local_address());
    let (local, remote, _cats) = through_cats();
    for (name, (local, remote)) in [("pipes", pipes()), ("socket pair", sockets()), ("two cats", (local, remote))] {
        measure(name, LONG, &start(local), &start(remote), PIPE_PEER);
    }
    let ((local, (out, back)), ((end_out, end_back), remote)) = (pipes(), pipes());
    slow(out, end_back, 1e8);
    slow(end_out, back, 1e8);
    measure("100 Mbit/s", 1 << 26, &start(local), &start(remote), PIPE_PEER);
}
