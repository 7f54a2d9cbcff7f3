//! What is shown.

use crate::args::Command::{
    self, Bootstrap, Clean, Cp, Demo, Doctor, Pipe, Proxy, Recv, Send, Status, Sync, Tunnel, Verify,
};
use crate::args::ProgressMode;
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const TRANSFERS: &[Command] = &[Cp, Sync, Send, Recv, Verify, Doctor, Demo];

const SHOWN: Flag = Flag { section: Section::Shown, of: TRANSFERS, ..FLAG };

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
        ..SHOWN
    },
    Flag {
        name: "json",
        help: "Print events to stdout as JSON, one object per line",
        more: "Every object has \"v\":1 and a \"type\": start, path, progress, file, notice, summary, finding, checkup, demo, \
               attempt or error.",
        brief: &[(&[Verify, Doctor, Demo], "")],
        set: |args, _| args.output.json = true,
        ..SHOWN
    },
    Flag {
        name: "quiet",
        short: Some('q'),
        help: "Print only errors, the ticket and questions",
        brief: &[(TRANSFERS, "")],
        conflicts: &["verbose"],
        set: |args, _| args.output.quiet = true,
        ..SHOWN
    },
    Flag {
        name: "quiet",
        short: Some('q'),
        help: "Print only errors",
        of: &[Pipe, Tunnel, Proxy, Bootstrap],
        brief: &[(&[Pipe, Proxy, Bootstrap], "")],
        set: |args, _| args.output.quiet = true,
        ..SHOWN
    },
    Flag {
        name: "verbose",
        short: Some('v'),
        help: "Print every file and deletion, addresses and connection statistics",
        brief: &[(TRANSFERS, "Print also files, deletions and figures")],
        set: |args, _| args.output.verbose = true,
        ..SHOWN
    },
    Flag {
        name: "verbose",
        short: Some('v'),
        help: "Print each connection: where to, how long it took to open, its end and its bytes",
        of: &[Tunnel],
        conflicts: &["quiet"],
        set: |args, _| args.output.verbose = true,
        ..SHOWN
    },
    Flag {
        name: "json",
        help: "Print events to stdout as JSON, one object per line",
        more: "Every object has \"v\":1 and a \"type\": tunnel, connection or error.",
        of: &[Tunnel],
        conflicts: &["background", "control"],
        set: |args, _| args.output.json = true,
        ..SHOWN
    },
    Flag {
        name: "json",
        help: "Print JSON, one object per line",
        of: &[Clean, Status],
        set: |args, _| args.output.json = true,
        ..SHOWN
    },
    Flag {
        name: "qlog",
        takes: Takes::Value(value("FILE", values::path)),
        help: "Append a qlog trace of the connection to FILE (JSON-SEQ)",
        of: &[Cp, Sync, Send, Recv, Verify],
        set: |args, given| args.options.qlog = given.one(),
        ..SHOWN
    },
    Flag {
        name: "on-end",
        takes: Takes::Value(value("CMD", values::filled_text)),
        help: "Have sh run CMD when this command ends, also after a failure; DOWNPOUR_EXIT_CODE is the exit code",
        more: "What it prints goes to stderr. It changes nothing of this command's own exit code.",
        of: &[Cp, Sync, Send, Recv, Verify],
        settable: Settable::Typed,
        set: |args, given| args.on_end = given.one(),
        ..SHOWN
    },
    Flag {
        name: "stats",
        help: "Print rsync's numbers at the end, those that are known here",
        of: &[Cp, Sync],
        hidden: true,
        set: |args, _| args.stats = true,
        ..SHOWN
    },
    Flag {
        name: "web",
        help: "Open a live picture of the transfer in the browser",
        more: "Needs downpour-lab, beside downpour or in PATH. Its address is printed to stderr, and the picture ends with \
               the transfer; `downpour-lab web --follow` shows what --qlog has kept.",
        of: &[Cp, Sync],
        set: |args, _| args.web = true,
        ..SHOWN
    },
];
