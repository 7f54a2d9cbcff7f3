//! One run: a file is encoded, or what came of it is decoded, and the processor's time is taken.

use std::sync::OnceLock;
use std::time::Duration;

use erasure::{Block, BlockCode, Progress};
use fastrand::Rng;
use rustix::time::ClockId;

use super::Setting;
use crate::clock;

/// What `work` returns, and the processor time that this thread took for it. What it returns is dropped by the caller, outside of that
/// time.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let reading = reading();
    let (result, took) = between(work);
    (result, took.saturating_sub(reading))
}

/// What it costs to read the clock twice, which is a system call each time: the least of many.
fn reading() -> Duration {
    static READING: OnceLock<Duration> = OnceLock::new();
    *READING.get_or_init(|| (0..1000).map(|_| between(|| ()).1).min().unwrap_or_default())
}

fn between<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let started = clock::read(ClockId::ThreadCPUTime);
    let result = work();
    let took = clock::read(ClockId::ThreadCPUTime) - started;
    (result, took)
}

/// A file in blocks, ready to be encoded and decoded by one code.
#[derive(Debug)]
pub(super) struct Trial {
    code: BlockCode,
    symbol: usize,
    repair: f64,
    blocks: Vec<Block>,
    /// Where packets are put.
    packets: Vec<u8>,
}

/// What is sent of a block: so many symbols from an id on.
#[derive(Clone, Copy, Debug)]
struct Sent {
    code: BlockCode,
    first: u32,
    count: u32,
}

impl Trial {
    pub(super) fn new(code: BlockCode, setting: &Setting, rng: &mut Rng) -> Self {
        let symbol = usize::try_from(setting.symbol).expect("the plan was checked");
        let block = |k: u32| {
            let mut bytes = vec![0; k as usize * symbol];
            rng.fill(&mut bytes);
            Block::full(k, symbol, bytes)
        };
        let blocks: Vec<Block> = setting.blocks().into_iter().map(block).collect();
        let largest = blocks.iter().map(|block| Sent::of(code, block.k(), setting.repair).count).max().unwrap_or(0);
        Self { code, symbol, repair: setting.repair, blocks, packets: vec![0; largest as usize * symbol] }
    }

    /// From the full file to all packets of each block.
    pub(super) fn encode(&mut self) -> Duration {
        let Self { code, symbol, repair, blocks, packets } = self;
        timed(|| {
            for block in blocks {
                Sent::of(*code, block.k(), *repair).encode(block, packets.chunks_exact_mut(*symbol));
            }
        })
        .1
    }

    /// From the packets that came, where this share of them did not, to the file. Where they are too few, more are made outside of the
    /// time.
    ///
    /// # Errors
    /// A code that has no more symbols, or decodes to other bytes.
    pub(super) fn decode(&mut self, dropped: f64, rng: &mut Rng) -> Result<Duration, String> {
        let mut all = Duration::ZERO;
        let Self { code, symbol, repair, blocks, packets } = self;
        for source in blocks {
            let sent = Sent::of(*code, source.k(), *repair);
            sent.encode(source, packets.chunks_exact_mut(*symbol));
            let mut ids: Vec<u32> = (0..sent.count).collect();
            rng.shuffle(&mut ids);
            ids.truncate(sent.count as usize - (f64::from(sent.count) * dropped).round() as usize);
            ids.sort_unstable();
            all += sent.decode(source, packets, &ids)?;
        }
        Ok(all)
    }
}

impl Sent {
    fn of(code: BlockCode, k: u32, repair: f64) -> Self {
        if k == 1 {
            return Self { code: BlockCode::Uncoded, first: 0, count: 1 };
        }
        // rc-udp sections III and IV-C: of these codes only coded symbols are sent.
        let first = if matches!(code.to_string().as_str(), "lt" | "precoded-lt") { k } else { 0 };
        let wanted = k + (f64::from(k) * repair).ceil() as u32;
        Self { code, first, count: wanted.min(code.symbol_limit(k) - first) }
    }

    fn encode<'a>(self, source: &Block, packets: impl Iterator<Item = &'a mut [u8]>) {
        let mut encoder = self.code.encoder(source.k(), source.symbol_size()).expect("the plan was checked");
        for (esi, packet) in (self.first..self.first + self.count).zip(packets) {
            match source.symbol(esi) {
                Some(symbol) => packet.copy_from_slice(symbol),
                None => encoder.repair(source, esi, packet),
            }
        }
    }

    /// `numbers` of the packets came.
    fn decode(self, source: &Block, packets: &[u8], numbers: &[u32]) -> Result<Duration, String> {
        let (k, size) = (source.k(), source.symbol_size());
        let mut block = Block::empty(k, size, vec![0xee; k as usize * size]);
        let ((mut decoder, mut progress), mut took) = timed(|| {
            let mut decoder = self.code.decoder(k, size).expect("the plan was checked");
            for &number in numbers {
                let packet = &packets[number as usize * size..][..size];
                let esi = self.first + number;
                if esi < k {
                    block.insert(esi, packet);
                } else {
                    decoder.push(&block, esi, packet);
                }
            }
            let progress = decoder.recover(&mut block);
            (decoder, progress)
        });
        let (mut encoder, mut next) = (None, self.first + self.count);
        while let Progress::Need(more) = progress {
            // What was dropped is sent again where the code has nothing else.
            if next + more > self.code.symbol_limit(k) {
                for esi in (0..k).filter(|esi| !block.is_present(*esi)).take(more as usize).collect::<Vec<_>>() {
                    let symbol = source.symbol(esi).expect("a full block");
                    took += timed(|| block.insert(esi, symbol)).1;
                }
            } else {
                let encoder = encoder.get_or_insert_with(|| self.code.encoder(k, size).expect("the plan was checked"));
                for esi in next..next + more {
                    let mut packet = vec![0; size];
                    encoder.repair(source, esi, &mut packet);
                    took += timed(|| decoder.push(&block, esi, &packet)).1;
                }
                next += more;
            }
            let (now, time) = timed(|| decoder.recover(&mut block));
            (progress, took) = (now, took + time);
        }
        if block == *source { Ok(took) } else { Err(format!("{} decoded to other bytes", self.code)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;

    #[test]
    fn every_code_is_encoded_and_decoded() {
        let mut rng = Rng::with_seed(1);
        for sweep in plan().sweeps {
            for (_, setting) in &sweep.points {
                for code in BlockCode::ALL {
                    let mut trial = Trial::new(code, setting, &mut rng);
                    assert!(trial.encode() < Duration::from_secs(10));
                    for dropped in [0.0, 0.1, 0.9] {
                        trial.decode(dropped, &mut rng).expect("the right bytes");
                    }
                }
            }
        }
    }

    #[test]
    fn time_is_that_of_the_work() {
        let ((), nothing) = timed(|| ());
        let work = || (0..30_000_000_u64).fold(0, |sum, number| std::hint::black_box(sum ^ number));
        let (_, some) = timed(work);
        assert!(nothing < Duration::from_micros(200) && some > Duration::from_millis(1), "{nothing:?}, {some:?}");
    }
}
