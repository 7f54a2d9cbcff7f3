use super::*;
use crate::secure::{Psk, respond};
use crate::wire::{ConnectionId, Datagram, KeyId};
use std::net::Ipv4Addr;

const FULL: usize = 1_451;
const PROLOGUE: Prologue = Prologue { key: KeyId([1; 8]), connection: ConnectionId([2; 8]) };

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 4_000))
}

fn psk() -> Psk {
    Psk::new([7; 32])
}

/// An initiator that tries these hosts for 30 s.
fn initiator(hosts: &[u8]) -> Initiation {
    initiator_to(hosts, false)
}

fn initiator_to(hosts: &[u8], listen: bool) -> Initiation {
    let started = Initiator::new(&psk(), PROLOGUE, b"hello", [3; 32]).expect("a short payload");
    let remotes = hosts.iter().copied().map(address).collect();
    let timeout = (Duration::from_secs(30), listen);
    Initiation::new(at(0), timeout, started, PROLOGUE, remotes, FULL)
}

/// Returns the datagrams sent at this moment: destination, size, and the number of the copy.
fn sent(handshake: &mut Initiation, now: Time) -> Vec<(SocketAddr, usize, u8)> {
    let (mut batch, mut sent) = (Batch::new(), Vec::new());
    while handshake.poll_transmit(now, &mut batch) {
        let Ok(Datagram::Message1(message)) = Datagram::classify(batch.bytes()) else { panic!("a first message") };
        sent.push((batch.destination(), batch.bytes().len(), message.copy));
    }
    sent
}

/// Returns the second message in answer to the first message of [`initiator`].
fn answer(handshake: &mut Initiation) -> Vec<u8> {
    let mut batch = Batch::new();
    assert!(handshake.poll_transmit(at(0), &mut batch));
    let Ok(Datagram::Message1(message)) = Datagram::classify(batch.bytes()) else { panic!("a first message") };
    let (_, noise) =
        respond(&psk(), PROLOGUE, message.noise, [4; 32], |_| Ok(b"here".to_vec())).expect("it is authentic");
    noise
}

fn message(noise: &[u8], copy: u8) -> Message2<'_> {
    Message2 { destination: PROLOGUE.connection, copy, noise }
}

#[test]
fn copies_in_both_sizes_go_to_every_address_and_back_off_to_one_round_a_second() {
    let mut handshake = initiator(&[1, 2]);
    assert_eq!(sent(&mut handshake, at(0)), [(address(1), FULL, 0), (address(2), FULL, 0)]);
    assert_eq!(sent(&mut handshake, at(19)), []);
    let small = MIN_MESSAGE1;
    assert_eq!(sent(&mut handshake, at(20)), [(address(1), small, 1), (address(2), small, 1)]);
    let both = sent(&mut handshake, at(60));
    assert_eq!(both, [(address(1), FULL, 2), (address(2), FULL, 2), (address(1), small, 3), (address(2), small, 3)]);
    let mut rounds = Vec::new();
    while rounds.len() < 8 {
        let now = handshake.deadline();
        assert_eq!(sent(&mut handshake, now).len(), 4);
        rounds.push(now.since(at(0)).as_millis());
    }
    assert_eq!(rounds, [100, 150, 200, 250, 500, 1_000, 2_000, 3_000]);
}

#[test]
fn a_peer_that_should_listen_and_does_at_no_address_is_given_up_at_once() {
    let mut handshake = initiator_to(&[1, 2], true);
    assert_eq!(sent(&mut handshake, at(0)).len(), 2);
    assert!(!handshake.on_unreachable(at(5), address(3)), "no message went to it");
    assert!(handshake.on_unreachable(at(5), address(1)) && handshake.on_unreachable(at(5), address(1)));
    assert_eq!(handshake.failure(at(5)), None, "it may be at the other address");
    assert!(handshake.on_unreachable(at(7), address(2)));
    assert_eq!((handshake.deadline(), handshake.failure(at(7))), (at(7), Some(ConnectionError::HandshakeTimeout)));

    // If the peer may begin to listen later, and a host that guesses the port may forge such reports, nothing ends.
    let mut handshake = initiator(&[1]);
    assert!(handshake.on_unreachable(at(5), address(1)));
    assert_eq!(
        (handshake.failure(at(29_999)), handshake.failure(at(30_000))),
        (None, Some(ConnectionError::HandshakeTimeout))
    );
}

#[test]
fn an_answer_gives_address_size_and_round_trip_of_its_copy() {
    let mut handshake = initiator(&[1]);
    let noise = answer(&mut handshake);
    assert_eq!(sent(&mut handshake, at(20)).len(), 1);
    let answered = handshake.on_answer(at(70), address(1), &message(&noise, 1), FULL).expect("authentic");
    assert_eq!((answered.remote, answered.payload), (address(1), FULL));
    assert_eq!(answered.rtt, Some(Duration::from_millis(50)));
    assert_eq!(answered.established.payload, b"here");
}

#[test]
fn a_forged_answer_or_one_from_another_address_changes_nothing() {
    let mut handshake = initiator(&[1]);
    let noise = answer(&mut handshake);
    let mut on_answer = |host, noise: &[u8]| handshake.on_answer(at(50), address(host), &message(noise, 0), FULL).err();
    assert_eq!(on_answer(2, &noise), Some(RejectReason::Unacceptable));
    let mut forged = noise.clone();
    forged[40] ^= 1;
    assert!(on_answer(1, &forged).is_some());
    assert_eq!(on_answer(1, &noise), None);
}

#[test]
fn silence_ends_the_handshake_after_its_timeout_and_other_versions_explain_it() {
    let mut handshake = initiator(&[1]);
    assert_eq!(handshake.failure(at(29_999)), None);
    assert_eq!(handshake.failure(at(30_000)), Some(ConnectionError::HandshakeTimeout));
    let mut bytes = Vec::new();
    VersionAnswer::encode(PROLOGUE.connection, 0, &mut bytes);
    let Ok(Datagram::Versions(versions)) = Datagram::classify(&bytes) else { panic!("a list of versions") };
    assert_eq!(handshake.on_versions(&versions), Err(RejectReason::BadVersion), "its number is ours");
    assert_eq!(handshake.failure(at(30_000)), Some(ConnectionError::HandshakeTimeout));
}

/// A ticket may name addresses of hosts that do not expect it: they get few bytes, whatever the source of the addresses
/// (docs/THREATS.md).
#[test]
fn an_address_that_does_not_answer_gets_little() {
    let started = Initiator::new(&psk(), PROLOGUE, b"hello", [3; 32]).expect("a short payload");
    let remotes = (0..16).map(address).collect();
    let timeout = (Duration::from_secs(10), false);
    let mut handshake = Initiation::new(at(0), timeout, started, PROLOGUE, remotes, FULL);
    let all: Vec<_> = (0..=10_000).flat_map(|millis| sent(&mut handshake, at(millis))).collect();
    assert_eq!(handshake.failure(at(10_000)), Some(ConnectionError::HandshakeTimeout));
    for host in 0..16 {
        let to_host = all.iter().filter(|(to, ..)| *to == address(host));
        let (datagrams, bytes) = to_host.fold((0, 0), |(count, bytes), (_, size, _)| (count + 1, bytes + size));
        assert_eq!((datagrams, bytes), (32, 16 * FULL + 16 * MIN_MESSAGE1), "host {host}");
    }
}
