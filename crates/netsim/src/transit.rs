//! The packets in flight on a link, in the order of their arrival.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::{Delivery, Time};

/// Holds a [`crate::Link`]'s deliveries until they arrive: packets, or values in their place.
///
/// A link keeps order except for the packets it holds back or scatters, so a queue and a heap suffice.
#[derive(Debug)]
pub struct InFlightQueue<T> {
    in_order: VecDeque<(Time, T)>,
    held_back: BinaryHeap<Reverse<HeldBack<T>>>,
    /// Numbers the items held back, so that those due at once keep a fixed order.
    held_back_so_far: u64,
}

impl<T> Default for InFlightQueue<T> {
    fn default() -> Self {
        Self { in_order: VecDeque::new(), held_back: BinaryHeap::new(), held_back_so_far: 0 }
    }
}

impl<T> InFlightQueue<T> {
    /// Creates an empty transit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts `item` in flight. Deliveries must be in the order in which one link returned them.
    pub fn push(&mut self, delivery: &Delivery, item: T) {
        let at = delivery.at;
        if delivery.reordered {
            self.held_back_so_far += 1;
            self.held_back.push(Reverse(HeldBack { at, number: self.held_back_so_far, item }));
        } else {
            self.in_order.push_back((at, item));
        }
    }

    /// Returns when the next item arrives; `None` if none is in flight.
    pub fn next_arrival(&self) -> Option<Time> {
        let in_order = self.in_order.front().map(|&(at, _)| at);
        let held_back = self.held_back.peek().map(|Reverse(held_back)| held_back.at);
        in_order.into_iter().chain(held_back).min()
    }

    /// Takes the next item, if it arrives at `now` or before.
    pub fn pop(&mut self, now: Time) -> Option<(Time, T)> {
        let at = self.next_arrival().filter(|&at| at <= now)?;
        match self.in_order.front() {
            Some(&(first, _)) if first == at => self.in_order.pop_front(),
            _ => self.held_back.pop().map(|Reverse(held_back)| (held_back.at, held_back.item)),
        }
    }

    /// Returns how many items are in flight.
    pub fn len(&self) -> usize {
        self.in_order.len() + self.held_back.len()
    }

    /// Returns whether nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// An item held back, ordered by its arrival.
#[derive(Debug)]
struct HeldBack<T> {
    at: Time,
    number: u64,
    item: T,
}

impl<T> PartialEq for HeldBack<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for HeldBack<T> {}

impl<T> PartialOrd for HeldBack<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for HeldBack<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ecn, Link, OfferOutcome};

    #[test]
    fn items_leave_in_the_order_of_their_arrivals() {
        for seed in 0..20 {
            let text = format!("rate=8M,delay=2ms,jitter=3ms,reorder=30%:5ms,duplicate=20%,loss=10%,seed={seed}");
            let mut link = Link::new(text.parse().unwrap()).unwrap();
            let mut transit = InFlightQueue::new();
            let mut expected = Vec::new();
            for number in 0..500_u32 {
                let OfferOutcome::Delivered(deliveries) =
                    link.offer(Time::from_nanos(u64::from(number) * 900_000), 1000, Ecn::NotEct)
                else {
                    continue;
                };
                for delivery in deliveries {
                    // At one instant items in order are first.
                    expected.push((delivery.at, delivery.reordered, number));
                    transit.push(&delivery, number);
                }
            }
            expected.sort_unstable();
            assert_eq!(transit.len(), expected.len());
            for &(at, _, number) in &expected {
                assert_eq!(transit.next_arrival(), Some(at), "seed {seed}");
                assert_eq!(transit.pop(Time::from_picos(at.as_picos() - 1)), None, "seed {seed}: not before it is due");
                assert_eq!(transit.pop(at), Some((at, number)), "seed {seed}");
            }
            assert!(transit.is_empty() && transit.pop(Time::MAX).is_none(), "seed {seed}");
        }
    }
}
