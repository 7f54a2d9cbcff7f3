//! The checks.

use std::path::Path;
use std::time::Duration;

use netsim::{Duplex, Ecn, Link, OfferOutcome, Rate, Time};

use super::traffic::{echo, open, send_numbered};
use super::{CheckError, Finding, start, stop};

/// Packets of the check of drops: enough to know mean bursts within a few percent.
const PACKETS: u32 = 40_000;
const PACKET_BYTES: usize = 200;
const PACKET_INTERVAL: Duration = Duration::from_micros(100);
/// Tolerance of the mean burst.
const BURST_TOLERANCE: f64 = 0.1;
const PROBES: u32 = 500;
const ONE_WAY: Duration = Duration::from_millis(5);
/// The most lateness of a round trip against the model, for 99 of 100.
const ROUND_TRIP_TOLERANCE: Duration = Duration::from_millis(1);
/// The duration of measuring a rate, the offered multiple of the rate, and the tolerance.
const RATE_SECONDS: f64 = 2.0;
const OVERLOAD: f64 = 1.15;
const RATE_TOLERANCE: f64 = 0.005;
const FULL_PACKET: usize = 1500;

/// Checks that the lost packets are exactly the model's for this seed, in bursts of the requested length.
pub(super) fn same_drops(loss: &str, keeper: &Path) -> Result<Finding, CheckError> {
    let link = format!("rate=100M,delay=5ms,{loss},seed=7");
    let network = start(&link, keeper)?;
    let [from, to] = [open(&network.hosts()[0])?, open(&network.hosts()[1])?];
    let (heard, _) = send_numbered(&from, &to, PACKETS, PACKET_BYTES, PACKET_INTERVAL)?;
    let (_, verdict) = stop(network);
    let got: Vec<u32> = heard.iter().map(|heard| heard.number).collect();
    let model = delivered_by_model(&link);
    let lost: Vec<bool> = (0..PACKETS).map(|number| got.binary_search(&number).is_err()).collect();
    let differ =
        (0..PACKETS).filter(|number| got.binary_search(number).is_ok() != model.binary_search(number).is_ok()).count();
    let share = lost.iter().filter(|&&lost| lost).count() as f64 / f64::from(PACKETS);
    let mean = mean_burst(&lost);
    let wanted = loss.split_once("burst=").map_or(1.0 / 0.95, |(_, burst)| burst.parse().unwrap_or(f64::NAN));
    Ok(Finding {
        name: format!("drops, {loss}, {PACKETS} packets"),
        measured: format!("{:.2} %, burst {mean:.2}, {differ} others", share * 100.0),
        wanted: format!("5 %, burst {wanted:.2}, 0 others"),
        holds: differ == 0 && (mean / wanted - 1.0).abs() <= BURST_TOLERANCE,
        verdict,
    })
}

/// Returns the numbers of the packets that the model delivers.
fn delivered_by_model(link: &str) -> Vec<u32> {
    let duplex: Duplex = link.parse().expect("the links of the checks are right");
    let mut link = Link::new(duplex.forward).expect("the links of the checks are right");
    let bytes = u32::try_from(PACKET_BYTES).expect("packets are small");
    (0..PACKETS)
        .filter(|&number| {
            let now = Time::from(PACKET_INTERVAL * number);
            matches!(link.offer(now, bytes, Ecn::NotEct), OfferOutcome::Delivered(_))
        })
        .collect()
}

/// Returns the mean number of packets lost in a row.
fn mean_burst(lost: &[bool]) -> f64 {
    let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]);
    let (count, packets) = bursts.fold((0_u32, 0), |(count, packets), run| (count + 1, packets + run.len()));
    packets as f64 / f64::from(count)
}

/// Checks that round trips take as long as in the model.
pub(super) fn round_trips(keeper: &Path) -> Result<Finding, CheckError> {
    let network = start(&format!("rate=100M,delay={}ms", ONE_WAY.as_millis()), keeper)?;
    let [from, to] = [open(&network.hosts()[0])?, open(&network.hosts()[1])?];
    let mut times = echo(&from, &to, PROBES, Duration::from_millis(1))?;
    let (_, verdict) = stop(network);
    times.sort_unstable();
    // 32 bytes of IP at 100 Mbit/s, in both directions.
    let model = 2 * (ONE_WAY + Duration::from_nanos(2_560));
    let late = |percent: usize| {
        let time = times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        time.map_or(Duration::MAX, |time| time.saturating_sub(model))
    };
    Ok(Finding {
        name: format!("round trip of {} ms, {PROBES} probes", 2 * ONE_WAY.as_millis()),
        measured: format!("+{} us (50 %), +{} us (99 %)", late(50).as_micros(), late(99).as_micros()),
        wanted: format!("+{} us (99 %)", ROUND_TRIP_TOLERANCE.as_micros()),
        holds: times.len() == PROBES as usize && late(99) <= ROUND_TRIP_TOLERANCE,
        verdict,
    })
}

/// Checks that an overloaded link carries exactly its rate.
pub(super) fn rate(rate: Rate, keeper: &Path) -> Result<Finding, CheckError> {
    let bits = rate.bits_per_second() as f64;
    let network = start(&format!("rate={rate},delay=5ms,queue=20bdp"), keeper)?;
    let [from, to] = [open(&network.hosts()[0])?, open(&network.hosts()[1])?];
    let packet_bits = FULL_PACKET as f64 * 8.0;
    let interval = Duration::from_secs_f64(packet_bits / (bits * OVERLOAD));
    let count = (bits * OVERLOAD * RATE_SECONDS / packet_bits) as u32;
    let wanted_in = interval * count;
    let (heard, sent_in) = send_numbered(&from, &to, count, FULL_PACKET, interval)?;
    let (observation, verdict) = stop(network);
    // The first packet starts the clock: the time is that of the packets after it.
    let measured = match (heard.first(), heard.last()) {
        (Some(first), Some(last)) if heard.len() > 1 => {
            (heard.len() - 1) as f64 * packet_bits / (last.at - first.at).as_secs_f64()
        }
        _ => 0.0,
    };
    let missed = observation.report.handed[1].saturating_sub(heard.len() as u64);
    let note = match () {
        () if missed > 0 => format!(", {missed} not read"),
        () if sent_in > wanted_in.mul_f64(1.0 + RATE_TOLERANCE) => ", ends too slow".to_owned(),
        () => String::new(),
    };
    Ok(Finding {
        name: format!("rate, offered {OVERLOAD} times as much"),
        measured: format!("{:.3} Mbit/s{note}", measured / 1e6),
        wanted: format!("{} +- {} %", bits / 1e6, RATE_TOLERANCE * 100.0),
        holds: (measured / bits - 1.0).abs() <= RATE_TOLERANCE,
        verdict,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_burst_of_runs_of_losses() {
        let lost = [true, false, true, true, false, false, true, true, true];
        assert_eq!(mean_burst(&lost), 2.0);
    }
}
