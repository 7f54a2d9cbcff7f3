//! Trees of files at both ends of a transfer, without the network and the engine.
//!
//! The sender's half: a [`Scanner`] walks the items named by the user and yields [`Batch`]es while it walks; a
//! [`BatchSource`] reads byte ranges of a batch's object. The receiver's half: [`FileSink`] takes manifest parts, byte
//! ranges and digests, and puts files under their final names once everything is verified. All calls block on the disk
//! and are made from worker threads. The values of [`request`], which are re-exported here, are the user's requests to
//! either half.
//!
//! Sources and targets of trees are also traits, [`TreeSource`] and [`TreeTarget`]: the local file system is one store
//! of several.
//!
//! If the target has another version of a file, only the differences are sent: the sender lists the chunks of its
//! version (`chunks`), and the receiver copies those that its own version has.

/// The examples of README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod attributes;
mod backup;
mod batch;
mod batch_layout;
mod chunks;
mod consistency;
mod cursor;
mod delete;
pub mod directory;
mod disk_stack;
mod error;
mod faults;
mod folding;
mod ids;
mod inheritance;
mod journal;
mod kernel_copy;
mod local;
mod lock;
mod memory;
pub mod messages;
mod metadata;
mod mode_rule;
mod object;
mod open_files;
mod outputs;
mod path_handle;
pub mod private_directory;
mod ranges;
mod refusal;
mod removal;
mod root;
mod sandbox;
mod scan;
mod seam;
mod sink;
mod sorted_names;
mod source;
mod staged_id;
mod staging;
mod xattrs;

pub use batch::{Batch, InvalidatedFile};
pub use chunks::list_chunks;
pub use error::{FilesError, NotAllowed};
pub use faults::{Fault, Faults};
#[cfg(any(test, fuzzing))]
pub use journal::fuzzing::fuzz_journal;
pub use local::LocalSource;
pub use memory::{Content, MemorySource, MemoryStore, MemoryTarget, Node};
pub use messages::{
    Attributes, DeviceNumber, Entry, EntryKind, Extra, IdKind, IdName, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, Mtime,
    Notice, NoticeKind, Owner, SkipReason, Skipped, SourceId, Special, VoidReason, Wanted, WantedError, Xattr,
};
pub use metadata::{Identity, leads_to_special};
pub use object::{CopiedRange, EndsDigest, TreeObject};
pub use removal::{Removal, SourceOutcome, Versions};
pub use request::{
    AllowedNames, Backup, BackupError, Chmod, ChmodError, Compare, DirectoryIf, ErrorKind, Existing, FileLimits,
    Filter, FirstItem, ItemName, LinkPolicy, MAX_COMPONENT, MAX_PATH, Modes, NameError, OutputKind, Outputs, Pattern,
    PatternError, Preserve, ReceiveRequest, RequestedItems, Rule, RuleError, SourceOptions, TargetFacts, TargetPath,
    base64, check_path, check_target, is_staging_name, lossy, permitted,
};
pub use root::{Roots, SourceItem};
pub use sandbox::rename_new;
pub use scan::Scanner;
pub use seam::{TreeSource, TreeTarget};
pub use sink::{FailReason, Failed, FileSink, ManifestState, ReceiveOutcome};
pub use source::{BatchSource, COMES_AGAIN};
pub use staging::{LeftReason, StagingLeft, StaleStaging, leftovers, outside_staging_directory, under_random_name};
