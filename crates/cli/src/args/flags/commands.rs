//! Operands, and options of single commands.

use std::path::PathBuf;

use downpour::remote::Location;

use super::ticket::set_time;
use crate::args::Command::{
    Bootstrap, Clean, Complete, Completions, Cp, Demo, Doctor, Man, Pipe, ProfileDiff, ProfileShow, Proxy, Recv,
    Remote, Send, Status, Sync, Tunnel, Verify,
};
use crate::args::flag::{FLAG, Flag, Settable, Takes, value};
use crate::args::{DEMO_LINK, values};

const HOST: Flag = Flag {
    name: "host",
    takes: Takes::Operand(value("HOST", values::host)),
    help: "The remote host: [USER@]HOST",
    set: |args, given| args.host = given.one(),
    ..FLAG
};

pub(super) const FLAGS: &[Flag] = &[
    // One operand for all paths: with two operands, options could not be written between the paths.
    Flag {
        name: "paths",
        takes: Takes::Operands(value("PATH", values::location)),
        help: "Sources and destination: PATH or [USER@]HOST:PATH. `dir/` copies the contents of a directory, `dir` the \
               directory itself",
        of: &[Cp, Sync],
        brief: &[(&[Cp, Sync], "[USER@]HOST:PATH or PATH; `dir/` means its contents")],
        set: |args, given| args.places = given.all(),
        ..FLAG
    },
    Flag {
        name: "a",
        takes: Takes::Operand(value("A", values::location)),
        help: "PATH or [USER@]HOST:PATH",
        of: &[Verify],
        brief: &[(&[Verify], "")],
        set: |args, given| args.places.extend(given.one::<Location>()),
        ..FLAG
    },
    Flag {
        name: "b",
        takes: Takes::Operand(value("B", values::location)),
        help: "PATH or [USER@]HOST:PATH to compare with",
        of: &[Verify],
        brief: &[(&[Verify], "")],
        set: |args, given| args.places.extend(given.one::<Location>()),
        ..FLAG
    },
    Flag {
        name: "paths",
        takes: Takes::Operands(value("PATH", values::path)),
        help: "Files and directories to send; a trailing slash sends the contents of a directory, and - sends stdin",
        of: &[Send],
        brief: &[(&[Send], "Files and directories; `dir/` means its contents, - stdin")],
        set: |args, given| args.paths = given.all(),
        ..FLAG
    },
    Flag {
        name: "name",
        takes: Takes::Value(value("NAME", values::os_text)),
        help: "Name of the stream that `send -` reads from stdin [default: stdin]",
        more: "The receiver stores the stream under this name once it is complete, or writes it to stdout (`downpour recv -`). \
               It has one receiver and cannot be resumed.",
        of: &[Send],
        brief: &[(&[Send], "Name of the stream from stdin [default: stdin]")],
        settable: Settable::Typed,
        set: |args, given| args.stream_name = given.one(),
        ..FLAG
    },
    Flag {
        name: "given",
        takes: Takes::OptionalOperands(value("TICKET", values::text)),
        help: "The ticket (safer at the prompt, in --ticket-file or in DOWNPOUR_TICKET); - writes the received data to stdout",
        more: "With -, one file or the stream of a `downpour send -` is written to stdout without confirmation. A stream is \
               written as it arrives: it is complete only if this command succeeds.\n\nOther users of this host can read \
               the arguments of running programs.",
        of: &[Recv],
        brief: &[(&[Recv], "The ticket, safer at the prompt; - writes to stdout")],
        conflicts: &["listen"],
        set: |args, given| args.words = given.all(),
        ..FLAG
    },
    Flag { of: &[Doctor, Pipe, Bootstrap], brief: &[(&[Doctor, Pipe, Bootstrap], "")], ..HOST },
    Flag { takes: Takes::Operand(value("HOST", values::plain_host)), of: &[Proxy], brief: &[(&[Proxy], "")], ..HOST },
    Flag {
        takes: Takes::OptionalOperand(value("HOST", values::host)),
        help: "The remote host: [USER@]HOST; omit it to connect with a ticket",
        of: &[Tunnel],
        brief: &[(&[Tunnel], "[USER@]HOST; omit it to connect with a ticket")],
        conflicts: &["listen", "ticket-file"],
        ..HOST
    },
    Flag {
        name: "target",
        takes: Takes::OptionalOperand(value("DIR", values::remote_path)),
        help: "Remote directory whose disk is measured [default: the home directory]",
        of: &[Doctor],
        brief: &[(&[Doctor], "Remote directory whose disk is measured")],
        set: |args, given| args.paths.extend(given.one::<PathBuf>()),
        ..FLAG
    },
    Flag {
        name: "size",
        takes: Takes::Value(value("SIZE", values::size)),
        help: "Estimate the time of a transfer of this size [default: a few common sizes]",
        of: &[Doctor],
        brief: &[(&[Doctor], "")],
        set: |args, given| args.size = given.one(),
        ..FLAG
    },
    Flag {
        name: "command",
        takes: Takes::Rest(value("CMD", values::text)),
        help: "Command to run on the remote host, as with ssh, with all its arguments",
        of: &[Pipe],
        brief: &[(&[Pipe], "Remote command with all its arguments")],
        set: |args, given| args.words = given.all(),
        ..FLAG
    },
    Flag {
        name: "server-port",
        takes: Takes::OptionalOperand(value("PORT", values::port)),
        help: "ssh port of HOST, for the login and the proxied connection [default: 22]",
        of: &[Proxy],
        brief: &[(&[Proxy], "ssh port of HOST [default: 22]")],
        set: |args, given| args.server_port = given.one(),
        ..FLAG
    },
    Flag {
        name: "to",
        takes: Takes::Value(value("PATH", values::filled_text)),
        help: "Path of the copy on HOST [default: ~/.local/bin/downpour]",
        of: &[Bootstrap],
        brief: &[(&[Bootstrap], "")],
        settable: Settable::Typed,
        set: |args, given| args.bootstrap.to = given.one(),
        ..FLAG
    },
    Flag {
        name: "from",
        takes: Takes::Value(value("FILE", values::path)),
        help: "Binary to copy, if HOST needs another one [default: this one]",
        of: &[Bootstrap],
        brief: &[(&[Bootstrap], "")],
        settable: Settable::Typed,
        set: |args, given| args.bootstrap.from = given.one(),
        ..FLAG
    },
    Flag {
        name: "directories",
        takes: Takes::OptionalOperands(value("DIR", values::path)),
        help: "Directories to search [default: the current one and ~/.cache/downpour/staging]",
        of: &[Clean],
        set: |args, given| args.paths = given.all(),
        ..FLAG
    },
    Flag {
        name: "search-below",
        short: Some('r'),
        help: "Search their subdirectories on the same file system, too",
        of: &[Clean],
        settable: Settable::Typed,
        set: |args, _| args.clean.search_below = true,
        ..FLAG
    },
    Flag {
        name: "remove",
        help: "Delete the listed directories, except those in use",
        of: &[Clean],
        settable: Settable::Typed,
        set: |args, _| args.clean.remove = true,
        ..FLAG
    },
    Flag {
        name: "older-than",
        takes: Takes::Value(value("TIME", values::time)),
        help: "List only directories that were not used for TIME, such as 30d",
        of: &[Clean],
        settable: Settable::Typed,
        set: |args, given| set_time(args.clean.older_than.get_or_insert_default(), given.one()),
        ..FLAG
    },
    Flag {
        name: "pid",
        takes: Takes::OptionalOperand(value("PID", values::number::<u32>)),
        help: "Show only the transfer of process PID",
        of: &[Status],
        set: |args, given| args.pid = given.one(),
        ..FLAG
    },
    Flag {
        name: "path",
        takes: Takes::OptionalOperand(value("PATH", values::path)),
        help: "The file or directory to send [default: a generated file]",
        of: &[Demo],
        brief: &[(&[Demo], "File or directory to send [default: a generated file]")],
        conflicts: &["size"],
        set: |args, given| args.paths.extend(given.one::<PathBuf>()),
        ..FLAG
    },
    Flag {
        name: "size",
        takes: Takes::Value(value("SIZE", values::size).or("50MB")),
        help: "Size of the generated file",
        of: &[Demo],
        brief: &[(&[Demo], "")],
        set: |args, given| args.size = given.one(),
        ..FLAG
    },
    Flag {
        name: "link",
        takes: Takes::Value(value("LINK", values::link).or(DEMO_LINK)),
        help: "The link: KEY=VALUE,..., or one for each direction, separated by ` / `",
        more: "Keys: rate, delay, jitter, queue, loss, burst, reorder, duplicate, corrupt, mark, mark-above, seed. The delay \
               is one-way.",
        of: &[Demo],
        brief: &[(&[Demo], "Such as rate=100M,delay=50ms,loss=5%,queue=256KB")],
        set: |args, given| args.link = given.one(),
        ..FLAG
    },
    Flag {
        name: "no-compare",
        help: "Skip the comparison with TCP",
        of: &[Demo],
        brief: &[(&[Demo], "")],
        set: |args, _| args.no_compare = true,
        ..FLAG
    },
    Flag {
        name: "profile",
        takes: Takes::OptionalOperand(value("NAME|FILE", values::profile).or("auto")),
        help: "Name or file of a profile",
        of: &[ProfileShow],
        set: |args, given| args.profiles = given.all(),
        ..FLAG
    },
    Flag {
        name: "allowed",
        help: "Also print the allowed range of each setting",
        of: &[ProfileShow],
        set: |args, _| args.allowed = true,
        ..FLAG
    },
    Flag {
        name: "first",
        takes: Takes::Operand(value("NAME|FILE", values::profile)),
        help: "Name or file of a profile",
        of: &[ProfileDiff],
        set: |args, given| args.profiles.extend(given.one()),
        ..FLAG
    },
    Flag {
        name: "second",
        takes: Takes::Operand(value("NAME|FILE", values::profile)),
        help: "Name or file of a profile",
        of: &[ProfileDiff],
        set: |args, given| args.profiles.extend(given.one()),
        ..FLAG
    },
    Flag {
        name: "shell",
        takes: Takes::Operand(value("SHELL", values::shell)),
        help: "The shell",
        of: &[Completions],
        set: |args, given| args.shell = given.one(),
        ..FLAG
    },
    Flag {
        name: "command",
        takes: Takes::OptionalOperands(value("COMMAND", values::text)),
        help: "Command whose page is shown [default: the page of the program]",
        of: &[Man],
        conflicts: &["write"],
        set: |args, given| args.words = given.all(),
        ..FLAG
    },
    Flag {
        name: "write",
        takes: Takes::Value(value("DIR", values::directory)),
        help: "Write all pages (downpour.1, downpour-cp.1, ...) to this directory",
        of: &[Man],
        settable: Settable::Typed,
        set: |args, given| args.paths.extend(given.one::<PathBuf>()),
        ..FLAG
    },
    Flag {
        name: "command",
        takes: Takes::Operand(value("COMMAND", values::text)),
        help: "The command on the line",
        of: &[Complete],
        set: |args, given| args.words.extend(given.one::<String>()),
        ..FLAG
    },
    Flag {
        name: "word",
        takes: Takes::Operand(value("WORD", values::os_text).with_hyphens()),
        help: "The word to complete",
        of: &[Complete],
        set: |args, given| args.word = given.one().unwrap_or_default(),
        ..FLAG
    },
    Flag {
        name: "only",
        takes: Takes::Value(value("DIR", values::path)),
        help: "Restrict this login to DIR: nothing outside is read or written, and `pipe` is not allowed",
        more: "DIR is the home directory of this login: relative paths and ~ start there. Absolute paths must begin with DIR. \
               Symbolic links that leave DIR are not followed.",
        of: &[Remote],
        settable: Settable::Typed,
        set: |args, given| args.remote.only = given.one(),
        ..FLAG
    },
    Flag {
        name: "read-only",
        help: "Only send from DIR, and change nothing",
        of: &[Remote],
        requires: Some("only"),
        conflicts: &["write-only"],
        settable: Settable::Typed,
        set: |args, _| args.remote.read_only = true,
        ..FLAG
    },
    Flag {
        name: "write-only",
        help: "Only receive into DIR, and send nothing; existing files can be replaced and compared",
        of: &[Remote],
        requires: Some("only"),
        settable: Settable::Typed,
        set: |args, _| args.remote.write_only = true,
        ..FLAG
    },
    Flag {
        name: "digest",
        help: "Print the BLAKE3 digest of this program, with which `bootstrap` verifies its copy",
        of: &[Remote],
        conflicts: &["only", "read-only", "write-only"],
        settable: Settable::Typed,
        set: |args, _| args.remote.digest = true,
        ..FLAG
    },
];
