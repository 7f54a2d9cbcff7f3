//! Advice on making transfers faster, or possible: only what applies, each with the command to run.

use std::ops::RangeInclusive;

use downpour::remote::doctor::{Checkup, ForecastLimit, Side, Traffic, Udp};
use serde::Serialize;

/// Ports to open in a firewall if the user has named none, from the range that no system assigns automatically
/// (RFC 6335).
const PORTS: RangeInclusive<u16> = 44_000..=44_009;

/// Queues count as long if load multiplies the round-trip time by this factor and also adds this many seconds.
const LONG_QUEUE: f64 = 3.0;
const LONG_QUEUE_SECONDS: f64 = 0.1;

/// Loss from which a fixed rate may exceed the capacity, and from which controllers other than `auto` get little. Chosen: a
/// controller that treats all loss as congestion gets some 10 Mbit/s at a loss of 0.1 % and 50 ms.
const LOSSY_RATE: f64 = 0.01;
const LOSSY_CONTROL: f64 = 0.001;

/// Options of commands express rates from so many bits per second on in whole megabits, others in kilobits.
const WHOLE_MEGABITS: f64 = 1e7;

/// Share of a core's time spent waiting from which other work is in the way.
const CROWDED: f64 = 0.2;

/// Files per second below which a disk is slow at creating small files.
const SLOW_FILES: u64 = 1_000;

/// A recommended action.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Advice {
    /// The host to act on.
    pub(crate) side: Side,
    /// The problem, in a few words.
    pub(crate) why: String,
    /// The command to run.
    pub(crate) command: String,
}

/// Options that the user has given to the doctor.
#[derive(Debug, Default)]
pub(super) struct Requested {
    /// The ports that may be used.
    pub(super) ports: Option<RangeInclusive<u16>>,
    /// The bytes of the planned transfer.
    pub(super) size: Option<u64>,
}

/// Returns advice on making transfers faster or possible, the most important first.
pub(super) fn advise(checkup: &Checkup, requested: &Requested) -> Vec<Advice> {
    let mut advice = Vec::new();
    let mut add = |side, why: String, command: String| advice.push(Advice { side, why, command });
    for side in [Side::Remote, Side::Local] {
        space(side, checkup, requested, &mut add);
    }
    udp(checkup, requested, &mut add);
    for side in [Side::Local, Side::Remote] {
        socket(side, checkup, &mut add);
    }
    for (way, traffic) in [("up", &checkup.up), ("down", &checkup.down)] {
        if let Some(traffic) = traffic.as_ref().filter(|_| !checkup.over_ssh) {
            control(way, traffic, checkup, &mut add);
            queue(way, traffic, checkup, &mut add);
        }
    }
    for side in [Side::Local, Side::Remote] {
        machine(side, checkup, &mut add);
    }
    if checkup.local.version != checkup.remote.version {
        let why = format!("different versions of downpour: {} and {}", checkup.local.version, checkup.remote.version);
        let install = "'mkdir -p .local/bin && cat >.local/bin/downpour.new && chmod +x .local/bin/downpour.new && mv .local/bin/downpour.new .local/bin/downpour'";
        let command = format!("ssh {} {install} <\"$(command -v downpour)\"", checkup.host);
        add(Side::Local, why, command);
    }
    advice
}

type Add<'a> = dyn FnMut(Side, String, String) + 'a;

/// A disk without enough space for the transfer.
fn space(side: Side, checkup: &Checkup, requested: &Requested, add: &mut Add<'_>) {
    let disk = &checkup.machine(side).disk;
    if let (Some(free), Some(size)) = (disk.free, requested.size)
        && free < size
    {
        let why = format!("not enough space for {}: only {} free", units::bytes(size), units::bytes(free));
        add(side, why, format!("df -h {}", quoted(&disk.directory)));
    }
}

/// Blocked UDP, or a path for small datagrams only.
fn udp(checkup: &Checkup, requested: &Requested, add: &mut Add<'_>) {
    match &checkup.udp {
        Udp::Closed { arrived: false, .. } => {
            let ports = requested.ports.clone().unwrap_or(PORTS);
            let (first, last) = (ports.start(), ports.end());
            let (ufw, nft, option) = if first == last {
                (first.to_string(), first.to_string(), first.to_string())
            } else {
                (format!("{first}:{last}"), format!("{first}-{last}"), format!("{first}:{last}"))
            };
            let why = format!("firewall blocks UDP: open the ports, then use `--port {option}`");
            let command = format!(
                "sudo ufw allow {ufw}/udp   # or: sudo nft insert rule inet filter input udp dport {nft} accept"
            );
            add(Side::Remote, why, command);
        }
        Udp::Closed { arrived: true, .. } => {
            let why = "datagrams arrive, but replies are lost: allow replies".to_owned();
            let command = "sudo nft insert rule inet filter input ct state established,related accept".to_owned();
            add(Side::Local, why, command);
        }
        Udp::Open { address, datagram, largest_tried, .. } if datagram < largest_tried => {
            let why = format!("only small datagrams pass ({datagram} bytes): find the hop with the small MTU");
            add(Side::Local, why, format!("tracepath -n {}", address.ip()));
        }
        Udp::Open { .. } | Udp::Unclear => {}
    }
}

/// Socket buffers that are smaller than requested.
fn socket(side: Side, checkup: &Checkup, add: &mut Add<'_>) {
    let machine = checkup.machine(side);
    let Some(socket) = &machine.socket else { return };
    let queues = [("rmem_max", socket.receive_buffer), ("wmem_max", socket.send_buffer)];
    let short: Vec<_> = queues.into_iter().filter(|(_, buffer)| buffer.granted < buffer.asked).collect();
    if let Some((_, buffer)) = short.first() {
        let why = format!(
            "UDP socket buffers are {} instead of {}: bursts will be dropped",
            units::bytes(buffer.granted as u64),
            units::bytes(buffer.asked as u64)
        );
        let settings: Vec<String> =
            short.iter().map(|(name, buffer)| format!("net.core.{name}={}", buffer.asked)).collect();
        add(side, why, format!("sudo sysctl -w {}", settings.join(" ")));
    }
    if socket.send_segments == 1 || socket.receive_segments == 1 {
        let why =
            format!("{} sends or receives one datagram per call: Linux 5.0 and later handle many", machine.system);
        add(side, why, "uname -r".to_owned());
    }
}

/// A fixed rate that may exceed the capacity, or a controller that may treat random loss as congestion.
fn control(way: &str, traffic: &Traffic, checkup: &Checkup, add: &mut Add<'_>) {
    let Traffic { control, loss, .. } = traffic;
    let (with, lossy) = match traffic.set_bits_per_second {
        Some(rate) => (format!("at the fixed rate of {}", units::scaled(rate as f64, "bit/s")), LOSSY_RATE),
        None => (format!("with {control}"), LOSSY_CONTROL),
    };
    if control == "auto" || *loss < lossy {
        return;
    }
    let lost = units::percent(*loss);
    let why = format!("{way}: {lost} loss {with}: compare with auto");
    add(Side::Local, why, format!("downpour doctor --set congestion=auto {}", checkup.host));
}

/// A queue that transfers fill.
fn queue(way: &str, traffic: &Traffic, checkup: &Checkup, add: &mut Add<'_>) {
    if let (Some(loaded), Some(min)) = (traffic.loaded_rtt, checkup.min_rtt)
        && loaded > LONG_QUEUE * min
        && loaded > min + LONG_QUEUE_SECONDS
    {
        let why =
            format!("{way}: full speed raises the RTT to {} for all traffic: use --limit", units::seconds(loaded));
        let rate = 0.9 * traffic.rate_bits_per_second as f64;
        add(Side::Local, why, format!("downpour cp --limit {} ...", option_rate(rate)));
    }
}

/// Advice from the figures of a host.
fn machine(side: Side, checkup: &Checkup, add: &mut Add<'_>) {
    let disk = &checkup.machine(side).disk;
    let waiting = waiting(side, checkup);
    if waiting > CROWDED {
        let share = units::percent(waiting);
        let why = format!("CPU busy: downpour waits for a core {share} of the time");
        add(side, why, "top -b -n 1 | head -n 17".to_owned());
    }
    let verdicts = [&checkup.verdict.up, &checkup.verdict.down];
    if verdicts.into_iter().flatten().any(|speed| speed.bottleneck == ForecastLimit::Disk(side)) {
        let why = "disk slower than the network: check for other programs that use it".to_owned();
        add(side, why, "iostat -x 1 3".to_owned());
    }
    if disk.small_files.is_some_and(|rate| rate < SLOW_FILES) {
        let why = "disk creates files slowly: pack small files into one".to_owned();
        let (from, to) = match side {
            Side::Remote => ("tar -cf - DIRECTORY".to_owned(), format!("downpour pipe {} 'tar -xf -'", checkup.host)),
            Side::Local => (format!("ssh {} 'tar -cf - DIRECTORY'", checkup.host), "tar -xf -".to_owned()),
        };
        add(side, why, format!("{from} | {to}"));
    }
}

/// Returns the larger share of time in which a side's network thread waited for a core.
fn waiting(side: Side, checkup: &Checkup) -> f64 {
    let (sends, takes) = match side {
        Side::Local => (&checkup.up, &checkup.down),
        Side::Remote => (&checkup.down, &checkup.up),
    };
    let sending = sends.as_ref().and_then(|traffic| traffic.sender);
    let taking = takes.as_ref().and_then(|traffic| traffic.receiver);
    [sending, taking].into_iter().flatten().map(|share| share.waiting).fold(0.0, f64::max)
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Formats a rate as the program's options take it: whole megabits, or kilobits below ten megabits.
fn option_rate(bits: f64) -> String {
    if bits >= WHOLE_MEGABITS { format!("{:.0}M", bits / 1e6) } else { format!("{:.0}K", (bits / 1e3).max(1.0)) }
}

#[cfg(test)]
mod tests;
