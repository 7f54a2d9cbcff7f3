//! Losses by duplicate acknowledgements, one event at a time.

use super::*;
use crate::wire::{FlowId, SymbolId};

/// No packet is declared lost.
const NONE: [u64; 0] = [];

/// A sender with feedback in order, in its tenth millisecond on a path of 50 ms, with packets 0 to `sent - 1` in
/// flight.
struct Line {
    recovery: Recovery,
    next: u64,
    arrived: u64,
    now: Time,
}

impl Line {
    fn new(detection: &str, sent: u64) -> Self {
        Self::with_timeout(detection, "rto", sent)
    }

    fn with_timeout(detection: &str, timeout: &str, sent: u64) -> Self {
        Self::under("fixed-rate:1G", detection, timeout, sent)
    }

    fn under(congestion: &str, detection: &str, timeout: &str, sent: u64) -> Self {
        let config = RecoveryConfig {
            congestion: congestion.parse().unwrap(),
            detection: detection.parse().unwrap(),
            timeout: timeout.parse().unwrap(),
            ..RecoveryConfig::default()
        };
        let mut recovery = Recovery::new(&config, Time::ZERO, OVERHEAD);
        recovery.set_max_packet(PACKET);
        recovery.set_rtt_from_handshake(Time::ZERO, millis(50));
        let mut line = Self { recovery, next: 0, arrived: 0, now: at(10) };
        (0..sent).for_each(|_| line.symbol());
        line.now = at(60);
        line
    }

    fn send(&mut self, content: Content) {
        self.recovery.on_sent(SentPacket { number: self.next, time: self.now, bytes: PACKET, content }, false);
        self.next += 1;
    }

    fn symbol(&mut self) {
        self.send(Content::Symbols(SymbolId { flow: FlowId(1), block: 0, esi: self.next as u32 }.into()));
    }

    /// Handles feedback that names `named` (highest range first) after `more` arrivals; returns the numbers declared
    /// lost for it.
    fn hear(&mut self, named: &[(u64, u64)], more: u64) -> Vec<u64> {
        self.arrived += more;
        let packets = ranges(named);
        let packets = (!named.is_empty()).then_some(&packets);
        let acked = AckInfo::InOrder { packets, largest: self.next - 1, arrived: self.arrived };
        self.recovery.on_feedback(self.now, acked, None).unwrap();
        self.recovery.report().lost.iter().map(|sent| sent.number).collect()
    }

    fn in_flight(&self) -> u64 {
        self.recovery.bytes_in_flight() / u64::from(PACKET)
    }
}

#[test]
fn three_duplicates_call_the_oldest_lost_and_leave_the_flight_smaller() {
    let mut line = Line::new("duplicates", 10);
    assert_eq!(line.hear(&[(0, 1)], 2), NONE, "in order");
    assert_eq!(line.in_flight(), 8);
    assert_eq!(line.hear(&[(0, 1)], 1), NONE);
    assert_eq!(
        (line.in_flight(), line.recovery.packets_in_flight()),
        (7, 8),
        "one has arrived, and it is unknown which"
    );
    assert_eq!(line.hear(&[(0, 1)], 1), NONE);
    assert_eq!(line.hear(&[(0, 1)], 1), [2]);
    assert_eq!(line.in_flight(), 4);
    assert_eq!(line.hear(&[(0, 1)], 4), NONE, "more duplicates have no news");
    assert_eq!(line.in_flight(), 0, "3 to 9 have arrived");
    line.symbol();
    assert_eq!(line.in_flight(), 1);
    assert_eq!(line.hear(&[(0, 1)], 0), NONE, "repeated feedback");
    line.now = at(110);
    assert_eq!(line.hear(&[(3, 10), (0, 1)], 1), NONE);
    let report = line.recovery.report();
    assert_eq!(
        (report.delivered.len(), report.spurious.len(), report.rtt),
        (8, 0, None),
        "7 of them waited for the gap"
    );
    assert_eq!((line.in_flight(), line.recovery.packets_in_flight(), line.recovery.next_timeout()), (0, 0, None));
}

/// RFC 5681 section 3.2, arq §3.1: ten in flight and the first of them lost leave a window of 5 + 3, which each further
/// duplicate enlarges by one. It is counted against everything unacknowledged, including the two that RFC 3042 has sent
/// before: the next four duplicates send nothing, and each after these sends one. If the flight excludes packets that
/// have arrived instead (inflation=0), the result is the same.
#[test]
fn a_duplicate_makes_room_for_one_packet_and_not_for_two() {
    for inflation in [3, 0] {
        let reno = format!("reno:initial=10,threshold=none,inflation={inflation}");
        let mut line = Line::under(&reno, "duplicates", "rto", 10);
        let mut let_out = |duplicates| {
            line.hear(&[], duplicates);
            let before = line.next;
            loop {
                match line.recovery.send_allowance(line.now) {
                    SendAllowance::Bytes(_) => line.symbol(),
                    SendAllowance::Wait(until) => line.now = until,
                    SendAllowance::Blocked => break line.next - before,
                }
            }
        };
        assert_eq!([1, 1, 1].map(&mut let_out), [1, 1, 1], "the third sends the lost one again");
        assert_eq!([1, 1, 1, 1, 1, 1].map(&mut let_out), [0, 0, 0, 0, 1, 1], "inflation={inflation}");
        let window = line.recovery.window() / u64::from(PACKET);
        assert_eq!((line.in_flight(), window), (5, if inflation == 3 { 14 } else { 5 }));
    }
}

#[test]
fn lost_feedback_hides_no_duplicates() {
    let mut line = Line::new("duplicates:count=4", 10);
    assert_eq!(line.hear(&[(0, 1)], 5), NONE, "two in order and three more");
    assert_eq!(line.in_flight(), 5);
    assert_eq!(line.hear(&[(0, 1)], 3), [2], "three reported at once");
    let mut line = Line::new("duplicates", 10);
    assert_eq!(line.hear(&[], 3), [0], "nothing at all was named yet");
}

#[test]
fn a_partial_arrival_calls_the_next_one_lost_and_reno_forgets() {
    for (detection, next) in [("duplicates", vec![6]), ("duplicates:newreno=off", vec![])] {
        let mut line = Line::new(detection, 10);
        assert_eq!(line.hear(&[(0, 1)], 2), NONE);
        assert_eq!(line.hear(&[(0, 1)], 6), [2]);
        line.symbol();
        line.now = at(110);
        // The repair of 2 arrives: 6 is missing, 7 to 9 are withheld.
        assert_eq!(line.hear(&[(10, 10), (3, 5), (0, 1)], 1), next, "{detection}");
        line.symbol();
        line.now = at(160);
        assert_eq!(line.hear(&[(7, 11), (3, 5), (0, 1)], 1), NONE, "{detection}");
        assert_eq!(line.recovery.packets_in_flight(), usize::from(next.is_empty()), "{detection}");
    }
}

#[test]
fn a_lost_retransmission_is_probed_although_new_packets_are_sent() {
    let mut line = Line::with_timeout("duplicates", "probe", 10);
    assert_eq!(line.hear(&[(0, 1)], 5), [2]);
    // 10, the repair of 2, is lost; 11 to 20 are withheld like 3 to 9, and each sends the next one.
    line.symbol();
    let due = line.recovery.next_timeout().unwrap();
    for _ in 0..10 {
        line.now += millis(5);
        line.symbol();
        assert_eq!(line.hear(&[(0, 1)], 1), NONE);
        assert_eq!(line.recovery.next_timeout(), Some(due), "2 is waited for, whatever is sent");
    }
    line.now = due;
    assert_eq!(line.recovery.on_timeout(due), Timeout::Probe);
    line.symbol();
    line.now = due + millis(50);
    assert_eq!(line.hear(&[(11, 21), (3, 9), (0, 1)], 5), [10], "the probe carried the content of 2 and 10");
    assert_eq!((line.recovery.packets_in_flight(), line.recovery.next_timeout()), (0, None));
}

#[test]
fn without_recovery_only_silence_finds_losses() {
    let mut line = Line::new("duplicates:recovery=off", 10);
    assert_eq!(line.hear(&[(0, 1)], 2), NONE);
    assert_eq!(line.hear(&[(0, 1)], 7), NONE);
    assert_eq!(line.in_flight(), 8);
    let due = line.recovery.next_timeout().unwrap();
    assert_eq!(due, at(60 + 50 + 75), "from the last arrival in order");
    assert_eq!(line.recovery.on_timeout(due), Timeout::Lost);
    assert_eq!((line.recovery.report().cause, line.recovery.report().lost.len()), (Cause::Timeout, 8));
}

#[test]
fn an_immediate_acknowledgement_is_no_duplicate() {
    let mut line = Line::new("duplicates", 2);
    line.send(Content::Control(7));
    (0..2).for_each(|_| line.symbol());
    (0..3).for_each(|_| line.send(Content::Nothing));
    // 0 and 2 are lost; 1, 3 and 4 are withheld.
    assert_eq!(line.hear(&[(5, 5)], 2), [2], "three numbers ahead of the control packet one is named");
    assert_eq!(line.hear(&[(5, 6)], 1), NONE, "an answer to a ping is no duplicate");
    assert_eq!(line.hear(&[(5, 7)], 3), [0], "two duplicates more");
}

#[test]
fn an_emptied_flight_takes_old_arrivals_for_no_duplicates() {
    let mut line = Line::new("duplicates", 10);
    let due = line.recovery.next_timeout().unwrap();
    assert_eq!(line.recovery.on_timeout(due), Timeout::Lost);
    assert_eq!((line.recovery.report().lost.len(), line.in_flight()), (10, 0));
    line.now = due;
    (0..4).for_each(|_| line.symbol());
    assert_eq!(line.hear(&[], 5), NONE, "1 to 5 were late, not lost");
    assert_eq!(line.in_flight(), 4);
    line.now = due + millis(50);
    assert_eq!(line.hear(&[(10, 10), (1, 5)], 1), NONE);
    let report = line.recovery.report();
    assert_eq!((report.spurious.len(), report.delivered.len(), report.rtt), (5, 1, Some(millis(50))));
    assert_eq!(line.hear(&[(10, 10), (1, 5)], 3), [11], "then duplicates count again");
}

#[test]
fn an_answered_question_ends_a_recovery_whose_repair_is_lost() {
    let mut line = Line::new("duplicates", 8);
    let mut config = config("fixed-rate:1G");
    config.detection = "duplicates".parse().unwrap();
    line.recovery.reconfigure(&config, line.now);
    assert_eq!(line.hear(&[], 7), [0]);
    line.symbol();
    let due = line.recovery.next_timeout().unwrap();
    assert_eq!(line.recovery.on_timeout(due), Timeout::Probe);
    line.now = due;
    line.send(Content::Nothing);
    assert_eq!(line.hear(&[(9, 9)], 1), [1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(line.recovery.packets_in_flight(), 0);
}

/// If only small packets get through, the content of a probe is lost, and the small packets in between are answered
/// later than the next probe is sent.
#[test]
fn a_question_is_answered_however_many_are_asked_meanwhile() {
    let mut line = Line::with_timeout("duplicates", "probe", 8);
    for _ in 0..2 {
        let due = line.recovery.next_timeout().unwrap();
        assert_eq!(line.recovery.on_timeout(due), Timeout::Probe);
        line.now = due;
        line.symbol();
        line.send(Content::Nothing);
    }
    // The first probe is 8, the second 10; 9 and 11 are small.
    assert_eq!(line.hear(&[(9, 9)], 1), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(line.hear(&[(11, 11), (9, 9)], 1), [8]);
    assert_eq!(line.hear(&[(11, 11), (9, 9)], 0), NONE);
    assert_eq!(line.recovery.packets_in_flight(), 1, "the outcome of 10 is unknown");
}

#[test]
fn where_all_arrivals_are_named_a_packet_is_lost_by_its_distance() {
    for (detection, lost) in [("duplicates", vec![2]), ("duplicates:recovery=off", vec![])] {
        let mut line = Line::new(detection, 10);
        let acked = ranges(&[(3, 5), (0, 1)]);
        line.recovery.on_feedback(line.now, AckInfo::Ranges(&acked), None).unwrap();
        let found: Vec<u64> = line.recovery.report().lost.iter().map(|sent| sent.number).collect();
        assert_eq!(found, lost, "{detection}");
    }
}

#[test]
fn duplicates_bring_news_of_marks() {
    let mut line = Line::new("duplicates", 10);
    let marks = |ce| Some(EcnCounts { ect0: 4, ect1: 0, ce });
    let acked = ranges(&[(0, 1)]);
    let in_order = |arrived| AckInfo::InOrder { packets: Some(&acked), largest: 0, arrived };
    line.recovery.on_feedback(line.now, in_order(5), marks(1)).unwrap();
    assert_eq!(line.recovery.report().newly_marked, 1);
    line.recovery.on_feedback(line.now, in_order(6), marks(2)).unwrap();
    assert_eq!(line.recovery.report().newly_marked, 1, "nothing is named, and one more has arrived");
    line.recovery.on_feedback(line.now, in_order(4), marks(0)).unwrap();
    line.recovery.on_feedback(line.now, AckInfo::Nothing, marks(0)).unwrap();
    assert_eq!(line.recovery.ecn().state(), EcnState::Capable, "overtaken feedback proves nothing");
}

/// A receiver that claims more than was sent would otherwise empty the flight, and receive data without a window.
#[test]
fn counts_above_the_sent_packets_are_rejected() {
    let mut line = Line::new("duplicates", 10);
    let claim = |line: &mut Line, largest, arrived| {
        line.recovery.on_feedback(line.now, AckInfo::InOrder { packets: None, largest, arrived }, None)
    };
    assert_eq!(claim(&mut line, 10, 1), Err(UnsentAcknowledged { number: 10 }));
    assert_eq!(line.in_flight(), 10, "it is rejected as a whole");
    claim(&mut line, 9, u64::MAX).unwrap();
    (0..5).for_each(|_| line.symbol());
    // Ten of fifteen may have arrived, and one is declared lost because of the claim.
    assert_eq!((line.in_flight(), line.recovery.packets_in_flight()), (4, 14));
}

/// Packets without symbols are named as soon as they arrive, so another arrival is that of a symbol behind a gap.
#[test]
fn an_unacknowledged_arrival_is_withheld() {
    for detection in ["threshold", "duplicates", "duplicates:recovery=off"] {
        let mut line = Line::new(detection, 3);
        line.send(Content::Nothing);
        line.hear(&[], 2);
        assert_eq!(line.recovery.report().withheld, 2, "{detection}");
        line.hear(&[(3, 3)], 1);
        assert_eq!(line.recovery.report().withheld, 0, "{detection}: a PING");
        line.hear(&[(0, 2)], 1);
        assert_eq!(line.recovery.report().withheld, 0, "{detection}: the gap is closed");
    }
}
