//! The order in which the schedules that repair ahead of losses send the symbols of a flow.

use super::*;
use crate::flow::layout::BlockShape;
use crate::flow::pool::Pool;
use crate::flow::sender::{FlowSender, Picked, Step, SymbolKind};
use crate::flow::{EncodeJob, Reply, Request};
use crate::recovery::Cause;
use crate::wire::{BlockStatus, FlowId, FlowStatus};
use erasure::BlockCode;
use erasure::tornado::Rate;

const FLOW: FlowId = FlowId(1);
const SIZE: usize = 8;

/// A flow and its path, driven by hand.
struct Bench {
    flow: FlowSender,
    path: PathEstimate,
    /// Repair is made at once, and not when [`Bench::encode`] is called.
    at_once: bool,
    jobs: Vec<EncodeJob>,
}

impl Bench {
    fn new(schedule: &ScheduleConfig, loss: f64) -> Self {
        let path = PathEstimate { rtt: Some(Duration::from_millis(50)), loss, burst: 1.0, window: 100 };
        Self { flow: FlowSender::new(FLOW, SIZE, 0, schedule.build()), path, at_once: true, jobs: Vec::new() }
    }

    /// Opens a block of `k` source symbols, whose bytes are there.
    fn open(&mut self, k: u32, code: BlockCode) {
        let number = self.flow.next_number();
        self.flow.add_source(k);
        self.flow.open(BlockShape { number, plan: 0, k, code, offset: 0, length: k as usize * SIZE, cost: k });
        self.flow.block_mut(number).expect("open").fill(vec![7; k as usize * SIZE]);
    }

    fn encode(&mut self) {
        for job in std::mem::take(&mut self.jobs) {
            let Ok(Reply::Encoded(job)) = Request::Encode(job).run_pure() else { panic!("encoding is pure") };
            self.flow.on_encoded(job);
        }
    }

    /// Up to `most` symbols that go out now, as `block:esi`, `+` where repair, `again` where sent before; `?` where repair is asked for.
    fn send(&mut self, most: usize) -> String {
        let mut log = Vec::new();
        while log.len() < most {
            match self.flow.next(Time::ZERO, &self.path, false) {
                Step::Symbol(Picked { id, kind, .. }) => log.push(match kind {
                    SymbolKind::Source => format!("{}:{}", id.block, id.esi),
                    SymbolKind::Repair | SymbolKind::Coded => format!("{}:+{}", id.block, id.esi),
                    SymbolKind::Resent => format!("{}:{} again", id.block, id.esi),
                }),
                Step::Request(Request::Encode(job)) => {
                    log.push(format!("{}?{}", job.block, job.count));
                    self.jobs.push(job);
                    if self.at_once {
                        self.encode();
                    }
                }
                Step::Request(other) => panic!("{other:?}"),
                Step::Failed => {
                    log.push("gives up".into());
                    break;
                }
                Step::Idle => break,
            }
        }
        log.join(" ")
    }

    /// What is heard of symbols: those lost, those that arrived.
    fn hear(&mut self, lost: &[(u32, u32)], delivered: &[(u32, u32)]) {
        let id = |&(block, esi): &(u32, u32)| SymbolId { flow: FLOW, block, esi };
        lost.iter().for_each(|symbol| self.flow.on_lost(id(symbol)));
        delivered.iter().for_each(|symbol| self.flow.on_delivered(id(symbol)));
        self.flow.on_report(&nothing_new());
    }

    fn done(&mut self, block: u32) {
        let blocks = vec![BlockStatus { block, need: 0 }];
        self.flow.on_status(&FlowStatus { flow: FLOW, done_below: 0, blocks }, &mut Pool::default(), &mut |_| {});
        self.hear(&[], &[]);
    }
}

/// A report that only says that something was heard.
const fn nothing_new() -> Report<'static> {
    Report {
        now: Time::ZERO,
        cause: Cause::Feedback,
        delivered: &[],
        lost: &[],
        spurious: &[],
        outlived: &[],
        delivered_bytes: 0,
        lost_bytes: 0,
        newly_marked: 0,
        rtt: None,
        rate_sample: None,
        in_flight_before: 0,
        app_limited: false,
    }
}

mod proactive {
    use super::*;

    /// A flow of lt-tcp with these blocks of a code that decodes from any k.
    fn bench(loss: f64, blocks: &[u32]) -> Bench {
        let mut bench = Bench::new(&ScheduleConfig::Proactive(ProactiveConfig { failure: 0.05 }), loss);
        blocks.iter().for_each(|k| bench.open(*k, BlockCode::ReedSolomon));
        bench
    }

    #[test]
    fn repair_follows_the_source_of_its_block() {
        // Of 5 symbols 2 or more are lost with chance 0.081 at 10 %, of 6 more than 2 with 0.016; of 1 and 1 both with 0.01.
        assert_eq!(bench(0.1, &[4, 1]).send(99), "0?2 0:0 0:1 0:2 0:3 0:+4 0:+5 1?1 1:0 1:+1");
        assert_eq!(bench(0.0, &[2, 2]).send(99), "0:0 0:1 1:0 1:1", "nothing is coded where nothing is lost");
    }

    #[test]
    fn the_amount_is_fixed_when_coding_begins() {
        let mut bench = bench(0.1, &[4, 4]);
        assert_eq!(bench.send(2), "0?2 0:0");
        bench.path.loss = 0.0;
        assert_eq!(bench.send(99), "0:1 0:2 0:3 0:+4 0:+5 1:0 1:1 1:2 1:3");
    }

    #[test]
    fn source_goes_on_while_repair_is_made() {
        let mut bench = bench(0.1, &[2, 2]);
        bench.at_once = false;
        assert_eq!(bench.send(99), "0?1 0:0 0:1 1?1 1:0 1:1");
        bench.encode();
        assert_eq!(bench.send(99), "0:+2 1:+2");
    }

    #[test]
    fn reactive_repair_comes_when_more_is_lost_than_was_added() {
        let mut bench = bench(0.1, &[4]);
        assert_eq!(bench.send(99), "0?2 0:0 0:1 0:2 0:3 0:+4 0:+5");
        bench.hear(&[(0, 0), (0, 5)], &[(0, 1)]);
        assert_eq!(bench.send(99), "", "two lost of two more");
        bench.hear(&[(0, 2)], &[]);
        assert_eq!(bench.send(99), "0?1 0:+6", "the third");
        bench.hear(&[(0, 6), (0, 4)], &[]);
        assert_eq!(bench.send(99), "0?2 0:+7 0:+8", "reactive repair is lost too");
        bench.done(0);
        assert_eq!(bench.send(99), "");
    }

    #[test]
    fn reactive_repair_waits_for_the_first_n() {
        let mut bench = bench(0.1, &[4, 4]);
        assert_eq!(bench.send(4), "0?2 0:0 0:1 0:2");
        bench.hear(&[(0, 0), (0, 1), (0, 2)], &[]);
        assert_eq!(
            bench.send(99),
            "0:3 0:+4 0:+5 0?1 0:+6 1?2 1:0 1:1 1:2 1:3 1:+4 1:+5",
            "then before the next block"
        );
    }

    #[test]
    fn what_comes_after_a_timeout_counts_for_the_block() {
        let mut bench = bench(0.0, &[2]);
        assert_eq!(bench.send(99), "0:0 0:1");
        bench.hear(&[(0, 0), (0, 1)], &[]);
        assert_eq!(bench.send(2), "0?2 0:+2");
        bench.flow.on_spurious(SymbolId { flow: FLOW, block: 0, esi: 1 });
        bench.hear(&[], &[]);
        assert_eq!(bench.send(99), "", "the one late and the one in flight will do");
    }

    #[test]
    fn a_code_without_further_symbols_has_lost_source_sent_again() {
        let mut bench = bench(0.0, &[128]);
        assert_eq!(bench.send(999).split(' ').count(), 128);
        let all = |from: u32, to: u32| (from..to).map(|esi| (0, esi)).collect::<Vec<_>>();
        bench.hear(&all(0, 128), &[]);
        assert!(bench.send(999).ends_with("0:+254 0:+255"));
        bench.hear(&all(130, 256), &[(0, 128), (0, 129)]);
        let sent = bench.send(999);
        assert!(sent.starts_with("0:0 again 0:1 again") && sent.ends_with("0:125 again"), "{sent}");
    }
}

mod chunks {
    use super::*;

    fn bench(config: &str, loss: f64, chunks: &[u32]) -> Bench {
        let mut bench = Bench::new(&config.parse().expect("a schedule"), loss);
        chunks.iter().for_each(|k| bench.open(*k, BlockCode::Tornado(Rate::HALF)));
        bench
    }

    #[test]
    fn the_next_chunk_is_encoded_while_one_is_sent() {
        // Of 6 symbols more than 2 are lost with chance 0.016 at 10 %, of 7 more than 3 with 0.0027.
        let mut bench = bench("chunks:padding=99%", 0.1, &[4, 4, 4]);
        bench.at_once = false;
        assert_eq!(bench.send(3), "0?3 1?3 0:0");
        bench.encode();
        assert_eq!(bench.send(9), "0:1 0:2 0:3 0:+4 0:+5 0:+6 2?3 1:0 1:1");
    }

    #[test]
    fn lost_source_of_a_chunk_that_fails_goes_again() {
        let mut bench = bench("chunks:padding=99%", 0.1, &[4, 4]);
        assert_eq!(bench.send(9), "0?3 1?3 0:0 0:1 0:2 0:3 0:+4 0:+5 0:+6");
        bench.hear(&[(0, 0), (0, 1), (0, 5)], &[]);
        assert_eq!(bench.send(1), "1:0", "the padding bears three");
        bench.hear(&[(0, 4)], &[(0, 2), (0, 3)]);
        assert_eq!(bench.send(2), "0:0 again 1:1", "the fourth, before the next chunk goes on");
        bench.hear(&[(0, 6)], &[(0, 0)]);
        assert_eq!(bench.send(2), "0:1 again 1:2");
        bench.done(0);
        assert_eq!(bench.send(99), "1:3 1:+4 1:+5 1:+6");
    }

    #[test]
    fn a_chunk_that_fails_is_given_up_where_nothing_is_mended() {
        let mut bench = bench("chunks:padding=document,mend=off", 0.5, &[4]);
        // n (1 - p) = k.
        assert_eq!(bench.send(99), "0?4 0:0 0:1 0:2 0:3 0:+4 0:+5 0:+6 0:+7");
        bench.hear(&[(0, 0), (0, 1), (0, 2), (0, 3)], &[]);
        assert_eq!(bench.send(99), "", "the others may arrive");
        bench.hear(&[(0, 4)], &[]);
        assert_eq!(bench.send(99), "gives up");
    }

    /// The chance of completion is that of the binomial, and the average half of it.
    #[test]
    fn padding_follows_the_estimate() {
        let path = |loss| PathEstimate { rtt: None, loss, burst: 5.0, window: 1 };
        let padding = |text: &str, k, loss| {
            let ScheduleConfig::Chunks(config) = text.parse().expect("a schedule") else { panic!("{text}") };
            config.padding(k, BlockCode::Tornado(Rate::HALF), &path(loss))
        };
        assert_eq!([0.0, 0.01, 0.1].map(|loss| padding("chunks", 89, loss)), [0, 5, 22]);
        assert_eq!([0.0, 0.01, 0.1].map(|loss| padding("chunks:padding=document", 89, loss)), [0, 1, 10]);
        // Beyond 120 symbols a Tornado code needs more than k, though not where all of the source arrives.
        assert_eq!(padding("chunks", 1_000, 0.0), 0);
        assert!((250..320).contains(&padding("chunks", 1_000, 0.01)), "{}", padding("chunks", 1_000, 0.01));
    }
}
