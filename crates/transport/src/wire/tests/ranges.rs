//! The packets section: both forms, budgets, and hostile bytes.

use super::super::bytes::Reader;
use super::super::limits::{MAX_PACKET_NUMBER, MAX_RANGES_BODY};
use super::*;

fn ranges(ranges: &[(u64, u64)]) -> PacketRanges {
    PacketRanges { delay_micros: 0x0102_0304, ranges: ranges.to_vec() }
}

fn encode(ranges: &PacketRanges, budget: usize) -> Vec<u8> {
    let mut out = Vec::new();
    assert_eq!(ranges.encode_within(budget, &mut out), out.len());
    assert!(out.len() <= budget);
    out
}

fn decode(bytes: &[u8]) -> Result<PacketRanges, WireError> {
    let mut reader = Reader::new(bytes);
    let ranges = PacketRanges::decode(&mut reader)?;
    assert!(reader.is_empty(), "all bytes are read");
    Ok(ranges)
}

/// The head of a section: largest number, delay 0, form, length of the body; then the body.
fn section(largest: u64, form: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap().to_be_bytes();
    [&largest.to_be_bytes()[..], &[0; 4], &[form], &length, body].concat()
}

fn runs(largest: u64, runs: &[u16]) -> Result<Vec<(u64, u64)>, WireError> {
    let body: Vec<u8> = runs.iter().flat_map(|run| run.to_be_bytes()).collect();
    decode(&section(largest, 0, &body)).map(|decoded| decoded.ranges)
}

fn bitmap(largest: u64, bitmap: &[u8]) -> Result<Vec<(u64, u64)>, WireError> {
    decode(&section(largest, 1, bitmap)).map(|decoded| decoded.ranges)
}

#[test]
fn few_ranges_go_as_runs() {
    let few = ranges(&[(900, 1000), (100, 200)]);
    let bytes = encode(&few, 1000);
    let body = [0, 101, 2, 0xbb, 0, 101];
    let head = [0, 0, 0, 0, 0, 0, 3, 0xe8, 1, 2, 3, 4, 0, 0, 6];
    assert_eq!(bytes, [&head[..], &body].concat());
    assert_eq!(decode(&bytes), Ok(few));
}

#[test]
fn many_short_ranges_go_as_a_bitmap() {
    // Of 1000 down to 985: 1 1 0 1 0 1 0 1, 0 1 0 0 0 0 0 1.
    let many = ranges(&[(999, 1000), (997, 997), (995, 995), (993, 993), (991, 991), (985, 985)]);
    let bytes = encode(&many, 1000);
    let head = [0, 0, 0, 0, 0, 0, 3, 0xe8, 1, 2, 3, 4, 1, 0, 2];
    assert_eq!(bytes, [&head[..], &[0b1101_0101, 0b0100_0001]].concat());
    assert_eq!(decode(&bytes), Ok(many));
}

#[test]
fn long_runs_are_continued() {
    for length in [65_534, 65_535, 65_536, 131_070, 131_071, 1_000_000] {
        for lost in [1, 65_535, 65_536, 200_000] {
            let top = 10_000_000;
            let long = ranges(&[(top - length + 1, top), (5, top - length - lost)]);
            assert_eq!(decode(&encode(&long, 4_096)).as_ref(), Ok(&long), "{length} received, {lost} lost");
        }
    }
    assert_eq!(runs(131_075, &[65_535, 0, 65_535, 0, 5]), Ok(vec![(1, 131_075)]));
    assert_eq!(runs(131_075, &[65_535, 1, 65_535, 0, 5]), Ok(vec![(65_541, 131_075), (0, 65_539)]));
}

#[test]
fn ranges_reach_from_zero_to_the_highest_number() {
    assert_eq!(runs(0, &[1]), Ok(vec![(0, 0)]));
    assert_eq!(bitmap(0, &[0x80]), Ok(vec![(0, 0)]));
    assert_eq!(bitmap(8, &[0xff, 0x80]), Ok(vec![(0, 8)]));
    let extremes = ranges(&[(MAX_PACKET_NUMBER - 9, MAX_PACKET_NUMBER), (0, 4)]);
    // The gap is too long for any number of runs: the newest packets are reported.
    assert_eq!(decode(&encode(&extremes, 4_096)).map(|decoded| decoded.ranges), Ok(vec![extremes.ranges[0]]));
    let whole = ranges(&[(0, MAX_PACKET_NUMBER)]);
    let decoded = decode(&encode(&whole, usize::MAX)).unwrap();
    assert_eq!(decoded.ranges, [(MAX_PACKET_NUMBER + 1 - 1_024 * 65_535, MAX_PACKET_NUMBER)]);
}

#[test]
fn a_budget_keeps_the_newest_part() {
    let whole = ranges(&[(999, 1000), (990, 996), (700, 900), (100, 200), (0, 50)]);
    assert!(encode(&whole, 16).is_empty());
    let newest = |budget| decode(&encode(&whole, budget)).unwrap().ranges;
    // One run of two packets, or 16 bits that reach down to 990.
    assert_eq!(newest(17), [(999, 1000), (990, 996)]);
    assert_eq!(newest(15 + 3), [(999, 1000), (990, 996)]);
    // Five runs reach down to 700, seven to 100.
    assert_eq!(newest(15 + 10), whole.ranges[..3]);
    assert_eq!(newest(15 + 13), whole.ranges[..3]);
    assert_eq!(newest(15 + 14), whole.ranges[..4]);
    assert_eq!(newest(15 + 18), whole.ranges);
    assert_eq!(encode(&whole, 15 + 18), encode(&whole, usize::MAX));
    // A bitmap may cut a range in two.
    let alternating: Vec<_> = (0..400).rev().map(|n| (10 * n, 10 * n + 4)).collect();
    let cut = decode(&encode(&ranges(&alternating), 15 + 29)).unwrap().ranges;
    assert_eq!(cut, [&alternating[..23], &[(3_763, 3_764)]].concat(), "232 bits down from 3994");
    assert!(encode(&PacketRanges::default(), 1000).is_empty());
}

#[test]
fn hostile_runs() {
    let below = Err(WireError::Malformed("run below packet number 0"));
    let empty = Err(WireError::Malformed("empty run"));
    let open = Err(WireError::Malformed("runs that do not end with received packets"));
    assert_eq!(runs(10, &[12]), below);
    assert_eq!(runs(10, &[5, 3, 4]), below);
    assert_eq!(runs(10, &[11]), Ok(vec![(0, 10)]));
    assert_eq!(runs(10, &[0]), empty);
    assert_eq!(runs(10, &[0, 1, 1]), empty);
    assert_eq!(runs(10, &[1, 0, 1]), empty);
    assert_eq!(runs(100_000, &[65_535, 0, 0]), empty);
    assert_eq!(runs(10, &[]), open);
    assert_eq!(runs(10, &[1, 1]), open);
    assert_eq!(runs(100_000, &[65_535, 0]), open);
    assert_eq!(runs(100_000, &[1, 65_535, 0]), open);
    assert_eq!(runs(u64::MAX, &[1]), Err(WireError::Malformed("largest packet number")));
    assert_eq!(decode(&section(10, 0, &[0, 1, 0])), Err(WireError::Truncated));
    assert_eq!(decode(&section(10, 2, &[0, 1])), Err(WireError::Malformed("form of the ranges")));
}

#[test]
fn hostile_bitmaps() {
    let without = Err(WireError::Malformed("bitmap without its largest packet"));
    let below = Err(WireError::Malformed("bitmap below packet number 0"));
    assert_eq!(bitmap(10, &[]), without);
    assert_eq!(bitmap(10, &[0x7f]), without);
    assert_eq!(bitmap(6, &[0xff]), below);
    assert_eq!(bitmap(6, &[0xfe, 0, 0]), Ok(vec![(0, 6)]));
    assert_eq!(bitmap(6, &[0x80, 1]), below);
}

#[test]
fn a_section_is_bounded() {
    let body = vec![0xaa; MAX_RANGES_BODY];
    let most = bitmap(1 << 40, &body).unwrap();
    assert_eq!(most.len(), 4 * MAX_RANGES_BODY);
    assert_eq!(bitmap(1 << 40, &[&body[..], &[0xaa]].concat()), Err(WireError::Limit("ranges")));
    let again = PacketRanges { delay_micros: 0, ranges: most };
    assert_eq!(encode(&again, usize::MAX).len(), 15 + MAX_RANGES_BODY);
    // No memory is allocated for a claimed length that is absent.
    assert_eq!(decode(&section(10, 0, &[])[..13]), Err(WireError::Truncated));
}
