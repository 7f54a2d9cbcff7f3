//! What keeps a transfer from being measured.

use std::io;
use std::process::ExitStatus;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// No peer has this name.
    #[error("no peer is called '{name}': `downpour-lab peers` lists them")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// What stands behind its name is no choice of its profile.
    #[error("{peer}: {reason}")]
    Choice {
        /// What was asked for.
        peer: String,
        /// What is wrong.
        reason: String,
    },
    /// Something it needs is not on this machine.
    #[error("{peer} needs {missing}: {install}")]
    Absent {
        /// The peer.
        peer: &'static str,
        /// What is missing.
        missing: String,
        /// The line that installs it.
        install: String,
    },
    /// It sends at a rate that it is told, and was told none.
    #[error("{peer} must be told the rate of the path")]
    NotTold {
        /// The peer.
        peer: &'static str,
    },
    /// It cannot send such a file.
    #[error("{peer} sends no empty file")]
    Empty {
        /// The peer.
        peer: &'static str,
    },
    /// One of its programs ended before the file was there, or badly.
    #[error("{program} ended with {status}: {said}")]
    Failed {
        /// The program.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// The end of what it said.
        said: String,
    },
    /// One of its programs does not begin to listen.
    #[error("{program} does not listen after {seconds} s: {said}")]
    Deaf {
        /// The program.
        program: String,
        /// How long it was waited for.
        seconds: u64,
        /// The end of what it said.
        said: String,
    },
    /// One of its programs said something that was not expected of it.
    #[error("{program} says {line:?}")]
    Strange {
        /// The program.
        program: String,
        /// What it printed.
        line: String,
    },
    /// The system refused something.
    #[error("{what}: {error}")]
    System {
        /// What was to be done.
        what: String,
        /// What the system says.
        error: io::Error,
    },
}

impl PeerError {
    /// For `map_err`: what was to be done, then the error.
    pub(super) fn at(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::System { what: what.into(), error }
    }
}
