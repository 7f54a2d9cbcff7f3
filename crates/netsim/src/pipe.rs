//! A link of a fabric, with its endpoints and the items in flight on it.

use crate::{DropReason, Ecn, Fate, Link, NodeId, Time, Transit};

/// An item in flight, with all that links look at.
#[derive(Clone, Debug)]
pub(crate) struct Envelope<T> {
    /// The destination host.
    pub(crate) to: NodeId,
    pub(crate) ip_bytes: u32,
    pub(crate) ecn: Ecn,
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
    pub(crate) transit: Transit<Envelope<T>>,
}

impl<T> Pipe<T> {
    pub(crate) fn new(link: Link, from: usize, to: usize) -> Self {
        Self { link, from, to, transit: Transit::new() }
    }

    /// Returns when the next item arrives; `Time::MAX` if none is in flight.
    pub(crate) fn next_arrival(&self) -> Time {
        self.transit.next_arrival().unwrap_or(Time::MAX)
    }
}

impl<T: Clone> Pipe<T> {
    /// Sends an item; returns it if it is dropped.
    pub(crate) fn send(&mut self, now: Time, mut envelope: Envelope<T>) -> Result<(), (DropReason, T)> {
        let deliveries = match self.link.offer(now, envelope.ip_bytes, envelope.ecn) {
            Fate::Dropped(reason) => return Err((reason, envelope.item)),
            Fate::Delivered(deliveries) => deliveries,
        };
        envelope.ecn = deliveries.first.ecn;
        let copy = deliveries.duplicate.map(|delivery| (delivery, envelope.clone()));
        envelope.corrupt = envelope.corrupt.or(deliveries.first.corrupt);
        self.transit.push(&deliveries.first, envelope);
        if let Some((delivery, copy)) = copy {
            self.transit.push(&delivery, copy);
        }
        Ok(())
    }
}
