//! The figures of a tunnel in the text format of Prometheus, version 0.0.4. Names follow its conventions: base units, and
//! `_total` for what only grows.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use net::Stats;
use transport::Rate;

use super::counts::{Figures, Origin, TunnelCounters};
use super::session::Session;

/// The media type of the format.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a number can fall or only grows.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Gauge,
    Counter,
}

impl Session {
    /// Returns its current metrics.
    pub(super) async fn metrics(&self) -> String {
        let mut page = Page::default();
        page.tunnel(&self.counts);
        page.transport(&self.connection.stats().await);
        page.0
    }
}

/// A page of families of metrics.
#[derive(Debug, Default)]
struct Page(String);

impl Page {
    fn tunnel(&mut self, counts: &TunnelCounters) {
        let begun = counts.begun.duration_since(UNIX_EPOCH).unwrap_or_default();
        self.gauge("tunnel_start_time_seconds", "Unix time at which the tunnel opened.", Some(begun.as_secs_f64()));
        self.connections(&counts.connections());
        let traffic = [&counts.traffic.sent, &counts.traffic.received];
        let [sent, received] = traffic.map(|bytes| Some(bytes.load(Ordering::Relaxed)));
        self.counter("tunnel_sent_bytes_total", "Bytes that local programs have sent to the remote host.", sent);
        self.counter(
            "tunnel_received_bytes_total",
            "Bytes that local programs have received from the remote host.",
            received,
        );
    }

    fn connections(&mut self, figures: &[(Origin, Figures); 2]) {
        let mut family = |name: &str, kind, help, count: fn(&Figures) -> u64| {
            let name = format!("tunnel_connections{name}");
            self.family(&name, kind, help, figures.iter().map(|(from, figures)| (label(*from), count(figures))));
        };
        family("_opening", Kind::Gauge, "Connections that wait for a reply.", |figures| figures.opening);
        family("_open", Kind::Gauge, "Open connections.", |figures| figures.open);
        family("_total", Kind::Counter, "Connections that programs have requested.", Figures::total);
        family("_opened_total", Kind::Counter, "Connections that have been open.", |figures| figures.opened);
        self.family(
            "tunnel_connections_ended_total",
            Kind::Counter,
            "Ended connections: both directions completed, reset (cut), or refused.",
            figures.iter().flat_map(|(from, figures)| {
                let outcomes = [("completed", figures.completed), ("cut", figures.cut), ("refused", figures.refused)];
                outcomes.map(|(outcome, count)| (format!("{},outcome=\"{outcome}\"", label(*from)), count))
            }),
        );
    }

    fn transport(&mut self, stats: &Stats) {
        let connection = &stats.connection;
        let [rtt, least] =
            [connection.path.rtt, connection.path.min_rtt].map(|time| time.map(|time| time.as_secs_f64()));
        self.gauge("transport_round_trip_seconds", "Smoothed round-trip time.", rtt);
        self.gauge("transport_min_round_trip_seconds", "Smallest round-trip time.", least);
        let rate = connection.congestion.pacing_rate.map(Rate::bytes_per_second);
        self.gauge("transport_rate_bytes_per_second", "Rate at which packets may leave, with all headers.", rate);
        let loss = Some(connection.path.loss);
        self.gauge("transport_loss_ratio", "Estimated loss towards the remote host, before repair.", loss);
        self.gauge("transport_window_bytes", "Congestion window.", Some(connection.congestion.window));
        self.gauge(
            "transport_in_flight_bytes",
            "Bytes of the window that are in flight.",
            Some(connection.congestion.in_flight),
        );
        for (name, help, count) in [
            ("sent_bytes_total", "Bytes sent, with all headers.", connection.packets.bytes_sent),
            ("received_bytes_total", "Bytes received, with all headers.", connection.packets.bytes_received),
            ("packets_sent_total", "Packets sent.", connection.packets.sent),
            ("packets_received_total", "Packets received.", connection.packets.received),
            ("packets_lost_total", "Packets sent and lost.", connection.packets.lost),
            ("surplus_symbols_total", "Symbols received that were not needed.", connection.symbols.surplus),
            (
                "probe_timeouts_total",
                "Probes sent because no acknowledgement arrived in time.",
                connection.timers.probe_timeouts,
            ),
            ("path_changes_total", "Changes of the remote host's address.", connection.path.changes),
        ] {
            self.counter(&format!("transport_{name}"), help, Some(count));
        }
        let symbols = [
            ("source", connection.symbols.source),
            ("resent", connection.symbols.resent),
            ("repair", connection.symbols.repair),
        ];
        self.family(
            "transport_symbols_sent_total",
            Kind::Counter,
            "Symbols sent: source, retransmitted source (resent), and repair.",
            symbols.map(|(kind, count)| (format!("kind=\"{kind}\""), count)),
        );
        self.family(
            "transport_datagrams_refused_total",
            Kind::Counter,
            "Datagrams that were dropped unread. Anyone can send such datagrams.",
            stats.refused.by_reason().map(|(reason, count)| (format!("reason=\"{reason}\""), count)),
        );
        self.counter(
            "transport_datagrams_overflowed_total",
            "Datagrams that the kernel dropped because the buffer of the socket was full.",
            stats.socket_drops,
        );
    }

    /// Adds a number that can fall, if it is known.
    fn gauge(&mut self, name: &str, help: &str, value: Option<impl Display>) {
        self.family(name, Kind::Gauge, help, value.map(|value| (String::new(), value)));
    }

    /// Adds a number that only grows, if it is known.
    fn counter(&mut self, name: &str, help: &str, value: Option<u64>) {
        self.family(name, Kind::Counter, help, value.map(|value| (String::new(), value)));
    }

    /// Adds a family of samples, each with its labels.
    fn family<V: Display>(
        &mut self,
        name: &str,
        kind: Kind,
        help: &str,
        samples: impl IntoIterator<Item = (String, V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let mut line = |line: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _ = writeln!(self.0, "{line}");
        };
        line(format_args!("# HELP downpour_{name} {help}"));
        line(format_args!("# TYPE downpour_{name} {kind}"));
        for (labels, value) in samples {
            if labels.is_empty() {
                line(format_args!("downpour_{name} {value}"));
            } else {
                line(format_args!("downpour_{name}{{{labels}}} {value}"));
            }
        }
    }
}

/// Returns the label of the side whose program opened a connection.
fn label(from: Origin) -> String {
    let side = match from {
        Origin::Local => "here",
        Origin::Remote => "there",
    };
    format!("from=\"{side}\"")
}
