//! Peers and strangers that use other addresses.

use crate::rogue::{Rogue, address, deliver};
use downpour_transport::wire::{Frame, Frames, PacketKind, RejectReason};
use downpour_transport::{Batch, ObjectOptions};
use std::time::Duration;

/// Returns the destinations and sizes of the datagrams that the victim sends now.
fn sent(rogue: &mut Rogue) -> Vec<(std::net::SocketAddr, usize)> {
    let (now, mut batch, mut sent) = (rogue.now, Batch::new(), Vec::new());
    while rogue.connection().poll_transmit(now, &mut batch) {
        batch.seal();
        sent.extend(batch.bytes().chunks(batch.segment_size()).map(|packet| (batch.destination(), packet.len())));
    }
    sent
}

fn frame(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

#[test]
fn a_flood_of_challenges_gets_one_response_each_and_restarts_nothing_more_than_once_a_second() {
    let mut rogue = Rogue::new();
    let now = rogue.now;
    rogue.connection().send_object(now, ObjectOptions { length: 1 << 30, tag: 0, digest: false }).expect("connected");
    rogue.listen();
    let in_flight = rogue.connection().bytes_in_flight();
    assert!(in_flight > 0);
    for nth in 0..1_000u64 {
        let many: Vec<u8> =
            (0..100).flat_map(|at| frame(&Frame::PathChallenge { data: (nth * 100 + at).to_be_bytes() })).collect();
        rogue.plaintexts.clear();
        rogue.send_plaintext(PacketKind::Control, &many);
        rogue.listen();
        let frames = rogue.plaintexts.iter().flat_map(|plaintext| Frames::new(plaintext)).flatten();
        let responses = frames.filter(|frame| matches!(frame, Frame::PathResponse { .. })).count();
        assert_eq!(responses, 1, "for packet {nth}");
    }
    assert!(rogue.now.since(now) < Duration::from_secs(1));
    assert_eq!(rogue.connection().stats().packets.lost, 0, "packets abandoned with a path do not count as lost");
}

#[test]
fn an_unsolicited_response_is_counted_and_moves_nothing() {
    let mut rogue = Rogue::new();
    for nth in 0..100u64 {
        let packet = rogue.seal(PacketKind::Control, &frame(&Frame::PathResponse { data: nth.to_be_bytes() }));
        let now = rogue.now;
        deliver(&mut rogue.victim, now, address(67), packet);
    }
    assert_eq!(rogue.connection().remote(), address(66));
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 100);
    assert_eq!(rogue.connection().stats().path.changes, 0);
}

/// A stranger that forwards packets from ever new addresses gets few bytes at each, and the victim remembers few of
/// them.
#[test]
fn no_address_gets_more_than_three_times_its_bytes() {
    let mut rogue = Rogue::new();
    let mut received = [0usize; 256];
    let mut got = [0usize; 256];
    for round in 0..2_000usize {
        let from = 100 + (round % 100) as u8;
        let packet = rogue.seal(PacketKind::Control, &frame(&Frame::Ping));
        received[usize::from(from)] += packet.len() + 28;
        let now = rogue.now;
        deliver(&mut rogue.victim, now, address(from), packet);
        rogue.now += Duration::from_millis(7);
        let now = rogue.now;
        if rogue.connection().poll_timeout().is_some_and(|at| at <= now) {
            rogue.connection().handle_timeout(now);
        }
        for (to, size) in sent(&mut rogue) {
            let std::net::IpAddr::V4(ip) = to.ip() else { panic!("{to}") };
            got[usize::from(ip.octets()[3])] += size + 28;
        }
    }
    for at in 100..200 {
        assert!(got[at] <= 3 * received[at], "address {at}: {} for {}", got[at], received[at]);
    }
    assert_eq!(rogue.connection().remote(), address(66));
}
