//! The systems that can be shown: profiles and their settings.

use serde::Serialize;
use sim::LINUX_TCP;
use transport::{Profile, Rate};

use crate::program::simulated_profile;

/// A profile and its name on the page.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct DemoSystem {
    pub(super) id: &'static str,
    pub(super) label: &'static str,
    /// A description in one line.
    about: &'static str,
    #[serde(skip)]
    profile: &'static str,
    /// Choices of the profile.
    #[serde(skip)]
    set: &'static [(&'static str, &'static str)],
    /// Whether its fixed rate is the initial rate of the link.
    #[serde(skip)]
    fixed_rate: bool,
}

/// The kernel's TCP, which replaces the model of Linux's TCP over emulated links.
pub(super) const KERNEL_TCP: DemoSystem =
    DemoSystem { label: "TCP of this kernel", about: "CUBIC, as this machine's kernel sends it", ..SYSTEMS[2] };

/// All systems, in the order of the form.
pub(super) const SYSTEMS: [DemoSystem; 9] = [
    DemoSystem {
        id: "auto",
        label: "downpour auto",
        about: "source first, retransmits lost symbols, repair in the last round trips; finds the rate itself",
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
        about: "retransmits lost symbols, no code",
        profile: "arq",
        set: &[("congestion", "cubic")],
        fixed_rate: false,
    },
    DemoSystem {
        id: "arq-reno",
        label: "arq with Reno",
        about: "retransmits lost symbols, no code",
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
        about: "coded symbols of one block at a time until it is acknowledged: a block is shown once it is decoded",
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
    /// Returns whether it is the kernel's TCP, or the model of it.
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
    fn kernel_tcp_replaces_the_model() {
        assert!(KERNEL_TCP.is_kernel_tcp());
    }

    #[test]
    fn every_system_has_a_profile() {
        let rate = Rate::from_bits_per_second(7_000_000);
        for system in SYSTEMS {
            let profile = system.profile(rate).unwrap_or_else(|error| panic!("{}: {error}", system.id));
            assert_eq!(profile.fixed_rate() == Some(rate), system.fixed_rate, "{}", system.id);
        }
    }
}
