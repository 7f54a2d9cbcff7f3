//! The result of a run with flows, as one number.

use serde::Deserialize;

use super::{FlowRecord, FlowText, SimRecord};
use crate::plan::parse_bytes;
use crate::results::Bound;

/// The quantity on the vertical axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SimQuantity {
    /// Seconds from a flow's first packet to its last byte at the receiver.
    #[default]
    Seconds,
    /// The mean of that over all flows.
    MeanSeconds,
    /// The same, for each MB of the objects.
    #[serde(rename = "seconds-per-mb")]
    SecondsPerMb,
    /// Bytes of a flow's object per second of its own time, in Mbit/s.
    Goodput,
    /// Jain's index of all flows' goodput, each over its own time, or of their throughput after the warm-up if there is
    /// one (Jain 1984; arq §3.2.2).
    Jain,
    /// Jain's index of the arrivals of all flows while every one of them was sending.
    JainTogether,
    /// IP bytes of both directions for each byte of a flow's object.
    Wire,
    /// Bytes of the symbols sent in excess of those of a flow's object, in percent of them.
    Overhead,
    /// The most bytes that a flow's receiver buffered of incomplete blocks, in MB (tornado-transfer 2.1).
    ReceiverMemory,
    /// The sending rate of a flow's sender; over time only.
    SendingRate,
    /// A sender's loss estimate, in percent: over time, or its mean over time (lt-tcp 3.1).
    LossEstimate,
    /// Packets that the queues of the shared link dropped, in both directions: those without room, and CoDel's choice.
    QueueDrops,
    /// IP bits per second of a flow after the warm-up, as a share of the rate of the shared link.
    Share,
    /// The same, relative to an equal share for every flow.
    FairShare,
    /// The wait at the shared link that 95 % of the packets did not exceed after the warm-up, in milliseconds.
    #[serde(rename = "queue-p95")]
    QueueP95,
    /// Mean delay of a flow's arriving packets beyond the least, in milliseconds; over time only, of real programs.
    QueueDelay,
    /// The seconds of a flow, relative to their median in another series (Ware 2019).
    Harm,
}

impl SimQuantity {
    /// Returns the title of the axis.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Seconds => "Time until all bytes are there, s",
            Self::MeanSeconds => "Time until all bytes are there, mean of the flows, s",
            Self::SecondsPerMb => "Time for each MB, mean of the flows, s",
            Self::Goodput => "Goodput, Mbit/s",
            Self::Jain => "Jain's index of goodput",
            Self::JainTogether => "Jain's index while all send",
            Self::Wire => "IP bytes for each byte",
            Self::Overhead => "Symbols sent beyond those of the object, %",
            Self::ReceiverMemory => "Symbols held for decoding at most, MB",
            Self::SendingRate => "Sending rate, Mbit/s",
            Self::LossEstimate => "Loss estimate, %",
            Self::QueueDrops => "Packets dropped by the queue",
            Self::Share => "Share of the link",
            Self::FairShare => "Share of the link, relative to an equal share",
            Self::QueueP95 => "Wait at the link, 95 % of packets, ms",
            Self::QueueDelay => "Delay beyond the least, ms",
            Self::Harm => "Time until all bytes are there, relative to another series",
        }
    }

    /// Returns whether each flow has one, or only the run.
    pub const fn is_of_flows(self) -> bool {
        use SimQuantity::{Jain, JainTogether, MeanSeconds, QueueDrops, QueueP95, SecondsPerMb};
        !matches!(self, MeanSeconds | SecondsPerMb | Jain | JainTogether | QueueDrops | QueueP95)
    }

    /// Returns a flow's values, span by span, if it is a quantity over time.
    pub fn course(self, flow: &FlowRecord) -> Option<&[f64]> {
        match self {
            Self::SendingRate => Some(&flow.rate),
            Self::LossEstimate => Some(&flow.loss),
            Self::QueueDelay => flow.program.as_ref().map(|program| &program.delay_ms[..]),
            _ => None,
        }
    }

    /// Returns whether it is meaningful only over time.
    pub const fn is_of_time(self) -> bool {
        matches!(self, Self::SendingRate | Self::QueueDelay)
    }

    /// Returns whether only the engine knows it, so that it is not available for real programs.
    pub const fn is_of_engine(self) -> bool {
        matches!(self, Self::SendingRate | Self::LossEstimate | Self::Overhead | Self::ReceiverMemory)
    }

    /// Returns the value of flow number `flow` of a run, or of the run; a bound if the run ended before it was known.
    pub fn of(self, record: &SimRecord, flow: usize) -> Option<Bound> {
        let one = || record.flows.get(flow);
        let exact = |value: f64| value.is_finite().then_some(Bound::Exactly(value));
        match self {
            Self::Seconds | Self::Harm => seconds(record, flow),
            Self::MeanSeconds => mean(record, |_| Some(1.0)),
            Self::SecondsPerMb => mean(record, |flow| Some(1e6 / size(record, flow)?)),
            Self::Goodput => exact(goodput(record, flow)?),
            Self::Wire => exact(one()?.wire_bytes as f64 / one()?.written as f64),
            Self::Overhead => {
                let flow = one()?;
                flow.seconds?;
                exact(100.0 * (flow.symbol_bytes as f64 / flow.written as f64 - 1.0))
            }
            Self::ReceiverMemory => exact(one()?.held_bytes? as f64 * 1e-6),
            Self::SendingRate | Self::QueueDelay => None,
            Self::Jain => {
                let of = |number: usize| match record.case.scenario.warm_up {
                    Some(_) => record.flows[number].throughput,
                    None => goodput(record, number),
                };
                exact(sim::jain(&(0..record.flows.len()).map(of).collect::<Option<Vec<_>>>()?))
            }
            Self::JainTogether => exact(sim::jain(&together(record))),
            Self::LossEstimate => exact(one()?.loss_estimate? * 100.0),
            Self::QueueDrops => exact(record.queue_drops as f64),
            Self::Share => exact(share(record, one()?)?),
            Self::FairShare => exact(share(record, one()?)? * record.flows.len() as f64),
            Self::QueueP95 => exact(record.queue_p95?),
        }
    }
}

/// Returns the seconds of a flow; `None` if it is endless and has not ended.
fn seconds(record: &SimRecord, flow: usize) -> Option<Bound> {
    match record.flows.get(flow)?.seconds {
        Some(seconds) => Some(Bound::Exactly(seconds)),
        None => has_to_finish(record, flow).then_some(Bound::AtLeast(record.case.cap_seconds)),
    }
}

/// Returns the mean of all flows' seconds, each multiplied by a factor.
fn mean(record: &SimRecord, factor: impl Fn(usize) -> Option<f64>) -> Option<Bound> {
    let all = (0..record.flows.len()).map(|flow| Some((seconds(record, flow)?, factor(flow)?)));
    let all = all.collect::<Option<Vec<_>>>()?;
    let mean = all.iter().map(|(seconds, factor)| seconds.value() * factor).sum::<f64>() / all.len() as f64;
    let is_bound = all.iter().any(|(seconds, _)| seconds.is_bound());
    mean.is_finite().then_some(if is_bound { Bound::AtLeast(mean) } else { Bound::Exactly(mean) })
}

/// Returns the bytes of a flow's object.
fn size(record: &SimRecord, flow: usize) -> Option<f64> {
    let size = record.case.scenario.flows.get(flow)?.size.as_ref()?;
    parse_bytes(&size.0).ok().map(|bytes| bytes as f64)
}

/// Returns the goodput in Mbit/s, of the written part if the flow did not end; `None` if it is endless.
fn goodput(record: &SimRecord, number: usize) -> Option<f64> {
    let flow = record.flows.get(number)?;
    let seconds = flow.seconds.or_else(|| has_to_finish(record, number).then_some(record.case.cap_seconds))?;
    Some(flow.written as f64 * 8e-6 / seconds)
}

fn has_to_finish(record: &SimRecord, flow: usize) -> bool {
    record.case.scenario.flows.get(flow).is_some_and(FlowText::has_to_finish)
}

/// Returns a flow's throughput after the warm-up, as a share of the capacity of the shared link.
fn share(record: &SimRecord, flow: &FlowRecord) -> Option<f64> {
    Some(flow.throughput? / record.case.scenario.rate()?)
}

/// Returns the arrivals of each flow in the whole spans between the start of the last one and the end of the first one;
/// in all spans if there are no such spans.
fn together(record: &SimRecord) -> Vec<f64> {
    let span = record.case.span_seconds;
    let starts = record.flows.iter().map(|flow| flow.arrived.iter().position(|bytes| *bytes > 0).unwrap_or(usize::MAX));
    let ends = record.flows.iter().map(|flow| flow.ended_at.map_or(usize::MAX, |end| (end / span) as usize));
    // The span in which a flow starts is incomplete.
    let (start, end) = (starts.max().unwrap_or(0).saturating_add(1), ends.min().unwrap_or(0));
    let whole = if start < end { start..end } else { 0..usize::MAX };
    let of = |flow: &FlowRecord| {
        let spans = flow.arrived.iter().enumerate().filter(|(index, _)| whole.contains(index));
        spans.map(|(_, bytes)| *bytes as f64).sum()
    };
    record.flows.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::Text;
    use super::super::record::tests::{emulated, record};
    use super::*;
    use Bound::{AtLeast, Exactly};

    #[test]
    fn quantities_of_a_run() {
        // 1 MB in 2 s, and half of one in 60 s; 100 bytes a span each, but the second has 50 in the fourth.
        let mut record = record();
        let of = |record: &SimRecord, quantity: SimQuantity, flow| quantity.of(record, flow);
        assert_eq!(of(&record, SimQuantity::Seconds, 0), Some(Exactly(2.0)));
        assert_eq!(of(&record, SimQuantity::Seconds, 1), Some(AtLeast(60.0)));
        assert_eq!(of(&record, SimQuantity::Goodput, 0), Some(Exactly(4.0)));
        assert_eq!(of(&record, SimQuantity::Wire, 0), Some(Exactly(1.1)));
        let overhead = of(&record, SimQuantity::Overhead, 0).expect("it finished").value();
        assert!((overhead - 5.0).abs() < 1e-9, "{overhead}");
        assert_eq!(of(&record, SimQuantity::Overhead, 1), None, "its final overhead is not known");
        assert_eq!(of(&record, SimQuantity::ReceiverMemory, 0), Some(Exactly(0.25)));
        assert_eq!(SimQuantity::LossEstimate.course(&record.flows[0]), Some(&[20.0, 10.0][..]));
        assert_eq!(of(&record, SimQuantity::QueueDrops, 0), Some(Exactly(5.0)));
        assert_eq!(of(&record, SimQuantity::LossEstimate, 0), Some(Exactly(6.25)));
        assert_eq!(of(&record, SimQuantity::LossEstimate, 1), None, "none is known");
        let slow = 0.5 * 8.0 / 60.0;
        assert_eq!(of(&record, SimQuantity::Jain, 0), Some(Exactly(sim::jain(&[4.0, slow]))));
        // The first starts in span 0 and ends in span 3, the second starts in span 1: 2 is the only complete one.
        assert_eq!(of(&record, SimQuantity::JainTogether, 0), Some(Exactly(sim::jain(&[100.0, 25.0]))));
        // 2 s, and the cap of 60 s as a bound, for 1 MB each.
        assert_eq!(of(&record, SimQuantity::MeanSeconds, 0), Some(AtLeast(31.0)));
        record.case.scenario.flows[0].size = Some(Text("4MB".to_owned()));
        assert_eq!(of(&record, SimQuantity::SecondsPerMb, 0), Some(AtLeast((0.5 + 60.0) / 2.0)));
        record.flows[1].seconds = Some(5.0);
        assert_eq!(of(&record, SimQuantity::SecondsPerMb, 0), Some(Exactly((0.5 + 5.0) / 2.0)));
        record.flows[1].seconds = None;
        // The shared link has 50 Mbit/s.
        assert_eq!(of(&record, SimQuantity::Share, 1), Some(Exactly(0.25)));
        assert_eq!(of(&record, SimQuantity::QueueP95, 0), Some(Exactly(7.5)));
        record.flows[1].written = 0;
        assert_eq!(of(&record, SimQuantity::Wire, 1), None, "no arrivals");
        record.case.scenario.flows[1].size = None;
        for quantity in [
            SimQuantity::Seconds,
            SimQuantity::MeanSeconds,
            SimQuantity::SecondsPerMb,
            SimQuantity::Goodput,
            SimQuantity::Jain,
        ] {
            assert_eq!(of(&record, quantity, 1), None, "{quantity:?} of a flow without end");
        }
    }

    #[test]
    fn share_is_of_the_link_after_the_warm_up() {
        let mut record = emulated(record());
        let of = |quantity: SimQuantity, flow| quantity.of(&record, flow).map(Bound::value);
        assert_eq!([0, 1].map(|flow| of(SimQuantity::Share, flow)), [Some(0.3), Some(0.2)], "of 50 Mbit/s");
        assert_eq!([0, 1].map(|flow| of(SimQuantity::FairShare, flow)), [Some(0.6), Some(0.4)]);
        assert_eq!(of(SimQuantity::Jain, 0), Some(sim::jain(&[15.0, 10.0])));
        assert_eq!(of(SimQuantity::QueueP95, 0), Some(7.5));
        assert_eq!(SimQuantity::QueueDelay.course(&record.flows[0]), Some(&[2.5, 5.0][..]));
        record.case.scenario.link = "delay=1ms".to_owned();
        assert_eq!(SimQuantity::Share.of(&record, 0), None, "of nothing known");
        record.case.scenario.flows[1].size = None;
        assert_eq!(SimQuantity::Seconds.of(&record, 1), None, "it has no end");
    }
}
