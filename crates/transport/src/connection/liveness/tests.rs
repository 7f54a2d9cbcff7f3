use super::*;

const RTT: Duration = Duration::from_millis(50);
/// The activity of a transfer that waits for an answer.
const IDLE: Activity = Activity {
    rtt: RTT,
    longest_timeout: Duration::from_secs(1),
    in_flight: false,
    oldest_since: Time::ZERO,
    unanswered: None,
    sending: false,
    receiving: false,
};
const SENDING: Activity = Activity { sending: true, ..IDLE };
const RECEIVING: Activity = Activity { receiving: true, ..IDLE };

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

fn liveness() -> Liveness {
    Liveness::new(Time::ZERO, &ConnectionConfig::default())
}

fn expire(liveness: &mut Liveness, now: Time, timer: Timer, activity: &Activity) -> bool {
    liveness.on_timers(now, [timer].into_iter().collect(), activity)
}

#[test]
fn a_silent_peer_is_given_up_after_dead_after() {
    let mut liveness = liveness();
    assert_eq!(liveness.idle_deadline(&IDLE), at(30_000));
    liveness.on_packet(at(5_000));
    assert_eq!(liveness.idle_deadline(&IDLE), at(35_000));
}

#[test]
fn a_path_that_carries_small_packets_and_no_symbols_is_given_up_too() {
    let mut liveness = liveness();
    liveness.on_packet(at(5_000));
    let unanswered = Activity { unanswered: Some(at(1_000)), ..IDLE };
    assert_eq!(liveness.idle_deadline(&unanswered), at(31_000));
    let slow = Activity { rtt: Duration::from_secs(4), ..unanswered };
    assert_eq!(liveness.idle_deadline(&slow), at(35_000), "no packet of it has arrived");
    liveness.on_packet(at(40_000));
    assert_eq!(liveness.idle_deadline(&slow), at(65_000), "sixteen round trips");
}

#[test]
fn port_unreachable_is_probed_twice_and_ends_the_wait_after_3_s() {
    let mut liveness = liveness();
    liveness.on_packet(at(1_000));
    assert!(!liveness.on_unreachable(at(1_199), RTT), "heard within four round trips");
    assert!(liveness.on_unreachable(at(1_200), RTT));
    assert_eq!([(); 3].map(|()| liveness.next_probe()), [Some(true), Some(false), None]);
    assert_eq!(liveness.idle_deadline(&IDLE), at(4_200));
    assert!(!liveness.on_unreachable(at(2_000), RTT), "further hints change nothing");
    assert_eq!(liveness.idle_deadline(&IDLE), at(4_200));
    let long = Activity { rtt: RTT * 20, ..IDLE };
    assert_eq!(liveness.idle_deadline(&long), at(7_200), "six round trips");
    liveness.on_packet(at(4_000));
    assert_eq!(liveness.idle_deadline(&IDLE), at(34_000), "a peer heard after the hint is alive");
    assert!(liveness.on_unreachable(at(5_000), RTT), "and the next hint counts");
}

#[test]
fn waiting_for_a_close_pings_and_believes_a_hint_after_two_round_trips() {
    let mut liveness = liveness();
    liveness.on_packet(at(1_000));
    assert_eq!(liveness.send_ping_deadline(&IDLE), None);
    liveness.expect_close();
    let in_flight = Activity { in_flight: true, ..IDLE };
    for asked in [1_000, 1_125, 1_250] {
        assert_eq!(liveness.send_ping_deadline(&in_flight), Some(at(asked + 125)), "without backing off");
        assert!(expire(&mut liveness, at(asked + 125), Timer::SendPing, &in_flight));
    }
    assert!(!liveness.on_unreachable(at(1_049), RTT), "heard within a round trip");
    assert!(liveness.on_unreachable(at(1_050), RTT));
    assert_eq!(liveness.idle_deadline(&IDLE), at(1_175));
    liveness.on_packet(at(1_100));
    assert_eq!(liveness.idle_deadline(&IDLE), at(31_100), "a peer heard after the hint is alive");
}

#[test]
fn an_unfinished_sender_with_nothing_in_flight_pings_after_two_round_trips_and_backs_off_to_one_a_second() {
    let mut liveness = liveness();
    assert_eq!(liveness.send_ping_deadline(&IDLE), None);
    assert_eq!(liveness.send_ping_deadline(&Activity { in_flight: true, ..SENDING }), None);
    let mut sent = Vec::new();
    for millis in 0..5_000 {
        if liveness.send_ping_deadline(&SENDING).is_some_and(|due| due <= at(millis)) {
            assert!(expire(&mut liveness, at(millis), Timer::SendPing, &SENDING));
            sent.push(millis);
        }
    }
    assert_eq!(sent, [125, 375, 875, 1_875, 2_875, 3_875, 4_875]);
    assert_eq!(liveness.pings(), 7);
    liveness.on_report();
    assert_eq!(liveness.send_ping_deadline(&SENDING), Some(at(5_000)), "a report ends the back-off");
    liveness.on_packet(at(4_990));
    assert_eq!(liveness.send_ping_deadline(&SENDING), Some(at(5_000)), "a PING of the peer acknowledges nothing");
    liveness.on_feedback(at(4_990));
    assert_eq!(liveness.send_ping_deadline(&SENDING), Some(at(5_115)));
}

#[test]
fn an_unfinished_receiver_pings_after_four_round_trips_until_a_packet_arrives() {
    let mut liveness = liveness();
    assert_eq!(liveness.receive_ping_deadline(&IDLE), None);
    assert_eq!(liveness.receive_ping_deadline(&RECEIVING), Some(at(300)));
    assert!(expire(&mut liveness, at(300), Timer::ReceivePing, &RECEIVING));
    assert_eq!(liveness.receive_ping_deadline(&RECEIVING), Some(at(900)));
    assert!(expire(&mut liveness, at(900), Timer::ReceivePing, &RECEIVING));
    assert_eq!(liveness.receive_ping_deadline(&RECEIVING), Some(at(1_900)), "at least one a second");
    liveness.on_report();
    assert_eq!(liveness.receive_ping_deadline(&RECEIVING), Some(at(1_900)), "a report is no packet");
    liveness.on_packet(at(1_000));
    assert_eq!(liveness.receive_ping_deadline(&RECEIVING), Some(at(1_300)));
}

#[test]
fn a_timeout_that_is_capped_below_a_second_caps_pings_as_well() {
    let mut liveness = liveness();
    let short = Activity { longest_timeout: Duration::from_millis(60), sending: true, receiving: true, ..IDLE };
    assert_eq!(liveness.send_ping_deadline(&short), Some(at(60)));
    assert_eq!(liveness.receive_ping_deadline(&short), Some(at(100)), "but a silence of 100 ms is nothing");
    liveness.on_packet_sent(at(40));
    assert_eq!(liveness.send_ping_deadline(&short), Some(at(100)), "a sent packet asks as well");
}

#[test]
fn keep_alive_idle_sends_ping() {
    let mut liveness = liveness();
    assert_eq!(liveness.keep_alive_deadline(), at(15_000));
    assert!(expire(&mut liveness, at(15_000), Timer::KeepAlive, &IDLE));
    assert_eq!(liveness.keep_alive_deadline(), at(30_000));
    assert_eq!(liveness.next_probe(), None);
}

#[test]
fn a_retransmission_timeout_of_a_minute_is_preceded_by_probes() {
    let mut liveness = liveness();
    let mut waiting = Activity { in_flight: true, longest_timeout: Duration::from_secs(60), ..IDLE };
    assert_eq!(liveness.early_probe_deadline(&Activity { in_flight: false, ..waiting }), None);
    let short = Activity { longest_timeout: Duration::from_millis(3_750), ..waiting };
    assert_eq!(liveness.early_probe_deadline(&short), None, "it is due first");
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(3_750)), "an eighth of 30 s");
    assert!(!expire(&mut liveness, at(3_750), Timer::EarlyProbe, &waiting), "a probe, no ping");
    assert_eq!(liveness.next_probe(), Some(true));
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(4_750)), "once a second");
    waiting.oldest_since = at(4_000);
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(7_750)), "a recent packet has time");
    waiting.unanswered = Some(at(2_000));
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(5_750)), "but symbols have waited for long");
    waiting.longest_timeout = short.longest_timeout;
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(5_750)), "the timeout may send control frames alone");
    waiting.longest_timeout = Duration::from_secs(1);
    assert_eq!(liveness.early_probe_deadline(&waiting), None, "it probes as often itself");
}

#[test]
fn pings_are_frequent_until_the_peer_answers() {
    let mut liveness = liveness();
    liveness.on_handshake(at(1_000));
    let waiting =
        Activity { in_flight: true, oldest_since: at(1_000), longest_timeout: Duration::from_secs(60), ..IDLE };
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(2_000)));
    assert_eq!(liveness.send_ping_deadline(&IDLE), Some(at(1_125)), "it forgets us otherwise");
    liveness.confirm();
    assert_eq!(liveness.early_probe_deadline(&waiting), Some(at(4_750)));
    assert_eq!(liveness.send_ping_deadline(&IDLE), None);
}

#[test]
fn a_report_makes_probes_needless() {
    let mut liveness = liveness();
    liveness.on_probe_timeout();
    assert_eq!(liveness.next_probe(), Some(true));
    liveness.on_report();
    assert_eq!(liveness.next_probe(), None);
}

#[test]
fn timers_of_others_are_none_of_its_business() {
    let mut liveness = liveness();
    assert!(!expire(&mut liveness, at(1), Timer::LossDetection, &SENDING));
    assert_eq!((liveness.next_probe(), liveness.pings()), (None, 0));
}
