//! The systems that can be shown: profiles, with what they are told.

use serde::Serialize;
use sim::LINUX_TCP;
use transport::{Profile, Rate};

use crate::program::simulated_profile;

/// A profile under the name that the page shows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct DemoSystem {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    /// What it does, in one line.
    about: &'static str,
    #[serde(skip)]
    profile: &'static str,
    /// Choices of the profile.
    #[serde(skip)]
    set: &'static [(&'static str, &'static str)],
    /// Whether it is told the rate that the link has at the start.
    #[serde(skip)]
    fixed_rate: bool,
}

/// What is shown over emulated links in the place of the model of Linux's TCP: that of the kernel.
pub(super) const KERNEL_TCP: DemoSystem =
    DemoSystem { label: "TCP of this kernel", about: "CUBIC, as this machine's kernel sends it", ..SYSTEMS[2] };

/// Those that can be shown, in the order of the form.
pub(super) const SYSTEMS: [DemoSystem; 9] = [
    DemoSystem {
        id: "auto",
        label: "downpour auto",
        about: "source first, lost symbols again, repair in the last round trips; finds the rate itself",
        profile: "auto",
        set: &[],
        fixed_rate: false,
    },
    DemoSystem {
        id: "auto-told",
        label: "downpour auto, fixed rate",
        about: "the same, with the initial rate of the link as fixed rate",
        profile: "auto",
        set: &[],
        fixed_rate: true,
    },
    DemoSystem {
        id: "linux-tcp",
        label: "TCP as in Linux",
        about: "CUBIC with selective acknowledgements, as Linux sends it",
        profile: "linux-tcp",
        set: &[],
        fixed_rate: false,
    },
    DemoSystem {
        id: "arq-cubic",
        label: "arq with CUBIC",
        about: "sends again what was lost, no code",
        profile: "arq",
        set: &[("congestion", "cubic")],
        fixed_rate: false,
    },
    DemoSystem {
        id: "arq-reno",
        label: "arq with Reno",
        about: "sends again what was lost, no code",
        profile: "arq",
        set: &[("congestion", "reno")],
        fixed_rate: false,
    },
    DemoSystem {
        id: "tornado-transfer",
        label: "Tornado Transfer",
        about: "RaptorQ: source interleaved with repair of earlier blocks, then repair of each block in turn",
        profile: "tornado-transfer",
        set: &[],
        fixed_rate: false,
    },
    DemoSystem {
        id: "rc-udp",
        label: "RC-UDP, fixed rate",
        about: "coded symbols of one block at a time until it is acknowledged: a block is seen once it is decoded",
        profile: "rc-udp",
        set: &[],
        fixed_rate: true,
    },
    DemoSystem {
        id: "lt-tcp",
        label: "LT-TCP",
        about: "repair in advance by the loss estimate, more after heavier loss; the window follows ECN marks",
        profile: "lt-tcp",
        set: &[],
        fixed_rate: false,
    },
    DemoSystem {
        id: "ttp",
        label: "TTP",
        about: "Tornado code: chunks padded for the average loss, a rate that halves when too much is lost",
        profile: "ttp",
        set: &[],
        fixed_rate: false,
    },
];

impl DemoSystem {
    /// Whether it is TCP as the kernel does it, or a model of that.
    pub(super) fn is_kernel_tcp(&self) -> bool {
        self.profile == LINUX_TCP
    }

    /// Returns the profile of its sender over a link of this rate.
    ///
    /// # Errors
    /// No such profile or choice.
    pub(super) fn profile(&self, rate: Rate) -> Result<Profile, String> {
        let profile = simulated_profile(self.profile, self.set.iter().copied())?;
        Ok(if self.fixed_rate { profile.with_fixed_rate(rate) } else { profile })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tcp_is_shown_for_the_model_of_it() {
        assert!(KERNEL_TCP.is_kernel_tcp());
    }

    #[test]
    fn each_has_a_profile() {
        let rate = Rate::from_bits_per_second(7_000_000);
        for system in SYSTEMS {
            let profile = system.profile(rate).unwrap_or_else(|error| panic!("{}: {error}", system.id));
            assert_eq!(profile.fixed_rate() == Some(rate), system.fixed_rate, "{}", system.id);
        }
    }
}
