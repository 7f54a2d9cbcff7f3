//! Guests, which hold a key, and replays of first messages: whatever their number, others can connect, and only a
//! handshake completed by its initiator is accepted.

use crate::rogue::{KEY, deliver, message1, message1_for, parameters, proof, victim};
use downpour_transport::secure::Initiator;
use downpour_transport::wire::{ConnectionId, RejectReason, limits::MIN_MESSAGE1};
use downpour_transport::{AcceptOptions, ConnectionConfig, Endpoint, EndpointConfig, EndpointEvent, Event, Time};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

const NOW: Time = Time::from_nanos(1_000_000_000);
/// How long an answered first message is remembered.
const PATIENCE: Duration = Duration::from_secs(30);

fn from(address: &str) -> SocketAddr {
    (address.parse::<IpAddr>().expect("an address"), 4_000).into()
}

/// An honest initiator, with its first message.
struct Guest {
    from: SocketAddr,
    initiator: Initiator,
    message: Vec<u8>,
}

impl Guest {
    fn new(key: [u8; 32], address: &str, number: u64) -> Self {
        let offer = parameters(ConnectionId(number.to_be_bytes()));
        let (initiator, message) = message1_for(key, &offer, 200, MIN_MESSAGE1);
        Self { from: from(address), initiator, message }
    }

    /// Sends its first message, and returns the answer.
    fn ask(&self, endpoint: &mut Endpoint, now: Time) -> Option<Vec<u8>> {
        deliver(endpoint, now, self.from, self.message.clone());
        let answer = endpoint.poll_answer();
        assert!(endpoint.poll_answer().is_none());
        answer.map(|answer| answer.bytes)
    }

    /// Proves that its first message is no replay; returns the packet that does, and whether the connection is open.
    fn prove(&mut self, endpoint: &mut Endpoint, now: Time, answer: &[u8]) -> (Vec<u8>, bool) {
        let (_, ping) = proof(&mut self.initiator, answer);
        deliver(endpoint, now, self.from, ping.clone());
        let accepted = endpoint.poll_event();
        if let Some(EndpointEvent::Accepted { handle, .. }) = accepted {
            let connection = endpoint.connection(handle).expect("it was just accepted");
            assert_eq!((connection.poll_event(), connection.remote()), (Some(Event::Connected), self.from));
        }
        (ping, accepted.is_some())
    }
}

/// Sends so many different first messages, the nth from `address(n)`, a microsecond apart, and takes the answers.
fn flood(endpoint: &mut Endpoint, key: [u8; 32], messages: u64, address: impl Fn(u64) -> SocketAddr) -> u64 {
    (0..messages)
        .filter(|nth| {
            let offer = parameters(ConnectionId((1 << 32 | nth).to_be_bytes()));
            let (_, message) = message1_for(key, &offer, (nth % 100) as u8, MIN_MESSAGE1);
            deliver(endpoint, NOW + Duration::from_micros(*nth), address(*nth), message);
            endpoint.poll_answer().is_some()
        })
        .count() as u64
}

/// Checks that a guest with a proof behind this many first messages is accepted, and another one after them.
#[track_caller]
fn assert_open(key: [u8; 32], messages: u64, address: impl Fn(u64) -> SocketAddr) {
    let config = EndpointConfig::default();
    let mut endpoint = victim(config.clone());
    if key != KEY {
        endpoint.add_key(key, None, AcceptOptions::default());
    }
    let mut guest = Guest::new(KEY, "198.51.100.7", 1);
    let answer = guest.ask(&mut endpoint, NOW).expect("it is accepted");
    assert_eq!(flood(&mut endpoint, key, messages, address), messages, "each is answered");
    assert!(endpoint.half_open() <= config.max_half_open, "{} are remembered", endpoint.half_open());
    let now = NOW + Duration::from_micros(messages);
    assert!(guest.prove(&mut endpoint, now, &answer).1, "the first guest was forgotten");
    let mut late = Guest::new(KEY, "203.0.113.9", 2);
    let answer = late.ask(&mut endpoint, now).expect("it is accepted");
    assert!(late.prove(&mut endpoint, now, &answer).1, "no room for a late guest");
    assert_eq!(endpoint.handles().count(), 2, "nothing but a proof opens a connection");
    endpoint.handle_timeout(now + PATIENCE);
    assert_eq!(endpoint.half_open(), 0);
}

/// More than an endpoint remembers.
const CROWD: u64 = 6_000;

#[test]
fn first_messages_from_one_address_exclude_no_guest() {
    assert_open(KEY, CROWD, |_| from("192.0.2.1"));
}

#[test]
fn first_messages_from_one_network_exclude_no_guest() {
    let host = |nth: u64| {
        SocketAddr::new((0x2001_0db8_0000_0001_u128 << 64 | u128::from(nth)).to_be_bytes().into(), nth as u16)
    };
    assert_open(KEY, CROWD, host);
}

/// With at least as many addresses as entries, every address has one. Each is two messages here.
#[test]
fn first_messages_from_many_networks_exclude_no_smaller_holder() {
    assert_open(KEY, CROWD, |nth| {
        SocketAddr::from((((198 << 24 | 18 << 16) + (nth % 3_000) as u32).to_be_bytes(), 4_000))
    });
}

#[test]
fn first_messages_with_another_key_exclude_no_guest() {
    assert_open([3; 32], CROWD, |nth| SocketAddr::from((((198 << 24 | 18 << 16) + nth as u32).to_be_bytes(), 4_000)));
}

#[test]
#[ignore = "takes a minute"]
fn first_messages_100_000_from_one_address_exclude_no_guest() {
    assert_open(KEY, 100_000, |_| from("192.0.2.1"));
}

/// Messages from one address displace its own: a host that shares the address with a flood has as long as the entries
/// last.
#[test]
fn the_oldest_first_message_of_the_largest_holder_is_forgotten_first() {
    let mut endpoint = victim(EndpointConfig { max_half_open: 8, ..EndpointConfig::default() });
    let mut neighbour = Guest::new(KEY, "192.0.2.1", 1);
    let answer = neighbour.ask(&mut endpoint, NOW).expect("it is accepted");
    assert_eq!(flood(&mut endpoint, KEY, 7, |_| from("192.0.2.1")), 7);
    assert!(neighbour.prove(&mut endpoint, NOW, &answer).1, "all eight have a place");

    let mut neighbour = Guest::new(KEY, "192.0.2.1", 2);
    let answer = neighbour.ask(&mut endpoint, NOW).expect("it is accepted");
    let mut apart = Guest::new(KEY, "192.0.2.2", 3);
    let answer_apart = apart.ask(&mut endpoint, NOW).expect("it is accepted");
    assert_eq!(flood(&mut endpoint, KEY, 7, |_| from("192.0.2.1")), 7);
    assert_eq!(endpoint.half_open(), 8);
    assert!(!neighbour.prove(&mut endpoint, NOW, &answer).1, "it was the oldest of the address with the most");
    assert!(apart.prove(&mut endpoint, NOW, &answer_apart).1);
    // It may try again with the same message: the answer is another one.
    assert_ne!(neighbour.ask(&mut endpoint, NOW).expect("it is accepted"), answer);
}

#[test]
fn a_first_message_alone_changes_nothing_for_others() {
    // Divided by a hundred connections, this would be less than the first credit.
    let limits = ConnectionConfig { most_symbols: 100_000, ..ConnectionConfig::default() };
    let credit_beside = |messages: u64| {
        let config = EndpointConfig { limits, max_connections: 1, ..EndpointConfig::default() };
        let mut endpoint = victim(config);
        flood(&mut endpoint, KEY, messages, |_| from("192.0.2.1"));
        let mut guest = Guest::new(KEY, "198.51.100.7", 1);
        let answer = guest.ask(&mut endpoint, NOW).expect("only open connections count");
        let (reply, ping) = proof(&mut guest.initiator, &answer);
        deliver(&mut endpoint, NOW, guest.from, ping);
        assert_eq!(endpoint.handles().count(), 1);
        reply.credit
    };
    assert_eq!(credit_beside(100), credit_beside(0));
}

#[test]
fn a_first_message_is_forgotten_in_half_a_minute_however_often_it_is_copied() {
    let mut endpoint = victim(EndpointConfig::default());
    let mut guest = Guest::new(KEY, "192.0.2.1", 1);
    let answer = guest.ask(&mut endpoint, NOW).expect("it is accepted");
    assert_eq!(endpoint.poll_timeout(), Some(NOW + PATIENCE));
    for seconds in 1..30 {
        let again = guest.ask(&mut endpoint, NOW + Duration::from_secs(seconds));
        assert_eq!(again.as_ref(), Some(&answer), "after {seconds} s");
    }
    endpoint.handle_timeout(NOW + PATIENCE - Duration::from_nanos(1));
    assert_eq!((endpoint.half_open(), endpoint.poll_timeout()), (1, Some(NOW + PATIENCE)));
    // Whether or not the timer is checked.
    let (late, opened) = guest.prove(&mut endpoint, NOW + PATIENCE, &answer);
    assert_eq!((opened, endpoint.half_open(), endpoint.poll_timeout()), (false, 0, None));
    assert_eq!(endpoint.refused().get(RejectReason::UnknownConnection), 1);

    // An initiator that still tries is answered again.
    let mut guest = Guest::new(KEY, "192.0.2.1", 1);
    let other = guest.ask(&mut endpoint, NOW + PATIENCE).expect("it is accepted");
    assert_ne!(other, answer);
    deliver(&mut endpoint, NOW + PATIENCE, guest.from, late);
    assert_eq!(endpoint.poll_event(), None, "a packet sealed for the first answer does not open under the second");
    assert!(guest.prove(&mut endpoint, NOW + PATIENCE, &other).1);
}

#[test]
fn only_so_many_copies_of_a_first_message_are_answered() {
    let mut endpoint = victim(EndpointConfig::default());
    let guest = Guest::new(KEY, "192.0.2.1", 1);
    let answered = (0..200).filter(|_| guest.ask(&mut endpoint, NOW).is_some()).count();
    assert_eq!((answered, endpoint.refused().get(RejectReason::HandshakeReplayed)), (128, 72));
}

/// Without room for its connection, an answered guest may try again until room is free.
#[test]
fn a_proof_that_finds_no_room_may_be_repeated() {
    let mut endpoint = victim(EndpointConfig { max_connections: 1, ..EndpointConfig::default() });
    let mut guests = [1, 2].map(|number| Guest::new(KEY, "192.0.2.1", number));
    let answers = guests.each_ref().map(|guest| guest.ask(&mut endpoint, NOW).expect("no peer is connected"));
    assert!(guests[0].prove(&mut endpoint, NOW, &answers[0]).1);
    let (ping, opened) = guests[1].prove(&mut endpoint, NOW, &answers[1]);
    assert_eq!((opened, endpoint.refused().get(RejectReason::Busy)), (false, 1));
    assert_eq!(Guest::new(KEY, "192.0.2.3", 3).ask(&mut endpoint, NOW), None, "a new guest is not answered");
    let first = endpoint.handles().next().expect("one is open");
    endpoint.remove(first);
    deliver(&mut endpoint, NOW, guests[1].from, ping);
    assert!(matches!(endpoint.poll_event(), Some(EndpointEvent::Accepted { .. })));
}

/// A guest that the program rejects again and again leaves closed connections that wait for its answer.
#[test]
fn closed_connections_exclude_no_guest() {
    let mut endpoint = victim(EndpointConfig { max_connections: 2, ..EndpointConfig::default() });
    let connect = |endpoint: &mut Endpoint, number| {
        let mut guest = Guest::new(KEY, "192.0.2.1", number);
        let answer = guest.ask(endpoint, NOW)?;
        assert!(guest.prove(endpoint, NOW, &answer).1, "guest {number}");
        endpoint.handles().last()
    };
    let [first, mut last] = [0, 1].map(|number| connect(&mut endpoint, number).expect("it is accepted"));
    endpoint.connection(first).expect("open").close(NOW, 1, "another one");
    assert_eq!(connect(&mut endpoint, 2), None, "the program has not got the event of the close");
    for number in 2..10 {
        let closed = if number == 2 { first } else { last };
        let connection = endpoint.connection(closed).expect("not removed");
        connection.close(NOW, 1, "another one");
        assert!(matches!(connection.poll_event(), Some(Event::Closed(_))) && !connection.is_drained());
        let handle = connect(&mut endpoint, number).expect("the closed one is replaced");
        assert!(endpoint.connection(closed).is_none() && endpoint.handles().count() == 2);
        last = handle;
    }
    assert_eq!(connect(&mut endpoint, 10), None, "those are open");
}

#[test]
fn a_removed_key_is_awaited_while_an_answered_guest_may_connect() {
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let first = endpoint.add_key(KEY, None, AcceptOptions::default());
    assert!(!endpoint.awaits(first));
    let mut early = Guest::new(KEY, "192.0.2.1", 1);
    let answer = early.ask(&mut endpoint, NOW).expect("it is accepted");
    // The same key again, with other options.
    let second = endpoint.add_key(KEY, None, AcceptOptions::default());
    endpoint.remove_key(first);
    let late = Guest::new(KEY, "192.0.2.1", 2);
    assert!(late.ask(&mut endpoint, NOW).is_some(), "the key still exists");
    assert!(endpoint.awaits(first) && endpoint.awaits(second));
    let (_, ping) = proof(&mut early.initiator, &answer);
    deliver(&mut endpoint, NOW, early.from, ping);
    assert!(matches!(endpoint.poll_event(), Some(EndpointEvent::Accepted { key, .. }) if key == first));
    assert!(!endpoint.awaits(first) && endpoint.awaits(second));
    endpoint.handle_timeout(NOW + PATIENCE);
    assert!(!endpoint.awaits(second));
}

/// A listener that serves more connections than it remembers; the first of them was recorded, and is replayed during its
/// time and ever after.
#[test]
fn a_replay_is_never_accepted_however_old_it_is() {
    const CONNECTIONS: u64 = 4_200;
    let mut endpoint = victim(EndpointConfig::default());
    let mut recorded = Guest::new(KEY, "192.0.2.1", 0);
    let answer = recorded.ask(&mut endpoint, NOW).expect("it is accepted");
    let (ping, opened) = recorded.prove(&mut endpoint, NOW, &answer);
    assert!(opened);
    let replay = |endpoint: &mut Endpoint, at: &str| {
        let open = endpoint.handles().count();
        for datagram in [&recorded.message, &ping, &ping] {
            deliver(endpoint, NOW, recorded.from, datagram.clone());
            assert_eq!(endpoint.poll_event(), None, "{at}");
        }
        assert_eq!(endpoint.handles().count(), open, "{at}");
        std::iter::from_fn(|| endpoint.poll_answer()).count()
    };
    assert_eq!(replay(&mut endpoint, "while it is open"), 0);
    let first = endpoint.handles().next().expect("open");
    endpoint.remove(first);
    assert_eq!(replay(&mut endpoint, "after its end"), 0);
    for number in 1..=CONNECTIONS {
        let mut guest = Guest::new(KEY, "198.51.100.7", number);
        let answer = guest.ask(&mut endpoint, NOW).expect("room for one after another");
        assert!(guest.prove(&mut endpoint, NOW, &answer).1, "connection {number}");
        let handle = endpoint.handles().next().expect("open");
        endpoint.remove(handle);
    }
    assert_eq!(replay(&mut endpoint, "long after its end"), 1, "it was forgotten, and is answered under other keys");
    assert_eq!(replay(&mut endpoint, "again"), 1, "a copy gets the same answer");
    assert_eq!(endpoint.half_open(), 1);
    endpoint.handle_timeout(NOW + PATIENCE);
    assert_eq!(endpoint.half_open(), 0);
}

/// Strangers have no key, and are not answered whatever the number of keys and places.
#[test]
fn messages_of_another_key_take_no_place() {
    let mut endpoint = victim(EndpointConfig::default());
    assert_eq!(flood(&mut endpoint, [4; 32], 100, |_| from("192.0.2.1")), 0);
    let (_, forged) = message1(&parameters(ConnectionId([5; 8])), 3, MIN_MESSAGE1);
    for at in 24..100 {
        let mut forged = forged.clone();
        forged[at] ^= 1;
        deliver(&mut endpoint, NOW, from("192.0.2.1"), forged);
    }
    assert_eq!((endpoint.half_open(), endpoint.poll_answer().is_none()), (0, true));
}
