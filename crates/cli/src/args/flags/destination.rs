//! Options of the destination.

use downpour::files::{Compare, Existing};

use crate::args::Command::{self, Cp, Recv, Sync};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, Value, value};
use crate::args::values;

const COPIES: &[Command] = &[Cp, Sync];
const RECEIVERS: &[Command] = &[Cp, Sync, Recv];

const DESTINATION: Flag = Flag { section: Section::Destination, of: COPIES, ..FLAG };

const EXISTING: Value = value("WHAT", || {
    values::choice(&[
        ("replace", "Replace it once the new file is complete", Existing::Replace),
        ("skip", "Skip it", Existing::Skip),
        ("refuse", "Abort before anything is copied", Existing::Refuse),
        ("keep-newer", "Replace it unless it is newer", Existing::KeepNewer),
        ("only", "Replace it, and create no new files", Existing::UpdateOnly),
    ])
});

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "delete",
        request: &["delete"],
        help: "Delete files at the destination that are not in the source, unless they are excluded",
        more: "Files that appear or change during the transfer are kept, with their directories.",
        of: &[Sync],
        brief: &[(&[Sync], "Delete files that the source does not have")],
        conflicts: &["files-from"],
        settable: Settable::Typed,
        set: |args, _| args.delete = true,
        ..DESTINATION
    },
    Flag {
        name: "max-delete",
        request: &["max_delete"],
        takes: Takes::Value(value("N", values::number::<u64>)),
        help: "Delete at most N names; keep the others and exit with 23",
        of: &[Sync],
        requires: Some("delete"),
        set: |args, given| args.receive.max_delete = given.one(),
        ..DESTINATION
    },
    Flag {
        name: "force-empty",
        request: &["force_empty"],
        help: "Delete even if the source is empty (its disk may not be mounted)",
        of: &[Sync],
        requires: Some("delete"),
        set: |args, _| args.receive.force_empty = true,
        ..DESTINATION
    },
    Flag {
        name: "into",
        takes: Takes::Value(value("DIR", values::directory).or(".")),
        help: "Directory to receive into",
        of: &[Recv],
        brief: &[(&[Recv], "")],
        set: |args, given| args.receive.target = given.one().unwrap_or_default(),
        ..DESTINATION
    },
    Flag {
        name: "yes",
        short: Some('y'),
        help: "Accept without asking",
        of: &[Recv],
        brief: &[(&[Recv], "")],
        // Without a question, the data follows the names at once.
        set: |args, _| args.options.confirm = false,
        ..DESTINATION
    },
    Flag {
        name: "existing",
        request: &["existing"],
        takes: Takes::Value(EXISTING.or("replace")),
        help: "How to handle files that already exist",
        set: |args, given| args.receive.existing = given.one().unwrap_or_default(),
        ..DESTINATION
    },
    Flag {
        name: "existing",
        request: &["existing"],
        takes: Takes::Value(EXISTING.or("refuse")),
        help: "How to handle files that already exist",
        of: &[Recv],
        brief: &[(&[Recv], "refuse, replace, skip, keep-newer [default: refuse]")],
        set: |args, given| args.receive.existing = given.one().unwrap_or_default(),
        ..DESTINATION
    },
    Flag {
        name: "update",
        request: &["existing"],
        short: Some('u'),
        help: "Skip files that are newer at the destination (--existing keep-newer)",
        conflicts: &["existing", "ignore-existing"],
        settable: Settable::Typed,
        set: |args, _| args.receive.existing = Existing::KeepNewer,
        ..DESTINATION
    },
    Flag {
        name: "ignore-existing",
        request: &["existing"],
        help: "Skip files that exist at the destination (--existing skip)",
        conflicts: &["existing"],
        set: |args, _| args.receive.existing = Existing::Skip,
        ..DESTINATION
    },
    Flag {
        name: "quota",
        takes: Takes::Value(value("SIZE", values::size)),
        help: "Accept at most SIZE bytes of files, such as 10GB",
        of: &[Recv],
        brief: &[(&[Recv], "Accept at most SIZE bytes of files")],
        set: |args, given| args.receive.permitted.max_bytes = given.one(),
        ..DESTINATION
    },
    Flag {
        name: "max-files",
        takes: Takes::Value(value("N", values::number::<u64>)),
        help: "Accept at most N files, directories and links",
        of: &[Recv],
        set: |args, given| args.receive.permitted.max_entries = given.one(),
        ..DESTINATION
    },
    Flag {
        name: "checksum",
        request: &["compare"],
        help: "Compare files of the same size by content instead of mtime",
        brief: &[(&[Sync], "Compare contents, not times")],
        set: |args, _| args.receive.compare = Compare::Checksum,
        ..DESTINATION
    },
    Flag {
        name: "checksum",
        request: &["compare"],
        help: "Compare files of the same size by content instead of mtime; needs a sender with --checksums",
        of: &[Recv],
        set: |args, _| args.receive.compare = Compare::Checksum,
        ..DESTINATION
    },
    Flag {
        name: "size-only",
        request: &["compare"],
        help: "Treat files of the same size as unchanged and ignore their times",
        conflicts: &["checksum", "ignore-times"],
        set: |args, _| args.receive.compare = Compare::Size,
        ..DESTINATION
    },
    Flag {
        name: "ignore-times",
        request: &["compare"],
        short: Some('I'),
        help: "Copy all files, even if size and mtime match",
        conflicts: &["checksum"],
        set: |args, _| args.receive.compare = Compare::Never,
        ..DESTINATION
    },
    Flag {
        name: "modify-window",
        request: &["modify_window"],
        takes: Takes::Value(value("SECONDS", values::window).with_hyphens()),
        help: "Treat modification times as equal if they differ by at most SECONDS",
        set: |args, given| args.receive.modify_window = given.one().unwrap_or_default(),
        ..DESTINATION
    },
    Flag {
        name: "mkpath",
        request: &["make_path"],
        help: "Create all missing directories of the destination path, not only the last one",
        set: |args, _| args.receive.make_path = true,
        ..DESTINATION
    },
    Flag {
        name: "dry-run",
        request: &["dry_run"],
        short: Some('n'),
        help: "Show what would be done without doing it",
        brief: &[(COPIES, "")],
        settable: Settable::Typed,
        set: |args, _| args.receive.dry_run = true,
        ..DESTINATION
    },
    Flag {
        name: "safe-links",
        request: &["safe_links"],
        help: "Skip symbolic links that point out of the copied tree",
        of: RECEIVERS,
        set: |args, _| args.receive.safe_links = true,
        ..DESTINATION
    },
    Flag {
        name: "whole-file",
        request: &["differences"],
        short: Some('W'),
        help: "Send changed files in full instead of their differences",
        more: "To find the differences, both versions are read. Local copies always send the whole file.",
        set: |args, _| args.receive.differences = false,
        ..DESTINATION
    },
    Flag {
        name: "trust-sender",
        help: "Accept names from a remote source that were not requested",
        more: "By default the copy fails on a name that matches neither the paths, wildcards and filters of the command line nor \
               the list of --files-from.",
        set: |args, _| args.trusts_sender = true,
        ..DESTINATION
    },
    Flag {
        name: "trust-staging",
        request: &["trust_staging"],
        help: "Reuse partial data without verifying it; the summary then does not contain \"verified\"",
        of: RECEIVERS,
        set: |args, _| args.receive.trust_staging = true,
        ..DESTINATION
    },
    Flag {
        name: "link-dest",
        request: &["link_dest"],
        takes: Takes::Values(value("DIR", values::reference)),
        help: "Hard-link files that are unchanged in DIR, so the copy takes space only for changed files",
        more: "DIR is on the destination host, absolute or relative to the destination, such as ../yesterday. Of several, the \
               first with an unchanged file counts. A missing DIR counts as empty.",
        set: |args, given| args.receive.link_dest = given.all(),
        ..DESTINATION
    },
    Flag {
        name: "backup",
        request: &["backup"],
        short: Some('b'),
        help: "Rename files that are replaced or deleted, appending `~`",
        more: "--delete does not delete such names.",
        set: |args, _| args.backup.is_on = true,
        ..DESTINATION
    },
    Flag {
        name: "backup-dir",
        request: &["backup"],
        takes: Takes::Value(value("DIR", values::remote_path)),
        help: "Put backups in DIR, relative to the destination, keeping their paths; implies --backup",
        more: "--delete does not delete DIR.",
        set: |args, given| args.backup.directory = given.one(),
        ..DESTINATION
    },
    Flag {
        name: "suffix",
        request: &["backup"],
        takes: Takes::Value(value("SUFFIX", values::os_text)),
        help: "Suffix of backup names [default: ~]",
        set: |args, given| args.backup.suffix = given.one(),
        ..DESTINATION
    },
];
