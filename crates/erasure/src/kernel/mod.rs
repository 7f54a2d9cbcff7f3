//! Additions and multiplications of many bytes at once, with the widest instructions of the machine.
//!
//! This is the only `unsafe` code of this crate. It rests on two contracts: a [`Level`] exists only where its
//! instructions do, so its holder may run them; and the functions on slices check every length before they pass
//! pointers to a kernel.

#![expect(unsafe_code, reason = "vector instructions are chosen at run time, and kernels work on pointers")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod combine;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod halves;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
pub(crate) mod program;
mod slices;
#[cfg(test)]
mod tests;
mod vector;

use std::sync::OnceLock;

pub(crate) use combine::combine;
pub(crate) use slices::{add, add_many, add_outer, add_scaled, scale};

/// A set of vector instructions that this machine has: a value proves that, since no other is ever made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level(Instructions);

/// From the narrowest to the widest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Instructions {
    Portable,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Foundation, bytes and words, vector lengths, and GFNI: Intel from Ice Lake (2019), AMD from Zen 4 (2022).
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Instructions {
    const ALL: &[Self] = &[
        Self::Portable,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
    ];

    fn are_here(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "aarch64")]
            Self::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("gfni")
            }
        }
    }
}

impl Level {
    /// Iterates over every level of this machine, the narrowest first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        Instructions::ALL.iter().copied().filter(|instructions| instructions.are_here()).map(Self)
    }

    /// Returns the widest level of this machine, which is detected once.
    pub(crate) fn detected() -> Self {
        static DETECTED: OnceLock<Level> = OnceLock::new();
        *DETECTED.get_or_init(|| Self::available().last().expect("the portable level always exists"))
    }
}

/// Makes `unsafe fn name(level: Level, ..)` of a generic kernel `unsafe fn body<V: Vector>(..)`: an instance of the
/// body for each instruction set, compiled with these instructions enabled, and the choice among them. Its safety
/// contract is that of the body, except for the instructions, for which the level vouches. The body, and every function
/// in it that has a vector as argument or result, is `#[inline(always)]`.
macro_rules! dispatch {
    ($(#[$attribute:meta])* $visibility:vis unsafe fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $body:ident;) => {
        $(#[$attribute])*
        $visibility unsafe fn $name(level: $crate::kernel::Level, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,gfni")]
            unsafe fn avx512($($argument: $type),*) {
                // SAFETY: these instructions are enabled; the caller upholds the rest.
                unsafe { $body::<$crate::kernel::avx512::Avx512>($($argument),*) }
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            unsafe fn avx2($($argument: $type),*) {
                // SAFETY: these instructions are enabled; the caller upholds the rest.
                unsafe { $body::<$crate::kernel::avx2::Avx2>($($argument),*) }
            }

            #[cfg(target_arch = "aarch64")]
            #[target_feature(enable = "neon")]
            unsafe fn neon($($argument: $type),*) {
                // SAFETY: these instructions are enabled; the caller upholds the rest.
                unsafe { $body::<$crate::kernel::neon::Neon>($($argument),*) }
            }

            // SAFETY: a level exists only where its instructions do; the caller upholds the rest.
            unsafe {
                match level.0 {
                    $crate::kernel::Instructions::Portable => {
                        $body::<$crate::kernel::portable::Portable>($($argument),*)
                    }
                    #[cfg(target_arch = "aarch64")]
                    $crate::kernel::Instructions::Neon => neon($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::kernel::Instructions::Avx2 => avx2($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    $crate::kernel::Instructions::Avx512 => avx512($($argument),*),
                }
            }
        }
    };
}
use dispatch;
