use super::*;
use crate::flow::ScheduleConfig;
use crate::wire::BlockStatus;
use erasure::BlockCode;

/// The flow's own count, which must be what a scan finds.
fn lacking(flow: &FlowSender) -> usize {
    let scanned = flow.view.open_blocks().filter(|block| block.need() > 0).count();
    assert_eq!(flow.view.lacking, scanned);
    scanned
}

#[test]
fn blocks_that_the_receiver_needs_something_of_are_counted() {
    let mut flow = FlowSender::new(FlowId(1), 8, 0, ScheduleConfig::Arq.build());
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
    let hear = |flow: &mut FlowSender, status| flow.on_status(&status, &mut Pool::default(), &mut |_| {});
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
    assert_eq!(lacking(&flow), 3, "5 begins anew");
    flow.give_up();
    assert_eq!(lacking(&flow), 0);
}
