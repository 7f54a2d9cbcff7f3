//! What `tunnel` and `proxy` carry.

use crate::args::Command::{Proxy, Tunnel};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::{TunnelControl, values};

const FORWARDS: Flag = Flag { section: Section::Forwards, of: &[Tunnel], ..FLAG };

const RUNNING: Flag = Flag { section: Section::WhileItRuns, of: &[Tunnel], ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "local",
        short: Some('L'),
        takes: Takes::Values(value("SPEC", values::local_forward)),
        help: "Listen here, and connect from the remote host: [BIND:]PORT:HOST:PORT, or paths of unix sockets",
        brief: &[(&[Tunnel], "Listen here: [BIND:]PORT:HOST:PORT")],
        set: |args, given| args.tunnel.local = given.all(),
        ..FORWARDS
    },
    Flag {
        name: "remote",
        short: Some('R'),
        takes: Takes::Values(value("SPEC", values::remote_forward)),
        help: "Listen on the remote host, and connect from here; [BIND:]PORT alone is a SOCKS proxy there",
        brief: &[(&[Tunnel], "Listen there, and connect from here")],
        set: |args, given| args.tunnel.remote = given.all(),
        ..FORWARDS
    },
    Flag {
        name: "proxy",
        short: Some('D'),
        takes: Takes::Values(value("[BIND:]PORT", values::proxy_forward)),
        help: "Listen here as a SOCKS proxy, whose names are resolved on the remote host",
        brief: &[(&[Tunnel], "Listen here as a SOCKS proxy")],
        set: |args, given| args.tunnel.proxy = given.all(),
        ..FORWARDS
    },
    Flag {
        name: "eager",
        help: "Tell programs of -D that they are connected before they are, which saves a round trip; what the remote host \
               cannot reach is then reset instead of refused",
        requires: Some("proxy"),
        settable: Settable::Typed,
        set: |args, _| args.tunnel.eager = true,
        ..FORWARDS
    },
    Flag {
        name: "background",
        short: Some('f'),
        help: "Go on in the background once the tunnel is open",
        brief: &[(&[Tunnel], "")],
        settable: Settable::Typed,
        set: |args, _| args.tunnel.background = true,
        ..RUNNING
    },
    Flag {
        name: "persist",
        takes: Takes::Value(value("TIME", values::time)),
        help: "End the tunnel once no connection has been open for this long, such as 10m",
        set: |args, given| args.tunnel.persist = given.one(),
        ..RUNNING
    },
    Flag {
        name: "metrics",
        takes: Takes::Value(value("[BIND:]PORT", values::listening)),
        help: "Serve metrics for Prometheus at http://localhost:PORT/metrics, or at another address of this machine",
        set: |args, given| args.tunnel.metrics = given.one(),
        ..RUNNING
    },
    Flag {
        name: "control",
        short: Some('O'),
        takes: Takes::Value(value("WHAT", || {
            values::choice(&[
                ("check", "Print the process of each", TunnelControl::Check),
                ("exit", "End them", TunnelControl::Exit),
            ])
        })),
        help: "Show the tunnels to this host that run, or end them",
        conflicts: &["local", "remote", "proxy", "eager", "background", "persist", "metrics"],
        settable: Settable::Typed,
        set: |args, given| args.tunnel.control = given.one(),
        ..RUNNING
    },
    Flag {
        name: "in-background",
        help: "This is the process in the background",
        hidden: true,
        settable: Settable::Typed,
        set: |args, _| args.tunnel.in_background = true,
        ..RUNNING
    },
    Flag {
        name: "persist",
        takes: Takes::Value(value("TIME", values::time)),
        help: "Keep the connection for this long after its last use, such as 10m, so that the next login is fast",
        of: &[Proxy],
        brief: &[(&[Proxy], "")],
        set: |args, given| args.tunnel.persist = given.one(),
        ..RUNNING
    },
    Flag {
        name: "in-background",
        help: "This is the process in the background",
        of: &[Proxy],
        hidden: true,
        requires: Some("persist"),
        settable: Settable::Typed,
        set: |args, _| args.tunnel.in_background = true,
        ..RUNNING
    },
];
