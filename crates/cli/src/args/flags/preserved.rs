//! What is preserved beyond contents and times.

use downpour::files::Modes;

use crate::args::Command::{self, Cp, Sync};
use crate::args::flag::{FLAG, Flag, Section};

const COPIES: &[Command] = &[Cp, Sync];

const PRESERVED: Flag = Flag { section: Section::Preserved, of: COPIES, ..FLAG };

/// What rsync has to be asked for, and is done here anyway.
const IMPLIED: Flag = Flag { hidden: true, ..PRESERVED };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "archive",
        short: Some('a'),
        help: "Archive: --owner --group --specials; links, modes and times are always preserved",
        of: &[Sync],
        set: |args, _| args.archive(),
        ..PRESERVED
    },
    Flag {
        name: "preserve",
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
        help: "Map owners and groups by number, not by name",
        set: |args, _| args.receive.preserve.numeric_ids = true,
        ..PRESERVED
    },
    Flag {
        name: "acls",
        short: Some('A'),
        help: "Preserve ACLs, and modes",
        // An ACL holds the bits of the mode too.
        set: |args, _| (args.receive.preserve.acls, args.receive.modes) = (true, Modes::Exact),
        ..PRESERVED
    },
    Flag {
        name: "xattrs",
        short: Some('X'),
        help: "Preserve extended attributes: user.*, and between root and root trusted.* and file capabilities",
        set: |args, _| args.receive.preserve.xattrs = true,
        ..PRESERVED
    },
    Flag {
        name: "specials",
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
];
