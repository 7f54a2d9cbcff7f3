//! Errors that prevent a measurement.

use std::io;
use std::process::ExitStatus;

/// The reason why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No peer has this name.
    #[error("no peer is called '{name}': `downpour-lab peers` lists them")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// It is a profile of simulated flows.
    #[error("linux-tcp is simulated only: write tcp-cubic, which is the kernel's own")]
    Simulated,
    /// The text after its name is no choice of its profile.
    #[error("{peer}: {reason}")]
    Choice {
        /// The requested peer.
        peer: String,
        /// The error.
        reason: String,
    },
    /// Something that it needs is not on this machine.
    #[error("{peer} needs {missing}: {install}")]
    Absent {
        /// The peer.
        peer: &'static str,
        /// The missing item.
        missing: String,
        /// The line that installs it.
        install: String,
    },
    /// It sends at a given rate, but none was given.
    #[error("{peer} must be told the rate of the path")]
    NotTold {
        /// The peer.
        peer: &'static str,
    },
    /// It moves files only.
    #[error("{peer} carries no connections, over which something could be written")]
    NoConnections {
        /// The peer.
        peer: &'static str,
    },
    /// It cannot send such a file.
    #[error("{peer} sends no empty file")]
    Empty {
        /// The peer.
        peer: &'static str,
    },
    /// One of its programs ended before the file had arrived, or with an error.
    #[error("{program} ended with {status}: {said}")]
    Failed {
        /// The program.
        program: String,
        /// Its exit status.
        status: ExitStatus,
        /// The end of its output.
        said: String,
    },
    /// One of its programs does not begin to listen.
    #[error("{program} does not listen after {seconds} s: {said}")]
    Deaf {
        /// The program.
        program: String,
        /// How long it was waited for, in seconds.
        seconds: u64,
        /// The end of its output.
        said: String,
    },
    /// One of its programs printed an unexpected line.
    #[error("{program} says {line:?}")]
    Strange {
        /// The program.
        program: String,
        /// The line.
        line: String,
    },
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// The attempted operation.
        what: String,
        /// The system's error.
        error: io::Error,
    },
}

impl PeerError {
    /// Returns a function for `map_err` that adds the attempted operation.
    pub(super) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what: what.into(), error }
    }
}
