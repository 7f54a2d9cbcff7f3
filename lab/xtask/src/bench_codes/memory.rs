//! Peak memory of both ends, excluding the block itself.

use erasure::{BlockCode, Progress, bench_support};

use super::Bench;
use super::crate_raptorq::Crate;
use super::heap;
use super::ours::{ReceivedBlock, SYMBOL_SIZE, Sender, block};
use super::report::Cell;
use xtask::failure::Failure;

/// Block sizes, and the allowed memory of each end in blocks.
const SIZES: [(u32, f64); 3] = [(100, 1.6), (1000, 1.3), (10_000, 1.3)];

/// Measures the peak of allocated memory, in blocks.
pub(super) fn run(bench: &mut Bench) -> Result<(), Failure> {
    let columns = ["RaptorQ", "k", "ours, blocks", "crate, blocks", "target", "met"];
    bench.report.table(
        "memory",
        "Peak memory beside the block (plan included, and the repair symbols that a decoder is given)",
        &columns,
    );
    for (k, limit) in SIZES {
        let source = block(k, SYMBOL_SIZE, &mut bench.rng);
        let bytes = source.bytes().len() as f64;
        let mut sender = Sender::new(BlockCode::RaptorQ, source.clone())?;
        let theirs = Crate::new(&source);
        bench_support::forget_plans();
        let mut place = sender.place(k / 10);
        let ours = heap::peak(|| sender.encode(&mut place)).1;
        let its = heap::peak(|| theirs.encode_once(k / 10)).1;
        row(bench, "encode 10 %", k, [ours as f64 / bytes, its as f64 / bytes], limit);
        for lost_percent in [1, 10, 100] {
            let lost = k * lost_percent / 100;
            let mut received = sender.lose(lost, &mut bench.rng);
            let first = bench.rng.u32(..64);
            sender.repair(first + lost + 8);
            let repairs = (first..first + lost + 8).map(|number| (number, sender.made(number)));
            // Its packets have the content of our block.
            let (result, its) = heap::peak(|| theirs.decode(theirs.packets(&received.lost, repairs)));
            result?;
            bench_support::forget_plans();
            let (is_complete, ours) = heap::peak(|| decode(&sender, &mut received, first));
            if !is_complete || received.block != source {
                return Err(Failure::new(format_args!("k = {k}: {lost} lost symbols were not decoded")));
            }
            let name = match lost_percent {
                100 => "decode from repair symbols only".to_owned(),
                percent => format!("decode, {percent} % lost"),
            };
            row(bench, &name, k, [ours as f64 / bytes, its as f64 / bytes - 1.0], limit);
        }
    }
    Ok(())
}

/// Counts only the decoder's own allocations.
fn decode(sender: &Sender, received: &mut ReceivedBlock, first: u32) -> bool {
    let k = sender.source.k();
    let mut decoder = sender.code.decoder(k, SYMBOL_SIZE).expect("its encoder was made");
    let mut next = first;
    while let Progress::Need(more) = decoder.recover(&mut received.block) {
        for number in next..next + more {
            decoder.push(&received.block, k + number, sender.made(number));
        }
        next += more;
    }
    received.block.is_complete()
}

fn row(bench: &mut Bench, name: &str, k: u32, [ours, its]: [f64; 2], limit: f64) {
    let [target, mark] = bench.report.at_most(format_args!("memory, {name}, k = {k}"), ours, limit);
    let cells = [Cell::text(name), Cell::Whole(k.into()), Cell::Number(ours, 2), Cell::Number(its, 2), target, mark];
    bench.report.row(&cells);
}
