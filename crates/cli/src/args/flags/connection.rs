//! How the remote host is reached.

use downpour::Family;
use downpour::remote::CarrierChoice;

use super::ticket::set_time;
use crate::args::Command::{self, Bootstrap, Complete, Cp, Doctor, Pipe, Proxy, Sync, Tunnel, Verify};
use crate::args::flag::{FLAG, Flag, Section, Takes, value};
use crate::args::{WhenMissing, values};

/// Commands that log in by ssh.
const LOGINS: &[Command] = &[Cp, Sync, Verify, Doctor, Pipe, Tunnel, Proxy, Bootstrap, Complete];
/// Commands whose `-h` shows the options of ssh.
const BRIEF: &[Command] = &[Cp, Sync, Verify, Doctor, Pipe, Bootstrap];
/// Commands that start a remote downpour through ssh.
const REMOTES: &[Command] = &[Cp, Sync, Verify, Doctor, Pipe, Tunnel, Proxy];
/// Commands that transfer data over UDP or ssh.
const CARRIED: &[Command] = &[Cp, Sync, Verify, Pipe, Tunnel, Proxy];

const REMOTE_HOST: Flag = Flag { section: Section::RemoteHost, of: LOGINS, ..FLAG };

const CONNECTION: Flag = Flag { section: Section::Connection, of: REMOTES, ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "ssh-port",
        short: Some('P'),
        takes: Takes::Value(value("PORT", values::number::<u16>)),
        help: "Port of the ssh server",
        brief: &[(BRIEF, "")],
        set: |args, given| args.ssh.port = given.one(),
        ..REMOTE_HOST
    },
    Flag {
        name: "identity",
        short: Some('i'),
        takes: Takes::Value(value("KEY", values::path)),
        help: "Identity file for ssh",
        brief: &[(BRIEF, "")],
        set: |args, given| args.ssh.identity = given.one(),
        ..REMOTE_HOST
    },
    Flag {
        name: "jump",
        short: Some('J'),
        takes: Takes::Value(value("HOST", values::text)),
        help: "Jump host for ssh",
        set: |args, given| args.ssh.jump = given.one(),
        ..REMOTE_HOST
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
        ..REMOTE_HOST
    },
    Flag {
        name: "remote-bin",
        takes: Takes::Value(value("PATH", values::text)),
        help: "Path of downpour on the remote host [default: downpour]",
        of: REMOTES,
        set: |args, given| args.ssh.remote_program = given.one(),
        ..REMOTE_HOST
    },
    // Scripts can pass the same options to all commands.
    Flag {
        name: "remote-bin",
        takes: Takes::Value(value("PATH", values::text)),
        help: "Ignored: `--to` is the path of the copy",
        of: &[Bootstrap],
        hidden: true,
        set: |args, given| args.ssh.remote_program = given.one(),
        ..REMOTE_HOST
    },
    Flag {
        name: "bootstrap",
        takes: Takes::Value(
            value("WHEN", || {
                values::choice(&[
                    ("never", "Fail", WhenMissing::Never),
                    ("ask", "Ask, if stdin and stderr are a terminal", WhenMissing::Ask),
                    ("auto", "Install it in ~/.local/bin and report it", WhenMissing::Auto),
                ])
            })
            .or("ask"),
        ),
        help: "Whether to install downpour on a remote host that lacks it",
        of: REMOTES,
        set: |args, given| args.when_missing = given.one().unwrap_or_default(),
        ..REMOTE_HOST
    },
    Flag {
        name: "bootstrap",
        takes: Takes::Value(value("WHEN", values::text)),
        help: "Ignored: `downpour bootstrap` always installs",
        of: &[Bootstrap],
        hidden: true,
        ..REMOTE_HOST
    },
    Flag {
        name: "through-here",
        short: Some('3'),
        help: "Between two remote hosts, send all data through this host",
        more: "By default the first host sends directly if its ssh can log in to the second without a prompt, else through this \
               host.",
        of: &[Cp, Sync],
        set: |args, _| args.relay_locally = true,
        ..REMOTE_HOST
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
        brief: &[(&[Verify, Pipe, Proxy], "Transport for the data: auto, udp or ssh [default: auto]")],
        set: |args, given| args.path.via = given.one().unwrap_or_default(),
        ..CONNECTION
    },
    Flag {
        name: "port",
        takes: Takes::Value(value("A[:B]", values::ports)),
        help: "UDP port or range of ports on the remote host",
        brief: &[(&[Doctor], "Remote UDP ports, such as 60000:60010")],
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
        takes: Takes::Value(value("TIME", values::time).or("30s")),
        help: "Give up after TIME without a packet",
        of: &[Cp, Sync, Verify, Doctor, Pipe],
        set: |args, given| set_time(&mut args.options.engine.endpoint.dead_after, given.one()),
        ..CONNECTION
    },
    Flag {
        name: "timeout",
        takes: Takes::Value(value("TIME", values::time).or("1d")),
        help: "Give up after TIME without a packet",
        of: &[Tunnel, Proxy],
        set: |args, given| set_time(&mut args.options.engine.endpoint.dead_after, given.one()),
        ..CONNECTION
    },
    Flag {
        name: "retry-for",
        takes: Takes::Value(value("TIME", values::time)),
        help: "Retry for TIME after the connection is lost, such as 1h",
        of: &[Cp, Sync, Verify],
        set: |args, given| args.options.retry_for = given.one(),
        ..CONNECTION
    },
];
