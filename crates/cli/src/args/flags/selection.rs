//! Which files of the sources are copied.

use downpour::files::{LinkPolicy, Rule};

use crate::args::Command::{self, Cp, Send, Sync, Verify};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const COPIES: &[Command] = &[Cp, Sync];
const SENDERS: &[Command] = &[Cp, Sync, Send, Verify];

const SELECTION: Flag = Flag { section: Section::Selection, of: SENDERS, ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "archive",
        request: &["recursive", "follow_items", "preserve", "modes"],
        short: Some('a'),
        help: "Archive: -r -p --owner --group --specials, and symbolic links given as sources are copied as links",
        of: &[Cp],
        brief: &[(&[Cp], "As -r -p --owner --group --specials")],
        set: |args, _| {
            args.scan.recursive = true;
            args.scan.follow_items = false;
            args.archive();
        },
        ..SELECTION
    },
    Flag {
        name: "recursive",
        request: &["recursive"],
        short: Some('r'),
        help: "Copy directories recursively",
        of: &[Cp],
        brief: &[(&[Cp], "")],
        set: |args, _| args.scan.recursive = true,
        ..SELECTION
    },
    Flag { name: "recursive", short: Some('r'), of: &[Sync], hidden: true, ..SELECTION },
    Flag {
        name: "links",
        request: &["links", "follow_items"],
        takes: Takes::Value(value("HOW", || {
            values::choice(&[
                ("copy", "Copy links as links", LinkPolicy::Copy),
                ("follow", "Copy the targets of links", LinkPolicy::Follow),
                ("skip", "Skip links", LinkPolicy::Skip),
            ])
        })),
        help: "How to handle symbolic links [default: copy; cp, send and verify follow links given as sources]",
        set: |args, given| {
            args.scan.links = given.one().unwrap_or_default();
            args.scan.follow_items = false;
        },
        ..SELECTION
    },
    Flag {
        name: "hard-links",
        request: &["hard_links"],
        short: Some('H'),
        help: "Preserve hard links",
        set: |args, _| args.scan.hard_links = true,
        ..SELECTION
    },
    Flag {
        name: "one-file-system",
        request: &["one_file_system"],
        short: Some('x'),
        help: "Do not enter mount points of other file systems",
        // Only sync deletes, and only on the file system of the destination.
        set: |args, _| {
            (args.scan.one_file_system, args.receive.one_file_system) = (true, args.command == Sync);
        },
        ..SELECTION
    },
    Flag {
        name: "include",
        request: &["filter"],
        takes: Takes::Values(value("PATTERN", values::pattern).with_hyphens()),
        help: "Include matching files even if a later --exclude matches them",
        set: |args, given| args.rules.place("include", given.placed(), Rule::Include),
        ..SELECTION
    },
    Flag {
        name: "exclude",
        request: &["filter"],
        takes: Takes::Values(value("PATTERN", values::pattern).with_hyphens()),
        help: "Skip matching files; see `downpour --help` for patterns. An empty PATTERN ignores those of the configuration",
        brief: &[(SENDERS, "Skip matching files; see `downpour --help`")],
        set: |args, given| args.rules.place("exclude", given.placed(), Rule::Exclude),
        ..SELECTION
    },
    Flag {
        name: "include-from",
        request: &["filter"],
        takes: Takes::Values(value("FILE", values::path)),
        help: "Include files that match a pattern in FILE, one per line; `-` reads stdin",
        settable: Settable::Typed,
        set: |args, given| args.rules.place_files(given.placed(), Rule::Include),
        ..SELECTION
    },
    Flag {
        name: "exclude-from",
        request: &["filter"],
        takes: Takes::Values(value("FILE", values::path)),
        help: "Skip files that match a pattern in FILE, one per line; `-` reads stdin",
        settable: Settable::Typed,
        set: |args, given| args.rules.place_files(given.placed(), Rule::Exclude),
        ..SELECTION
    },
    Flag {
        name: "filter",
        request: &["filter"],
        short: Some('f'),
        takes: Takes::Values(value("RULE", values::filter_rule).with_hyphens()),
        help: "Add a rule in rsync's form: `- PATTERN`, `+ PATTERN`, or `. FILE` with one such rule per line",
        of: COPIES,
        settable: Settable::Typed,
        set: |args, given| args.rules.place_filters(given.placed()),
        ..SELECTION
    },
    Flag {
        name: "max-size",
        request: &["eligible"],
        takes: Takes::Value(value("SIZE", values::size_of_rsync)),
        help: "Skip files larger than SIZE",
        more: "Copies of them at the destination are neither changed nor deleted. As in rsync, 1M is 1 MiB and 1MB is 1,000,000 \
               bytes.",
        of: COPIES,
        set: |args, given| args.receive.eligible.max_size = given.one(),
        ..SELECTION
    },
    Flag {
        name: "min-size",
        request: &["eligible"],
        takes: Takes::Value(value("SIZE", values::size_of_rsync)),
        help: "Skip files smaller than SIZE",
        of: COPIES,
        set: |args, given| args.receive.eligible.min_size = given.one(),
        ..SELECTION
    },
    Flag {
        name: "max-age",
        request: &["eligible"],
        takes: Takes::Value(value("TIME", values::time)),
        help: "Skip files last modified more than TIME ago, such as 30d",
        of: COPIES,
        set: |args, given| args.receive.eligible.modified_since = given.one().map(values::seconds_ago),
        ..SELECTION
    },
    Flag {
        name: "relative",
        request: &["files_from"],
        short: Some('R'),
        help: "Keep the paths of the sources at the destination: a/b/c becomes DST/a/b/c, and x/./b/c becomes DST/b/c",
        of: &[Sync],
        conflicts: &["files-from", "delete"],
        settable: Settable::Typed,
        set: |args, _| args.relative = true,
        ..SELECTION
    },
    // scp uses the letter for another option.
    Flag {
        name: "relative",
        request: &["files_from"],
        help: "Keep the paths of the sources at the destination: a/b/c becomes DST/a/b/c, and x/./b/c becomes DST/b/c",
        of: &[Cp],
        conflicts: &["files-from"],
        settable: Settable::Typed,
        set: |args, _| args.relative = true,
        ..SELECTION
    },
    Flag {
        name: "files-from",
        request: &["files_from"],
        takes: Takes::Value(value("FILE", values::path)),
        help: "Copy only the files listed in FILE, one per line, relative to the single SRC; `-` reads stdin",
        settable: Settable::Typed,
        set: |args, given| args.files_from = given.one(),
        ..SELECTION
    },
    Flag {
        name: "from0",
        short: Some('0'),
        help: "Read --files-from as names separated by NUL, as written by `find -print0`",
        requires: Some("files-from"),
        settable: Settable::Typed,
        set: |args, _| args.nul_separated = true,
        ..SELECTION
    },
    Flag {
        name: "checksums",
        takes: Takes::Value(value("FILE", values::path)),
        help: "Write BLAKE3 checksums of all files to FILE, for `b3sum -c FILE` in the destination directory",
        more: "A file copied to another host under a new name is listed under its local name. FILE is replaced if it is \
               empty or an older list, and is itself not copied.",
        settable: Settable::Typed,
        set: |args, given| args.options.checksums = given.one(),
        ..SELECTION
    },
    Flag {
        name: "remove-source-files",
        request: &["remove_sources"],
        help: "Remove files from the source once they are stored at the destination; directories remain",
        more: "A file is removed once its copy is synced under its final name, or was present and unchanged, and the source has \
               not changed since.",
        of: COPIES,
        conflicts: &["trust-staging"],
        settable: Settable::Typed,
        set: |args, _| args.scan.remove_sources = true,
        ..SELECTION
    },
];
