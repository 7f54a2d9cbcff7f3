use super::*;
use crate::flow::ScheduleConfig;
use crate::wire::{BlockId, BlockStatus};
use erasure::BlockCode;
use std::time::Duration;

/// Returns the flow's own count, after checking it against a scan.
fn lacking(flow: &BlockSender) -> usize {
    let scanned = flow.blocks.open_blocks().filter(|block| block.need() > 0).count();
    assert_eq!(flow.blocks.lacking, scanned);
    scanned
}

#[test]
fn blocks_that_the_receiver_needs_something_of_are_counted() {
    let mut flow = BlockSender::new(FlowId(1), 8, 0, ScheduleConfig::Arq.build());
    for number in 0..6 {
        let code = BlockCode::Uncoded;
        flow.add_source(2);
        flow.open(BlockShape { number, plan: 0, k: 2, code, offset: 0, length: 16, cost: 2 });
        flow.block_mut(number).expect("it is open").fill(vec![0; 16]);
    }
    let id = |block, esi| SymbolId { flow: FlowId(1), block, esi };
    let status = |done_below, blocks: &[(u32, u32)]| {
        let blocks = blocks.iter().map(|&(block, need)| BlockStatus { block, need }).collect();
        FlowStatus { flow: FlowId(1), done_below, blocks }
    };
    let hear = |flow: &mut BlockSender, status| flow.on_status(&status, &mut Pool::default(), &mut |_| {});
    assert_eq!(lacking(&flow), 6);
    flow.on_delivered(id(0, 0));
    assert_eq!(lacking(&flow), 6, "half of it");
    flow.on_delivered(id(0, 1));
    flow.on_delivered(id(0, 1));
    assert_eq!(lacking(&flow), 5, "all of it");
    flow.on_lost(id(1, 0));
    flow.on_delivered(id(1, 1));
    flow.on_spurious(id(1, 0));
    assert_eq!(lacking(&flow), 4, "late, and all of it");
    hear(&mut flow, status(0, &[(1, 1), (3, 0), (3, 2), (5, 1), (9, 1)]));
    assert_eq!(lacking(&flow), 4, "1 needs something after all, 3 is done");
    flow.on_delivered(id(5, 0));
    assert_eq!(lacking(&flow), 3);
    hear(&mut flow, status(2, &[]));
    assert_eq!(lacking(&flow), 2, "2 and 4");
    flow.succeed(FlowId(1), 4, 0, |_| 4);
    assert_eq!(lacking(&flow), 3, "5 starts over");
    flow.abandon();
    assert_eq!(lacking(&flow), 0);
}

const PATH: PathEstimate = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };

/// Repair of block 0, ten symbols at a time; a pause after each ten.
#[derive(Debug)]
struct RepairAlone;

impl Schedule for RepairAlone {
    fn next(&mut self, now: Time, flow: &SendBlocks, _path: &PathEstimate) -> ScheduleAction {
        let block = flow.block(0).expect("it is open");
        let id = BlockId { flow: flow.id(), block: 0 };
        if let Some(lost) = flow.last_resort_of(block) {
            return ScheduleAction::Retransmit(lost);
        }
        match block.repair_ready() {
            0 if block.can_prepare() => ScheduleAction::EncodeRepair { block: id, count: 10 },
            0 => ScheduleAction::Wait(now + Duration::from_millis(7)),
            _ => ScheduleAction::Repair(id),
        }
    }

    fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}

    fn sends_source(&self) -> bool {
        false
    }

    fn resends(&self) -> bool {
        false
    }
}

fn repair_alone(code: BlockCode, k: u32) -> BlockSender {
    let mut flow = BlockSender::new(FlowId(1), 8, k.into(), Box::new(RepairAlone));
    let length = 8 * k as usize;
    flow.open(BlockShape { number: 0, plan: 0, k, code, offset: 0, length, cost: k });
    flow.block_mut(0).expect("it is open").fill((0..length).map(|at| at as u8).collect());
    flow
}

/// Does all outstanding work and returns the number of the next symbol, after checking its bytes against the code.
fn next_esi(flow: &mut BlockSender) -> Option<u32> {
    loop {
        match flow.next(Time::ZERO, &PATH, false, true) {
            Pick::Symbol(picked) => {
                assert_eq!(flow.symbol(picked.id).len(), 8);
                return Some(picked.id.esi);
            }
            Pick::Request(request) => match request.run_pure() {
                Ok(crate::flow::WorkReply::Encoded(job)) => flow.on_encoded(job),
                other => panic!("{other:?}"),
            },
            Pick::Idle | Pick::Failed => return None,
        }
    }
}

#[test]
fn a_block_of_repair_alone_sends_no_source() {
    let mut flow = repair_alone(BlockCode::PrecodedLt, 4);
    assert_eq!(flow.source_left(), 4, "at least as many symbols must be sent");
    let sent: Vec<_> = (0..25).map_while(|_| next_esi(&mut flow)).collect();
    assert_eq!(sent, (4..29).collect::<Vec<_>>());
    assert_eq!((flow.source_left(), flow.blocks.more_to_come(), flow.blocks.source_ready()), (0, false, false));
    let block = flow.block(0).expect("it is open");
    assert_eq!((block.source_sent(), block.repair_sent(), block.in_flight()), (0, 25, 25));
    // A probe carries an encoded symbol, and no source.
    assert_eq!(flow.probe().map(|picked| picked.id.esi), Some(29));
}

/// When a code has no more repair, source is the last resort: a transfer must not stall without symbols.
#[test]
fn when_repair_runs_out_source_goes_out() {
    let mut flow = repair_alone(BlockCode::Raptor, 4);
    let limit = BlockCode::Raptor.symbol_limit(4);
    let sent: Vec<_> = (4..limit).map_while(|_| next_esi(&mut flow)).collect();
    assert_eq!(sent.len() as u32, limit - 4);
    let source: Vec<_> = (0..9).map_while(|_| next_esi(&mut flow)).collect();
    assert_eq!(source, [0, 1, 2, 3], "once");
    assert_eq!(flow.due_at(), Some(Time::ZERO + Duration::from_millis(7)), "then it waits");
    flow.on_lost(SymbolId { flow: FlowId(1), block: 0, esi: 2 });
    assert_eq!(next_esi(&mut flow), Some(2));
}

/// A code that cannot do without source keeps it.
#[test]
fn other_codes_keep_their_source() {
    let mut flow = repair_alone(BlockCode::ReedSolomon, 4);
    assert!(!flow.block(0).expect("it is open").is_repair_only());
    assert!(flow.blocks.source_ready());
    assert_eq!(next_esi(&mut flow), Some(4), "as the schedule decides");
    assert_eq!(flow.source_left(), 4);
}

/// The number of symbols made ahead follows the number left, and those sent are dropped.
#[test]
fn repair_made_ahead_follows_the_rest() {
    let mut flow = repair_alone(BlockCode::PrecodedLt, 4);
    let block =
        |flow: &BlockSender| (0..40).map(|n| flow.blocks.block(0).expect("open").symbol(4 + n).to_vec()).collect();
    let all: Vec<Vec<u8>> = {
        let request = flow.block_mut(0).and_then(|block| block.prepare(FlowId(1), 40)).expect("it can");
        let Ok(crate::flow::WorkReply::Encoded(job)) = request.run_pure() else { panic!("it is pure") };
        flow.on_encoded(job);
        block(&flow)
    };
    let mut flow = repair_alone(BlockCode::PrecodedLt, 4);
    for nth in 0..40u32 {
        let ready = flow.blocks.block(0).expect("open").repair_ready();
        if ready < 5 {
            let request = flow.block_mut(0).and_then(|block| block.prepare(FlowId(1), 10)).expect("it can");
            let Ok(crate::flow::WorkReply::Encoded(job)) = request.run_pure() else { panic!("it is pure") };
            flow.on_encoded(job);
        }
        let id = flow.take_repair(0).expect("one is ready").id;
        assert_eq!(id.esi, 4 + nth);
        assert_eq!(flow.symbol(id), all[nth as usize], "symbol {nth}");
        assert!(flow.blocks.block(0).expect("open").memory_of_repair() <= 15 * 8);
    }
}
