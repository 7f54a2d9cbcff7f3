//! Losses by duplicate acknowledgements (arq §2.1, RFC 5681 section 3.2, RFC 6582).
//!
//! The peer names a packet only once its symbol belongs to the unbroken beginning of its flow, and says how many packets have arrived
//! in all. An arrival that nothing is named for is a duplicate acknowledgement, and lost feedback hides none.

use super::NewAcks;
use crate::recovery::ack_info::AckInfo;
use crate::recovery::sent_packets::SentPacket;
use crate::recovery::sent_packets::{Entry, SentPackets};
use crate::settings::{Count, Setting, Settings, Switch, field};
use crate::time::Time;
use std::collections::VecDeque;

/// Numbers of loss detection by duplicate acknowledgements.
#[derive(Clone, Debug, PartialEq)]
pub struct DuplicatesConfig {
    /// So many in a row call the oldest packet lost: 3 (arq §2.1, RFC 5681 section 3.2).
    pub count: u32,
    /// An arrival in order that leaves packets from before the recovery missing calls the next of them lost: on (RFC 6582). Off, it ends
    /// the recovery, as Reno's does (RFC 5681).
    pub newreno: bool,
    /// Whether duplicates count at all: on. Off, only timeouts find losses (arq §2.2, "without fast recovery").
    pub recovery: bool,
}

impl Default for DuplicatesConfig {
    fn default() -> Self {
        Self { count: 3, newreno: true, recovery: true }
    }
}

impl Settings for DuplicatesConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("count", count, Count(1, 1000)),
        field!("newreno", newreno, Switch),
        field!("recovery", recovery, Switch),
    ];
}

/// What duplicates are not looked at for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// They are.
    Open,
    /// A loss is being made up for: until all numbers below this one are accounted for.
    Recovery(u64),
    /// Everything below this number was called lost. What of it still arrives must not be taken for a sign of new losses (RFC 6582
    /// section 3.2 step 1 and 4.1): until one from this number on is named.
    Emptied(u64),
}

/// Counts at work.
#[derive(Debug)]
pub(in crate::recovery) struct Duplicates {
    config: DuplicatesConfig,
    /// Packets in flight that have arrived and were not named yet.
    withheld: u64,
    /// Duplicates since something was named in order.
    duplicates: u64,
    phase: Phase,
    /// Packets in flight that are named at once when they arrive.
    loose: VecDeque<u64>,
    /// The first number after each silence that called for a question, until one from there on is named. A question that follows the
    /// last too soon for its answer must not take its place, or none would ever be answered.
    asked: VecDeque<u64>,
}

impl Duplicates {
    pub(super) const fn new(config: DuplicatesConfig) -> Self {
        Self { config, withheld: 0, duplicates: 0, phase: Phase::Open, loose: VecDeque::new(), asked: VecDeque::new() }
    }

    /// Packets in flight that have arrived and were not named yet.
    pub(super) const fn withheld(&self) -> u64 {
        self.withheld
    }

    pub(super) fn on_sent(&mut self, sent: &SentPacket) {
        if !sent.content.is_symbol() {
            self.loose.push_back(sent.number);
        }
    }

    /// Numbers from `next_number` on are sent after a silence.
    pub(super) fn on_probe(&mut self, next_number: u64) {
        if self.asked.back() != Some(&next_number) {
            self.asked.push_back(next_number);
        }
    }

    /// Everything below `end` was called lost; numbers from `next_number` on are sent after that.
    pub(super) fn on_empty(&mut self, end: u64, next_number: u64) {
        self.phase = Phase::Emptied(next_number);
        self.withheld = 0;
        self.duplicates = 0;
        self.loose.retain(|&number| number >= end);
        self.asked.retain(|&asked| asked > end);
    }

    /// Whether the round trip of packet `newest`, the highest now named, is its own: one that was withheld tells how long a gap took
    /// to fill.
    pub(super) fn times_truly(&self, newest: u64) -> bool {
        match self.phase {
            Phase::Open | Phase::Recovery(_) => self.withheld == 0,
            Phase::Emptied(end) => newest >= end,
        }
    }

    pub(super) fn on_feedback(
        &mut self,
        now: Time,
        heard: NewAcks<'_>,
        flight: &mut SentPackets,
        mut lost: impl FnMut(&Entry),
    ) {
        self.count(heard);
        self.settle_loose(now, flight, heard.told, &mut lost);
        if self.config.recovery {
            self.recover(now, heard, flight, &mut lost);
        }
        self.hear_answer(now, heard, flight, &mut lost);
        if flight.packets() == 0 {
            self.withheld = 0;
        }
    }

    /// Takes note of what arrived and of what was named. Naming symbols ends a row of duplicates; what arrived with them and was not
    /// named begins the next.
    fn count(&mut self, heard: NewAcks<'_>) {
        let counts = self.config.recovery && matches!(heard.told, AckInfo::InOrder { .. });
        if !counts || matches!(self.phase, Phase::Emptied(_)) {
            self.withheld = 0;
            self.duplicates = 0;
            return;
        }
        self.withheld = (self.withheld + heard.arrived).saturating_sub(heard.named);
        let more = heard.arrived.saturating_sub(heard.named);
        self.duplicates = if heard.symbols { more } else { self.duplicates + more };
    }

    /// What is named at once is lost when `count` numbers ahead of it one has been named. So is any packet where feedback names
    /// whatever arrives, and nothing else is then a duplicate.
    fn settle_loose(&mut self, now: Time, flight: &mut SentPackets, told: AckInfo<'_>, lost: &mut impl FnMut(&Entry)) {
        let Some(overtaken) = flight.largest_acked().and_then(|top| (top + 1).checked_sub(self.config.count.into()))
        else {
            return;
        };
        while let Some(&number) = self.loose.front().filter(|&&number| number < overtaken) {
            self.loose.pop_front();
            flight.lose_number(now, number, &mut *lost);
        }
        if self.config.recovery && matches!(told, AckInfo::Ranges(_)) {
            flight.give_up(now, overtaken, lost);
        }
    }

    fn recover(&mut self, now: Time, heard: NewAcks<'_>, flight: &mut SentPackets, lost: &mut impl FnMut(&Entry)) {
        match self.phase {
            Phase::Open => {
                if self.duplicates >= u64::from(self.config.count) {
                    self.phase = Phase::Recovery(flight.next_number());
                    flight.lose_oldest(now, flight.next_number(), lost);
                }
            }
            Phase::Recovery(end) => {
                if !heard.symbols {
                    return;
                }
                let partial = flight.oldest().is_some_and(|oldest| oldest < end);
                if partial && self.config.newreno {
                    flight.lose_oldest(now, end, lost);
                } else {
                    self.phase = Phase::Open;
                    self.withheld = 0;
                }
            }
            Phase::Emptied(end) => {
                if heard.newest >= Some(end) {
                    self.phase = Phase::Open;
                }
            }
        }
    }

    /// A question that silence called for is answered: what was sent before it and is not named by now is missing, or waits behind
    /// what is. That ends a recovery whose repair was lost as well, which no duplicate can tell.
    fn hear_answer(&mut self, now: Time, heard: NewAcks<'_>, flight: &mut SentPackets, lost: &mut impl FnMut(&Entry)) {
        let mut answered = None;
        while let Some(asked) = self.asked.pop_front_if(|asked| heard.newest >= Some(*asked)) {
            answered = Some(asked);
        }
        let Some(asked) = answered else { return };
        if flight.oldest().is_some_and(|oldest| oldest < asked) {
            flight.give_up(now, asked, lost);
            self.on_empty(asked, flight.next_number());
        }
    }
}
