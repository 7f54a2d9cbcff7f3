//! Losses by duplicate acknowledgements (arq §2.1, RFC 5681 section 3.2, RFC 6582).
//!
//! The peer acknowledges a packet only once no symbol before its own is missing from the flow, and reports how many
//! packets it has received in total. An arrival without a newly acknowledged packet is a duplicate acknowledgement;
//! since arrivals are counted, lost feedback hides none.

use super::NewAcks;
use crate::recovery::ack_info::AckInfo;
use crate::recovery::sent_packets::SentPacket;
use crate::recovery::sent_packets::{SentPackets, TrackedPacket};
use crate::settings::{IntegerRange, Setting, Settings, Switch, field};
use crate::time::Time;
use std::collections::VecDeque;

/// Numbers of loss detection by duplicate acknowledgements.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicatesConfig {
    /// Duplicate acknowledgements in a row after which the oldest packet is lost: 3 (arq §2.1, RFC 5681 section 3.2).
    pub count: u32,
    /// Whether a partial acknowledgement declares the next packet lost and continues the recovery: on (RFC 6582). Off,
    /// it ends the recovery, as in Reno (RFC 5681).
    pub newreno: bool,
    /// Whether duplicate acknowledgements are counted: on. Off, only timeouts detect losses (arq §2.2, "without fast
    /// recovery").
    pub recovery: bool,
}

impl Default for DuplicatesConfig {
    fn default() -> Self {
        Self { count: 3, newreno: true, recovery: true }
    }
}

impl Settings for DuplicatesConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("count", count, IntegerRange(1, 1000)),
        field!("newreno", newreno, Switch),
        field!("recovery", recovery, Switch),
    ];
}

/// The state of fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FastRecoveryState {
    /// Duplicates are counted.
    Open,
    /// In fast recovery, until all packets below this number are acknowledged or lost.
    Recovery(u64),
    /// All packets below this number were declared lost. Until one from it on is acknowledged, late arrivals must not
    /// count as duplicates (RFC 6582 section 3.2 step 1 and section 4.1).
    AllLost(u64),
}

/// The detector and its counts.
#[derive(Debug)]
pub(in crate::recovery) struct Duplicates {
    config: DuplicatesConfig,
    /// Packets in flight received but not yet acknowledged.
    withheld: u64,
    /// Duplicate acknowledgements since a symbol was last named.
    duplicates: u64,
    phase: FastRecoveryState,
    /// Packets in flight without symbols, which are acknowledged as soon as they arrive.
    unordered: VecDeque<u64>,
    /// The first number sent after each probe timeout, until one from it on is acknowledged. A probe that follows
    /// another one before it is answered must not replace it, or neither would ever count as answered.
    probes: VecDeque<u64>,
}

impl Duplicates {
    pub(super) const fn new(config: DuplicatesConfig) -> Self {
        Self {
            config,
            withheld: 0,
            duplicates: 0,
            phase: FastRecoveryState::Open,
            unordered: VecDeque::new(),
            probes: VecDeque::new(),
        }
    }

    /// Returns the packets in flight received but not yet acknowledged.
    pub(super) const fn withheld(&self) -> u64 {
        self.withheld
    }

    pub(super) fn on_sent(&mut self, sent: &SentPacket) {
        if !sent.content.is_symbol() {
            self.unordered.push_back(sent.number);
        }
    }

    /// Handles an expired probe timeout; the probe has number `next_number` or a later one.
    pub(super) fn on_probe(&mut self, next_number: u64) {
        if self.probes.back() != Some(&next_number) {
            self.probes.push_back(next_number);
        }
    }

    /// Handles the loss of everything below `end`; the next packet has number `next_number`.
    pub(super) fn on_all_lost(&mut self, end: u64, next_number: u64) {
        self.phase = FastRecoveryState::AllLost(next_number);
        self.withheld = 0;
        self.duplicates = 0;
        self.unordered.retain(|&number| number >= end);
        self.probes.retain(|&probe| probe > end);
    }

    /// Returns whether packet `newest`, the largest newly acknowledged, gives a round-trip time sample: if its
    /// acknowledgement was withheld, the time includes that of filling the gap.
    pub(super) fn gives_rtt_sample(&self, newest: u64) -> bool {
        match self.phase {
            FastRecoveryState::Open | FastRecoveryState::Recovery(_) => self.withheld == 0,
            FastRecoveryState::AllLost(end) => newest >= end,
        }
    }

    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        acks: NewAcks<'_>,
        sent_packets: &mut SentPackets,
        mut lost: impl FnMut(&TrackedPacket),
    ) {
        self.count(acks);
        self.settle_unordered(now, sent_packets, acks.info, &mut lost);
        if self.config.recovery {
            self.recover(now, acks, sent_packets, &mut lost);
        }
        self.on_probe_answered(now, acks, sent_packets, &mut lost);
        if sent_packets.packets() == 0 {
            self.withheld = 0;
        }
    }

    /// Counts duplicates. A newly acknowledged symbol ends a row of them; packets that arrived with it unacknowledged
    /// begin the next.
    fn count(&mut self, acks: NewAcks<'_>) {
        let counts = self.config.recovery && matches!(acks.info, AckInfo::InOrder { .. });
        if !counts || matches!(self.phase, FastRecoveryState::AllLost(_)) {
            self.withheld = 0;
            self.duplicates = 0;
            return;
        }
        self.withheld = (self.withheld + acks.arrived).saturating_sub(acks.named);
        let more = acks.arrived.saturating_sub(acks.named);
        self.duplicates = if acks.symbols { more } else { self.duplicates + more };
    }

    /// Declares packets without symbols lost once a packet `count` numbers ahead has been acknowledged. So are all
    /// others if feedback acknowledges every arriving packet ([`AckInfo::Ranges`]).
    fn settle_unordered(
        &mut self,
        now: Time,
        sent_packets: &mut SentPackets,
        info: AckInfo<'_>,
        lost: &mut impl FnMut(&TrackedPacket),
    ) {
        let Some(overtaken) =
            sent_packets.largest_acked().and_then(|top| (top + 1).checked_sub(self.config.count.into()))
        else {
            return;
        };
        while let Some(&number) = self.unordered.front().filter(|&&number| number < overtaken) {
            self.unordered.pop_front();
            sent_packets.lose_number(now, number, &mut *lost);
        }
        if self.config.recovery && matches!(info, AckInfo::Ranges(_)) {
            sent_packets.lose_all_below(now, overtaken, lost);
        }
    }

    fn recover(
        &mut self,
        now: Time,
        acks: NewAcks<'_>,
        sent_packets: &mut SentPackets,
        lost: &mut impl FnMut(&TrackedPacket),
    ) {
        match self.phase {
            FastRecoveryState::Open => {
                if self.duplicates >= u64::from(self.config.count) {
                    self.phase = FastRecoveryState::Recovery(sent_packets.next_number());
                    sent_packets.lose_oldest(now, sent_packets.next_number(), lost);
                }
            }
            FastRecoveryState::Recovery(end) => {
                if !acks.symbols {
                    return;
                }
                let partial = sent_packets.oldest().is_some_and(|oldest| oldest < end);
                if partial && self.config.newreno {
                    sent_packets.lose_oldest(now, end, lost);
                } else {
                    self.phase = FastRecoveryState::Open;
                    self.withheld = 0;
                }
            }
            FastRecoveryState::AllLost(end) => {
                if acks.newest >= Some(end) {
                    self.phase = FastRecoveryState::Open;
                }
            }
        }
    }

    /// Handles the answer to a probe: a packet sent before it and not yet acknowledged is lost, or withheld behind a
    /// lost one. This ends a recovery whose retransmission was lost too, which no duplicate acknowledgement can reveal.
    fn on_probe_answered(
        &mut self,
        now: Time,
        acks: NewAcks<'_>,
        sent_packets: &mut SentPackets,
        lost: &mut impl FnMut(&TrackedPacket),
    ) {
        let mut answered = None;
        while let Some(probe) = self.probes.pop_front_if(|probe| acks.newest >= Some(*probe)) {
            answered = Some(probe);
        }
        let Some(probe) = answered else { return };
        if sent_packets.oldest().is_some_and(|oldest| oldest < probe) {
            sent_packets.lose_all_below(now, probe, lost);
            self.on_all_lost(probe, sent_packets.next_number());
        }
    }
}
