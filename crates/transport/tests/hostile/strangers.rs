//! Strangers without a key, and repeated first messages.

use crate::rogue::{EMPTY, KEY, Rogue, address, deliver, message1, parameters, proof, victim};
use downpour_transport::wire::{ConnectionId, Datagram, RejectReason, limits::MIN_MESSAGE1};
use downpour_transport::{AcceptOptions, Endpoint, EndpointConfig, EndpointEvent, ReceivedEcn, Time};
use std::time::Duration;

const NOW: Time = Time::from_nanos(1_000_000_000);

fn answers(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| endpoint.poll_answer()).map(|answer| answer.bytes).collect()
}

#[test]
fn a_repeated_message_1_gets_the_same_answer_and_one_connection() {
    let mut endpoint = victim(EndpointConfig::default());
    let (mut initiator, datagram) = message1(&parameters(ConnectionId([5; 8])), 3, 1_451);
    let small = message1(&parameters(ConnectionId([5; 8])), 3, MIN_MESSAGE1).1;
    deliver(&mut endpoint, NOW, address(1), datagram.clone());
    let first = answers(&mut endpoint).remove(0);
    deliver(&mut endpoint, NOW, address(1), datagram.clone());
    assert_eq!(answers(&mut endpoint), std::slice::from_ref(&first), "a copy of the same size");
    deliver(&mut endpoint, NOW, address(1), small);
    let cut = answers(&mut endpoint).remove(0);
    assert_eq!((first.len(), cut.len()), (1_451, MIN_MESSAGE1), "padded to the received size");
    assert_eq!(cut[..], first[..MIN_MESSAGE1]);
    assert_eq!((endpoint.half_open(), endpoint.handles().count()), (1, 0));
    let (_, ping) = proof(&mut initiator, &cut);
    deliver(&mut endpoint, NOW, address(1), ping.clone());
    let Some(EndpointEvent::Accepted { handle, .. }) = endpoint.poll_event() else { panic!("not accepted") };
    assert_eq!((endpoint.half_open(), endpoint.handles().collect()), (0, vec![handle]));

    deliver(&mut endpoint, NOW, address(1), datagram.clone());
    assert_eq!(answers(&mut endpoint), Vec::<Vec<u8>>::new(), "a proved initiator needs no other answer");
    endpoint.remove(handle);
    deliver(&mut endpoint, NOW, address(1), datagram);
    deliver(&mut endpoint, NOW, address(1), ping);
    assert_eq!(answers(&mut endpoint), Vec::<Vec<u8>>::new(), "after the end, silence");
    assert_eq!((endpoint.half_open(), endpoint.handles().count(), endpoint.poll_event()), (0, 0, None));
    assert_eq!(endpoint.refused().get(RejectReason::HandshakeReplayed), 2);
}

#[test]
fn another_message_1_with_a_known_id_gets_silence() {
    let mut endpoint = victim(EndpointConfig::default());
    for (seed, expected) in [(3, 1), (4, 0)] {
        let (_, datagram) = message1(&parameters(ConnectionId([5; 8])), seed, 1_451);
        deliver(&mut endpoint, NOW, address(1), datagram);
        assert_eq!(answers(&mut endpoint).len(), expected, "seed {seed}");
    }
    assert_eq!((endpoint.half_open(), endpoint.refused().get(RejectReason::HandshakeReplayed)), (1, 1));
}

#[test]
fn an_unknown_key_or_a_wrong_one_gets_silence() {
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let (_, datagram) = message1(&parameters(ConnectionId([5; 8])), 3, 1_451);
    deliver(&mut endpoint, NOW, address(1), datagram.clone());
    assert_eq!((answers(&mut endpoint).len(), endpoint.refused().get(RejectReason::UnknownKey)), (0, 1));

    // Flip every authenticated bit, except those of version and key id, which have separate answers.
    let mut endpoint = victim(EndpointConfig::default());
    let noise = 24..24 + usize::from(u16::from_be_bytes([datagram[22], datagram[23]]));
    // The connection id and the Noise message are authenticated; the number of the copy and the padding are not.
    for at in (13..21).chain(noise.clone()) {
        let mut changed = datagram.clone();
        changed[at] ^= 1;
        deliver(&mut endpoint, NOW, address(1), changed);
    }
    assert_eq!(answers(&mut endpoint).len(), 0);
    assert_eq!(endpoint.half_open(), 0);
    assert_eq!(endpoint.refused().get(RejectReason::HandshakeFailed) as usize, 8 + noise.len());
}

#[test]
fn an_expired_or_removed_key_gets_silence() {
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let options = downpour_transport::AcceptOptions::default();
    let key = endpoint.add_key(crate::rogue::KEY, Some(NOW), options);
    let message = |id| message1(&parameters(ConnectionId([id; 8])), id, 1_451).1;
    deliver(&mut endpoint, Time::from_nanos(NOW.as_nanos() - 1), address(1), message(1));
    assert_eq!(answers(&mut endpoint).len(), 1, "just in time");
    deliver(&mut endpoint, NOW, address(1), message(2));
    endpoint.remove_key(key);
    deliver(&mut endpoint, Time::ZERO, address(1), message(3));
    assert_eq!((answers(&mut endpoint).len(), endpoint.refused().get(RejectReason::UnknownKey)), (0, 2));
}

#[test]
fn another_version_is_answered_only_with_a_known_key() {
    let (_, mut datagram) = message1(&parameters(ConnectionId([5; 8])), 3, 1_451);
    datagram[1..5].copy_from_slice(&77u32.to_be_bytes());
    let mut stranger = Endpoint::new(EndpointConfig::default(), [1; 32]);
    deliver(&mut stranger, NOW, address(1), datagram.clone());
    assert_eq!(answers(&mut stranger).len(), 0);
    let mut endpoint = victim(EndpointConfig::default());
    deliver(&mut endpoint, NOW, address(1), datagram.clone());
    let answered = answers(&mut endpoint);
    let Ok(Datagram::Versions(answer)) = Datagram::classify(&answered[0]) else { panic!("not a version answer") };
    assert_eq!(answer.destination, ConnectionId([5; 8]));
    assert!(answer.versions().any(|version| version == downpour_transport::wire::VERSION));
    assert!(answered[0].len() <= datagram.len());
    assert_eq!((endpoint.refused().get(RejectReason::BadVersion), endpoint.half_open()), (1, 0));
}

/// An expired key looks like an unknown one.
#[test]
fn another_version_with_an_expired_key_gets_silence() {
    let (_, datagram) = message1(&parameters(ConnectionId([5; 8])), 3, 1_451);
    let mut newer = datagram.clone();
    newer[1..5].copy_from_slice(&77u32.to_be_bytes());
    for (expires, answered) in [(NOW, 0), (NOW + Duration::from_nanos(1), 2)] {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
        endpoint.add_key(KEY, Some(expires), AcceptOptions::default());
        deliver(&mut endpoint, NOW, address(1), newer.clone());
        deliver(&mut endpoint, NOW, address(1), datagram.clone());
        assert_eq!(answers(&mut endpoint).len(), answered);
    }
}

#[test]
fn no_answer_is_larger_than_the_received_datagram() {
    for size in [MIN_MESSAGE1, 1_300, 1_451, 9_000] {
        let mut endpoint = victim(EndpointConfig::default());
        let (_, datagram) = message1(&parameters(ConnectionId([5; 8])), 3, size);
        deliver(&mut endpoint, NOW, address(1), datagram);
        assert!(answers(&mut endpoint).iter().all(|answer| answer.len() <= size), "{size}");
        // Nothing else is sent before the address is validated.
        assert_eq!((endpoint.handles().count(), endpoint.poll_event()), (0, None), "{size}");
    }
    let mut endpoint = victim(EndpointConfig::default());
    let (_, datagram) = message1(&parameters(ConnectionId([5; 8])), 3, MIN_MESSAGE1);
    deliver(&mut endpoint, NOW, address(1), datagram[..MIN_MESSAGE1 - 1].to_vec());
    assert_eq!((answers(&mut endpoint).len(), endpoint.refused().get(RejectReason::TooShort)), (0, 1));
}

#[test]
fn garbage_of_every_length_is_counted_and_nothing_else() {
    let mut rogue = Rogue::new();
    let mut random = 0x1234_5678_9abc_def1u64;
    let mut draw = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let before = rogue.victim.refused().total() + rogue.connection().refused().total();
    let mut sent = 0;
    let packet = rogue.seal(downpour_transport::wire::PacketKind::Control, &[1]);
    for length in 1..=1_600 {
        for first in [draw() as u8, 0x01, 0x02, 0x03, 0x10, 0x11] {
            let mut datagram: Vec<u8> = (0..length).map(|_| draw() as u8).collect();
            datagram[0] = first;
            if length > 17 && first >= 0x10 {
                datagram[1..9].copy_from_slice(&packet[1..9]);
                datagram[9..17].fill(0);
            }
            deliver(&mut rogue.victim, NOW, address(2), datagram);
            sent += 1;
        }
    }
    let after = rogue.victim.refused().total() + rogue.connection().refused().total();
    assert_eq!(after - before, sent, "every datagram is counted once");
    assert_eq!(answers(&mut rogue.victim).len(), 0);
    assert_eq!(rogue.victim.handles().count(), 1);
    assert_eq!(rogue.events(), []);
    deliver(&mut rogue.victim, NOW, address(66), packet.clone());
    assert_eq!(rogue.connection().stats().packets.received, 2, "the connection lives");
    assert!(packet.len() > EMPTY);
}

/// One read may return a mixture of packets, messages and garbage that begins like a packet; each datagram is handled
/// by its type.
#[test]
fn datagrams_of_one_read_are_distinguished() {
    const LENGTH: usize = 60;
    for kind in [0x02, 0x03, 0x55] {
        for impostor_at in 0..3 {
            let mut rogue = Rogue::new();
            let ping = [[1].as_slice(), &[0; 26]].concat();
            let mut read = [0, 1].map(|_| rogue.seal(downpour_transport::wire::PacketKind::Control, &ping)).to_vec();
            let mut impostor = read[0].clone();
            assert_eq!(impostor.len(), LENGTH);
            impostor[0] = kind;
            read.insert(impostor_at, impostor);
            let received = rogue.connection().stats().packets.received;
            let mut read = read.concat();
            rogue.victim.handle_datagrams(NOW, address(66), None, ReceivedEcn::NotEct, &mut read, LENGTH);
            let what = format!("type {kind:#04x} as number {impostor_at}");
            assert_eq!(rogue.connection().stats().packets.received, received + 2, "{what}");
            assert_eq!(rogue.victim.refused().total(), 1, "{what}");
        }
    }
}
