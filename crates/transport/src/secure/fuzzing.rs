//! The handshake's fuzz target, a plain function: hostile messages, hostile payloads of a peer that has the key,
//! hostile packets.

use super::{Cipher, Initiator, Opener, PacketKeys, Prologue, Psk, Secret, respond};
use crate::wire::limits::{MAX_HANDSHAKE_PAYLOAD, NOISE_OVERHEAD};
use crate::wire::{ConnectionId, Datagram, Parameters, RejectReason};

/// Feeds `data` to both sides of a handshake, as messages and as payloads, and to an opener. Nothing may panic, nothing
/// without the key may be accepted, and no refused message may block the true one.
pub fn fuzz_handshake(data: &[u8]) {
    let psk = Psk::new([1; 32]);
    let prologue = Prologue { key: psk.id(), connection: ConnectionId([2; 8]) };
    let payload = &data[..data.len().min(MAX_HANDSHAKE_PAYLOAD)];

    let noise = match Datagram::classify(data) {
        Ok(Datagram::Message1(message)) => message.noise,
        Ok(Datagram::Message2(message)) => message.noise,
        _ => data,
    };
    let (mut initiator, message1) = Initiator::new(&psk, prologue, payload, [3; 32]).expect("the payload fits");
    let accepted = respond(&psk, prologue, noise, [4; 32], |_| Ok(Vec::new())).is_ok();
    assert!(!accepted || noise.len() >= NOISE_OVERHEAD, "a message without an ephemeral key and a tag");
    assert!(initiator.finish(noise).is_err(), "a second message made without the first");

    let answer = |seen: &[u8]| {
        assert_eq!(seen, payload, "an authentic payload arrives as it was");
        let _ = Parameters::decode(seen).map_err(RejectReason::from);
        Ok(payload.to_vec())
    };
    let (responder, message2) = respond(&psk, prologue, &message1, [4; 32], answer).expect("a true first message");
    let established = initiator.finish(&message2).expect("the true second message after a forged one");
    assert_eq!(established.payload, payload);
    assert_eq!(established.secrets.send.as_bytes(), responder.secrets.receive.as_bytes());

    for cipher in Cipher::ALL {
        let opener = Opener::new(PacketKeys::new(&Secret::new([5; 32]), cipher));
        assert!(opener.open(&mut data.to_vec()).is_err(), "a packet sealed without the key");
    }
}
