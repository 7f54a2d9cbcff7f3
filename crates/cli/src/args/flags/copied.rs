//! Which files of the sources are copied.

use downpour::files::{LinkPolicy, Rule};

use crate::args::Command::{self, Cp, Send, Sync, Verify};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const COPIES: &[Command] = &[Cp, Sync];
const SENDERS: &[Command] = &[Cp, Sync, Send, Verify];

const COPIED: Flag = Flag { section: Section::Copied, of: SENDERS, ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "archive",
        request: &["recursive", "follow_items", "preserve", "modes"],
        short: Some('a'),
        help: "Archive: -r -p --owner --group --specials, and a source that is a symbolic link is copied as a link",
        of: &[Cp],
        brief: &[(&[Cp], "As -r -p --owner --group --specials")],
        set: |args, _| {
            args.scan.recursive = true;
            args.scan.follow_items = false;
            args.archive();
        },
        ..COPIED
    },
    Flag {
        name: "recursive",
        request: &["recursive"],
        short: Some('r'),
        help: "Copy directories recursively",
        of: &[Cp],
        brief: &[(&[Cp], "")],
        set: |args, _| args.scan.recursive = true,
        ..COPIED
    },
    Flag { name: "recursive", short: Some('r'), of: &[Sync], hidden: true, ..COPIED },
    Flag {
        name: "links",
        request: &["links", "follow_items"],
        takes: Takes::Value(value("HOW", || {
            values::choice(&[
                ("copy", "Copy links as links", LinkPolicy::Copy),
                ("follow", "Copy the files that links point to", LinkPolicy::Follow),
                ("skip", "Skip links", LinkPolicy::Skip),
            ])
        })),
        help: "How to handle symbolic links [default: copy; but cp, send and verify follow links named as sources]",
        set: |args, given| {
            args.scan.links = given.one().unwrap_or_default();
            args.scan.follow_items = false;
        },
        ..COPIED
    },
    Flag {
        name: "hard-links",
        request: &["hard_links"],
        short: Some('H'),
        help: "Preserve hard links",
        set: |args, _| args.scan.hard_links = true,
        ..COPIED
    },
    Flag {
        name: "one-file-system",
        request: &["one_file_system"],
        short: Some('x'),
        help: "Do not enter directories on which another file system is mounted",
        // Only sync deletes, and only on the file system of the target.
        set: |args, _| {
            (args.scan.one_file_system, args.receive.one_file_system) = (true, args.command == Sync);
        },
        ..COPIED
    },
    Flag {
        name: "include",
        request: &["filter"],
        takes: Takes::Values(value("PATTERN", values::pattern).with_hyphens()),
        help: "Include matching files even if a later --exclude matches them",
        set: |args, given| args.rules.place("include", given.placed(), Rule::Include),
        ..COPIED
    },
    Flag {
        name: "exclude",
        request: &["filter"],
        takes: Takes::Values(value("PATTERN", values::pattern).with_hyphens()),
        help: "Skip matching files; see `downpour --help` for patterns. An empty one ignores those of the configuration",
        brief: &[(SENDERS, "Skip matching files; see `downpour --help`")],
        set: |args, given| args.rules.place("exclude", given.placed(), Rule::Exclude),
        ..COPIED
    },
    Flag {
        name: "include-from",
        request: &["filter"],
        takes: Takes::Values(value("FILE", values::path)),
        help: "Include what matches a pattern of FILE, one per line; `-` reads stdin",
        settable: Settable::Typed,
        set: |args, given| args.rules.place_files(given.placed(), Rule::Include),
        ..COPIED
    },
    Flag {
        name: "exclude-from",
        request: &["filter"],
        takes: Takes::Values(value("FILE", values::path)),
        help: "Skip what matches a pattern of FILE, one per line; `-` reads stdin",
        settable: Settable::Typed,
        set: |args, given| args.rules.place_files(given.placed(), Rule::Exclude),
        ..COPIED
    },
    Flag {
        name: "filter",
        request: &["filter"],
        short: Some('f'),
        takes: Takes::Values(value("RULE", values::filter_rule).with_hyphens()),
        help: "A rule as rsync writes it: `- PATTERN`, `+ PATTERN`, or `. FILE` with one such rule a line",
        of: COPIES,
        settable: Settable::Typed,
        set: |args, given| args.rules.place_filters(given.placed()),
        ..COPIED
    },
    Flag {
        name: "max-size",
        request: &["eligible"],
        takes: Takes::Value(value("SIZE", values::size_of_rsync)),
        help: "Leave out files larger than SIZE",
        more: "What the target has of them is left alone, and not deleted. As for rsync, 1M is 1 MiB and 1MB is 1,000,000.",
        of: COPIES,
        set: |args, given| args.receive.eligible.max_size = given.one(),
        ..COPIED
    },
    Flag {
        name: "min-size",
        request: &["eligible"],
        takes: Takes::Value(value("SIZE", values::size_of_rsync)),
        help: "Leave out files smaller than SIZE",
        of: COPIES,
        set: |args, given| args.receive.eligible.min_size = given.one(),
        ..COPIED
    },
    Flag {
        name: "max-age",
        request: &["eligible"],
        takes: Takes::Value(value("TIME", values::time)),
        help: "Leave out files that were not modified for this long, such as 30d",
        of: COPIES,
        set: |args, given| args.receive.eligible.modified_since = given.one().map(values::seconds_ago),
        ..COPIED
    },
    Flag {
        name: "relative",
        request: &["files_from"],
        short: Some('R'),
        help: "Keep the paths of the sources below the target: a/b/c becomes DST/a/b/c, and x/./b/c becomes DST/b/c",
        of: &[Sync],
        conflicts: &["files-from", "delete"],
        settable: Settable::Typed,
        set: |args, _| args.relative = true,
        ..COPIED
    },
    // scp has another use for the letter.
    Flag {
        name: "relative",
        request: &["files_from"],
        help: "Keep the paths of the sources below the target: a/b/c becomes DST/a/b/c, and x/./b/c becomes DST/b/c",
        of: &[Cp],
        conflicts: &["files-from"],
        settable: Settable::Typed,
        set: |args, _| args.relative = true,
        ..COPIED
    },
    Flag {
        name: "files-from",
        request: &["files_from"],
        takes: Takes::Value(value("FILE", values::path)),
        help: "Copy only the files listed in FILE, one per line, relative to the single SRC; `-` reads stdin",
        settable: Settable::Typed,
        set: |args, given| args.files_from = given.one(),
        ..COPIED
    },
    Flag {
        name: "from0",
        short: Some('0'),
        help: "Names in --files-from are separated by NUL, as written by `find -print0`",
        requires: Some("files-from"),
        settable: Settable::Typed,
        set: |args, _| args.from0 = true,
        ..COPIED
    },
    Flag {
        name: "checksums",
        takes: Takes::Value(value("FILE", values::path)),
        help: "Write BLAKE3 checksums of all files to FILE, for `b3sum -c FILE` in the target directory",
        more: "A file that is copied to another machine under a new name is listed under its local name. FILE is replaced if \
               it is empty or an older list, and is itself not copied.",
        settable: Settable::Typed,
        set: |args, given| args.options.checksums = given.one(),
        ..COPIED
    },
    Flag {
        name: "remove-source-files",
        request: &["remove_sources"],
        help: "Remove files from the source once they are stored at the target; directories stay",
        more: "A file is removed when its copy has its final name and is on the disk there, or was there already and is \
               unchanged, and only if it has not changed since.",
        of: COPIES,
        conflicts: &["trust-staging"],
        settable: Settable::Typed,
        set: |args, _| args.scan.remove_sources = true,
        ..COPIED
    },
];
