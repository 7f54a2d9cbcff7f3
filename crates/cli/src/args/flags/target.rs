//! What happens at the target.

use downpour::files::{Compare, Existing};

use crate::args::Command::{self, Cp, Recv, Sync};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, Value, value};
use crate::args::values;

const COPIES: &[Command] = &[Cp, Sync];
const RECEIVERS: &[Command] = &[Cp, Sync, Recv];

const TARGET: Flag = Flag { section: Section::AtTheTarget, of: COPIES, ..FLAG };

const EXISTING: Value = value("WHAT", || {
    values::choice(&[
        ("replace", "Replace it once the new file is complete", Existing::Replace),
        ("skip", "Keep it and copy the others", Existing::Skip),
        ("refuse", "Copy nothing", Existing::Refuse),
        ("keep-newer", "Replace it unless it is newer", Existing::KeepNewer),
        ("only", "Replace it, and create nothing new", Existing::UpdateOnly),
    ])
});

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "delete",
        request: &["delete"],
        help: "Delete files at the target that are not in the source, unless they are excluded",
        more: "What appears or changes there during the transfer is kept, with the directory that it is in.",
        of: &[Sync],
        brief: &[(&[Sync], "Delete there what the source does not have")],
        conflicts: &["files-from"],
        settable: Settable::Typed,
        set: |args, _| args.delete = true,
        ..TARGET
    },
    Flag {
        name: "max-delete",
        request: &["max_delete"],
        takes: Takes::Value(value("N", values::number::<u64>)),
        help: "Delete at most N names; keep the rest and exit with 23",
        of: &[Sync],
        requires: Some("delete"),
        set: |args, given| args.receive.max_delete = given.one(),
        ..TARGET
    },
    Flag {
        name: "force-empty",
        request: &["force_empty"],
        help: "Delete even if the source is empty; its disk may not be mounted",
        of: &[Sync],
        requires: Some("delete"),
        set: |args, _| args.receive.force_empty = true,
        ..TARGET
    },
    Flag {
        name: "into",
        takes: Takes::Value(value("DIR", values::directory).or(".")),
        help: "Directory to receive into",
        of: &[Recv],
        brief: &[(&[Recv], "")],
        set: |args, given| args.receive.target = given.one().unwrap_or_default(),
        ..TARGET
    },
    Flag {
        name: "yes",
        short: Some('y'),
        help: "Accept without asking",
        of: &[Recv],
        brief: &[(&[Recv], "")],
        // Without a question nothing has to wait for the answer: the bytes follow the names at once.
        set: |args, _| args.options.confirm = false,
        ..TARGET
    },
    Flag {
        name: "existing",
        request: &["existing"],
        takes: Takes::Value(EXISTING.or("replace")),
        help: "What to do with files that already exist",
        set: |args, given| args.receive.existing = given.one().unwrap_or_default(),
        ..TARGET
    },
    Flag {
        name: "existing",
        request: &["existing"],
        takes: Takes::Value(EXISTING.or("refuse")),
        help: "How to handle files that already exist",
        of: &[Recv],
        brief: &[(&[Recv], "refuse, replace, skip, keep-newer [default: refuse]")],
        set: |args, given| args.receive.existing = given.one().unwrap_or_default(),
        ..TARGET
    },
    Flag {
        name: "update",
        request: &["existing"],
        short: Some('u'),
        help: "Keep files that are newer at the target: --existing keep-newer",
        conflicts: &["existing", "ignore-existing"],
        settable: Settable::Typed,
        set: |args, _| args.receive.existing = Existing::KeepNewer,
        ..TARGET
    },
    Flag {
        name: "ignore-existing",
        request: &["existing"],
        help: "Keep all files that exist at the target: --existing skip",
        conflicts: &["existing"],
        set: |args, _| args.receive.existing = Existing::Skip,
        ..TARGET
    },
    Flag {
        name: "quota",
        takes: Takes::Value(value("SIZE", values::size)),
        help: "Accept at most this many bytes of files, such as 10GB",
        of: &[Recv],
        brief: &[(&[Recv], "Accept at most this many bytes of files")],
        set: |args, given| args.receive.permitted.max_bytes = given.one(),
        ..TARGET
    },
    Flag {
        name: "max-files",
        takes: Takes::Value(value("N", values::number::<u64>)),
        help: "Accept at most N files, directories and links",
        of: &[Recv],
        set: |args, given| args.receive.permitted.max_entries = given.one(),
        ..TARGET
    },
    Flag {
        name: "checksum",
        request: &["compare"],
        help: "Compare files of the same size by content instead of mtime",
        brief: &[(&[Sync], "Compare contents, not times")],
        set: |args, _| args.receive.compare = Compare::Checksum,
        ..TARGET
    },
    Flag {
        name: "checksum",
        request: &["compare"],
        help: "Compare files of the same size by content instead of mtime; needs a sender with --checksums",
        of: &[Recv],
        set: |args, _| args.receive.compare = Compare::Checksum,
        ..TARGET
    },
    Flag {
        name: "size-only",
        request: &["compare"],
        help: "Take files of the same size for unchanged, whatever their times",
        conflicts: &["checksum", "ignore-times"],
        set: |args, _| args.receive.compare = Compare::Size,
        ..TARGET
    },
    Flag {
        name: "ignore-times",
        request: &["compare"],
        short: Some('I'),
        help: "Take no file for unchanged: copy all of them",
        conflicts: &["checksum"],
        set: |args, _| args.receive.compare = Compare::Never,
        ..TARGET
    },
    Flag {
        name: "modify-window",
        request: &["modify_window"],
        takes: Takes::Value(value("SECONDS", values::window).with_hyphens()),
        help: "Take modification times for equal that differ by no more than this",
        set: |args, given| args.receive.modify_window = given.one().unwrap_or_default(),
        ..TARGET
    },
    Flag {
        name: "mkpath",
        request: &["make_path"],
        help: "Create all missing directories of the target's path; otherwise only the last one",
        set: |args, _| args.receive.make_path = true,
        ..TARGET
    },
    Flag {
        name: "dry-run",
        request: &["dry_run"],
        short: Some('n'),
        help: "Show what would be done without doing it",
        brief: &[(COPIES, "")],
        settable: Settable::Typed,
        set: |args, _| args.receive.dry_run = true,
        ..TARGET
    },
    Flag {
        name: "safe-links",
        request: &["safe_links"],
        help: "Skip symbolic links that point out of the copied tree",
        of: RECEIVERS,
        set: |args, _| args.receive.safe_links = true,
        ..TARGET
    },
    Flag {
        name: "whole-file",
        request: &["differences"],
        short: Some('W'),
        help: "Send changed files in full instead of their differences",
        more: "The differences of a file cost reading both versions. Between directories of this machine it is always sent in \
               full.",
        set: |args, _| args.receive.differences = false,
        ..TARGET
    },
    Flag {
        name: "trust-sender",
        help: "Accept names from a remote source that were not requested",
        more: "By default, names that match neither the paths, wildcards and filters of the command line nor the list of \
               --files-from end the copy.",
        set: |args, _| args.trusts_sender = true,
        ..TARGET
    },
    Flag {
        name: "trust-staging",
        request: &["trust_staging"],
        help: "Use what an interrupted run has left without reading and comparing it; the summary then does not say \
               \"verified\"",
        of: RECEIVERS,
        set: |args, _| args.receive.trust_staging = true,
        ..TARGET
    },
    Flag {
        name: "link-dest",
        request: &["link_dest"],
        takes: Takes::Values(value("DIR", values::reference)),
        help: "Make files that DIR has unchanged names of the files there: a copy that takes space only for what differs",
        more: "DIR is a directory beside the target, or relative to it, such as ../yesterday. Of several, the first that has a \
               file unchanged counts. One that does not exist has no files.",
        set: |args, given| args.receive.link_dest = given.all(),
        ..TARGET
    },
    Flag {
        name: "backup",
        request: &["backup"],
        short: Some('b'),
        help: "Keep what is replaced or deleted under another name: with a `~` at its end",
        more: "Names that end so are not deleted by --delete.",
        set: |args, _| args.backup.is_on = true,
        ..TARGET
    },
    Flag {
        name: "backup-dir",
        request: &["backup"],
        takes: Takes::Value(value("DIR", values::path_there)),
        help: "Keep it in this directory, named relative to the target, under its own path; implies --backup",
        more: "The directory itself is not deleted by --delete.",
        set: |args, given| args.backup.directory = given.one(),
        ..TARGET
    },
    Flag {
        name: "suffix",
        request: &["backup"],
        takes: Takes::Value(value("SUFFIX", values::os_text)),
        help: "End the names of backups with SUFFIX",
        set: |args, given| args.backup.suffix = given.one(),
        ..TARGET
    },
];
