//! The floor of a transfer over a link that changes meanwhile.

use std::time::Duration;

use netsim::Duplex;
use transport::{ConnectingSide, Rate};

/// The least time of a transfer over a link with changing rate, delay and loss: see [`transport::transfer_floor`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MovingFloor {
    size: u64,
    link: Conditions,
    /// Up to when the link is known.
    now: Duration,
    /// The part of the object, 0 to 1, that can have left the sender by then.
    sent: f64,
    /// When the first packet can reach the receiver, and when the answer can arrive: a handshake is first.
    handshake: [Duration; 2],
    /// The floor, once the last byte can have left the sender: later changes do not matter.
    settled: Option<Duration>,
}

/// The conditions of a link that determine the floor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Conditions {
    rate: Rate,
    /// Forward and backward.
    delays: [Duration; 2],
    loss: f64,
}

impl Conditions {
    fn of(link: &Duplex) -> Self {
        let rate = link.forward.rate.map_or(u64::MAX, |rate| rate.bits_per_second());
        Self {
            rate: Rate::from_bits_per_second(rate),
            delays: [link.forward.delay, link.backward.delay],
            loss: link.forward.loss.mean(),
        }
    }
}

impl MovingFloor {
    /// Begins with this link at time zero.
    pub fn new(size: u64, link: &Duplex) -> Self {
        let link = Conditions::of(link);
        let [forward, back] = link.delays;
        Self { size, link, now: Duration::ZERO, sent: 0.0, handshake: [forward, forward + back], settled: None }
    }

    /// Notes that the link is another one from `now` on. Packets in flight arrive as before.
    pub fn change(&mut self, now: Duration, link: &Duplex) {
        let leaves = self.leaves();
        if leaves <= now {
            self.settled.get_or_insert(leaves + self.link.delays[0]);
        }
        let sending = now.saturating_sub(self.now.max(self.handshake[1]));
        self.sent += sending.as_secs_f64() / self.whole().as_secs_f64().max(f64::MIN_POSITIVE);
        (self.now, self.link) = (now, Conditions::of(link));
        // A packet sent again may overtake the one in flight.
        let [arrives, is_back] = &mut self.handshake;
        let [forward, back] = self.link.delays;
        if now < *arrives {
            *arrives = (*arrives).min(now + forward);
            *is_back = *arrives + back;
        } else {
            *is_back = (*is_back).min(now + back);
        }
    }

    /// Returns the floor, if the link stays as it is; [`Duration::MAX`] if nothing arrives.
    pub fn time(&self) -> Duration {
        self.settled.unwrap_or_else(|| self.leaves().saturating_add(self.link.delays[0]))
    }

    /// Returns when the last byte can leave the sender, if the link stays as it is.
    fn leaves(&self) -> Duration {
        let (whole, left) = (self.whole(), (1.0 - self.sent).max(0.0));
        if whole == Duration::MAX && left > 0.0 {
            return Duration::MAX;
        }
        let seconds = self.now.max(self.handshake[1]).as_secs_f64() + whole.as_secs_f64() * left;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Returns how long all of the object takes to leave over the present link.
    fn whole(&self) -> Duration {
        transport::transfer_floor(self.size, self.link.rate, Duration::ZERO, self.link.loss, ConnectingSide::Sender)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(text: &str) -> Duplex {
        text.parse().expect("a link")
    }

    #[test]
    fn a_floor_that_does_not_move_is_the_floor() {
        let fixed = link("rate=10M,delay=50ms,loss=5%");
        let mut moving = MovingFloor::new(1_000_000, &fixed);
        let expected = transport::transfer_floor(
            1_000_000,
            Rate::from_bits_per_second(10_000_000),
            Duration::from_millis(100),
            0.05,
            ConnectingSide::Sender,
        );
        let is_near = |time: Duration| time.abs_diff(expected) < Duration::from_micros(1);
        assert!(is_near(moving.time()), "{:?}, {expected:?}", moving.time());
        for now in [20, 150, 400] {
            moving.change(Duration::from_millis(now), &fixed);
            assert!(is_near(moving.time()), "{:?}, {expected:?} at {now} ms", moving.time());
        }
    }

    #[test]
    fn a_floor_moves_with_the_link() {
        let mut moving = MovingFloor::new(1_000_000, &link("rate=8M,delay=50ms"));
        let before = moving.time();
        // Half of it can have left; the rest takes twice the time.
        moving.change(
            Duration::from_millis(100) + (before - Duration::from_millis(150)) / 2,
            &link("rate=4M,delay=50ms"),
        );
        let after = moving.time();
        let expected = before + (before - Duration::from_millis(150)) / 2;
        assert!(after.abs_diff(expected) < Duration::from_micros(1), "{before:?} {after:?} {expected:?}");
        moving.change(Duration::from_secs(1), &link("rate=4M,delay=50ms,loss=100%"));
        assert_eq!(moving.time(), Duration::MAX);
    }

    #[test]
    fn changes_after_the_floor_do_not_move_it() {
        let fast = link("rate=8M,delay=50ms");
        let mut moving = MovingFloor::new(1_000_000, &fast);
        let floor = moving.time();
        // The last byte is under way.
        moving.change(floor - Duration::from_millis(20), &link("rate=1M,delay=500ms,loss=30%"));
        assert_eq!(moving.time(), floor);
        moving.change(floor * 10, &link("rate=8M,delay=50ms,loss=100%"));
        assert_eq!(moving.time(), floor);
    }

    #[test]
    fn a_handshake_under_way_meets_both_delays() {
        let at = |now: u64, before: &str, after: &str| {
            let mut moving = MovingFloor::new(1_000_000, &link(before));
            moving.change(Duration::from_millis(now), &link(after));
            moving.time().saturating_sub(MovingFloor::new(1_000_000, &link(after)).time()).as_millis()
        };
        let [near, far] = ["rate=8M,delay=10ms", "rate=8M,delay=300ms"];
        // At the receiver at 300 ms, or sent again and received at 60 ms; back 10 ms later, while a near link alone
        // takes 20 ms.
        assert_eq!(at(50, far, near), 50);
        // At the receiver at 300 ms, the answer sent again at 400 ms.
        assert_eq!(at(400, far, near), 390);
        // At the receiver at 10 ms, the answer takes the time of the far link.
        let mut moving = MovingFloor::new(1_000_000, &link(near));
        moving.change(Duration::from_millis(5), &link(far));
        let expected = MovingFloor::new(1_000_000, &link(far)).time() - Duration::from_millis(290);
        assert_eq!(moving.time().as_millis(), expected.as_millis());
    }
}
