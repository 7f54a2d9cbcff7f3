//! The output of `--json`: one object per line, each with the version of the format and a type.

use std::borrow::Cow;
use std::collections::BTreeMap;

use data_encoding::BASE64;
use downpour::congestion::ControllerState;
use downpour::tunnel::ConnectionEvent;
use downpour::{Bottleneck, Side};
use serde::Serialize;

use crate::doctor::Advice;
use crate::escape;
use crate::notices::Notices;
use crate::progress::Figures;

/// The version in every object. New fields and types may be added without changing it.
const VERSION: u8 = 1;

/// An object.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum JsonRecord<'a> {
    /// The first object.
    Start(Start<'a>),
    /// The two sides have connected.
    Path {
        /// Address and port of the peer; null over the pipes of ssh or within this process.
        remote: Option<String>,
    },
    /// Once a second, and before the summary.
    Progress(ProgressRecord),
    /// A file is done.
    File {
        /// Its path below the destination.
        #[serde(flatten)]
        path: Name<'a>,
        /// Its size.
        bytes: u64,
    },
    /// An action on a name at the receiver; in a dry run and in a comparison, a planned one.
    Notice {
        /// `create`, `replace`, `attributes`, `delete`, `kept`, `left_out` or `low_space`.
        what: &'a str,
        /// Path below the destination; for a skipped name, the sender's path.
        #[serde(flatten)]
        path: Name<'a>,
        /// The reason why it was skipped.
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// An attempt has failed, and the listener waits for the next.
    Attempt {
        /// One line.
        message: &'a str,
        /// The exit code of the process without another attempt.
        exit_code: u8,
    },
    /// The last object after success or partial success.
    Summary(Summary<'a>),
    /// An event of a tunnel.
    Tunnel {
        /// `listening` (local), `listening_there` (remote), `metrics`, `open`, or `note`.
        event: &'static str,
        /// The address of the listener or of the metrics.
        #[serde(skip_serializing_if = "Option::is_none")]
        listen: Option<String>,
        /// The destination; absent for a SOCKS proxy.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        /// A line for the user.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// An event of a peer with a ticket.
    #[serde(rename = "guest")]
    Peer {
        /// `joined`, `left`, or `expired` (the ticket).
        event: &'static str,
        /// The number of the tunnel.
        #[serde(skip_serializing_if = "Option::is_none")]
        tunnel: Option<u64>,
        /// The reason of its end.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// An event of a connection of a tunnel.
    Connection(ConnectionRecord),
    /// A running transfer (`downpour status`).
    Running(Running),
    /// A staging directory (`downpour clean`).
    Staging(Staging<'a>),
    /// A finding of `downpour doctor`.
    Finding(&'a downpour::remote::doctor::Finding),
    /// The last object of `downpour doctor`.
    Checkup {
        #[serde(flatten)]
        checkup: &'a downpour::remote::doctor::Checkup,
        advice: &'a [Advice],
    },
    /// The last object, if the command failed.
    Error {
        /// One line.
        message: &'a str,
        /// The exit code of the process.
        exit_code: u8,
    },
}

/// A path, which is a byte string: as text, and additionally as base64 if the text cannot represent it.
#[derive(Debug, Serialize)]
pub(crate) struct Name<'a> {
    /// Invalid UTF-8 is replaced by U+FFFD.
    path: Cow<'a, str>,
    /// All bytes in base64 (RFC 4648 section 4), if the path is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_bytes: Option<String>,
}

impl Name<'static> {
    fn owned(name: &[u8]) -> Self {
        let Name { path, path_bytes } = Name::from(name);
        Self { path: path.into_owned().into(), path_bytes }
    }
}

impl<'a> From<&'a [u8]> for Name<'a> {
    fn from(name: &'a [u8]) -> Self {
        let path_bytes = str::from_utf8(name).is_err().then(|| BASE64.encode(name));
        Self { path: String::from_utf8_lossy(name), path_bytes }
    }
}

/// A staging directory of an interrupted or running transfer.
#[derive(Debug, Serialize)]
pub(crate) struct Staging<'a> {
    #[serde(flatten)]
    pub(crate) path: Name<'a>,
    /// Seconds since it was last used.
    pub(crate) unused_seconds: u64,
    /// Incomplete files in it.
    pub(crate) files: u64,
    /// The space that they take.
    pub(crate) bytes: u64,
    pub(crate) in_use: bool,
    pub(crate) removed: bool,
}

/// A running transfer.
#[derive(Debug, Serialize)]
pub(crate) struct Running {
    pid: u32,
    /// Whether its process has answered; otherwise nothing else is known.
    answers: bool,
    #[serde(flatten)]
    activity: Option<Activity>,
}

/// The activity of a process, as it reports it.
#[derive(Debug, Serialize)]
struct Activity {
    /// Such as `cp`.
    command: String,
    /// Sources and destination as given by its user.
    from: Vec<String>,
    to: Option<String>,
    seconds: f64,
    /// `waiting`, `asking`, `connected` or `stopping`.
    state: downpour::activity::State,
    /// As in `progress` objects; null before a transfer has begun.
    progress: Option<ProgressRecord>,
    /// Receivers served at present, of a sender whose ticket is for several.
    receivers: u64,
    /// Bytes of stdin that a pipe has read.
    piped_bytes: Option<u64>,
    /// Open connections of a tunnel, and all since its start.
    connections_open: Option<u64>,
    connections: Option<u64>,
}

impl From<&downpour::activity::Running> for Running {
    fn from(running: &downpour::activity::Running) -> Self {
        let activity = running.activity.as_ref().map(|activity| Activity {
            command: activity.command.clone(),
            from: activity.from.clone(),
            to: activity.to.clone(),
            seconds: activity.age().as_secs_f64(),
            state: activity.state,
            progress: activity.progress.as_ref().map(ProgressRecord::from),
            receivers: activity.receivers,
            piped_bytes: activity.piped,
            connections_open: activity.connections.map(|(open, _)| open),
            connections: activity.connections.map(|(_, all)| all),
        });
        Self { pid: running.pid, answers: activity.is_some(), activity }
    }
}

/// An event of a connection of a tunnel.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ConnectionRecord {
    number: u64,
    /// The tunnel, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    tunnel: Option<u64>,
    /// `wanted`, `open`, `refused` or `over`.
    event: &'static str,
    /// The destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<String>,
    /// Whether the program is on the remote host.
    #[serde(skip_serializing_if = "Option::is_none")]
    from_there: Option<bool>,
    /// Seconds since the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    /// Why it was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_sent: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_received: Option<u64>,
    /// Whether it was reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<bool>,
}

impl ConnectionRecord {
    /// Adds the number of the tunnel of a peer with a ticket.
    pub(crate) fn of_tunnel(self, tunnel: u64) -> Self {
        Self { tunnel: Some(tunnel), ..self }
    }

    pub(crate) fn new(number: u64, event: ConnectionEvent) -> Self {
        let this = |event| Self { number, event, ..Self::default() };
        match event {
            ConnectionEvent::OpenRequested { to, is_from_remote } => {
                Self { to: Some(to), from_there: Some(is_from_remote), ..this("wanted") }
            }
            ConnectionEvent::Open { after } => Self { seconds: Some(after.as_secs_f64()), ..this("open") },
            ConnectionEvent::Refused { why } => Self { message: Some(why), ..this("refused") },
            ConnectionEvent::Closed { sent, received, after, is_cut } => Self {
                seconds: Some(after.as_secs_f64()),
                bytes_sent: Some(sent),
                bytes_received: Some(received),
                cut: Some(is_cut),
                ..this("over")
            },
        }
    }
}

/// The start of a command.
#[derive(Debug, Serialize)]
pub(crate) struct Start<'a> {
    /// `send`, `recv` or `demo`.
    pub(crate) command: &'a str,
    /// Version of the program.
    pub(crate) version: &'a str,
    /// Ticket of the listening side, unless it is written to a file: it is a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ticket: Option<&'a str>,
    /// The sender's configured rate, in bits of IP packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_bits_per_second: Option<u64>,
}

/// Progress of a transfer.
#[derive(Debug, Serialize)]
pub(crate) struct ProgressRecord {
    /// Bytes of files: acknowledged at the sender, written at the receiver.
    bytes: u64,
    /// Bytes among them that were present before.
    bytes_present: u64,
    /// Further received bytes, in blocks that are not complete or not written yet.
    bytes_underway: u64,
    known_bytes: u64,
    /// Whether `known_bytes` and `known_files` are final; otherwise the sender is still scanning its directories.
    known_is_all: bool,
    /// Completed files.
    files: u64,
    /// Files known so far; null if the peer does not report them.
    known_files: Option<u64>,
    /// The file being read or written.
    current: Option<Name<'static>>,
    seconds: f64,
    goodput_bytes_per_second: f64,
    /// Loss of the packets that carry the files; known only to their sender.
    loss: Option<f64>,
    rtt_seconds: Option<f64>,
    left_seconds: Option<f64>,
    /// The bottleneck of the transfer: `finding the rate`, `path`, `policer`, `shared path`, `set rate`, `set rate above
    /// the path`, `rate limit`, `reading here`, `processor here`, `writing there`, `memory here`, `memory there`,
    /// `socket overflows here` or `socket overflows there`.
    limited_by: Option<&'static str>,
    /// The estimates of congestion control; known only to the sender, and only with some controllers.
    path: Option<Path>,
}

/// The estimates of congestion control.
#[derive(Debug, Serialize)]
struct Path {
    /// `default`, or `compete` beside traffic that fills the queue.
    mode: &'static str,
    /// `start`, `cruise`, `down` or `drain`.
    phase: &'static str,
    /// The rate that the path delivers, in bits of IP packets.
    rate_bits_per_second: u64,
    /// Round-trip time without a queue.
    base_rtt_seconds: f64,
    /// Queueing delay of the newest packet.
    queue_seconds: f64,
    /// Share of packets lost without congestion.
    baseline_loss: f64,
}

impl From<ControllerState> for Path {
    fn from(state: ControllerState) -> Self {
        Self {
            mode: state.mode,
            phase: state.phase,
            rate_bits_per_second: state.rate.bits_per_second(),
            base_rtt_seconds: state.base.as_secs_f64(),
            queue_seconds: state.queue.as_secs_f64(),
            baseline_loss: state.baseline,
        }
    }
}

impl From<&downpour::Progress> for ProgressRecord {
    fn from(progress: &downpour::Progress) -> Self {
        let figures = Figures::from(progress);
        Self {
            bytes: progress.bytes_done,
            bytes_present: progress.bytes_present,
            bytes_underway: progress.bytes_arrived() - progress.bytes_done,
            known_bytes: figures.known,
            known_is_all: figures.is_all,
            files: progress.files_done,
            known_files: figures.files.map(|(_, known)| known),
            current: progress.current.as_deref().map(Name::owned),
            seconds: progress.elapsed.as_secs_f64(),
            goodput_bytes_per_second: figures.goodput,
            loss: figures.loss,
            rtt_seconds: figures.rtt.map(|rtt| rtt.as_secs_f64()),
            left_seconds: figures.left.map(|left| left.as_secs_f64()),
            limited_by: figures.limited_by.map(Bottleneck::name),
            path: progress.connection.congestion.controller.map(Path::from),
        }
    }
}

/// Result of a transfer.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    files: u64,
    #[serde(rename = "folders")]
    directories: u64,
    symlinks: u64,
    /// Bytes of files.
    bytes: u64,
    /// Bytes among them that were present before.
    bytes_present: u64,
    /// The other bytes: those that were transferred; in a dry run, at most.
    transferred_bytes: u64,
    /// Files among `files` with matching size and modification time; their content was not compared.
    unchanged: u64,
    /// Names not among `files` whose existing file was kept (`--existing`).
    kept: u64,
    deleted: u64,
    /// Names removed from the source; in a dry run, planned (`--remove-source-files`).
    removed: u64,
    /// Links given as sources that were followed.
    links_followed: u64,
    /// Links that were skipped (`--links skip`).
    links_left_out: u64,
    /// Bytes among `bytes_present` of partial data that was not verified (`--trust-staging`).
    unchecked_bytes: u64,
    /// Bytes of partial data that had changed and were transferred again; known only to the receiver.
    altered_bytes: Option<u64>,
    seconds: f64,
    /// Of `transferred_bytes`; 0 in a dry run and in a comparison, which transfer none.
    goodput_bytes_per_second: f64,
    /// Whether every file of the sources is at the destination, with content that was transferred or compared in this run.
    verified: bool,
    /// Whether it was a dry run.
    dry_run: bool,
    /// Names that were not transferred: exit code 23.
    failed: Vec<Failed<'a>>,
    /// IP bytes that the sender of the files sent, or that reached their receiver.
    wire_bytes: u64,
    /// Shares of symbols and of packets; null at the receiver, and if too few were sent.
    repair_share: Option<f64>,
    loss: Option<f64>,
    rtt_seconds: Option<f64>,
    refused_datagrams: u64,
    /// The same by reason, as in a trace.
    refused_for: &'a BTreeMap<String, u64>,
    /// The floor of the time at the fixed rate, divided by the time taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    path_share: Option<f64>,
    /// The rate from the path cache with which the sender started.
    #[serde(skip_serializing_if = "Option::is_none")]
    remembered_bits_per_second: Option<u64>,
    /// `here` or `there`: the side whose memory limit has slowed the transfer (`--max-memory`).
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bound: Option<&'static str>,
    /// Datagrams that the kernel of the receiving host dropped because the socket buffer was full; null if unknown to this
    /// side.
    overflowed_datagrams: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Failed<'a> {
    #[serde(flatten)]
    path: Name<'a>,
    reason: String,
}

impl<'a> Summary<'a> {
    /// Creates the summary of a command whose receiver reported `noticed` names, interpreted according to `notices`.
    pub(crate) fn new(summary: &'a downpour::Summary, notices: Notices, noticed: u64) -> Self {
        let measured = &summary.connection;
        let failed = summary
            .failures
            .listed
            .iter()
            .map(|failed| Failed { path: failed.path.as_slice().into(), reason: failed.reason.to_string() });
        let verified = match notices {
            Notices::Done => summary.is_verified(),
            Notices::Planned => false,
            Notices::Differences => noticed == 0 && summary.is_verified(),
        };
        Self {
            files: summary.names.files,
            directories: summary.names.directories,
            symlinks: summary.names.symlinks,
            bytes: summary.bytes.total,
            bytes_present: summary.bytes.present,
            transferred_bytes: summary.transferred(),
            unchanged: summary.names.unchanged,
            kept: summary.names.kept,
            // A comparison plans to delete names that exist only at the destination, and deletes nothing.
            deleted: if notices == Notices::Differences { 0 } else { summary.names.deleted },
            removed: summary.names.removed,
            links_followed: summary.names.links_followed,
            links_left_out: summary.names.links_skipped,
            unchecked_bytes: summary.bytes.unverified,
            altered_bytes: summary.bytes.altered,
            seconds: summary.elapsed.as_secs_f64(),
            goodput_bytes_per_second: if notices == Notices::Done { summary.goodput() / 8.0 } else { 0.0 },
            verified,
            dry_run: notices == Notices::Planned,
            failed: failed.collect(),
            wire_bytes: summary.wire_bytes,
            repair_share: measured.repair_share,
            loss: measured.loss,
            rtt_seconds: measured.rtt.map(|rtt| rtt.as_secs_f64()),
            refused_datagrams: measured.refused,
            refused_for: &measured.refused_for,
            path_share: measured.path_share,
            remembered_bits_per_second: measured.remembered.map(|rate| rate.bits_per_second()),
            memory_bound: measured.memory_bound.map(|bound| match bound {
                Side::Local => "here",
                Side::Remote => "there",
            }),
            overflowed_datagrams: measured.overflowed,
        }
    }
}

#[derive(Serialize)]
struct Versioned<'a, T> {
    v: u8,
    #[serde(flatten)]
    line: &'a T,
}

/// Prints an object: a [`JsonRecord`], or another object with a type.
pub(crate) fn print(line: &impl Serialize) {
    let text = serde_json::to_string(&Versioned { v: VERSION, line }).expect("all keys of maps are text");
    // The output may go to a terminal.
    let mut text = escape::json(&text);
    text.push('\n');
    crate::print::write_out(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_objects_have_version_and_type() {
        let line = JsonRecord::File { path: b"a\"b\n".as_slice().into(), bytes: 7 };
        let text = serde_json::to_string(&Versioned { v: VERSION, line: &line }).expect("a line");
        assert_eq!(text, r#"{"v":1,"type":"file","path":"a\"b\n","bytes":7}"#);
        let line = JsonRecord::File { path: b"a\xff\xfeb".as_slice().into(), bytes: 7 };
        let text = serde_json::to_string(&Versioned { v: VERSION, line: &line }).expect("a line");
        assert_eq!(
            text,
            "{\"v\":1,\"type\":\"file\",\"path\":\"a\u{fffd}\u{fffd}b\",\"path_bytes\":\"Yf/+Yg==\",\"bytes\":7}"
        );
        let line = JsonRecord::Start(Start { command: "send", version: "1", ticket: None, rate_bits_per_second: None });
        let text = serde_json::to_string(&Versioned { v: VERSION, line: &line }).expect("a line");
        assert_eq!(text, r#"{"v":1,"type":"start","command":"send","version":"1"}"#);
    }
}
