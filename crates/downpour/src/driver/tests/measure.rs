//! What the carriers carry on this machine: printed, not asserted, and only when asked for.

use std::sync::Arc;
use std::time::Instant;

use super::pipes::through_cats;
use super::*;

/// Reads and writes nothing at all.
struct Nothing;

impl Storage for Nothing {
    fn read(&self, _: u64, _: u64, _: &mut [u8]) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, _: u64, _: u64, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

fn measure(name: &str, connecting: &Driver, listening: &Driver, remote: SocketAddr) {
    const LENGTH: u64 = 1 << 30;
    let arrivals = listen(listening, Arc::new(Nothing));
    let sending = connect_to(connecting, remote, Arc::new(Nothing));
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    let started = Instant::now();
    transfer(&sending, &receiving, LENGTH);
    let seconds = started.elapsed().as_secs_f64();
    sending.link.ask_stats();
    let stats = sending.wait(|event| if let LinkEvent::Stats(stats) = event { Some(stats.connection) } else { None });
    println!(
        "{name:>12}: {:.2} Gbit/s; rtt {:?} (least {:?}), window {} kB, lost {}, sent again {}",
        LENGTH as f64 * 8e-9 / seconds,
        stats.rtt.unwrap_or_default(),
        stats.min_rtt.unwrap_or_default(),
        stats.window / 1000,
        stats.packets_lost,
        stats.resent_symbols,
    );
}

#[test]
#[ignore = "a measurement: run with --ignored --nocapture, in a release build"]
fn throughput_of_each_carrier() {
    let udp = || Driver::start(&Some(SocketAddr::from(([127, 0, 0, 1], 0))).into(), DEAD_AFTER, ()).unwrap();
    let (connecting, listening) = (udp(), udp());
    measure("udp", &connecting, &listening, listening.local_address());
    let (here, there, _cats) = through_cats();
    for (name, (here, there)) in [("pipes", pipes()), ("socket pair", sockets()), ("two cats", (here, there))] {
        measure(name, &start(here), &start(there), PIPE_PEER);
    }
}
