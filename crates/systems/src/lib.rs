//! The five published systems over the seams of [`transport`]: each directory is one document's system, with its profile,
//! the algorithms that exist for it, and a README that walks through the document.
//!
//! | module | document |
//! |---|---|
//! | [`rc_udp`] | Raptor coding over UDP |
//! | [`tornado_transfer`] | a file transfer protocol with RaptorQ |
//! | [`lt_tcp`] | Loss-Tolerant TCP |
//! | [`arq`] | reliable transmission and congestion control over UDP |
//! | [`ttp`] | the Tornado Transport Protocol |
//!
//! A program that adds systems of its own begins with [`registry`]; `lab/examples/own-system` is one.

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod arq;
mod first_round;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod lt_tcp;
pub mod rc_udp;
#[cfg(test)]
mod tests;
pub mod tornado_transfer;
pub mod ttp;

use std::sync::LazyLock;
use transport::Profile;
use transport::profile::{AlgorithmRegistry, NameError, ProfileError};

/// Returns the names of the five systems and of their algorithms, in addition to the engine's own.
///
/// # Panics
/// Never: the names differ.
#[must_use]
pub fn registry() -> AlgorithmRegistry {
    static REGISTRY: LazyLock<AlgorithmRegistry> =
        LazyLock::new(|| all(AlgorithmRegistry::default()).expect("names that differ"));
    REGISTRY.clone()
}

/// Returns the profile of this name: `auto`, or that of a system.
///
/// # Errors
/// [`ProfileError::UnknownName`] lists the names.
pub fn profile(name: &str) -> Result<Profile, ProfileError> {
    registry().profile(name)
}

/// Returns the default profile, which can choose parts of the systems by name.
#[must_use]
pub fn auto() -> Profile {
    named("auto")
}

/// Returns a profile of the registry.
fn named(name: &str) -> Profile {
    profile(name).expect("a system of the registry")
}

/// Adds the five systems to a registry.
fn all(registry: AlgorithmRegistry) -> Result<AlgorithmRegistry, NameError> {
    [arq::register, rc_udp::register, tornado_transfer::register, lt_tcp::register, ttp::register]
        .into_iter()
        .try_fold(registry, |registry, register| register(registry))
}
