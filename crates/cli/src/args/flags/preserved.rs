//! What is preserved beyond contents and times.

use downpour::files::{Chmod, Modes};

use crate::args::Command::{self, Cp, Sync};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const COPIES: &[Command] = &[Cp, Sync];

const PRESERVED: Flag = Flag { section: Section::Preserved, of: COPIES, ..FLAG };

/// What rsync has to be asked for, and is done here anyway.
const IMPLIED: Flag = Flag { hidden: true, ..PRESERVED };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "archive",
        request: &["preserve", "modes"],
        short: Some('a'),
        help: "Archive: --owner --group --specials; links, modes and times are always preserved",
        of: &[Sync],
        set: |args, _| args.archive(),
        ..PRESERVED
    },
    Flag {
        name: "preserve",
        request: &["modes"],
        short: Some('p'),
        help: "Preserve modes regardless of the umask; times are always preserved",
        more: "Set-user-ID and set-group-ID are preserved only where root receives, with --owner and --group.",
        of: &[Cp],
        set: |args, _| (args.receive.modes, args.preserves) = (Modes::Exact, true),
        ..PRESERVED
    },
    Flag { name: "permissions", short: Some('p'), of: &[Sync], set: |args, _| args.preserves = true, ..IMPLIED },
    Flag { name: "times", short: Some('t'), ..IMPLIED },
    Flag {
        name: "owner",
        request: &["preserve"],
        help: "Preserve owners, where root receives",
        set: |args, _| args.receive.preserve.owner = true,
        ..PRESERVED
    },
    Flag {
        name: "owner-too",
        short: Some('o'),
        of: &[Sync],
        set: |args, _| args.receive.preserve.owner = true,
        ..IMPLIED
    },
    Flag {
        name: "group",
        request: &["preserve"],
        help: "Preserve groups, where root receives, or a member of the group",
        set: |args, _| args.receive.preserve.group = true,
        ..PRESERVED
    },
    Flag {
        name: "group-too",
        short: Some('g'),
        of: &[Sync],
        set: |args, _| args.receive.preserve.group = true,
        ..IMPLIED
    },
    Flag {
        name: "numeric-ids",
        request: &["preserve"],
        help: "Map owners and groups by number, not by name",
        set: |args, _| args.receive.preserve.numeric_ids = true,
        ..PRESERVED
    },
    Flag {
        name: "acls",
        request: &["preserve", "modes"],
        short: Some('A'),
        help: "Preserve ACLs, and modes",
        // An ACL holds the bits of the mode too.
        set: |args, _| (args.receive.preserve.acls, args.receive.modes) = (true, Modes::Exact),
        ..PRESERVED
    },
    Flag {
        name: "xattrs",
        request: &["preserve"],
        short: Some('X'),
        help: "Preserve extended attributes: user.*, and between root and root trusted.* and file capabilities",
        set: |args, _| args.receive.preserve.xattrs = true,
        ..PRESERVED
    },
    Flag {
        name: "specials",
        request: &["preserve"],
        alias: Some("devices"),
        help: "Copy pipes and sockets, and devices where root receives",
        set: |args, _| args.receive.preserve.specials = true,
        ..PRESERVED
    },
    Flag {
        name: "specials-too",
        short: Some('D'),
        of: &[Sync],
        set: |args, _| args.receive.preserve.specials = true,
        ..IMPLIED
    },
    Flag {
        name: "chmod",
        request: &["chmod"],
        takes: Takes::Values(value("CHANGES", values::chmod)),
        help: "Change the modes that the source has, such as D755,F644 or ug+rX",
        more: "As for rsync, new names get the changed mode less what the umask denies, and all names get it where modes are \
               preserved.",
        // An ACL holds the bits of the mode too.
        conflicts: &["acls"],
        set: |args, given| args.receive.chmod = given.all::<Chmod>().into_iter().reduce(Chmod::and),
        ..PRESERVED
    },
    // What another option has turned on is turned off, in whatever order they are.
    Flag {
        name: "no-perms",
        request: &["modes"],
        settable: Settable::Typed,
        alias: Some("no-p"),
        help: "Give new names the modes that the umask allows, and leave those of others: without -p and what implies it",
        more: "The sticky bit comes with new directories, as with cp.",
        conflicts: &["acls"],
        set: |args, _| args.receive.modes = Modes::Masked,
        ..PRESERVED
    },
    Flag {
        name: "no-owner",
        request: &["preserve"],
        settable: Settable::Typed,
        alias: Some("no-o"),
        help: "-a without --owner",
        set: |args, _| args.receive.preserve.owner = false,
        ..PRESERVED
    },
    Flag {
        name: "no-group",
        request: &["preserve"],
        settable: Settable::Typed,
        alias: Some("no-g"),
        help: "-a without --group",
        set: |args, _| args.receive.preserve.group = false,
        ..PRESERVED
    },
    Flag {
        name: "no-specials",
        request: &["preserve"],
        settable: Settable::Typed,
        alias: Some("no-D"),
        help: "-a without --specials",
        set: |args, _| args.receive.preserve.specials = false,
        ..PRESERVED
    },
    Flag {
        name: "omit-dir-times",
        request: &["omit_directory_times"],
        short: Some('O'),
        help: "Leave the modification times of directories alone",
        of: &[Sync],
        set: |args, _| args.receive.omit_directory_times = true,
        ..PRESERVED
    },
    // scp has another use for the letter.
    Flag {
        name: "omit-dir-times",
        request: &["omit_directory_times"],
        help: "Leave the modification times of directories alone",
        of: &[Cp],
        set: |args, _| args.receive.omit_directory_times = true,
        ..PRESERVED
    },
];
