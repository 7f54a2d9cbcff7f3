use super::super::SendFlow;
use super::*;
use crate::flow::ScheduleConfig;
use erasure::BlockCode;

const PATH: PathEstimate = PathEstimate { rtt: None, loss: 0.0, burst: 1.0, window: 100 };

/// These sizes one after the other, then the last one forever.
#[derive(Debug)]
struct ByTurns(Vec<(u32, BlockCode)>);

impl BlockSizer for ByTurns {
    fn next(&mut self, _left: u64, _path: &PathEstimate) -> (u32, BlockCode) {
        if self.0.len() > 1 { self.0.remove(0) } else { self.0[0] }
    }
}

/// An object of `symbols` symbols of 10 bytes, the first block of which has 4.
fn object(symbols: u64, turns: Vec<(u32, BlockCode)>) -> SendFlow {
    let flow = FlowId(1);
    let plan = Plan { flow, number: 0, first_block: 0, first_symbol: 0, k: 4, code: BlockCode::RaptorQ };
    let announcement =
        Announcement { flow, length: symbols * 10, symbol_size: 10, symbols_per_packet: 1, tag: 0, plan };
    let mut object = SendFlow::object(announcement, &[], ScheduleConfig::Arq.build(), false).expect("a plan that fits");
    object.set_sizer(Some(Box::new(ByTurns(turns))), 100);
    object
}

fn plans(object: &SendFlow) -> Vec<Plan> {
    (0..=u8::MAX).map_while(|number| object.plan(number)).collect()
}

/// Opens all blocks; returns the offset and length of each.
fn open_all(object: &mut SendFlow) -> Vec<(u64, usize)> {
    let (mut credit, mut pool) = (SendCredit::default(), Pool::default());
    credit.grant(1_000_000);
    let mut opened = Vec::new();
    while let Some(request) = object.open_object_block(&mut credit, u64::MAX, &PATH, &mut pool) {
        let WorkRequest::Read { offset, length, .. } = request else { panic!("{request:?}") };
        opened.push((offset, length));
    }
    opened
}

#[test]
fn each_block_has_the_size_of_its_sizer() {
    use BlockCode::{RaptorQ, ReedSolomon};
    let mut object = object(20, vec![(4, RaptorQ), (6, RaptorQ), (6, ReedSolomon), (1_000_000, ReedSolomon)]);
    assert_eq!(open_all(&mut object), [(0, 40), (40, 40), (80, 60), (140, 60)], "the last has the rest");
    let plans: Vec<_> = plans(&object).iter().map(|p| (p.number, p.first_block, p.k, p.code)).collect();
    assert_eq!(plans, [(0, 0, 4, RaptorQ), (1, 2, 6, RaptorQ), (2, 3, 6, ReedSolomon)]);
    assert_eq!(object.blocks().source_left(), 20);
    assert_eq!(object.further_plans(), 1..3);
}

/// No block is larger than the receiver accepts, whatever the sizer returns.
#[test]
fn blocks_keep_to_the_receivers_limit() {
    let mut object = object(300, vec![(100_000, BlockCode::RaptorQ)]);
    let lengths: Vec<usize> = open_all(&mut object).into_iter().map(|(_, length)| length).collect();
    assert_eq!(lengths, [40, 1_000, 1_000, 960]);
}

/// When plans run out the last one stays, and it is not for a small block.
#[test]
fn there_are_255_plans_at_most() {
    // Two and three symbols in turn, then one more with each block.
    let k = |nth: u32| if nth < 300 { 2 + nth % 2 } else { nth - 290 };
    let mut object = object(5_000, (0..390).map(|nth| (k(nth), BlockCode::RaptorQ)).collect());
    let opened = open_all(&mut object);
    let plans: Vec<u32> = plans(&object).iter().map(|plan| plan.k).collect();
    assert_eq!((plans.len(), &plans[236..240], plans[254]), (255, &[3, 2, 3, 10][..], 25));
    assert_eq!(opened.iter().map(|(_, length)| *length as u64).sum::<u64>(), 50_000);
    assert!(opened[316..opened.len() - 1].iter().all(|(_, length)| *length == 250));
}

/// After symbols shrink, the source left to send is counted by the plans in force.
#[test]
fn a_plan_after_a_shrink_counts_the_rest() {
    let mut object = object(50, vec![(7, BlockCode::RaptorQ), (3, BlockCode::RaptorQ)]);
    object.succeed(FlowId(2), 6).expect("more than half");
    open_all(&mut object);
    let symbols: u64 =
        (0..object.blocks().next_number()).filter_map(|n| object.blocks().block(n)).map(|b| u64::from(b.k())).sum();
    assert_eq!(object.blocks().source_left(), symbols);
}
