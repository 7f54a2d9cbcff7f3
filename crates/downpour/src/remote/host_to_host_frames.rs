//! The frames over ssh between the host on which a copy between two remote hosts was started and the sending one, in
//! both directions.
//!
//! A frame is a byte for its kind, the length of its content in 4 bytes, most significant first, and the content. An
//! unknown kind is skipped.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use transport::Rate;

use crate::base64::Bytes;
use crate::error::{Context, Error, answer_number, cause_line, kind_of_answer, read_cause};
use crate::files::{Failed, NoticeKind};
use crate::transfer::{Progress, Summary, TransferEvent};

/// Datagrams between the sender and the receiver, as over a pipe; an empty frame is their end.
const DATA: u8 = 0;
/// A [`RelayEvent`], as JSON.
const REPORT: u8 = 1;
/// An [`RelayCommand`], as JSON.
const ORDER: u8 = 2;

/// Maximum length of the data in a frame, in bytes.
pub(super) const MAX_DATA: usize = 64 << 10;
/// Maximum length of any frame, in bytes: a summary may list a thousand names.
const MAX_FRAME: usize = 16 << 20;
/// Maximum number of files in a report; a path has at most a few thousand bytes.
const MAX_FILES: usize = 1000;

/// A command to the sending host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RelayCommand {
    /// Stop.
    Stop {
        /// By a signal other than the user's.
        terminated: bool,
    },
    /// Send no faster than this.
    Limit(Option<Rate>),
    /// The data frames lead to the receiver, which has this key.
    Through { key: Bytes },
}

/// A report of the sending host: an event of its transfer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum RelayEvent {
    Connected {
        peer: Option<SocketAddr>,
    },
    Progress(Box<Progress>),
    Files(Vec<(Bytes, u64)>),
    Notice {
        kind: NoticeKind,
        path: Bytes,
    },
    #[serde(rename = "LeftOut")]
    Skipped(Failed),
    Note(String),
    /// The direct login to the receiving host has failed: data frames are needed.
    Unreached {
        why: String,
    },
    Done(Box<Summary>),
    /// The transfer has failed. The kind is a number of [`kind_of_answer`].
    Failed {
        kind: u8,
        message: String,
        /// The same with its values ([`cause_line`]).
        #[serde(default)]
        cause: Option<String>,
    },
}

/// A received frame.
#[derive(Debug)]
pub(super) enum Frame {
    Data(Vec<u8>),
    Report(RelayEvent),
    Order(RelayCommand),
}

impl RelayEvent {
    /// Returns the reports of an event; none for those that need a user at the remote host.
    pub(super) fn of(event: TransferEvent) -> Vec<Self> {
        vec![match event {
            TransferEvent::Connected { peer } => Self::Connected { peer },
            TransferEvent::Progress(progress) => Self::Progress(Box::new(progress)),
            TransferEvent::Files(files) => {
                let report = |files: &[(Vec<u8>, u64)]| {
                    Self::Files(files.iter().map(|(path, bytes)| (Bytes(path.clone()), *bytes)).collect())
                };
                return files.chunks(MAX_FILES).map(report).collect();
            }
            TransferEvent::Notice { kind, path } => Self::Notice { kind, path: Bytes(path) },
            TransferEvent::Skipped(failed) => Self::Skipped(failed),
            TransferEvent::UserNote(note) => Self::Note(note),
            TransferEvent::UdpClosed { host, port, .. } => {
                Self::Note(format!("no UDP answer from port {port} of {host}: using ssh, which is slower"))
            }
            TransferEvent::Done(Ok(summary)) => Self::Done(Box::new(summary)),
            TransferEvent::Done(Err(error)) => Self::Failed {
                kind: answer_number(error.kind()),
                message: error.to_string(),
                cause: cause_line(&error),
            },
            TransferEvent::Offer(_) | TransferEvent::AttemptFailed { .. } => return Vec::new(),
        }]
    }

    /// Returns the event as reported by `host`.
    pub(super) fn into_event(self, host: &str) -> Option<TransferEvent> {
        Some(match self {
            Self::Connected { peer } => TransferEvent::Connected { peer },
            Self::Progress(progress) => TransferEvent::Progress(*progress),
            Self::Files(files) => {
                TransferEvent::Files(files.into_iter().map(|(Bytes(path), bytes)| (path, bytes)).collect())
            }
            Self::Notice { kind, path } => TransferEvent::Notice { kind, path: path.0 },
            Self::Skipped(failed) => TransferEvent::Skipped(failed),
            Self::Note(note) => TransferEvent::UserNote(format!("{host}: {}", note.trim_start())),
            Self::Done(summary) => TransferEvent::Done(Ok(*summary)),
            Self::Failed { kind, message, cause } => {
                let known = cause.and_then(|cause| read_cause(&cause));
                let words = || Error::Described { kind: kind_of_answer(kind), message }.within(Context::Host(None));
                TransferEvent::Done(Err(known.unwrap_or_else(words).on(host)))
            }
            Self::Unreached { .. } => return None,
        })
    }
}

/// Writes frames, from several threads.
#[derive(Debug)]
pub(super) struct Frames<W>(Mutex<W>);

impl<W: Write> Frames<W> {
    pub(super) const fn new(output: W) -> Self {
        Self(Mutex::new(output))
    }

    /// Sends at most [`MAX_DATA`] bytes.
    ///
    /// # Errors
    /// Those of the pipe.
    pub(super) fn data(&self, bytes: &[u8]) -> io::Result<()> {
        self.send(DATA, bytes)
    }

    /// Sends a report.
    ///
    /// # Errors
    /// Those of the pipe.
    pub(super) fn report(&self, report: &RelayEvent) -> io::Result<()> {
        self.send(REPORT, &serde_json::to_vec(report)?)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// Those of the pipe.
    pub(super) fn order(&self, order: &RelayCommand) -> io::Result<()> {
        self.send(ORDER, &serde_json::to_vec(order)?)
    }

    fn send(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // In one write, since each write to ssh is a packet of its own.
        output.write_all(&[&[kind][..], &length.to_be_bytes(), bytes].concat())?;
        output.flush()
    }
}

/// Reads the next frame; `None` at the end.
///
/// # Errors
/// Those of the pipe, and [`io::ErrorKind::InvalidData`] for a malformed frame.
pub(super) fn read_frame(input: &mut impl Read) -> io::Result<Option<Frame>> {
    loop {
        let mut kind = [0];
        match input.read(&mut kind) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        let most = if kind == [DATA] { MAX_DATA } else { MAX_FRAME };
        if length > most {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        // No more memory is reserved than has arrived.
        if input.take(length as u64).read_to_end(&mut bytes)? < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        return Ok(Some(match kind {
            [DATA] => Frame::Data(bytes),
            [REPORT] => Frame::Report(serde_json::from_slice(&bytes)?),
            [ORDER] => Frame::Order(serde_json::from_slice(&bytes)?),
            _ => continue,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    fn frames(bytes: &[u8]) -> (Vec<Frame>, Option<io::ErrorKind>) {
        let (mut input, mut found) = (bytes, Vec::new());
        loop {
            match read_frame(&mut input) {
                Ok(Some(frame)) => found.push(frame),
                Ok(None) => return (found, None),
                Err(error) => return (found, Some(error.kind())),
            }
        }
    }

    fn written(write: impl FnOnce(&Frames<&mut Vec<u8>>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&Frames::new(&mut bytes));
        bytes
    }

    #[test]
    fn relay_frames_round_trip_truncation_detected() {
        let bytes = written(|frames| {
            frames.data(&[7; MAX_DATA]).unwrap();
            frames.data(&[]).unwrap();
            frames.send(200, b"of a later release").unwrap();
            frames.order(&RelayCommand::Through { key: Bytes(vec![9; 32]) }).unwrap();
            frames.report(&RelayEvent::Notice { kind: NoticeKind::Delete, path: Bytes(b"\xff\n".to_vec()) }).unwrap();
        });
        let (found, error) = frames(&bytes);
        assert_eq!(error, None);
        let [
            Frame::Data(data),
            Frame::Data(end),
            Frame::Order(RelayCommand::Through { key }),
            Frame::Report(RelayEvent::Notice { kind: NoticeKind::Delete, path }),
        ] = &found[..]
        else {
            panic!("{found:?}")
        };
        assert_eq!(
            (&data[..], end.len(), &key.0[..], &path.0[..]),
            (&[7; MAX_DATA][..], 0, &[9; 32][..], &b"\xff\n"[..])
        );
        for end in [1, 4, MAX_DATA, bytes.len() - 1] {
            assert_eq!(frames(&bytes[..end]).1, Some(io::ErrorKind::UnexpectedEof), "{end}");
        }
    }

    #[test]
    fn any_bytes_are_frames_or_an_error() {
        let too_long = |kind: u8, length: usize| [&[kind][..], &u32::try_from(length).unwrap().to_be_bytes()].concat();
        for bytes in [too_long(DATA, MAX_DATA + 1), too_long(REPORT, MAX_FRAME + 1), too_long(77, MAX_FRAME + 1)] {
            assert_eq!(frames(&bytes).1, Some(io::ErrorKind::InvalidData));
        }
        assert_eq!(frames(&too_long(REPORT, MAX_FRAME)).1, Some(io::ErrorKind::UnexpectedEof), "nothing is reserved");
        let seed = 11;
        let mut rng = fastrand::Rng::with_seed(seed);
        for _ in 0..2000 {
            let bytes: Vec<u8> = (0..rng.usize(..200)).map(|_| rng.u8(..4)).collect();
            frames(&bytes);
        }
        let text = br#"{"Failed":{"kind":0,"message":""}}"#;
        let forged = written(|frames| frames.send(REPORT, text).unwrap());
        let (found, _) = frames(&forged);
        let [Frame::Report(_)] = &found[..] else { panic!("{found:?}, seed {seed}") };
    }

    #[test]
    fn relay_failure_keeps_kind() {
        let event = |report: RelayEvent| match report.into_event("a") {
            Some(TransferEvent::Done(Err(error))) => error,
            other => panic!("{other:?}"),
        };
        for kind in [ErrorKind::Other, ErrorKind::Usage, ErrorKind::Storage, ErrorKind::Timeout, ErrorKind::Terminated]
        {
            let error = Error::Described { kind, message: "disk full".into() }.within(Context::Host(None));
            let report = RelayEvent::of(TransferEvent::Done(Err(error))).remove(0);
            let text = serde_json::to_string(&report).unwrap();
            let RelayEvent::Failed { kind: number, message, .. } = serde_json::from_str(&text).unwrap() else {
                panic!("{text}")
            };
            for report in [report, RelayEvent::Failed { kind: number, message, cause: None }] {
                let error = event(report);
                assert_eq!(error.kind(), kind);
                assert_eq!(error.to_string(), "a: remote host: disk full");
            }
        }
        for forged in [0, 9, 23, 130, 255] {
            let report = RelayEvent::Failed { kind: forged, message: String::new(), cause: None };
            let Some(TransferEvent::Done(Err(error))) = report.into_event("a") else { panic!("{forged}") };
            assert_eq!(error.kind(), ErrorKind::Other, "{forged}");
        }
    }
}
