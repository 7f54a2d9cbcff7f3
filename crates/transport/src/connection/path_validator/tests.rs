use super::*;
use std::net::Ipv4Addr;

const RTT: Duration = Duration::from_millis(50);
/// IP bytes of a probe: 28 bytes of IPv4 and UDP, header, frame, tag.
const PROBE: u64 = (28 + HEADER + PATH_FRAME + TAG) as u64;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn path(host: u8) -> AddressPair {
    AddressPair { remote: SocketAddr::from((Ipv4Addr::new(10, 0, 0, host), 4_000)), local: None }
}

/// A peer at host 1 with a received packet.
fn validator() -> PathValidator {
    let mut paths = PathValidator::new(Time::ZERO, path(1));
    hear(&mut paths, 0, 1, 0);
    paths
}

/// Delivers packet `number` of 100 bytes from `host`; a challenge to it would carry the packet number.
fn hear(paths: &mut PathValidator, millis: u64, host: u8, number: u64) {
    paths.on_packet(at(millis), ReceivedPacket { path: path(host), number, ip_bytes: 100 }, RTT, || {
        number.to_be_bytes()
    });
}

fn challenge(host: u8, number: u64) -> Option<PathProbe> {
    let frame = PathFrame::Challenge(number.to_be_bytes());
    Some(PathProbe { to: path(host), frame, ip_bytes: PROBE as u32 })
}

#[test]
fn a_new_address_becomes_the_path_once_it_has_answered() {
    let mut paths = validator();
    hear(&mut paths, 100, 2, 1);
    assert!(paths.is_validating());
    assert_eq!(paths.deadline(), Some(at(100)));
    assert_eq!(paths.poll_probe(at(100)), challenge(2, 1));
    assert_eq!(paths.active(), path(1));
    let rtt = Some(Duration::from_millis(60));
    assert_eq!(paths.on_response(at(160), path(2), 1u64.to_be_bytes()), Validation::Migrated { rtt });
    assert_eq!((paths.active(), paths.migrations(), paths.is_validating()), (path(2), 1, false));
    assert_eq!(paths.on_response(at(161), path(2), 1u64.to_be_bytes()), Validation::Ignored, "again");
}

#[test]
fn a_response_counts_only_from_the_address_that_was_challenged() {
    let mut paths = validator();
    hear(&mut paths, 100, 2, 1);
    assert_eq!(paths.on_response(at(100), path(2), 1u64.to_be_bytes()), Validation::Unsolicited, "not sent yet");
    assert!(paths.poll_probe(at(100)).is_some());
    assert_eq!(paths.on_response(at(160), path(1), 1u64.to_be_bytes()), Validation::Ignored);
    assert_eq!(paths.on_response(at(160), path(2), 9u64.to_be_bytes()), Validation::Unsolicited);
    assert_eq!((paths.active(), paths.migrations()), (path(1), 0));
}

#[test]
fn a_newer_packet_over_the_path_in_use_refutes_a_copy_from_another_address() {
    let mut paths = validator();
    hear(&mut paths, 100, 2, 1);
    assert!(paths.poll_probe(at(100)).is_some());
    hear(&mut paths, 110, 1, 2);
    assert_eq!(paths.on_response(at(160), path(2), 1u64.to_be_bytes()), Validation::Ignored);
    assert_eq!(paths.active(), path(1));
    hear(&mut paths, 170, 3, 1);
    assert_eq!(paths.poll_probe(at(170)), None, "an old packet from another address is not even challenged");
}

#[test]
fn challenges_back_off_within_three_times_the_received_bytes() {
    let mut paths = validator();
    hear(&mut paths, 0, 2, 1);
    let mut sent = Vec::new();
    for millis in 0..3_000 {
        paths.on_timer(at(millis));
        sent.extend(paths.poll_probe(at(millis)).map(|_| millis));
    }
    // Two round trips and 25 ms, doubled each time. A fifth would exceed 300 bytes: the address has to send again
    // first.
    assert_eq!(sent, [0, 125, 375, 875]);
    assert!((60..75).contains(&PROBE), "{PROBE}");
    assert_eq!(paths.deadline(), Some(at(3_000)), "the candidate is given up");
    paths.on_timer(at(3_000));
    assert!(!paths.is_validating());
}

#[test]
fn challenges_keep_no_time_with_anything_else() {
    let mut paths = validator();
    let path = ReceivedPacket { path: path(2), number: 1, ip_bytes: 10_000 };
    paths.on_packet(at(0), path, Duration::from_millis(500), || [0, 255, 128, 64, 0, 0, 0, 0]);
    let sent: Vec<_> = (0..5_000).filter(|millis| paths.poll_probe(at(*millis)).is_some()).collect();
    // First two round trips and 25 ms, then a second and up to a quarter more.
    assert_eq!(sent, [0, 1_025, 2_275, 3_400, 4_463]);
}

/// On a path that loses half of the packets in each direction, one challenge in four is answered.
#[test]
fn the_only_address_of_the_peer_is_challenged_until_it_answers() {
    let mut paths = validator();
    let mut sent = 0;
    for second in 0..30 {
        hear(&mut paths, second * 1_000, 2, 1 + second);
        for millis in second * 1_000..(second + 1) * 1_000 {
            paths.on_timer(at(millis));
            sent += u32::from(paths.poll_probe(at(millis)).is_some());
        }
    }
    assert_eq!(sent, 33);
    assert_eq!(paths.on_response(at(30_000), path(2), 1u64.to_be_bytes()), Validation::Migrated { rtt: None });

    // Copies that arrive behind their originals prolong nothing.
    let mut paths = validator();
    for second in 0..4 {
        hear(&mut paths, second * 1_000, 2, 1 + second);
        hear(&mut paths, second * 1_000, 1, 2 + second);
        paths.on_timer(at(second * 1_000));
    }
    assert!(!paths.is_validating());
}

#[test]
fn the_rtt_of_the_new_path_is_unknown_when_two_challenges_were_sent() {
    let mut paths = validator();
    hear(&mut paths, 0, 2, 1);
    assert!(paths.poll_probe(at(0)).is_some());
    assert!(paths.poll_probe(at(125)).is_some());
    assert_eq!(paths.on_response(at(130), path(2), 1u64.to_be_bytes()), Validation::Migrated { rtt: None });
}

#[test]
fn of_five_candidates_the_one_with_the_oldest_packet_is_forgotten() {
    let mut paths = validator();
    (2..=6).for_each(|host| hear(&mut paths, 0, host, host.into()));
    let probes: Vec<_> = std::iter::from_fn(|| paths.poll_probe(at(0))).map(|probe| probe.to).collect();
    assert_eq!(probes.len(), MAX_CANDIDATES);
    assert!(!probes.contains(&path(2)));
}

#[test]
fn a_challenge_of_the_peer_is_answered_and_restarts_the_path_less_and_less_often() {
    let mut paths = validator();
    let mut restarts = |millis, data: u8, alone| paths.on_challenge(at(millis), path(1), [data; 8], alone);
    assert!(!restarts(0, 1, false), "it asks about packet sizes");
    assert!(restarts(10, 2, true));
    assert!(!restarts(1_500, 2, true), "a copy");
    assert!(restarts(1_500, 3, true));
    assert!(!restarts(2_600, 4, true), "too soon");
    let response = PathFrame::Response([4; 8]);
    let probe = PathProbe { to: path(1), frame: response, ip_bytes: PROBE as u32 };
    assert_eq!(paths.deadline(), Some(Time::ZERO));
    assert_eq!(paths.poll_probe(at(2_600)), Some(probe), "the last one only");
    assert_eq!(paths.poll_probe(at(2_600)), None);

    // A challenge every 100 ms for ten minutes.
    let mut times = Vec::new();
    for tick in 0..6_000u64 {
        if paths.on_challenge(at(10_000 + 100 * tick), path(1), (1_000 + tick).to_be_bytes(), true) {
            times.push(100 * tick / 1_000);
        }
    }
    assert_eq!(times[..7], [0, 4, 12, 28, 60, 92, 124], "seconds between them double up to 32");
    assert_eq!(times.len(), 21);
    assert!(paths.on_challenge(at(10_000_000), path(1), [7; 8], true));
    assert!(paths.on_challenge(at(10_001_000), path(1), [8; 8], true), "after a pause, a second is enough again");
}

#[test]
fn a_challenge_from_another_address_is_answered_to_it_and_restarts_nothing() {
    let mut paths = validator();
    assert!(!paths.on_challenge(at(10), path(3), [2; 8], true), "any host may have relayed it");
    let probe = PathProbe { to: path(3), frame: PathFrame::Response([2; 8]), ip_bytes: PROBE as u32 };
    assert_eq!(paths.poll_probe(at(10)), Some(probe));
    assert!(paths.on_challenge(at(20), path(1), [3; 8], true));
}

#[test]
fn a_packet_validates_the_address_of_the_first_message_unless_copies_came_from_others() {
    let mut paths = PathValidator::new(Time::ZERO, path(1));
    paths.on_first_message(path(1).remote);
    assert!(!paths.is_validated());
    hear(&mut paths, 0, 1, 0);
    assert!(paths.is_validated());

    let mut paths = PathValidator::new(Time::ZERO, path(1));
    paths.on_first_message(path(2).remote);
    hear(&mut paths, 0, 1, 0);
    assert!(!paths.is_validated(), "any host may have sent the copies, and the packet");
    assert_eq!(paths.poll_probe(at(0)), challenge(1, 0));
    let rtt = Some(RTT);
    assert_eq!(paths.on_response(at(50), path(1), 0u64.to_be_bytes()), Validation::Migrated { rtt });
    assert!(paths.is_validated());
}

#[test]
fn a_silent_path_is_in_doubt_when_the_peer_sends_from_another_address() {
    let mut paths = validator();
    assert!(!paths.is_in_doubt(at(10_000), RTT), "silence alone is no evidence about the path");
    hear(&mut paths, 100, 2, 1);
    assert!(!paths.is_in_doubt(at(250), RTT));
    assert!(paths.is_in_doubt(at(251), RTT));
    hear(&mut paths, 260, 1, 2);
    assert!(!paths.is_in_doubt(at(1_000), RTT), "that packet was newer");
}

#[test]
fn a_connection_that_closes_follows_the_newest_packet_without_validation() {
    let mut paths = validator();
    let packet = |host, number| ReceivedPacket { path: path(host), number, ip_bytes: 100 };
    assert_eq!(paths.on_packet_while_closing(at(1), packet(1, 5)), LastPath::Same);
    assert_eq!(paths.on_packet_while_closing(at(2), packet(2, 4)), LastPath::Left);
    assert_eq!(paths.active(), path(1));
    assert_eq!(paths.on_packet_while_closing(at(3), packet(2, 6)), LastPath::Changed);
    assert_eq!(paths.active(), path(2));
    assert_eq!(paths.on_packet_while_closing(at(4), packet(1, 3)), LastPath::Left, "no answer to host 2 for it");
    assert_eq!(paths.on_packet_while_closing(at(4), packet(2, 4)), LastPath::Same);
}

#[test]
fn answers_leave_from_the_local_address_that_was_reached() {
    let mut paths = validator();
    let local = Some(IpAddr::from([192, 168, 0, 1]));
    let arrival = ReceivedPacket { path: AddressPair { local, ..path(1) }, number: 1, ip_bytes: 100 };
    paths.on_packet(at(1), arrival, RTT, || unreachable!("the path in use is not challenged"));
    assert_eq!(paths.active().local, local);
}

#[test]
fn a_datagram_has_28_bytes_of_headers_over_ipv4_and_48_over_ipv6() {
    let overhead =
        |remote: &str| AddressPair { remote: remote.parse().expect("address"), local: None }.datagram_overhead();
    assert_eq!(["1.2.3.4:5", "[::ffff:1.2.3.4]:5", "[2001:db8::1]:5"].map(overhead), [28, 28, 48]);
}
