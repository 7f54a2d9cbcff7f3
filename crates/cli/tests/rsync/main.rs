//! Compares the results of `downpour sync` and rsync with the same arguments: `cargo xtask compare-rsync`.
//!
//! Otherwise all of these tests are ignored: they need rsync and take minutes.

#![cfg(target_os = "linux")]

mod case;
mod comparing;
mod odd;
#[path = "../cli/program.rs"]
#[allow(dead_code, unused_imports, reason = "the tests without rsync need more of it")]
mod program;
#[path = "../ssh/tools.rs"]
#[allow(dead_code, reason = "the tests with ssh need more of it")]
mod tools;
mod tree;
