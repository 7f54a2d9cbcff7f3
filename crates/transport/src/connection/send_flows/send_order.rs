//! The next sender. Interactive streams go first; among equals the objects, as one, and each stream take turns (deficit
//! round robin, Shreedhar 1995; all packets are equally long, so no deficit has to be kept).

use super::super::streams::Priority;
use crate::time::Time;
use crate::wire::FlowId;
use std::collections::{BTreeMap, VecDeque};

/// Packets that one may send before its equals have their turns.
const QUANTUM: u32 = 4;

/// A stream that decides by itself is interactive up to this many bytes per second of its program: so much takes 1 % of a
/// path of 13 Mbit/s.
const SPARSE: f64 = 16_000.0;
/// The unused rest of a stream can be used for this long, in seconds: a page's request, its answer's first bytes, or a
/// screen of text.
const SPARSE_FOR: f64 = 1.0;

/// A sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The objects, in the order they were opened.
    Objects,
    /// The stream that the program knows by this id.
    Stream(FlowId),
}

/// The quota of a stream before others.
#[derive(Debug)]
struct StreamQuota {
    class: Priority,
    /// Its remaining bytes, or those sent beyond it, at a time since which the stream had nothing to send. A stream
    /// that always sends gets no more.
    left: f64,
    idle_since: Option<Time>,
    state: StreamActivity,
}

/// Whether a stream may have something to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamActivity {
    /// Not before it is announced.
    Waiting,
    /// Not before it is woken.
    Asleep,
    /// It has a turn.
    Awake,
}

impl StreamQuota {
    const fn new(class: Priority) -> Self {
        Self { class, left: SPARSE * SPARSE_FOR, idle_since: None, state: StreamActivity::Waiting }
    }

    fn left(&self, now: Time) -> f64 {
        let earned = self.idle_since.map_or(0.0, |since| SPARSE * now.since(since).as_secs_f64());
        (self.left + earned).min(SPARSE * SPARSE_FOR)
    }

    fn is_interactive(&self, now: Time) -> bool {
        match self.class {
            Priority::Interactive => true,
            Priority::Bulk => false,
            Priority::Auto => self.left(now) > 0.0,
        }
    }

    fn on_source(&mut self, now: Time, bytes: usize, has_more: bool) {
        self.left = (self.left(now) - bytes as f64).max(-SPARSE * SPARSE_FOR);
        self.idle_since = (!has_more).then_some(now);
    }
}

/// All that may have something to send, and the class of each stream.
#[derive(Debug)]
pub(super) struct SendOrder {
    /// The sender that has waited longest is first; with the packets of its turn so far.
    order: VecDeque<(Turn, u32)>,
    streams: BTreeMap<FlowId, StreamQuota>,
}

impl Default for SendOrder {
    fn default() -> Self {
        Self { order: VecDeque::from([(Turn::Objects, 0)]), streams: BTreeMap::new() }
    }
}

impl SendOrder {
    /// Adds a stream, which is not announced yet.
    pub(super) fn add(&mut self, first: FlowId, class: Priority) {
        self.streams.insert(first, StreamQuota::new(class));
    }

    /// Removes a stream.
    pub(super) fn remove(&mut self, first: FlowId) {
        self.sleep(first);
        self.streams.remove(&first);
    }

    /// Notes that a stream is announced: it may send from now on.
    pub(super) fn announce(&mut self, first: FlowId) {
        self.list(first, StreamActivity::Waiting);
    }

    /// Notes that a stream may have something to send, if it is announced.
    pub(super) fn wake(&mut self, first: FlowId) {
        self.list(first, StreamActivity::Asleep);
    }

    fn list(&mut self, first: FlowId, from: StreamActivity) {
        if let Some(share) = self.streams.get_mut(&first).filter(|share| share.state == from) {
            share.state = StreamActivity::Awake;
            self.order.push_back((Turn::Stream(first), 0));
        }
    }

    pub(super) fn is_awake(&self, first: FlowId) -> bool {
        self.streams.get(&first).is_some_and(|share| share.state == StreamActivity::Awake)
    }

    /// Notes that a stream has nothing to send before it is woken.
    pub(super) fn sleep(&mut self, first: FlowId) {
        if let Some(share) = self.streams.get_mut(&first).filter(|share| share.state == StreamActivity::Awake) {
            share.state = StreamActivity::Asleep;
            self.order.retain(|(turn, _)| *turn != Turn::Stream(first));
        }
    }

    /// Iterates over the awake streams, by their turns.
    pub(super) fn awake(&self) -> impl Iterator<Item = FlowId> {
        self.order.iter().filter_map(|(turn, _)| match turn {
            Turn::Objects => None,
            Turn::Stream(first) => Some(*first),
        })
    }

    /// Returns the order in which to poll the awake ones.
    pub(super) fn order(&self, now: Time, out: &mut Vec<Turn>) {
        let is_first = |turn: &Turn| match turn {
            Turn::Objects => false,
            Turn::Stream(first) => self.streams.get(first).is_some_and(|share| share.is_interactive(now)),
        };
        out.clear();
        out.extend(self.order.iter().map(|(turn, _)| *turn));
        // Stable: equals keep their order.
        out.sort_by_key(|turn| !is_first(turn));
    }

    /// Notes that this one sends a packet.
    pub(super) fn taken(&mut self, turn: Turn) {
        let Some(at) = self.order.iter().position(|(other, _)| *other == turn) else { return };
        self.order[at].1 += 1;
        if self.order[at].1 >= QUANTUM {
            self.order.remove(at);
            self.order.push_back((turn, 0));
        }
    }

    /// Notes that a stream sends so many bytes that its program has written, and whether it has more to send.
    pub(super) fn on_source(&mut self, now: Time, first: FlowId, bytes: usize, has_more: bool) {
        if let Some(share) = self.streams.get_mut(&first) {
            share.on_source(now, bytes, has_more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const PACKET: usize = 1_400;

    fn stream(number: u16) -> Turn {
        Turn::Stream(FlowId(number))
    }

    /// Streams 1 to `streams` of this class, all awake, and the objects.
    fn turns(streams: u16, class: Priority) -> SendOrder {
        let mut turns = SendOrder::default();
        for first in (1..=streams).map(FlowId) {
            turns.add(first, class);
            turns.announce(first);
        }
        turns
    }

    /// Sends a packet of the first sender not in `idle`.
    fn send(turns: &mut SendOrder, now: Time, idle: &[Turn]) -> Turn {
        let mut order = Vec::new();
        turns.order(now, &mut order);
        let turn = order.into_iter().find(|turn| !idle.contains(turn)).expect("a sender is left");
        turns.taken(turn);
        if let Turn::Stream(first) = turn {
            turns.on_source(now, first, PACKET, true);
        }
        turn
    }

    /// Returns how many of 1,000 packets the objects and each stream send, where those in `idle` have none.
    fn shares(streams: u16, idle: &[Turn]) -> Vec<u32> {
        let mut turns = turns(streams, Priority::Bulk);
        let mut sent = vec![0; usize::from(streams) + 1];
        for _ in 0..1_000 {
            let at = match send(&mut turns, Time::ZERO, idle) {
                Turn::Objects => 0,
                Turn::Stream(FlowId(number)) => usize::from(number),
            };
            sent[at] += 1;
        }
        sent
    }

    #[test]
    fn equals_get_the_same() {
        assert_eq!(shares(0, &[]), [1_000]);
        assert_eq!(shares(4, &[]), [200; 5]);
        assert_eq!(shares(4, &[Turn::Objects, stream(2)]), [0, 336, 0, 332, 332]);
    }

    #[test]
    fn no_stream_waits_longer_than_all_equals_together() {
        let mut turns = turns(5, Priority::Bulk);
        let mut since = [0; 6];
        for _ in 0..1_000 {
            let at = match send(&mut turns, Time::ZERO, &[]) {
                Turn::Objects => 0,
                Turn::Stream(FlowId(number)) => usize::from(number),
            };
            since.iter_mut().for_each(|since| *since += 1);
            assert!(since[at] <= 5 * QUANTUM + 1);
            since[at] = 0;
        }
    }

    /// Whatever goes first in between.
    #[test]
    fn equals_take_turns_behind_a_busy_interactive_stream() {
        let mut turns = turns(2, Priority::Bulk);
        turns.add(FlowId(9), Priority::Interactive);
        turns.announce(FlowId(9));
        let mut sent = [0, 0, 0];
        for nth in 0..900 {
            let idle = if nth % 3 == 0 { &[][..] } else { &[stream(9)] };
            match send(&mut turns, Time::ZERO, idle) {
                Turn::Objects => sent[0] += 1,
                Turn::Stream(FlowId(9)) => {}
                Turn::Stream(FlowId(number)) => sent[usize::from(number)] += 1,
            }
        }
        assert_eq!(sent, [200; 3]);
    }

    #[test]
    fn interactive_streams_go_before_all_others() {
        let mut turns = turns(3, Priority::Bulk);
        turns.add(FlowId(9), Priority::Interactive);
        turns.wake(FlowId(9));
        assert!((0..10).all(|_| send(&mut turns, Time::ZERO, &[]) != stream(9)), "it is not announced");
        turns.announce(FlowId(9));
        assert!((0..100).all(|_| send(&mut turns, Time::ZERO, &[]) == stream(9)), "for as long as it has some");
        assert_ne!(send(&mut turns, Time::ZERO, &[stream(9)]), stream(9));
        turns.sleep(FlowId(9));
        let mut order = Vec::new();
        turns.order(Time::ZERO, &mut order);
        assert!(!order.contains(&stream(9)) && order.len() == 4);
    }

    /// A backlogged stream has its first 16 kB before others, and nothing more until it pauses.
    #[test]
    fn a_stream_is_interactive_while_it_is_sparse() {
        let mut turns = turns(1, Priority::Bulk);
        turns.add(FlowId(2), Priority::Auto);
        turns.announce(FlowId(2));
        let mut at = Time::ZERO;
        let first = (0..).take_while(|_| send(&mut turns, at, &[]) == stream(2)).count();
        assert_eq!(first, 12);
        let mut row = |at| (0..100).take_while(|_| send(&mut turns, at, &[]) == stream(2)).count();
        at += Duration::from_secs(10);
        assert!(row(at) <= QUANTUM as usize, "it has never paused");
        turns.on_source(at, FlowId(2), PACKET, false);
        let mut row = |at| (0..100).take_while(|_| send(&mut turns, at, &[]) == stream(2)).count();
        assert!(row(at + Duration::from_millis(1_500)) >= 5, "half of it is back, once the excess is compensated");
    }

    /// 1 MB a second, each packet by itself.
    #[test]
    fn a_fast_stream_that_never_waits_is_not_interactive() {
        let mut turns = turns(1, Priority::Auto);
        let (mut at, mut first) = (Time::ZERO, 0);
        for _ in 0..1_000 {
            let mut order = Vec::new();
            turns.order(at, &mut order);
            first += u32::from(order[0] == stream(1));
            turns.taken(stream(1));
            turns.taken(Turn::Objects);
            turns.on_source(at, FlowId(1), 1_000, false);
            at += Duration::from_millis(1);
        }
        let mut order = Vec::new();
        turns.order(at, &mut order);
        assert!(!turns.streams[&FlowId(1)].is_interactive(at), "{first} of 1,000 were first");
    }

    #[test]
    fn keys_stay_interactive() {
        let mut turns = turns(1, Priority::Auto);
        let mut at = Time::ZERO;
        for _ in 0..1_000 {
            let mut order = Vec::new();
            turns.order(at, &mut order);
            assert_eq!(order, [stream(1), Turn::Objects]);
            turns.taken(stream(1));
            turns.on_source(at, FlowId(1), 1_000, false);
            at += Duration::from_millis(70);
        }
    }
}
