//! What is shown of a tunnel, in words and as JSON.

use std::time::Duration;

use downpour::tunnel::{ConnectionEvent, Forward, ForwardAddress, ForwardTarget, PeerEvent, TunnelEvent};

use crate::args::Args;
use crate::escape;
use crate::json::{self, JsonRecord};
use crate::print::{self, err};

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    /// Nothing but the last error.
    Nothing,
    /// What concerns the tunnel, and refused connections.
    Usual,
    /// Every connection as well.
    All,
    /// The same as objects.
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

    /// Shows what happens where others connect with a ticket.
    pub(super) fn show_guest(self, event: PeerEvent) {
        if self == Self::Json {
            return json::print(&guest(event));
        }
        let line = match event {
            PeerEvent::Joined(number) => format!("tunnel {number} is open"),
            PeerEvent::Left(number, why) => format!("tunnel {number} has ended: {why}"),
            PeerEvent::Expired => "The ticket has expired: nobody else can connect.".to_owned(),
            PeerEvent::Connection(number, _, ConnectionEvent::Refused { why }) if self == Self::Usual => {
                format!("tunnel {number}: no connection: {why}")
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
                    ForwardTarget::Place(place) => format!("{listen} leads to {place}, seen from {host}"),
                    ForwardTarget::Socks => format!("{listen} is a SOCKS proxy at {host}"),
                }
            }
            TunnelEvent::ListeningThere(Forward { listen, to }) => match to {
                ForwardTarget::Place(place) => format!("{listen} of {host} leads to {place}, seen from here"),
                ForwardTarget::Socks => format!("{listen} of {host} is a SOCKS proxy here"),
            },
            TunnelEvent::Metrics(place, port) => match with_port(place, port) {
                ForwardAddress::Tcp { host, port } if host == "*" => {
                    format!("port {port} has the metrics, at /metrics")
                }
                ForwardAddress::Unix(path) => format!("{} has the metrics, at /metrics", path.display()),
                place => format!("the metrics are at http://{place}/metrics"),
            },
            TunnelEvent::Open => format!("The tunnel to {host} is open."),
            TunnelEvent::Connection(_, ConnectionEvent::Refused { why }) if self == Self::Usual => {
                format!("no connection: {why}")
            }
            TunnelEvent::Connection(..) if self == Self::Usual => return None,
            TunnelEvent::Connection(number, event) => format!("connection {number} {}", words(event)),
        })
    }
}

fn words(event: ConnectionEvent) -> String {
    let seconds = |after: Duration| format!("{:.3} s", after.as_secs_f64());
    match event {
        ConnectionEvent::OpenRequested { to, is_from_there: false } => format!("to {to}"),
        ConnectionEvent::OpenRequested { to, is_from_there: true } => format!("from there to {to}"),
        ConnectionEvent::Open { after } => format!("is open after {}", seconds(after)),
        ConnectionEvent::Refused { why } => format!("is refused: {why}"),
        ConnectionEvent::Closed { sent, received, after, is_cut } => {
            let ended = if is_cut { "broke off" } else { "has ended" };
            let [sent, received] = [sent, received].map(units::bytes);
            format!("{ended} after {}: {sent} sent, {received} received", seconds(after))
        }
    }
}

/// Returns the place with the port that the system has chosen.
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
        TunnelEvent::ListeningThere(Forward { listen, to }) => forwarding("listening_there", listen, to),
        TunnelEvent::Metrics(place, port) => {
            let listen = Some(with_port(place, port).to_string());
            JsonRecord::Tunnel { event: "metrics", listen, to: None, message: None }
        }
        TunnelEvent::Open => JsonRecord::Tunnel { event: "open", listen: None, to: None, message: None },
        TunnelEvent::Connection(number, event) => JsonRecord::Connection(json::ConnectionRecord::new(number, event)),
    }
}

fn guest(event: PeerEvent) -> JsonRecord<'static> {
    let tunnel = |event, number, message| JsonRecord::Guest { event, tunnel: number, message };
    match event {
        PeerEvent::Joined(number) => tunnel("joined", Some(number), None),
        PeerEvent::Left(number, why) => tunnel("left", Some(number), Some(why)),
        PeerEvent::Expired => tunnel("expired", None, None),
        PeerEvent::Connection(tunnel, number, event) => {
            JsonRecord::Connection(json::ConnectionRecord::new(number, event).of_tunnel(tunnel))
        }
    }
}
