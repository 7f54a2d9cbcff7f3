//! Formats a checkup as text.

use std::fmt::{self, Display, Formatter};

use net::SocketInfo;
use transport::SendLimit;
use units::{bytes, grouped, percent, scaled, seconds};

use super::checkup::{Checkup, Finding, Side, Udp};
use super::checkup::{Forecast, ForecastLimit, Speed};
use super::disk::Disk;
use super::machine::{Core, Machine};
use super::meter::Traffic;

/// Maximum number of lines of a checkup.
#[cfg(any(test, fuzzing))]
pub(super) const MAX_LINES: usize = 20;

/// Tasks per core from which a host is called busy.
const BUSY: f64 = 1.0;

fn bits(rate: u64) -> String {
    scaled(rate as f64, "bit/s")
}

fn bytes_per_second(rate: Option<u64>) -> String {
    rate.map_or_else(|| "unknown".to_owned(), |rate| units::bytes_per_second(rate as f64))
}

impl Display for Side {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Local => "local",
            Self::Remote => "remote",
        })
    }
}

impl Display for Udp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { address, datagram, packet, largest_tried, min_rtt } => {
                write!(f, "open both ways at {address}; datagrams of {datagram} bytes pass (IP packets of {packet})")?;
                if datagram < largest_tried {
                    write!(f, ", {largest_tried} do not")?;
                }
                min_rtt.map_or(Ok(()), |rtt| write!(f, "; idle RTT {}", seconds(rtt)))
            }
            Self::Closed { port, waited, arrived, hint } => {
                write!(f, "BLOCKED: no answer from port {port} within {waited:.0} s")?;
                if *arrived {
                    f.write_str("; datagrams arrive, replies are lost")?;
                }
                hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
            }
            Self::Unclear => f.write_str("the port answers, but the probe failed"),
        }
    }
}

impl Display for Traffic {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (goodput, arrived) = (scaled(self.goodput as f64, "B/s"), bits(self.rate_bits_per_second));
        match self.set_bits_per_second {
            Some(rate) => write!(f, "fixed rate {}: {arrived} arrive ({goodput} of files)", bits(rate))?,
            None => write!(f, "{goodput} of files with {} ({arrived} arrive)", self.control)?,
        }
        write!(f, ", {} lost", percent(self.loss))?;
        if self.marked > 0.0 {
            write!(f, ", {} marked", percent(self.marked))?;
        }
        if self.ecn == Some(false) {
            f.write_str(", ECN marks erased")?;
        }
        if let Some(rtt) = self.loaded_rtt {
            write!(f, ", RTT {} under load", seconds(rtt))?;
        }
        f.write_str(match self.limited_by {
            SendLimit::Nothing => "",
            SendLimit::Window | SendLimit::Pacing if self.set_bits_per_second.is_some() => "",
            SendLimit::Window | SendLimit::Pacing => "; limited by congestion control",
            SendLimit::Source => "; limited by the sender's CPU",
            SendLimit::Receiver => "; limited by the receiver's CPU",
        })
    }
}

impl Display for Machine {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plural = if self.cores == 1 { "" } else { "s" };
        write!(f, "downpour {}, {}, {} core{plural}", self.version, self.system, self.cores)?;
        match self.load {
            Some(load) if load > BUSY * f64::from(self.cores) => write!(f, ", BUSY (load {load:.1})"),
            _ => Ok(()),
        }
    }
}

impl Display for Core {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [aes, chacha, blake3] = [self.aes_256_gcm, self.chacha20_poly1305, self.blake3];
        let rate = |rate: u64| scaled(rate as f64, "B/s");
        write!(f, "per core: AES {}, ChaCha20 {}, BLAKE3 {}", rate(aes), rate(chacha), rate(blake3))
    }
}

impl Display for Disk {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (write, read) = (bytes_per_second(self.write), bytes_per_second(self.read));
        f.write_str(&self.directory)?;
        if let Some(absent) = &self.absent {
            write!(f, " ({absent} does not exist)")?;
        }
        write!(f, ": writes {write}, reads {read}")?;
        if let Some(rate) = self.small_files {
            write!(f, ", {} small files/s", grouped(rate))?;
        }
        if let Some(free) = self.free {
            write!(f, ", {} free", bytes(free))?;
        }
        self.trouble.as_ref().map_or(Ok(()), |trouble| write!(f, " ({trouble})"))
    }
}

fn socket(socket: &SocketInfo) -> String {
    let offload = |segments| if segments > 1 { format!("{segments} at once") } else { "one by one".to_owned() };
    format!(
        "sends {}, receives {}; socket buffers: send {}, receive {}; ECN {}",
        offload(socket.send_segments),
        offload(socket.receive_segments),
        bytes(socket.send_buffer.granted as u64),
        bytes(socket.receive_buffer.granted as u64),
        if socket.ecn { "on" } else { "off" }
    )
}

impl Display for Finding {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reached { host } => write!(f, "ssh     {host} runs downpour"),
            Self::Udp(udp) => write!(f, "UDP     {udp}"),
            Self::Traffic { up, traffic } => write!(f, "{:<7} {traffic}", if *up { "up" } else { "down" }),
            Self::Machine { side, machine } => write!(f, "{side:<7} {machine}; disk {}", machine.disk),
        }
    }
}

impl Display for ForecastLimit {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network => f.write_str("the network"),
            Self::ConfiguredRate => f.write_str("the configured rate"),
            Self::Ssh => f.write_str("ssh"),
            Self::Cpu(side) => write!(f, "{side} CPU"),
            Self::Disk(side) => write!(f, "{side} disk"),
        }
    }
}

impl Display for Forecast {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let transfer = match self.files {
            1 => bytes(self.bytes),
            files => format!("{} files of {}", grouped(files), bytes(self.bytes / files)),
        };
        let time = |time: Option<f64>| time.map_or_else(|| "unknown".to_owned(), seconds);
        write!(f, "{transfer:<24} {:<13} {}", time(self.up), time(self.down))
    }
}

impl Display for Checkup {
    // At most `MAX_LINES` lines.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "UDP     {}", self.udp)?;
        for (name, traffic) in [("up", &self.up), ("down", &self.down)] {
            match traffic {
                Some(traffic) if self.over_ssh => writeln!(f, "{name:<7} over ssh: {traffic}")?,
                Some(traffic) => writeln!(f, "{name:<7} {traffic}")?,
                None => writeln!(f, "{name:<7} unknown")?,
            }
        }
        let sent = |traffic: &Option<Traffic>| bytes(traffic.as_ref().map_or(0, |traffic| traffic.bytes_sent));
        writeln!(f, "traffic {} up, {} down for these tests", sent(&self.up), sent(&self.down))?;
        for side in [Side::Local, Side::Remote] {
            let machine = self.machine(side);
            writeln!(f, "{side:<7} {machine}")?;
            writeln!(f, "  CPU   {}", machine.core)?;
            if let Some(facts) = &machine.socket {
                writeln!(f, "  UDP   {}", socket(facts))?;
            }
            writeln!(f, "  disk  {}", machine.disk)?;
        }
        if !self.troubles.is_empty() {
            writeln!(f, "trouble {}", self.troubles.join("; "))?;
        }
        writeln!(f, "\n{:<32} {:<13} down", "expect", "up")?;
        for forecast in &self.verdict.forecasts {
            writeln!(f, "        {forecast}")?;
        }
        let narrowest =
            |speed: &Option<Speed>| speed.map_or_else(|| "unknown".to_owned(), |speed| speed.bottleneck.to_string());
        let (up, down) = (narrowest(&self.verdict.up), narrowest(&self.verdict.down));
        write!(f, "{:<32} {up:<13} {down}", "limited by")
    }
}
