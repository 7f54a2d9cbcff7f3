//! The next deadline of a fixed set of items, each with one deadline.

use crate::Time;

/// A tournament over deadlines: a change costs one comparison per level, the winner is at the root. Of equal deadlines
/// the lower index wins, which makes runs repeatable.
#[derive(Debug, Default)]
pub(crate) struct DeadlineTree {
    /// Deadlines by index, `Time::MAX` for none, padded to a power of two.
    deadlines: Vec<Time>,
    /// The winner below each inner node: the root is 1, the children of `i` are `2 i` and `2 i + 1`, leaves follow the
    /// inner nodes.
    winners: Vec<usize>,
    used: usize,
}

impl DeadlineTree {
    /// Adds an index without a deadline.
    pub(crate) fn push(&mut self) {
        self.used += 1;
        if self.used > self.deadlines.len() {
            let leaves = self.used.next_power_of_two().max(2);
            self.deadlines.resize(leaves, Time::MAX);
            self.winners = vec![0; leaves];
            for inner in (1..leaves).rev() {
                self.winners[inner] = self.play(inner);
            }
        }
    }

    /// Moves the deadline of `index`; `Time::MAX` removes it.
    pub(crate) fn set(&mut self, index: usize, deadline: Time) {
        if self.deadlines[index] == deadline {
            return;
        }
        self.deadlines[index] = deadline;
        let mut inner = (self.deadlines.len() + index) / 2;
        while inner > 0 {
            self.winners[inner] = self.play(inner);
            inner /= 2;
        }
    }

    /// Returns the earliest deadline and its index.
    pub(crate) fn first(&self) -> Option<(Time, usize)> {
        let &winner = self.winners.get(1)?;
        let deadline = self.deadlines[winner];
        (deadline < Time::MAX).then_some((deadline, winner))
    }

    fn play(&self, inner: usize) -> usize {
        let leaves = self.deadlines.len();
        let winner = |node: usize| {
            if node >= leaves { node - leaves } else { self.winners[node] }
        };
        let (left, right) = (winner(2 * inner), winner(2 * inner + 1));
        if self.deadlines[right] < self.deadlines[left] { right } else { left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_is_the_earliest_and_of_equals_the_lowest() {
        for size in 1..20_usize {
            let mut agenda = DeadlineTree::default();
            let mut model: Vec<Time> = Vec::new();
            let mut random = fastrand::Rng::with_seed(size as u64);
            assert_eq!(agenda.first(), None);
            for _ in 0..size {
                agenda.push();
                model.push(Time::MAX);
            }
            for step in 0..500 {
                let index = random.usize(..size);
                let deadline = if random.u8(..4) == 0 { Time::MAX } else { Time::from_picos(random.u64(..5)) };
                agenda.set(index, deadline);
                model[index] = deadline;
                let expected = model.iter().copied().zip(0..).min().filter(|&(deadline, _)| deadline < Time::MAX);
                assert_eq!(agenda.first(), expected, "size {size}, step {step}");
            }
        }
    }
}
