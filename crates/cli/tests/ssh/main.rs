//! The program with a real sshd, which is started here: `cargo xtask test-ssh`.
//!
//! Every test is ignored otherwise, because it needs programs that not every machine has. Nothing of the user's is read or changed: keys,
//! configuration, known hosts and the home over there are made for a test and go with it.

#![cfg(target_os = "linux")]

mod carriers;
mod client;
mod copying;
mod hosts;
mod killing;
mod network;
mod piping;
#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "the tests without ssh need more of it")]
mod program;
mod refusing;
mod signals;
mod smoke;
mod sshd;
mod tools;
#[path = "../cli/tree.rs"]
#[allow(dead_code, reason = "the tests without ssh need more of it")]
mod tree;
