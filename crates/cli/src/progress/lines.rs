//! A line a minute, for logs.

use std::time::{Duration, Instant};

use super::Figures;
use crate::print;

const PERIOD: Duration = Duration::from_secs(60);

/// Says now and then how far it is.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// `None` before the first figures.
    next: Option<Instant>,
}

impl Lines {
    /// Says how far it is, if the last line is long enough ago.
    pub(super) fn show(&mut self, now: Instant, figures: &Figures) {
        if self.is_due(now) {
            print::err(format_args!("{:>3} %  {figures}", figures.percent()));
        }
    }

    /// A transfer of less than a minute needs no line.
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
    fn a_line_a_minute() {
        let mut lines = Lines::default();
        let start = Instant::now();
        let said: Vec<u64> = (0..300).filter(|second| lines.is_due(start + Duration::from_secs(*second))).collect();
        assert_eq!(said, [60, 120, 180, 240]);
        assert!(lines.is_due(start + Duration::from_secs(3600)));
        assert!(!lines.is_due(start + Duration::from_secs(3601)), "no lines to make up for");
    }
}
