//! Runs the program with a real sshd: `cargo xtask test-ssh`.
//!
//! Otherwise all of these tests are ignored, since they need programs that not every host has. They do not read or
//! change the user's files: keys, configuration, known hosts and the remote home are created for each test and removed
//! afterwards.

#![cfg(target_os = "linux")]

mod asking;
mod carriers;
mod client;
mod copying;
mod edits;
mod host_to_host;
mod hosts;
mod interrupting;
mod killing;
mod network;
mod oracle;
mod piping;
#[path = "../cli/program.rs"]
#[allow(dead_code, reason = "the tests without ssh need more of it")]
mod program;
mod random;
mod refusing;
mod rsync_oracle;
mod signals;
mod smoke;
mod sshd;
#[path = "../cli/terminal.rs"]
#[allow(dead_code, reason = "the tests without ssh need more of it")]
mod terminal;
mod tools;
#[path = "../cli/tree.rs"]
#[allow(dead_code, reason = "the tests without ssh need more of it")]
mod tree;
mod tunnelling;
