//! Explicit congestion notification: whether to mark packets ECT(0), and what the peer's counts say (RFC 9000 section
//! 13.4.2).

use crate::wire::EcnCounts;

/// So many marked packets may be delivered without any count before the peer, or the path, is held not to count.
const UNCOUNTED: u64 = 64;

/// The codepoint to send packets with (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// Not capable.
    NotEct,
    /// ECN-capable transport, codepoint 0.
    Ect0,
}

/// What is known about ECN on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// Nothing came back yet. Departs: RFC 9000 section 13.4.2 marks only the first ten packets of this phase. Here
    /// all are marked until a probe timeout, which keeps the codepoint of a batch uniform, and none from then on until
    /// a marked packet is known to have arrived: where they vanish it costs one probe timeout.
    Testing,
    /// The counts have agreed with what was delivered so far.
    Capable,
    /// Off for good: counts were absent or impossible.
    Failed,
}

/// Counts of one path and their validation. The peer's counts are of the connection: where the path changes they are taken from there.
#[derive(Clone, Debug)]
pub struct Ecn {
    state: EcnState,
    /// A timeout passed while testing.
    silence: bool,
    /// Packets sent with ECT(0) on this path.
    sent: u64,
    /// Of these, known to have arrived, and called lost.
    delivered: u64,
    lost: u64,
    /// Of those delivered, the ones since counts last came.
    uncounted: u64,
    /// A packet without mark arrived.
    unmarked_passes: bool,
    /// Packets with ECT(0) on earlier paths that the peer may still count.
    earlier: u64,
    /// The counts when this path began.
    base: EcnCounts,
    counts: EcnCounts,
}

/// Marked packets that counts know of.
const fn seen(counts: EcnCounts) -> u64 {
    counts.ect0.saturating_add(counts.ce)
}

impl Ecn {
    pub(super) fn new() -> Self {
        Self::on_path(0, EcnCounts::default())
    }

    fn on_path(earlier: u64, base: EcnCounts) -> Self {
        Self {
            state: EcnState::Testing,
            silence: false,
            sent: 0,
            delivered: 0,
            lost: 0,
            uncounted: 0,
            unmarked_passes: false,
            earlier,
            base,
            counts: base,
        }
    }

    /// The packets take another path, which is to be tested anew (RFC 9000 section 13.4.2): what the last one did to marks says nothing
    /// of it.
    pub(super) fn restart(&mut self) {
        let uncounted = (self.earlier + self.sent).saturating_sub(seen(self.counts).saturating_sub(seen(self.base)));
        *self = Self::on_path(uncounted, self.counts);
    }

    /// What packets are to be sent with. Changes only when feedback comes or a timer runs out.
    pub fn codepoint(&self) -> EcnCodepoint {
        match self.state {
            EcnState::Capable => EcnCodepoint::Ect0,
            EcnState::Testing if !self.silence => EcnCodepoint::Ect0,
            EcnState::Testing | EcnState::Failed => EcnCodepoint::NotEct,
        }
    }

    /// What is known.
    pub fn state(&self) -> EcnState {
        self.state
    }

    /// The peer's last accepted counts.
    pub fn counts(&self) -> EcnCounts {
        self.counts
    }

    /// A packet was sent. Returns whether it was marked.
    pub(super) fn on_sent(&mut self) -> bool {
        let marked = self.codepoint() == EcnCodepoint::Ect0;
        self.sent += u64::from(marked);
        marked
    }

    /// A packet of this path arrived, `marked` when it left.
    pub(super) fn on_delivered(&mut self, marked: bool) {
        self.delivered += u64::from(marked);
        self.uncounted += u64::from(marked);
        self.unmarked_passes |= !marked;
        self.give_up_where_marks_vanish();
    }

    /// A marked packet was called lost.
    pub(super) fn on_marked_lost(&mut self) {
        self.lost += 1;
        self.give_up_where_marks_vanish();
    }

    /// RFC 9000 section 13.4.2: if all packets marked while testing are lost and others pass, it is for the mark.
    fn give_up_where_marks_vanish(&mut self) {
        let all_lost = self.delivered == 0 && self.lost > 0 && self.lost >= self.sent;
        if self.state == EcnState::Testing && self.silence && self.unmarked_passes && all_lost {
            self.state = EcnState::Failed;
        }
    }

    /// Nothing has come back within a timeout: perhaps marked packets do not pass.
    pub(super) fn on_silence(&mut self) {
        self.silence = true;
    }

    /// Takes the counts of a feedback; `newest`: it tells of a packet that none before it told of, so that it cannot have been overtaken
    /// by a newer one (RFC 9000 section 13.4.2.1). Returns how many more packets were marked CE.
    ///
    /// RFC 9000 compares the increase of the counts with the packets newly acknowledged. Here it is the sums since the path began, which
    /// is the same but for packets that were counted before they were named.
    pub(super) fn on_counts(&mut self, counts: Option<EcnCounts>, newest: bool) -> u64 {
        if !newest {
            return 0;
        }
        let Some(counts) = counts else {
            // Departs: RFC 9000 section 13.4.2.1 gives up at the first feedback without counts. Ours may be cut to a budget of bytes.
            if self.uncounted >= UNCOUNTED {
                self.state = EcnState::Failed;
            }
            return 0;
        };
        let before = std::mem::replace(&mut self.counts, counts);
        self.uncounted = 0;
        let seen = seen(counts).saturating_sub(seen(self.base));
        let shrunk = counts.ect0 < before.ect0 || counts.ect1 < before.ect1 || counts.ce < before.ce;
        let foreign = counts.ect1 > self.base.ect1;
        if shrunk || foreign || seen < self.delivered || seen > self.sent + self.earlier {
            self.state = EcnState::Failed;
        } else if self.state == EcnState::Testing && self.delivered > 0 {
            self.state = EcnState::Capable;
        }
        if self.state == EcnState::Failed { 0 } else { counts.ce - before.ce }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_and_delivered(sent: u64, delivered: u64) -> Ecn {
        let mut ecn = Ecn::new();
        (0..sent).for_each(|_| assert!(ecn.on_sent()));
        (0..delivered).for_each(|_| ecn.on_delivered(true));
        ecn
    }

    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    #[test]
    fn reports_what_was_newly_marked() {
        let mut ecn = sent_and_delivered(20, 10);
        assert_eq!(ecn.on_counts(counts(8, 0, 2), true), 2);
        assert_eq!(ecn.state(), EcnState::Capable);
        assert_eq!(ecn.on_counts(counts(9, 0, 5), true), 3);
        assert_eq!(ecn.on_counts(counts(8, 0, 2), false), 0, "an overtaken feedback says nothing");
        assert_eq!((ecn.state(), ecn.codepoint(), ecn.counts().ce), (EcnState::Capable, EcnCodepoint::Ect0, 5));
    }

    #[test]
    fn impossible_counts_end_it() {
        let cases = [
            (counts(9, 0, 0), "fewer than were delivered"),
            (counts(21, 0, 0), "more than were sent"),
            (counts(10, 1, 0), "a codepoint never sent"),
            (counts(u64::MAX, 0, u64::MAX), "overflow"),
        ];
        for (counts, why) in cases {
            let mut ecn = sent_and_delivered(20, 10);
            assert_eq!(ecn.on_counts(counts, true), 0, "{why}");
            assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Failed, EcnCodepoint::NotEct), "{why}");
            assert!(!ecn.on_sent(), "{why}");
        }
        let mut ecn = sent_and_delivered(20, 10);
        assert_eq!(ecn.on_counts(counts(8, 0, 4), true), 4);
        assert_eq!(ecn.on_counts(counts(12, 0, 3), true), 0);
        assert_eq!(ecn.state(), EcnState::Failed, "counts never decrease");
    }

    #[test]
    fn a_peer_that_does_not_count_ends_it() {
        let mut ecn = sent_and_delivered(100, 63);
        ecn.on_counts(None, true);
        assert_eq!(ecn.state(), EcnState::Testing);
        ecn.on_delivered(true);
        ecn.on_counts(None, true);
        assert_eq!(ecn.state(), EcnState::Failed);
    }

    #[test]
    fn silence_stops_the_marking_until_a_marked_packet_has_arrived() {
        let mut ecn = sent_and_delivered(10, 0);
        ecn.on_silence();
        assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Testing, EcnCodepoint::NotEct));
        assert!(!ecn.on_sent());
        ecn.on_counts(counts(0, 0, 0), true);
        assert_eq!(ecn.codepoint(), EcnCodepoint::NotEct, "only unmarked packets arrive");
        ecn.on_delivered(true);
        ecn.on_counts(counts(1, 0, 0), true);
        assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Capable, EcnCodepoint::Ect0));
        ecn.on_silence();
        assert_eq!(ecn.codepoint(), EcnCodepoint::Ect0);
    }

    #[test]
    fn marks_that_vanish_end_it_where_others_pass() {
        let mut ecn = sent_and_delivered(2, 0);
        ecn.on_silence();
        ecn.on_marked_lost();
        ecn.on_delivered(false);
        assert_eq!(ecn.state(), EcnState::Testing, "one may still come");
        ecn.on_marked_lost();
        assert_eq!(ecn.state(), EcnState::Failed);
        let mut ecn = sent_and_delivered(2, 0);
        ecn.on_silence();
        (0..2).for_each(|_| ecn.on_marked_lost());
        assert_eq!(ecn.state(), EcnState::Testing, "nothing passes at all");
    }

    #[test]
    fn counts_that_stop_coming_end_it_later_too() {
        let mut ecn = sent_and_delivered(200, 10);
        ecn.on_counts(counts(10, 0, 0), true);
        (0..63).for_each(|_| ecn.on_delivered(true));
        ecn.on_counts(None, true);
        assert_eq!(ecn.state(), EcnState::Capable, "a feedback may have had no room");
        ecn.on_delivered(true);
        ecn.on_counts(None, false);
        assert_eq!(ecn.state(), EcnState::Capable, "overtaken feedback says nothing");
        ecn.on_counts(None, true);
        assert_eq!(ecn.state(), EcnState::Failed);
    }

    #[test]
    fn another_path_is_judged_by_its_own_counts() {
        // The first path clears marks: 10 of 20 arrived, and none of them was counted.
        let mut ecn = sent_and_delivered(20, 10);
        ecn.on_counts(counts(0, 0, 0), true);
        assert_eq!(ecn.state(), EcnState::Failed);
        ecn.restart();
        assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Testing, EcnCodepoint::Ect0));
        (0..5).for_each(|_| assert!(ecn.on_sent()));
        (0..4).for_each(|_| ecn.on_delivered(true));
        assert_eq!(ecn.on_counts(counts(3, 0, 1), true), 1);
        assert_eq!(ecn.state(), EcnState::Capable);
        // Up to 20 packets of the first path may still be counted, and not one more.
        ecn.on_counts(counts(24, 0, 1), true);
        assert_eq!(ecn.state(), EcnState::Capable);
        ecn.on_counts(counts(25, 0, 1), true);
        assert_eq!(ecn.state(), EcnState::Failed);

        // The other way round: what the first path counted does not vouch for a second one that clears marks.
        let mut ecn = sent_and_delivered(20, 20);
        ecn.on_counts(counts(20, 0, 0), true);
        ecn.restart();
        (0..5).for_each(|_| assert!(ecn.on_sent()));
        (0..5).for_each(|_| ecn.on_delivered(true));
        ecn.on_counts(counts(20, 0, 0), true);
        assert_eq!(ecn.state(), EcnState::Failed);
    }
}
