//! One run: a file is encoded, or its received packets are decoded, and the processor time is measured.

use std::sync::OnceLock;
use std::time::Duration;

use erasure::{Block, BlockCode, Progress};
use fastrand::Rng;
use rustix::time::ClockId;

use super::Setting;
use crate::clock;

/// Returns the result of `work` and the processor time that this thread took for it. Dropping the result is not timed.
pub fn timed<R>(work: impl FnOnce() -> R) -> (R, Duration) {
    let reading = reading();
    let (result, took) = between(work);
    (result, took.saturating_sub(reading))
}

/// Returns the cost of reading the clock twice, each time by a system call: the minimum of many.
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
    repair: f64,
    blocks: Vec<Block>,
    /// The buffer for packets.
    packets: Vec<u8>,
}

/// The sent part of a block: a number of symbols from an id on.
#[derive(Clone, Copy, Debug)]
struct SentRange {
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
            Block::new_complete(k, symbol, bytes)
        };
        let blocks: Vec<Block> = setting.blocks().into_iter().map(block).collect();
        let largest =
            blocks.iter().map(|block| SentRange::of(code, block.k(), setting.repair).count).max().unwrap_or(0);
        Self { code, repair: setting.repair, blocks, packets: vec![0; largest as usize * symbol] }
    }

    /// Encodes the full file to all packets of each block.
    pub(super) fn encode(&mut self) -> Duration {
        let Self { code, repair, blocks, packets } = self;
        timed(|| {
            for block in blocks {
                SentRange::of(*code, block.k(), *repair).encode(block, packets);
            }
        })
        .1
    }

    /// Decodes the received packets, with this share of them lost, to the file. If they are too few, more are made,
    /// which is not timed.
    ///
    /// # Errors
    /// A code without further symbols, or one that decodes to other bytes.
    pub(super) fn decode(&mut self, dropped: f64, rng: &mut Rng) -> Result<Duration, String> {
        let mut all = Duration::ZERO;
        let Self { code, repair, blocks, packets } = self;
        for source in blocks {
            let sent = SentRange::of(*code, source.k(), *repair);
            sent.encode(source, packets);
            let mut ids: Vec<u32> = (0..sent.count).collect();
            rng.shuffle(&mut ids);
            ids.truncate(sent.count as usize - (f64::from(sent.count) * dropped).round() as usize);
            ids.sort_unstable();
            all += sent.decode(source, packets, &ids)?;
        }
        Ok(all)
    }
}

impl SentRange {
    fn of(code: BlockCode, k: u32, repair: f64) -> Self {
        if k == 1 {
            return Self { code: BlockCode::Uncoded, first: 0, count: 1 };
        }
        // rc-udp sections III and IV-C: these codes send only coded symbols.
        let first = if matches!(code, BlockCode::Lt | BlockCode::PrecodedLt) { k } else { 0 };
        let wanted = k + (f64::from(k) * repair).ceil() as u32;
        Self { code, first, count: wanted.min(code.symbol_limit(k) - first) }
    }

    /// Encodes into the first of the packets. Repair symbols are made all at once, as the transport does.
    fn encode(self, source: &Block, packets: &mut [u8]) {
        let (k, size) = (source.k(), source.symbol_size());
        let from_source = &source.bytes()[(self.first.min(k) as usize * size)..];
        let (sources, repairs) = packets[..self.count as usize * size].split_at_mut(from_source.len());
        sources.copy_from_slice(from_source);
        if !repairs.is_empty() {
            let mut encoder = self.code.encoder(k, size).expect("the plan was checked");
            encoder.repairs(source, self.first.max(k), repairs);
        }
    }

    /// Decodes from the packets with these `numbers`.
    fn decode(self, source: &Block, packets: &[u8], numbers: &[u32]) -> Result<Duration, String> {
        let (k, size) = (source.k(), source.symbol_size());
        let mut block = Block::new_missing(k, size, vec![0xee; k as usize * size]);
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
            // Dropped symbols are retransmitted if the code has no others.
            if next + more > self.code.symbol_limit(k) {
                for esi in (0..k).filter(|esi| !block.is_present(*esi)).take(more as usize).collect::<Vec<_>>() {
                    let symbol = source.symbol(esi).expect("a full block");
                    took += timed(|| block.insert(esi, symbol)).1;
                }
            } else {
                let encoder = encoder.get_or_insert_with(|| self.code.encoder(k, size).expect("the plan was checked"));
                for esi in next..next + more {
                    let mut packet = vec![0; size];
                    encoder.write_repair(source, esi, &mut packet);
                    took += timed(|| decoder.push(&block, esi, &packet)).1;
                }
                next += more;
            }
            let (now, time) = timed(|| decoder.recover(&mut block));
            (progress, took) = (now, took + time);
        }
        if block == *source { Ok(took) } else { Err(format!("{} decoded to wrong bytes", self.code)) }
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
                    trial.encode();
                    assert_packets(&trial);
                    for dropped in [0.0, 0.1, 0.9] {
                        trial.decode(dropped, &mut rng).expect("the right bytes");
                    }
                }
            }
        }
    }

    /// Asserts that the packets of the last block equal the encoder's symbols, made one by one.
    fn assert_packets(trial: &Trial) {
        let source = trial.blocks.last().expect("a block");
        let SentRange { code, first, count } = SentRange::of(trial.code, source.k(), trial.repair);
        let mut encoder = code.encoder(source.k(), source.symbol_size()).expect("a code");
        let mut wanted = vec![0; source.symbol_size()];
        let packets = trial.packets.chunks_exact(source.symbol_size());
        for (esi, packet) in (first..first + count).zip(packets) {
            match source.symbol(esi) {
                Some(symbol) => wanted.copy_from_slice(symbol),
                None => encoder.write_repair(source, esi, &mut wanted),
            }
            assert!(packet == wanted, "{code}, symbol {esi} of {}", source.k());
        }
    }

    #[test]
    fn lt_sends_coded_symbols_only() {
        let sent = |code| {
            let SentRange { first, count, .. } = SentRange::of(code, 20, 0.2);
            (first, count)
        };
        assert_eq!((sent(BlockCode::Lt), sent(BlockCode::PrecodedLt)), ((20, 24), (20, 24)));
        assert_eq!((sent(BlockCode::RaptorQ), sent(BlockCode::Uncoded)), ((0, 24), (0, 20)));
    }

    /// The clock itself defines the duration of the work, so the machine's speed does not matter.
    #[test]
    fn timed_excludes_the_clock_reading() {
        let long = Duration::from_millis(5);
        let now = || clock::read(ClockId::ThreadCPUTime);
        let started = now();
        let (turns, took) = timed(|| {
            let started = now();
            (0_u64..).find(|_| now() - started >= long)
        });
        let whole = now() - started;
        assert!(turns > Some(0) && took + reading() >= long && took <= whole, "{turns:?}, {took:?} of {whole:?}");
    }
}
