//! The feedback frame: layout, budgets, hostile bytes.

use super::*;

fn feedback() -> Feedback {
    Feedback {
        number: 7,
        packets: Some(PacketRanges { delay_micros: 9, ranges: vec![(4, 10)] }),
        ecn: Some(EcnCounts { ect0: 1, ect1: 2, ce: 3 }),
        flows: vec![FlowStatus {
            flow: FlowId(1),
            done_below: 5,
            blocks: vec![BlockStatus { block: 6, need: 0 }, BlockStatus { block: 8, need: 300 }],
        }],
        credit: Credit { symbols: 0x0102, control: 0x0304 },
        ..Feedback::default()
    }
}

#[test]
fn layout_with_every_section() {
    let bytes = [
        &[2, 0b0000_0111, 0, 0, 0, 7][..],
        &[0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4],
        // Packets: seven in a row are a bitmap of one byte.
        &[0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 9, 1, 0, 1, 0b1111_1110],
        &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3],
        // One flow, done below 5, two statuses.
        &[1, 0, 1, 0, 0, 0, 5, 0, 2, 0, 0, 0, 6, 0, 0, 0, 0, 0, 8, 1, 44],
    ];
    assert_layout(&Frame::Feedback(feedback()), &bytes.concat());
}

#[test]
fn layout_without_sections() {
    let bare = Feedback { packets: None, ecn: None, flows: vec![], ..feedback() };
    let bytes = [2, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4];
    assert_eq!(bytes.len(), MIN_FEEDBACK);
    assert_layout(&Frame::Feedback(bare), &bytes);
}

/// Blocks 0 and 1, and block 9.
const MASK: [u8; 32] = {
    let mut done = [0; 32];
    (done[0], done[1]) = (0b1100_0000, 0b0100_0000);
    done
};

/// A count of packets and a mask of blocks, in place of the long forms.
fn brief() -> Feedback {
    let count = PacketCount { largest: 258, delay_micros: 9, arrived: 200 };
    let masks = vec![BlockMask { flow: FlowId(3), done: MASK }];
    Feedback { packets: None, ecn: None, count: Some(count), flows: vec![], masks, ..feedback() }
}

#[test]
fn layout_of_a_count_and_a_mask() {
    let bytes = [
        &[2, 0b0010_1000, 0, 0, 0, 7][..],
        &[0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4],
        &[0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 200],
        &[1, 0, 3],
        &MASK,
    ];
    assert_layout(&Frame::Feedback(brief()), &bytes.concat());
    let block = |block| BlockStatus { block, need: 0 };
    let statuses = [FlowStatus { flow: FlowId(3), done_below: 2, blocks: vec![block(9)] }];
    assert_eq!(*brief().statuses(), statuses);
    let all = BlockMask { flow: FlowId(3), done: [0xff; 32] };
    assert_eq!(FlowStatus::from(&all), FlowStatus { flow: FlowId(3), done_below: 256, blocks: vec![] });
    let none = BlockMask { flow: FlowId(3), done: [0; 32] };
    assert_eq!(FlowStatus::from(&none), FlowStatus { flow: FlowId(3), done_below: 0, blocks: vec![] });
}

#[test]
fn counts_go_before_packets_and_masks_before_flows() {
    let every_other = (0..10_000).rev().map(|n| (2 * n, 2 * n)).collect();
    let packets = Some(PacketRanges { delay_micros: 0, ranges: every_other });
    let masks = (1..=10).map(|flow| BlockMask { flow: FlowId(flow), done: MASK }).collect();
    let whole = Feedback { packets, masks, flows: feedback().flows, ..brief() };
    // 400 - 22 - 20 leaves 358: packets get half, 179, of which 164 bytes of bitmap, and 5 masks (171) fit in the rest.
    let decoded = within(&whole, 400).unwrap();
    assert_eq!(decoded.count, whole.count);
    assert_eq!(decoded.packets.unwrap().ranges.len(), 164 * 4);
    assert_eq!(decoded.masks, whole.masks[..5]);
    assert_eq!(decoded.flows, []);
    assert_eq!(within(&brief(), MIN_FEEDBACK + 19).unwrap().count, None);
    assert_eq!(within(&brief(), MIN_FEEDBACK + 20 + 34).unwrap().masks, []);
    assert_eq!(within(&brief(), MIN_FEEDBACK + 20 + 35), Some(brief()));
}

/// A receiver removes complete flows once the sender has seen a feedback that reports them: no mask may take their
/// room.
#[test]
fn complete_flows_have_room_before_masks() {
    let masks: Vec<_> = (100..200).map(|flow| BlockMask { flow: FlowId(flow), done: MASK }).collect();
    let complete = |flow| FlowStatus { flow: FlowId(flow), done_below: 7, blocks: vec![] };
    let open = feedback().flows[0].clone();
    let flows: Vec<_> = (1..=32).map(complete).chain([open, complete(40)]).collect();
    let whole = Feedback { packets: None, flows: flows.clone(), masks: masks.clone(), ..brief() };
    // 1100 - 22 - 20 leaves 1058: 257 for complete flows, 23 masks (783), and the last flow's head in the remaining 18,
    // with a block.
    let decoded = within(&whole, 1_100).unwrap();
    assert_eq!((decoded.masks.len(), decoded.flows.len()), (23, 33));
    assert_eq!(decoded.flows[..32], flows[..32]);
    let crowd = Feedback { flows: (1..=90).map(complete).collect(), ..whole };
    assert_eq!(within(&crowd, 1_100).unwrap().masks.len(), 23, "nor do flows without end take that of masks");
}

fn within(feedback: &Feedback, budget: usize) -> Option<Feedback> {
    let mut bytes = Vec::new();
    let written = feedback.encode_within(budget, &mut bytes);
    assert_eq!(written, bytes.len());
    assert!(written <= budget, "{written} bytes in a budget of {budget}");
    (written > 0).then(|| match read_one(&bytes) {
        Ok(Frame::Feedback(read)) => read,
        other => panic!("{other:?}"),
    })
}

#[test]
fn number_and_credit_always_fit() {
    let whole = feedback();
    assert_eq!(within(&whole, MIN_FEEDBACK - 1), None);
    let bare = Feedback { packets: None, ecn: None, flows: vec![], ..feedback() };
    assert_eq!(within(&whole, MIN_FEEDBACK), Some(bare));
    assert_eq!(within(&whole, usize::MAX), Some(whole.clone()));
    let mut bytes = Vec::new();
    whole.encode_within(usize::MAX, &mut bytes);
    assert_eq!(within(&whole, bytes.len()), Some(whole));
}

#[test]
fn packets_get_at_least_half_and_blocks_the_rest() {
    let every_other = (0..10_000).rev().map(|n| (2 * n, 2 * n)).collect();
    let blocks = (0..1_000).map(|block| BlockStatus { block, need: block + 1 }).collect();
    let flows = vec![FlowStatus { flow: FlowId(1), done_below: 0, blocks }];
    let packets = Some(PacketRanges { delay_micros: 0, ranges: every_other });
    let crowded = Feedback { packets, flows, ..feedback() };
    // 1000 - 22 - 24 leaves 954: 477 for packets, of which 462 bytes of bitmap, 477 for blocks.
    let decoded = within(&crowded, 1_000).unwrap();
    assert_eq!(decoded.packets.unwrap().ranges.len(), 462 * 4);
    assert_eq!(decoded.flows[0].blocks.len(), (477 - 1 - 8) / 6);
    // Room that the blocks do not need goes to the packets.
    let calm =
        Feedback { flows: vec![FlowStatus { flow: FlowId(1), done_below: 3, blocks: vec![] }], ..crowded.clone() };
    assert_eq!(within(&calm, 1_000).unwrap().packets.unwrap().ranges.len(), (954 - 9 - 15) * 4);
    // And vice versa.
    let few = Some(PacketRanges { delay_micros: 0, ranges: vec![(0, 9)] });
    let decoded = within(&Feedback { packets: few, ..crowded }, 1_000).unwrap();
    assert_eq!(decoded.packets.unwrap().ranges, [(0, 9)]);
    assert_eq!(decoded.flows[0].blocks.len(), (954 - 17 - 9) / 6);
}

#[test]
fn a_need_beyond_16_bits_saturates() {
    let mut large = feedback();
    large.flows[0].blocks[1].need = 1 << 20;
    assert_eq!(within(&large, 200).unwrap().flows[0].blocks[1].need, 65_535);
}

#[test]
fn empty_sections_are_omitted() {
    let empty = Feedback { packets: Some(PacketRanges::default()), ..feedback() };
    assert_eq!(within(&empty, 200).unwrap().packets, None);
}

#[test]
fn hostile_sections() {
    let mut bytes = bytes_of(&Frame::Feedback(feedback()));
    for reserved in [4, 6, 7] {
        bytes[1] = 1 << reserved;
        assert_eq!(read_one(&bytes), Err(WireError::Malformed("feedback section")));
    }
    let count = |largest: u64, arrived: u64| {
        let bytes = [&[2, 0b1000][..], &[0; 20], &largest.to_be_bytes(), &[0; 4], &arrived.to_be_bytes()].concat();
        read_one(&bytes).map(drop)
    };
    assert_eq!(count(9, 10), Ok(()));
    assert_eq!(count(9, 11), Err(WireError::Malformed("count of packets")), "more than all numbers");
    assert_eq!(count(9, 0), Err(WireError::Malformed("count of packets")));
    assert_eq!(count(u64::MAX, 1), Err(WireError::Malformed("largest packet number")));
    assert_eq!(count(u64::MAX - 1, u64::MAX), Ok(()));
    let masks = |section: &[u8]| read_one(&[&[2, 0b10_0000][..], &[0; 20], section].concat()).map(drop);
    assert_eq!(masks(&[0]), Err(WireError::Malformed("masks section without a flow")));
    assert_eq!(masks(&[&[1, 0, 0][..], &MASK].concat()), Err(WireError::Malformed("flow of a mask")));
    assert_eq!(masks(&[&[255, 0, 1][..], &MASK].concat()), Err(WireError::Truncated), "255 claimed, one present");
    let flows = |section: &[u8]| {
        let bytes = [&[2, 0b100][..], &[0; 20], section].concat();
        read_one(&bytes).map(drop)
    };
    assert_eq!(flows(&[0]), Err(WireError::Malformed("flows section without a flow")));
    assert_eq!(flows(&[1, 0, 0, 0, 0, 0, 0, 0, 0]), Err(WireError::Malformed("flow of a status")));
    assert_eq!(flows(&[1, 0, 1, 0, 0, 0, 0, 255, 255]), Err(WireError::Truncated), "65,535 claimed, none present");
    let order = Err(WireError::Malformed("order of the block statuses"));
    let head = [1, 0, 1, 0, 0, 0, 5, 0, 1];
    assert_eq!(flows(&[&head[..], &[0, 0, 0, 4, 0, 1]].concat()), order, "below done_below");
    assert_eq!(flows(&[&head[..], &[0, 0, 0, 5, 0, 1]].concat()), Ok(()));
    let two = [1, 0, 1, 0, 0, 0, 5, 0, 2];
    assert_eq!(flows(&[&two[..], &[0, 0, 0, 5, 0, 1, 0, 0, 0, 5, 0, 1]].concat()), order, "twice");
    let last = [255, 255, 255, 255, 0, 1];
    assert_eq!(flows(&[&two[..], &last, &last].concat()), order, "the last block twice");
}
