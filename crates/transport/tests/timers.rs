//! Every timer that expires is recorded in the trace by its name, and counted.

use downpour_transport::{
    AcceptOptions, Batch, ConnectOptions, ConnectionError, ConnectionHandle, Endpoint, EndpointConfig, Event,
    ObjectOptions, Profile, ReceivedEcn, Time,
};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

const KEY: [u8; 32] = [9; 32];

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4_000))
}

/// A traced connection with this profile to a host that may answer or not.
struct Traced {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    now: Time,
    batch: Batch,
    qlog: Vec<u8>,
}

impl Traced {
    fn new(profile: Profile) -> Self {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
        let options = ConnectOptions::new(vec![address(2)])
            .profile(profile)
            .handshake_timeout(Duration::from_secs(30))
            .qlog(true);
        let handle = endpoint.connect(Time::ZERO, KEY, options).expect("room");
        Self { endpoint, handle, now: Time::ZERO, batch: Batch::new(), qlog: Vec::new() }
    }

    /// Returns the datagrams to send now.
    fn transmit(&mut self) -> VecDeque<Vec<u8>> {
        let mut datagrams = VecDeque::new();
        let connection = self.endpoint.connection(self.handle).expect("it is not removed");
        while connection.poll_transmit(self.now, &mut self.batch) {
            self.batch.seal();
            datagrams.extend(self.batch.bytes().chunks(self.batch.segment_size()).map(<[u8]>::to_vec));
        }
        datagrams
    }

    /// Lets this time pass without an answer.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.transmit();
            let connection = self.endpoint.connection(self.handle).expect("it is not removed");
            let Some(due) = connection.poll_timeout().filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            connection.handle_timeout(self.now);
        }
        self.now = end;
    }

    /// Completes the handshake with a peer 10 ms away, silent afterwards.
    fn shake_hands(&mut self) {
        let mut peer = Endpoint::new(EndpointConfig::default(), [2; 32]);
        peer.add_key(KEY, None, AcceptOptions::default());
        let mut message = self.transmit().pop_front().expect("a first message");
        let size = message.len();
        peer.handle_datagrams(self.now, address(1), None, ReceivedEcn::NotEct, &mut message, size);
        let mut answer = peer.poll_answer().expect("the key is known").bytes;
        self.now += Duration::from_millis(10);
        let size = answer.len();
        self.endpoint.handle_datagrams(self.now, address(2), None, ReceivedEcn::NotEct, &mut answer, size);
    }

    /// Returns the names of the timers that have expired, in order. Checks that all in the trace were counted.
    fn expired(&mut self) -> Vec<String> {
        let connection = self.endpoint.connection(self.handle).expect("it is not removed");
        connection.take_qlog(&mut self.qlog);
        let records = self.qlog.split(|byte| *byte == 0x1e).filter(|record| !record.is_empty());
        let records = records.map(|record| serde_json::from_slice::<serde_json::Value>(record).expect("JSON"));
        let mut names = Vec::new();
        for record in records.filter(|record| record["name"] == "recovery:timer_updated") {
            assert_eq!(record["data"]["event_type"], "expired");
            names.push(record["data"]["timer_type"].as_str().expect("a name").to_owned());
        }
        assert_eq!(connection.stats().timers.expired, names.len() as u64);
        names
    }

    fn closed(&mut self) -> Option<ConnectionError> {
        let connection = self.endpoint.connection(self.handle).expect("it is not removed");
        let events = std::iter::from_fn(|| connection.poll_event());
        events.filter_map(|event| if let Event::Closed(closed) = event { Some(closed) } else { None }).last()
    }
}

#[test]
fn handshake_without_answer_times_out() {
    let mut traced = Traced::new(Profile::auto());
    traced.pass(Duration::from_secs(31));
    assert_eq!(traced.closed(), Some(ConnectionError::HandshakeTimeout));
    let expired = traced.expired();
    assert!(!expired.is_empty() && expired.iter().all(|name| name == "handshake_timeout"), "{expired:?}");
}

#[test]
fn a_peer_falls_silent_after_the_handshake() {
    let mut traced = Traced::new(Profile::auto());
    traced.shake_hands();
    traced.pass(Duration::from_millis(500));
    // The ping that announces us to the peer is in flight, and as large as a data packet.
    assert_eq!(traced.expired()[..3], ["pto", "pto", "black_hole"]);
    traced.pass(Duration::from_secs(31));
    assert_eq!(traced.closed(), Some(ConnectionError::TimedOut));
    let expired = traced.expired();
    assert_eq!(expired.last().map(String::as_str), Some("idle_timeout"));
    let stats = traced.endpoint.connection(traced.handle).expect("it is not removed").stats();
    let ptos = expired.iter().filter(|name| *name == "pto").count();
    assert_eq!(stats.timers.probe_timeouts, ptos as u64);
    assert_eq!((stats.timers.retransmission_timeouts, stats.packets.pings), (0, 0));
}

#[test]
fn a_retransmission_timeout_has_another_name_and_leaves_the_asking_to_pings() {
    let mut profile = Profile::auto();
    profile.set("timeout", "rto:min=200ms,max=5s").expect("a choice");
    let mut traced = Traced::new(profile);
    traced.shake_hands();
    let now = traced.now;
    let connection = traced.endpoint.connection(traced.handle).expect("it is not removed");
    connection.send_object(now, ObjectOptions { length: 1_000, tag: 0, digest: false }).expect("connected");
    traced.pass(Duration::from_secs(4));
    let expired = traced.expired();
    assert!(expired.iter().any(|name| name == "rto"), "{expired:?}");
    assert!(!expired.iter().any(|name| name == "pto"), "{expired:?}");
    let stats = traced.endpoint.connection(traced.handle).expect("it is not removed").stats();
    assert!(stats.timers.retransmission_timeouts > 0 && stats.timers.probe_timeouts == 0);
}
