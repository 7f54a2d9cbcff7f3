//! Rate limits: the shaper, which makes packets wait, and the policer, which drops them.

use crate::bucket::Bucket;
use crate::trace::Playback;
use crate::{LinkConfig, Police, Rate, Time, TraceFile};

/// Serves a queue: determines when each packet has left it.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    /// Departure of the last packet, in whole picoseconds, and the remainder in units of 1/rate.
    busy_until: Time,
    remainder: u64,
    /// Number of rate steps that have taken effect by `busy_until`.
    steps: usize,
    playback: Playback,
    /// Content of the bucket at `busy_until`; empty without one.
    bucket: Bucket,
}

impl Shaper {
    /// Creates an idle shaper with a full bucket.
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self {
            busy_until: Time::ZERO,
            remainder: 0,
            steps: 0,
            playback: Playback::default(),
            bucket: Bucket::full(config.bucket_bytes.unwrap_or(0)),
        }
    }

    /// Applies another configuration: a bucket keeps its content, a new one is full.
    pub(crate) fn change(&mut self, from: &LinkConfig, to: &LinkConfig) {
        if from.rate != to.rate {
            // Its unit was 1/rate. Less than a picosecond is lost.
            self.remainder = 0;
        }
        self.steps = 0;
        if from.trace != to.trace {
            self.playback = Playback::default();
        }
        match (from.bucket_bytes, to.bucket_bytes) {
            (None, Some(bytes)) => self.bucket = Bucket::full(bytes),
            (_, bytes) => self.bucket.limit(bytes.unwrap_or(0)),
        }
    }

    /// Puts a packet behind the others and returns when its last bit leaves; at once without rate and trace.
    pub(crate) fn depart(&mut self, now: Time, ip_bytes: u32, config: &LinkConfig) -> Time {
        if let Some(trace) = config.trace.as_ref().and_then(TraceFile::trace) {
            self.busy_until = self.playback.send(trace, now, self.busy_until, ip_bytes);
            return self.busy_until;
        }
        if config.rate.is_none() {
            return now;
        }
        if self.busy_until < now {
            self.idle(now, config);
        }
        let mut work = Rate::work(ip_bytes.into());
        if config.bucket_bytes.is_some() {
            work -= self.bucket.take_some(work);
        }
        self.send(work, config);
        self.busy_until
    }

    /// Returns when a packet offered at `now` would be taken from the queue: when its first bit leaves, or its last one
    /// where it leaves at once.
    pub(crate) fn takes(&self, now: Time, ip_bytes: u32, config: &LinkConfig) -> Time {
        match config.bucket_bytes.is_some() || config.trace.is_some() {
            true => self.clone().depart(now, ip_bytes, config),
            false => self.busy_until.max(now),
        }
    }

    /// Returns when the last bit of all packets has left.
    pub(crate) fn free_at(&self) -> Time {
        self.busy_until
    }

    /// Lets time pass without packets, which fills the bucket.
    fn idle(&mut self, now: Time, config: &LinkConfig) {
        if let Some(most) = config.bucket_bytes {
            while self.busy_until < now {
                let (rate, until) = self.rate(config);
                let end = until.min(now);
                self.bucket.fill(end.as_picos() - self.busy_until.as_picos(), rate, most);
                self.busy_until = end;
            }
        }
        self.busy_until = now;
        self.remainder = 0;
    }

    /// Performs work at the rates then in force.
    fn send(&mut self, mut work: u128, config: &LinkConfig) {
        loop {
            let (rate, until) = self.rate(config);
            let mut remainder = self.remainder;
            let end = self.busy_until.plus_picos(rate.picos_for_work(work, &mut remainder));
            if end <= until {
                self.remainder = remainder;
                self.busy_until = end;
                return;
            }
            let done = u128::from(until.as_picos() - self.busy_until.as_picos()) * u128::from(rate.bits_per_second());
            work = work + u128::from(self.remainder) - done;
            self.remainder = 0;
            self.busy_until = until;
        }
    }

    /// Returns the rate at `busy_until`, and when it ends.
    fn rate(&mut self, config: &LinkConfig) -> (Rate, Time) {
        let mut next = config.steps.get(self.steps);
        while next.is_some_and(|step| Time::from(step.at) <= self.busy_until) {
            self.steps += 1;
            next = config.steps.get(self.steps);
        }
        let taken = self.steps.checked_sub(1).map(|last| config.steps[last].rate);
        let rate = taken.or(config.rate).expect("only a link with a rate has a queue");
        (rate, next.map_or(Time::MAX, |step| step.at.into()))
    }
}

/// Passes packets that keep to a rate.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    police: Police,
    bucket: Bucket,
    /// When the bucket was last filled.
    filled: Time,
}

impl Policer {
    /// Creates a policer with a full bucket.
    pub(crate) fn new(police: Police) -> Self {
        Self { police, bucket: Bucket::full(police.burst_bytes), filled: Time::ZERO }
    }

    /// Applies another limit: the bucket keeps its content.
    pub(crate) fn change(&mut self, police: Police) {
        self.police = police;
        self.bucket.limit(police.burst_bytes);
    }

    /// Returns whether a packet passes.
    pub(crate) fn passes(&mut self, now: Time, ip_bytes: u32) -> bool {
        if self.filled < now {
            self.bucket.fill(now.as_picos() - self.filled.as_picos(), self.police.rate, self.police.burst_bytes);
            self.filled = now;
        }
        self.bucket.take(ip_bytes)
    }
}
