//! How a failure is reported to the peer: kind and values as JSON, or a text for one that reads no more.

use net::{Connection, NetError};
use serde_json::Value;

use super::numbers::{DONE, answer_number, close_code, kind_of_answer, kind_of_close};
use super::{Context, Error};
use crate::files::ErrorKind;

/// Maximum length of the reason in a close frame, in bytes.
const MAX_REASON: usize = 256;
/// Maximum length of a cause in an answer to a request, in bytes: half of the line length that is read.
const MAX_CAUSE: usize = 8 << 10;

/// Mark of a cut text or list.
const CUT: &str = "…";

/// Members whose ends matter more than their beginnings.
const PATHS: [&str; 6] = ["path", "staging", "name", "names", "first", "second"];

/// The text for a cause that this release does not know.
const LATER: &str = "unknown error of a newer release";

/// Code and reason of a close frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Closing {
    pub(crate) code: u32,
    pub(crate) reason: String,
}

impl Closing {
    /// Returns the close frame of a side that has completed everything.
    pub(crate) const fn done() -> Self {
        Self { code: DONE, reason: String::new() }
    }

    /// Returns a failure as text.
    pub(crate) fn as_text(kind: ErrorKind, words: impl Into<String>) -> Self {
        Self { code: close_code(kind), reason: words.into() }
    }

    /// Closes a connection.
    pub(crate) fn close(self, connection: &Connection) {
        connection.close(self.code, self.reason);
    }

    /// Returns the close frame for a local failure; `reads_causes`: the peer may read kinds with values.
    pub(crate) fn of(error: &Error, reads_causes: bool) -> Self {
        let shown = error.for_peer();
        let mut reason = reads_causes.then(|| to_json(shown, MAX_REASON)).flatten().unwrap_or_else(|| shown.as_text());
        reason.truncate(reason.floor_char_boundary(MAX_REASON));
        Self { code: close_code(shown.own_kind()), reason }
    }

    /// Returns the peer's failure as the peer stated it.
    pub(crate) fn read(self) -> Error {
        let Self { code, reason } = self;
        match serde_json::from_str(&reason) {
            Ok(error) => error,
            // A cause of a later release: the code states the kind.
            Err(_) if reason.starts_with('{') => {
                Error::Described { kind: kind_of_close(code), message: LATER.to_owned() }
            }
            Err(_) => Error::Described { kind: kind_of_close(code), message: or_nothing(reason) },
        }
    }
}

/// Returns whether a connection ended because the peer has completed everything.
pub(crate) const fn is_done(end: &NetError) -> bool {
    matches!(end, NetError::ClosedByPeer { code: DONE, .. })
}

/// Returns the answer to a request that failed: an exit code, and a text on one line.
pub(crate) fn answer_line(error: &Error) -> String {
    let words = error.for_peer().as_text();
    format!("{} {}", answer_number(error.own_kind()), words.replace(['\n', '\r'], " "))
}

/// Reads a line of [`answer_line`].
pub(crate) fn read_answer(line: &str) -> Error {
    let (number, message) = line.split_once(' ').unwrap_or(("1", line));
    let kind = number.parse().map_or(ErrorKind::Other, kind_of_answer);
    Error::Described { kind, message: or_nothing(message.to_owned()) }.within(Context::Host(None))
}

/// Returns the cause of a request's failure for a line of its own; `None` if it is only a text.
pub(crate) fn cause_line(error: &Error) -> Option<String> {
    to_json(error.for_peer(), MAX_CAUSE)
}

/// Reads a line of [`cause_line`]; `None` for a cause that this release does not know.
pub(crate) fn read_cause(line: &str) -> Option<Error> {
    Some(serde_json::from_str::<Error>(line).ok()?.within(Context::Host(None)))
}

/// Returns the reason, or a text for an empty one.
pub(crate) fn or_nothing(reason: String) -> String {
    if reason.is_empty() { "no reason given".to_owned() } else { reason }
}

impl Error {
    /// Returns the part of the chain that concerns the peer: local partial data does only where the disk is full, since
    /// the peer's user may have no other access to it.
    fn for_peer(&self) -> &Self {
        match self {
            Self::Within { context: Context::Kept { .. }, source } if source.kind() != ErrorKind::NoSpace => {
                source.for_peer()
            }
            other => other,
        }
    }

    fn as_text(&self) -> String {
        self.for_remote_user().to_string()
    }

    /// Returns the kind of the failure on the host where it occurred.
    fn own_kind(&self) -> ErrorKind {
        match self {
            Self::Within { context: Context::Kept { .. }, source } => source.own_kind(),
            other => other.kind(),
        }
    }
}

/// Returns an error as JSON of at most `most` bytes, with its texts cut to fit; `None` if it does not fit.
fn to_json(error: &Error, most: usize) -> Option<String> {
    let whole = serde_json::to_value(error).ok()?;
    let fitting = |text: &String| text.len() <= most;
    let as_it_is = Some(whole.to_string()).filter(fitting);
    as_it_is
        .or_else(|| (1..8).find_map(|halvings| Some(cut(&whole, most >> halvings, false).to_string()).filter(fitting)))
}

/// Returns a value with texts of at most about `most` bytes, and lists of bounded length.
fn cut(value: &Value, most: usize, is_path: bool) -> Value {
    match value {
        Value::String(text) if text.len() > most && is_path => {
            let begin = text.ceil_char_boundary(text.len() - most);
            Value::String(format!("{CUT}{}", &text[begin..]))
        }
        Value::String(text) if text.len() > most => {
            Value::String(format!("{}{CUT}", &text[..text.floor_char_boundary(most)]))
        }
        Value::Array(values) => {
            let mut room = most;
            let mut kept: Vec<Value> = Vec::new();
            for value in values {
                let value = cut(value, most, is_path);
                let Some(left) = room.checked_sub(value.to_string().len()) else {
                    kept.push(CUT.into());
                    break;
                };
                room = left;
                kept.push(value);
            }
            Value::Array(kept)
        }
        Value::Object(members) => {
            let cut = |key: &String, value| cut(value, most, PATHS.contains(&key.as_str()));
            Value::Object(members.iter().map(|(key, value)| (key.clone(), cut(key, value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::files::{FilesError, NotAllowed};
    use crate::ticket::Role;

    fn across(error: &Error, reads_causes: bool) -> Error {
        let closing = Closing::of(error, reads_causes);
        assert!(closing.reason.len() <= MAX_REASON, "{closing:?}");
        closing.read().within(Context::Peer { role: Role::Receiver, by_ticket: true })
    }

    fn full(path: impl Into<PathBuf>) -> Error {
        FilesError::DiskFull { path: path.into() }.into()
    }

    #[test]
    fn kinds_and_values_cross_the_wire() {
        let offered = |reason| FilesError::NotPermitted { name: b"a\xff".to_vec(), reason }.into();
        let denied = FilesError::system("x", rustix::io::Errno::ACCESS).into();
        let kept = |error: Error| error.within(Context::Kept { staging: "/s".into(), by_ticket: true });
        for (error, words, kind) in [
            (full("/a/b"), "disk full while writing /a/b", ErrorKind::NoSpace),
            (denied, "x: Permission denied", ErrorKind::Permission),
            (
                offered(NotAllowed::Chosen),
                "sender offered a\u{fffd}: exists, and a name chosen by the sender must be new",
                ErrorKind::Other,
            ),
            (Error::Declined, "declined by its user", ErrorKind::Other),
            (Error::Cancelled, "interrupted by its user", ErrorKind::Other),
            (Error::Terminated, "stopped by a signal", ErrorKind::Other),
            (Error::Stalled(Duration::from_secs(9)), "no progress for 9 s", ErrorKind::Other),
            (kept(full("/a")), "disk full while writing /a; partial data kept in /s", ErrorKind::NoSpace),
            (kept(Error::Cancelled), "interrupted by its user", ErrorKind::Other),
            (
                Error::ProtocolViolation("invalid reply".into()),
                "protocol error by the peer: invalid reply",
                ErrorKind::Other,
            ),
        ] {
            for reads_causes in [true, false] {
                let read = across(&error, reads_causes);
                assert_eq!(read.to_string(), format!("error from the receiver: {words}"));
                assert_eq!(read.kind(), kind, "{read:?}");
            }
            let expected = format!("remote host: {words}");
            assert_eq!(read_answer(&answer_line(&error)).to_string(), expected);
            if let Some(line) = cause_line(&error) {
                assert_eq!(read_cause(&line).expect("a cause").to_string(), expected);
            }
        }
        let read = across(&kept(full("/a")), true);
        assert!(matches!(read.cause(), Error::Files(FilesError::DiskFull { .. })), "{read:?}");
        assert_eq!(read.contexts().count(), 2);
    }

    #[test]
    fn close_reason_long_values_cut() {
        let path = format!("/{}", "ä/".repeat(3000));
        let error = full(&path).within(Context::Kept { staging: path.clone().into(), by_ticket: false });
        let read = across(&error, true);
        let Error::Files(FilesError::DiskFull { path: cut }) = read.cause() else { panic!("{read:?}") };
        let cut = cut.to_str().expect("text").strip_prefix(CUT).expect("a mark");
        assert!(cut.len() > 20 && path.ends_with(cut), "{cut}");
        let names = (0..1000).map(|n| format!("dir/{n}").into()).collect();
        let read = across(&FilesError::TargetExists { names }.into(), true);
        let Error::Files(FilesError::TargetExists { names }) = read.cause() else { panic!("{read:?}") };
        let text = "invalid ".to_owned() + &"ä".repeat(300);
        let read = across(&Error::ProtocolViolation(text.clone()), true);
        let Error::ProtocolViolation(cut) = read.cause() else { panic!("{read:?}") };
        let cut = cut.strip_suffix(CUT).expect("a mark");
        assert!(cut.len() > 100 && text.starts_with(cut), "{cut}");
        assert!(names.len() > 3 && names[0].as_path() == "dir/0", "{names:?}");
        assert_eq!(names.last(), Some(&CUT.into()));
    }

    #[test]
    fn close_reason_any_text_is_peer_failure() {
        for (code, reason, words) in [
            (0x105, "", "no reason given"),
            (0x999, "{\"Files\":{\"No\":1}}", LATER),
            (0x108, "{\"Described\":{\"kind\":\"Cancelled\",\"message\":\"x\"}}", "x"),
            (0x108, "{\"Net\":null}", LATER),
            (0x108, "\"Cancelled\"", "interrupted by its user"),
        ] {
            let read = Closing { code, reason: reason.to_owned() }
                .read()
                .within(Context::Peer { role: Role::Sender, by_ticket: true });
            assert_eq!((read.to_string(), read.kind()), (format!("error from the sender: {words}"), ErrorKind::Other));
        }
        let deep = "{\"Within\":{\"context\":{\"Host\":null},\"source\":".repeat(1000);
        assert!(matches!(Closing { code: 1, reason: deep }.read(), Error::Described { .. }));
        assert!(read_cause("not JSON").is_none());
    }
}
