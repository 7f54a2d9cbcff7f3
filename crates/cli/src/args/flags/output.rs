//! Options of the output.

use crate::args::Command::{
    self, Bootstrap, Clean, Cp, Demo, Doctor, Pipe, Proxy, Recv, Send, Status, Sync, Tunnel, Verify,
};
use crate::args::ProgressMode;
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const TRANSFERS: &[Command] = &[Cp, Sync, Send, Recv, Verify, Doctor, Demo];

const OUTPUT: Flag = Flag { section: Section::Output, of: TRANSFERS, ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "progress",
        takes: Takes::Value(value("HOW", || {
            values::choice(&[
                ("bar", "A progress bar", ProgressMode::Bar),
                ("line", "A line per minute", ProgressMode::Line),
                ("none", "Nothing", ProgressMode::None),
            ])
        })),
        help: "How to show progress [default: bar on a terminal, line otherwise]",
        brief: &[(&[Demo], "bar, line or none [default: bar on a terminal]")],
        set: |args, given| args.output.progress = given.one(),
        ..OUTPUT
    },
    Flag {
        name: "json",
        help: "Print events to stdout as JSON, one object per line",
        more: "Every object has \"v\":1 and a \"type\": start, path, progress, file, notice, summary, finding, checkup, demo, \
               attempt or error.",
        brief: &[(&[Verify, Doctor, Demo], "")],
        set: |args, _| args.output.json = true,
        ..OUTPUT
    },
    Flag {
        name: "quiet",
        short: Some('q'),
        help: "Print only errors, the ticket and questions",
        brief: &[(TRANSFERS, "")],
        conflicts: &["verbose"],
        set: |args, _| args.output.quiet = true,
        ..OUTPUT
    },
    Flag {
        name: "quiet",
        short: Some('q'),
        help: "Print only errors",
        of: &[Pipe, Tunnel, Proxy, Bootstrap],
        brief: &[(&[Pipe, Proxy, Bootstrap], "")],
        set: |args, _| args.output.quiet = true,
        ..OUTPUT
    },
    Flag {
        name: "verbose",
        short: Some('v'),
        help: "Print every file and deletion, addresses and connection statistics",
        brief: &[(TRANSFERS, "Print also files, deletions and statistics")],
        set: |args, _| args.output.verbose = true,
        ..OUTPUT
    },
    Flag {
        name: "verbose",
        short: Some('v'),
        help: "Print each connection: its destination, the time to open it, its bytes and how it ended",
        of: &[Tunnel],
        conflicts: &["quiet"],
        set: |args, _| args.output.verbose = true,
        ..OUTPUT
    },
    Flag {
        name: "json",
        help: "Print events to stdout as JSON, one object per line",
        more: "Every object has \"v\":1 and a \"type\": tunnel, connection or error.",
        of: &[Tunnel],
        conflicts: &["background", "control"],
        set: |args, _| args.output.json = true,
        ..OUTPUT
    },
    Flag {
        name: "json",
        help: "Print JSON, one object per line",
        of: &[Clean, Status],
        set: |args, _| args.output.json = true,
        ..OUTPUT
    },
    Flag {
        name: "qlog",
        takes: Takes::Value(value("FILE", values::path)),
        help: "Append a qlog trace of the connection to FILE (JSON-SEQ)",
        of: &[Cp, Sync, Send, Recv, Verify],
        set: |args, given| args.options.qlog = given.one(),
        ..OUTPUT
    },
    Flag {
        name: "on-end",
        takes: Takes::Value(value("CMD", values::filled_text)),
        help: "Run CMD with sh when this command ends, also after a failure; DOWNPOUR_EXIT_CODE is the exit code",
        more: "The output of CMD goes to stderr. CMD does not change the exit code of this command.",
        of: &[Cp, Sync, Send, Recv, Verify],
        settable: Settable::Typed,
        set: |args, given| args.on_end = given.one(),
        ..OUTPUT
    },
    Flag {
        name: "stats",
        help: "Print rsync's statistics at the end, as far as downpour has them",
        of: &[Cp, Sync],
        hidden: true,
        set: |args, _| args.stats = true,
        ..OUTPUT
    },
    Flag {
        name: "web",
        help: "Show live charts of the transfer in a browser",
        more: "Needs downpour-lab, beside downpour or in PATH. The address is printed to stderr, and the charts end with the \
               transfer; `downpour-lab web --follow` shows a trace of --qlog.",
        of: &[Cp, Sync],
        set: |args, _| args.web = true,
        ..OUTPUT
    },
];
