//! Law 10: every refused datagram is counted by reason.

use crate::rogue::{Rogue, address, deliver};
use downpour_transport::wire::{Frame, PacketKind, RejectReason};

#[test]
fn every_reason_has_its_count() {
    let mut rogue = Rogue::new();
    let now = rogue.now;
    let good = rogue.seal(PacketKind::Control, &[1]);
    let change = |at: usize, to: u8| {
        let mut packet = good.clone();
        packet[at] = to;
        packet
    };
    let cases = [
        (RejectReason::TooShort, good[..20].to_vec()),
        (RejectReason::UnknownType, change(0, 0x42)),
        (RejectReason::UnknownConnection, change(3, good[3] ^ 1)),
        // The highest byte of the packet number: a distant epoch.
        (RejectReason::WrongEpoch, change(9, 1)),
        (RejectReason::AuthenticationFailed, change(good.len() - 1, good[good.len() - 1] ^ 1)),
        (RejectReason::AuthenticationFailed, change(16, good[16] ^ 1)),
        (RejectReason::Malformed, rogue.seal(PacketKind::Control, &[0x7f])),
        (RejectReason::Malformed, rogue.seal(PacketKind::Symbol, &[0; 9])),
        (RejectReason::Unacceptable, rogue.seal(PacketKind::Symbol, &[&[0, 9][..], &[0; 8]].concat())),
    ];
    let mut sent = 0;
    for (reason, datagram) in cases {
        let count = |rogue: &mut Rogue| rogue.victim.refused().get(reason) + rogue.connection().refused().get(reason);
        let before = count(&mut rogue);
        deliver(&mut rogue.victim, now, address(66), datagram);
        assert_eq!(count(&mut rogue), before + 1, "{reason:?}");
        sent += 1;
    }
    deliver(&mut rogue.victim, now, address(66), good.clone());
    for _ in 0..3 {
        deliver(&mut rogue.victim, now, address(66), good.clone());
        sent += 1;
    }
    assert_eq!(rogue.connection().refused().get(RejectReason::Replayed), 3);
    let total = rogue.victim.refused().total() + rogue.connection().refused().total();
    assert_eq!(total, sent, "and none is counted twice");
}

#[test]
fn packets_after_the_end_are_counted() {
    let mut rogue = Rogue::new();
    let late = rogue.seal(PacketKind::Control, &[1]);
    rogue.send(&[Frame::Close { code: 0, reason: &[] }]);
    rogue.listen();
    let handle = rogue.handle;
    rogue.victim.remove(handle);
    deliver(&mut rogue.victim, rogue.now, address(66), late);
    assert_eq!(rogue.victim.refused().get(RejectReason::UnknownConnection), 1);
}
