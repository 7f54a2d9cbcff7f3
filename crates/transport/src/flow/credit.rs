//! Credit: source symbols of blocks that a sender may have started, absolute and connection-wide (law 4, docs/design/flow-control.md).

use crate::time::Time;
use std::time::Duration;

/// The least time over which a receiver looks what arrives.
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

    /// Starts a block of `k` symbols, if the grant covers it.
    pub(crate) fn take(&mut self, k: u32) -> bool {
        let after = self.started + u64::from(k);
        let covered = after <= self.granted;
        if covered {
            self.started = after;
        }
        covered
    }

    /// Whether a block of `k` symbols could be started.
    pub(crate) fn covers(&self, k: u32) -> bool {
        self.started + u64::from(k) <= self.granted
    }
}

/// Room that a receiver gives whatever the path: 8.4 MB in full symbols, as much as a sender opens on any path.
const FLOOR: u64 = 6_000;

/// Round trips of arrivals beyond that: on the way, waiting for lost symbols, and until the credit for it is back.
const ROUND_TRIPS: u64 = 4;

/// The most of so many round trips counts: the first ones of a transfer say little, and an outage is no smaller need.
const REMEMBERED: usize = 4;

/// The receiver's side. It begins with all the room there may be, since nothing is known of the path, and then follows what
/// the path is seen to need. Credit never falls: room shrinks by what is written and not granted again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveCredit {
    limit: u64,
    room: u64,
    granted: u64,
    started: u64,
    returned: u64,
    /// The largest block that a flow has announced.
    largest: u64,
    /// Symbols that brought a block forward, since a moment.
    arrived: u64,
    since: Time,
    /// What arrived in each of the last round trips looked at; at first as much as there may be.
    arrivals: [u64; REMEMBERED],
}

impl ReceiveCredit {
    /// Room for at most `limit` source symbols that are started and not written.
    pub(crate) const fn new(limit: u64) -> Self {
        Self {
            limit,
            room: limit,
            granted: limit,
            started: 0,
            returned: 0,
            largest: 0,
            arrived: 0,
            since: Time::ZERO,
            arrivals: [limit; REMEMBERED],
        }
    }

    /// The absolute grant.
    pub(crate) const fn granted(&self) -> u64 {
        self.granted
    }

    /// A block of `k` symbols begins; false when the sender had no credit for it.
    pub(crate) fn start(&mut self, k: u32) -> bool {
        let after = self.started + u64::from(k);
        let covered = after <= self.granted;
        if covered {
            self.started = after;
        }
        covered
    }

    /// Blocks of `k` symbols are to come: one has to be on its way while another is written.
    pub(crate) fn expect_blocks(&mut self, k: u32) {
        self.largest = self.largest.max(k.into());
        self.room = self.room.max(self.floor());
        self.grant();
    }

    fn floor(&self) -> u64 {
        FLOOR.max(2 * self.largest).min(self.limit)
    }

    /// A symbol brought its block forward.
    pub(crate) const fn note_arrival(&mut self) {
        self.arrived += 1;
    }

    /// Blocks of so many symbols in all are written, or will never be.
    pub(crate) fn give_back_symbols(&mut self, symbols: u64) {
        self.returned += symbols;
        self.grant();
    }

    /// Looks, once a round trip, what the path needs. `waiting` symbols are complete and not written: where they are most of
    /// the room, more of it would not make writing faster; where they are few and the sender has used up its credit, more of it
    /// is what is missing.
    pub(crate) fn follow(&mut self, now: Time, rtt: Duration, waiting: u64) {
        let elapsed = now.since(self.since);
        if rtt.is_zero() || elapsed < rtt.max(LEAST_INTERVAL) {
            return;
        }
        self.arrivals.rotate_left(1);
        self.arrivals[REMEMBERED - 1] = (self.arrived as f64 * rtt.as_secs_f64() / elapsed.as_secs_f64()) as u64;
        (self.arrived, self.since) = (0, now);
        let per_round_trip = self.arrivals.into_iter().max().unwrap_or_default();
        let floor = self.floor();
        let used_up = (self.granted - self.started) * 8 <= self.room;
        let needed = if waiting * 2 > self.room {
            floor + per_round_trip
        } else if used_up && waiting * 4 <= self.room {
            (floor + ROUND_TRIPS * per_round_trip).max(self.room + self.room / 4)
        } else {
            floor + ROUND_TRIPS * per_round_trip
        };
        self.room = needed.max(self.room - self.room / 8).clamp(floor, self.limit);
        self.grant();
    }

    fn grant(&mut self) {
        self.granted = self.granted.max(self.returned + self.room);
    }
}

/// One stream's use of credit, as either side counts it: symbols started and not read. Up to `own` they are the stream's alone;
/// what lies above comes out of a store that all streams of a direction share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamCredit {
    own: u64,
    started: u64,
    read: u64,
}

impl StreamCredit {
    /// Nothing is started.
    pub(crate) const fn new(own: u32) -> Self {
        Self { own: own as u64, started: 0, read: 0 }
    }

    /// Symbols started and not read.
    pub(crate) const fn outstanding(&self) -> u64 {
        self.started - self.read
    }

    /// Symbols out of the shared store.
    pub(crate) const fn shared(&self) -> u64 {
        self.outstanding().saturating_sub(self.own)
    }

    /// Symbols that may be started when `shared` may come out of the store in all.
    pub(crate) const fn left(&self, shared: u64) -> u64 {
        (self.own + shared).saturating_sub(self.outstanding())
    }

    /// Symbols of its own.
    pub(crate) const fn own(&self) -> u64 {
        self.own
    }

    /// Symbols read so far.
    pub(crate) const fn read(&self) -> u64 {
        self.read
    }

    /// Symbols started so far.
    pub(crate) const fn started(&self) -> u64 {
        self.started
    }

    /// A block of so many symbols begins.
    pub(crate) const fn start(&mut self, symbols: u64) {
        self.started += symbols;
    }

    /// So many symbols are read in all; a number that is no news, or of what was never started, changes nothing.
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

    /// The room when for `rounds` round trips the sender has had `open` symbols started and `arrives` of them were written.
    fn room_after(rounds: u64, open: u64, arrives: u64, waiting: u64) -> u64 {
        let mut credit = ReceiveCredit::new(24_000);
        let mut now = Time::ZERO;
        for _ in 0..rounds {
            now += RTT;
            while credit.started - credit.returned < open && credit.start(1) {}
            (0..arrives).for_each(|_| credit.note_arrival());
            credit.give_back_symbols(arrives);
            credit.follow(now, RTT, waiting);
        }
        credit.room
    }

    #[test]
    fn room_follows_what_arrives() {
        assert_eq!(room_after(3, 1_000, 0, 0), 24_000, "too early to tell");
        assert_eq!(room_after(100, 3_000, 1_000, 0), 6_000 + 4_000, "four round trips of arrivals");
        assert_eq!(room_after(100, 24_000, 1_000, 24_000), 6_000 + 1_000, "the disk is the limit");
        assert_eq!(room_after(100, 24_000, 1_000, 0), 24_000, "credit is the limit");
        assert_eq!(room_after(100, 20_000, 9_000, 0), 24_000, "no more than there may be");
    }

    #[test]
    fn a_block_larger_than_the_room_can_be_started() {
        let mut credit = ReceiveCredit::new(24_000);
        (1..100).for_each(|round| credit.follow(Time::ZERO + RTT * round, RTT, 0));
        assert!(credit.start(24_000));
        credit.give_back_symbols(24_000);
        assert!(!credit.start(8_192) && credit.start(6_000));
        credit.expect_blocks(8_192);
        assert!(credit.start(8_192));
    }

    #[test]
    fn a_grant_never_falls() {
        let mut credit = ReceiveCredit::new(24_000);
        credit.start(20_000);
        for round in 1..100 {
            let before = credit.granted();
            credit.follow(Time::ZERO + RTT * round, RTT, 20_000);
            credit.give_back_symbols(100);
            assert!(credit.granted() >= before);
        }
        assert_eq!(credit.granted(), 24_300, "of 9,900 that are written only the first, before the path was known");
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
