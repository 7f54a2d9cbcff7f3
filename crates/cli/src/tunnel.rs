//! `downpour tunnel`.

use std::time::Duration;

use downpour::remote::{self, Tunnel, TunnelEvent};
use downpour::tunnel::control::ControlFolder;
use downpour::tunnel::{ConnectionEvent, Destination, Forward, Place};

use crate::args::{Control, TunnelArgs};
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::json::{self, Line};
use crate::print::{err, out};
use crate::{background, escape, options, taken};

/// Keeps a tunnel open until Ctrl-C, SIGTERM or its end, or asks those that are open; returns the exit code. A hang-up ends
/// the process, as it ends ssh.
pub(crate) async fn run(args: TunnelArgs) -> Result<u8, Failure> {
    match args.control {
        Some(what) => control(what, &args.host),
        None if args.background && !args.in_background => background::start("tunnel"),
        None => open(args).await,
    }
}

async fn open(mut args: TunnelArgs) -> Result<u8, Failure> {
    let mut interrupts = taken(Interrupts::without_hang_up())?;
    let tunnel = Tunnel {
        local: args.local.into_iter().chain(args.proxy).collect(),
        remote: args.remote,
        is_eager: args.eager,
        metrics: args.metrics,
        persist: args.persist,
        is_detached: args.in_background,
        is_found: true,
        reach: options::reach_by_tunnel(&mut args.reach, &args.host)?,
    };
    let (host, in_background) = (args.host, args.in_background);
    let shown = match (args.json, args.verbose, args.reach.quiet) {
        (true, ..) => Shown::Json,
        (_, true, _) => Shown::All,
        (_, _, true) => Shown::Nothing,
        _ => Shown::Usual,
    };
    let show = move |event| {
        let is_open = matches!(event, TunnelEvent::Open);
        shown.show(event, &host);
        if is_open && in_background {
            background::ready();
        }
    };
    let mut stopped = None;
    let stop = async {
        let stop = interrupts.next_in_background(in_background).await;
        stopped = Some(stop);
        stop.into()
    };
    let result = remote::tunnel(tunnel, show, stop).await;
    match (result, stopped) {
        (_, Some(stop)) => Err(Failure::stopped(stop)),
        (Err(error), None) => Err(error.into()),
        (Ok(()), None) => Ok(Code::Done as u8),
    }
}

/// Shows or ends the tunnels to `host` that run.
fn control(what: Control, host: &str) -> Result<u8, Failure> {
    let failed = |error| Failure::new(Code::Other, format!("cannot look for tunnels: {error}"));
    let running = ControlFolder::of_user().and_then(|folder| folder.tunnels_to(host)).map_err(failed)?;
    if running.is_empty() {
        return Err(Failure::new(Code::Other, format!("no tunnel to {host} runs")));
    }
    let mut left = Vec::new();
    for tunnel in running {
        let pid = tunnel.pid();
        match what {
            Control::Check => out(format_args!("A tunnel to {host} runs, process {pid}")),
            Control::Exit => match tunnel.end() {
                Ok(()) => out(format_args!("The tunnel to {host} has ended, process {pid}")),
                Err(_) => left.push(pid.to_string()),
            },
        }
    }
    match left.as_slice() {
        [] => Ok(Code::Done as u8),
        left => Err(Failure::new(Code::Other, format!("these processes do not end: {}", left.join(", ")))),
    }
}

/// What is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Nothing but the last error.
    Nothing,
    /// What concerns the tunnel, and refused connections.
    Usual,
    /// Every connection as well.
    All,
    /// The same as objects.
    Json,
}

impl Shown {
    fn show(self, event: TunnelEvent, host: &str) {
        match self {
            Self::Nothing => {}
            Self::Json => json::print(&object(event)),
            Self::Usual | Self::All => {
                if let Some(line) = self.line(event, host) {
                    err(escape::text(&line));
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
                    Destination::Place(place) => format!("{listen} leads to {place}, seen from {host}"),
                    Destination::Socks => format!("{listen} is a SOCKS proxy at {host}"),
                }
            }
            TunnelEvent::ListeningThere(Forward { listen, to }) => match to {
                Destination::Place(place) => format!("{listen} of {host} leads to {place}, seen from here"),
                Destination::Socks => format!("{listen} of {host} is a SOCKS proxy here"),
            },
            TunnelEvent::Metrics(place, port) => match with_port(place, port) {
                Place::Tcp { host, port } if host == "*" => format!("port {port} has the metrics, at /metrics"),
                Place::Unix(path) => format!("{} has the metrics, at /metrics", path.display()),
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
        ConnectionEvent::Wanted { to, is_from_there: false } => format!("to {to}"),
        ConnectionEvent::Wanted { to, is_from_there: true } => format!("from there to {to}"),
        ConnectionEvent::Open { after } => format!("is open after {}", seconds(after)),
        ConnectionEvent::Refused { why } => format!("is refused: {why}"),
        ConnectionEvent::Over { sent, received, after, is_cut } => {
            let ended = if is_cut { "broke off" } else { "has ended" };
            let [sent, received] = [sent, received].map(units::bytes);
            format!("{ended} after {}: {sent} sent, {received} received", seconds(after))
        }
    }
}

/// Returns the place with the port that the system has chosen.
fn with_port(place: Place, port: Option<u16>) -> Place {
    match (place, port) {
        (Place::Tcp { host, port: 0 }, Some(port)) => Place::Tcp { host, port },
        (place, _) => place,
    }
}

fn object(event: TunnelEvent) -> Line<'static> {
    let forwarding = |event, listen: Place, to| {
        let to = match to {
            Destination::Place(place) => Some(place.to_string()),
            Destination::Socks => None,
        };
        Line::Tunnel { event, listen: Some(listen.to_string()), to, message: None }
    };
    match event {
        TunnelEvent::Note(line) => Line::Tunnel { event: "note", listen: None, to: None, message: Some(line) },
        TunnelEvent::Listening(Forward { listen, to }, port) => forwarding("listening", with_port(listen, port), to),
        TunnelEvent::ListeningThere(Forward { listen, to }) => forwarding("listening_there", listen, to),
        TunnelEvent::Metrics(place, port) => {
            let listen = Some(with_port(place, port).to_string());
            Line::Tunnel { event: "metrics", listen, to: None, message: None }
        }
        TunnelEvent::Open => Line::Tunnel { event: "open", listen: None, to: None, message: None },
        TunnelEvent::Connection(number, event) => Line::Connection(json::Connection::new(number, event)),
    }
}
