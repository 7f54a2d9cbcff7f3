//! One block at a time: its coded symbols are sent until the receiver has it (rc-udp §IV-B).

use std::collections::VecDeque;
use std::time::Duration;
use transport::flow::SendBlock;
use transport::flow::SendBlocks;
use transport::flow::schedule::MOST_LOSS;
use transport::flow::schedule::ScheduleFactory;
use transport::flow::{PathEstimate, Schedule, ScheduleAction};
use transport::recovery::Report;
use transport::settings::{IntegerRange, Setting, Settings, Share, Span, field};
use transport::time::Time;

/// Parameters of the block-at-a-time schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockAtATimeConfig {
    /// Delta-t: the sender's silence after a block, for each dropped packet of it.
    pub wait: Duration,
    /// Blocks in flight at once.
    pub blocks: u32,
    /// Blocks encoded before their turn.
    pub ahead: u32,
    /// Epsilon: symbols that a receiver needs beyond K, as a share of K.
    pub epsilon: f64,
}

impl Default for BlockAtATimeConfig {
    fn default() -> Self {
        // rc-udp §IV-B b: 0.3 ms; block by block; the next block is encoded while one is sent. §V-A: 0.01.
        Self { wait: Duration::from_micros(300), blocks: 1, ahead: 1, epsilon: 0.01 }
    }
}

impl Settings for BlockAtATimeConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("wait", wait, Span(Duration::ZERO, Duration::from_secs(60))),
        field!("blocks", blocks, IntegerRange(1, 1_000)),
        field!("ahead", ahead, IntegerRange(0, 1_000)),
        field!("epsilon", epsilon, Share(0.0, 1.0)),
    ];
}

impl ScheduleFactory for BlockAtATimeConfig {
    const NAME: &'static str = "block-at-a-time";

    fn build(&self) -> Box<dyn Schedule> {
        Box::new(BlockAtATime::new(self.clone()))
    }
}

/// A block being sent.
#[derive(Debug)]
struct Sending {
    number: u32,
    k: u32,
    /// Symbols of it sent.
    sent: u32,
    /// Ps: packets of it sent.
    packets: u32,
}

impl Sending {
    /// dP = Ps - (1 + epsilon) K / r, where r symbols went into a packet of the block on average.
    fn dropped(&self, epsilon: f64) -> f64 {
        let packets = f64::from(self.packets);
        let per_packet = f64::from(self.sent) / packets.max(1.0);
        (packets - (1.0 + epsilon) * f64::from(self.k) / per_packet.max(1.0)).max(0.0)
    }
}

#[derive(Debug)]
pub(super) struct BlockAtATime {
    config: BlockAtATimeConfig,
    /// Blocks that have their turn, oldest first.
    sending: VecDeque<Sending>,
    /// The block after the last that had its turn.
    upcoming: u32,
    /// No further block gets its turn before this time.
    silent_until: Time,
}

impl BlockAtATime {
    pub(super) const fn new(config: BlockAtATimeConfig) -> Self {
        Self { config, sending: VecDeque::new(), upcoming: 0, silent_until: Time::ZERO }
    }

    /// Returns the open block whose turn is next.
    fn following<'a>(&self, flow: &'a SendBlocks) -> Option<&'a SendBlock> {
        flow.open_blocks().find(|block| block.number() >= self.upcoming)
    }

    /// Retires the blocks that the receiver has. If the next is already encoded, T = (Ps - (1 + epsilon) K / r) x
    /// delta-t passes before its turn (rc-udp §IV-B b), counted from the time at which the sender would continue.
    fn retire(&mut self, now: Time, flow: &SendBlocks) {
        let is_done = |sending: &Sending| flow.block(sending.number).is_none_or(SendBlock::is_done);
        if !self.sending.iter().any(is_done) {
            return;
        }
        let done = self.sending.iter().filter(|sending| is_done(sending));
        let dropped: f64 = done.map(|sending| sending.dropped(self.config.epsilon)).sum();
        self.sending.retain(|sending| !is_done(sending));
        if self.following(flow).is_some_and(is_encoded) {
            self.silent_until = now + self.config.wait.mul_f64(dropped);
        }
    }

    /// Requests missing symbols: of a current block before they run out, of the following blocks all that they will
    /// need.
    fn prepare(&self, flow: &SendBlocks, path: &PathEstimate) -> Option<ScheduleAction> {
        let at_once = (self.config.blocks + self.config.ahead) as usize;
        flow.open_blocks().take(at_once).find_map(|block| {
            let k = block.k();
            let made = block.repair_sent() + block.repair_ready();
            let running_out =
                block.number() < self.upcoming && block.source_left() == 0 && block.repair_ready() <= k / 8;
            // Another schedule may have sent some of its symbols before.
            let run_out = block.is_repair_only() && block.repair_ready() == 0;
            let count = match made {
                0 if block.is_repair_only() => self.enough(k, path),
                _ if running_out || run_out => (k / 4).max(16),
                _ => return None,
            };
            block.can_prepare().then(|| ScheduleAction::EncodeRepair { block: flow.id_of(block), count })
        })
    }

    /// Returns (1 + epsilon) K plus expected losses; where more than [`MOST_LOSS`] is lost, more symbols are made as
    /// they are needed.
    fn enough(&self, k: u32, path: &PathEstimate) -> u32 {
        ((1.0 + self.config.epsilon) * f64::from(k) / (1.0 - path.loss.min(MOST_LOSS))).ceil() as u32
    }

    /// Gives the next block its turn as soon as it is encoded.
    fn admit(&mut self, now: Time, flow: &SendBlocks) {
        while self.sending.len() < self.config.blocks as usize
            && self.silent_until <= now
            && let Some(block) = self.following(flow).filter(|block| is_encoded(block))
        {
            self.sending.push_back(Sending { number: block.number(), k: block.k(), sent: 0, packets: 0 });
            self.upcoming = block.number() + 1;
        }
    }

    /// Returns a symbol of a block that has its turn. Of several, the oldest that has not had enough goes first; once
    /// all have, they alternate.
    fn serve(&mut self, flow: &SendBlocks, path: &PathEstimate) -> Option<ScheduleAction> {
        let wanting = self.sending.iter().position(|sending| sending.sent < self.enough(sending.k, path));
        let count = self.sending.len();
        let first = wanting.unwrap_or(0);
        let (at, next) = (0..count).map(|nth| (first + nth) % count).find_map(|at| {
            let next = symbol(flow, flow.block(self.sending[at].number)?)?;
            Some((at, next))
        })?;
        let sending = &mut self.sending[at];
        sending.sent += 1;
        sending.packets += u32::from(flow.packet() != Some(sending.number));
        if wanting.is_none() {
            self.sending.rotate_left(1);
        }
        Some(next)
    }
}

/// Returns whether the block can be sent: its repair is made, or it is sent as source.
fn is_encoded(block: &SendBlock) -> bool {
    block.repair_ready() > 0 || block.has_source_ready()
}

/// Returns a symbol of the block: source of a code that needs it, then repair, and source as the last resort.
fn symbol(flow: &SendBlocks, block: &SendBlock) -> Option<ScheduleAction> {
    if block.has_source_ready() && flow.source_block() == block.number() {
        return Some(ScheduleAction::Source);
    }
    if block.repair_ready() > 0 {
        return Some(ScheduleAction::Repair(flow.id_of(block)));
    }
    flow.last_resort_of(block).map(ScheduleAction::Retransmit)
}

impl Schedule for BlockAtATime {
    fn next(&mut self, now: Time, flow: &SendBlocks, path: &PathEstimate) -> ScheduleAction {
        // rc-udp §IV-B a: encoding starts when the decoder has acknowledged the parameters.
        if !flow.announced() {
            return ScheduleAction::Idle;
        }
        self.retire(now, flow);
        if let Some(prepare) = self.prepare(flow, path) {
            return prepare;
        }
        self.admit(now, flow);
        match self.serve(flow, path) {
            Some(next) => next,
            None if self.silent_until > now => ScheduleAction::Wait(self.silent_until),
            None => ScheduleAction::Idle,
        }
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}

    // rc-udp §IV-B: a stream of coded symbols only.
    fn resends(&self) -> bool {
        false
    }

    // rc-udp §III: all K + R symbols pass through the LT code, whose symbols add little to source.
    fn sends_source(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::flow;
    use transport::flow::schedule::TestFlow;

    fn line(text: &str, blocks: u32, k: u32) -> TestFlow {
        flow(&format!("block-at-a-time:{text}"), "precoded-lt", &vec![k; blocks as usize])
    }

    /// rc-udp §IV-B a: the parameters first.
    #[test]
    fn nothing_goes_out_before_the_parameters_are_acknowledged() {
        let mut line = line("", 2, 40);
        assert_eq!(line.send(10), []);
        assert_eq!(line.encodes, [], "nor is anything encoded");
        line = line.announced();
        assert_eq!(line.send(3), [(0, 40), (0, 41), (0, 42)]);
    }

    /// Only coded symbols of one block are sent until it is acknowledged, never a source symbol.
    #[test]
    fn a_block_streams_until_it_is_acknowledged() {
        let mut line = line("", 3, 40).announced();
        assert_eq!(line.send(200), (40..240).map(|esi| (0, esi)).collect::<Vec<_>>());
        // (1 + epsilon) K at once for this block and the next, then more before they run out.
        assert_eq!(line.encodes[..2], [(0, 41), (1, 41)]);
        assert!(line.encodes[2..].iter().all(|encode| *encode == (0, 16)), "{:?}", line.encodes);
        line.acknowledge(0);
        assert_eq!(line.send(1), []);
        line.after(Duration::from_secs(1));
        assert_eq!(line.send(2), [(1, 40), (1, 41)]);
        assert_eq!(line.encodes.last(), Some(&(2, 41)), "one ahead");
    }

    /// §IV-B b: T = (Ps - (1 + epsilon) K) x 0.3 ms when the next block is encoded at the acknowledgement.
    #[test]
    fn silence_follows_a_block_by_what_was_dropped_of_it() {
        let mut line = line("", 3, 100).announced();
        line.send(161);
        line.acknowledge(0);
        assert_eq!(line.send(1), []);
        // 161 - 101 packets.
        let until = line.now + Duration::from_millis(18);
        assert_eq!(line.due_at(), Some(until));
        line.after(Duration::from_millis(17));
        assert_eq!((line.send(1), line.due_at()), (vec![], Some(until)));
        line.after(Duration::from_millis(1));
        assert_eq!(line.send(1), [(1, 100)]);
    }

    /// §IV-B b: Ps counts packets, of which (1 + epsilon) K / r are enough with r symbols in each.
    #[test]
    fn dropped_symbols_count_in_packets() {
        let mut line = line("", 3, 100).announced();
        for nth in 0..20 {
            assert_eq!(line.packet(8), (0..8).map(|esi| (0, 100 + 8 * nth + esi)).collect::<Vec<_>>());
        }
        line.acknowledge(0);
        assert_eq!(line.packet(8), []);
        // 20 - 101 / 8 packets.
        assert_eq!(line.due_at(), Some(line.now + Duration::from_nanos(7_375 * 300)));
        line.after(Duration::from_millis(3));
        // For a block whose path MTU shrank meanwhile: 16 symbols in two packets, 144 one by one, 1.096 per packet on
        // average.
        let sent: usize = (0..2).map(|_| line.packet(8).len()).sum();
        assert_eq!((sent, line.send(144).len()), (16, 144));
        line.acknowledge(1);
        assert_eq!(line.packet(8), []);
        let dropped = 146.0 - 101.0 * 146.0 / 160.0;
        let due = line.due_at().expect("it waits").since(line.now).as_secs_f64();
        assert!((due - dropped * 0.3e-3).abs() < 1e-9, "{due}");
    }

    /// A packet has symbols of one block only: if the next symbol is of another block, it waits for the next packet.
    #[test]
    fn a_packet_ends_with_its_block() {
        let mut line = line("blocks=2,wait=0ms", 3, 10).announced();
        let packet = |block: u32, esi: std::ops::Range<u32>| esi.map(|esi| (block, esi)).collect::<Vec<_>>();
        let expected = [packet(0, 10..18), packet(0, 18..21), packet(1, 10..18), packet(1, 18..21)];
        for expected in expected {
            assert_eq!(line.packet(8), expected);
        }
        // All have had enough: they alternate, symbol by symbol.
        assert_eq!([line.packet(8), line.packet(8)], [packet(0, 21..22), packet(1, 21..22)]);
        // The symbol held for the next packet is obsolete: its block is done.
        line.acknowledge(0);
        assert_eq!(line.packet(8), packet(2, 10..18));
    }

    /// §IV-B b: a block not yet encoded is sent as soon as it is.
    #[test]
    fn an_unencoded_block_is_sent_once_encoded() {
        let mut line = line("ahead=0", 2, 100).announced();
        line.send(161);
        line.acknowledge(0);
        line.holds_replies = true;
        assert_eq!(line.send(1), []);
        assert_eq!(line.due_at(), None, "it waits for the encoder alone");
        line.reply();
        assert_eq!(line.send(1), [(1, 100)]);
    }

    /// Nothing dropped, or no wait configured: no silence.
    #[test]
    fn no_silence_without_drops() {
        let mut lossless = line("", 2, 100).announced();
        lossless.send(101);
        lossless.acknowledge(0);
        assert_eq!(lossless.send(1), [(1, 100)]);
        let mut eager = line("wait=0ms", 2, 100).announced();
        eager.send(400);
        eager.acknowledge(0);
        assert_eq!(eager.send(1), [(1, 100)]);
    }

    #[test]
    fn of_several_blocks_each_has_enough_before_any_has_more() {
        let mut line = line("blocks=2,wait=0ms", 3, 10).announced();
        let sent: Vec<u32> = line.send(28).into_iter().map(|(block, _)| block).collect();
        let expected = [[0; 11].as_slice(), &[1; 11], &[0, 1, 0, 1, 0, 1]].concat();
        assert_eq!(sent, expected);
        line.acknowledge(1);
        let sent: Vec<u32> = line.send(12).into_iter().map(|(block, _)| block).collect();
        assert_eq!(sent, [[2; 11].as_slice(), &[0]].concat());
    }

    /// Sending does not wait for the encoder while symbols are left: more are ordered when an eighth of K is.
    #[test]
    fn symbols_are_made_before_they_run_out() {
        let mut line = line("ahead=0", 1, 800).announced();
        line.send(1);
        line.holds_replies = true;
        let before = line.send(10_000).len();
        assert_eq!(before, 807, "all encoded ones");
        assert_eq!(line.encodes, [(0, 808), (0, 200)]);
        line.reply();
        assert_eq!(line.send(1), [(0, 1_608)]);
    }

    /// A code without further symbols sends its source, and retransmits lost symbols.
    #[test]
    fn a_code_that_has_no_repair_is_carried_all_the_same() {
        let mut line = flow("block-at-a-time", "uncoded", &[4; 2]).announced();
        assert_eq!(line.send(9), [(0, 0), (0, 1), (0, 2), (0, 3)]);
        line.lose(0, 2);
        assert_eq!(line.send(9), [(0, 2)]);
        line.acknowledge(0);
        assert_eq!(line.send(9), []);
        line.after(Duration::from_millis(1));
        assert_eq!(line.send(9), [(1, 0), (1, 1), (1, 2), (1, 3)]);
    }
}
