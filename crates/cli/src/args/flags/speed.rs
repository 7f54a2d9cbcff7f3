//! How fast a sender sends.

use crate::args::Command::{self, Cp, Demo, Doctor, Pipe, ProfileShow, Proxy, Recv, Send, Sync, Tunnel, Verify};
use crate::args::flag::{FLAG, Flag, Section, Takes, value};
use crate::args::{Policy, values};

const SENDERS: &[Command] = &[Cp, Sync, Send, Verify, Doctor, Pipe, Tunnel, Proxy];

const SPEED: Flag = Flag { section: Section::Speed, of: SENDERS, ..FLAG };

const SET: Flag = Flag {
    name: "set",
    takes: Takes::Values(value("KEY=VALUE", values::setting)),
    help: "Change a setting of the profile: congestion=cubic, congestion.beta=0.5",
    set: |args, given| args.speed.set = given.all(),
    ..FLAG
};

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "rate",
        takes: Takes::Value(value("RATE", values::rate)),
        help: "Send at exactly this rate (100M, 12MB/s): fastest if the path has it, unfair to others if it has less",
        more: "The rate counts whole IP packets. Without it, congestion control finds the rate and shares the path; it also \
               takes over if the path carries far less than the rate, unless --policy fixed insists on it.",
        brief: &[(&[Pipe], "")],
        set: |args, given| args.speed.rate = given.one(),
        ..SPEED
    },
    Flag {
        name: "rate",
        takes: Takes::Value(value("RATE", values::rate)),
        help: "The rate to send at [default: the link's rate]",
        section: Section::Own,
        of: &[Demo],
        brief: &[(&[Demo], "")],
        set: |args, given| args.speed.rate = given.one(),
        ..SPEED
    },
    Flag {
        name: "min-rate",
        takes: Takes::Value(value("RATE", values::rate)),
        help: "Begin at this rate, which the path is known to carry, instead of searching for one",
        more: "Congestion control goes on from there, and may send more or less.",
        conflicts: &["rate"],
        set: |args, given| args.speed.min_rate = given.one(),
        ..SPEED
    },
    Flag {
        name: "policy",
        takes: Takes::Value(value("WHAT", || {
            values::choice(&[
                ("fair", "A share like TCP's (default)", Policy::Fair),
                ("low", "Only what others leave", Policy::Low),
                ("fixed", "The rate given with --rate, even if most of it is lost", Policy::Fixed),
            ])
        })),
        help: "What to claim of a path that others use",
        set: |args, given| args.speed.policy = given.one(),
        ..SPEED
    },
    Flag {
        name: "no-memory",
        help: "Neither use nor keep what is known of the path from transfers of the last day",
        set: |args, _| args.speed.no_memory = true,
        ..SPEED
    },
    Flag {
        name: "limit",
        takes: Takes::Value(value("RATE|TIMETABLE", values::limit)),
        help: "Limit the sending rate, at all times or by a timetable in local time, such as '08:00,200M 19:00,off'",
        brief: &[(&[Cp, Sync, Send, Pipe], "Limit the sending rate, such as 100M or 10MB/s")],
        set: |args, given| args.speed.limit = given.one(),
        ..SPEED
    },
    Flag {
        name: "max-memory",
        takes: Takes::Value(value("SIZE", values::memory)),
        help: "Buffer at most this much data on each side, such as 256MB [default: an eighth of its memory, at most 2GiB]",
        more: "With a ticket, it is the bound of this side alone. A long fast path needs about four times its rate times its \
               RTT; the summary says where a bound has slowed the transfer. The least is 32MB. What the program needs \
               besides, some tens of MB, comes on top.",
        of: &[Cp, Sync, Send, Recv, Verify, Doctor, Pipe, Tunnel, Proxy],
        set: |args, given| args.options.engine.endpoint.max_memory = given.one(),
        ..SPEED
    },
    Flag {
        name: "profile",
        takes: Takes::Value(value("NAME|FILE", values::profile).or("auto")),
        help: "Profile to send with: a name from `downpour profile list`, or a file as printed by `downpour profile show`",
        set: |args, given| args.speed.profile = given.one(),
        ..SPEED
    },
    Flag { section: Section::Speed, of: SENDERS, brief: &[(&[Pipe], "")], ..SET },
    Flag { section: Section::Own, of: &[ProfileShow], ..SET },
    Flag {
        name: "max-overhead",
        takes: Takes::Value(value("SHARE", values::text)),
        help: "Send at most this share of the data as repair before anything is lost, or 'none' for no bound [default: 50%]",
        more: "Up to 16 kB/s repair is free, since delay then counts more than bytes.",
        of: &[Pipe, Tunnel, Proxy],
        set: |args, given| args.speed.max_overhead = given.one(),
        ..SPEED
    },
];
