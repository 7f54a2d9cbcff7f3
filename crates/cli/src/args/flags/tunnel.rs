//! Options of `tunnel` and `proxy`.

use crate::args::Command::{Proxy, Tunnel};
use crate::args::flag::{FLAG, Flag, Section, Settable, Takes, value};
use crate::args::{TunnelControl, values};

const FORWARDS: Flag = Flag { section: Section::Forwards, of: &[Tunnel], ..FLAG };

const PROCESS: Flag = Flag { section: Section::Process, of: &[Tunnel], ..FLAG };

pub(super) const FLAGS: &[Flag] = &[
    Flag {
        name: "local",
        short: Some('L'),
        takes: Takes::Values(value("SPEC", values::local_forward)),
        help: "Listen on this host, connect from the remote host: [BIND:]PORT:HOST:PORT, or paths of unix sockets",
        brief: &[(&[Tunnel], "Listen on this host: [BIND:]PORT:HOST:PORT")],
        set: |args, given| args.tunnel.local = given.all(),
        ..FORWARDS
    },
    Flag {
        name: "remote",
        short: Some('R'),
        takes: Takes::Values(value("SPEC", values::remote_forward)),
        help: "Listen on the remote host, connect from this host; [BIND:]PORT alone is a SOCKS proxy on the remote host",
        brief: &[(&[Tunnel], "Listen on the remote host")],
        set: |args, given| args.tunnel.remote = given.all(),
        ..FORWARDS
    },
    Flag {
        name: "proxy",
        short: Some('D'),
        takes: Takes::Values(value("[BIND:]PORT", values::proxy_forward)),
        help: "Listen on this host as a SOCKS proxy; the remote host resolves names",
        brief: &[(&[Tunnel], "Listen on this host as a SOCKS proxy")],
        set: |args, given| args.tunnel.proxy = given.all(),
        ..FORWARDS
    },
    Flag {
        name: "eager",
        help: "Report SOCKS connections as open at once, saving a round trip; a connection that fails is then reset instead of \
               refused",
        requires: Some("proxy"),
        settable: Settable::Typed,
        set: |args, _| args.tunnel.eager = true,
        ..FORWARDS
    },
    Flag {
        name: "background",
        short: Some('f'),
        help: "Run in the background once the tunnel is open",
        brief: &[(&[Tunnel], "")],
        settable: Settable::Typed,
        set: |args, _| args.tunnel.background = true,
        ..PROCESS
    },
    Flag {
        name: "persist",
        takes: Takes::Value(value("TIME", values::time)),
        help: "Exit after TIME without an open connection, such as 10m",
        set: |args, given| args.tunnel.persist = given.one(),
        ..PROCESS
    },
    Flag {
        name: "metrics",
        takes: Takes::Value(value("[BIND:]PORT", values::listening)),
        help: "Serve metrics for Prometheus at http://localhost:PORT/metrics, or at another address of this host",
        set: |args, given| args.tunnel.metrics = given.one(),
        ..PROCESS
    },
    Flag {
        name: "control",
        short: Some('O'),
        takes: Takes::Value(value("WHAT", || {
            values::choice(&[
                ("check", "List them with their process ids", TunnelControl::Check),
                ("exit", "Stop them", TunnelControl::Exit),
            ])
        })),
        help: "List or stop the running tunnels to HOST",
        conflicts: &["local", "remote", "proxy", "eager", "background", "persist", "metrics"],
        settable: Settable::Typed,
        set: |args, given| args.tunnel.control = given.one(),
        ..PROCESS
    },
    Flag {
        name: "in-background",
        help: "Be the process in the background",
        hidden: true,
        settable: Settable::Typed,
        set: |args, _| args.tunnel.in_background = true,
        ..PROCESS
    },
    Flag {
        name: "persist",
        takes: Takes::Value(value("TIME", values::time)),
        help: "Keep the connection for TIME after its last use, such as 10m, to make the next login fast",
        of: &[Proxy],
        brief: &[(&[Proxy], "")],
        set: |args, given| args.tunnel.persist = given.one(),
        ..PROCESS
    },
    Flag {
        name: "in-background",
        help: "Be the process in the background",
        of: &[Proxy],
        hidden: true,
        requires: Some("persist"),
        settable: Settable::Typed,
        set: |args, _| args.tunnel.in_background = true,
        ..PROCESS
    },
];
