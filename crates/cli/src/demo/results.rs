//! The results of the demo, as a table for people and as JSON.

use std::fmt;
use std::time::Duration;

use netsim::{Duplex, Rate};
use serde::Serialize;

use super::crossing::CrossingResult;
use super::tcp::TcpResult;
use crate::rate::Both;

/// All measurements of a demo: the last object of `downpour demo --json`.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename = "demo")]
pub(crate) struct Results {
    /// Both directions, in the text form of links.
    link: String,
    /// The sender's fixed rate, in bits of IP packets.
    rate_bits_per_second: u64,
    /// Bytes of the files.
    bytes: u64,
    /// The shortest possible time.
    floor_seconds: f64,
    /// downpour with the fixed rate.
    downpour: MeasuredRun,
    /// TCP with CUBIC on the same link, in the simulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_simulated: Option<TcpRun>,
    /// TCP of this host's kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp_kernel: Option<TcpRun>,
}

/// One transfer.
#[derive(Debug, Serialize)]
struct MeasuredRun {
    /// Time from the first datagram to the receiver's last byte.
    seconds: f64,
    /// Always true: a demo with an incomplete transfer has no results.
    complete: bool,
    /// Bytes of files at the receiver.
    bytes: u64,
    /// IP bytes sent by the sender of the files by then.
    sent_ip_bytes: u64,
    /// Packets of the sender that the link lost at random.
    lost_packets: u64,
    /// Packets of the sender dropped by a full queue.
    queue_full_packets: u64,
    /// 99 of 100 packets left the relay at most this late.
    late_99_seconds: f64,
    /// The latest packet was this late.
    late_most_seconds: f64,
    /// Packets lost at the relay's sockets rather than on the link.
    relay_drops: u64,
    /// Whether the relay emulated the requested link accurately.
    relay_on_time: bool,
}

impl From<&CrossingResult> for MeasuredRun {
    fn from(outcome: &CrossingResult) -> Self {
        let CrossingResult { took, bytes, relay } = outcome;
        Self {
            seconds: took.as_secs_f64(),
            complete: true,
            bytes: *bytes,
            sent_ip_bytes: relay.forward.offered.bytes,
            lost_packets: relay.forward.dropped_random.packets,
            queue_full_packets: relay.forward.dropped_queue_full.packets,
            late_99_seconds: relay.lateness.percentile(99).as_secs_f64(),
            late_most_seconds: relay.lateness.largest().as_secs_f64(),
            relay_drops: relay.kernel_drops,
            relay_on_time: relay.lateness.is_on_time() && relay.kernel_drops == 0,
        }
    }
}

/// A transfer by TCP.
#[derive(Debug, Serialize)]
struct TcpRun {
    /// Time to the receiver's last byte, or until it was stopped.
    seconds: f64,
    /// Whether it was not stopped.
    complete: bool,
    /// Bytes of files at the receiver.
    bytes: u64,
    /// IP bytes sent by the sender by then, if they are counted separately from the receiver's.
    #[serde(skip_serializing_if = "Option::is_none")]
    sent_ip_bytes: Option<u64>,
}

impl From<TcpResult> for TcpRun {
    fn from(result: TcpResult) -> Self {
        let TcpResult { took, bytes, is_complete, sent_ip_bytes } = result;
        Self { seconds: took.as_secs_f64(), complete: is_complete, bytes, sent_ip_bytes }
    }
}

impl Results {
    /// Creates results without the comparison.
    pub(super) fn new(link: &Duplex, rate: Rate, floor: Duration, outcome: &CrossingResult) -> Self {
        Self {
            link: link.to_string(),
            rate_bits_per_second: rate.bits_per_second(),
            bytes: outcome.bytes,
            floor_seconds: floor.as_secs_f64(),
            downpour: outcome.into(),
            tcp_simulated: None,
            tcp_kernel: None,
        }
    }

    /// Adds the results of the simulated TCP.
    pub(super) fn add_simulated(&mut self, result: TcpResult) {
        self.tcp_simulated = Some(result.into());
    }

    /// Adds the results of this kernel's TCP.
    pub(super) fn add_kernel(&mut self, result: TcpResult) {
        self.tcp_kernel = Some(result.into());
    }

    /// Returns a warning if the relay was late, and so did not emulate the requested link.
    pub(super) fn warning(&self) -> Option<String> {
        let run = Some(&self.downpour).filter(|run| !run.relay_on_time)?;
        let late = units::seconds(run.late_99_seconds);
        let mut text = format!("the host was busy: 1 % of downpour's packets left the relay {late} late or later");
        if run.relay_drops > 0 {
            text += &format!(", and {} were lost in it", units::count(run.relay_drops, "packet", "packets"));
        }
        Some(text)
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, name: &str, run: &TcpRun) -> fmt::Result {
        let time = units::seconds(run.seconds);
        let goodput = units::bytes_per_second(run.bytes as f64 / run.seconds.max(1e-9));
        let (time, share) = if run.complete {
            (time, format!("{:.2} x", run.seconds / self.floor_seconds))
        } else {
            let share = run.bytes as f64 / self.bytes.max(1) as f64;
            (format!("> {time}"), format!("stopped at {}", units::percent(share)))
        };
        let sent = run.sent_ip_bytes.filter(|_| run.bytes > 0);
        let sent = sent.map_or_else(String::new, |sent| format!("{:.2}", sent as f64 / run.bytes as f64));
        let row = format!("{name:<18} {time:>14}  {goodput:>11}  {share:>17}  {sent:>5}");
        writeln!(f, "{}", row.trim_end())
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = downpour::Rate::from_bits_per_second(self.rate_bits_per_second);
        writeln!(f, "{} over {}", units::bytes(self.bytes), self.link)?;
        writeln!(f, "fixed rate {}\n", Both(rate))?;
        writeln!(f, "{:<18} {:>14}  {:>11}  {:>17}  {:>5}", "", "time", "goodput", "relative to floor", "sent")?;
        let floor = units::seconds(self.floor_seconds);
        let goodput = units::bytes_per_second(self.bytes as f64 / self.floor_seconds.max(1e-9));
        writeln!(f, "{:<18} {floor:>14}  {goodput:>11}", "floor")?;
        let MeasuredRun { seconds, complete, bytes, sent_ip_bytes, .. } = self.downpour;
        self.row(f, "downpour", &TcpRun { seconds, complete, bytes, sent_ip_bytes: Some(sent_ip_bytes) })?;
        for (name, run) in [("TCP, simulated", &self.tcp_simulated), ("TCP, this kernel", &self.tcp_kernel)] {
            if let Some(run) = run {
                self.row(f, name, run)?;
            }
        }
        let late = units::seconds;
        writeln!(f, "\nfloor: lower bound of the time for this file at this rate, with downpour's headers")?;
        writeln!(f, "sent:  IP bytes of the sender per received byte")?;
        if self.tcp_simulated.is_some() {
            writeln!(f, "TCP:   with CUBIC, without a fixed rate")?;
        }
        let (usual, most) = (late(self.downpour.late_99_seconds), late(self.downpour.late_most_seconds));
        write!(f, "relay: 99 % of the packets at most {usual} late, the latest {most}")
    }
}

#[cfg(test)]
mod tests {
    use netsim::PacketCount;

    use super::*;
    use linkrelay::RelayReport;

    #[test]
    fn results_are_a_table() {
        let link = "rate=100M,delay=50ms,queue=256KB,loss=5%".parse().expect("a link");
        let mut relay = RelayReport::default();
        relay.forward.offered = PacketCount { packets: 1, bytes: 55_000_000 };
        let outcome = CrossingResult { took: Duration::from_millis(4610), bytes: 50_000_000, relay };
        let mut results =
            Results::new(&link, Rate::from_megabits_per_second(100), Duration::from_millis(4573), &outcome);
        let tcp = |millis: u64, bytes: u64| TcpResult {
            took: Duration::from_millis(millis),
            bytes,
            is_complete: bytes == 50_000_000,
            sent_ip_bytes: (bytes == 50_000_000).then_some(bytes * 112 / 100),
        };
        results.add_simulated(tcp(786_000, 50_000_000));
        results.add_kernel(tcp(13_830, 900_000));
        let expected = "\
50 MB over rate=100M,delay=50ms,queue=256KB,loss=5%
fixed rate 100 Mbit/s = 12.5 MB/s

                             time      goodput  relative to floor   sent
floor                      4.57 s    10.9 MB/s
downpour                   4.61 s    10.8 MB/s             1.01 x   1.10
TCP, simulated        13 min 06 s    63.6 kB/s           171.88 x   1.12
TCP, this kernel         > 13.8 s    65.1 kB/s   stopped at 1.8 %

floor: lower bound of the time for this file at this rate, with downpour's headers
sent:  IP bytes of the sender per received byte
TCP:   with CUBIC, without a fixed rate
relay: 99 % of the packets at most 0 s late, the latest 0 s";
        assert_eq!(results.to_string(), expected);
        assert_eq!(results.warning(), None);
        results.downpour.relay_on_time = false;
        assert!(results.warning().is_some_and(|warning| warning.contains("downpour's")));
    }
}
