//! FlowQueue-CoDel (RFC 8290): a queue for each flow, served in turns, and CoDel for each queue.

use std::collections::VecDeque;

use crate::codel::CodelState;
use crate::link::Admitted;
use crate::pipe::Envelope;
use crate::random::{mix, up_to};
use crate::{Codel, DropReason, Ecn, Link};

/// Flows are distributed over this many queues (RFC 8290 section 5.2.5).
const QUEUES: usize = 1_024;
/// Bytes that a queue may send in one turn: a full packet (RFC 8290 section 5.2.4, without the link's own header).
const QUANTUM: i64 = 1_500;

/// The packets that wait for a link, by flow.
#[derive(Debug)]
pub(crate) struct FairQueue<T> {
    queues: Vec<FlowBacklog<T>>,
    /// Queues in the order of their turns: those that have just got their first packet, and the others.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// The packets in all queues.
    packets: usize,
    bytes: u64,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) admitted: Admitted,
    pub(crate) envelope: Envelope<T>,
}

/// The packets of one flow, or of several with the same hash.
#[derive(Debug)]
struct FlowBacklog<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
    /// Bytes that it may send before it is the next one's turn.
    credit: i64,
    /// Whether it is in one of the two lists.
    is_listed: bool,
    codel: CodelState,
}

impl<T> Default for FlowBacklog<T> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0, credit: 0, is_listed: false, codel: CodelState::default() }
    }
}

impl<T> FairQueue<T> {
    /// Creates an empty queue.
    pub(crate) fn new() -> Self {
        let queues = std::iter::repeat_with(FlowBacklog::default).take(QUEUES).collect();
        Self { queues, new: VecDeque::new(), old: VecDeque::new(), packets: 0, bytes: 0 }
    }

    /// Returns the number of packets that wait.
    pub(crate) fn packets(&self) -> usize {
        self.packets
    }

    /// Returns the IP bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a packet into the queue of its flow (RFC 8290 section 4.1).
    pub(crate) fn push(&mut self, waiting: Waiting<T>) {
        let number = up_to(QUEUES as u64 - 1, mix(waiting.envelope.flow)) as usize;
        let ip_bytes = u64::from(waiting.envelope.ip_bytes);
        let queue = &mut self.queues[number];
        queue.packets.push_back(waiting);
        queue.bytes += ip_bytes;
        if !queue.is_listed {
            queue.is_listed = true;
            queue.credit = QUANTUM;
            self.new.push_back(number);
        }
        self.packets += 1;
        self.bytes += ip_bytes;
    }

    /// Removes the first packet of the queue with the most bytes, and returns its IP bytes; `None` if nothing waits.
    ///
    /// Departs: RFC 8290 section 4.1 removes up to 64 packets at once, to search less often. Here it removes as many as
    /// needed for room.
    pub(crate) fn drop_from_longest(&mut self) -> Option<u32> {
        let listed = self.new.iter().chain(&self.old).copied();
        let longest = listed.max_by_key(|&number| self.queues[number].bytes)?;
        let queue = &mut self.queues[longest];
        let ip_bytes = queue.packets.pop_front()?.envelope.ip_bytes;
        queue.bytes -= u64::from(ip_bytes);
        self.packets -= 1;
        self.bytes -= u64::from(ip_bytes);
        Some(ip_bytes)
    }

    /// Takes the next packet, with its ECN field from now on, and lets CoDel drop those before it (RFC 8290 section
    /// 4.2). `None` if no packet is left.
    pub(crate) fn take(&mut self, codel: Codel, link: &mut Link) -> Option<(Waiting<T>, Ecn)> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = list.pop_front()?;
            let queue = &mut self.queues[number];
            if queue.credit <= 0 {
                queue.credit += QUANTUM;
                self.old.push_back(number);
                continue;
            }
            let (packets, bytes) = (queue.packets.len(), queue.bytes);
            let taken = queue.take(codel, link);
            self.packets -= packets - queue.packets.len();
            self.bytes -= bytes - queue.bytes;
            match &taken {
                Some((waiting, _)) => {
                    queue.credit -= i64::from(waiting.envelope.ip_bytes);
                    if is_new { &mut self.new } else { &mut self.old }.push_front(number);
                    return taken;
                }
                // So that a flow of few packets is not new again at each of them, and cannot starve the others.
                None if is_new => self.old.push_back(number),
                None => queue.is_listed = false,
            }
        }
    }
}

impl<T> FlowBacklog<T> {
    /// Takes the first packet that CoDel does not drop, with its ECN field from now on.
    fn take(&mut self, codel: Codel, link: &mut Link) -> Option<(Waiting<T>, Ecn)> {
        while let Some(waiting) = self.packets.pop_front() {
            let Envelope { ip_bytes, ecn, .. } = waiting.envelope;
            self.bytes -= u64::from(ip_bytes);
            let came = waiting.admitted.at;
            let taken = link.takes(came, ip_bytes);
            if !self.codel.acts(codel, taken, taken - came, self.bytes) {
                return Some((waiting, ecn));
            }
            if ecn != Ecn::NotEct {
                return Some((waiting, Ecn::Ce));
            }
            link.count_drop(DropReason::Codel, ip_bytes);
        }
        None
    }
}
