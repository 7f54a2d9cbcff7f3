//! The parts about RaptorQ: comparison with the crate, and growth of time with the block.

use erasure::{BlockCode, bench_support};
use fastrand::Rng;

use super::Bench;
use super::clock::{Times, in_turns};
use super::crate_raptorq::Crate;
use super::ours::{SYMBOL_SIZE, Sender, block};
use super::report::Cell;
use xtask::failure::Failure;

const SIZES: [u32; 3] = [100, 1000, 10_000];

/// The compared work, and the target speed relative to the crate for each size.
const ROWS: [(Work, [f64; 3]); 5] = [
    (Work::Encode { is_planned: true }, [2.5, 3.0, 2.5]),
    (Work::Encode { is_planned: false }, [3.0, 3.5, 2.5]),
    (Work::Decode { lost_percent: 1 }, [4.0, 4.5, 3.5]),
    (Work::Decode { lost_percent: 10 }, [2.5, 3.0, 2.5]),
    (Work::Decode { lost_percent: 100 }, [2.0, 2.5, 2.0]),
];

/// Repair symbols that a decoder may request beyond the number of lost ones.
const SPARE: u32 = 8;

#[derive(Clone, Copy)]
enum Work {
    /// 10 % of repair symbols.
    Encode {
        is_planned: bool,
    },
    Decode {
        lost_percent: u32,
    },
}

impl Work {
    fn name(self) -> String {
        match self {
            Self::Encode { is_planned: true } => "encode 10 %, plan cached".to_owned(),
            Self::Encode { is_planned: false } => "encode 10 %, plan not cached".to_owned(),
            Self::Decode { lost_percent: 100 } => "decode from repair symbols only".to_owned(),
            Self::Decode { lost_percent } => format!("decode, {lost_percent} % lost"),
        }
    }
}

/// Our RaptorQ and the crate's on the same block, with the same losses.
struct Comparison<'a> {
    sender: Sender,
    theirs: Crate<'a>,
    rng: Rng,
}

/// The table of the comparison.
pub(super) fn beside_the_crate(bench: &mut Bench) -> Result<(), Failure> {
    let columns = ["RaptorQ", "k", "ours, MB/s", "crate, MB/s", "ratio", "target", "met"];
    bench.report.table(
        "raptorq",
        format_args!("RaptorQ beside crate raptorq 2.0.1, {SYMBOL_SIZE}-byte symbols, one thread, in turns"),
        &columns,
    );
    for (work, targets) in ROWS {
        for (k, target) in SIZES.into_iter().zip(targets) {
            let source = block(k, SYMBOL_SIZE, &mut bench.rng);
            let bytes = source.bytes().len();
            let sender = Sender::new(BlockCode::RaptorQ, source.clone())?;
            let mut comparison = Comparison { sender, theirs: Crate::new(&source), rng: bench.rng.fork() };
            let [ours, theirs] = comparison.run(bench, work)?;
            let ratio = theirs.over(&ours);
            let name = work.name();
            let [target, mark] = bench.report.at_least(format_args!("{name}, k = {k}"), ratio.median(), target);
            let speeds = [ours, theirs].map(|times| Cell::Spread(times.speed(bytes), 0));
            let [ours, theirs] = speeds;
            let cells = [Cell::text(name), Cell::Whole(k.into()), ours, theirs, Cell::Spread(ratio, 2), target, mark];
            bench.report.row(&cells);
        }
    }
    Ok(())
}

impl Comparison<'_> {
    fn run(&mut self, bench: &Bench, work: Work) -> Result<[Times; 2], Failure> {
        let k = self.sender.source.k();
        match work {
            Work::Encode { is_planned } => {
                self.same_repairs(k / 10)?;
                let mut place = self.sender.place(k / 10);
                let ours = &mut || {
                    if !is_planned {
                        bench_support::forget_plans();
                    }
                    Ok(self.sender.encode(&mut place))
                };
                let theirs = &mut || Ok(self.theirs.encode(k / 10, is_planned));
                in_turns(bench.patience, [ours, theirs])
            }
            Work::Decode { lost_percent } => self.decode(bench, k * lost_percent / 100),
        }
    }

    /// Both have the same losses and the same repair symbols in each round.
    fn decode(&mut self, bench: &Bench, lost: u32) -> Result<[Times; 2], Failure> {
        let seed = self.rng.u64(..);
        let sender = std::cell::RefCell::new(&mut self.sender);
        // If all source symbols are lost, each round has other repair symbols.
        let round = |rng: &mut Rng| {
            let received = sender.borrow().lose(lost, rng);
            (received, rng.u32(..64))
        };
        let (mut one, mut other) = (Rng::with_seed(seed), Rng::with_seed(seed));
        let ours = &mut || {
            let (mut received, first) = round(&mut one);
            let took = sender.borrow_mut().decode(&mut received, first)?;
            took.ok_or_else(|| Failure::new("RaptorQ has no more repair symbols"))
        };
        let theirs = &mut || {
            let (received, first) = round(&mut other);
            let mut sender = sender.borrow_mut();
            sender.repair(first + lost + SPARE);
            let repairs = (first..first + lost + SPARE).map(|number| (number, sender.made(number)));
            let packets = self.theirs.packets(&received.lost, repairs);
            drop(sender);
            self.theirs.decode(packets)
        };
        in_turns(bench.patience, [ours, theirs])
    }

    /// Checks that both codes are the same.
    fn same_repairs(&mut self, count: u32) -> Result<(), Failure> {
        for (symbol, number) in self.theirs.repairs(count).iter().zip(0..) {
            if self.sender.repair(number) != Some(symbol.as_slice()) {
                return Err(Failure::new(format_args!("repair symbol {number} differs from that of crate raptorq")));
            }
        }
        Ok(())
    }
}

/// Time per byte of large blocks by that of smaller ones.
pub(super) fn scaling(bench: &mut Bench) -> Result<(), Failure> {
    const SMALL: u32 = 1000;
    const LARGE: u32 = 50_000;
    let columns = ["RaptorQ", "k = 1000, ns/byte", "k = 50,000, ns/byte", "ratio", "target", "met"];
    bench.report.table("scaling", "How time per byte grows with the block", &columns);
    let mut small = Sender::new(BlockCode::RaptorQ, block(SMALL, SYMBOL_SIZE, &mut bench.rng))?;
    let mut large = Sender::new(BlockCode::RaptorQ, block(LARGE, SYMBOL_SIZE, &mut bench.rng))?;
    for (work, _) in ROWS {
        // Equal bytes in each: 50 times the smaller block for one larger block.
        let (mut one, mut other) = (bench.rng.fork(), bench.rng.fork());
        let of_small = &mut || (0..LARGE / SMALL).map(|_| once(&mut small, work, &mut one)).sum();
        let of_large = &mut || once(&mut large, work, &mut other);
        let [of_small, of_large] = in_turns(bench.patience, [of_small, of_large])?;
        let ratio = of_large.over(&of_small);
        let name = work.name();
        let [target, mark] = bench.report.at_most(format_args!("{name}, k = 50,000 by 1000"), ratio.median(), 4.0);
        let bytes = LARGE as usize * SYMBOL_SIZE;
        let per_byte = |times: Times| Cell::Number(times.sample().median() * 1e9 / bytes as f64, 3);
        let cells = [Cell::text(name), per_byte(of_small), per_byte(of_large), Cell::Spread(ratio, 2), target, mark];
        bench.report.row(&cells);
    }
    Ok(())
}

fn once(sender: &mut Sender, work: Work, rng: &mut Rng) -> Result<std::time::Duration, Failure> {
    let k = sender.source.k();
    match work {
        Work::Encode { is_planned } => {
            if !is_planned {
                bench_support::forget_plans();
            }
            Ok(sender.encode(&mut sender.place(k / 10)))
        }
        Work::Decode { lost_percent } => {
            let mut received = sender.lose(k * lost_percent / 100, rng);
            let took = sender.decode(&mut received, rng.u32(..64))?;
            took.ok_or_else(|| Failure::new("RaptorQ has no more repair symbols"))
        }
    }
}
