//! The closing of a connection: the side that closes repeats its close frame until the peer answers with its own; the
//! peer answers each repetition.
//!
//! Neither has to stay that long. A normal close is sent by a side that has the peer's confirmation of everything, so a
//! peer that never receives it only loses time: the side that closes sends several copies of the frame, and may then
//! leave. The peer may leave as soon as it has answered once. A close with information for the peer, such as an error,
//! is repeated until it is answered.

use super::CloseCode;
use crate::time::Time;
use crate::wire::{Frame, limits::MAX_REASON};
use std::time::Duration;

/// Shortest time for which an unanswered close is repeated.
const PATIENCE: Duration = Duration::from_secs(3);

/// Shortest time over which the first copies of a close are spread: on a short path, bursts of loss are longer than a
/// round trip.
const MIN_SPREAD: Duration = Duration::from_millis(10);

/// Accepted probability that all of the first copies are lost.
const ALL_LOST: f64 = 1e-4;

/// Bounds of the loss rate from which the number of copies is computed: a low estimate is uncertain for so few packets,
/// and the number of copies should stay small.
const LOSS_BOUNDS: (f64, f64) = (0.05, 0.55);

/// The state of a connection after its close.
#[derive(Debug)]
pub(super) struct Closing {
    code: u32,
    reason: String,
    until: Time,
    repetition: Option<Repetition>,
    /// A packet has arrived that must be answered with a close.
    owes_answer: bool,
    /// Bytes of the reason sent to a peer at an unvalidated address; `None` sends all.
    room: Option<usize>,
    /// The close was sent at least once.
    said: bool,
    rtt: Duration,
}

/// The schedule for repeating a close that the peer has not answered.
#[derive(Debug)]
struct Repetition {
    next: Time,
    spacing: Duration,
    /// First copies yet to be sent, evenly spaced. After them the spacing doubles each time.
    copies: u32,
}

impl Closing {
    /// Closes from this side, on a path that loses the fraction `loss` of packets: sends several copies of the frame
    /// within half a round trip, then fewer, until the peer's own close arrives.
    pub(super) fn local(now: Time, rtt: Duration, loss: f64, code: u32, reason: &str) -> Self {
        let copies = copies(loss);
        let spread = (rtt / 2).max(MIN_SPREAD);
        Self {
            code,
            reason: limited(reason, MAX_REASON).to_owned(),
            until: now + patience(rtt),
            repetition: Some(Repetition { next: now, spacing: spread / (copies - 1), copies }),
            owes_answer: false,
            room: None,
            said: false,
            rtt,
        }
    }

    /// Closes as [`Closing::local`] does, but for a peer that learns by other means, too, that this side has left: the
    /// program may leave after the first copy.
    pub(super) fn brief(now: Time, rtt: Duration) -> Self {
        let mut closing = Self::local(now, rtt, 0.0, CloseCode::Done as u32, "");
        closing.repetition.iter_mut().for_each(|repetition| repetition.copies = 1);
        closing
    }

    /// Answers the peer's close: once now, and once for each packet of a peer that did not receive it.
    pub(super) fn answering(now: Time, rtt: Duration) -> Self {
        Self {
            code: 0,
            reason: String::new(),
            until: after_answer(now, rtt),
            repetition: None,
            owes_answer: true,
            room: None,
            said: false,
            rtt,
        }
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.until
    }

    /// Returns whether the program may exit: the peer needs none of the remaining packets.
    pub(super) fn may_leave(&self) -> bool {
        match &self.repetition {
            None => self.said,
            Some(repetition) => self.code == CloseCode::Done as u32 && repetition.copies == 0,
        }
    }

    /// Returns the next deadline.
    pub(super) fn due(&self) -> Time {
        self.repetition.as_ref().map_or(self.until, |repetition| repetition.next.min(self.until))
    }

    /// Handles a packet of `ip_bytes` from the peer, with or without a close in it. Returns true when no packet remains
    /// to be sent.
    pub(super) fn on_packet(&mut self, now: Time, ip_bytes: u32, closes: bool) -> bool {
        self.owes_answer = true;
        if let Some(room) = &mut self.room {
            // RFC 9000 section 8.1: at most three times the bytes of the answered packet. The rest of a close is hardly
            // larger than the smallest packet, which has a frame of one byte.
            let without_reason = Frame::Close { code: self.code, reason: b"" }.encoded_len();
            *room = (2 * ip_bytes as usize).saturating_sub(without_reason);
        }
        if !closes || self.repetition.is_none() {
            return false;
        }
        if !self.said {
            // The peer's close crossed ours, which it would never receive: answer as if the peer had closed first.
            self.repetition = None;
            self.until = after_answer(now, self.rtt);
        }
        self.said
    }

    /// Follows the peer to another, unvalidated address: each of its packets gets one answer.
    pub(super) fn follow(&mut self) {
        self.repetition = None;
        self.room = Some(0);
    }

    /// Returns the frame, when it is due.
    pub(super) fn poll(&mut self, now: Time) -> Option<Frame<'_>> {
        let mut due = std::mem::take(&mut self.owes_answer);
        if let Some(repetition) = self.repetition.as_mut().filter(|repetition| repetition.next <= now) {
            due = true;
            repetition.advance(now, self.rtt);
        }
        self.said |= due;
        let reason = limited(&self.reason, self.room.unwrap_or(MAX_REASON));
        due.then_some(Frame::Close { code: self.code, reason: reason.as_bytes() })
    }
}

impl Repetition {
    /// Schedules the next copy.
    fn advance(&mut self, now: Time, rtt: Duration) {
        self.copies = self.copies.saturating_sub(1);
        if self.copies == 0 {
            self.spacing = (self.spacing * 2).max(rtt / 2);
        }
        self.next = now + self.spacing;
    }
}

/// Returns how many copies of a close are all lost with probability [`ALL_LOST`] at most, if losses are independent; at
/// least two.
fn copies(loss: f64) -> u32 {
    let loss = loss.clamp(LOSS_BOUNDS.0, LOSS_BOUNDS.1);
    (ALL_LOST.ln() / loss.ln()).ceil() as u32
}

/// Returns how long to wait for a peer that may have exited: for this long, an unanswered close is repeated, and a hint
/// that the peer has exited is checked.
pub(super) fn patience(rtt: Duration) -> Duration {
    PATIENCE.max(rtt * 6)
}

/// Returns until when the peer may show that it has not received an answer.
fn after_answer(now: Time, rtt: Duration) -> Time {
    now + rtt * 4 + MIN_SPREAD * 5
}

/// Truncates a reason to `most` bytes, at a character boundary.
fn limited(reason: &str, most: usize) -> &str {
    &reason[..reason.floor_char_boundary(reason.len().min(most))]
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(60);

    /// Returns the times of the close's copies until the last, in milliseconds.
    fn times(closing: &mut Closing, from: Time) -> Vec<u128> {
        let mut times = Vec::new();
        let mut now = from;
        while !closing.is_over(now) {
            if closing.poll(now).is_some() {
                times.push(now.since(from).as_millis());
            }
            now = closing.due().max(now + Duration::from_micros(1));
        }
        times
    }

    #[test]
    fn copies_follow_the_loss() {
        assert_eq!([0.0, 0.05, 0.1, 0.2, 0.5, 1.0].map(copies), [4, 4, 4, 6, 14, 16]);
    }

    #[test]
    fn an_unanswered_close_goes_out_in_copies_and_then_less_and_less_often() {
        let now = Time::ZERO + Duration::from_secs(7);
        let mut closing = Closing::local(now, RTT, 0.05, 0, "");
        assert_eq!(times(&mut closing, now), [0, 10, 20, 30, 60, 120, 240, 480, 960, 1920]);
    }

    #[test]
    fn close_unconfirmed_discards_after_one_copy() {
        let now = Time::ZERO;
        let mut closing = Closing::brief(now, RTT);
        assert!(!closing.may_leave());
        assert!(closing.poll(now).is_some() && closing.may_leave());
        assert_eq!(times(&mut closing, now), [30, 90, 210, 450, 930, 1890]);
    }

    #[test]
    fn close_error_discards_only_if_answered() {
        for (code, leaves) in [(0, true), (1, false), (0x105, false)] {
            let now = Time::ZERO;
            let mut closing = Closing::local(now, RTT, 0.05, code, "");
            for at in [0, 10, 20] {
                assert!(closing.poll(now + Duration::from_millis(at)).is_some());
                assert!(!closing.may_leave(), "{code:#x} after {at} ms");
            }
            assert!(closing.poll(now + Duration::from_millis(30)).is_some());
            assert_eq!(closing.may_leave(), leaves, "{code:#x}");
            assert!(closing.on_packet(now + Duration::from_millis(60), 80, true), "answered: no packet remains");
        }
    }

    #[test]
    fn close_by_peer_discards_after_answer() {
        let mut closing = Closing::answering(Time::ZERO, RTT);
        assert!(!closing.may_leave());
        assert!(closing.poll(Time::ZERO).is_some());
        assert!(closing.may_leave() && !closing.is_over(Time::ZERO + RTT * 4));
        // A side that stays answers each repetition.
        assert!(closing.poll(Time::ZERO + RTT).is_none());
        assert!(!closing.on_packet(Time::ZERO + RTT, 80, true));
        assert!(closing.poll(Time::ZERO + RTT).is_some());
    }

    #[test]
    fn closes_that_cross_are_both_answered() {
        let mut closing = Closing::local(Time::ZERO, RTT, 0.05, 0, "");
        assert!(!closing.on_packet(Time::ZERO, 80, true));
        assert!(!closing.may_leave());
        assert!(closing.poll(Time::ZERO).is_some());
        assert!(closing.may_leave());
    }

    #[test]
    fn an_unvalidated_address_gets_as_much_of_the_reason_as_allowed() {
        let reason = "x".repeat(MAX_REASON);
        let mut closing = Closing::local(Time::ZERO, RTT, 0.05, 0x103, &reason);
        closing.follow();
        for (ip_bytes, wanted) in [(60, 113), (1472, MAX_REASON), (60, 113), (1, 0)] {
            closing.on_packet(Time::ZERO, ip_bytes, false);
            let Some(Frame::Close { code: 0x103, reason }) = closing.poll(Time::ZERO) else { panic!("an answer") };
            assert_eq!(reason.len(), wanted, "{ip_bytes}");
            assert!(closing.poll(Time::ZERO).is_none(), "one answer for each packet");
        }
    }
}
