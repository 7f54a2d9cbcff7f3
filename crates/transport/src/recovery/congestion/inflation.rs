//! Fast recovery's inflation of the window (RFC 5681 section 3.2, RFC 6582 section 3.2; arq §3.1).

use crate::recovery::report::{Cause, Report};

/// The bytes by which a window exceeds itself for packets that arrived beyond a gap but are not acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inflation(f64);

impl Inflation {
    /// A loss begins fast recovery with this many packets of `packet` bytes (RFC 5681 section 3.2 step 3).
    pub(super) fn begin(&mut self, packets: u32, packet: f64) {
        self.0 = f64::from(packets) * packet;
    }

    /// Ends it.
    pub(super) const fn clear(&mut self) {
        self.0 = 0.0;
    }

    /// Returns the bytes.
    pub(super) const fn bytes(self) -> f64 {
        self.0
    }

    /// A duplicate acknowledgement adds a packet, up to `most` bytes (step 4), a partial acknowledgement deducts its
    /// packets less one (RFC 6582 section 3.2 step 5), and the first acknowledgement of a packet sent since the loss, of
    /// `acked` bytes, ends it (step 6).
    pub(super) fn on_report(&mut self, report: &Report<'_>, acked: u64, packet: f64, most: f64) {
        if self.0 == 0.0 {
            return;
        }
        let duplicate = report.cause == Cause::Feedback && report.delivered.is_empty() && report.lost.is_empty();
        if acked > 0 {
            self.0 = 0.0;
        } else if duplicate {
            // No more can have been acknowledged than were in the window.
            self.0 = (self.0 + packet).min(most);
        } else if report.delivered_bytes > 0 {
            self.0 = (self.0 - report.delivered_bytes as f64 + packet).max(packet);
        }
    }
}
