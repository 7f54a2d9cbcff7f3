//! Turns of the objects, as one, and of each stream (deficit round robin, Shreedhar 1995; all packets are equally long,
//! so no deficit has to be kept).

/// Packets in a row that one may send while others have some too.
const QUANTUM: u32 = 4;

/// The next to send; 0 is the objects, n + 1 the n-th stream.
#[derive(Debug, Default)]
pub(super) struct Turns {
    current: usize,
    used: u32,
}

impl Turns {
    /// Returns the order in which to ask, the objects and `streams` streams, each once.
    pub(super) fn order(&self, streams: usize) -> impl Iterator<Item = usize> + use<> {
        let all = streams + 1;
        let first = self.current + usize::from(self.used >= QUANTUM);
        (0..all).map(move |nth| (first + nth) % all)
    }

    /// Notes that this one sent a packet.
    pub(super) const fn taken(&mut self, turn: usize) {
        if turn == self.current && self.used < QUANTUM {
            self.used += 1;
        } else {
            (self.current, self.used) = (turn, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of 1,000 packets each sends, where those in `idle` have none.
    fn shares(streams: usize, idle: &[usize]) -> Vec<u32> {
        let mut turns = Turns::default();
        let mut sent = vec![0; streams + 1];
        for _ in 0..1_000 {
            let turn = turns.order(streams).find(|turn| !idle.contains(turn)).expect("somebody has some");
            turns.taken(turn);
            sent[turn] += 1;
        }
        sent
    }

    #[test]
    fn all_get_the_same() {
        assert_eq!(shares(0, &[]), [1_000]);
        assert_eq!(shares(4, &[]), [200; 5]);
        assert_eq!(shares(4, &[0, 2]), [0, 336, 0, 332, 332]);
    }

    #[test]
    fn nobody_waits_longer_than_all_others_together() {
        let mut turns = Turns::default();
        let mut since = [0; 6];
        for _ in 0..1_000 {
            let turn = turns.order(5).next().expect("six of them");
            turns.taken(turn);
            since.iter_mut().for_each(|since| *since += 1);
            assert!(since[turn] <= 5 * QUANTUM + 1);
            since[turn] = 0;
        }
    }
}
