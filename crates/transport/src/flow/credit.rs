//! Credit: the source symbols of blocks that a sender may start, an absolute, connection-wide count (law 4,
//! docs/design/flow-control.md).

use crate::time::Time;
use std::time::Duration;

/// The shortest interval over which a receiver measures arrivals.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);

/// The sender's side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendCredit {
    granted: u64,
    started: u64,
}

impl SendCredit {
    /// The peer's absolute grant; older, smaller ones change nothing.
    pub(crate) fn grant(&mut self, symbols: u64) {
        self.granted = self.granted.max(symbols);
    }

    /// Starts a block of `k` symbols if the grant covers it; returns whether it does.
    pub(crate) fn take(&mut self, k: u32) -> bool {
        let after = self.started + u64::from(k);
        let covered = after <= self.granted;
        if covered {
            self.started = after;
        }
        covered
    }

    /// Returns whether a block of `k` symbols could be started.
    pub(crate) fn covers(&self, k: u32) -> bool {
        self.started + u64::from(k) <= self.granted
    }
}

/// Room that a receiver gives on any path: 8.4 MB in full symbols, as much as a sender opens on any path.
const FLOOR: u64 = 6_000;

/// Before a round trip of arrivals is measured, a shorter time than this share of it is not evaluated.
const EARLY: u32 = 16;

/// Round trips' worth of arrivals granted beyond that: for symbols in flight, for waiting on retransmissions, and for
/// the credit's way back.
const ROUND_TRIPS: u64 = 4;

/// Intervals remembered, the largest of which counts: the first ones of a transfer are unreliable, and an outage does
/// not reduce the need.
const REMEMBERED: usize = 4;

/// The receiver's side. It starts with the credit of the handshake, as the path is unknown, and then adapts to the need
/// of the path, up to a limit. Granted credit is never withdrawn: the room shrinks when written symbols are not granted
/// again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveCredit {
    first: u64,
    limit: u64,
    room: u64,
    granted: u64,
    started: u64,
    returned: u64,
    /// The largest block that any flow has announced.
    largest: u64,
    /// Useful symbols that arrived since the interval began.
    arrived: u64,
    /// The interval's start; `None` until the round-trip time is known.
    since: Option<Time>,
    /// Arrivals in each of the last intervals; initially as many as keep the first room.
    arrivals: [u64; REMEMBERED],
    /// Whether the sender has used up its credit, and would have been given more but for the limit.
    is_capped: bool,
}

impl ReceiveCredit {
    /// Creates credit for `first` source symbols started and not written, and for at most `limit` once the path is
    /// known.
    pub(crate) fn new(first: u64, limit: u64) -> Self {
        Self {
            first,
            limit: limit.max(first),
            room: first,
            granted: first,
            started: 0,
            returned: 0,
            largest: 0,
            arrived: 0,
            since: None,
            arrivals: [first.saturating_sub(FLOOR).div_ceil(ROUND_TRIPS); REMEMBERED],
            is_capped: false,
        }
    }

    /// Returns the absolute grant.
    pub(crate) const fn granted(&self) -> u64 {
        self.granted
    }

    /// Accounts for a block of `k` symbols that begins; returns false when the sender had no credit for it.
    pub(crate) fn start(&mut self, k: u32) -> bool {
        let after = self.started + u64::from(k);
        let covered = after <= self.granted;
        if covered {
            self.started = after;
        }
        covered
    }

    /// Prepares for blocks of `k` symbols: one must be able to be in flight while another is written.
    pub(crate) fn expect_blocks(&mut self, k: u32) {
        self.largest = self.largest.max(k.into());
        self.room = self.room.max(self.floor());
        self.grant();
    }

    /// Sets the limit from now on. Credit beyond it is used up and not granted again.
    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.room = self.room.min(limit);
    }

    /// Returns whether only the limit keeps the sender from getting as much as the path needs.
    pub(crate) const fn is_capped(&self) -> bool {
        self.is_capped
    }

    fn floor(&self) -> u64 {
        FLOOR.max(2 * self.largest).min(self.limit)
    }

    /// Counts a symbol that its block needed.
    pub(crate) const fn note_arrival(&mut self) {
        self.arrived += 1;
    }

    /// Returns the credit of blocks of `symbols` symbols in all, which are written or never will be.
    pub(crate) fn give_back_symbols(&mut self, symbols: u64) {
        self.returned += symbols;
        self.grant();
    }

    /// Adapts the room to the path, once per round trip. `waiting` symbols are complete and not written: if they are
    /// most of the room, more room would not make writing faster; if they are few and the sender has used up its
    /// credit, it needs more.
    pub(crate) fn follow(&mut self, now: Time, rtt: Duration, waiting: u64) {
        if rtt.is_zero() {
            return;
        }
        let elapsed = now.since(*self.since.get_or_insert(now));
        if elapsed < LEAST_INTERVAL.max(rtt / EARLY) {
            return;
        }
        let in_a_round_trip = (self.arrived as f64 * rtt.as_secs_f64() / elapsed.as_secs_f64()) as u64;
        let used_up = (self.granted - self.started) * 8 <= self.room;
        let is_written = waiting * 4 <= self.room;
        if elapsed < rtt {
            if is_written {
                self.grow_early(in_a_round_trip);
            }
            return;
        }
        self.arrivals.rotate_left(1);
        self.arrivals[REMEMBERED - 1] = in_a_round_trip;
        (self.arrived, self.since) = (0, Some(now));
        let per_round_trip = self.arrivals.into_iter().max().unwrap_or_default();
        let floor = self.floor();
        let needed = if waiting * 2 > self.room {
            floor + per_round_trip
        } else if used_up && is_written {
            (floor + ROUND_TRIPS * per_round_trip).max(self.room + self.room / 4)
        } else {
            floor + ROUND_TRIPS * per_round_trip
        };
        // Over a long path the newest credit is still on its way: then as much as was granted arrives in a round trip.
        let is_needed = used_up || in_a_round_trip * 4 >= self.room * 3;
        self.is_capped = is_needed && waiting * 2 <= self.room && needed >= self.limit;
        self.room = needed.max(self.room - self.room / 8).clamp(floor, self.limit);
        self.grant();
    }

    /// Grants the estimated need of the path before a round trip is known: on a long fat path the first credit is used
    /// up by then. Room beyond the first is given as the disk proves to write.
    fn grow_early(&mut self, in_a_round_trip: u64) {
        let needed = self.floor() + ROUND_TRIPS * in_a_round_trip;
        let proven = self.first + ROUND_TRIPS * self.returned;
        self.room = self.room.max(needed.min(proven).min(self.limit));
        self.grant();
    }

    fn grant(&mut self) {
        self.granted = self.granted.max(self.returned + self.room);
    }
}

/// One stream's use of credit, as counted by either side: symbols started and not read. The first `own` belong to the
/// stream; further ones come from a pool that all streams of a direction share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCredit {
    own: u64,
    started: u64,
    read: u64,
}

impl StreamCredit {
    /// Creates the credit of a stream that has started nothing.
    pub(crate) const fn new(own: u32) -> Self {
        Self { own: own as u64, started: 0, read: 0 }
    }

    /// Returns the number of symbols started and not read.
    pub(crate) const fn outstanding(&self) -> u64 {
        self.started - self.read
    }

    /// Returns the number of symbols taken from the shared pool.
    pub(crate) const fn shared(&self) -> u64 {
        self.outstanding().saturating_sub(self.own)
    }

    /// Returns how many symbols may be started when the stream may hold `shared` of the pool in all.
    pub(crate) const fn left(&self, shared: u64) -> u64 {
        (self.own + shared).saturating_sub(self.outstanding())
    }

    /// Returns the number of symbols of the stream's own credit.
    pub(crate) const fn own(&self) -> u64 {
        self.own
    }

    /// Returns the number of symbols read so far.
    pub(crate) const fn read(&self) -> u64 {
        self.read
    }

    /// Returns the number of symbols started so far.
    pub(crate) const fn started(&self) -> u64 {
        self.started
    }

    /// Accounts for a block of `symbols` symbols that begins.
    pub(crate) const fn start(&mut self, symbols: u64) {
        self.started += symbols;
    }

    /// Raises the count of symbols read to `symbols`. Ignores a count that is not higher or exceeds the symbols
    /// started.
    pub(crate) const fn note_read(&mut self, symbols: u64) {
        if symbols > self.read && symbols <= self.started {
            self.read = symbols;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(10);

    /// Returns the room to give when, over `rounds` round trips, the sender had `open` symbols started and `arrives` of
    /// them were written.
    fn room_after(rounds: u64, open: u64, arrives: u64, waiting: u64) -> u64 {
        credit_after(rounds, open, arrives, waiting).room
    }

    /// Returns the credit then.
    fn credit_after(rounds: u64, open: u64, arrives: u64, waiting: u64) -> ReceiveCredit {
        let mut credit = ReceiveCredit::new(24_000, 24_000);
        let mut now = Time::ZERO;
        for _ in 0..rounds {
            now += RTT;
            while credit.started - credit.returned < open && credit.start(1) {}
            (0..arrives).for_each(|_| credit.note_arrival());
            credit.give_back_symbols(arrives);
            credit.follow(now, RTT, waiting);
        }
        credit
    }

    #[test]
    fn credit_follows_arrivals() {
        assert_eq!(room_after(3, 1_000, 0, 0), 24_000, "too early to know");
        assert_eq!(room_after(100, 3_000, 1_000, 0), 6_000 + 4_000, "four round trips of arrivals");
        assert_eq!(room_after(100, 24_000, 1_000, 24_000), 6_000 + 1_000, "the disk is the limit");
        assert_eq!(room_after(100, 24_000, 1_000, 0), 24_000, "credit is the limit");
        assert_eq!(room_after(100, 20_000, 9_000, 0), 24_000, "no more than allowed");
    }

    /// Returns the room granted after `rounds` round trips of 600 ms at `rate` symbols a second, of which all are
    /// written, or `written` a second.
    fn long_path(first: u64, limit: u64, rate: u64, written: u64, rounds: u64) -> u64 {
        let mut credit = ReceiveCredit::new(first, limit);
        let (rtt, step) = (Duration::from_millis(600), Duration::from_millis(20));
        let (mut started, mut disk) = (0, 0);
        for tick in 1..=30 * rounds {
            for _ in 0..rate / 50 {
                if credit.start(1) {
                    started += 1;
                    credit.note_arrival();
                }
            }
            let done = (disk + written / 50).min(started) - disk;
            disk += done;
            credit.give_back_symbols(done);
            credit.follow(Time::ZERO + step * tick as u32, rtt, started - disk);
        }
        credit.room
    }

    #[test]
    fn credit_grows_to_the_need_of_a_long_fat_path() {
        assert_eq!(long_path(48_000, 1 << 20, 80_000, 80_000, 10), 6_000 + 4 * 48_000, "1 Gbit/s");
        assert_eq!(long_path(48_000, 100_000, 80_000, 80_000, 10), 100_000, "the limit");
    }

    #[test]
    fn the_limit_is_named_where_it_binds_and_a_lower_one_takes_effect_as_blocks_are_written() {
        let capped = |open, arrives, waiting| credit_after(100, open, arrives, waiting).is_capped();
        assert!(capped(24_000, 2_000, 0), "the sender has used up its credit");
        assert!(!capped(24_000, 1_000, 24_000), "the disk is the limit");
        assert!(capped(20_000, 20_000, 10_000), "some blocks are being written at any time");
        assert!(!capped(20_000, 9_000, 0), "the sender has credit");
        assert!(!capped(3_000, 1_000, 0), "it is enough");
        assert!(capped(20_000, 20_000, 0), "granted symbols arrive and are written at once");

        let mut credit = ReceiveCredit::new(24_000, 24_000);
        assert!(credit.start(24_000));
        credit.set_limit(10_000);
        credit.give_back_symbols(14_000);
        assert!(!credit.start(1), "10,000 are still granted");
        credit.give_back_symbols(1);
        assert!(credit.start(1));
    }

    #[test]
    fn room_grows_before_a_round_trip_is_over_but_not_ahead_of_the_disk() {
        let early = |written| {
            let mut credit = ReceiveCredit::new(48_000, 1 << 20);
            let rtt = Duration::from_millis(600);
            credit.follow(Time::ZERO, rtt, 0);
            (0..8_000).for_each(|_| credit.note_arrival());
            credit.give_back_symbols(written);
            credit.follow(Time::ZERO + rtt / 6, rtt, 8_000 - written);
            credit.room
        };
        assert_eq!(early(8_000), 48_000 + 4 * 8_000);
        assert_eq!(early(1_000), 48_000 + 4 * 1_000);
        assert!(long_path(48_000, 1 << 20, 80_000, 8_000, 10) <= 6_000 + 48_000);
    }

    #[test]
    fn a_block_larger_than_the_room_can_be_started() {
        let mut credit = ReceiveCredit::new(24_000, 24_000);
        (1..100).for_each(|round| credit.follow(Time::ZERO + RTT * round, RTT, 0));
        assert!(credit.start(24_000));
        credit.give_back_symbols(24_000);
        assert!(!credit.start(8_192) && credit.start(6_000));
        credit.expect_blocks(8_192);
        assert!(credit.start(8_192));
    }

    #[test]
    fn a_grant_never_falls() {
        let mut credit = ReceiveCredit::new(24_000, 24_000);
        credit.start(20_000);
        for round in 1..100 {
            let before = credit.granted();
            credit.follow(Time::ZERO + RTT * round, RTT, 20_000);
            credit.give_back_symbols(100);
            assert!(credit.granted() >= before);
        }
        assert_eq!(credit.granted(), 24_100, "of 9,900 written ones only the first, before the path was known");
        credit.give_back_symbols(10_100);
        assert_eq!(credit.granted(), 26_000);
    }

    #[test]
    fn a_stream_takes_its_own_first() {
        let mut usage = StreamCredit::new(10);
        assert_eq!((usage.left(0), usage.left(5)), (10, 15));
        usage.start(12);
        assert_eq!((usage.shared(), usage.left(5), usage.left(1)), (2, 3, 0));
        usage.note_read(13);
        assert_eq!(usage.read(), 0, "more than was started");
        usage.note_read(4);
        usage.note_read(3);
        assert_eq!((usage.read(), usage.shared(), usage.left(0)), (4, 0, 2));
    }
}
