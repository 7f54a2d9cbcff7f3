//! Trees of files on both sides of a transfer, without the network and the engine.
//!
//! The sender's half: a [`Scanner`] walks what the user named and yields [`Batch`]es while it walks; a [`BatchSource`]
//! reads byte ranges of a batch's object. The receiver's half: [`FileSink`] takes manifest parts, byte ranges and
//! digests, and puts files under their final names once everything is verified. All calls block on the disk and are
//! made from worker threads.
//!
//! Of a file that stands at the target in another version only the differences cross: the sender lists the chunks of its
//! version (`chunks`), and the receiver copies those that it finds in its own.

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod backup;
pub mod base64;
mod batch;
mod chunks;
mod consistency;
mod cursor;
mod delete;
pub mod directory;
mod error;
mod extras;
mod filter;
mod folding;
pub mod fuzzing;
mod held;
mod ids;
mod inheritance;
mod journal;
mod links;
mod list;
mod listing;
mod lock;
pub mod messages;
mod metadata;
mod mode_rule;
mod names;
mod open;
mod output_kind;
mod outputs;
pub mod own_folder;
pub mod permitted;
mod preserve;
mod ranges;
mod refusal;
mod removal;
mod root;
mod sandbox;
mod scan;
mod sink;
mod source;
mod spec;
mod staged_id;
mod staging;
mod xattrs;

pub use backup::{Backup, BackupError};
pub use batch::{Batch, Voided};
pub use chunks::list_chunks;
pub use error::{Class, FilesError, NotPermitted};
pub use filter::{Filter, Pattern, PatternError, Rule, RuleError};
pub use links::Links;
pub use messages::{
    Attributes, DeviceNumber, Entry, Extra, IdKind, IdName, Kind, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, MAX_COMPONENT,
    MAX_PATH, Mtime, Notice, NoticeKind, Owner, SkipReason, Skipped, SourceId, Special, VoidReason, Wanted,
    WantedError, Xattr,
};
pub use metadata::{Identity, leads_to_special};
pub use names::{NameError, check_path, check_target};
pub use output_kind::OutputKind;
pub use outputs::Outputs;
pub use permitted::{ItemName, Permitted};
pub use preserve::{Modes, Preserve};
pub use removal::{Removal, SourceOutcome};
pub use root::{Root, Roots};
pub use sandbox::rename_new;
pub use scan::{ScanOptions, Scanner};
pub use sink::{FailReason, Failed, FileSink, ManifestState, ReceiveOutcome};
pub use source::{BatchSource, Ends};
pub use spec::{Compare, Destination, DirectoryIf, Evidence, Existing, First, ReceiveSpec, Requested};
pub use staging::{LeftReason, Leftover, StagingLeft, is_staging_name, leftovers, staged_elsewhere, under_random_name};
