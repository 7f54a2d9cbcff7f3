//! Faults injected into a store, chosen by the number of the call or by a seed, so that each can be reproduced.

/// A failure of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// The call does nothing and reports a full disk (`ENOSPC`).
    Full,
    /// The call does nothing and fails (`EIO`).
    Broken,
    /// Only some of the bytes are read or written, which is no error.
    Short,
    /// A publication is reported as done but is not, as after a power cut that loses a rename.
    LostPublish,
    /// A publication or removal is done but an error is reported: the answer was lost.
    LostAnswer,
}

/// The calls of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// Lists names, reads the status of one, or changes its mode and time.
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
    /// Calls so far to which the planned fault applies.
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

    /// Whether the fault can apply to a call.
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

    /// One call fails in this way: of those to which the fault applies, the one with this number, counted from 0.
    #[must_use]
    pub const fn at(call: u64, fault: Fault) -> Self {
        Self::of(Plan::At { call, fault })
    }

    /// One in so many calls fails, at least 1, with a fault that applies to it; the seed and the order of the calls
    /// determine which call and fault.
    #[must_use]
    pub const fn seeded(seed: u64, one_in: u64) -> Self {
        let one_in = if one_in == 0 { 1 } else { one_in };
        Self::of(Plan::Seeded { state: seed, one_in })
    }

    const fn of(plan: Plan) -> Self {
        Self { plan, calls: 0, struck: Vec::new() }
    }

    /// Returns the faults so far.
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
                // Fewer than 2^32, and not 0: any call may fail.
                possible[(draw(state) % possible.len() as u64) as usize]
            }),
        };
        self.struck.extend(fault);
        fault
    }
}

/// Draws the next number: SplitMix64, whose state is one number.
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
    fn planned_fault_hits_one_eligible_call() {
        let mut faults = Faults::at(1, Fault::Full);
        let calls = [Call::Write, Call::Read, Call::Remove, Call::Publish, Call::Write];
        assert_eq!(calls.map(|call| faults.strike(call)), [None, None, None, Some(Fault::Full), None]);
        assert_eq!(faults.struck(), [Fault::Full]);
    }

    #[test]
    fn seeded_faults_repeat_and_fit_their_calls() {
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
