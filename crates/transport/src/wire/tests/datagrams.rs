//! Handshake datagrams, parameters, and the counters of refused datagrams.

use super::super::limits::*;
use super::*;
use std::time::Duration;

const KEY: KeyId = KeyId([1, 2, 3, 4, 5, 6, 7, 8]);
const CONNECTION: ConnectionId = ConnectionId([11, 12, 13, 14, 15, 16, 17, 18]);

fn message1(size: usize) -> Result<Vec<u8>, WireError> {
    let mut out = Vec::new();
    Message1 { key: KEY, connection: CONNECTION, copy: 2, noise: b"noise" }.encode(size, &mut out)?;
    Ok(out)
}

#[test]
fn message1_layout() {
    let bytes = message1(1_451).unwrap();
    let head = [1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14, 15, 16, 17, 18, 2, 0, 5];
    assert_eq!(bytes[..24], head);
    assert_eq!(&bytes[24..29], b"noise");
    assert_eq!(bytes[29..], [0; 1_451 - 29]);
    let message = Message1 { key: KEY, connection: CONNECTION, copy: 2, noise: b"noise" };
    assert_eq!(Datagram::classify(&bytes), Ok(Datagram::Message1(message)));
}

#[test]
fn a_first_message_is_at_least_1200_bytes() {
    assert!(message1(1_199).is_err());
    let bytes = message1(1_200).unwrap();
    assert!(Datagram::classify(&bytes).is_ok());
    assert_eq!(Datagram::classify(&bytes[..1_199]), Err(RejectReason::TooShort));
    assert!(message1(MAX_DATAGRAM + 1).is_err());
    let noise = [0; 1_177];
    let large = Message1 { key: KEY, connection: CONNECTION, copy: 0, noise: &noise };
    assert_eq!(large.encode(1_200, &mut Vec::new()), Err(WireError::Limit("handshake message")));
}

/// The stored part of a handshake is bounded, whatever the size of its datagram.
#[test]
fn a_handshake_message_has_a_bounded_payload() {
    let most = MAX_HANDSHAKE_PAYLOAD + NOISE_OVERHEAD;
    for (length, is_taken) in [(most, true), (most + 1, false), (60_000, false)] {
        let noise = vec![7; length];
        let (mut first, mut second) = (Vec::new(), Vec::new());
        Message1 { key: KEY, connection: CONNECTION, copy: 0, noise: &noise }.encode(62_000, &mut first).unwrap();
        Message2 { destination: CONNECTION, copy: 0, noise: &noise }.encode(62_000, &mut second).unwrap();
        for bytes in [first, second] {
            assert_eq!(Datagram::classify(&bytes).is_ok(), is_taken, "{length}");
        }
    }
}

#[test]
fn message2_layout() {
    let mut bytes = Vec::new();
    let message = Message2 { destination: CONNECTION, copy: 3, noise: b"answer" };
    message.encode(1_200, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 1_200);
    assert_eq!(bytes[..12], [2, 11, 12, 13, 14, 15, 16, 17, 18, 3, 0, 6]);
    assert_eq!(&bytes[12..18], b"answer");
    assert_eq!(Datagram::classify(&bytes), Ok(Datagram::Message2(message)));
    assert_eq!(message.encode(17, &mut bytes), Err(WireError::Limit("handshake message")));
}

#[test]
fn version_answers() {
    let mut bytes = Vec::new();
    VersionAnswer::encode(CONNECTION, 0x1234_5678, &mut bytes);
    assert_eq!(bytes, [3, 11, 12, 13, 14, 15, 16, 17, 18, 2, 0x1a, 0x3a, 0x5a, 0x7a, 0, 0, 0, 1]);
    let Ok(Datagram::Versions(answer)) = Datagram::classify(&bytes) else { panic!("a version answer") };
    assert_eq!(answer.destination, CONNECTION);
    assert_eq!(answer.versions().collect::<Vec<_>>(), [0x1a3a_5a7a, VERSION]);
    bytes[9] = 3;
    assert_eq!(Datagram::classify(&bytes), Err(RejectReason::Malformed));
    bytes[9] = 17;
    bytes.resize(200, 0);
    assert_eq!(Datagram::classify(&bytes), Err(RejectReason::Malformed));
}

#[test]
fn another_version_is_read_as_far_as_all_versions_agree() {
    let mut bytes = message1(1_200).unwrap();
    bytes[4] = 2;
    // The layout after the connection id is free.
    bytes[21..].fill(0xff);
    let other = Datagram::OtherVersion { version: 2, key: KEY, connection: CONNECTION };
    assert_eq!(Datagram::classify(&bytes), Ok(other));
}

#[test]
fn other_datagrams() {
    assert_eq!(Datagram::classify(&[]), Err(RejectReason::TooShort));
    for kind in (0..=255).filter(|kind| ![1, 2, 3, 0x10, 0x11].contains(kind)) {
        assert_eq!(Datagram::classify(&[kind; 2_000]), Err(RejectReason::UnknownType));
    }
    let header = PacketHeader { kind: PacketKind::Control, connection: CONNECTION, number: 5 };
    let mut packet = header.encode().to_vec();
    packet.resize(HEADER + TAG, 0);
    assert_eq!(Datagram::classify(&packet), Ok(Datagram::Packet(header)));
    assert_eq!(Datagram::classify(&packet[..32]), Err(RejectReason::TooShort));
    let mut claims = message1(1_200).unwrap();
    claims[22..24].fill(0xff);
    assert_eq!(Datagram::classify(&claims), Err(RejectReason::Malformed));
    assert_eq!(Datagram::classify(&[2, 0, 0]), Err(RejectReason::Malformed));
}

fn parameters() -> Parameters {
    Parameters {
        connection: CONNECTION,
        ciphers: vec![1, 2],
        credit: Credit { symbols: 0x0102, control: 0x0304 },
        max_k: 8_192,
        max_symbol_size: 1_408,
        max_per_packet: 1,
        counts_on: true,
        short_symbols: true,
        feedback: FeedbackConfig::everything(FeedbackTiming::Spaced(Spacing::default())),
        streams: StreamLimits { count: 4, window: 100, shared: 1_000 },
        application: b"app".to_vec(),
    }
}

#[test]
fn parameters_layout() {
    let bytes = [
        &[0, 1, 0, 8, 11, 12, 13, 14, 15, 16, 17, 18][..],
        &[0, 2, 0, 2, 1, 2],
        &[0, 3, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2],
        &[0, 4, 0, 8, 0, 0, 0, 0, 0, 0, 3, 4],
        &[0, 5, 0, 4, 0, 0, 0x20, 0],
        &[0, 6, 0, 2, 0x05, 0x80],
        &[0, 7, 0, 7, 0b11, 1, 32, 0, 0, 0x03, 0xe8],
        &[0, 12, 0, 0],
        &[0, 13, 0, 0],
        &[0, 9, 0, 10, 0, 4, 0, 0, 0, 100, 0, 0, 3, 232],
        &[0, 8, 0, 3, b'a', b'p', b'p'],
        &[0x1a, 0x3a, 0, 2, 0x56, 0x78],
    ];
    assert_eq!(parameters().encode(0x1234_5678), Ok(bytes.concat()));
    assert_eq!(Parameters::decode(&bytes.concat()), Ok(parameters()));
    // Each of the first seven must appear exactly once.
    for index in 0..bytes.len() {
        let without = [&bytes[..index], &bytes[index + 1..]].concat().concat();
        assert_eq!(Parameters::decode(&without).is_err(), index < 7, "without entry {index}");
        let twice = [&bytes[..], &bytes[index..=index]].concat().concat();
        assert_eq!(Parameters::decode(&twice), Err(WireError::Malformed("duplicate parameter")));
    }
    let whole = bytes.concat();
    for end in 0..whole.len() - 6 {
        let read = Parameters::decode(&whole[..end]);
        // Optional parts: the application data, the streams before it, and the empty parameters before those.
        let optional = [13, 27, 31, 35].iter().any(|left| whole.len() - left == end);
        assert!(read.is_err() || optional, "cut after {end} bytes: {read:?}");
    }
}

#[test]
fn parameters_keep_their_limits() {
    let too_long = Parameters { application: vec![0; MAX_APPLICATION + 1], ..parameters() };
    assert_eq!(too_long.encode(0), Err(WireError::Limit("application bytes")));
    let without = Parameters { ciphers: vec![], ..parameters() };
    assert_eq!(without.encode(0), Err(WireError::Limit("ciphers")));
    let feedback = FeedbackConfig { packets: PacketFeedback::Count, ..parameters().feedback };
    let (ciphers, application) = (vec![1; MAX_CIPHERS], vec![0; MAX_APPLICATION]);
    let largest = Parameters { ciphers, feedback, application, ..parameters() };
    let bytes = largest.encode(u32::MAX).unwrap();
    assert!(bytes.len() <= MAX_HANDSHAKE_PAYLOAD, "{} bytes", bytes.len());
    assert_eq!(MAX_HANDSHAKE_PAYLOAD, 1_128);
    assert_eq!(Parameters::decode(&bytes), Ok(largest));
    let mut many = parameters().encode(0).unwrap();
    for kind in 0x100..0x100 + 52_u16 {
        many.extend_from_slice(&[&kind.to_be_bytes()[..], &[0, 0]].concat());
    }
    assert_eq!(Parameters::decode(&many), Ok(parameters()), "64 entries");
    many.extend_from_slice(&[2, 0, 0, 0]);
    assert_eq!(Parameters::decode(&many), Err(WireError::Limit("parameters")));
}

#[test]
fn feedback_choices() {
    let choice_of = |value: [u8; 7]| {
        let streams = StreamLimits::default();
        let bytes = Parameters { application: vec![], counts_on: false, short_symbols: false, streams, ..parameters() };
        let mut bytes = bytes.encode(0).unwrap();
        let at = bytes.len() - 6 - 7;
        bytes[at..at + 7].copy_from_slice(&value);
        Parameters::decode(&bytes).map(|read| read.feedback)
    };
    let every = FeedbackConfig { ecn: false, blocks: None, ..FeedbackConfig::everything(FeedbackTiming::EveryPacket) };
    assert_eq!(choice_of([0; 7]), Ok(every));
    assert_eq!(choice_of([4, 0, 0, 0, 0, 0, 0]), Err(WireError::Malformed("flags of the feedback choice")));
    let timing = Err(WireError::Malformed("timing of the feedback choice"));
    assert_eq!(choice_of([0, 2, 1, 0, 0, 0, 0]), timing);
    assert_eq!(choice_of([0, 1, 0, 0, 0, 0, 0]), timing, "no feedback in a round trip");
    assert_eq!(choice_of([0, 0, 1, 0, 0, 0, 0]), timing);
}

/// Settings that the seven bytes of the plain form cannot hold are in an entry of their own, which a receiver that does
/// not know it skips.
#[test]
fn feedback_choices_in_detail() {
    let plain = FeedbackConfig::everything(FeedbackTiming::EveryPacket);
    let every = FeedbackTiming::Every(PacketCountTiming { packets: 1_024, threshold: 10_000, factor: 2 });
    let on_blocks = FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(20) });
    for (choice, bytes) in [
        (
            FeedbackConfig { packets: PacketFeedback::InOrder, ..plain },
            [&[1, 0, 0, 1, 0, 0, 0, 0][..], &[0; 13]].concat(),
        ),
        (
            FeedbackConfig {
                packets: PacketFeedback::Count,
                blocks: Some(BlockFeedback::Done(DoneConfig { epsilon: 10_000 })),
                ..plain
            },
            [&[2, 0, 0, 2, 0, 0, 0x27, 0x10][..], &[0; 13]].concat(),
        ),
        (
            FeedbackConfig { packets: PacketFeedback::Last(LastPackets { packets: 1_024 }), timing: every, ..plain },
            [&[3, 4, 0, 1, 0, 0, 0, 0, 3][..], &[0, 0, 4, 0, 0, 0, 0x27, 0x10, 0, 0, 0, 2]].concat(),
        ),
        (
            FeedbackConfig { blocks: Some(BlockFeedback::Mask), timing: on_blocks, ..plain },
            [&[0, 0, 0, 3, 0, 0, 0, 0, 2][..], &[0, 0, 0x4e, 0x20, 0, 0, 0, 0, 0, 0, 0, 0]].concat(),
        ),
        (
            FeedbackConfig { blocks: Some(BlockFeedback::Received(ReceivedConfig { epsilon: 250_000 })), ..plain },
            [&[0, 0, 0, 4, 0, 0x03, 0xd0, 0x90, 0][..], &[0; 12]].concat(),
        ),
    ] {
        let bytes = [&[0, 10, 0, 21][..], &bytes].concat();
        let whole = Parameters { feedback: choice, ..parameters() }.encode(0).unwrap();
        let at = whole.windows(bytes.len()).position(|window| window == bytes).unwrap_or_else(|| panic!("{choice:?}"));
        assert_eq!(Parameters::decode(&whole).map(|read| read.feedback), Ok(choice));
        // As read by a receiver that does not know the entry.
        let old = [&whole[..at], &whole[at + bytes.len()..]].concat();
        let timing = match choice.timing {
            FeedbackTiming::EveryPacket => FeedbackTiming::EveryPacket,
            _ => FeedbackTiming::Spaced(Spacing::default()),
        };
        assert_eq!(Parameters::decode(&old).map(|read| read.feedback), Ok(FeedbackConfig::everything(timing)));
    }
}

#[test]
fn absurd_feedback_choices_are_refused() {
    let refused = |detail: [u8; 21], what| {
        let mut bytes = parameters().encode(0).unwrap();
        bytes.extend_from_slice(&[&[0, 10, 0, 21][..], &detail].concat());
        assert_eq!(Parameters::decode(&bytes), Err(WireError::Malformed(what)), "{detail:?}");
    };
    let with = |at: usize, bytes: &[u8]| {
        let mut detail = [0; 21];
        detail[at..at + bytes.len()].copy_from_slice(bytes);
        detail
    };
    for packets in [[4, 0, 0], [0, 0, 1], [2, 0, 1], [3, 0, 0], [3, 0x80, 1]] {
        refused(with(0, &packets), "packets of the feedback choice");
    }
    for blocks in [[5, 0, 0, 0, 0], [1, 0, 0, 0, 1], [3, 0, 0, 0, 1], [2, 0, 0x03, 0xd0, 0x91], [4, 255, 0, 0, 0]] {
        refused(with(3, &blocks), "blocks of the feedback choice");
    }
    let timing = |number: u8, numbers: [u32; 3]| {
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_be_bytes()).collect();
        refused(with(8, &[&[number][..], &numbers].concat()), "timing of the feedback choice");
    };
    timing(0, [0, 0, 1]);
    timing(1, [0, 1_000, 0]);
    timing(1, [256, 1_000, 0]);
    timing(2, [999, 0, 0]);
    timing(2, [10_000_001, 0, 0]);
    timing(2, [20_000, 1, 0]);
    timing(3, [1, 0, 1]);
    timing(3, [32_769, 0, 1]);
    timing(3, [1_024, 1_000_001, 1]);
    timing(3, [1_024, 0, 0]);
    timing(3, [1_024, 0, 17]);
    timing(4, [0; 3]);
}

#[test]
fn refusals_are_counted_by_reason() {
    let mut counts = RejectCounts::default();
    counts.add(RejectReason::Replayed);
    counts.add(RejectReason::Replayed);
    counts.add(RejectReason::Busy);
    let mut sum = counts;
    sum.merge(&counts);
    assert_eq!((sum.get(RejectReason::Replayed), sum.get(RejectReason::Busy), sum.total()), (4, 2, 6));
    assert_eq!(counts.iter().count(), RejectReason::ALL.len());
    assert_eq!(counts.iter().filter(|&(_, count)| count > 0).count(), 2);
    let mut names: Vec<_> = RejectReason::ALL.iter().map(|reason| reason.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RejectReason::ALL.len(), "names are distinct");
    for (index, reason) in RejectReason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, index);
    }
}

#[test]
fn feedback_choices_are_text() {
    for (text, parsed) in [
        ("ranges", PacketFeedback::Ranges),
        ("in-order", PacketFeedback::InOrder),
        ("count", PacketFeedback::Count),
        ("last", PacketFeedback::Last(LastPackets { packets: 1_024 })),
        ("last:64", PacketFeedback::Last(LastPackets { packets: 64 })),
    ] {
        assert_eq!((text.parse(), parsed.to_string()), (Ok(parsed), text.into()));
    }
    for (text, parsed) in [
        ("needs", BlockFeedback::Needs),
        ("done", BlockFeedback::Done(DoneConfig { epsilon: 0 })),
        ("done:1%", BlockFeedback::Done(DoneConfig { epsilon: 10_000 })),
        ("mask", BlockFeedback::Mask),
        ("received", BlockFeedback::Received(ReceivedConfig { epsilon: 10_000 })),
        ("received:0.5%", BlockFeedback::Received(ReceivedConfig { epsilon: 5_000 })),
    ] {
        assert_eq!((text.parse(), parsed.to_string()), (Ok(parsed), text.into()));
    }
    let counting = PacketCountTiming { packets: 100, threshold: 29_000, factor: 4 };
    for (text, timing) in [
        ("every-packet", FeedbackTiming::EveryPacket),
        ("on-blocks:heartbeat=20ms", FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(20) })),
        ("every:packets=100,threshold=2.9%,factor=4", FeedbackTiming::Every(counting)),
    ] {
        assert_eq!((text.parse(), timing.to_string()), (Ok(timing), text.into()));
    }
    assert_eq!("received:0.01".parse(), Ok(BlockFeedback::Received(ReceivedConfig { epsilon: 10_000 })));
    assert!("last:0".parse::<PacketFeedback>().is_err_and(|e| e.to_string().contains("from 1 to 32768")));
    assert!("on-blocks:heartbeat=999us".parse::<FeedbackTiming>().is_err());
    assert!("received:26%".parse::<BlockFeedback>().is_err());
    assert!("every:factor=17".parse::<FeedbackTiming>().is_err());
}
