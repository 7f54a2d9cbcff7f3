//! lt-tcp §3.5 wants packets in flight counted block by block, as a single count would drift. Blocks have these counts,
//! and the flight, which counts packet by packet, is their sum: no packet is counted beyond the time when its outcome
//! is known.

use crate::tests::flow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use transport::flow::SendBlock;
use transport::flow::schedule::TestFlow;
use transport::recovery::{AckInfo, Cause, Content, Recovery, RecoveryConfig, SendAllowance, SentPacket, Timeout};
use transport::time::Time;
use transport::wire::{FlowId, PacketRanges, SymbolId};

const BLOCKS: u32 = 6;
const RTT: Duration = Duration::from_millis(50);

/// lt-tcp's schedule over six blocks of eight symbols, and the packets in flight that carry its symbols.
struct Rig {
    line: TestFlow,
    recovery: Recovery,
    /// The block of each packet without a known outcome.
    open: BTreeMap<u64, u32>,
    sent: Vec<SymbolId>,
    arrived: BTreeSet<u64>,
    now: Time,
}

impl Rig {
    fn new() -> Self {
        let mut line = flow("proactive", "reed-solomon", &[8; BLOCKS as usize]).announced();
        line.path.loss = 0.1;
        let choice = |text: &str| text.parse().expect("a choice");
        let config = RecoveryConfig {
            congestion: "fixed-rate:1G".parse().expect("a controller"),
            timeout: choice("rto:min=200ms,max=5s"),
            ..RecoveryConfig::default()
        };
        let mut recovery = Recovery::new(&config, Time::ZERO, 28);
        recovery.set_rtt_from_handshake(Time::ZERO, RTT);
        let (open, sent, arrived) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        Self { line, recovery, open, sent, arrived, now: Time::ZERO }
    }

    /// Sends at most `most` symbols; returns how many were sent.
    fn send(&mut self, most: usize) -> usize {
        let mut count = 0;
        while count < most {
            match self.recovery.send_allowance(self.now) {
                SendAllowance::Wait(until) => {
                    self.now = until;
                    continue;
                }
                SendAllowance::Blocked => break,
                SendAllowance::Bytes(_) => {}
            }
            let Some(&(block, esi)) = self.line.send(1).first() else { break };
            let id = SymbolId { flow: FlowId(1), block, esi };
            let number = self.sent.len() as u64;
            let sent = SentPacket { number, time: self.now, bytes: 1_000, content: Content::Symbols(id.into()) };
            self.recovery.on_sent(sent, false);
            self.sent.push(id);
            self.open.insert(number, block);
            count += 1;
        }
        self.check();
        count
    }

    /// Delivers these packets as well; feedback reports it a round trip later.
    fn hear(&mut self, numbers: impl IntoIterator<Item = u64>) {
        self.now += RTT;
        self.arrived.extend(numbers);
        if self.arrived.is_empty() {
            return;
        }
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &number in self.arrived.iter().rev() {
            match ranges.last_mut() {
                Some(last) if last.0 == number + 1 => last.0 = number,
                _ => ranges.push((number, number)),
            }
        }
        let packets = PacketRanges { delay_micros: 0, ranges };
        self.recovery.on_feedback(self.now, AckInfo::Ranges(&packets), None).expect("all were sent");
        self.learn();
    }

    /// Passes the results of recovery to the blocks, as a connection does.
    fn learn(&mut self) {
        let Self { recovery, line, open, .. } = self;
        let report = recovery.report();
        let of = |sent: &SentPacket| match sent.content {
            Content::Symbols(run) => run.first,
            other => panic!("{other:?}"),
        };
        for sent in report.delivered {
            open.remove(&sent.number);
            line.deliver(of(sent));
        }
        for sent in report.lost {
            open.remove(&sent.number);
            line.declare_lost(of(sent));
        }
        report.spurious.iter().for_each(|sent| line.take_back(of(sent)));
        line.report(&report);
        self.check();
    }

    /// Lets the timeout expire.
    fn time_out(&mut self) {
        self.now = self.recovery.next_timeout().expect("something is in flight");
        assert_eq!(self.recovery.on_timeout(self.now), Timeout::Lost);
        self.learn();
    }

    /// Returns the symbols in flight of each block, and of those that the receiver has.
    fn counts(&self) -> (Vec<u32>, u32) {
        let block = |number| self.line.blocks().block(number).filter(|block| !block.is_done());
        let retired = self.open.values().filter(|&&number| block(number).is_none()).count();
        ((0..BLOCKS).map(|number| block(number).map_or(0, SendBlock::in_flight)).collect(), retired as u32)
    }

    /// Checks that the flight is the sum of its blocks and of symbols of retired ones still in flight.
    fn check(&self) {
        let (blocks, retired) = self.counts();
        let of = |number: u32| self.open.values().filter(|&&block| block == number).count() as u32;
        for (number, &count) in (0..).zip(&blocks) {
            assert!(count == 0 || count == of(number), "block {number}: {count} of {blocks:?}");
        }
        assert_eq!(blocks.iter().sum::<u32>() + retired, self.recovery.packets_in_flight() as u32, "{blocks:?}");
        assert_eq!(self.recovery.bytes_in_flight(), 1_000 * self.recovery.packets_in_flight() as u64);
    }
}

/// §3.5 sentence by sentence.
#[test]
fn a_block_counts_sent_symbols_less_those_that_left() {
    let mut rig = Rig::new();
    let mut symbols = 0;
    while rig.sent.last().is_none_or(|id| id.block < 3) {
        symbols += rig.send(1);
    }
    let (blocks, retired) = rig.counts();
    let whole = blocks[0];
    assert!(whole > 8, "source and proactive repair");
    assert_eq!((&blocks[..4], retired, symbols as u32), (&[whole, whole, whole, 1][..], 0, 3 * whole + 1));
    let whole = u64::from(whole);

    // Acknowledged, or declared lost by the detector of §3.3: both have left.
    rig.hear((0..whole).filter(|number| *number != 2 && *number != whole - 1));
    assert_eq!(rig.counts().0[..2], [1, whole as u32], "its last packet has not been overtaken by three");
    rig.hear(whole..whole + 3);
    assert_eq!(rig.counts().0[..2], [0, whole as u32 - 3]);

    // A block retired with packets in flight: they are in no block's count any more, but in the flight until their
    // outcome is known.
    rig.line.acknowledge(0);
    rig.line.acknowledge(1);
    let (blocks, retired) = rig.counts();
    assert_eq!((blocks[1], u64::from(retired)), (0, whole - 3));
    rig.check();

    // A timeout: nothing is in flight of any block, including the retired ones.
    rig.time_out();
    assert_eq!((rig.recovery.report().cause, rig.counts()), (Cause::Timeout, (vec![0; BLOCKS as usize], 0)));
    assert_eq!((rig.recovery.packets_in_flight(), rig.recovery.bytes_in_flight()), (0, 0));

    // A later acknowledgement counts towards completeness, but not as having left: the count covers packets sent since.
    let first = rig.sent.len() as u64;
    let again = rig.send(4) as u32;
    let (before, need) = (rig.counts(), rig.line.blocks().block(2).expect("open").need());
    assert_eq!(before.0.iter().sum::<u32>(), again);
    rig.hear(2 * whole..2 * whole + 3);
    assert_eq!(rig.line.blocks().block(2).expect("open").need(), need - 3, "towards completeness");
    assert_eq!(rig.counts(), before, "and nothing else");
    rig.hear(first..first + u64::from(again));
    assert_eq!(rig.counts(), (vec![0; BLOCKS as usize], 0));
}

/// The single counter of §3.5 drifts as blocks are received while packets of theirs are in flight. This one ends at
/// zero, whatever arrives in whatever order.
#[test]
fn nothing_is_left_over_when_all_is_known() {
    for seed in 0..200u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        let mut rig = Rig::new();
        for _ in 0..200 {
            match below(10) {
                0..4 => _ = rig.send(below(12) as usize),
                4..8 if !rig.sent.is_empty() => {
                    // Old or new, lost or not; some never.
                    let number = rig.sent.len() as u64 - 1 - below(rig.sent.len().min(20) as u64);
                    rig.hear((!number.is_multiple_of(7)).then_some(number));
                }
                8 => rig.line.acknowledge(below(BLOCKS.into()) as u32),
                _ if rig.recovery.packets_in_flight() > 0 && rig.recovery.next_timeout().is_some() => {
                    rig.now = rig.now.max(rig.recovery.next_timeout().expect("it is set"));
                    if rig.recovery.on_timeout(rig.now) == Timeout::Lost {
                        rig.learn();
                    }
                }
                _ => {}
            }
        }
        (0..BLOCKS).for_each(|block| rig.line.acknowledge(block));
        while rig.recovery.packets_in_flight() > 0 {
            rig.now = rig.now.max(rig.recovery.next_timeout().expect("it is set"));
            if rig.recovery.on_timeout(rig.now) == Timeout::Lost {
                rig.learn();
            }
        }
        assert_eq!((rig.counts(), rig.recovery.bytes_in_flight()), ((vec![0; BLOCKS as usize], 0), 0), "seed {seed}");
    }
}
