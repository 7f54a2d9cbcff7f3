//! Reed-Solomon of 32 + 4 symbols, beside ISA-L.

use std::time::Duration;

use erasure::{Block, BlockCode};
use fastrand::Rng;

use super::Bench;
use super::clock::{Times, in_turns, timed};
use super::isal::{self, IsaL};
use super::ours::{SYMBOL_SIZE, Sender, block};
use super::report::Cell;
use xtask::failure::Failure;

const K: u32 = 32;
const REPAIRS: u32 = 4;
/// Blocks in a round: one takes microseconds.
const BLOCKS: u32 = 100;

pub(super) fn run(bench: &mut Bench) -> Result<(), Failure> {
    let columns = ["Reed-Solomon 32 + 4", "ours, MB/s", "ISA-L, MB/s", "ratio", "target", "met"];
    bench.report.table("cauchy", format_args!("Reed-Solomon 32 + 4, {SYMBOL_SIZE}-byte symbols"), &columns);
    let source = block(K, SYMBOL_SIZE, &mut bench.rng);
    let mut sender = Sender::new(BlockCode::ReedSolomon, source.clone())?;
    let theirs = IsaL::load().map(|library| IsalCode::new(library, &source));
    if theirs.is_none() {
        bench.report.say(isal::ABSENT);
    }
    let bytes = source.bytes().len() * BLOCKS as usize;
    let (patience, mut rng) = (bench.patience, bench.rng.fork());

    let mut place = sender.place(REPAIRS);
    let ours = &mut || Ok((0..BLOCKS).map(|_| sender.encode(&mut place)).sum());
    let encode = match &theirs {
        Some(theirs) => in_turns(patience, [ours, &mut || Ok((0..BLOCKS).map(|_| theirs.encode()).sum())])
            .map(|[ours, theirs]| (ours, Some(theirs)))?,
        None => in_turns(patience, [ours]).map(|[ours]| (ours, None))?,
    };
    let speed = encode.0.speed(bytes).median();
    let [target, mark] = bench.report.at_least("Cauchy 32 + 4, encode, MB/s", speed, 8000.0);
    row(bench, "encode 4 repair symbols, MB/s", &encode, bytes, [target, mark]);
    if let (ours, Some(theirs)) = &encode {
        let [target, mark] = bench.report.at_least("Cauchy 32 + 4, encode by ISA-L", theirs.over(ours).median(), 0.8);
        row(bench, "encode 4 repair symbols, ratio", &encode, bytes, [target, mark]);
    }

    let seed = rng.u64(..);
    let (mut one, mut other) = (Rng::with_seed(seed), Rng::with_seed(seed));
    let ours = &mut || {
        let mut all = Duration::ZERO;
        for _ in 0..BLOCKS {
            let mut received = sender.lose(REPAIRS, &mut one);
            all += sender.decode(&mut received, 0)?.ok_or_else(|| Failure::new("no more repair symbols"))?;
        }
        Ok(all)
    };
    let decode = match &theirs {
        Some(theirs) => {
            in_turns(patience, [ours, &mut || (0..BLOCKS).map(|_| theirs.decode(&source, &mut other)).sum()])
                .map(|[ours, theirs]| (ours, Some(theirs)))?
        }
        None => in_turns(patience, [ours]).map(|[ours]| (ours, None))?,
    };
    let by_encode = decode.0.speed(bytes).median() / speed;
    let [target, mark] = bench.report.at_least("Cauchy 32 + 4, decode by encode", by_encode, 0.5);
    row(bench, "decode 4 lost, by encode", &decode, bytes, [target, mark]);
    Ok(())
}

fn row(bench: &mut Bench, name: &str, times: &(Times, Option<Times>), bytes: usize, [target, mark]: [Cell; 2]) {
    let (ours, theirs) = times;
    let speed = |times: &Times| Cell::Spread(times.speed(bytes), 0);
    let ratio = theirs.as_ref().map_or(Cell::None, |theirs| Cell::Spread(theirs.over(ours), 2));
    let theirs = theirs.as_ref().map_or(Cell::None, speed);
    bench.report.row(&[Cell::text(name), speed(ours), theirs, ratio, target, mark]);
}

/// ISA-L's code of the same size on the same block.
struct IsalCode {
    library: IsaL,
    source: Block,
    matrix: Vec<u8>,
    tables: Vec<u8>,
    repairs: Vec<Vec<u8>>,
}

impl IsalCode {
    fn new(library: IsaL, source: &Block) -> Self {
        let (k, repairs) = (K as usize, REPAIRS as usize);
        let matrix = library.matrix(k, repairs);
        let tables = library.tables(&matrix[k * k..], k);
        let mut all = Self { library, source: source.clone(), matrix, tables, repairs: Vec::new() };
        all.repairs = vec![vec![0; SYMBOL_SIZE]; repairs];
        let mut made = all.repairs.clone();
        all.library.combine(&all.tables, &all.symbols(), &mut made);
        all.repairs = made;
        all
    }

    fn symbols(&self) -> Vec<&[u8]> {
        self.source.bytes().chunks_exact(SYMBOL_SIZE).collect()
    }

    /// The matrix and the output buffers exist already.
    fn encode(&self) -> Duration {
        let symbols = self.symbols();
        let mut made = vec![vec![0; SYMBOL_SIZE]; REPAIRS as usize];
        timed(|| self.library.combine(&self.tables, &symbols, std::hint::black_box(&mut made))).1
    }

    /// The inverse of the received rows, then the lost symbols from the received ones.
    fn decode(&self, source: &Block, rng: &mut Rng) -> Result<Duration, Failure> {
        let k = K as usize;
        let mut ids: Vec<usize> = (0..k).collect();
        rng.shuffle(&mut ids);
        let lost = &ids[..REPAIRS as usize];
        let symbols = self.symbols();
        let received: Vec<usize> = (0..k + REPAIRS as usize).filter(|id| !lost.contains(id)).collect();
        let inputs: Vec<&[u8]> =
            received.iter().map(|&id| symbols.get(id).copied().unwrap_or_else(|| &self.repairs[id - k])).collect();
        let mut made = vec![vec![0; SYMBOL_SIZE]; lost.len()];
        let (solved, took) = timed(|| {
            let rows = received.iter().flat_map(|&id| &self.matrix[id * k..][..k]).copied().collect();
            let inverse = self.library.inverse(rows, k)?;
            let wanted: Vec<u8> = lost.iter().flat_map(|&id| &inverse[id * k..][..k]).copied().collect();
            self.library.combine(&self.library.tables(&wanted, k), &inputs, &mut made);
            Ok::<(), Failure>(())
        });
        solved?;
        let right = lost.iter().zip(&made).all(|(&id, made)| source.symbol(id as u32) == Some(made));
        if right { Ok(took) } else { Err(Failure::new("ISA-L decoded to wrong bytes")) }
    }
}
