//! A link of a fabric, with its endpoints and the items that wait for it and are in flight on it.

use crate::fair::{FairQueue, Waiting};
use crate::{
    Codel, Deliveries, DropReason, Ecn, InFlightQueue, Link, LinkConfig, LinkError, NodeId, OfferOutcome, Time,
};

/// An item in flight, with all that links look at.
#[derive(Clone, Debug)]
pub(crate) struct Envelope<T> {
    /// The destination host.
    pub(crate) to: NodeId,
    pub(crate) ip_bytes: u32,
    pub(crate) ecn: Ecn,
    /// Equal for the items of one flow, and different for others.
    pub(crate) flow: u64,
    /// Entropy of the first link that corrupted it.
    pub(crate) corrupt: Option<u64>,
    pub(crate) item: T,
}

/// A link of a [`crate::Fabric`] and the items in flight on it.
#[derive(Debug)]
pub(crate) struct Pipe<T> {
    pub(crate) link: Link,
    /// The vertex it starts at.
    pub(crate) from: usize,
    /// The vertex it leads to.
    pub(crate) to: usize,
    pub(crate) transit: InFlightQueue<Envelope<T>>,
    /// In front of the link, if it has `fq-codel`.
    stage: Option<FairQueueing<T>>,
}

/// A fair queue, and when the link takes the next item from it.
#[derive(Debug)]
struct FairQueueing<T> {
    codel: Codel,
    queue: FairQueue<T>,
    /// Also once after the last item, when the queues are found empty; `Time::MAX` then.
    turn: Time,
}

impl<T> FairQueueing<T> {
    fn new(codel: Codel) -> Self {
        Self { codel, queue: FairQueue::new(), turn: Time::MAX }
    }
}

impl<T> Pipe<T> {
    pub(crate) fn new(config: LinkConfig, from: usize, to: usize) -> Result<Self, LinkError> {
        let stage = config.fq_codel.map(FairQueueing::new);
        Ok(Self { link: Link::behind_queue(config)?, from, to, transit: InFlightQueue::new(), stage })
    }

    /// Returns when the next item arrives or is taken from the fair queue; `Time::MAX` without one.
    pub(crate) fn next_event(&self) -> Time {
        self.transit.next_arrival().unwrap_or(Time::MAX).min(self.turn())
    }

    /// Returns when the next item is taken from the fair queue; `Time::MAX` if it has been found empty.
    pub(crate) fn turn(&self) -> Time {
        self.stage.as_ref().map_or(Time::MAX, |stage| stage.turn)
    }

    /// Returns the number of items that wait or are in flight, copies included.
    pub(crate) fn under_way(&self) -> usize {
        self.transit.len() + self.stage.as_ref().map_or(0, |stage| stage.queue.packets())
    }
}

impl<T: Clone> Pipe<T> {
    /// Sends an item; returns it if it is dropped. With `fq-codel` it waits for its turn first.
    pub(crate) fn send(&mut self, now: Time, envelope: Envelope<T>) -> Result<(), (DropReason, T)> {
        if self.stage.is_some() {
            return self.enqueue(now, envelope);
        }
        match self.link.offer(now, envelope.ip_bytes, envelope.ecn) {
            OfferOutcome::Dropped(reason) => return Err((reason, envelope.item)),
            OfferOutcome::Delivered(deliveries) => self.fly(&deliveries, envelope),
        }
        Ok(())
    }

    /// Puts an item into the fair queue, which drops others if it is full.
    fn enqueue(&mut self, now: Time, envelope: Envelope<T>) -> Result<(), (DropReason, T)> {
        let Self { link, stage: Some(FairQueueing { queue, turn, .. }), .. } = self else { return Ok(()) };
        let ip_bytes = envelope.ip_bytes;
        let found = link.queued_bytes(now) + queue.bytes();
        match link.admit(now, found, ip_bytes) {
            Ok(admitted) => queue.push(Waiting { admitted, envelope }),
            Err(reason) => {
                link.count_drop(reason, ip_bytes);
                return Err((reason, envelope.item));
            }
        }
        while !link.has_room(now, queue.packets(), queue.bytes())
            && let Some(ip_bytes) = queue.drop_from_longest()
        {
            link.count_drop(DropReason::QueueFull, ip_bytes);
        }
        if *turn == Time::MAX && queue.packets() > 0 {
            *turn = link.free_at().max(now);
        }
        Ok(())
    }

    /// Takes the next item from the fair queue and sends it.
    pub(crate) fn take(&mut self) {
        let Self { link, stage: Some(FairQueueing { codel, queue, turn }), .. } = self else { return };
        let taken = queue.take(*codel, link);
        let is_empty = taken.is_none();
        let sent = taken.map(|(Waiting { admitted, envelope }, left_as)| {
            let ip_bytes = envelope.ip_bytes;
            match link.send(&admitted, ip_bytes, envelope.ecn, left_as) {
                Ok(deliveries) => Some((deliveries, envelope)),
                Err(reason) => {
                    link.count_drop(reason, ip_bytes);
                    None
                }
            }
        });
        *turn = if is_empty { Time::MAX } else { link.free_at().max(*turn) };
        if let Some((deliveries, envelope)) = sent.flatten() {
            self.fly(&deliveries, envelope);
        }
    }

    /// Changes the link for items that reach it from now on. Those in the fair queue wait for the new rate; without
    /// `fq-codel` they leave at the old one.
    pub(crate) fn set_config(&mut self, config: LinkConfig) -> Result<(), LinkError> {
        config.check_loaded()?;
        match (&mut self.stage, config.fq_codel) {
            (Some(stage), Some(codel)) => stage.codel = codel,
            (None, Some(codel)) => self.stage = Some(FairQueueing::new(codel)),
            (_, None) => {
                while self.turn() < Time::MAX {
                    self.take();
                }
                self.stage = None;
            }
        }
        self.link.set_checked_config(config);
        Ok(())
    }

    /// Puts an item in flight, and its copy.
    fn fly(&mut self, deliveries: &Deliveries, mut envelope: Envelope<T>) {
        envelope.ecn = deliveries.first.ecn;
        let copy = deliveries.duplicate.map(|delivery| (delivery, envelope.clone()));
        envelope.corrupt = envelope.corrupt.or(deliveries.first.corrupt);
        self.transit.push(&deliveries.first, envelope);
        if let Some((delivery, copy)) = copy {
            self.transit.push(&delivery, copy);
        }
    }
}
