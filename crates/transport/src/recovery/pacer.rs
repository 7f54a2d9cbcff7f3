//! The pacer: a token bucket that fills at the pacing rate.

use crate::time::{Rate, Time};
use std::time::Duration;

/// The longest time that one batch covers at the pacing rate (docs/design/pacing.md).
const BATCH: Duration = Duration::from_millis(1);
/// Probes need no admission, one each second on a silent path. At a low rate they would otherwise delay all other
/// packets beyond the timeout of the connection.
const LONGEST_DEBT: Duration = Duration::from_secs(1);
/// At low rates a millisecond covers less than a packet; two at a time halve the wake-ups.
const MIN_BATCH_PACKETS: u64 = 2;
/// The most segments that one system call takes.
const MAX_BATCH_PACKETS: u64 = 64;

/// Credit is in units of 10^-9 bit: nanoseconds times bits per second are whole units, so that nothing is rounded and
/// nothing drifts.
const PER_BYTE: i128 = 8_000_000_000;

/// A token bucket. Without a rate it lets everything pass.
#[derive(Debug)]
pub(super) struct Pacer {
    rate: Option<Rate>,
    /// Time for which a sender that wakes up late may catch up at once.
    catch_up: Duration,
    /// Packets that leave together at least.
    train: u64,
    /// Bytes that may be sent, times [`PER_BYTE`]; negative after unadmitted packets (probes).
    credit: i128,
    updated: Time,
    /// The credit was used up: the next batch waits until all of it fits.
    exhausted: bool,
    packet: u64,
}

impl Pacer {
    pub(super) fn new(now: Time, packet: u32) -> Self {
        Self {
            rate: None,
            catch_up: Duration::ZERO,
            train: MIN_BATCH_PACKETS,
            credit: 0,
            updated: now,
            exhausted: false,
            packet: u64::from(packet),
        }
    }

    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Returns when it was last updated.
    pub(super) fn updated(&self) -> Time {
        self.updated
    }

    pub(super) fn set_packet(&mut self, packet: u32) {
        self.packet = u64::from(packet);
    }

    /// Paces at `rate` from now on. A sender that wakes up late may catch up with this much time at once.
    pub(super) fn set_rate(&mut self, now: Time, rate: Option<Rate>, catch_up: Duration) {
        self.refill(now);
        self.catch_up = catch_up;
        let before = self.rate;
        self.rate = rate;
        let Some(rate) = rate else {
            self.credit = 0;
            return;
        };
        self.credit = if before.is_none() { self.batch(rate) } else { self.credit.min(self.depth(rate)) };
    }

    /// Lets so many packets leave together from now on, or as many as a millisecond holds if those are more.
    pub(super) fn set_train(&mut self, packets: u32) {
        self.train = u64::from(packets).clamp(MIN_BATCH_PACKETS, MAX_BATCH_PACKETS);
    }

    /// Returns the bytes that may be sent now, at least one packet; or when a whole batch may be sent.
    pub(super) fn admit(&mut self, now: Time) -> Result<u64, Time> {
        self.refill(now);
        let Some(rate) = self.rate else {
            return Ok(MAX_BATCH_PACKETS * self.packet);
        };
        let batch = self.batch(rate);
        self.exhausted = if self.exhausted { self.credit < batch } else { self.credit < cost(self.packet) };
        if self.exhausted {
            let bits = i128::from(rate.bits_per_second());
            let nanos = (batch - self.credit + bits - 1) / bits;
            return Err(now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
        }
        Ok(u64::try_from(self.credit.min(batch) / PER_BYTE).unwrap_or(0))
    }

    pub(super) fn on_sent(&mut self, now: Time, bytes: u32) {
        self.refill(now);
        if let Some(rate) = self.rate {
            self.credit = (self.credit - cost(u64::from(bytes))).max(-earned(rate, LONGEST_DEBT));
        }
    }

    fn refill(&mut self, now: Time) {
        let elapsed = now.since(self.updated);
        if elapsed.is_zero() {
            return;
        }
        self.updated = now;
        if let Some(rate) = self.rate {
            self.credit = self.credit.saturating_add(earned(rate, elapsed)).min(self.depth(rate));
        }
    }

    /// Returns the size of a batch: whole packets for [`BATCH`], within the limits.
    fn batch(&self, rate: Rate) -> i128 {
        let packets = rate.bytes_in(BATCH) / self.packet;
        cost(packets.clamp(self.train, MAX_BATCH_PACKETS) * self.packet)
    }

    fn depth(&self, rate: Rate) -> i128 {
        self.batch(rate).max(earned(rate, self.catch_up))
    }
}

/// Returns the credit that this time brings.
fn earned(rate: Rate, time: Duration) -> i128 {
    (time.as_nanos() as i128).saturating_mul(i128::from(rate.bits_per_second()))
}

fn cost(bytes: u64) -> i128 {
    i128::from(bytes) * PER_BYTE
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: u32 = 1479;
    const CATCH_UP: Duration = Duration::from_millis(4);

    fn paced(bits: u64) -> Pacer {
        let mut pacer = Pacer::new(Time::ZERO, PACKET);
        pacer.set_rate(Time::ZERO, Some(Rate::from_bits_per_second(bits)), CATCH_UP);
        pacer
    }

    /// Sends `packets` packets as fast as allowed, waking `late` after each deadline. Returns when the last one was
    /// sent.
    fn drain(pacer: &mut Pacer, packets: u64, late: Duration) -> Time {
        let mut now = Time::ZERO;
        let mut left = packets;
        while left > 0 {
            match pacer.admit(now) {
                Err(until) => {
                    assert!(until > now);
                    now = until + late;
                }
                Ok(bytes) => {
                    let count = (bytes / u64::from(PACKET)).min(left);
                    assert!(count > 0);
                    (0..count).for_each(|_| pacer.on_sent(now, PACKET));
                    left -= count;
                }
            }
        }
        now
    }

    #[test]
    fn pacer_unadmitted_debt_at_most_1s() {
        let mut pacer = paced(15_000);
        (0..100).for_each(|_| pacer.on_sent(Time::ZERO, PACKET));
        // A second of debt, and a batch of two packets.
        let batch = Duration::from_secs_f64(2.0 * f64::from(PACKET) * 8.0 / 15_000.0);
        let until = pacer.admit(Time::ZERO).expect_err("in debt").since(Time::ZERO);
        assert!(until.abs_diff(Duration::from_secs(1) + batch) < Duration::from_micros(1), "{until:?}");
    }

    #[test]
    fn a_million_packets_take_what_the_rate_says() {
        for bits in [1_000_000_007, 97_000_001, 333_333_333, 9_999_999_967] {
            let mut pacer = paced(bits);
            let rate = Rate::from_bits_per_second(bits);
            let first = u64::try_from(pacer.batch(rate) / PER_BYTE).unwrap();
            let end = drain(&mut pacer, 1_000_000, Duration::ZERO);
            let exact = rate.time_for(1_000_000 * u64::from(PACKET) - first);
            let last_batch = rate.time_for(first);
            let error = end.since(Time::ZERO).abs_diff(exact);
            assert!(error <= last_batch, "{bits}: {error:?} off");
            // Never above the rate: the average over the whole run, less the first batch, is at most R.
            assert!(end.since(Time::ZERO) + Duration::from_nanos(1) >= exact, "{bits}");
        }
    }

    #[test]
    fn a_late_timer_does_not_lose_rate_but_an_idle_sender_does() {
        let rate = Rate::from_bits_per_second(100_000_000);
        for late_micros in [50, 500, 2500] {
            let mut pacer = paced(rate.bits_per_second());
            let end = drain(&mut pacer, 100_000, Duration::from_micros(late_micros));
            let exact = rate.time_for(100_000 * u64::from(PACKET));
            let error = end.since(Time::ZERO).abs_diff(exact);
            assert!(error < Duration::from_millis(4), "{late_micros} us late: {error:?} off");
        }
        let mut pacer = paced(rate.bits_per_second());
        let much_later = Time::ZERO + Duration::from_secs(10);
        let mut burst = 0;
        while let Ok(bytes) = pacer.admit(much_later) {
            let packets = bytes / u64::from(PACKET);
            (0..packets).for_each(|_| pacer.on_sent(much_later, PACKET));
            burst += packets * u64::from(PACKET);
        }
        let most = rate.bytes_in(CATCH_UP);
        assert!(burst <= most && burst + u64::from(PACKET) > most, "{burst} of {most}");
    }

    #[test]
    fn pacer_small_catch_up_limits_burst() {
        let rate = Rate::from_bits_per_second(100_000_000);
        let mut pacer = Pacer::new(Time::ZERO, PACKET);
        pacer.set_rate(Time::ZERO, Some(rate), Duration::from_millis(1));
        let later = Time::ZERO + Duration::from_secs(1);
        let mut burst = 0;
        while let Ok(bytes) = pacer.admit(later) {
            let packets = bytes / u64::from(PACKET);
            (0..packets).for_each(|_| pacer.on_sent(later, PACKET));
            burst += packets;
        }
        assert_eq!(burst, 8, "a millisecond of 12.5 kB");
    }

    #[test]
    fn batches_are_a_millisecond_within_limits() {
        let whole = |bits: u64| u64::try_from(paced(bits).batch(Rate::from_bits_per_second(bits)) / PER_BYTE).unwrap();
        assert_eq!(whole(1_000_000), 2 * 1479);
        assert_eq!(whole(100_000_000), 8 * 1479);
        assert_eq!(whole(100_000_000_000), 64 * 1479);
    }

    #[test]
    fn a_train_leaves_together_whatever_the_rate() {
        let mut pacer = paced(16_000_000);
        (0..2).for_each(|_| pacer.on_sent(Time::ZERO, PACKET));
        pacer.set_train(20);
        let mut now = Time::ZERO;
        for _ in 0..3 {
            let until = pacer.admit(now).expect_err("nothing is left");
            // 29,580 bytes at 2 bytes per microsecond.
            assert_eq!(until.since(now), Duration::from_micros(14_790));
            now = until;
            assert_eq!(pacer.admit(now), Ok(20 * 1479));
            (0..20).for_each(|_| pacer.on_sent(now, PACKET));
        }
        pacer.set_train(1);
        assert_eq!(
            pacer.admit(now).expect_err("nothing is left").since(now),
            Duration::from_micros(1_479),
            "two packets"
        );
    }

    #[test]
    fn a_part_of_a_batch_may_wait_without_starting_a_new_wait() {
        let mut pacer = paced(100_000_000);
        let bytes = pacer.admit(Time::ZERO).unwrap();
        assert_eq!(bytes, 8 * 1479);
        pacer.on_sent(Time::ZERO, PACKET);
        assert_eq!(pacer.admit(Time::ZERO), Ok(7 * 1479));
        (0..7).for_each(|_| pacer.on_sent(Time::ZERO, PACKET));
        let until = pacer.admit(Time::ZERO).unwrap_err();
        // 8 * 1479 bytes at 12.5 bytes per microsecond.
        assert_eq!(until.as_nanos(), 946_560);
        assert_eq!(pacer.admit(Time::from_nanos(900_000)), Err(until), "woken early: still a whole batch");
        assert_eq!(pacer.admit(until), Ok(8 * 1479));
    }

    #[test]
    fn a_new_rate_counts_from_now_and_no_rate_lets_all_pass() {
        let mut pacer = paced(8_000_000);
        (0..2).for_each(|_| pacer.on_sent(Time::ZERO, PACKET));
        // 1000 bytes at the old rate, 1958 at ten times it.
        let switch = Time::from_nanos(1_000_000);
        pacer.set_rate(switch, Some(Rate::from_bits_per_second(80_000_000)), CATCH_UP);
        assert_eq!(pacer.admit(switch), Err(switch + Duration::from_nanos((6 * 1479 - 1000) * 100)));
        pacer.set_rate(switch, None, CATCH_UP);
        assert_eq!(pacer.admit(switch), Ok(64 * 1479));
        pacer.set_rate(switch, Some(Rate::from_bits_per_second(u64::MAX)), CATCH_UP);
        assert!(pacer.admit(Time::from_nanos(u64::MAX)).is_ok());
    }
}
