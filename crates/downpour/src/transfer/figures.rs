//! The figures of a transfer: progress while it runs, and the summary at its end.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use transport::{ConnectionStats, Rate};

use crate::files::Failed;
use crate::messages::Strain;
use crate::ticket::Role;
use crate::transfer::Bottleneck;

/// Smoothing time of the displayed goodput.
const SMOOTHING: Duration = Duration::from_secs(2);

/// Longest remaining time that is foreseen. A goodput that leads to more is that of a stalled transfer and predicts
/// nothing.
const FORESEEN: Duration = Duration::from_secs(30 * 24 * 3600);

/// Symbols or packets from which a share of them is told: fewer say nothing of a path, since one alone is more than one
/// per cent.
const ENOUGH_FOR_SHARE: u64 = 100;

/// Returns the share of `part` in `all`, unless there are too few.
pub(super) fn share(part: u64, all: u64) -> Option<f64> {
    (all >= ENOUGH_FOR_SHARE).then(|| part as f64 / all as f64)
}

/// The progress of a transfer, reported about five times a second while there is a connection.
/// It crosses from one release to another: a new field needs a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Progress {
    /// Bytes of files that are done: acknowledged at the sender, written at the receiver, or not wanted.
    pub bytes_done: u64,
    /// Bytes among them that were present before the transfer.
    pub bytes_present: u64,
    /// Bytes not among `bytes_done` that have arrived in blocks which are not complete, or not written yet.
    #[serde(default)]
    pub bytes_underway: u64,
    /// Bytes of all files known so far.
    pub bytes_known: u64,
    /// Whether `bytes_known` and `files_known` are final; otherwise the sender is still scanning its directories.
    pub total_is_final: bool,
    /// Regular files that are done: in place at the receiver; at the sender, those before the bytes that have arrived.
    pub files_done: u64,
    /// All regular files known so far; 0 from a release that does not tell.
    #[serde(default)]
    pub files_known: u64,
    /// Name of the file that is being read or written.
    #[serde(default, with = "crate::base64::name")]
    pub current: Option<Vec<u8>>,
    /// Goodput in bits per second, smoothed over two seconds.
    pub goodput: f64,
    /// Smoothed round-trip time, once measured.
    pub rtt: Option<Duration>,
    /// Share of sent packets that the path loses, as estimated by the sender. The receiver cannot estimate it: it sends
    /// too little, and sees only the packets that arrive.
    pub loss: Option<f64>,
    /// What limits this side; a receiver knows only its own processor.
    pub limited_by: Option<Bottleneck>,
    /// Time since the first datagram.
    pub elapsed: Duration,
    /// All counters of the engine; none of them of a transfer between two other machines.
    #[serde(skip)]
    pub connection: ConnectionStats,
}

impl Progress {
    /// Returns the bytes that are done or have arrived, which rise evenly also where blocks are large.
    #[must_use]
    pub fn bytes_arrived(&self) -> u64 {
        self.bytes_done.saturating_add(self.bytes_underway).min(self.bytes_known.max(self.bytes_done))
    }

    /// Returns the time for the remaining known bytes at this goodput; `None` if next to nothing moves.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let left = self.bytes_known.saturating_sub(self.bytes_arrived());
        let seconds = left as f64 * 8.0 / self.goodput;
        Duration::try_from_secs_f64(seconds).ok().filter(|left| *left <= FORESEEN)
    }
}

/// A complete transfer: every file that is not in `failed` is under its final name, and verified unless
/// `unchecked` says otherwise.
///
/// It crosses from one release to another: a new field needs a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Role of this side.
    pub role: Role,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Location of the files, at the receiver.
    #[serde(skip)]
    pub into: Option<PathBuf>,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub directories: u64,
    /// Symlinks.
    pub symlinks: u64,
    /// Bytes of regular files in place at the receiver.
    pub bytes: u64,
    /// Bytes among them that were present before.
    pub bytes_present: u64,
    /// Files among `files` whose size and modification time matched the source; their content was not compared.
    pub unchanged: u64,
    /// Files not among `files` that existed and were left alone, whatever their content
    /// ([`Existing::Skip`](crate::files::Existing::Skip)).
    pub kept: u64,
    /// Names of the target that were deleted, or would be.
    pub deleted: u64,
    /// Names that were removed from the source, or would be
    /// ([`ScanOptions::remove_sources`](crate::files::ScanOptions::remove_sources)).
    pub removed: u64,
    /// Links among the sources that were followed: see
    /// [`ScanOptions::follow_items`](crate::files::ScanOptions::follow_items).
    pub links_followed: u64,
    /// Bytes that an interrupted run had left at the receiver and that were used without a check, as its user wanted.
    pub unchecked: u64,
    /// Bytes that an interrupted run had left and that had changed since, so that they were transferred again; known
    /// only to the receiver.
    pub altered: Option<u64>,
    /// Symbolic links that were left out as requested ([`Links::Skip`](crate::files::Links::Skip)), or because they
    /// lead out of the target.
    pub links_left_out: u64,
    /// Time from the first datagram to completion, not counting the time spent waiting for this side's user.
    pub elapsed: Duration,
    /// The first thousand names that were not transferred, each with the reason.
    pub failed: Vec<Failed>,
    /// Number of all names that were not transferred.
    pub failed_count: u64,
    /// Those among them that vanished at the sender between its scan and their turn.
    pub vanished_count: u64,
    /// IP bytes sent by the sender of the files; at the receiver, those that arrived.
    pub wire_bytes: u64,
    /// Share of repair symbols among the symbols sent, at the sender; `None` if too few were sent for a share to mean
    /// anything.
    pub repair_share: Option<f64>,
    /// Smoothed round-trip time at the end.
    pub rtt: Option<Duration>,
    /// Share of sent packets that the path lost, at the sender; `None` if too few were sent for a share to mean anything.
    pub loss: Option<f64>,
    /// Datagrams dropped for any reason: unknown connections, corruption, replay.
    pub refused: u64,
    /// The same by reason, as [`net::Refused::by_reason`] names them; empty from a release that does not tell.
    #[serde(default)]
    pub refused_for: BTreeMap<String, u64>,
    /// At a sender with a configured rate, which says nothing of what the path carries: the shortest possible time at this rate, loss and round-trip time for the
    /// bytes that crossed, divided by the time taken. This includes the time in which the receiver's user was asked,
    /// which the sender does not know. `None` for a transfer that is too short to measure a path by.
    pub path_share: Option<f64>,
    /// The rate that an earlier transfer over this path had, with which this one began.
    pub remembered: Option<Rate>,
    /// The side whose bound on memory has slowed the transfer.
    pub memory_bound: Option<Bound>,
    /// Datagrams that the kernel of the receiver of the files has dropped during the transfer, because the receive buffer
    /// of its socket was full; `None` if this side does not know.
    pub overflowed: Option<u64>,
    /// Why this side's trace is not complete, if one was asked for and it is not.
    #[serde(skip)]
    pub trace_lost: Option<String>,
}

/// One of the two sides, as this one sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// This side's.
    Here,
    /// The other side's.
    There,
}

/// A bound on memory has slowed a transfer if it was reached at one in so many ticks.
const NOTICEABLE: u32 = 10;

/// Counts how often the bounds on memory were reached.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MemoryTicks {
    all: u32,
    here: u32,
    there: u32,
}

impl MemoryTicks {
    /// Counts a tick, and at which side the bound was reached then.
    pub(super) fn count(&mut self, ours: &Strain, theirs: &Strain) {
        self.all += 1;
        self.here += u32::from(ours.memory);
        self.there += u32::from(theirs.memory);
    }

    fn add(&mut self, other: &Self) {
        self.all += other.all;
        self.here += other.here;
        self.there += other.there;
    }

    /// Returns the side whose bound has slowed the transfer.
    pub(super) fn bound(&self) -> Option<Bound> {
        let is_noticeable = |ticks: u32| ticks > 0 && ticks * NOTICEABLE >= self.all;
        let here = is_noticeable(self.here).then_some(Bound::Here);
        here.or(is_noticeable(self.there).then_some(Bound::There))
    }
}

/// Cost and results of attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    /// When the first of them began.
    pub(super) since: Option<Instant>,
    /// Bytes of files transferred.
    pub(super) crossed: u64,
    pub(super) wire_bytes: u64,
    pub(super) refused: net::Refused,
    /// See [`Summary::overflowed`].
    pub(super) overflowed: u64,
    pub(super) memory: MemoryTicks,
}

impl Attempts {
    /// Adds an attempt.
    pub(super) fn add(&mut self, attempt: &Self) {
        self.since = self.since.or(attempt.since);
        self.crossed += attempt.crossed;
        self.wire_bytes += attempt.wire_bytes;
        self.refused.merge(&attempt.refused);
        // The peer may claim anything.
        self.overflowed = self.overflowed.saturating_add(attempt.overflowed);
        self.memory.add(&attempt.memory);
    }
}

impl Summary {
    /// Extends the summary of the last attempt to the whole transfer.
    pub(super) fn after(mut self, prior: &Attempts, last: &Attempts) -> Self {
        let elapsed = self.elapsed;
        let began = last.since.unwrap_or_else(Instant::now);
        self.elapsed += prior.since.map_or(Duration::ZERO, |since| began.saturating_duration_since(since));
        let share = elapsed.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9);
        // Bytes transferred by an earlier attempt were not present before the transfer.
        let earlier = self.bytes_present.min(prior.crossed);
        let crossed = self.bytes.saturating_sub(self.bytes_present).max(1);
        let more = 1.0 + earlier as f64 / crossed as f64;
        self.path_share = self.path_share.map(|of_last| of_last * more * share);
        self.bytes_present -= earlier;
        self.wire_bytes += prior.wire_bytes;
        self.refused += prior.refused.total();
        for (reason, count) in counted(&prior.refused) {
            *self.refused_for.entry(reason).or_default() += count;
        }
        self.overflowed = self.overflowed.map(|of_last| of_last.saturating_add(prior.overflowed));
        let mut memory = prior.memory;
        memory.add(&last.memory);
        self.memory_bound = memory.bound();
        self
    }

    /// Returns whether every file of the sources is at the target, and the content of each was transferred or compared
    /// in this run.
    #[must_use]
    pub const fn is_verified(&self) -> bool {
        self.unchanged == 0 && self.unchecked == 0 && self.kept == 0 && self.failed_count == 0
    }

    /// Returns the bytes of files that this transfer has moved, which were not present before; after a dry run, those
    /// that it would move at most.
    #[must_use]
    pub const fn transferred(&self) -> u64 {
        self.bytes.saturating_sub(self.bytes_present)
    }

    /// Returns the bits of files transferred per second over the whole transfer. A dry run transfers none, whatever this
    /// says.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.transferred() as f64 * 8.0 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.files == 1 { "" } else { "s" };
        let seconds = self.elapsed.as_secs_f64();
        let decimals = if seconds < 10.0 { 2 } else { 0 };
        write!(f, "{} file{plural}, {}, {seconds:.decimals$} s", self.files, Bytes(self.bytes))?;
        match (self.files.saturating_sub(self.unchanged), self.unchanged) {
            (0, 0) => {}
            (0, _) => f.write_str(", unchanged by size and time")?,
            (_, unchanged) if self.unchecked > 0 => {
                write!(f, ", {} of it not checked", Bytes(self.unchecked))?;
                if unchanged > 0 {
                    write!(f, ", {unchanged} unchanged by size and time")?;
                }
            }
            (_, 0) => f.write_str(", verified")?,
            (verified, unchanged) => write!(f, ", {verified} verified, {unchanged} unchanged by size and time")?,
        }
        if self.kept > 0 {
            write!(f, ", {} left as at the target", self.kept)?;
        }
        if self.deleted > 0 {
            write!(f, ", {} deleted", self.deleted)?;
        }
        if self.removed > 0 {
            write!(f, ", {} removed from the source", self.removed)?;
        }
        if let Some(share) = self.path_share {
            write!(f, ", {:.0} % of what the set rate allows", share * 100.0)?;
        }
        match self.memory_bound {
            Some(Bound::Here) => f.write_str(", slowed by the bound on memory here")?,
            Some(Bound::There) => f.write_str(", slowed by the bound on memory there")?,
            None => {}
        }
        match self.bytes_present {
            0 => {}
            _ if self.unchanged >= self.files => {}
            all if all >= self.bytes => f.write_str(", all there already")?,
            some => write!(f, ", {} of it there already", Bytes(some))?,
        }
        match self.links_followed {
            0 => {}
            1 => f.write_str(", 1 link followed")?,
            count => write!(f, ", {count} links followed")?,
        }
        match self.failed_count {
            0 => Ok(()),
            1 => f.write_str("; 1 name failed"),
            count => write!(f, "; {count} names failed"),
        }
    }
}

/// Returns the reasons for which datagrams were refused, and how many for each.
pub(super) fn counted(refused: &net::Refused) -> BTreeMap<String, u64> {
    refused.by_reason().filter(|(_, count)| *count > 0).map(|(reason, count)| (reason.to_owned(), count)).collect()
}

/// Returns the share of the path's rate that a transfer used which takes at least `least` and took `elapsed`; `None` if
/// its beginning and end, on both machines, weigh more than the path.
pub(super) fn path_share(least: Duration, elapsed: Duration) -> Option<f64> {
    /// Below this, pacing in bursts and the work on both disks decide.
    const MEASURABLE: Duration = Duration::from_millis(100);
    (least >= MEASURABLE).then(|| least.as_secs_f64() / elapsed.as_secs_f64().max(1e-9))
}

/// A number of bytes, displayed with a decimal unit.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
        match UNITS.iter().find(|(_, size)| self.0 >= *size) {
            Some((unit, size)) => write!(f, "{:.1} {unit}", self.0 as f64 / *size as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// Smooths the goodput.
#[derive(Debug)]
pub(super) struct Meter {
    at: Instant,
    bytes: u64,
    goodput: Option<f64>,
}

impl Meter {
    pub(super) const fn new(now: Instant) -> Self {
        Self { at: now, bytes: 0, goodput: None }
    }

    /// Adds the total of bytes that have arrived at `now`; returns the goodput in bits per second. What has arrived of a
    /// block may be dropped: it then counts once.
    pub(super) fn update(&mut self, now: Instant, bytes: u64) -> f64 {
        let bytes = bytes.max(self.bytes);
        let span = now.saturating_duration_since(self.at).as_secs_f64();
        if span > 0.0 {
            let sample = bytes.saturating_sub(self.bytes) as f64 * 8.0 / span;
            let weight = 1.0 - (-span / SMOOTHING.as_secs_f64()).exp();
            self.goodput = Some(self.goodput.map_or(sample, |old| old + (sample - old) * weight));
            (self.at, self.bytes) = (now, bytes);
        }
        self.goodput.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            role: Role::Receives,
            peer: "192.0.2.1:1".parse().unwrap(),
            into: None,
            files: 31,
            directories: 2,
            symlinks: 0,
            bytes: 4_200_000_000,
            bytes_present: 0,
            unchecked: 0,
            altered: None,
            links_left_out: 0,
            unchanged: 0,
            kept: 0,
            deleted: 0,
            removed: 0,
            links_followed: 0,
            failed_count: 0,
            vanished_count: 0,
            elapsed: Duration::from_secs(39),
            failed: Vec::new(),
            wire_bytes: 0,
            repair_share: None,
            rtt: None,
            loss: None,
            refused: 0,
            refused_for: BTreeMap::new(),
            path_share: None,
            remembered: None,
            memory_bound: None,
            overflowed: None,
            trace_lost: None,
        }
    }

    #[test]
    fn a_transfer_of_several_attempts_adds_up() {
        let begun = Instant::now();
        let last = begun + Duration::from_secs(6);
        let [free, bound] = [false, true].map(|memory| Strain { memory, overflowed: 0 });
        let memory = |ticks: u32, bounds: u32| {
            let mut memory = MemoryTicks::default();
            (0..ticks).for_each(|tick| memory.count(if tick < bounds { &bound } else { &free }, &free));
            memory
        };
        let one_refused = net::Refused::of(&[(transport::wire::Refused::Malformed, 1)]);
        let attempt = |since, crossed| Attempts {
            since: Some(since),
            crossed,
            wire_bytes: crossed + 100,
            refused: one_refused,
            overflowed: 20,
            memory: memory(10, 5),
        };
        let mut prior = Attempts::default();
        prior.add(&attempt(begun, 3_000));
        // An attempt that found no peer.
        prior.add(&Attempts::default());
        prior.add(&attempt(begun + Duration::from_secs(3), 1_000));
        let of_last =
            Summary { bytes: 10_000, bytes_present: 4_500, wire_bytes: 5_600, overflowed: Some(2), ..summary() };
        // None of its own ticks was at the bound: a tenth of all.
        let last = Attempts { since: Some(last), memory: memory(80, 0), ..Attempts::default() };
        let (elapsed, refused) = (of_last.elapsed, of_last.refused);
        let whole = of_last.after(&prior, &last);
        assert_eq!(whole.refused_for, BTreeMap::from([("malformed".to_owned(), 2)]));
        assert_eq!((whole.bytes, whole.bytes_present, whole.wire_bytes), (10_000, 500, 9_800));
        assert_eq!((whole.elapsed, whole.refused), (elapsed + Duration::from_secs(6), refused + 2));
        assert_eq!((whole.overflowed, whole.memory_bound), (Some(42), Some(Bound::Here)));
        let whole =
            Summary { path_share: Some(0.9), elapsed: Duration::from_secs(2), ..summary() }.after(&prior, &last);
        assert_eq!(whole.path_share, Some(0.9 * 0.25));
        // Half of what the last attempt found there had crossed in the one before: three times as much in all.
        let of_last = Summary { bytes: 10_000, bytes_present: 8_000, path_share: Some(0.3), ..summary() };
        let prior =
            Attempts { crossed: 4_000, since: last.since.map(|last| last - of_last.elapsed), ..Attempts::default() };
        assert!((of_last.after(&prior, &last).path_share.unwrap() - 0.3 * 3.0 / 2.0).abs() < 1e-9);
        assert_eq!(summary().after(&Attempts::default(), &last).elapsed, summary().elapsed);
    }

    #[test]
    fn a_bound_that_is_reached_in_a_tenth_of_the_time_has_slowed_the_transfer() {
        let bound = |here: u32, there: u32| {
            let mut ticks = MemoryTicks::default();
            for tick in 0..100 {
                let strain = |bound| Strain { memory: tick < bound, overflowed: 0 };
                ticks.count(&strain(here), &strain(there));
            }
            ticks.bound()
        };
        assert_eq!([bound(0, 0), bound(9, 9), bound(9, 10)], [None, None, Some(Bound::There)]);
        assert_eq!(bound(10, 90), Some(Bound::Here));
        assert_eq!(MemoryTicks::default().bound(), None);
    }

    #[test]
    fn what_is_too_short_says_nothing_about_the_path() {
        assert_eq!(path_share(Duration::from_millis(99), Duration::from_millis(50)), None);
        assert_eq!(path_share(Duration::from_secs(1), Duration::from_secs(2)), Some(0.5));
    }

    #[test]
    fn goodput_follows_the_bytes() {
        let start = Instant::now();
        let mut meter = Meter::new(start);
        let mut last = 0.0;
        for step in 1..=50 {
            last = meter.update(start + Duration::from_millis(200 * step), step * 250_000);
        }
        assert!((last - 10e6).abs() < 1.0, "{last}");
        for step in 51..=60 {
            last = meter.update(start + Duration::from_millis(200 * step), 50 * 250_000);
        }
        assert!((last - 10e6 * (-1.0f64).exp()).abs() < 1e5, "{last}");
    }

    #[test]
    fn what_was_there_before_has_not_crossed() {
        let resumed = Summary { bytes: 10_000_000, bytes_present: 4_500_000, ..summary() };
        let resumed = Summary { elapsed: Duration::from_secs(2), ..resumed };
        assert_eq!((resumed.transferred(), resumed.goodput()), (5_500_000, 22e6));
        assert_eq!(Summary { bytes_present: 10_000_000, ..resumed }.goodput(), 0.0);
    }

    #[test]
    fn a_share_of_a_few_is_none() {
        assert_eq!([share(2, 3), share(0, 0), share(99, 99)], [None; 3]);
        assert_eq!(share(5, 100), Some(0.05));
    }

    #[test]
    fn what_is_left_is_foreseen_from_what_has_arrived() {
        let mut progress = Progress {
            bytes_done: 1_000,
            bytes_present: 0,
            bytes_underway: 1_000,
            bytes_known: 4_000,
            total_is_final: true,
            files_done: 0,
            files_known: 1,
            current: None,
            goodput: 8_000.0,
            rtt: None,
            loss: None,
            limited_by: None,
            elapsed: Duration::ZERO,
            connection: ConnectionStats::default(),
        };
        assert_eq!((progress.bytes_arrived(), progress.left()), (2_000, Some(Duration::from_secs(2))));
        // Padding, and repair beyond what is needed.
        progress.bytes_underway = 9_000;
        assert_eq!((progress.bytes_arrived(), progress.left()), (4_000, Some(Duration::ZERO)));
        (progress.bytes_underway, progress.goodput) = (0, 1e-7);
        assert_eq!(progress.left(), None, "the remainder of an average, long after the last byte");
        let text = serde_json::to_string(&Progress { current: Some(b"\xff".to_vec()), ..progress }).unwrap();
        let again: Progress = serde_json::from_str(&text).unwrap();
        assert_eq!(again.current.as_deref(), Some(&b"\xff"[..]));
        let older = text.replace("\"current\":\"/w\",", "").replace("\"files_known\":1,", "");
        assert!(older.len() + 30 < text.len(), "{text}");
        let older: Progress = serde_json::from_str(&older).unwrap();
        assert_eq!((older.current, older.files_known), (None, 0));
    }

    #[test]
    fn a_summary_is_one_line() {
        let mut summary = summary();
        assert_eq!(summary.to_string(), "31 files, 4.2 GB, 39 s, verified");
        summary.path_share = Some(0.82);
        (summary.failed_count, summary.bytes_present) = (1, 1_000_000);
        assert_eq!(
            summary.to_string(),
            "31 files, 4.2 GB, 39 s, verified, 82 % of what the set rate allows, 1.0 MB of it there already; 1 name failed"
        );
        let trusted = Summary { unchecked: 2_000_000, path_share: None, ..summary.clone() };
        assert_eq!(
            trusted.to_string(),
            "31 files, 4.2 GB, 39 s, 2.0 MB of it not checked, 1.0 MB of it there already; 1 name failed"
        );
        let bound = Summary { memory_bound: Some(Bound::There), path_share: None, failed_count: 0, ..summary.clone() };
        assert_eq!(
            bound.to_string(),
            "31 files, 4.2 GB, 39 s, verified, slowed by the bound on memory there, 1.0 MB of it there already"
        );
        let none = Summary { files: 0, bytes: 0, bytes_present: 0, path_share: None, ..summary.clone() };
        assert_eq!(none.to_string(), "0 files, 0 B, 39 s; 1 name failed");
    }

    #[test]
    fn what_was_not_compared_is_not_called_verified() {
        let whole = summary();
        assert!(whole.is_verified());
        let some = Summary { unchanged: 19, bytes_present: 1_000_000, ..whole.clone() };
        assert!(!some.is_verified());
        let text = "31 files, 4.2 GB, 39 s, 12 verified, 19 unchanged by size and time, 1.0 MB of it there already";
        assert_eq!(some.to_string(), text);
        let all = Summary { unchanged: 31, bytes_present: whole.bytes, ..whole.clone() };
        assert!(!all.is_verified());
        assert_eq!(all.to_string(), "31 files, 4.2 GB, 39 s, unchanged by size and time");
        let kept = Summary { files: 0, bytes: 0, kept: 2, ..whole.clone() };
        assert!(!kept.is_verified());
        assert_eq!(kept.to_string(), "0 files, 0 B, 39 s, 2 left as at the target");
        let deleted = Summary { files: 0, bytes: 0, deleted: 3, ..whole.clone() };
        assert!(deleted.is_verified());
        assert_eq!(deleted.to_string(), "0 files, 0 B, 39 s, 3 deleted");
        assert!(!Summary { failed_count: 1, ..whole }.is_verified());
    }
}
