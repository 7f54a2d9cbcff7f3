//! Options of the sender's rate, profile and memory.

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
        help: "Send at a fixed rate (100M, 12MB/s): fastest if the path has the capacity, otherwise unfair to other traffic",
        more: "The rate counts whole IP packets. By default congestion control finds the rate and shares the path. It also takes \
               over from a fixed rate if the path carries far less, unless --policy is fixed.",
        brief: &[(&[Pipe], "")],
        set: |args, given| args.speed.rate = given.one(),
        ..SPEED
    },
    Flag {
        name: "rate",
        takes: Takes::Value(value("RATE", values::rate)),
        help: "Send at a fixed rate [default: the link's rate]",
        section: Section::Own,
        of: &[Demo],
        brief: &[(&[Demo], "")],
        set: |args, given| args.speed.rate = given.one(),
        ..SPEED
    },
    Flag {
        name: "min-rate",
        takes: Takes::Value(value("RATE", values::rate)),
        help: "Start at RATE, which the path is known to carry, instead of probing",
        more: "Congestion control then continues from RATE and may send more or less.",
        conflicts: &["rate"],
        set: |args, given| args.speed.min_rate = given.one(),
        ..SPEED
    },
    Flag {
        name: "policy",
        takes: Takes::Value(value("WHAT", || {
            values::choice(&[
                ("fair", "A share like TCP's (default)", Policy::Fair),
                ("low", "Use spare capacity only", Policy::Low),
                ("fixed", "Keep the rate of --rate, even if most packets are lost", Policy::Fixed),
            ])
        })),
        help: "How to share the path with other traffic",
        set: |args, given| args.speed.policy = given.one(),
        ..SPEED
    },
    Flag {
        name: "no-path-cache",
        help: "Do not read or write the path cache",
        set: |args, _| args.speed.no_path_cache = true,
        ..SPEED
    },
    Flag {
        name: "limit",
        takes: Takes::Value(value("RATE|TIMETABLE", values::limit)),
        help: "Limit the sending rate, always or by a daily timetable in local time, such as '08:00,200M 19:00,off'",
        brief: &[(&[Cp, Sync, Send, Pipe], "Limit the sending rate, such as 100M or 10MB/s")],
        set: |args, given| args.speed.limit = given.one(),
        ..SPEED
    },
    Flag {
        name: "max-memory",
        takes: Takes::Value(value("SIZE", values::memory)),
        help: "Buffer at most SIZE of data on each side, such as 256MB [default: an eighth of the RAM, at most 2GiB]",
        more: "With a ticket, it applies to this side only. A path needs about four times its rate times its RTT; the summary \
               reports a limit that slowed the transfer. Minimum 32MB. The program itself needs some tens of MB more.",
        of: &[Cp, Sync, Send, Recv, Verify, Doctor, Pipe, Tunnel, Proxy],
        set: |args, given| args.options.engine.endpoint.max_memory = given.one(),
        ..SPEED
    },
    Flag {
        name: "profile",
        takes: Takes::Value(value("NAME|FILE", values::profile).or("auto")),
        help: "Profile of the sender: a name from `downpour profile list`, or a file written by `downpour profile show`",
        set: |args, given| args.speed.profile = given.one(),
        ..SPEED
    },
    Flag { section: Section::Speed, of: SENDERS, brief: &[(&[Pipe], "")], ..SET },
    Flag { section: Section::Own, of: &[ProfileShow], ..SET },
    Flag {
        name: "max-overhead",
        takes: Takes::Value(value("SHARE", values::text)),
        help: "Limit proactive repair to this share of the data; 'none' for no limit [default: 50%]",
        more: "The first 16 kB/s of repair do not count.",
        of: &[Pipe, Tunnel, Proxy],
        set: |args, given| args.speed.max_overhead = given.one(),
        ..SPEED
    },
];
