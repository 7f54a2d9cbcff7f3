//! Segmenting the delivered runs gives the same packets as losing some of the segmented original.

use std::net::IpAddr;

use netsim::{Ecn, Time};
use proptest::prelude::*;

use super::testing::{Frame, Recipe, finish, on_the_wire, recipes};
use super::{Gather, Offload, PacketError, Segment, SegmentRun, SuperPacket, VnetHeader};

fn parse((vnet, bytes): &Frame) -> SuperPacket {
    SuperPacket::parse(vnet, bytes).unwrap()
}

/// Returns the bytes written to the device for a run.
fn written(run: &SegmentRun) -> Frame {
    let mut head = vec![0xee; 5];
    let rest = run.packet(&mut head).to_vec();
    (run.vnet(), [head, rest].concat())
}

#[test]
fn flow_without_ports_is_the_protocol() {
    // IPv4 with protocol, flags and offset of the fragment, and four bytes of payload that are not ports.
    let flow = |protocol: u8, fragment: [u8; 2]| {
        let mut bytes = [0x45, 0, 0, 24, 0, 0, 0, 0, 64, 0, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2, 1, 2, 3, 4];
        bytes[6..8].copy_from_slice(&fragment);
        bytes[9] = protocol;
        SuperPacket::plain(&bytes).expect("a packet").flow()
    };
    let whole = [0x40, 0];
    assert_eq!(flow(17, whole), 0x11_0102_0304);
    // The first fragment has ports, the others do not, and all are of one flow.
    assert_eq!([flow(17, [0x20, 0]), flow(17, [0x20, 9]), flow(17, [0, 9])], [17 << 32; 3]);
    // GRE and ESP hide the ports.
    assert_eq!([flow(47, whole), flow(50, whole)], [47 << 32, 50 << 32]);
    let empty = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 99, 0, 1, 10, 99, 0, 2];
    assert_eq!(SuperPacket::plain(&empty).expect("a packet").flow(), 17 << 32, "cut short");
}

/// Gathers segments like an emulator that delivers as late as possible.
fn gather(segments: impl IntoIterator<Item = (Segment, Ecn, Option<u64>)>) -> Vec<SegmentRun> {
    let mut gather = Gather::new();
    let mut runs = Vec::new();
    for (segment, ecn, corrupt) in segments {
        if let Err(segment) = gather.push(Time::ZERO, segment, ecn, corrupt) {
            runs.push(close(&mut gather));
            gather.push(Time::ZERO, segment, ecn, corrupt).expect("nothing is open");
        }
    }
    if gather.open().is_some() {
        runs.push(close(&mut gather));
    }
    runs
}

fn close(gather: &mut Gather) -> SegmentRun {
    let (run, due) = gather.open().unwrap();
    assert_eq!(due.len(), run.count() as usize);
    let run = run.clone();
    gather.clear();
    run
}

fn mark(packet: &mut [u8]) {
    packet[1] |= if packet[0] >> 4 == 4 { 3 } else { 0x30 };
    finish(packet);
}

proptest! {
    #[test]
    fn segments_have_sizes_and_marks_of_the_wire(recipe in recipes()) {
        let frame = recipe.frame();
        let wire = on_the_wire(&frame);
        let packet = parse(&frame);
        prop_assert_eq!(packet.segments() as usize, wire.len());
        for (index, segment) in (0..).zip(&wire) {
            prop_assert_eq!(packet.ip_bytes(index) as usize, segment.len());
        }
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(recipe.ecn)];
        prop_assert_eq!(packet.ecn(), ecn);
        let protocol = if recipe.offload == Offload::Tcp { 6 } else { 17 };
        let has_ports = recipe.version == 4 || recipe.options == 0;
        for segment in &wire {
            let flow = SuperPacket::plain(segment).unwrap().flow();
            prop_assert_eq!(flow, packet.flow());
            prop_assert!(!has_ports || flow == protocol << 32 | 0x1f90_c351, "{:x}", flow);
        }
    }

    #[test]
    fn lossless_gather_returns_the_same_packet(recipe in recipes()) {
        let frame = recipe.frame();
        let packet = parse(&frame);
        let ecn = packet.ecn();
        let runs = gather(packet.split().map(|segment| (segment, ecn, None)));
        prop_assert_eq!(runs.len(), 1);
        let mut expected = frame;
        if expected.0[1] == 0 {
            // A plain packet needs no hint.
            expected.0[2..4].fill(0);
        }
        prop_assert_eq!(written(&runs[0]), expected);
    }

    #[test]
    fn gathered_survivors_equal_the_wire(
        recipe in recipes(),
        fates in prop::collection::vec((any::<bool>(), any::<bool>(), 1..3_usize), 60),
    ) {
        let frame = recipe.frame();
        let packet = parse(&frame);
        let ecn = packet.ecn();
        let mut survivors = Vec::new();
        let mut expected = Vec::new();
        for ((segment, mut wire), (lost, marked, copies)) in packet.split().zip(on_the_wire(&frame)).zip(fates) {
            if lost && recipe.id % 2 == 0 {
                continue;
            }
            let ce = marked && recipe.id % 3 == 0;
            if ce {
                mark(&mut wire);
            }
            // A link may also deliver a packet twice.
            for _ in 0..if recipe.id % 5 == 0 { copies } else { 1 } {
                survivors.push((segment.clone(), if ce { Ecn::Ce } else { ecn }, None));
                expected.push(wire.clone());
            }
        }
        // A plain packet whose sender computed its checksum must not be changed.
        let delivered: Vec<Vec<u8>> = gather(survivors).iter().flat_map(|run| on_the_wire(&written(run))).collect();
        prop_assert_eq!(delivered, expected);
    }

    #[test]
    fn corrupt_segment_is_delivered_alone(recipe in recipes(), entropy: u64, which: prop::sample::Index) {
        let frame = recipe.frame();
        let packet = parse(&frame);
        let wire = on_the_wire(&frame);
        let (ecn, bad) = (packet.ecn(), which.index(wire.len()));
        let segments = packet.split().zip(0..);
        let runs = gather(segments.map(|(segment, n)| (segment, ecn, (n == bad).then_some(entropy))));
        let ends = runs.iter().scan(0, |sum, run| {
            *sum += run.count() as usize;
            Some(*sum)
        });
        let run = &runs[ends.take_while(|&end| end <= bad).count()];
        prop_assert_eq!(run.count(), 1);
        let (vnet, delivered) = written(run);
        prop_assert_eq!(vnet, [0; VnetHeader::BYTES], "the receiver checks it");
        let flipped: u32 = delivered.iter().zip(&wire[bad]).map(|(a, b)| (a ^ b).count_ones()).sum();
        prop_assert_eq!(delivered.len(), wire[bad].len());
        prop_assert!((1..=8).contains(&flipped), "{flipped} bits");
        let others: usize = runs.iter().map(|run| run.count() as usize).sum();
        prop_assert_eq!(others, wire.len());
    }

    #[test]
    fn random_bytes_do_not_panic(vnet: [u8; VnetHeader::BYTES], bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        call_everything(&vnet, &bytes);
    }

    #[test]
    fn altered_packets_do_not_panic(
        recipe in recipes(),
        spoils in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
        cuts: bool,
    ) {
        let (mut vnet, mut bytes) = recipe.frame();
        for (place, value) in spoils {
            // The headers, and the separate one.
            let place = place.index(VnetHeader::BYTES + bytes.len().min(80));
            match place.checked_sub(VnetHeader::BYTES) {
                None => vnet[place] = value,
                Some(place) => bytes[place] = value,
            }
        }
        if cuts {
            bytes.truncate(cut.index(bytes.len()));
        }
        call_everything(&vnet, &bytes);
    }
}

/// Calls every method of a packet, if it is accepted.
fn call_everything(vnet: &[u8; VnetHeader::BYTES], bytes: &[u8]) {
    let Ok(packet) = SuperPacket::parse(vnet, bytes) else {
        return;
    };
    let sizes: u64 = (0..packet.segments()).map(|index| u64::from(packet.ip_bytes(index))).sum();
    assert!(sizes > 0);
    let odd = |segment: &Segment| segment.index % 3 != 1;
    for corrupt in [None, Some(77)] {
        let packet = SuperPacket::parse(vnet, bytes).unwrap();
        let runs = gather(packet.split().filter(odd).map(|segment| (segment, Ecn::Ce, corrupt)));
        for run in runs {
            assert!(written(&run).1.len() <= bytes.len());
        }
    }
}

fn recipe(offload: Offload, segment: u16, payload: usize) -> Recipe {
    Recipe {
        version: 4,
        offload,
        options: 0,
        tcp_options: 3,
        tcp_flags: 0x99,
        ecn: 2,
        id: 0xfffe,
        sequence: u32::MAX - 2000,
        segment,
        payload: (0..payload).map(|byte| byte as u8).collect(),
        partial: true,
    }
}

#[test]
fn gap_splits_a_run() {
    let frame = recipe(Offload::Tcp, 1000, 4500).frame();
    let packet = parse(&frame);
    assert_eq!((0..5).map(|index| packet.ip_bytes(index)).collect::<Vec<_>>(), [1052, 1052, 1052, 1052, 552]);
    let survivors = packet.split().filter(|segment| segment.index != 2);
    let runs = gather(survivors.map(|segment| (segment, Ecn::Ect0, None)));
    let [(first_vnet, first), (second_vnet, second)] = [written(&runs[0]), written(&runs[1])];
    assert_eq!((first.len(), second.len()), (2052, 1552));
    assert_eq!((first_vnet[1], second_vnet[1]), (0x81, 1), "CWR is the first's");
    assert_eq!((first[33], second[33]), (0x90, 0x19), "ACK and CWR; ACK, PSH and FIN");
    assert_eq!((&first[4..6], &second[4..6]), (&[0xff, 0xfe][..], &[0, 1][..]));
    assert_eq!(second[24..28], 999_u32.to_be_bytes(), "sequence numbers go round");
}

#[test]
fn run_is_open_until_cleared() {
    let mut segments = parse(&recipe(Offload::Udp, 1200, 12_000).frame()).split();
    let mut gather = Gather::new();
    let mut push = |gather: &mut Gather, nanos| {
        gather.push(Time::from_nanos(nanos), segments.next().unwrap(), Ecn::Ect0, None).unwrap();
    };
    assert!(gather.open().is_none());
    push(&mut gather, 5_000);
    push(&mut gather, 9_000);
    assert_eq!(gather.open().unwrap().1, [5_000, 9_000].map(Time::from_nanos));
    assert_eq!(close(&mut gather).count(), 2);
    assert!(gather.open().is_none());
    push(&mut gather, 12_000);
    assert_eq!(close(&mut gather).count(), 1);
}

#[test]
fn segment_of_another_packet_does_not_join() {
    let [one, other] = [(); 2].map(|()| parse(&recipe(Offload::Udp, 1200, 2400).frame()).split());
    let segments = one.take(1).chain(other.skip(1));
    assert_eq!(gather(segments.map(|segment| (segment, Ecn::Ect0, None))).len(), 2);
}

#[test]
fn parse_error_names_the_reason() {
    let (vnet, bytes) = recipe(Offload::Udp, 1200, 2400).frame();
    let spoiled = |place: usize, value: u8| {
        let (mut vnet, mut bytes) = (vnet, bytes.clone());
        match place.checked_sub(VnetHeader::BYTES) {
            None => vnet[place] = value,
            Some(place) => bytes[place] = value,
        }
        SuperPacket::parse(&vnet, &bytes).map(|packet| packet.segments())
    };
    assert_eq!(SuperPacket::parse(&vnet, &[]).unwrap_err(), PacketError::Short);
    assert_eq!(SuperPacket::parse(&vnet, &bytes[..19]).unwrap_err(), PacketError::Short);
    assert_eq!(spoiled(0, 1), Ok(2), "nothing spoiled");
    assert_eq!(spoiled(0, 0), Err(PacketError::Checksum), "split without a checksum");
    assert_eq!(spoiled(1, 3), Err(PacketError::Offload));
    assert_eq!(spoiled(1, 1), Err(PacketError::Checksum), "another offset in TCP");
    assert_eq!(spoiled(10, 0x95), Err(PacketError::Version));
    assert_eq!(spoiled(10, 0x44), Err(PacketError::Short), "a header of 16 bytes");
    assert_eq!(spoiled(12, 0), Err(PacketError::Length), "cut short by its header");
    assert_eq!(spoiled(12, 0x40), Err(PacketError::Length), "cut short");
    assert_eq!(spoiled(16, 0x20), Err(PacketError::Offload), "a fragment");
    assert_eq!(spoiled(19, 6), Err(PacketError::Offload), "UDP with the type of TCP");
    assert_eq!(spoiled(35, 0), Err(PacketError::Length), "another length in UDP");
    let outside = VnetHeader { checksum: Some((20, 2407)), ..VnetHeader::default() }.write(4);
    assert_eq!(SuperPacket::parse(&outside, &bytes).unwrap_err(), PacketError::Checksum);
    let no_size = [&vnet[..4], &[0, 0], &vnet[6..]].concat().try_into().unwrap();
    assert_eq!(SuperPacket::parse(&no_size, &bytes).unwrap_err(), PacketError::Offload);
}

#[test]
fn plain_packet_has_destination_and_no_padding() {
    let (_, bytes) = Recipe { partial: false, ..recipe(Offload::Udp, 1200, 2400) }.frame();
    let packet = SuperPacket::plain(&[&bytes[..], &[0; 6]].concat()).unwrap();
    assert_eq!((packet.segments(), packet.ip_bytes(0), packet.ecn()), (1, 2428, Ecn::Ect0));
    assert_eq!(packet.destination(), IpAddr::from([10, 99, 0, 2]));
    let segment = packet.split().next().unwrap();
    assert_eq!(written(&SegmentRun::of(segment, Ecn::Ect0, None)).1, bytes);
    let (_, bytes) = Recipe { version: 6, ..recipe(Offload::Udp, 1200, 10) }.frame();
    let octets: Vec<u8> = (0xb0..0xc0).collect();
    assert_eq!(SuperPacket::plain(&bytes).unwrap().destination(), IpAddr::from(<[u8; 16]>::try_from(octets).unwrap()));
    assert_eq!(SuperPacket::plain(&bytes[..57]).unwrap_err(), PacketError::Length);
}
