//! The first counter of lt-tcp §3.5 against the count packet by packet.

use super::*;
use crate::recovery::congestion::TestWindow;

/// A sender with a window of five packets; in each round the first packet is lost and all others arrive.
struct Rounds {
    recovery: Recovery,
    next: u64,
    now: Time,
}

impl Rounds {
    fn new(in_flight: &str) -> Self {
        let config = RecoveryConfig {
            timeout: "rto:min=200ms".parse().unwrap(),
            in_flight: in_flight.parse().unwrap(),
            congestion: CongestionConfig::custom(TestWindow { packets: 5 }),
            ..RecoveryConfig::default()
        };
        let mut recovery = Recovery::new(&config, Time::ZERO, OVERHEAD);
        recovery.set_max_packet(PACKET);
        recovery.set_rtt_from_handshake(Time::ZERO, millis(10));
        Self { recovery, next: 0, now: at(1000) }
    }

    /// Sends as many packets as the window allows; returns their number.
    fn send(&mut self) -> u64 {
        let first = self.next;
        loop {
            match self.recovery.send_allowance(self.now) {
                SendAllowance::Blocked => return self.next - first,
                SendAllowance::Wait(until) => self.now = until,
                SendAllowance::Bytes(_) => {
                    let content = Content::Nothing;
                    let sent = SentPacket { number: self.next, time: self.now, bytes: PACKET, content };
                    self.recovery.on_sent(sent, false);
                    self.next += 1;
                }
            }
        }
    }

    /// A round trip: all packets arrive except the first, which is declared lost. `leaves`: the receiver did not have
    /// the blocks.
    fn round(&mut self, leaves: bool) -> u64 {
        let count = self.send();
        self.now += millis(10);
        if count > 1 {
            let packets = ranges(&[(self.next - count + 1, self.next - 1)]);
            self.recovery.on_feedback(self.now, AckInfo::Ranges(&packets), None).unwrap();
            self.recovery.leave_counter(|_| leaves);
            // Too few have overtaken it for the packet threshold.
            while let Some(at) = self
                .recovery
                .next_timeout()
                .filter(|at| self.recovery.packets_in_flight() > 0 && *at < self.now + millis(100))
            {
                self.now = at;
                self.recovery.on_timeout(at);
                self.recovery.leave_counter(|_| leaves);
            }
        }
        count
    }
}

#[test]
fn the_counter_keeps_lost_packets_until_a_timeout() {
    let mut rounds = Rounds::new("counter");
    for round in 0..4 {
        assert_eq!(rounds.round(true), 5 - round, "each loss leaves a packet less");
        assert_eq!(rounds.recovery.counter_drift(), (round + 1) * u64::from(PACKET));
        assert_eq!((rounds.recovery.packets_in_flight(), rounds.recovery.next_timeout()), (0, None));
    }
    // The last packet is lost alone: the timeout empties the counter.
    assert_eq!(rounds.round(true), 1);
    assert_eq!((rounds.send(), rounds.recovery.packets_in_flight()), (0, 1));
    let due = rounds.recovery.next_timeout().expect("something is in flight");
    assert_eq!(rounds.recovery.on_timeout(due), Timeout::Lost);
    assert_eq!((rounds.recovery.stats().counter_resets, rounds.recovery.counter_drift()), (1, 0));
    rounds.now = due;
    assert_eq!(rounds.send(), 5);
}

/// "These packets accumulate as blocks are fully received with packets belonging to them still in flight."
#[test]
fn flight_counter_full_waits_for_rto() {
    let mut rounds = Rounds::new("counter");
    assert_eq!(rounds.round(false), 5);
    assert_eq!((rounds.send(), rounds.recovery.packets_in_flight()), (0, 0), "full of arrived packets");
    let due = rounds.recovery.next_timeout().expect("a timer, or nothing would ever happen again");
    assert!(due >= rounds.now && due <= rounds.now + millis(1000), "{due:?}");
    assert_eq!(rounds.recovery.on_timeout(due), Timeout::Lost);
    assert_eq!((rounds.recovery.stats().counter_resets, rounds.recovery.next_timeout()), (1, None));
    rounds.now = due;
    assert_eq!(rounds.round(true), 5);
}

#[test]
fn packets_counted_one_by_one_leave_nothing_behind() {
    let mut rounds = Rounds::new("packets");
    (0..20).for_each(|_| assert_eq!(rounds.round(false), 5));
    assert_eq!((rounds.recovery.counter_drift(), rounds.recovery.stats().timeouts), (0, 0));
}

/// A late acknowledgement after a reset takes the counter below the flight, but not below zero.
#[test]
fn flight_counter_never_negative() {
    let mut rounds = Rounds::new("counter");
    assert_eq!(rounds.send(), 5);
    let due = rounds.recovery.next_timeout().expect("a timeout");
    assert_eq!(rounds.recovery.on_timeout(due), Timeout::Lost);
    rounds.now = due;
    let packets = ranges(&[(0, 4)]);
    rounds.recovery.on_feedback(due, AckInfo::Ranges(&packets), None).unwrap();
    rounds.recovery.leave_counter(|_| true);
    assert_eq!(rounds.send(), 5, "five, not ten");
}
