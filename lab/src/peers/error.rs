//! Errors that prevent a measurement.

use std::io;
use std::process::ExitStatus;

/// The reason why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No peer has this name.
    #[error("unknown peer '{name}': `downpour-lab peers` lists them")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// It is a profile of simulated flows.
    #[error("linux-tcp is simulated only: use tcp-cubic, the kernel's own")]
    Simulated,
    /// The text after its name is not a choice of its profile.
    #[error("{peer}: {reason}")]
    Choice {
        /// The requested peer.
        peer: String,
        /// The error.
        reason: String,
    },
    /// A program or kernel feature that it needs is missing.
    #[error("{peer} needs {missing}: {install}")]
    Absent {
        /// The peer.
        peer: &'static str,
        /// The missing item.
        missing: String,
        /// The command that installs it.
        install: String,
    },
    /// It sends at a fixed rate, but none was given.
    #[error("{peer} needs a fixed rate: the link has no rate")]
    NotTold {
        /// The peer.
        peer: &'static str,
    },
    /// It moves files only.
    #[error("{peer} carries no connections: small writes need a peer such as tunnel")]
    NoConnections {
        /// The peer.
        peer: &'static str,
    },
    /// It cannot send such a file.
    #[error("{peer} cannot send an empty file")]
    Empty {
        /// The peer.
        peer: &'static str,
    },
    /// One of its programs exited before the file had arrived, or with an error.
    #[error("{program} failed with {status}: {output}")]
    Failed {
        /// The program.
        program: String,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its output.
        output: String,
    },
    /// One of its programs does not listen in time.
    #[error("{program} does not listen within {seconds} s: {output}")]
    NotListening {
        /// The program.
        program: String,
        /// The time limit, in seconds.
        seconds: u64,
        /// The end of its output.
        output: String,
    },
    /// One of its programs printed an unexpected line.
    #[error("unexpected output of {program}: {line:?}")]
    UnexpectedOutput {
        /// The program.
        program: String,
        /// The line.
        line: String,
    },
    /// An operation of the system failed.
    #[error("{operation}: {error}")]
    System {
        /// The attempted operation.
        operation: String,
        /// The system's error.
        error: io::Error,
    },
}

impl PeerError {
    /// Returns a function for `map_err` that adds the attempted operation.
    pub(super) fn at(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { operation: operation.into(), error }
    }
}
