//! The handshake between two sides, and against hostile messages.

use super::*;
use crate::wire::limits::{MAX_HANDSHAKE_PAYLOAD, NOISE_OVERHEAD};

fn psk() -> Psk {
    Psk::new([42; 32])
}

fn prologue() -> Prologue {
    Prologue { key: psk().id(), connection: CONNECTION }
}

fn initiate() -> (Initiator, Vec<u8>) {
    Initiator::new(&psk(), prologue(), b"from the initiator", [1; 32]).unwrap()
}

fn answer(message1: &[u8], seed: [u8; 32]) -> Result<(Established, Vec<u8>), HandshakeError> {
    respond(&psk(), prologue(), message1, seed, |payload| {
        assert_eq!(payload, b"from the initiator");
        Ok(b"from the responder".to_vec())
    })
}

fn assert_fails(result: Result<(Established, Vec<u8>), HandshakeError>) {
    assert_eq!(result.map(drop), Err(HandshakeError::Refused(RejectReason::HandshakeFailed)));
}

#[test]
fn both_sides_share_payloads_and_secrets() {
    let (mut initiator, message1) = initiate();
    assert_eq!(message1.len(), 18 + NOISE_OVERHEAD);
    let (responder, message2) = answer(&message1, [2; 32]).unwrap();
    assert_eq!(message2.len(), 18 + NOISE_OVERHEAD);
    let established = initiator.finish(&message2).unwrap();
    assert_eq!(established.payload, b"from the responder");
    assert_eq!(responder.payload, b"from the initiator");
    assert_eq!(established.secrets.send.as_bytes(), responder.secrets.receive.as_bytes());
    assert_eq!(established.secrets.receive.as_bytes(), responder.secrets.send.as_bytes());
    assert_ne!(established.secrets.send.as_bytes(), established.secrets.receive.as_bytes());
    assert_eq!(initiator.finish(&message2).map(drop), Err(RejectReason::HandshakeLate), "a repeated second message");
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let (_, message1) = initiate();
    assert_eq!(initiate().1, message1);
    let other = Initiator::new(&psk(), prologue(), b"from the initiator", [9; 32]).unwrap().1;
    assert_ne!(other[..32], message1[..32], "another ephemeral key");
    let (first, second) = (answer(&message1, [2; 32]).unwrap(), answer(&message1, [2; 32]).unwrap());
    assert_eq!(first.1, second.1);
    assert_eq!(first.0.secrets.send.as_bytes(), second.0.secrets.send.as_bytes());
    let third = answer(&message1, [3; 32]).unwrap();
    assert_ne!(first.0.secrets.send.as_bytes(), third.0.secrets.send.as_bytes());
}

#[test]
fn any_changed_bit_of_message1_is_refused() {
    let (_, message1) = initiate();
    for bit in 0..8 * message1.len() {
        let mut forged = message1.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_fails(answer(&forged, [2; 32]));
    }
    for length in 0..message1.len() {
        assert_fails(answer(&message1[..length], [2; 32]));
    }
    assert_fails(answer(&[&message1[..], &[0]].concat(), [2; 32]));
    assert_fails(answer(&vec![0; 70_000], [2; 32]));
}

#[test]
fn another_key_or_prologue_is_refused() {
    let (_, message1) = initiate();
    let with = |psk: &Psk, prologue| respond(psk, prologue, &message1, [2; 32], |_| Ok(vec![]));
    assert_fails(with(&Psk::new([43; 32]), prologue()));
    let mut key = prologue();
    key.key.0[0] ^= 1;
    assert_fails(with(&psk(), key));
    let mut connection = prologue();
    connection.connection.0[7] ^= 1;
    assert_fails(with(&psk(), connection));
    assert!(with(&psk(), prologue()).is_ok());
}

#[test]
fn a_forged_message2_does_not_stop_the_true_one() {
    let (mut initiator, message1) = initiate();
    let (responder, message2) = answer(&message1, [2; 32]).unwrap();
    for bit in 0..8 * message2.len() {
        let mut forged = message2.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(initiator.finish(&forged).map(drop), Err(RejectReason::HandshakeFailed));
    }
    assert_eq!(initiator.finish(&[]).map(drop), Err(RejectReason::HandshakeFailed));
    assert_eq!(initiator.finish(&[0; 48]).map(drop), Err(RejectReason::HandshakeFailed));
    assert_eq!(initiator.finish(&message1).map(drop), Err(RejectReason::HandshakeFailed), "reflected");
    let (_, other) = initiate();
    let other_connection = Prologue { connection: ConnectionId([8; 8]), ..prologue() };
    let (_, of_another) = Initiator::new(&psk(), other_connection, b"", [5; 32])
        .and_then(|(_, message1)| respond(&psk(), other_connection, &message1, [6; 32], |_| Ok(vec![])))
        .unwrap();
    assert_eq!(initiator.finish(&of_another).map(drop), Err(RejectReason::HandshakeFailed));
    assert_eq!(other, message1);
    let established = initiator.finish(&message2).unwrap();
    assert_eq!(established.payload, b"from the responder");
    assert_eq!(established.secrets.send.as_bytes(), responder.secrets.receive.as_bytes());
}

#[test]
fn handshake_payload_rejected_fails() {
    let (_, message1) = initiate();
    let refused = respond(&psk(), prologue(), &message1, [2; 32], |_| Err(RejectReason::Unacceptable));
    assert_eq!(refused.map(drop), Err(HandshakeError::Refused(RejectReason::Unacceptable)));
}

#[test]
fn payloads_fit_the_smallest_message() {
    let largest = vec![5; MAX_HANDSHAKE_PAYLOAD];
    let (mut initiator, message1) = Initiator::new(&psk(), prologue(), &largest, [1; 32]).unwrap();
    assert_eq!(message1.len() + 24, 1_200);
    let (_, message2) = respond(&psk(), prologue(), &message1, [2; 32], |seen| Ok(seen.to_vec())).unwrap();
    assert_eq!(initiator.finish(&message2).unwrap().payload, largest);

    let long = vec![5; MAX_HANDSHAKE_PAYLOAD + 1];
    let too_long = HandshakeError::PayloadTooLong(long.len());
    assert_eq!(Initiator::new(&psk(), prologue(), &long, [1; 32]).map(drop), Err(too_long));
    assert_eq!(respond(&psk(), prologue(), &message1, [2; 32], |_| Ok(long)).map(drop), Err(too_long));
}

#[test]
fn secrets_are_not_printed() {
    let (mut initiator, message1) = initiate();
    let (responder, message2) = answer(&message1, [2; 32]).unwrap();
    let keys = PacketKeys::new(&responder.secrets.send, Cipher::Aes256Gcm);
    let printed = format!("{:?} {initiator:?} {:?} {keys:?}", psk(), responder.secrets);
    assert_eq!(
        printed,
        "Psk(..) Initiator { .. } Secrets { send: Secret(..), receive: Secret(..) } \
         PacketKeys { cipher: Aes256Gcm, epoch: 0, .. }"
    );
    initiator.finish(&message2).unwrap();
    assert_ne!(psk().id().0[..], psk().as_bytes()[..8]);
    assert_ne!(psk().id(), Psk::new([43; 32]).id());
}
