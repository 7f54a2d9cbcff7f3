//! The program with a real sshd, which is started here: `cargo xtask test-ssh`.
//!
//! Every test is ignored otherwise, because it needs programs that not every machine has. Nothing of the user's is read or changed: keys,
//! configuration, known hosts and the home over there are made for a test and go with it.

#![cfg(target_os = "linux")]

mod client;
mod network;
mod smoke;
mod sshd;
mod tools;
