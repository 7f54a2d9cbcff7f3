//! One line per minute, for logs.

use std::time::{Duration, Instant};

use super::Figures;
use crate::print;

const PERIOD: Duration = Duration::from_secs(60);

/// Prints the progress at intervals.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// `None` before the first figures.
    next: Option<Instant>,
}

impl Lines {
    /// Prints the progress if the last line is old enough.
    pub(super) fn show(&mut self, now: Instant, figures: &Figures) {
        if self.is_due(now) {
            print::err(figures.line());
        }
    }

    /// Returns whether a line is due. A transfer of less than a minute has none.
    fn is_due(&mut self, now: Instant) -> bool {
        let next = *self.next.get_or_insert(now + PERIOD);
        if now < next {
            return false;
        }
        self.next = Some(now + PERIOD);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_due_once_a_minute() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let due: Vec<u64> = (0..300).filter(|second| lines.is_due(start + Duration::from_secs(*second))).collect();
        assert_eq!(due, [60, 120, 180, 240]);
        assert!(lines.is_due(start + Duration::from_secs(3600)));
        assert!(!lines.is_due(start + Duration::from_secs(3601)), "no lines to make up for");
    }
}
