//! The commands about plans and results: what each takes, and what it does.

/// Exit code of a program that was stopped; the same command goes on.
pub const INTERRUPTED: u8 = 75;
