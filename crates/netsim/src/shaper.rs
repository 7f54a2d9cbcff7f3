//! What holds packets to a rate: the shaper, which makes them wait, and the policer, which does not.

use crate::bucket::Bucket;
use crate::{LinkConfig, Police, Time};

/// Serves a queue: says when each packet has left it.
#[derive(Clone, Debug)]
pub(crate) struct Shaper {
    /// Departure of the last packet, in whole picoseconds, and what is left over in units of 1/rate.
    busy_until: Time,
    remainder: u64,
    /// What is in the bucket at `busy_until`; empty where there is none.
    bucket: Bucket,
}

impl Shaper {
    /// Idle, with a full bucket.
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self { busy_until: Time::ZERO, remainder: 0, bucket: Bucket::full(config.bucket_bytes.unwrap_or(0)) }
    }

    /// Takes over another configuration: a bucket keeps what is in it, a new one is full.
    pub(crate) fn change(&mut self, from: &LinkConfig, to: &LinkConfig) {
        if from.rate != to.rate {
            // Its unit was 1/rate. Less than a picosecond goes with it.
            self.remainder = 0;
        }
        match (from.bucket_bytes, to.bucket_bytes) {
            (None, Some(bytes)) => self.bucket = Bucket::full(bytes),
            (_, bytes) => self.bucket.limit(bytes.unwrap_or(0)),
        }
    }

    /// Puts a packet behind the others and says when its last bit leaves.
    pub(crate) fn depart(&mut self, now: Time, ip_bytes: u32, config: &LinkConfig) -> Time {
        let Some(rate) = config.rate else {
            return now;
        };
        if self.busy_until < now {
            if let Some(most) = config.bucket_bytes {
                self.bucket.fill(now.as_picos() - self.busy_until.as_picos(), rate, most);
            }
            self.busy_until = now;
            self.remainder = 0;
        }
        let picos = match config.bucket_bytes {
            None => rate.picos_for(ip_bytes, &mut self.remainder),
            Some(_) => rate.picos_for_work(self.bucket.take_some(ip_bytes), &mut self.remainder),
        };
        self.busy_until = self.busy_until.plus_picos(picos);
        self.busy_until
    }
}

/// Lets pass what keeps to a rate.
#[derive(Clone, Debug)]
pub(crate) struct Policer {
    police: Police,
    bucket: Bucket,
    /// When the bucket was filled last.
    filled: Time,
}

impl Policer {
    /// With a full bucket.
    pub(crate) fn new(police: Police) -> Self {
        Self { police, bucket: Bucket::full(police.burst_bytes), filled: Time::ZERO }
    }

    /// Takes over another limit: the bucket keeps what is in it.
    pub(crate) fn change(&mut self, police: Police) {
        self.police = police;
        self.bucket.limit(police.burst_bytes);
    }

    /// Whether a packet passes.
    pub(crate) fn passes(&mut self, now: Time, ip_bytes: u32) -> bool {
        if self.filled < now {
            self.bucket.fill(now.as_picos() - self.filled.as_picos(), self.police.rate, self.police.burst_bytes);
            self.filled = now;
        }
        self.bucket.take(ip_bytes)
    }
}
