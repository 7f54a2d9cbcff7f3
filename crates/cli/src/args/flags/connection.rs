//! How the other side is reached.

use downpour::Family;
use downpour::remote::CarrierChoice;

use super::ticket::set_time;
use crate::args::Command::{self, Bootstrap, Complete, Cp, Doctor, Pipe, Proxy, Sync, Tunnel, Verify};
use crate::args::flag::{FLAG, Flag, Section, Takes, value};
use crate::args::{WhenMissing, values};

/// Commands that log in by ssh.
const LOGINS: &[Command] = &[Cp, Sync, Verify, Doctor, Pipe, Tunnel, Proxy, Bootstrap, Complete];
/// Those whose `-h` shows how.
const BRIEF: &[Command] = &[Cp, Sync, Verify, Doctor, Pipe, Bootstrap];
/// Commands that have another downpour started by ssh.
const REMOTES: &[Command] = &[Cp, Sync, Verify, Doctor, Pipe, Tunnel, Proxy];
/// Those that send over UDP or ssh.
const CARRIED: &[Command] = &[Cp, Sync, Verify, Pipe, Tunnel, Proxy];

const OTHER_SIDE: Flag = Flag { section: Section::OtherSide, of: LOGINS, ..FLAG };

const CONNECTION: Flag = Flag { section: Section::Connection, of: REMOTES, ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "ssh-port",
        short: Some('P'),
        takes: Takes::Value(value("PORT", values::number::<u16>)),
        help: "Port of the ssh server",
        brief: &[(BRIEF, "")],
        set: |args, given| args.ssh.port = given.one(),
        ..OTHER_SIDE
    },
    Flag {
        name: "identity",
        short: Some('i'),
        takes: Takes::Value(value("KEY", values::path)),
        help: "Identity file for ssh",
        brief: &[(BRIEF, "")],
        set: |args, given| args.ssh.identity = given.one(),
        ..OTHER_SIDE
    },
    Flag {
        name: "jump",
        short: Some('J'),
        takes: Takes::Value(value("HOST", values::text)),
        help: "Jump host for ssh",
        set: |args, given| args.ssh.jump = given.one(),
        ..OTHER_SIDE
    },
    Flag {
        name: "ssh",
        takes: Takes::Value(value("CMD", values::command)),
        help: "The ssh command, with options [default: ssh]",
        set: |args, given| {
            if let Some(values::SshCommand(words)) = given.one() {
                args.ssh.command = words;
            }
        },
        ..OTHER_SIDE
    },
    Flag {
        name: "remote-bin",
        takes: Takes::Value(value("PATH", values::text)),
        help: "Path of downpour on the remote host [default: downpour]",
        of: REMOTES,
        set: |args, given| args.ssh.remote_program = given.one(),
        ..OTHER_SIDE
    },
    // Whoever scripts all commands alike need not leave it out where it says nothing.
    Flag {
        name: "remote-bin",
        takes: Takes::Value(value("PATH", values::text)),
        help: "Path of downpour on the remote host, which `--to` names here",
        of: &[Bootstrap],
        hidden: true,
        set: |args, given| args.ssh.remote_program = given.one(),
        ..OTHER_SIDE
    },
    Flag {
        name: "bootstrap",
        takes: Takes::Value(
            value("WHEN", || {
                values::choice(&[
                    ("never", "Fail", WhenMissing::Never),
                    ("ask", "Ask, if stdin and stderr are a terminal", WhenMissing::Ask),
                    ("auto", "Copy this program to ~/.local/bin there, and say so", WhenMissing::Auto),
                ])
            })
            .or("ask"),
        ),
        help: "What to do if the remote host has no downpour: nothing, offer to copy this one there, or copy it",
        of: REMOTES,
        set: |args, given| args.when_missing = given.one().unwrap_or_default(),
        ..OTHER_SIDE
    },
    Flag {
        name: "bootstrap",
        takes: Takes::Value(value("WHEN", values::text)),
        help: "What `downpour bootstrap` does in any case",
        of: &[Bootstrap],
        hidden: true,
        ..OTHER_SIDE
    },
    Flag {
        name: "through-here",
        short: Some('3'),
        help: "Between two remote hosts, send all data through this machine",
        more: "Otherwise the first host sends to the second by itself if its own ssh can log in there without asking, and \
               through this machine if not.",
        of: &[Cp, Sync],
        set: |args, _| args.through_here = true,
        ..OTHER_SIDE
    },
    Flag {
        name: "via",
        takes: Takes::Value(
            value("WHAT", || {
                values::choice(&[
                    ("auto", "UDP, falling back to ssh if UDP is blocked", CarrierChoice::Auto),
                    ("udp", "UDP only", CarrierChoice::Udp),
                    ("ssh", "The ssh connection", CarrierChoice::Ssh),
                ])
            })
            .or("auto"),
        ),
        help: "Transport for the data",
        of: CARRIED,
        brief: &[(&[Verify, Pipe, Proxy], "auto, udp or ssh: how the bytes go [default: auto]")],
        set: |args, given| args.path.via = given.one().unwrap_or_default(),
        ..CONNECTION
    },
    Flag {
        name: "port",
        takes: Takes::Value(value("A[:B]", values::ports)),
        help: "UDP port or range of ports for the remote side",
        brief: &[(&[Doctor], "UDP ports there, such as 60000:60010")],
        set: |args, given| args.path.ports = given.one(),
        ..CONNECTION
    },
    Flag {
        name: "ipv4",
        short: Some('4'),
        help: "Use IPv4 only",
        of: &[Cp, Sync, Verify, Doctor, Pipe, Tunnel, Proxy, Bootstrap],
        conflicts: &["ipv6"],
        set: |args, _| args.path.family = Family::V4,
        ..CONNECTION
    },
    Flag {
        name: "ipv6",
        short: Some('6'),
        help: "Use IPv6 only",
        of: &[Cp, Sync, Verify, Doctor, Pipe, Tunnel, Proxy, Bootstrap],
        set: |args, _| args.path.family = Family::V6,
        ..CONNECTION
    },
    Flag {
        name: "timeout",
        takes: Takes::Value(value("TIME", values::time).or("30")),
        help: "Consider the connection broken after this long without a packet",
        of: &[Cp, Sync, Verify, Doctor, Pipe],
        set: |args, given| set_time(&mut args.options.engine.endpoint.dead_after, given.one()),
        ..CONNECTION
    },
    Flag {
        name: "timeout",
        takes: Takes::Value(value("TIME", values::time).or("1d")),
        help: "Consider the connection broken after this long without a packet",
        of: &[Tunnel, Proxy],
        set: |args, given| set_time(&mut args.options.engine.endpoint.dead_after, given.one()),
        ..CONNECTION
    },
    Flag {
        name: "retry-for",
        takes: Takes::Value(value("TIME", values::time)),
        help: "Reconnect for this long after the connection breaks, such as 1h",
        of: &[Cp, Sync, Verify],
        set: |args, given| args.options.retry_for = given.one(),
        ..CONNECTION
    },
];
