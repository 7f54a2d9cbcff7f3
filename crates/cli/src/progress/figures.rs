//! The progress of a transfer in one line, or two on a terminal.

use std::fmt;
use std::time::Duration;

use downpour::{Bottleneck, Progress};

use crate::escape;

/// The contents of the line.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Bytes that have arrived.
    pub(crate) bytes: u64,
    /// Total bytes known so far.
    pub(crate) known: u64,
    /// Whether `known` is final; otherwise the sender is still scanning, or the receiver has no report of the end yet.
    pub(crate) is_all: bool,
    /// Completed files and files known so far; `None` if unknown.
    pub(crate) files: Option<(u64, u64)>,
    /// Name of the current file, escaped.
    pub(crate) current: Option<String>,
    /// Bytes per second.
    pub(crate) goodput: f64,
    /// Time for the remaining known bytes.
    pub(crate) left: Option<Duration>,
    /// Share of packets lost, if this side knows it.
    pub(crate) loss: Option<f64>,
    /// Smoothed round-trip time, once measured.
    pub(crate) rtt: Option<Duration>,
    /// The bottleneck of the transfer, if this side knows it.
    pub(crate) limited_by: Option<Bottleneck>,
}

impl From<&Progress> for Figures {
    fn from(progress: &Progress) -> Self {
        Self {
            bytes: progress.bytes_arrived(),
            known: progress.bytes_known,
            is_all: progress.total_is_final,
            files: (progress.files_known > 0).then_some((progress.files_done, progress.files_known)),
            current: progress.current.as_deref().map(escape::name),
            goodput: progress.goodput / 8.0,
            left: progress.left(),
            loss: progress.loss,
            rtt: progress.rtt,
            limited_by: progress.limited_by,
        }
    }
}

impl Figures {
    /// Returns the share of the known bytes that has arrived.
    fn percent(&self) -> u64 {
        u64::try_from(u128::from(self.bytes) * 100 / u128::from(self.known.max(1))).unwrap_or(u64::MAX).min(100)
    }

    /// Returns the line for output without a terminal.
    pub(crate) fn line(&self) -> String {
        let names = self.names().map(|names| format!("  {names}")).unwrap_or_default();
        format!("{:>3} %  {self}{names}", self.percent())
    }

    /// Returns `12 of 31 files  photos/a.jpg`; `None` for a single file.
    pub(super) fn names(&self) -> Option<String> {
        let (done, known) = self.files.filter(|(_, known)| *known > 1 || !self.is_all)?;
        let more = if self.is_all { "" } else { "+" };
        let current = self.current.as_ref().map(|name| format!("  {name}")).unwrap_or_default();
        Some(format!("{done} of {known}{more} files{current}"))
    }
}

impl fmt::Display for Figures {
    /// Formats `1.82 of 4.23 GB  94.2 MB/s  loss 4.9 %  RTT 100 ms  24 s left  (path)`. The least important part
    /// is last, since a narrow terminal cuts it off.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&of_total(self.bytes, self.known, self.is_all))?;
        write!(f, "  {}", units::bytes_per_second(self.goodput))?;
        if let Some(loss) = self.loss {
            write!(f, "  loss {}", units::percent(loss))?;
        }
        if let Some(rtt) = self.rtt {
            write!(f, "  RTT {}", units::seconds(rtt.as_secs_f64()))?;
        }
        if let Some(left) = self.left {
            write!(f, "  {} left", in_words(left))?;
        }
        self.limited_by.map_or(Ok(()), |bottleneck| write!(f, "  ({})", bottleneck_text(bottleneck)))
    }
}

/// Returns the text for a bottleneck; `--json` has [`Bottleneck::name`].
const fn bottleneck_text(bottleneck: Bottleneck) -> &'static str {
    match bottleneck {
        Bottleneck::Search => "finding the rate",
        Bottleneck::Path => "path",
        Bottleneck::Policer => "policer",
        Bottleneck::Neighbors => "shared path",
        Bottleneck::FixedRate => "--rate",
        Bottleneck::Overload => "--rate above capacity",
        Bottleneck::RateLimit => "--limit",
        Bottleneck::Reading => "local reads",
        Bottleneck::Processor => "local CPU",
        Bottleneck::Writing => "remote writes",
        Bottleneck::Memory => "local memory",
        Bottleneck::PeerMemory => "remote memory",
        Bottleneck::Overflow => "local socket buffer",
        Bottleneck::PeerOverflow => "remote socket buffer",
    }
}

/// Formats a time as `24 s`, `4 min`, `2 h 09 min`, without tenths, which would flicker.
pub(crate) fn in_words(duration: Duration) -> String {
    let whole = duration.as_secs_f64().ceil() as u64;
    match whole {
        0..100 => format!("{whole} s"),
        100..3600 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats `1.82 of 4.23 GB`, `999 kB of 4.23 GB`, or `1.82 of 4.23+ GB` if more may follow.
fn of_total(bytes: u64, known: u64, is_all: bool) -> String {
    let (bytes, known) = (units::bytes(bytes), units::bytes(known));
    let more = if is_all { "" } else { "+" };
    match (bytes.split_once(' '), known.split_once(' ')) {
        (Some((number, unit)), Some((total, same))) if unit == same => format!("{number} of {total}{more} {unit}"),
        (_, Some((total, unit))) => format!("{bytes} of {total}{more} {unit}"),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_has_no_tenths() {
        for (millis, text) in
            [(0, "0 s"), (100, "1 s"), (99_000, "99 s"), (100_000, "2 min"), (7_740_000, "2 h 09 min")]
        {
            assert_eq!(in_words(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn figures_fit_80_columns() {
        let mut figures = Figures {
            bytes: 1_820_000_000,
            known: 4_230_000_000,
            is_all: true,
            files: Some((12, 31)),
            current: Some("photos/a.jpg".to_owned()),
            goodput: 94_200_000.0,
            left: Some(Duration::from_millis(25_600)),
            loss: Some(0.049),
            rtt: Some(Duration::from_millis(100)),
            limited_by: Some(Bottleneck::Path),
        };
        let line = figures.to_string();
        assert_eq!(line, "1.82 of 4.23 GB  94.2 MB/s  loss 4.9 %  RTT 100 ms  26 s left  (path)");
        assert!(line.len() + "100 %  ".len() <= 80, "{}", line.len());
        assert_eq!(figures.line(), format!(" 43 %  {line}  12 of 31 files  photos/a.jpg"));
        (figures.goodput, figures.left, figures.limited_by) = (0.0, None, None);
        assert_eq!(figures.to_string(), "1.82 of 4.23 GB  0 B/s  loss 4.9 %  RTT 100 ms");
        (figures.is_all, figures.loss, figures.rtt) = (false, None, None);
        assert_eq!(figures.to_string(), "1.82 of 4.23+ GB  0 B/s");
        assert_eq!(of_total(5, 4_230_000_000, true), "5 B of 4.23 GB");
    }

    #[test]
    fn names_are_shown_for_several_files() {
        let mut figures = Figures {
            bytes: 0,
            known: 1,
            is_all: false,
            files: Some((0, 1)),
            current: None,
            goodput: 0.0,
            left: None,
            loss: None,
            rtt: None,
            limited_by: None,
        };
        assert_eq!(figures.names().as_deref(), Some("0 of 1+ files"));
        figures.is_all = true;
        assert_eq!(figures.names(), None);
        figures.files = None;
        assert_eq!(figures.names(), None, "an older release does not report files");
    }
}
