//! The lab: emulated links that real programs run over, and fair comparisons between them.
//!
//! - A single run: [`testbed`] makes hosts out of network namespaces, [`emulator`] runs a model of the network between
//!   them in real time, [`emulated`] combines both, and [`verdict`] states whether a run agrees with the model.
//!   [`link`] is its command.
//! - Comparisons: [`plan`] describes the measurement, [`peers`] transfer files between hosts with the programs under
//!   test or write over the connections that these carry, [`runner`] runs them, [`results`] stores the records,
//!   [`picture`] and [`report`] show them. [`commands`] are the program's commands about plans.
//! - Other kinds of plan: [`codes`] times erasure codes, without any link; [`simulated`] runs flows in the simulator.
//!
//! [`main`] is the whole program `downpour-lab`.

pub mod args;
mod claims;
mod clock;
pub mod codes;
pub mod commands;
pub mod control;
pub mod emulated;
pub mod emulator;
pub mod exit;
pub mod layout;
pub mod link;
mod lists;
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
pub mod summary;
mod sys;
mod tables;
pub mod testbed;
mod trace;
pub mod trial;
pub mod verdict;
pub mod web;

pub use program::main;

/// The program's name.
pub const NAME: &str = "downpour-lab";
