//! The request for a copy: its names, their destination, and the permitted changes.
//!
//! These are plain values. The same ones travel from the command line, through ssh if the other end is on another host,
//! to the code that reads or writes trees of files. A [`SourceOptions`] describes the sent data, a [`ReceiveRequest`]
//! the permissions of a receiver, with the names that it [permits](AllowedNames) a sender to announce. Their JSON is
//! part of the protocol between releases.
//!
//! Nothing in this crate accesses a disk or a network, so that a question about a request ("is this name allowed?",
//! "where is it copied to?") is answered and tested alone.

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod backup;
pub mod base64;
mod chmod;
mod error_kind;
mod file_limits;
mod filter;
mod links;
pub mod lossy;
pub mod names;
mod outputs;
pub mod permitted;
mod preserve;
mod scan;
mod spec;

pub use backup::{Backup, BackupError};
pub use chmod::{Chmod, ChmodError};
pub use error_kind::ErrorKind;
pub use file_limits::FileLimits;
#[cfg(any(test, fuzzing))]
pub use filter::fuzzing::fuzz_filter;
pub use filter::{Filter, Pattern, PatternError, Rule, RuleError};
pub use links::LinkPolicy;
pub use names::{MAX_COMPONENT, MAX_PATH, NameError, check_path, check_target, is_staging_name};
pub use outputs::{OutputKind, Outputs};
pub use permitted::{AllowedNames, ItemName};
pub use preserve::{Modes, Preserve};
pub use scan::SourceOptions;
pub use spec::{Compare, DirectoryIf, Existing, FirstItem, ReceiveRequest, RequestedItems, TargetFacts, TargetPath};
