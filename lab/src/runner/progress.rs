//! The progress of the runs, on stderr: a bar on a terminal, otherwise lines.

use std::io::{self, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Agenda;
use crate::results::{Ending, Record};

const DRAWINGS_PER_SECOND: u8 = 10;

/// Shows the progress of the runs.
#[derive(Debug)]
pub struct ProgressReporter {
    how: Display,
    /// The last known description of the remaining work.
    left: String,
}

#[derive(Debug)]
enum Display {
    Bar(ProgressBar),
    Lines,
    Nothing,
}

impl ProgressReporter {
    /// Creates a progress display on stderr.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND));
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {wide_msg}").expect("a constant template");
        let how =
            if bar.is_hidden() { Display::Lines } else { Display::Bar(bar.with_style(style.progress_chars("=> "))) };
        Self { how, left: String::new() }
    }

    /// Creates a progress display that shows nothing.
    pub fn none() -> Self {
        Self { how: Display::Nothing, left: String::new() }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        if let Display::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }

    /// Updates the remaining work.
    pub(super) fn show(&mut self, agenda: &Agenda, jobs: usize) {
        let (runs, seconds) = agenda.left();
        self.left = left(runs, seconds.map(|seconds| seconds / jobs as f64));
        if let Display::Bar(bar) = &self.how {
            let (_, total) = agenda.settled_of_total();
            bar.set_length(total as u64);
            bar.set_position(total.saturating_sub(runs) as u64);
            bar.set_message(self.left.clone());
        }
    }

    /// Reports the end of a run.
    pub(super) fn ran(&mut self, record: &Record) {
        match &self.how {
            Display::Bar(_) if record.is_valid() => {}
            Display::Bar(_) | Display::Nothing => self.note(&line(record)),
            Display::Lines => self.note(&format!("{}  ({})", line(record), self.left)),
        }
    }

    /// Prints a note.
    pub(super) fn note(&self, line: &str) {
        // A closed terminal does not stop the runs.
        let print = || drop(writeln!(io::stderr(), "{line}"));
        match &self.how {
            Display::Bar(bar) => bar.suspend(print),
            Display::Lines => print(),
            Display::Nothing => {}
        }
    }
}

impl Default for ProgressReporter {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns `12 runs left, about 4 min 05 s`.
fn left(runs: usize, seconds: Option<f64>) -> String {
    let text = units::count(runs, "run", "runs");
    match seconds {
        Some(seconds) if runs > 0 => format!("{text} left, about {}", units::seconds(seconds)),
        _ => format!("{text} left"),
    }
}

/// Returns `tcp-cubic 10 MB over rate=100M: 1.52 s`.
fn line(record: &Record) -> String {
    let case = &record.case;
    let invalid = match &record.outcome.verdict.reasons[..] {
        [] => String::new(),
        reasons => format!(", invalid: {}", reasons.join("; ")),
    };
    format!("{} {} over {}: {}{invalid}", case.peer, case.work(), case.link, ended(record))
}

/// Returns the outcome of a run: `1.52 s`.
pub(crate) fn ended(record: &Record) -> String {
    let ending = match &record.outcome.ending {
        Ending::Finished { seconds } => units::seconds(*seconds),
        Ending::NotFinished => format!("not finished in {}", units::seconds(record.case.cap_seconds)),
        Ending::Failed { reason } => format!("failed: {reason}"),
    };
    let delays = record.outcome.written.map_or_else(String::new, |written| {
        let delays = written.delays;
        format!(", delays {:.1} ms (50 %), {:.1} ms (99 %)", delays.p50_ms, delays.p99_ms)
    });
    ending + &delays
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{record, written};

    #[test]
    fn progress_line_has_the_outcome() {
        let mut record = record(1.518);
        assert_eq!(line(&record), "tcp-cubic 1 MB over rate=10M,seed=1: 1.52 s");
        record.outcome.ending = Ending::NotFinished;
        record.outcome.verdict.reasons = vec!["late".into(), "ring drops".into()];
        let said = "tcp-cubic 1 MB over rate=10M,seed=1: not finished in 1 min 00 s, invalid: late; ring drops";
        assert_eq!(line(&record), said.replace("1 min 00 s", "60.0 s"));
        let said = "tcp-cubic 10 B each 20 ms for 2.00 s, echoed, beside an upload of 1 MB, over rate=10M,seed=1: 4.00 s, \
                    delays 50.0 ms (50 %), 80.5 ms (99 %)";
        assert_eq!(line(&written(50.0, 80.5)), said);
        assert_eq!(left(1, None), "1 run left");
        assert_eq!(left(12, Some(245.0)), "12 runs left, about 4 min 05 s");
    }
}
