//! The corpus of the connection's fuzz target, and inputs made of nearly valid frames.

#[path = "../../../transport/tests/vectors/samples.rs"]
mod samples;
#[path = "../../../transport/tests/vectors/varied.rs"]
mod varied;

use super::fuzz_connection;
use erasure::{AnyCode, BlockCode, WindowCode};
use fastrand::Rng;
use samples::frames;
use transport::wire::{
    self, Announcement, BlockMask, BlockStatus, Credit, EcnCounts, Feedback, FlowId, FlowStatus, Frame, PacketCount,
    PacketRanges, Plan, StreamAnnouncement,
};
use varied::varied;

#[test]
fn the_corpus_is_replayed() {
    hostile::replay("connection", fuzz_connection);
}

/// Returns a small number, one at a limit, or an arbitrary one. A careful peer's is nearly always small, or its
/// connection would end before the rest of the input.
fn number(random: &mut Rng, careful: bool) -> u64 {
    match random.u8(..if careful { 200 } else { 6 }) {
        0 => u64::MAX,
        1 => u64::from(u32::MAX) - random.u64(..2),
        2 => random.u64(..),
        _ => random.u64(..40),
    }
}

fn feedback(random: &mut Rng, careful: bool) -> Feedback {
    let mut ranges = Vec::new();
    let mut high = if careful { 0 } else { number(random, careful).min(u64::MAX - 1) };
    for _ in 0..random.usize(1..4) {
        let low = high.saturating_sub(random.u64(..5));
        ranges.push((low, high));
        let Some(next) = low.checked_sub(2 + random.u64(..3)) else { break };
        high = next;
    }
    let flow = |random: &mut Rng| FlowStatus {
        flow: FlowId(random.u16(1..5)),
        done_below: number(random, careful) as u32,
        blocks: (0..random.u32(..4)).map(|block| BlockStatus { block, need: random.u32(..70_000) }).collect(),
    };
    Feedback {
        number: number(random, careful) as u32,
        packets: random.bool().then_some(PacketRanges { delay_micros: number(random, careful) as u32, ranges }),
        ecn: random.bool().then(|| EcnCounts {
            ect0: number(random, careful),
            ect1: number(random, careful),
            ce: number(random, careful),
        }),
        count: random.bool().then(|| {
            let largest = number(random, careful).min(u64::MAX - 1);
            PacketCount { largest, delay_micros: 0, arrived: number(random, careful).clamp(1, largest + 1) }
        }),
        flows: (0..random.usize(..3)).map(|_| flow(random)).collect(),
        masks: (0..random.usize(..3))
            .map(|_| BlockMask { flow: FlowId(random.u16(1..5)), done: [random.u8(..); 32] })
            .collect(),
        credit: Credit { symbols: number(random, careful), control: number(random, careful) },
    }
}

/// Appends a frame. Most are generated, as varied samples have them too rarely: feedback about packets and flows that
/// exist, flows whose symbols the input contains, and control data that begins where the last ended. The others are
/// samples of any frame, varied.
fn frame(random: &mut Rng, careful: bool, out: &mut Vec<u8>) {
    let flow = FlowId(random.u16(1..5));
    let data = vec![7; random.usize(..60)];
    let frame = match random.u8(..20) {
        0..=5 => Frame::Feedback(feedback(random, careful)),
        6..=9 => Frame::Announce(announcement(random, careful, flow)),
        10 => Frame::AnnounceStream(stream_announcement(random, careful, flow)),
        11..=13 => Frame::Control { offset: number(random, careful).min(1 << 60), data: &data },
        _ => return sample(random, careful, out),
    };
    frame.encode(out);
}

fn announcement(random: &mut Rng, careful: bool, flow: FlowId) -> Announcement {
    // A careful peer repeats the same valid announcement of a flow.
    let mut alike = if careful { Rng::with_seed(flow.0.into()) } else { random.fork() };
    let k = [1, 1, 2, 10, 8_192, 8_193][alike.usize(..if careful { 4 } else { 6 })];
    let code = BlockCode::ALL[alike.usize(..BlockCode::ALL.len())];
    Announcement {
        flow,
        length: if careful || alike.u8(..4) > 0 { alike.u64(..5_000) } else { 1 << 50 },
        symbol_size: [100, 100, 100, 1_408, 64, 2][alike.usize(..6)],
        symbols_per_packet: 1,
        tag: 0,
        plan: Plan { flow, number: 0, first_block: 0, first_symbol: 0, k, code },
    }
}

fn stream_announcement(random: &mut Rng, careful: bool, flow: FlowId) -> StreamAnnouncement {
    let mut alike = if careful { Rng::with_seed(u64::from(flow.0) + 4) } else { random.fork() };
    let block = BlockCode::ALL[alike.usize(..BlockCode::ALL.len())];
    let windows = alike.u8(..3) == 0;
    StreamAnnouncement {
        flow: if careful { FlowId(flow.0 + 4) } else { flow },
        symbol_size: [100, 100, 100, 1_408, 64, 6][alike.usize(..6)],
        tag: 0,
        // The victim accepts windows of 3 symbols.
        k: if windows { alike.u32(1..4) } else { [1, 2, 10, 200][alike.usize(..4)] },
        code: if windows { AnyCode::Window(WindowCode::Rlc) } else { block.into() },
        short_code: if windows { BlockCode::Uncoded } else { block },
    }
}

/// Appends any frame. Where it would end the connection, and nothing else of the input had an effect, a ping mostly takes
/// its place: a close does, and feedback about packets that no victim has sent, and from a careful peer most samples.
fn sample(random: &mut Rng, careful: bool, out: &mut Vec<u8>) {
    thread_local!(static SAMPLES: Vec<Frame<'static>> = frames().into_iter().map(|(_, frame)| frame).collect());
    SAMPLES.with(|samples| {
        let sample = &samples[random.usize(..samples.len())];
        let ends = careful || matches!(sample, Frame::Close { .. } | Frame::Feedback(_));
        let sample = if ends && random.u8(..8) > 0 { &Frame::Ping } else { sample };
        out.extend(varied(sample, careful, &mut |below| random.u64(..below)));
    });
}

/// Creates an input in the layout of the fuzz target.
fn input(random: &mut Rng) -> Vec<u8> {
    let careful = random.u8(..4) > 0;
    let mut input = vec![random.u8(..)];
    for _ in 0..random.usize(1..250) {
        let argument = random.u8(..32) << 3;
        match random.u8(..12) {
            0..=3 => {
                let mut frames = Vec::new();
                (0..random.usize(1..4)).for_each(|_| frame(random, careful, &mut frames));
                frames.truncate(255);
                if random.u8(..20) == 0 {
                    let at = random.usize(..frames.len());
                    frames[at] ^= 1 << random.u8(..8);
                }
                input.extend([argument, frames.len() as u8]);
                input.extend(frames);
            }
            4..=7 => {
                // The size that most flows announce, and mostly symbols that complete a small block.
                let argument = if random.bool() { argument & !0x18 } else { argument };
                let esi = if random.bool() { random.u8(..2) } else { random.u8(..24) };
                let repair = if random.u8(..4) == 0 { 0x80 } else { 0 };
                input.extend([argument | 1, random.u8(1..9), random.u8(..40), esi, (random.u8(..12) / 10) | repair]);
            }
            8 => input.push(argument | 2),
            9 => input.push(argument | 3),
            10 => input.push((if random.u8(..4) > 0 { argument & 0x7f } else { argument }) | 4),
            _ => input.push(argument | [5, 7][random.usize(..2)]),
        }
    }
    input
}

/// `SEED=n cargo test -p downpour-sim --lib fuzzing -- --nocapture` runs a single input.
#[test]
fn a_hostile_peer_breaks_nothing() {
    let alone = std::env::var("SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in alone.map_or(0..3_000, |seed| seed..seed + 1) {
        let input = input(&mut Rng::with_seed(seed));
        let run = std::panic::catch_unwind(|| fuzz_connection(&input));
        assert!(
            run.is_ok(),
            "seed {seed} fails; replay: SEED={seed} cargo test -p downpour-sim --lib fuzzing -- --nocapture"
        );
    }
}

#[test]
fn noise_breaks_nothing() {
    for seed in 0..2_000 {
        let mut random = Rng::with_seed(seed);
        let noise: Vec<u8> = (0..random.usize(..400)).map(|_| random.u8(..)).collect();
        fuzz_connection(&noise);
    }
}
