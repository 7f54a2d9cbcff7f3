//! The options of `link`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use netsim::Duplex;

use crate::exit::{Code, Failure};

pub(super) const EXAMPLES: &str = "\
Examples:
  downpour-lab link --rate 100M --delay 50ms --queue 1bdp --loss 5% --peer 'iperf3 -s -1' -- iperf3 -c peer
  downpour-lab link --rate 12M --delay 10ms -- bash                     (a shell behind that link)
  downpour-lab link --topology dumbbell.toml --peer 'iperf3 -s' --at 'b2=iperf3 -s' --at 'a2=iperf3 -c peer' -- iperf3 -c peer
  downpour-lab link --rate 50M --delay 300ms --backward rate=2M -- ...  (a slow way back)

Delays are one-way. Each option is for both directions; --forward and --backward change one, in the text form of the option names.";

/// The text form of a link without impairments.
const PERFECT: &str = "perfect";

/// Options of `link`.
#[derive(Args, Debug)]
pub struct LinkArgs {
    #[command(flatten)]
    pub(crate) link: LinkOptions,
    /// Shell command to run on the other host; the first command waits until it listens
    #[arg(long, value_name = "COMMAND")]
    pub(crate) peer: Option<String>,
    /// File with a topology of hosts and links; the command runs on the first host of the first pair, --peer on
    /// the second
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
    /// Shell command to run on another host of the topology; may be repeated
    #[arg(long, value_name = "HOST=COMMAND", requires = "topology")]
    pub(crate) at: Vec<String>,
    /// Start without impairments, until a command calls `downpour-lab impair on`
    #[arg(long)]
    pub(crate) unimpaired: bool,
    /// Use segmentation offload, for rates up to 1 Gbit/s and more; needs /dev/net/tun
    ///
    /// The hosts leave segmentation to the interface (TSO, USO), as with a network card. Each packet that a wire would
    /// carry is still queued, lost and counted by itself. Packets that are due within 0.1 ms are delivered together, so
    /// a packet may be late by that much.
    #[arg(long)]
    pub(crate) fast: bool,
    /// Write statistics of the link and the verdict to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print no summary unless the run is invalid
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Command to run on the first host
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A link, option by option.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "The link")]
pub struct LinkOptions {
    /// Rate in IP bits per second: 100M, 1G, 12MB/s [default: unlimited]
    #[arg(long)]
    rate: Option<String>,
    /// One-way delay: 50ms, 1s, 200us
    #[arg(long)]
    delay: Option<String>,
    /// Change the delay at given times: 10s:50ms, or 10s:50ms+20s:5ms
    #[arg(long, value_name = "TIME:TIME")]
    delay_step: Option<String>,
    /// Additional uniform random delay of up to this much per packet, without reordering
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Release packets only at multiples of this time, as Wi-Fi and cellular schedulers do
    #[arg(long, value_name = "TIME")]
    slot: Option<String>,
    /// Additional random delay per packet, with reordering: 5ms (uniform, up to), or exponential:5ms (mean)
    #[arg(long, value_name = "[exponential:]TIME")]
    scatter: Option<String>,
    /// Capacity of the queue: 256KB, 1bdp (bandwidth-delay product) [default: unlimited]
    #[arg(long, value_name = "SIZE")]
    queue: Option<String>,
    /// Capacity of the queue in packets, including the one being sent
    #[arg(long, value_name = "NUMBER")]
    queue_packets: Option<String>,
    /// Use CoDel with this target and interval: 5ms:100ms; it marks ECN-capable packets and drops others
    #[arg(long, value_name = "TIME:TIME")]
    codel: Option<String>,
    /// Use FlowQueue-CoDel instead: a queue for each flow, served in turns, with CoDel for each: 5ms:100ms
    #[arg(long, value_name = "TIME:TIME")]
    fq_codel: Option<String>,
    /// Size of the token bucket: bytes that may leave in a burst after a pause [default: none]
    #[arg(long, value_name = "SIZE")]
    bucket: Option<String>,
    /// Police to this rate and burst before the queue: 20M:50KB
    #[arg(long, value_name = "RATE:SIZE")]
    police: Option<String>,
    /// Random loss rate: 5%
    #[arg(long, value_name = "PROBABILITY")]
    loss: Option<String>,
    /// Change the loss rate at given times: 10s:5%, or 10s:5%+20s:0%
    #[arg(long, value_name = "TIME:PROBABILITY")]
    loss_step: Option<String>,
    /// Mean length of loss bursts in packets (Gilbert-Elliott) [default: independent losses]
    #[arg(long, value_name = "PACKETS")]
    burst: Option<String>,
    /// Reorder by delaying some packets: 1%:2ms
    #[arg(long, value_name = "PROBABILITY:TIME")]
    reorder: Option<String>,
    /// Rate of duplicated packets
    #[arg(long, value_name = "PROBABILITY")]
    duplicate: Option<String>,
    /// Rate of corrupted packets
    #[arg(long, value_name = "PROBABILITY")]
    corrupt: Option<String>,
    /// Rate of ECN-capable packets marked CE
    #[arg(long, value_name = "PROBABILITY")]
    mark: Option<String>,
    /// Mark ECN-capable packets CE while the queue holds more than this
    #[arg(long, value_name = "SIZE")]
    mark_above: Option<String>,
    /// Silently drop packets larger than this
    #[arg(long, value_name = "SIZE")]
    mtu: Option<String>,
    /// Send packets larger than the MTU as IPv4 fragments instead of dropping them: on
    #[arg(long, value_name = "SWITCH")]
    fragment: Option<String>,
    /// Deliver packets at the times of a mahimahi packet-delivery trace instead of at a rate
    #[arg(long, value_name = "FILE")]
    trace: Option<String>,
    /// Outages, in time since the start of the network: 3s..5s, or 3s..5s+8s..9s
    #[arg(long, value_name = "FROM..TO")]
    down: Option<String>,
    /// Change the rate at given times: 10s:20M, or 10s:20M+20s:5M
    #[arg(long, value_name = "TIME:RATE")]
    step: Option<String>,
    /// Seed of all random choices; equal seeds lose the same packets
    #[arg(long, value_name = "NUMBER")]
    seed: Option<String>,
    /// Overrides for the direction from the first host to the second: rate=20M,loss=1%
    #[arg(long, value_name = "KEY=VALUE,...")]
    forward: Option<String>,
    /// Overrides for the reverse direction
    #[arg(long, value_name = "KEY=VALUE,...")]
    backward: Option<String>,
}

impl LinkOptions {
    /// Returns the link they describe.
    ///
    /// # Errors
    /// The first value that [`Duplex`] rejects.
    pub fn duplex(&self) -> Result<Duplex, netsim::TextError> {
        let (forward, backward) = (self.text(self.forward.as_deref()), self.text(self.backward.as_deref()));
        if forward == backward { forward.parse() } else { format!("{forward} / {backward}").parse() }
    }

    /// Rejects these options together with a topology, which has links of its own.
    ///
    /// # Errors
    /// One of them is given.
    pub fn check_beside_topology(&self) -> Result<(), Failure> {
        if self.forward.is_none() && self.backward.is_none() && self.text(None) == PERFECT {
            return Ok(());
        }
        let message = "link options have no effect with --topology: omit them, or change the links in the file";
        Err(Failure::new(Code::Usage, message))
    }

    /// Returns one direction in the text form of links: the options without the keys in `own`, and `own`.
    fn text(&self, own: Option<&str>) -> String {
        let own: Vec<&str> = own.into_iter().flat_map(|text| text.split(',')).collect();
        let options = [
            ("rate", &self.rate),
            ("delay", &self.delay),
            ("delay-step", &self.delay_step),
            ("jitter", &self.jitter),
            ("slot", &self.slot),
            ("scatter", &self.scatter),
            ("queue", &self.queue),
            ("queue-packets", &self.queue_packets),
            ("codel", &self.codel),
            ("fq-codel", &self.fq_codel),
            ("bucket", &self.bucket),
            ("police", &self.police),
            ("loss", &self.loss),
            ("loss-step", &self.loss_step),
            ("burst", &self.burst),
            ("reorder", &self.reorder),
            ("duplicate", &self.duplicate),
            ("corrupt", &self.corrupt),
            ("mark", &self.mark),
            ("mark-above", &self.mark_above),
            ("mtu", &self.mtu),
            ("fragment", &self.fragment),
            ("trace", &self.trace),
            ("down", &self.down),
            ("step", &self.step),
            ("seed", &self.seed),
        ];
        let is_own = |key: &str| own.iter().any(|part| part.split('=').next().is_some_and(|own| own.trim() == key));
        let shared = options
            .into_iter()
            .filter_map(|(key, value)| value.as_ref().filter(|_| !is_own(key)).map(|value| format!("{key}={value}")));
        let parts: Vec<String> = shared.chain(own.iter().map(|&part| part.to_owned())).collect();
        if parts.is_empty() { PERFECT.to_owned() } else { parts.join(",") }
    }
}

/// Options of `impair`.
#[derive(Args, Debug)]
pub struct ImpairArgs {
    /// Whether impairments are active
    pub switch: Switch,
}

/// The state of the impairments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Active.
    On,
    /// Inactive.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Option<String> {
        Some(value.to_owned())
    }

    #[test]
    fn link_options_both_directions_overrides_one() {
        let options = LinkOptions {
            rate: text("100M"),
            delay: text("50ms"),
            loss: text("5%"),
            burst: text("5"),
            backward: text("rate=2M, loss=0%,burst=1"),
            ..LinkOptions::default()
        };
        let expected = "rate=100M,delay=50ms,loss=5%,burst=5 / delay=50ms,rate=2M,loss=0%,burst=1";
        assert_eq!(options.duplex().unwrap(), expected.parse().unwrap());
        assert_eq!(LinkOptions::default().duplex().unwrap(), "perfect".parse().unwrap());
    }
}
