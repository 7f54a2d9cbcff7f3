//! The output of a transfer: text and a progress line on stderr, or JSON on stdout.

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use downpour::activity::State;
use downpour::files::{FailReason, Failed, NoticeKind};
use downpour::{Offer, Progress, Rate, Summary};

use crate::advice;
use crate::announce;
use crate::args::{OutputArgs, ProgressMode};
use crate::escape;
use crate::exit::{Code, Failure};
use crate::json::{self, JsonRecord};
use crate::notices::Notices;
use crate::print::{self, err, out, warn};
use crate::progress::{Figures, ProgressDisplay};
use crate::rate::Both;
use crate::rate_timetable::Limit;
use crate::stats::Stats;

/// Interval of progress objects of `--json`.
const JSON_PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of names shown of an offer.
const NAMES: usize = 5;

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Output {
    shown: OutputArgs,
    /// Whether rsync's statistics are printed at the end.
    stats: bool,
    showing: ProgressDisplay,
    unprinted: Option<Progress>,
    noticed: u64,
    only_in_a: u64,
    next_json: Instant,
}

impl Output {
    /// Creates the output selected by the options.
    pub(crate) fn new(shown: OutputArgs) -> Self {
        let how = if shown.quiet || shown.json { Some(ProgressMode::None) } else { shown.progress };
        Self {
            shown,
            stats: false,
            showing: ProgressDisplay::new(how),
            unprinted: None,
            noticed: 0,
            only_in_a: 0,
            next_json: Instant::now(),
        }
    }

    /// Prints rsync's statistics at the end, if requested.
    pub(crate) fn with_stats(self, stats: bool) -> Self {
        Self { stats, ..self }
    }

    /// Shows the configured rate and the limit, in both units.
    pub(crate) fn speed(&self, rate: Option<Rate>, limit: Option<&Limit>) {
        match (rate, limit) {
            (Some(rate), Some(limit)) if limit.is_below(rate) => {
                self.say(format_args!("Sending at {} (IP bytes), capped by --limit: {limit}.", Both(rate)))
            }
            (Some(rate), _) => self.say(format_args!("Sending at {} (IP bytes).", Both(rate))),
            (None, Some(limit)) => self.detail(format_args!("Limit: {limit}.")),
            (None, None) => {}
        }
    }

    /// Prints the first line of `--json`, or the ticket for people and scripts.
    ///
    /// # Errors
    /// The ticket was not written.
    pub(crate) fn start(&self, command: &str, rate: Option<Rate>, ticket: Option<&str>) -> Result<(), Failure> {
        if self.shown.json {
            json::print(&JsonRecord::Start(json::Start {
                command,
                version: env!("CARGO_PKG_VERSION"),
                ticket,
                rate_bits_per_second: rate.map(Rate::bits_per_second),
            }));
        } else if let Some(ticket) = ticket {
            // Alone on stdout, for scripts.
            out(ticket);
            self.say("");
        }
        ticket.map_or(Ok(()), |_| print::has_ticket())
    }

    /// Reports that the peer has connected.
    pub(crate) fn connected(&self, remote: Option<SocketAddr>) {
        if self.shown.json {
            json::print(&JsonRecord::Path { remote: remote.map(|remote| remote.to_string()) });
        }
        announce::update(|activity| (activity.state, activity.receivers) = (State::Connected, 0));
        match remote {
            Some(remote) => self.detail(format_args!("Connected to {remote}.")),
            None => self.detail("Connected without UDP."),
        }
    }

    /// Prints the progress on stderr after SIGUSR1, whatever the options.
    pub(crate) fn print_progress(&self) {
        self.showing.above(announce::print_progress);
    }

    /// Shows an offer and its destination.
    pub(crate) fn offer(&self, offer: &Offer) {
        self.say(describe(offer));
    }

    /// Shows the same before a question, whatever the options.
    pub(crate) fn ask(&self, offer: &Offer) {
        self.hide_progress();
        err(describe(offer));
    }

    /// Shows the progress.
    pub(crate) fn progress(&mut self, progress: Progress) {
        let now = Instant::now();
        let figures = Figures::from(&progress);
        self.showing.figures(now, &figures);
        announce::update(|activity| activity.progress = Some(progress.clone()));
        if self.shown.json && now >= self.next_json {
            self.next_json = now + JSON_PERIOD;
            json::print(&JsonRecord::Progress(json::ProgressRecord::from(&progress)));
            self.unprinted = None;
            return;
        }
        self.unprinted = Some(progress);
    }

    /// Reports a file that has arrived.
    pub(crate) fn file(&self, path: &[u8], bytes: u64) {
        if self.shown.json {
            json::print(&JsonRecord::File { path: path.into(), bytes });
        }
        self.detail(format_args!("{} ({})", escape::name(path), units::bytes(bytes)));
    }

    /// Reports a name that the sender skipped, such as a socket.
    pub(crate) fn skipped(&self, skipped: &Failed) {
        if self.shown.json {
            let reason = Some(skipped.reason.to_string());
            json::print(&JsonRecord::Notice { what: "left_out", path: skipped.path.as_slice().into(), reason });
        }
        self.say(format_args!("skipped: {} {}", escape::name(&skipped.path), advised(skipped.reason)));
    }

    /// Shows the current number of receivers, instead of a mixture of their figures.
    pub(crate) fn show_receiver_count(&self, receivers: u64) {
        self.showing.words(&units::count(receivers, "receiver", "receivers"));
        announce::update(|activity| (activity.receivers, activity.progress) = (receivers, None));
    }

    /// Reports a notice of the receiver. Plans and differences are the result of a command and go to stdout.
    pub(crate) fn notice(&mut self, notices: Notices, kind: NoticeKind, name: &[u8]) {
        match kind {
            NoticeKind::LowSpace => return self.warn("low_space", kind, b".", format_args!("{kind}")),
            NoticeKind::StaleStaging => {
                let words = format_args!("{}: {}", escape::name(name), advised(FailReason::Refused(kind)));
                return self.warn("abandoned", kind, name, words);
            }
            _ => {}
        }
        let Some((what, difference)) = words(kind) else { return };
        let path = escape::name(name);
        match notices {
            Notices::Done if kind == NoticeKind::Delete => self.detail(format_args!("deleted {path}")),
            Notices::Done if kind == NoticeKind::SourceRemoved => {
                self.detail(format_args!("removed from the source: {path}"));
            }
            Notices::Done => self.detail(format_args!("{path}: {kind}")),
            // Times and modes are not part of the content.
            Notices::Differences if difference.is_empty() => {
                return self.detail(format_args!("mode or mtime differs: {path}"));
            }
            Notices::Planned if !self.shown.json => self.showing.above(|| out(format_args!("{kind} {path}"))),
            Notices::Differences if !self.shown.json => {
                self.showing.above(|| out(format_args!("{difference}: {path}")))
            }
            Notices::Planned | Notices::Differences => {}
        }
        // A kept name is not a change of the destination, but a difference.
        self.noticed += u64::from(notices == Notices::Differences || kind != NoticeKind::Kept);
        self.only_in_a += u64::from(kind == NoticeKind::Create);
        if self.shown.json && (notices != Notices::Done || self.shown.verbose) {
            json::print(&JsonRecord::Notice { what, path: name.into(), reason: None });
        }
    }

    /// Warns of a condition at the destination, without a failure.
    fn warn(&self, what: &'static str, kind: NoticeKind, path: &[u8], words: fmt::Arguments<'_>) {
        if self.shown.json {
            json::print(&JsonRecord::Notice { what, path: path.into(), reason: Some(kind.to_string()) });
        }
        self.showing.above(|| warn(words));
    }

    /// Returns the number of notices.
    pub(crate) const fn noticed(&self) -> u64 {
        self.noticed
    }

    /// Confirms a signal to stop.
    pub(crate) fn stopping(&self) {
        announce::update(|activity| activity.state = State::Stopping);
        self.showing.words("Stopping. Press Ctrl-C again to abort.");
    }

    /// Stops drawing after the terminal was closed.
    pub(crate) fn hang_up(&mut self) {
        self.showing.hang_up();
    }

    /// Reports the failure of one of several transfers, as [`failed`] does at the end.
    pub(crate) fn one_failed(&self, failure: &Failure) {
        self.hide_progress();
        failed(self.shown, failure);
    }

    /// Reports a failed attempt after which the listener waits for the next, whatever the options.
    pub(crate) fn attempt_failed(&self, message: &str, code: Code) {
        if self.shown.json {
            json::print(&JsonRecord::Attempt { message, exit_code: code as u8 });
        }
        self.showing.above(|| warn(message));
    }

    /// Removes the progress line until there is progress again.
    pub(crate) fn hide_progress(&self) {
        self.showing.clear();
    }

    /// Prints the last line of a full or partial success.
    pub(crate) fn done(&self, notices: Notices, summary: &Summary) {
        self.showing.clear();
        let why = if notices == Notices::Differences { "could not be compared: " } else { "" };
        for failed in &summary.failures.listed {
            warn(format_args!("{}: {why}{}", escape::name(&failed.path), advised(failed.reason)));
        }
        let more = summary.failures.count.saturating_sub(summary.failures.listed.len() as u64);
        if more > 0 {
            warn(format_args!("and {}", units::count(more, "more name", "more names")));
        }
        if let Some(why) = &summary.trace_lost {
            warn(format_args!("{}; the transfer itself is complete", escape::text(why)));
        }
        if self.shown.json {
            if let Some(progress) = &self.unprinted {
                json::print(&JsonRecord::Progress(json::ProgressRecord::from(progress)));
            }
            json::print(&JsonRecord::Summary(json::Summary::new(summary, notices, self.noticed)));
        }
        match (notices, self.noticed) {
            (Notices::Done, _) => {
                // A local copy has no packets.
                if summary.wire_bytes > 0 {
                    self.detail(counts(summary));
                }
                self.say(summary);
            }
            (Notices::Planned, 0) => self.say("Nothing to do."),
            (Notices::Planned, names) => self.say(planned(names, summary)),
            (Notices::Differences, names) => self.say(compared(names, self.only_in_a, summary)),
        }
        if self.stats && !self.shown.json {
            out(Stats(summary));
        }
    }

    /// Prints a line for people, unless `-q` or `--json`.
    pub(crate) fn say(&self, line: impl fmt::Display) {
        if !self.shown.quiet && !self.shown.json {
            self.showing.above(|| err(line));
        }
    }

    /// Prints a note of the library, unless `-q` or `--json`. ssh may ask for something next, which must not be written
    /// on the progress line.
    pub(crate) fn note(&self, note: &str) {
        if !self.shown.quiet && !self.shown.json {
            self.hide_progress();
            print::note(note);
        }
    }

    /// Prints a line for people with `-v`.
    pub(crate) fn detail(&self, line: impl fmt::Display) {
        if self.shown.verbose {
            self.showing.above(|| err(line));
        }
    }
}

/// Formats two lines: the offered names and the destination.
fn describe(offer: &Offer) -> String {
    let more = offer.names.len().saturating_sub(NAMES);
    let mut names = offer.names.iter().take(NAMES).map(|name| escape::name(name)).collect::<Vec<_>>().join(", ");
    if more > 0 {
        names += &format!(" and {more} more");
    }
    let items = units::count(offer.entries, "item", "items");
    // The sender may still be scanning its directories.
    let open = if offer.is_all { String::new() } else { more_to_come(offer.limits) };
    let into = std::path::absolute(&offer.into).unwrap_or_else(|_| offer.into.clone());
    format!("Offered: {names} ({items}, {}{open})\nInto:    {}", units::bytes(offer.bytes), into.display())
}

/// Formats the limits of an incomplete offer.
fn more_to_come((bytes, entries): (Option<u64>, Option<u64>)) -> String {
    let entries = entries.map(|most| units::count(most, "item", "items"));
    let limits: Vec<_> = entries.into_iter().chain(bytes.map(units::bytes)).collect();
    match limits.join(" and ").as_str() {
        "" => "; more will follow, unlimited".to_owned(),
        limits => format!("; more will follow, up to {limits} in total"),
    }
}

/// Formats the last line of a dry run that would change this many names. Of a changed file only the differences would be
/// sent, whose size is not known before.
fn planned(names: u64, summary: &Summary) -> String {
    let names = units::count(names, "name", "names");
    match summary.transferred() {
        0 => format!("Dry run: {names} to change, no bytes to transfer; nothing was changed."),
        bytes => {
            format!("Dry run: {names} to change, at most {} to transfer; nothing was changed.", units::bytes(bytes))
        }
    }
}

/// Formats the last line of a comparison with this many differences. Names that could not be compared count as neither
/// different nor equal.
fn compared(differences: u64, only_in_a: u64, summary: &Summary) -> String {
    let mut sentences = Vec::new();
    if differences > 0 {
        sentences.push(format!("{}.", units::count(differences, "difference", "differences")));
    } else if summary.failures.count == 0 {
        sentences.push(format!("No difference in {}.", units::count(summary.names.files, "file", "files")));
    }
    if summary.failures.count > 0 {
        sentences.push(format!("{} could not be compared.", units::count(summary.failures.count, "name", "names")));
    }
    // A remote host may report both.
    let entries = summary.names.files.saturating_add(summary.names.directories).saturating_add(summary.names.symlinks);
    if differences > 0 && only_in_a == entries {
        sentences.push("Nothing of A exists in B: check the path.".to_owned());
    }
    sentences.join(" ")
}

/// Returns a reason with advice.
fn advised(reason: FailReason) -> String {
    advice::on_name(reason).map_or_else(|| reason.to_string(), |advice| format!("{reason}; {advice}"))
}

/// Returns the name of a notice in `--json`, and its text as a difference between A and B. Failures are in the summary.
const fn words(kind: NoticeKind) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        NoticeKind::Create => ("create", "only in A"),
        NoticeKind::Replace => ("replace", "differs"),
        NoticeKind::Attributes => ("attributes", ""),
        NoticeKind::Delete => ("delete", "only in B"),
        NoticeKind::Kept => ("kept", "differs"),
        NoticeKind::SourceRemoved => ("remove_source", ""),
        _ => return None,
    })
}

/// Formats `4.6 GB in IP packets, loss 4.9 %, 5.2 % of the symbols repair, RTT 100 ms.`, without shares of too few packets
/// and without counts of 0.
fn counts(summary: &Summary) -> String {
    let measured = &summary.connection;
    let mut parts = vec![format!("{} in IP packets", units::bytes(summary.wire_bytes))];
    parts.extend(measured.loss.map(|loss| format!("loss {}", units::percent(loss))));
    parts.extend(measured.repair_share.map(|share| format!("{} of the symbols repair", units::percent(share))));
    parts.extend(measured.rtt.map(|rtt| format!("RTT {}", units::seconds(rtt.as_secs_f64()))));
    parts.extend(
        measured
            .remembered
            .map(|rate| format!("started at {} (path cache)", units::scaled(rate.bits_per_second() as f64, "bit/s"))),
    );
    parts.extend(measured.overflowed.filter(|dropped| *dropped > 0).map(|dropped| {
        let datagrams = units::count(dropped, "datagram", "datagrams");
        format!("{datagrams} dropped by the receiver's full socket buffer")
    }));
    parts.extend(rejected(summary));
    parts.join(", ") + "."
}

/// Formats `3 datagrams rejected (2 not authentic, 1 malformed)`; `None` if every connection may have such datagrams.
fn rejected(summary: &Summary) -> Option<String> {
    let reasons = summary.connection.refused_for.iter().filter(|(_, count)| **count > 0);
    let reasons: Vec<_> = reasons.filter_map(|(reason, count)| Some((*count, reject_reason(reason)?))).collect();
    let count = reasons.iter().fold(0_u64, |sum, (count, _)| sum.saturating_add(*count));
    let words: Vec<_> = reasons.iter().map(|(count, words)| format!("{count} {words}")).collect();
    (count > 0).then(|| format!("{} rejected ({})", units::count(count, "datagram", "datagrams"), words.join(", ")))
}

/// Returns the text of a reason to reject a datagram; `None` for a reason of normal connections: copies of handshakes and
/// packets, and datagrams in flight when a connection was closed.
fn reject_reason(reason: &str) -> Option<Cow<'_, str>> {
    Some(match reason {
        "handshake_late" | "replayed" | "unknown_connection" => return None,
        "too_short" => "too short".into(),
        "unknown_type" => "of another protocol".into(),
        "unknown_key" => "from a sender without the ticket".into(),
        "bad_version" => "of another version".into(),
        "handshake_failed" | "authentication_failed" => "not authentic".into(),
        "handshake_replayed" => "replayed handshake".into(),
        "wrong_epoch" => "sealed with an old key".into(),
        "malformed" => "malformed".into(),
        "unacceptable" => "beyond the granted limits".into(),
        "amplification" => "over the limit of an unvalidated address".into(),
        "busy" => "over the connection limit".into(),
        "empty" => "empty".into(),
        "icmp" => "irrelevant ICMP".into(),
        // Another release may have other reasons.
        other => escape::text(other).into(),
    })
}

/// Prints a failure in one line, whatever the options.
pub(crate) fn failed(shown: OutputArgs, failure: &Failure) {
    if shown.json {
        json::print(&JsonRecord::Error { message: &failure.message, exit_code: failure.code });
    }
    err(format_args!("downpour: {}", failure.message));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reason of the engine has a text, or is irrelevant to users.
    #[test]
    fn every_reject_reason_has_a_text() {
        let named = downpour::RejectedDatagrams::default();
        let silent: Vec<_> = named.by_reason().filter(|(reason, _)| reject_reason(reason).is_none()).collect();
        assert_eq!(silent, [("unknown_connection", 0), ("handshake_late", 0), ("replayed", 0)]);
        for (reason, _) in named.by_reason() {
            let words = reject_reason(reason).unwrap_or_default();
            assert!(!words.contains('_'), "{reason} has no words");
        }
        assert_eq!(reject_reason("of_\x1b[2Ja later release").as_deref(), Some("of_\\u{1b}[2Ja later release"));
    }
}
