//! Attributes that are preserved beside contents and times.

use downpour::files::{Chmod, Modes};

use crate::args::Command::{self, Cp, Sync};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const COPIES: &[Command] = &[Cp, Sync];

const ATTRIBUTES: Flag = Flag { section: Section::Attributes, of: COPIES, ..FLAG };

/// An option of rsync for a default of this program.
const IMPLIED: Flag = Flag { hidden: true, ..ATTRIBUTES };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "archive",
        request: &["preserve", "modes"],
        short: Some('a'),
        help: "Archive: --owner --group --specials; links, modes and times are always preserved",
        of: &[Sync],
        set: |args, _| args.archive(),
        ..ATTRIBUTES
    },
    Flag {
        name: "preserve",
        request: &["modes"],
        short: Some('p'),
        help: "Preserve modes regardless of the umask; times are always preserved",
        more: "Set-user-ID and set-group-ID are preserved only with --owner and --group, and if the receiver is root.",
        of: &[Cp],
        set: |args, _| (args.receive.modes, args.preserves_modes) = (Modes::Exact, true),
        ..ATTRIBUTES
    },
    Flag { name: "permissions", short: Some('p'), of: &[Sync], set: |args, _| args.preserves_modes = true, ..IMPLIED },
    Flag { name: "times", short: Some('t'), ..IMPLIED },
    Flag {
        name: "owner",
        request: &["preserve"],
        help: "Preserve owners; the receiver must be root",
        set: |args, _| args.receive.preserve.owner = true,
        ..ATTRIBUTES
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
        help: "Preserve groups; the receiver must be root or a member",
        set: |args, _| args.receive.preserve.group = true,
        ..ATTRIBUTES
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
        ..ATTRIBUTES
    },
    Flag {
        name: "acls",
        request: &["preserve", "modes"],
        short: Some('A'),
        help: "Preserve ACLs and modes",
        // An ACL contains the bits of the mode.
        set: |args, _| (args.receive.preserve.acls, args.receive.modes) = (true, Modes::Exact),
        ..ATTRIBUTES
    },
    Flag {
        name: "xattrs",
        request: &["preserve"],
        short: Some('X'),
        help: "Preserve extended attributes: user.*; if both sides run as root, also trusted.* and file capabilities",
        set: |args, _| args.receive.preserve.xattrs = true,
        ..ATTRIBUTES
    },
    Flag {
        name: "specials",
        request: &["preserve"],
        alias: Some("devices"),
        help: "Copy FIFOs and sockets; devices only if the receiver is root",
        set: |args, _| args.receive.preserve.specials = true,
        ..ATTRIBUTES
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
        help: "Change the modes of the source, such as D755,F644 or ug+rX",
        more: "As in rsync, new files get the changed mode less the umask; if modes are preserved, all files get the changed \
               mode.",
        // An ACL contains the bits of the mode.
        conflicts: &["acls"],
        set: |args, given| args.receive.chmod = given.all::<Chmod>().into_iter().reduce(Chmod::and),
        ..ATTRIBUTES
    },
    // Each turns off an attribute that another option turns on, in any order on the command line.
    Flag {
        name: "no-perms",
        request: &["modes"],
        settable: Settable::Typed,
        alias: Some("no-p"),
        help: "Do not preserve modes: new files follow the umask, others keep their mode. Overrides -p and -a",
        more: "New directories keep the sticky bit, as with cp.",
        conflicts: &["acls"],
        set: |args, _| args.receive.modes = Modes::Masked,
        ..ATTRIBUTES
    },
    Flag {
        name: "no-owner",
        request: &["preserve"],
        settable: Settable::Typed,
        alias: Some("no-o"),
        help: "Use -a without --owner",
        set: |args, _| args.receive.preserve.owner = false,
        ..ATTRIBUTES
    },
    Flag {
        name: "no-group",
        request: &["preserve"],
        settable: Settable::Typed,
        alias: Some("no-g"),
        help: "Use -a without --group",
        set: |args, _| args.receive.preserve.group = false,
        ..ATTRIBUTES
    },
    Flag {
        name: "no-specials",
        request: &["preserve"],
        settable: Settable::Typed,
        alias: Some("no-D"),
        help: "Use -a without --specials",
        set: |args, _| args.receive.preserve.specials = false,
        ..ATTRIBUTES
    },
    Flag {
        name: "omit-dir-times",
        request: &["omit_directory_times"],
        short: Some('O'),
        help: "Do not set the modification times of directories",
        of: &[Sync],
        set: |args, _| args.receive.omit_directory_times = true,
        ..ATTRIBUTES
    },
    // scp uses the letter for another option.
    Flag {
        name: "omit-dir-times",
        request: &["omit_directory_times"],
        help: "Do not set the modification times of directories",
        of: &[Cp],
        set: |args, _| args.receive.omit_directory_times = true,
        ..ATTRIBUTES
    },
];
