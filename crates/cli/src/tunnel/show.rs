//! The output of a tunnel, as text and as JSON.

use std::time::Duration;

use downpour::tunnel::{ConnectionEvent, Forward, ForwardAddress, ForwardTarget, PeerEvent, TunnelEvent};

use crate::args::Args;
use crate::escape;
use crate::json::{self, JsonRecord};
use crate::print::{self, err};

/// The amount of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Only the last error.
    Nothing,
    /// Events of the tunnel, and refused connections.
    Usual,
    /// Every connection as well.
    All,
    /// All events as JSON objects.
    Json,
}

impl Verbosity {
    pub(super) const fn of(args: &Args) -> Self {
        match (args.output.json, args.output.verbose, args.output.quiet) {
            (true, ..) => Self::Json,
            (_, true, _) => Self::All,
            (_, _, true) => Self::Nothing,
            _ => Self::Usual,
        }
    }

    /// Shows an event of the side with `--listen`.
    pub(super) fn show_peer(self, event: PeerEvent) {
        if self == Self::Json {
            return json::print(&peer_object(event));
        }
        let line = match event {
            PeerEvent::Joined(number) => format!("tunnel {number} is open"),
            PeerEvent::Left(number, why) => format!("tunnel {number} closed: {why}"),
            PeerEvent::Expired => "ticket expired: no more peers can connect".to_owned(),
            PeerEvent::Connection(number, _, ConnectionEvent::Refused { why }) if self == Self::Usual => {
                format!("tunnel {number}: connection failed: {why}")
            }
            PeerEvent::Connection(number, connection, event) if self == Self::All => {
                format!("tunnel {number}, connection {connection} {}", words(event))
            }
            PeerEvent::Connection(..) => return,
        };
        if self != Self::Nothing {
            err(escape::text(&line));
        }
    }

    pub(super) fn show(self, event: TunnelEvent, host: &str) {
        match self {
            Self::Nothing => {}
            Self::Json => json::print(&object(event)),
            Self::Usual | Self::All => {
                if let Some(line) = self.line(event, host) {
                    print::note(&line);
                }
            }
        }
    }

    fn line(self, event: TunnelEvent, host: &str) -> Option<String> {
        Some(match event {
            TunnelEvent::Note(line) => line,
            TunnelEvent::Listening(forward, port) => {
                let listen = with_port(forward.listen, port);
                match forward.to {
                    ForwardTarget::Place(place) => format!("{listen} forwards to {place} as seen from {host}"),
                    ForwardTarget::Socks => format!("{listen} is a SOCKS proxy through {host}"),
                }
            }
            TunnelEvent::ListeningRemotely(Forward { listen, to }) => match to {
                ForwardTarget::Place(place) => format!("{listen} on {host} forwards to {place} as seen from this host"),
                ForwardTarget::Socks => format!("{listen} on {host} is a SOCKS proxy through this host"),
            },
            TunnelEvent::Metrics(place, port) => match with_port(place, port) {
                ForwardAddress::Tcp { host, port } if host == "*" => {
                    format!("metrics at /metrics on port {port} of all addresses")
                }
                ForwardAddress::Unix(path) => format!("metrics at /metrics on {}", path.display()),
                place => format!("metrics at http://{place}/metrics"),
            },
            TunnelEvent::Open => format!("The tunnel to {host} is open."),
            TunnelEvent::Connection(_, ConnectionEvent::Refused { why }) if self == Self::Usual => {
                format!("connection failed: {why}")
            }
            TunnelEvent::Connection(..) if self == Self::Usual => return None,
            TunnelEvent::Connection(number, event) => format!("connection {number} {}", words(event)),
        })
    }
}

fn words(event: ConnectionEvent) -> String {
    let seconds = |after: Duration| format!("{:.3} s", after.as_secs_f64());
    match event {
        ConnectionEvent::OpenRequested { to, is_from_remote: false } => format!("to {to}"),
        ConnectionEvent::OpenRequested { to, is_from_remote: true } => format!("from the remote host to {to}"),
        ConnectionEvent::Open { after } => format!("opened after {}", seconds(after)),
        ConnectionEvent::Refused { why } => format!("failed: {why}"),
        ConnectionEvent::Closed { sent, received, after, is_cut } => {
            let ended = if is_cut { "reset" } else { "closed" };
            let [sent, received] = [sent, received].map(units::bytes);
            format!("{ended} after {}: {sent} sent, {received} received", seconds(after))
        }
    }
}

/// Returns the address with the port that the system has chosen.
fn with_port(place: ForwardAddress, port: Option<u16>) -> ForwardAddress {
    match (place, port) {
        (ForwardAddress::Tcp { host, port: 0 }, Some(port)) => ForwardAddress::Tcp { host, port },
        (place, _) => place,
    }
}

fn object(event: TunnelEvent) -> JsonRecord<'static> {
    let forwarding = |event, listen: ForwardAddress, to| {
        let to = match to {
            ForwardTarget::Place(place) => Some(place.to_string()),
            ForwardTarget::Socks => None,
        };
        JsonRecord::Tunnel { event, listen: Some(listen.to_string()), to, message: None }
    };
    match event {
        TunnelEvent::Note(line) => {
            JsonRecord::Tunnel { event: "note", listen: None, to: None, message: Some(line.trim_start().to_owned()) }
        }
        TunnelEvent::Listening(Forward { listen, to }, port) => forwarding("listening", with_port(listen, port), to),
        TunnelEvent::ListeningRemotely(Forward { listen, to }) => forwarding("listening_there", listen, to),
        TunnelEvent::Metrics(place, port) => {
            let listen = Some(with_port(place, port).to_string());
            JsonRecord::Tunnel { event: "metrics", listen, to: None, message: None }
        }
        TunnelEvent::Open => JsonRecord::Tunnel { event: "open", listen: None, to: None, message: None },
        TunnelEvent::Connection(number, event) => JsonRecord::Connection(json::ConnectionRecord::new(number, event)),
    }
}

fn peer_object(event: PeerEvent) -> JsonRecord<'static> {
    let tunnel = |event, number, message| JsonRecord::Peer { event, tunnel: number, message };
    match event {
        PeerEvent::Joined(number) => tunnel("joined", Some(number), None),
        PeerEvent::Left(number, why) => tunnel("left", Some(number), Some(why)),
        PeerEvent::Expired => tunnel("expired", None, None),
        PeerEvent::Connection(tunnel, number, event) => {
            JsonRecord::Connection(json::ConnectionRecord::new(number, event).of_tunnel(tunnel))
        }
    }
}
