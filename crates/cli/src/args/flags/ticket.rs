//! Options of connections by ticket.

use std::net::SocketAddr;
use std::time::Duration;

use crate::args::Command::{Recv, Send, Tunnel};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::values;

const TICKET: Flag = Flag { section: Section::Ticket, of: &[Send, Recv], ..FLAG };

const OF_TUNNEL: Flag = Flag { section: Section::Ticket, of: &[Tunnel], ..FLAG };

const TICKET_FILE: Flag = Flag {
    name: "ticket-file",
    takes: Takes::Value(value("FILE", values::path)),
    help: "File to which the listening side writes the ticket (mode 0600) and from which the connecting side reads it",
    brief: &[(&[Send, Recv, Tunnel], "Write the ticket to FILE, or read it")],
    settable: Settable::Typed,
    set: |args, given| args.ticket.file = given.one(),
    ..FLAG
};

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "to",
        takes: Takes::OptionalValueAfterEquals(value("TICKET", values::text)),
        help: "Connect to a `downpour recv --listen`; asks for its ticket",
        more: "The ticket is read from --ticket-file, from DOWNPOUR_TICKET, or from the prompt. --to=TICKET works too, but \
               other users of this host can read the arguments of running programs.",
        of: &[Send],
        brief: &[(&[Send], "Connect to `recv --listen`; asks for its ticket")],
        conflicts: &["listen", "keep"],
        settable: Settable::Typed,
        set: |args, given| args.ticket.to = Some(given.one()),
        ..TICKET
    },
    Flag {
        name: "listen",
        takes: Takes::Value(value("ADDR:PORT", values::listen_address)),
        help: "Address to listen on [default: a free port on all addresses]",
        of: &[Send],
        brief: &[(&[Send], "Address to listen on")],
        set: |args, given| args.ticket.listen = Some(given.one::<SocketAddr>()),
        ..TICKET
    },
    Flag {
        name: "keep",
        help: "Accept more than one receiver, until Ctrl-C or until the ticket expires after an hour",
        of: &[Send],
        settable: Settable::Typed,
        set: |args, _| args.ticket.keep = true,
        ..TICKET
    },
    Flag {
        name: "listen",
        takes: Takes::OptionalValue(value("ADDR:PORT", values::listen_address)),
        help: "Listen for a `downpour send --to` and print a ticket for it",
        of: &[Recv],
        brief: &[(&[Recv], "Listen, and print a ticket to connect with")],
        set: |args, given| args.ticket.listen = Some(given.one::<SocketAddr>()),
        ..TICKET
    },
    Flag { section: Section::Ticket, of: &[Send, Recv], ..TICKET_FILE },
    Flag {
        name: "connect-timeout",
        takes: Takes::Value(value("TIME", values::time).or("10s")),
        help: "How long to wait for an answer when connecting",
        set: |args, given| set_time(&mut args.options.handshake_timeout, given.one()),
        ..TICKET
    },
    Flag {
        name: "timeout",
        takes: Takes::Value(value("TIME", values::time).or("30s")),
        help: "Give up after TIME without a packet",
        set: |args, given| set_time(&mut args.options.engine.endpoint.dead_after, given.one()),
        ..TICKET
    },
    Flag {
        name: "listen",
        takes: Takes::OptionalValue(value("ADDR:PORT", values::listen_address)),
        help: "Print a ticket and accept tunnels from its holders, limited to --permit",
        brief: &[(&[Tunnel], "Listen, and print a ticket to connect with")],
        requires: Some("permit"),
        conflicts: &["local", "remote", "proxy", "control", "persist", "metrics", "eager", "background"],
        set: |args, given| args.ticket.listen = Some(given.one::<SocketAddr>()),
        ..OF_TUNNEL
    },
    Flag {
        name: "permit",
        takes: Takes::Values(value("PLACE", values::permit)),
        help: "Allow ticket holders to connect to HOST:PORT, HOST:*, the path of a unix socket, or any",
        more: "Names are compared as they are requested: `localhost:80` does not permit `127.0.0.1:80`.",
        brief: &[(&[Tunnel], "Allow connections to HOST:PORT, HOST:*, any")],
        requires: Some("listen"),
        settable: Settable::Typed,
        set: |args, given| args.tunnel.permit = given.all(),
        ..OF_TUNNEL
    },
    Flag {
        name: "valid",
        takes: Takes::Value(value("TIME", values::time).or("1h")),
        help: "How long the ticket is valid; open tunnels stay open",
        set: |args, given| set_time(&mut args.tunnel.valid, given.one()),
        ..OF_TUNNEL
    },
    Flag { section: Section::Ticket, of: &[Tunnel], ..TICKET_FILE },
    Flag {
        name: "connect-timeout",
        takes: Takes::Value(value("TIME", values::time).or("10s")),
        help: "How long to wait for an answer when connecting with a ticket",
        set: |args, given| set_time(&mut args.options.handshake_timeout, given.one()),
        ..OF_TUNNEL
    },
];

/// Sets a time, if one was given.
pub(super) fn set_time(time: &mut Duration, given: Option<Duration>) {
    *time = given.unwrap_or(*time);
}
