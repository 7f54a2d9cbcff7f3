//! Failures that a store is made to have, drawn by the number of the call or by a seed, so that each can be had again.

/// A failure of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nothing is done, for there is no room (`ENOSPC`).
    Full,
    /// Nothing is done (`EIO`).
    Broken,
    /// Only some of the bytes are read or written, which is no error.
    Short,
    /// What was to be published is reported as done and is not, as after a power cut that loses a rename.
    LostPublish,
    /// What was to be published or removed is, and an error is reported: the answer was lost.
    LostAnswer,
}

/// What a store is asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// To list names, to look at one, or to change mode and time of one.
    Look,
    Read,
    Write,
    Publish,
    Remove,
}

/// Which calls fail, and how. Clones fail at the same calls.
#[derive(Debug, Clone)]
pub struct Faults {
    plan: Plan,
    /// Calls so far which the planned failure can befall.
    calls: u64,
    struck: Vec<Fault>,
}

#[derive(Debug, Clone)]
enum Plan {
    None,
    At { call: u64, fault: Fault },
    Seeded { state: u64, one_in: u64 },
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Full, Self::Broken, Self::Short, Self::LostPublish, Self::LostAnswer];

    /// Whether it can befall a call.
    const fn befalls(self, call: Call) -> bool {
        match self {
            Self::Full => matches!(call, Call::Write | Call::Publish),
            Self::Broken => true,
            Self::Short => matches!(call, Call::Read | Call::Write),
            Self::LostPublish => matches!(call, Call::Publish),
            Self::LostAnswer => matches!(call, Call::Publish | Call::Remove),
        }
    }
}

impl Faults {
    /// No call fails.
    #[must_use]
    pub const fn none() -> Self {
        Self::of(Plan::None)
    }

    /// One call fails so: of those that can, the one with this number, counted from 0.
    #[must_use]
    pub const fn at(call: u64, fault: Fault) -> Self {
        Self::of(Plan::At { call, fault })
    }

    /// One in so many calls fails, at least 1, in a way that it can; which and how follows from the seed and the order of the
    /// calls.
    #[must_use]
    pub const fn seeded(seed: u64, one_in: u64) -> Self {
        let one_in = if one_in == 0 { 1 } else { one_in };
        Self::of(Plan::Seeded { state: seed, one_in })
    }

    const fn of(plan: Plan) -> Self {
        Self { plan, calls: 0, struck: Vec::new() }
    }

    /// What has failed so far.
    #[must_use]
    pub fn struck(&self) -> &[Fault] {
        &self.struck
    }

    /// Decides whether this call fails, and how.
    pub(super) fn strike(&mut self, call: Call) -> Option<Fault> {
        let fault = match &mut self.plan {
            Plan::None => None,
            Plan::At { call: due, fault } if fault.befalls(call) => {
                self.calls += 1;
                (self.calls == *due + 1).then_some(*fault)
            }
            Plan::At { .. } => None,
            Plan::Seeded { state, one_in } => draw(state).is_multiple_of(*one_in).then(|| {
                let possible: Vec<_> = Fault::ALL.into_iter().filter(|fault| fault.befalls(call)).collect();
                // Fewer than 2^32, and not none: any call may be broken.
                possible[(draw(state) % possible.len() as u64) as usize]
            }),
        };
        self.struck.extend(fault);
        fault
    }
}

/// Draws the next number: SplitMix64, which needs no more than a number of its own.
fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_of_those_that_can_fails_so() {
        let mut faults = Faults::at(1, Fault::Full);
        let calls = [Call::Write, Call::Read, Call::Remove, Call::Publish, Call::Write];
        assert_eq!(calls.map(|call| faults.strike(call)), [None, None, None, Some(Fault::Full), None]);
        assert_eq!(faults.struck(), [Fault::Full]);
    }

    #[test]
    fn failures_follow_from_the_seed_and_each_call_has_those_that_it_can_have() {
        let draw = |seed| {
            let mut faults = Faults::seeded(seed, 10);
            let calls = [Call::Look, Call::Read, Call::Write, Call::Publish, Call::Remove];
            let drawn = (0..10_000).map(|number| {
                let call = calls[number % 5];
                let fault = faults.strike(call);
                assert!(fault.is_none_or(|fault| fault.befalls(call)), "{call:?} {fault:?}");
                fault
            });
            drawn.collect::<Vec<_>>()
        };
        let drawn = draw(1);
        assert!((900..1100).contains(&drawn.iter().flatten().count()));
        assert!(Fault::ALL.into_iter().all(|fault| drawn.contains(&Some(fault))));
        assert_eq!(draw(1), drawn);
        assert_ne!(draw(2), drawn);
    }
}
