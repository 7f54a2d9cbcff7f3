//! Every form of loss detection, with every timeout and every form of feedback, over paths that lose, reorder and
//! duplicate: the outcome of each packet is reported once, nothing stays in flight, and a transfer never stalls.

use super::*;
use crate::wire::{FlowId, SymbolId, SymbolRun};
use std::collections::BTreeMap;
use std::collections::BTreeSet;

const SYMBOLS: u32 = 150;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Ranges,
    InOrder,
    Count,
}

/// A receiver's feedback, as owned data.
#[derive(Clone)]
struct Says {
    ranges: Vec<(u64, u64)>,
    largest: u64,
    arrived: u64,
    /// Symbols that it has.
    done: u32,
}

enum Event {
    Packet(u64, Content),
    Feedback(Says),
}

#[derive(Default)]
struct Receiver {
    packets: BTreeSet<u64>,
    withheld: Vec<(u64, u32)>,
    named: BTreeSet<u64>,
    symbols: BTreeSet<u32>,
    beginning: u32,
}

impl Receiver {
    fn take(&mut self, number: u64, content: Content, form: Form) -> Option<Says> {
        if !self.packets.insert(number) {
            return None;
        }
        match content {
            Content::Symbols(SymbolRun { first: id, .. }) if form == Form::InOrder => {
                self.symbols.insert(id.esi);
                while self.symbols.contains(&self.beginning) {
                    self.beginning += 1;
                }
                self.withheld.push((number, id.esi));
                let (free, withheld) = self.withheld.iter().partition(|(_, esi)| *esi < self.beginning);
                self.withheld = withheld;
                let free: Vec<(u64, u32)> = free;
                self.named.extend(free.iter().map(|(number, _)| *number));
            }
            Content::Symbols(SymbolRun { first: id, .. }) => {
                self.symbols.insert(id.esi);
                self.named.insert(number);
            }
            _ => _ = self.named.insert(number),
        }
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &number in self.named.iter().rev() {
            match ranges.last_mut() {
                Some(last) if last.0 == number + 1 => last.0 = number,
                _ => ranges.push((number, number)),
            }
        }
        let largest = *self.packets.last().unwrap();
        let (arrived, done) = (self.packets.len() as u64, self.symbols.len() as u32);
        Some(Says { ranges, largest, arrived, done })
    }
}

/// The sender's view of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Delivered,
    Lost,
    Late,
}

struct Transfer {
    recovery: Recovery,
    form: Form,
    receiver: Receiver,
    random: Random,
    events: BTreeMap<(Time, u64), Event>,
    next_event: u64,
    now: Time,
    fates: BTreeMap<u64, (Fate, Content)>,
    next_number: u64,
    fresh: u32,
    again: BTreeSet<u32>,
    had: BTreeSet<u32>,
    done: bool,
    rtt: Duration,
    loss: f64,
    jitter: Duration,
}

impl Transfer {
    fn push(&mut self, delay: Duration, event: Event) {
        self.events.insert((self.now + delay, self.next_event), event);
        self.next_event += 1;
    }

    fn delay(&mut self) -> Duration {
        self.rtt / 2 + Duration::from_nanos(self.random.below(self.jitter.as_nanos() as u64 + 1))
    }

    fn send(&mut self, content: Content, probe: bool) {
        let number = self.next_number;
        self.next_number += 1 + u64::from(self.random.chance(0.02));
        self.recovery.on_sent(SentPacket { number, time: self.now, bytes: PACKET, content }, probe);
        assert!(self.fates.insert(number, (Fate::Open, content)).is_none());
        for copy in 0..2 {
            if (copy == 0 && !self.random.chance(self.loss)) || (copy == 1 && self.random.chance(0.05)) {
                let delay = self.delay();
                self.push(delay, Event::Packet(number, content));
            }
        }
    }

    /// Returns the next symbol: lost ones again first. If only counts are reported, any symbol is as good as another,
    /// and symbols never run out.
    fn next_symbol(&mut self) -> Option<u32> {
        if self.done {
            return None;
        }
        if self.form != Form::Count
            && let Some(esi) = self.again.pop_first()
        {
            return Some(esi);
        }
        let left = self.form == Form::Count || self.fresh < SYMBOLS;
        left.then(|| {
            self.fresh += 1;
            self.fresh - 1
        })
    }

    fn fill(&mut self) -> Option<Time> {
        loop {
            match self.recovery.send_allowance(self.now) {
                SendAllowance::Wait(until) => return Some(until),
                SendAllowance::Blocked => return None,
                SendAllowance::Bytes(_) => {}
            }
            let esi = self.next_symbol()?;
            self.send(Content::Symbols(SymbolId { flow: FlowId(1), block: 0, esi }.into()), false);
            if self.random.chance(0.05) {
                self.send(Content::Control(7), false);
            }
        }
    }

    fn learn(&mut self) {
        let report = self.recovery.report();
        assert!(report.outlived.is_empty());
        let groups = [(report.delivered, Fate::Delivered), (report.lost, Fate::Lost), (report.spurious, Fate::Late)];
        for (packets, fate) in groups {
            for sent in packets {
                let (before, content) = self.fates.get_mut(&sent.number).unwrap();
                let expected = if fate == Fate::Late { Fate::Lost } else { Fate::Open };
                assert_eq!(*before, expected, "packet {} was {before:?} and is {fate:?}", sent.number);
                *before = fate;
                let Content::Symbols(SymbolRun { first: id, .. }) = *content else { continue };
                if fate == Fate::Lost {
                    if !self.had.contains(&id.esi) {
                        self.again.insert(id.esi);
                    }
                } else {
                    self.had.insert(id.esi);
                    self.again.remove(&id.esi);
                }
            }
        }
    }

    fn hear(&mut self, says: &Says) {
        let packets = PacketRanges { delay_micros: 0, ranges: says.ranges.clone() };
        let named = (!says.ranges.is_empty()).then_some(&packets);
        let acked = match self.form {
            Form::Ranges => named.map_or(AckInfo::Nothing, AckInfo::Ranges),
            Form::InOrder => AckInfo::InOrder { packets: named, largest: says.largest, arrived: says.arrived },
            Form::Count => AckInfo::Count { largest: says.largest, delay_micros: 0, arrived: says.arrived },
        };
        self.recovery.on_feedback(self.now, acked, None).unwrap();
        self.done |= says.done >= SYMBOLS;
        self.learn();
    }

    /// Runs until all is done and nothing is in flight. Panics if that takes an hour.
    fn run(&mut self) {
        let mut wake = self.fill();
        let mut idle = 0;
        while !self.done || self.recovery.packets_in_flight() > 0 {
            let event = self.events.first_key_value().map(|(&(time, _), _)| time);
            let timeout = self.recovery.next_timeout();
            let Some(next) = [event, timeout, wake].into_iter().flatten().min() else {
                // Everything is known, but the last feedback was lost: the connection probes.
                idle += 1;
                assert!(idle < 50, "stalled with {} symbols", self.receiver.symbols.len());
                self.now += millis(500);
                self.send(Content::Nothing, true);
                wake = self.fill();
                continue;
            };
            self.now = self.now.max(next);
            assert!(self.now < at(3_600_000), "an hour, {} symbols", self.receiver.symbols.len());
            if event == Some(next) {
                let (_, event) = self.events.pop_first().unwrap();
                match event {
                    Event::Packet(number, content) => {
                        let says = self.receiver.take(number, content, self.form);
                        if let Some(says) = says.filter(|_| !self.random.chance(self.loss)) {
                            let delay = self.delay();
                            self.push(delay, Event::Feedback(says));
                        }
                    }
                    Event::Feedback(says) => self.hear(&says),
                }
            } else if timeout == Some(next) {
                match self.recovery.on_timeout(self.now) {
                    Timeout::None => {}
                    Timeout::Lost => self.learn(),
                    Timeout::Probe => self.send(Content::Nothing, true),
                }
            }
            wake = self.fill();
        }
    }
}

#[test]
fn every_combination_reports_each_outcome_once_and_ends() {
    let detections = [
        "threshold",
        "threshold:packets=1,adapt=off",
        "duplicates",
        "duplicates:newreno=off",
        "duplicates:recovery=off",
    ];
    for (case, detection) in (0..).zip(detections) {
        for timeout in ["probe", "rto", "rto:min=1s,max=5s"] {
            for form in [Form::Ranges, Form::InOrder, Form::Count] {
                for seed in 0..4 {
                    let mut random = Random::new(seed * 1000 + case);
                    let rtt = Duration::from_micros(500 + random.below(200_000));
                    let mut config = config(if seed % 2 == 0 { "cubic" } else { "fixed-rate:2M" });
                    config.detection = detection.parse().unwrap();
                    config.timeout = timeout.parse().unwrap();
                    config.rtt = ["ewma", "per-round", "median"][seed as usize % 3].parse().unwrap();
                    let mut recovery = Recovery::new(&config, Time::ZERO, OVERHEAD);
                    recovery.set_max_packet(PACKET);
                    recovery.set_rtt_from_handshake(Time::ZERO, rtt);
                    let loss = random.below(50) as f64 / 100.0;
                    let jitter = rtt.mul_f64(random.below(80) as f64 / 100.0);
                    let mut transfer = Transfer {
                        recovery,
                        form,
                        receiver: Receiver::default(),
                        random,
                        events: BTreeMap::new(),
                        next_event: 0,
                        now: Time::ZERO,
                        fates: BTreeMap::new(),
                        next_number: 0,
                        fresh: 0,
                        again: BTreeSet::new(),
                        had: BTreeSet::new(),
                        done: false,
                        rtt,
                        loss,
                        jitter,
                    };
                    println!("{detection} {timeout} {form:?} seed {seed}: loss {loss}, RTT {rtt:?}, jitter {jitter:?}");
                    transfer.run();
                    let stats = transfer.recovery.stats();
                    assert_eq!((transfer.recovery.bytes_in_flight(), transfer.recovery.next_timeout()), (0, None));
                    assert_eq!(stats.delivered_packets + stats.lost_packets, stats.sent_packets, "{stats:?}");
                    assert!(transfer.fates.values().all(|(fate, _)| *fate != Fate::Open));
                    assert!(stats.spurious_packets <= stats.lost_packets, "{stats:?}");
                }
            }
        }
    }
}
