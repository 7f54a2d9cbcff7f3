//! The summary of a transfer at its end.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::connection_figures::{ConnectionFigures, counted};
use super::memory_ticks::{MemoryTicks, Side};
use crate::files::{FailReason, Failed, NoticeKind};
use crate::ticket::Role;

/// Maximum number of names listed as failed.
const MAX_FAILED: usize = 1000;

/// A complete transfer: every file that is not among the `failures` is published, and verified except for `unchecked`
/// bytes.
///
/// Read by other releases: a new field needs a default.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Role of this side.
    pub role: Role,
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Location of the files, at the receiver.
    #[serde(skip)]
    pub into: Option<PathBuf>,
    /// Names of files, directories and links, by result.
    #[serde(flatten)]
    pub names: NameCounts,
    /// Bytes of regular files, by origin.
    #[serde(flatten)]
    pub bytes: ByteCounts,
    /// Time from the first datagram to completion, without the time spent waiting for the local user.
    pub elapsed: Duration,
    /// Names that were not transferred.
    #[serde(flatten)]
    pub failures: Failures,
    /// IP bytes sent by the sender of the files; at the receiver, those that arrived.
    pub wire_bytes: u64,
    /// The measurements of the connection.
    #[serde(flatten)]
    pub connection: ConnectionFigures,
    /// Why the local trace is incomplete, if it was requested and is.
    #[serde(skip)]
    pub trace_lost: Option<String>,
}

/// Names of a transfer, by kind and by result. Read by other releases: a new field needs a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameCounts {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Files among `files` whose size and modification time matched the source; their content was not compared.
    pub unchanged: u64,
    /// Files not among `files` that existed and were kept, with any content
    /// ([`Existing::Skip`](crate::files::Existing::Skip)).
    pub kept: u64,
    /// Names of the target that were deleted, or would be.
    pub deleted: u64,
    /// Names that were removed from the source, or would be
    /// ([`SourceOptions::remove_sources`](crate::files::SourceOptions::remove_sources)).
    pub removed: u64,
    /// Links among the sources that were followed: see
    /// [`SourceOptions::follow_items`](crate::files::SourceOptions::follow_items).
    pub links_followed: u64,
    /// Symbolic links that were skipped as requested ([`Links::Skip`](crate::files::LinkPolicy::Skip)), or because they
    /// lead out of the target.
    #[serde(rename = "links_left_out")]
    pub links_skipped: u64,
}

/// Bytes of the regular files of a transfer. Read by other releases: a new field needs a default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteCounts {
    /// Bytes published at the receiver.
    #[serde(rename = "bytes")]
    pub total: u64,
    /// Bytes among them that were present before.
    #[serde(rename = "bytes_present")]
    pub present: u64,
    /// Bytes of partial data at the receiver that were used without verification, as its user requested.
    #[serde(rename = "unchecked")]
    pub unverified: u64,
    /// Bytes of partial data that had changed since, so that they were transferred again; known only to the receiver.
    pub altered: Option<u64>,
}

/// Names that were not transferred. Read by other releases: a new field needs a default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The first thousand of them, each with the reason.
    #[serde(rename = "failed")]
    pub listed: Vec<Failed>,
    /// Number of all of them.
    #[serde(rename = "failed_count")]
    pub count: u64,
    /// Those among them that disappeared at the sender after its scan.
    #[serde(rename = "vanished_count")]
    pub vanished: u64,
}

impl Failures {
    /// Counts a name, and lists it while there is room.
    pub(super) fn add(&mut self, path: &[u8], reason: FailReason) {
        self.count += 1;
        self.vanished += u64::from(reason.has_vanished());
        if self.listed.len() < MAX_FAILED {
            self.listed.push(Failed { path: path.to_vec(), reason });
        }
    }
}

/// Cost and results of attempts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    /// When the first of them began.
    pub(super) since: Option<Instant>,
    /// Bytes of files that the first of them found at the target, as known to this side at its end.
    pub(super) present: u64,
    /// See [`Summary::wire_bytes`].
    pub(super) wire_bytes: u64,
    pub(super) refused: net::RejectedDatagrams,
    /// See [`ConnectionFigures::overflowed`].
    pub(super) overflowed: u64,
    pub(super) memory: MemoryTicks,
}

impl Attempts {
    /// Adds an attempt.
    pub(super) fn add(&mut self, attempt: &Self) {
        if self.since.is_none() {
            (self.since, self.present) = (attempt.since, attempt.present);
        }
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
        let began = last.since.unwrap_or_else(runtime::now);
        self.elapsed += prior.since.map_or(Duration::ZERO, |since| began.saturating_duration_since(since));
        let share = elapsed.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9);
        // Bytes transferred by an earlier attempt were not present before the transfer. More may have arrived than was
        // acknowledged when the connection was lost.
        let earlier = self.bytes.present.saturating_sub(prior.present).min(prior.wire_bytes);
        let crossed = self.bytes.total.saturating_sub(self.bytes.present).max(1);
        let more = 1.0 + earlier as f64 / crossed as f64;
        self.connection.path_share = self.connection.path_share.map(|of_last| of_last * more * share);
        self.bytes.present -= earlier;
        self.wire_bytes += prior.wire_bytes;
        self.connection.refused += prior.refused.total();
        for (reason, count) in counted(&prior.refused) {
            *self.connection.refused_for.entry(reason).or_default() += count;
        }
        self.connection.overflowed = self.connection.overflowed.map(|of_last| of_last.saturating_add(prior.overflowed));
        let mut memory = prior.memory;
        memory.add(&last.memory);
        self.connection.memory_bound = memory.bound();
        self
    }

    /// Returns whether every file of the sources is at the target, and the content of each was transferred or compared
    /// in this run.
    #[must_use]
    pub const fn is_verified(&self) -> bool {
        self.names.unchanged == 0 && self.bytes.unverified == 0 && self.names.kept == 0 && self.failures.count == 0
    }

    /// Returns the bytes of files that this transfer has moved, which were not present before; after a dry run, the
    /// most that it would move.
    #[must_use]
    pub const fn transferred(&self) -> u64 {
        self.bytes.total.saturating_sub(self.bytes.present)
    }

    /// Returns the bits of files transferred per second over the whole transfer. A dry run transfers none, independent
    /// of this value.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.transferred() as f64 * 8.0 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.names.files == 1 { "" } else { "s" };
        let seconds = self.elapsed.as_secs_f64();
        let decimals = if seconds < 10.0 { 2 } else { 0 };
        write!(f, "{} file{plural}, {}, {seconds:.decimals$} s", self.names.files, DisplayBytes(self.bytes.total))?;
        match (self.names.files.saturating_sub(self.names.unchanged), self.names.unchanged) {
            (0, 0) => {}
            (0, _) => f.write_str(", unchanged (content not read)")?,
            (_, unchanged) if self.bytes.unverified > 0 => {
                write!(f, ", {} not verified", DisplayBytes(self.bytes.unverified))?;
                if unchanged > 0 {
                    write!(f, ", {unchanged} unchanged (content not read)")?;
                }
            }
            (_, 0) => f.write_str(", verified")?,
            (verified, unchanged) => write!(f, ", {verified} verified, {unchanged} unchanged (content not read)")?,
        }
        if self.names.kept > 0 {
            write!(f, ", {} kept", self.names.kept)?;
        }
        if self.names.deleted > 0 {
            write!(f, ", {} deleted", self.names.deleted)?;
        }
        if self.names.removed > 0 {
            write!(f, ", {} removed from the source", self.names.removed)?;
        }
        if let Some(share) = self.connection.path_share {
            write!(f, ", {:.0} % of the fixed rate", share * 100.0)?;
        }
        match self.connection.memory_bound {
            Some(Side::Local) => f.write_str(", limited by the memory limit of the local host")?,
            Some(Side::Remote) => f.write_str(", limited by the memory limit of the remote host")?,
            None => {}
        }
        match self.bytes.present {
            0 => {}
            _ if self.names.unchanged >= self.names.files => {}
            all if all >= self.bytes.total => f.write_str(", all already present")?,
            some => write!(f, ", {} already present", DisplayBytes(some))?,
        }
        match self.names.links_followed {
            0 => {}
            1 => f.write_str(", 1 link followed")?,
            count => write!(f, ", {count} links followed")?,
        }
        let guards: Vec<_> = self.failures.listed.iter().filter_map(|failed| guard_text(failed.reason)).collect();
        match self.failures.count.saturating_sub(guards.len() as u64) {
            0 => {}
            1 => f.write_str("; 1 name failed")?,
            count => write!(f, "; {count} names failed")?,
        }
        guards.first().map_or(Ok(()), |text| write!(f, "; {text}"))
    }
}

/// Returns the text for a guard that has prevented deletions, which is not a failed name.
const fn guard_text(reason: FailReason) -> Option<&'static str> {
    match reason {
        FailReason::Refused(NoticeKind::NotDeleted | NoticeKind::EmptySource) => Some("nothing deleted"),
        FailReason::Refused(NoticeKind::DeleteLimit) => Some("deletion limit reached"),
        _ => None,
    }
}

/// A number of bytes, displayed with a decimal unit.
#[derive(Clone, Copy, Debug)]
pub struct DisplayBytes(pub u64);

impl fmt::Display for DisplayBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u64); 4] =
            [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
        match UNITS.iter().find(|(_, size)| self.0 >= *size) {
            Some((unit, size)) => write!(f, "{:.1} {unit}", self.0 as f64 / *size as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use transport::Rate;

    use crate::files::NoticeKind;
    use crate::messages::HostPressure;

    fn summary() -> Summary {
        Summary {
            role: Role::Receiver,
            peer: "192.0.2.1:1".parse().unwrap(),
            into: None,
            names: NameCounts { files: 31, directories: 2, ..NameCounts::default() },
            bytes: bytes(4_200_000_000, 0),
            elapsed: Duration::from_secs(39),
            failures: Failures::default(),
            wire_bytes: 0,
            connection: ConnectionFigures::default(),
            trace_lost: None,
        }
    }

    fn bytes(total: u64, present: u64) -> ByteCounts {
        ByteCounts { total, present, ..ByteCounts::default() }
    }

    fn with(connection: ConnectionFigures) -> Summary {
        Summary { connection, ..summary() }
    }

    fn with_share(path_share: Option<f64>) -> Summary {
        with(ConnectionFigures { path_share, ..ConnectionFigures::default() })
    }

    #[test]
    fn a_transfer_of_several_attempts_adds_up() {
        let begun = Instant::now();
        let last = begun + Duration::from_secs(6);
        let [free, bound] = [false, true].map(|memory| HostPressure { memory, overflowed: 0 });
        let memory = |ticks: u32, bounds: u32| {
            let mut memory = MemoryTicks::default();
            (0..ticks).for_each(|tick| memory.count(if tick < bounds { &bound } else { &free }, &free));
            memory
        };
        let one_refused = net::RejectedDatagrams::of(&[(transport::wire::RejectReason::Malformed, 1)]);
        let attempt = |since, present, wire_bytes| Attempts {
            since: Some(since),
            present,
            wire_bytes,
            refused: one_refused,
            overflowed: 20,
            memory: memory(10, 5),
        };
        let mut prior = Attempts::default();
        prior.add(&attempt(begun, 500, 3_100));
        // An attempt that found no peer.
        prior.add(&Attempts::default());
        prior.add(&attempt(begun + Duration::from_secs(3), 3_400, 1_100));
        let of_last = Summary {
            bytes: bytes(10_000, 4_500),
            wire_bytes: 5_600,
            ..with(ConnectionFigures { overflowed: Some(2), ..ConnectionFigures::default() })
        };
        // None of its own ticks was at the bound: a tenth of all.
        let last = Attempts { since: Some(last), memory: memory(80, 0), ..Attempts::default() };
        let (elapsed, refused) = (of_last.elapsed, of_last.connection.refused);
        let whole = of_last.after(&prior, &last);
        assert_eq!(whole.connection.refused_for, BTreeMap::from([("malformed".to_owned(), 2)]));
        assert_eq!((whole.bytes, whole.wire_bytes), (bytes(10_000, 500), 9_800));
        assert_eq!((whole.elapsed, whole.connection.refused), (elapsed + Duration::from_secs(6), refused + 2));
        assert_eq!((whole.connection.overflowed, whole.connection.memory_bound), (Some(42), Some(Side::Local)));
        let whole = Summary { elapsed: Duration::from_secs(2), ..with_share(Some(0.9)) }.after(&prior, &last);
        assert_eq!(whole.connection.path_share, Some(0.9 * 0.25));
        // Half of the bytes that the last attempt found had been transferred in the one before: three times as much in
        // all.
        let of_last = Summary { bytes: bytes(10_000, 8_000), ..with_share(Some(0.3)) };
        let prior =
            Attempts { wire_bytes: 4_000, since: last.since.map(|last| last - of_last.elapsed), ..Attempts::default() };
        assert!((of_last.after(&prior, &last).connection.path_share.unwrap() - 0.3 * 3.0 / 2.0).abs() < 1e-9);
        assert_eq!(summary().after(&Attempts::default(), &last).elapsed, summary().elapsed);
    }

    #[test]
    fn summary_present_bytes_not_transferred() {
        let resumed = Summary { bytes: bytes(10_000_000, 4_500_000), ..summary() };
        let resumed = Summary { elapsed: Duration::from_secs(2), ..resumed };
        assert_eq!((resumed.transferred(), resumed.goodput()), (5_500_000, 22e6));
        assert_eq!(Summary { bytes: bytes(10_000_000, 10_000_000), ..resumed }.goodput(), 0.0);
    }

    #[test]
    fn more_names_are_counted_than_listed() {
        let mut failures = Failures::default();
        for _ in 0..=MAX_FAILED {
            failures.add(b"name", FailReason::Refused(NoticeKind::Exists));
        }
        assert_eq!((failures.listed.len(), failures.count, failures.vanished), (MAX_FAILED, 1001, 0));
    }

    /// Releases with groups and those without write the same.
    #[test]
    fn summary_json_has_flat_groups() {
        let summary = Summary {
            bytes: ByteCounts { altered: Some(5), ..bytes(4_200_000_000, 1) },
            failures: Failures {
                listed: vec![Failed { path: b"n\xff".to_vec(), reason: FailReason::Refused(NoticeKind::Exists) }],
                count: 2,
                vanished: 1,
            },
            wire_bytes: u64::MAX,
            ..with(ConnectionFigures {
                repair_share: Some(0.05),
                rtt: Some(Duration::from_millis(100)),
                loss: Some(0.1),
                refused: 3,
                refused_for: BTreeMap::from([("malformed".to_owned(), 3)]),
                path_share: Some(0.5),
                remembered: Some(Rate::from_bits_per_second(1_000_000)),
                memory_bound: Some(Side::Remote),
                overflowed: Some(7),
            })
        };
        let text = concat!(
            r#"{"role":"Receives","peer":"192.0.2.1:1","files":31,"directories":2,"symlinks":0,"bytes":4200000000,"#,
            r#""bytes_present":1,"unchanged":0,"kept":0,"deleted":0,"removed":0,"links_followed":0,"unchecked":0,"#,
            r#""altered":5,"links_left_out":0,"elapsed":{"secs":39,"nanos":0},"#,
            r#""failed":[{"path":"bv8","reason":{"Refused":"Exists"}}],"failed_count":2,"vanished_count":1,"#,
            r#""wire_bytes":18446744073709551615,"repair_share":0.05,"rtt":{"secs":0,"nanos":100000000},"loss":0.1,"#,
            r#""refused":3,"refused_for":{"malformed":3},"path_share":0.5,"remembered":1000000,"#,
            r#""memory_bound":"There","overflowed":7}"#,
        );
        assert_eq!(serde_json::to_value(&summary).unwrap(), serde_json::from_str::<serde_json::Value>(text).unwrap());
        let read: Summary = serde_json::from_str(text).unwrap();
        assert_eq!(format!("{read:?}"), format!("{summary:?}"));
        // From a release without some fields, and from one with more.
        let older =
            text.replace(r#""refused_for":{"malformed":3},"#, r#""more":[1],"#).replace(r#","overflowed":7"#, "");
        let older: Summary = serde_json::from_str(&older).unwrap();
        assert!(older.connection.refused_for.is_empty() && older.connection.overflowed.is_none());
    }

    #[test]
    fn a_summary_is_one_line() {
        let mut summary = with_share(None);
        assert_eq!(summary.to_string(), "31 files, 4.2 GB, 39 s, verified");
        summary.connection.path_share = Some(0.82);
        (summary.failures.count, summary.bytes.present) = (1, 1_000_000);
        assert_eq!(
            summary.to_string(),
            "31 files, 4.2 GB, 39 s, verified, 82 % of the fixed rate, 1.0 MB already present; 1 name failed"
        );
        summary.connection.path_share = None;
        let trusted = Summary { bytes: ByteCounts { unverified: 2_000_000, ..summary.bytes }, ..summary.clone() };
        assert_eq!(
            trusted.to_string(),
            "31 files, 4.2 GB, 39 s, 2.0 MB not verified, 1.0 MB already present; 1 name failed"
        );
        let mut bound = Summary { failures: Failures::default(), ..summary.clone() };
        bound.connection.memory_bound = Some(Side::Remote);
        assert_eq!(
            bound.to_string(),
            "31 files, 4.2 GB, 39 s, verified, limited by the memory limit of the remote host, 1.0 MB already present"
        );
        let none = Summary { names: NameCounts::default(), bytes: bytes(0, 0), ..summary.clone() };
        assert_eq!(none.to_string(), "0 files, 0 B, 39 s; 1 name failed");
        let mut guarded = none;
        guarded.failures.add(b"kept", FailReason::Refused(NoticeKind::DeleteLimit));
        assert_eq!(guarded.to_string(), "0 files, 0 B, 39 s; 1 name failed; deletion limit reached");
    }

    #[test]
    fn summary_uncompared_not_verified() {
        let whole = summary();
        assert!(whole.is_verified());
        let unchanged = |unchanged| NameCounts { unchanged, ..whole.names };
        let total = whole.bytes.total;
        let some = Summary { names: unchanged(19), bytes: bytes(total, 1_000_000), ..whole.clone() };
        assert!(!some.is_verified());
        let text = "31 files, 4.2 GB, 39 s, 12 verified, 19 unchanged (content not read), 1.0 MB already present";
        assert_eq!(some.to_string(), text);
        let all = Summary { names: unchanged(31), bytes: bytes(total, total), ..whole.clone() };
        assert!(!all.is_verified());
        assert_eq!(all.to_string(), "31 files, 4.2 GB, 39 s, unchanged (content not read)");
        let only = |names| Summary { names, bytes: bytes(0, 0), ..whole.clone() };
        let kept = only(NameCounts { kept: 2, ..NameCounts::default() });
        assert!(!kept.is_verified());
        assert_eq!(kept.to_string(), "0 files, 0 B, 39 s, 2 kept");
        let deleted = only(NameCounts { deleted: 3, ..NameCounts::default() });
        assert!(deleted.is_verified());
        assert_eq!(deleted.to_string(), "0 files, 0 B, 39 s, 3 deleted");
        let failures = Failures { count: 1, ..Failures::default() };
        assert!(!Summary { failures, ..whole }.is_verified());
    }
}
