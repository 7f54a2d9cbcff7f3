//! The lab: emulated links that real programs run over, and honest comparisons between them.
//!
//! [`space`] makes hosts out of network namespaces, [`emulator`] runs a model of the network between them in real time, and
//! [`emulated`] is both together; [`verdict`] says whether a run shows what the model says. [`link`] is the command for a single run.
//! [`peers`] moves files between hosts with the programs that are measured, [`plan`] says what is to be measured,
//! [`runner`] has it measured, [`results`] keeps what was, [`picture`] and [`report`] show it;
//! [`commands`] are the program's about plans. [`codes`] and [`simulated`] are the other kinds of plan: one times
//! erasure codes, without any link, the other runs flows in the simulator. [`main`] is the whole program.

pub mod args;
mod clock;
pub mod codes;
pub mod commands;
pub mod control;
pub mod emulated;
pub mod emulator;
pub mod exit;
pub mod layout;
pub mod link;
mod output;
pub mod peers;
pub mod picture;
pub mod plan;
mod program;
pub mod report;
pub mod results;
pub mod runner;
pub mod selftest;
pub mod series;
pub mod simulate;
pub mod simulated;
pub mod space;
pub mod summary;
mod sys;
pub mod trial;
pub mod verdict;
mod words;

pub use program::main;

/// What the program is called.
pub const NAME: &str = "downpour-lab";
