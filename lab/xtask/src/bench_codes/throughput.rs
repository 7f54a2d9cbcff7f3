//! Every code over block sizes and losses.

use std::time::Duration;

use erasure::BlockCode;
use lab::picture::{Lines, Mark};
use lab::plan::Scale;

use super::Bench;
use super::clock::{Patience, Times, in_turns};
use super::ours::{SYMBOL_SIZE, Sender, block};
use super::report::Cell;
use xtask::failure::Failure;
use xtask::measuring::Sample;

const SIZES: [u32; 5] = [10, 32, 100, 1000, 10_000];
const LOSSES: [u32; 6] = [1, 5, 10, 20, 50, 100];
/// The block size of the picture over losses, and the loss of the picture over block sizes.
const DRAWN: (u32, u32) = (1000, 10);

/// The measurements of a code and a block size, in MB/s.
struct Row {
    code: BlockCode,
    k: u32,
    encode: Sample,
    /// For each of [`LOSSES`]; `None` if the code has too few repair symbols.
    decode: Vec<Option<Sample>>,
}

pub(super) fn run(bench: &mut Bench) -> Result<(), Failure> {
    let decoded = LOSSES.map(|percent| format!("{percent} % lost"));
    let columns: Vec<&str> =
        ["code", "k", "encode 10 %"].into_iter().chain(decoded.iter().map(String::as_str)).collect();
    bench.report.table(
        "throughput",
        format_args!("MB/s of source data: encoding 10 % repair symbols, decoding ({SYMBOL_SIZE}-byte symbols)"),
        &columns,
    );
    let mut rows = Vec::new();
    for code in BlockCode::ALL {
        for k in SIZES {
            let codes = code.check(k, SYMBOL_SIZE).is_ok() && code.symbol_limit(k) > k + k.div_ceil(10);
            if codes {
                let row = measure(bench, code, k)?;
                bench.report.row(&row.cells());
                rows.push(row);
            }
        }
    }
    draw(bench, &rows)
}

/// Draws the pictures over block sizes and over losses.
fn draw(bench: &Bench, rows: &[Row]) -> Result<(), Failure> {
    let caption = format!("{SYMBOL_SIZE}-byte symbols, one thread, medians and the middle half.");
    let lines = |title: String, x: &str, series| {
        Lines::new(title, caption.clone(), [(x, Scale::Log), ("MB/s of source data", Scale::Log)], series)
    };
    let over_k = "Source symbols in the block";
    let encode = series(rows, |row| vec![(row.k, Some(&row.encode))]);
    bench.draw("encode-over-k", lines("Encoding 10 % repair symbols".to_owned(), over_k, encode))?;
    let (drawn_k, drawn_loss) = DRAWN;
    let at = LOSSES.iter().position(|&percent| percent == drawn_loss).expect("one of them");
    let decode = series(rows, |row| vec![(row.k, row.decode[at].as_ref())]);
    bench.draw("decode-over-k", lines(format!("Decoding, {drawn_loss} % of the source lost"), over_k, decode))?;
    let decode = series(rows, |row| {
        let losses = LOSSES.into_iter().zip(row.decode.iter().map(Option::as_ref));
        losses.filter(|_| row.k == drawn_k).collect()
    });
    let title = format!("Decoding a block of {drawn_k} symbols");
    bench.draw("decode-over-loss", lines(title, "Source symbols lost, %", decode))
}

/// Returns a line for each code, with the points of its rows.
fn series<'a>(rows: &'a [Row], points: impl Fn(&'a Row) -> Vec<(u32, Option<&'a Sample>)>) -> Vec<(String, Vec<Mark>)> {
    let mark = |(x, speed): (u32, Option<&Sample>)| {
        let speed = speed?;
        Some(Mark::with_bar(x.into(), speed.median(), [speed.quantile(0.25), speed.quantile(0.75)]))
    };
    let line = |of_code: &'a [Row]| {
        let marks = of_code.iter().flat_map(&points).filter_map(mark).collect();
        (of_code[0].code.to_string(), marks)
    };
    rows.chunk_by(|one, other| one.code == other.code).map(line).collect()
}

fn measure(bench: &mut Bench, code: BlockCode, k: u32) -> Result<Row, Failure> {
    let patience = Patience { time: bench.patience.time / 6, ..bench.patience };
    let source = block(k, SYMBOL_SIZE, &mut bench.rng);
    let bytes = source.bytes().len();
    let mut sender = Sender::new(code, source)?;
    let encode = {
        let mut place = sender.place(k.div_ceil(10));
        let [times] = in_turns(patience, [&mut || Ok(sender.encode(&mut place))])?;
        times.speed(bytes)
    };
    let mut decode = Vec::new();
    for percent in LOSSES {
        let times = decoding(bench, patience, &mut sender, (k * percent).div_ceil(100))?;
        decode.push(times.map(|times| times.speed(bytes)));
    }
    Ok(Row { code, k, encode, decode })
}

/// Returns `None` if the code had too few repair symbols in a round.
fn decoding(bench: &mut Bench, patience: Patience, sender: &mut Sender, lost: u32) -> Result<Option<Times>, Failure> {
    let mut falls_short = false;
    let rng = &mut bench.rng;
    let [times] = in_turns(
        patience,
        [&mut || {
            if falls_short {
                return Ok(Duration::ZERO);
            }
            let mut received = sender.lose(lost, rng);
            let took = sender.decode(&mut received, 0)?;
            falls_short = took.is_none();
            Ok(took.unwrap_or_default())
        }],
    )?;
    Ok((!falls_short).then_some(times))
}

impl Row {
    fn cells(&self) -> Vec<Cell> {
        let of = |speed: &Option<Sample>| speed.clone().map_or(Cell::None, |speed| Cell::Median(speed, 0));
        let head = [Cell::text(self.code), Cell::Whole(self.k.into()), Cell::Median(self.encode.clone(), 0)];
        head.into_iter().chain(self.decode.iter().map(of)).collect()
    }
}
