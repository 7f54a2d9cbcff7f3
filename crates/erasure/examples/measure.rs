//! Prints what the codes do on this machine: median MB/s of source data, one thread, symbols of 1408 bytes.
//!
//! `cargo run --release -p erasure --example measure [crossover]`
//!
//! `encode` counts from a full block to 10 % repair symbols, with the plan of its `k` cached; `decode` from the last symbol received
//! to the complete block, pushing repair symbols included. `crossover` sweeps the number of lost symbols for the two RaptorQ solvers.

use std::time::{Duration, Instant};

use erasure::measuring::{Solver, raptorq_decoder};
use erasure::{Block, BlockCode, Decoder, Progress};

const SYMBOL_SIZE: usize = 1408;

/// Each figure is the median of as many runs as fit into this, 5 at least.
const PATIENCE: Duration = Duration::from_millis(600);

fn main() {
    if std::env::args().nth(1).as_deref() == Some("crossover") {
        crossover();
    } else {
        table();
    }
}

fn table() {
    println!(
        "{:<14}{:>8}{:>14}{:>14}{:>14}{:>16}",
        "code", "k", "encode 10 %", "decode 1 %", "decode 10 %", "decode 100 %"
    );
    for k in [100, 1000, 10_000] {
        let source = source(k);
        for (name, code, solver) in [
            ("reed-solomon", BlockCode::ReedSolomon, None),
            ("raptorq", BlockCode::RaptorQ, None),
            ("- syndrome", BlockCode::RaptorQ, Some(Solver::Syndrome)),
            ("- inactivation", BlockCode::RaptorQ, Some(Solver::Inactivation)),
        ] {
            let encoded = if solver.is_none() { format!("{:.0}", encode(code, &source)) } else { String::new() };
            let decoded = |lost: u32| match (lost, solver) {
                // An elimination over thousands of symbols is not what it is for.
                (lost, Some(Solver::Syndrome)) if lost > 1000 => String::new(),
                (lost, solver) => format!("{:.0}", decode(code, solver, &source, lost)),
            };
            println!("{name:<14}{k:>8}{encoded:>14}{:>14}{:>14}{:>16}", decoded(k / 100), decoded(k / 10), decoded(k));
        }
    }
}

fn crossover() {
    println!("{:>8}{:>8}{:>12}{:>14}", "k", "lost", "syndrome", "inactivation");
    for k in [20_u32, 50, 100, 300, 1000, 3000, 10_000] {
        let source = source(k);
        for lost in [1, 5, 10, 20, 40, 60, 100, 150, 200, 300, 400, 600].into_iter().filter(|&lost| lost <= k) {
            let [syndrome, inactivation] = [Solver::Syndrome, Solver::Inactivation]
                .map(|solver| decode(BlockCode::RaptorQ, Some(solver), &source, lost));
            println!("{k:>8}{lost:>8}{syndrome:>12.0}{inactivation:>14.0}");
        }
    }
}

/// A full block of octets without a pattern.
fn source(k: u32) -> Block {
    let octets = (0..k as usize * SYMBOL_SIZE).map(|i| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8);
    Block::full(k, SYMBOL_SIZE, octets.collect())
}

fn encode(code: BlockCode, source: &Block) -> f64 {
    let mut symbol = vec![0; SYMBOL_SIZE];
    median(source, || {
        let mut encoder = code.encoder(source.k(), SYMBOL_SIZE).expect("within the limits");
        stopwatch(|| {
            for esi in source.k()..source.k() + source.k() / 10 {
                encoder.repair(source, esi, &mut symbol);
            }
        })
    })
}

fn decode(code: BlockCode, solver: Option<Solver>, source: &Block, lost: u32) -> f64 {
    let k = source.k();
    let repairs: Vec<Vec<u8>> = {
        let mut encoder = code.encoder(k, SYMBOL_SIZE).expect("within the limits");
        (k..k + lost + 3)
            .map(|esi| {
                let mut symbol = vec![0; SYMBOL_SIZE];
                encoder.repair(source, esi, &mut symbol);
                symbol
            })
            .collect()
    };
    let mut first = 0;
    median(source, || {
        // Another pattern of loss every time.
        first += 1;
        let mut block = Block::empty(k, SYMBOL_SIZE, vec![0; k as usize * SYMBOL_SIZE]);
        for index in (lost..k).map(|index| (index * spread(k) + first) % k) {
            block.insert(index, source.symbol(index).expect("a full block"));
        }
        let mut decoder: Box<dyn Decoder> = match solver {
            None => code.decoder(k, SYMBOL_SIZE),
            Some(solver) => raptorq_decoder(k, SYMBOL_SIZE, solver),
        }
        .expect("within the limits");
        let time = stopwatch(|| {
            let mut esi = k;
            while let Progress::Need(more) = decoder.recover(&mut block) {
                for _ in 0..more {
                    decoder.push(&block, esi, &repairs[(esi - k) as usize]);
                    esi += 1;
                }
            }
        });
        assert!(block == *source, "decoded to other bytes");
        time
    })
}

/// A step without a common divisor with `k`, so that losses are spread over the block.
fn spread(k: u32) -> u32 {
    let coprime = |a: u32, b: u32| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    (k * 5 / 8..).find(|&step| coprime(step, k)).expect("a step of 1 modulo k fits")
}

fn median(source: &Block, mut run: impl FnMut() -> Duration) -> f64 {
    // The first run computes plans and tables.
    run();
    let (mut times, mut total) = (Vec::new(), Duration::ZERO);
    while times.len() < 5 || (total < PATIENCE && times.len() < 500) {
        let time = run();
        total += time;
        times.push(time);
    }
    times.sort_unstable();
    source.bytes().len() as f64 / 1e6 / times[times.len() / 2].as_secs_f64()
}

#[allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn stopwatch(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}
