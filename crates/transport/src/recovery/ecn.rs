//! Explicit congestion notification: whether packets are marked ECT(0), and validation of the peer's counts (RFC 9000
//! section 13.4.2).

use crate::wire::EcnCounts;

/// Marked packets that may be delivered without any ECN count before validation fails.
const UNCOUNTED: u64 = 64;

/// Marked packets in a test after a failed one: ten, as in RFC 9000 section 13.4.2. It follows after as many unmarked
/// packets have arrived, and after twice as many each further time: a path that drops marked packets costs ten packets
/// for each doubling.
const TRIAL: u64 = 10;

/// Limit on the doublings: a path is tested again after 10,000 packets at the latest.
const MOST_DOUBLINGS: u32 = 10;

/// The ECN codepoint of packets sent (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnCodepoint {
    /// Not ECN-capable transport.
    NotEct,
    /// ECN-capable transport, codepoint 0.
    Ect0,
}

/// The state of ECN validation on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnState {
    /// No counts have arrived yet. Departs: RFC 9000 section 13.4.2 marks only the first ten packets in this state.
    /// Here all are marked until a probe timeout, so that a batch has one codepoint, and then none until a marked
    /// packet is acknowledged: a path that drops them costs one probe timeout.
    Testing,
    /// The counts agree with the packets delivered so far.
    Capable,
    /// ECN is off: marked packets were lost, or their counts were missing or impossible. It is tested again later, as
    /// RFC 9000 section 13.4.2.2 allows: a burst that takes the first packets looks the same as a path that drops
    /// marked ones.
    Failed,
}

/// ECN counts of one path and their validation. The peer counts for the whole connection; a new path starts from its
/// current counts.
#[derive(Clone, Debug)]
pub struct Ecn {
    state: EcnState,
    /// Failed tests of this path.
    failures: u32,
    /// No more packets are marked until one of this test is acknowledged: after a timeout, or once enough are marked.
    held: bool,
    /// Packets sent with ECT(0) in this test.
    sent: u64,
    /// Ack-eliciting packets among them.
    awaited: u64,
    /// Of these, packets delivered and lost.
    delivered: u64,
    lost: u64,
    /// Packets delivered since counts last arrived.
    uncounted: u64,
    /// Unmarked packets delivered since this test began or failed.
    unmarked: u64,
    /// Packets with ECT(0) of earlier tests that the peer may still count.
    earlier: u64,
    /// The counts when this test began.
    base: EcnCounts,
    counts: EcnCounts,
}

/// Returns the marked packets in the counts.
const fn seen(counts: EcnCounts) -> u64 {
    counts.ect0.saturating_add(counts.ce)
}

impl Ecn {
    pub(super) fn new() -> Self {
        Self::test(0, 0, EcnCounts::default())
    }

    fn test(failures: u32, earlier: u64, base: EcnCounts) -> Self {
        Self {
            state: EcnState::Testing,
            failures,
            held: false,
            sent: 0,
            awaited: 0,
            delivered: 0,
            lost: 0,
            uncounted: 0,
            unmarked: 0,
            earlier,
            base,
            counts: base,
        }
    }

    /// Restarts validation on a new path, after a migration (RFC 9000 section 13.4.2).
    pub(super) fn restart(&mut self) {
        self.test_again(0);
    }

    fn test_again(&mut self, failures: u32) {
        let uncounted = (self.earlier + self.sent).saturating_sub(seen(self.counts).saturating_sub(seen(self.base)));
        *self = Self::test(failures, uncounted, self.counts);
    }

    fn fail(&mut self) {
        self.state = EcnState::Failed;
        self.failures = self.failures.saturating_add(1);
        self.unmarked = 0;
    }

    /// Returns the codepoint for packets. It changes only with feedback or a timeout.
    pub fn codepoint(&self) -> EcnCodepoint {
        match self.state {
            EcnState::Capable => EcnCodepoint::Ect0,
            EcnState::Testing if !self.held => EcnCodepoint::Ect0,
            EcnState::Testing | EcnState::Failed => EcnCodepoint::NotEct,
        }
    }

    /// Returns the state of validation.
    pub fn state(&self) -> EcnState {
        self.state
    }

    /// Returns whether congestion may show as CE marks. After a failed test the path counts as one without ECN until a
    /// test succeeds (RFC 9000 section 13.4.2.2).
    pub fn is_usable(&self) -> bool {
        self.state == EcnState::Capable || self.failures == 0
    }

    /// Returns the peer's last accepted counts.
    pub fn counts(&self) -> EcnCounts {
        self.counts
    }

    /// Counts a packet sent, ack-eliciting if `awaited`. Returns whether it is marked.
    pub(super) fn on_sent(&mut self, awaited: bool) -> bool {
        let marked = self.codepoint() == EcnCodepoint::Ect0;
        self.sent += u64::from(marked);
        self.awaited += u64::from(marked && awaited);
        marked
    }

    /// Counts a packet of this path delivered, sent with a mark if `marked`.
    pub(super) fn on_delivered(&mut self, marked: bool) {
        self.delivered += u64::from(marked);
        self.uncounted += u64::from(marked);
        self.unmarked += u64::from(!marked);
        self.fail_where_marks_vanish();
        let doublings = self.failures.saturating_sub(1).min(MOST_DOUBLINGS);
        if self.state == EcnState::Failed && self.unmarked >= TRIAL << doublings {
            self.test_again(self.failures);
        }
    }

    /// Counts a marked packet declared lost.
    pub(super) fn on_marked_lost(&mut self) {
        self.lost += 1;
        self.fail_where_marks_vanish();
    }

    /// Fails the test if all its marked packets are lost and others are delivered: the path drops marked packets (RFC
    /// 9000 section 13.4.2).
    fn fail_where_marks_vanish(&mut self) {
        let all_lost = self.delivered == 0 && self.lost > 0 && self.lost >= self.awaited;
        if self.state == EcnState::Testing && self.held && self.unmarked > 0 && all_lost {
            self.fail();
        }
    }

    /// Handles an expired timeout: marked packets may be dropped.
    pub(super) fn on_silence(&mut self) {
        self.held = true;
    }

    /// Validates the counts of a feedback frame. `newest`: it acknowledges a packet that none before it did, so that it
    /// was not reordered behind a newer one (RFC 9000 section 13.4.2.1). Returns the number of packets newly marked CE.
    ///
    /// RFC 9000 compares the increase of the counts with the newly acknowledged packets. The sums since the path began
    /// are compared, which differs only for packets counted before they were acknowledged.
    pub(super) fn on_counts(&mut self, counts: Option<EcnCounts>, newest: bool) -> u64 {
        self.held |= self.failures > 0 && self.awaited >= TRIAL;
        if !newest {
            return 0;
        }
        let testing = self.state == EcnState::Testing;
        let Some(counts) = counts else {
            // Departs: RFC 9000 section 13.4.2.1 fails validation at the first feedback without counts. Downpour's may
            // omit them for lack of space.
            let settled_all = testing && self.held && self.delivered > 0 && self.delivered + self.lost >= self.awaited;
            if self.state != EcnState::Failed && (self.uncounted >= UNCOUNTED || settled_all) {
                self.fail();
            }
            return 0;
        };
        let before = std::mem::replace(&mut self.counts, counts);
        self.uncounted = 0;
        let seen = seen(counts).saturating_sub(seen(self.base));
        let shrunk = counts.ect0 < before.ect0 || counts.ect1 < before.ect1 || counts.ce < before.ce;
        let foreign = counts.ect1 > self.base.ect1;
        if self.state == EcnState::Failed {
            return 0;
        }
        if shrunk || foreign || seen < self.delivered || seen > self.sent + self.earlier {
            self.fail();
            return 0;
        }
        if testing && self.delivered > 0 {
            self.state = EcnState::Capable;
        }
        counts.ce - before.ce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_and_delivered(sent: u64, delivered: u64) -> Ecn {
        let mut ecn = Ecn::new();
        (0..sent).for_each(|_| assert!(ecn.on_sent(true)));
        (0..delivered).for_each(|_| ecn.on_delivered(true));
        ecn
    }

    fn counts(ect0: u64, ect1: u64, ce: u64) -> Option<EcnCounts> {
        Some(EcnCounts { ect0, ect1, ce })
    }

    #[test]
    fn reports_newly_marked_packets() {
        let mut ecn = sent_and_delivered(20, 10);
        assert_eq!(ecn.on_counts(counts(8, 0, 2), true), 2);
        assert_eq!(ecn.state(), EcnState::Capable);
        assert_eq!(ecn.on_counts(counts(9, 0, 5), true), 3);
        assert_eq!(ecn.on_counts(counts(8, 0, 2), false), 0, "overtaken feedback is ignored");
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
            assert!(!ecn.on_sent(true), "{why}");
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
        assert!(!ecn.on_sent(true));
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
        assert_eq!(ecn.state(), EcnState::Testing, "one may still arrive");
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
        assert_eq!(ecn.state(), EcnState::Capable, "overtaken feedback is ignored");
        ecn.on_counts(None, true);
        assert_eq!(ecn.state(), EcnState::Failed);
    }

    /// A failed test is repeated with ten packets, at growing intervals (RFC 9000 section 13.4.2.2).
    #[test]
    fn a_failed_ecn_test_is_repeated_with_backoff() {
        let mut ecn = sent_and_delivered(2, 0);
        assert!(ecn.on_sent(false) && ecn.is_usable(), "one more without an outcome; nothing is known yet");
        ecn.on_silence();
        (0..2).for_each(|_| ecn.on_marked_lost());
        ecn.on_delivered(false);
        assert_eq!((ecn.state(), ecn.is_usable()), (EcnState::Failed, false), "the burst took all marked packets");
        for wait in [10, 20, 40] {
            (1..wait).for_each(|_| ecn.on_delivered(false));
            assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Failed, EcnCodepoint::NotEct), "{wait}");
            ecn.on_delivered(false);
            assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Testing, EcnCodepoint::Ect0), "{wait}");
            assert!(!ecn.is_usable(), "not before it has succeeded");
            (0..9).for_each(|_| assert!(ecn.on_sent(true)));
            ecn.on_counts(counts(0, 0, 0), true);
            assert_eq!(ecn.codepoint(), EcnCodepoint::Ect0, "not enough for a test yet");
            assert!(ecn.on_sent(true));
            ecn.on_counts(counts(0, 0, 0), true);
            assert_eq!(ecn.codepoint(), EcnCodepoint::NotEct, "ten are enough");
            ecn.on_delivered(false);
            (0..10).for_each(|_| ecn.on_marked_lost());
            assert_eq!(ecn.state(), EcnState::Failed, "{wait}");
        }
        (0..80).for_each(|_| ecn.on_delivered(false));
        (0..10).for_each(|_| assert!(ecn.on_sent(true)));
        (0..9).for_each(|_| ecn.on_marked_lost());
        ecn.on_delivered(true);
        assert_eq!(ecn.on_counts(counts(0, 0, 1), true), 1, "one has arrived, with a mark");
        assert_eq!((ecn.state(), ecn.is_usable(), ecn.codepoint()), (EcnState::Capable, true, EcnCodepoint::Ect0));
    }

    /// A path that clears marks, and a peer that does not count, fail the later tests like the first.
    #[test]
    fn marks_that_are_cleared_fail_each_test() {
        for says in [counts(10, 0, 0), None] {
            let mut ecn = sent_and_delivered(20, 10);
            ecn.on_counts(counts(10, 0, 0), true);
            assert!(ecn.is_usable());
            (0..64).for_each(|_| ecn.on_delivered(true));
            ecn.on_counts(says, true);
            for wait in [10, 20] {
                assert_eq!((ecn.state(), ecn.is_usable()), (EcnState::Failed, false));
                (0..wait).for_each(|_| ecn.on_delivered(false));
                assert_eq!(ecn.on_counts(says, true), 0);
                (0..10).for_each(|_| assert!(ecn.on_sent(true)));
                (0..10).for_each(|_| ecn.on_delivered(true));
                assert_eq!((ecn.on_counts(says, true), ecn.state()), (0, EcnState::Failed), "{says:?}");
            }
        }
    }

    #[test]
    fn another_path_is_judged_by_its_own_counts() {
        // The first path clears marks: 10 of 20 arrived, and none of them was counted.
        let mut ecn = sent_and_delivered(20, 10);
        ecn.on_counts(counts(0, 0, 0), true);
        assert_eq!(ecn.state(), EcnState::Failed);
        ecn.restart();
        assert_eq!((ecn.state(), ecn.codepoint()), (EcnState::Testing, EcnCodepoint::Ect0));
        (0..5).for_each(|_| assert!(ecn.on_sent(true)));
        (0..4).for_each(|_| ecn.on_delivered(true));
        assert_eq!(ecn.on_counts(counts(3, 0, 1), true), 1);
        assert_eq!(ecn.state(), EcnState::Capable);
        // Up to 20 packets of the first path may still be counted, and not one more.
        ecn.on_counts(counts(24, 0, 1), true);
        assert_eq!(ecn.state(), EcnState::Capable);
        ecn.on_counts(counts(25, 0, 1), true);
        assert_eq!(ecn.state(), EcnState::Failed);

        // Conversely, the counts of the first path do not vouch for a second one that clears marks.
        let mut ecn = sent_and_delivered(20, 20);
        ecn.on_counts(counts(20, 0, 0), true);
        ecn.restart();
        (0..5).for_each(|_| assert!(ecn.on_sent(true)));
        (0..5).for_each(|_| ecn.on_delivered(true));
        ecn.on_counts(counts(20, 0, 0), true);
        assert_eq!(ecn.state(), EcnState::Failed);
    }
}
