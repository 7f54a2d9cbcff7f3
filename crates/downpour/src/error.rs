//! Why a transfer ended: a chain from the place where a failure was noticed to its cause, whose [kind](ErrorKind) and
//! values programs read. The text states the failure; advice is left to programs, which know the user's command.

mod context;
mod copy_error;
mod key_refusal;
mod numbers;
mod reported;
mod required_feature;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::NetError;
use serde::{Deserialize, Serialize};
use transport::FlowError;

pub use crate::files::ErrorKind;
use crate::files::{FilesError, OutputKind};
use crate::home::HomeError;
use crate::messages::MessageError;
use crate::streams::StreamError;
use crate::ticket::{Role, TicketError};
pub use context::Context;
pub use copy_error::CopyError;
pub use key_refusal::KeyRefusal;
pub(crate) use numbers::{answer_number, kind_of_answer};
pub(crate) use reported::{Closing, answer_line, cause_line, is_done, or_nothing, read_answer, read_cause};
pub use required_feature::RequiredFeature;

/// Why a transfer ended without success. Crosses the wire as JSON, except for variants without meaning to a peer.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// An error of local files.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A path names the home of an unknown user.
    #[error(transparent)]
    #[serde(skip)]
    Home(#[from] HomeError),
    /// The ticket cannot be used.
    #[error(transparent)]
    #[serde(skip)]
    Ticket(#[from] TicketError),
    /// The peer of the ticket has the same role.
    #[error("both peers {}: one of them must {}", verb(*.both), verb(both.other()))]
    WrongRole {
        /// The common role.
        both: Role,
    },
    /// The ticket expired unused.
    #[error("ticket expired after {} s: no peer connected", .0.as_secs())]
    #[serde(skip)]
    TicketExpired(Duration),
    /// The network: no socket, no connection, no flow.
    #[error(transparent)]
    #[serde(skip)]
    Net(NetError),
    /// The peer answered at none of its addresses. A wrong key looks the same: endpoints ignore peers without the key.
    #[error("no answer from {} after {} s{}", list(addresses), after.as_secs_f64(), send_error.as_ref().map(|error| format!(" (send error: {error})")).unwrap_or_default())]
    #[serde(skip)]
    Unreachable {
        /// The addresses tried.
        addresses: Vec<SocketAddr>,
        /// The time waited.
        after: Duration,
        /// The kernel's error when sending, if any.
        send_error: Option<Arc<io::Error>>,
        /// The addresses are those of a ticket, not of a host that ssh reached.
        by_ticket: bool,
    },
    /// The peers have no common protocol version.
    #[error("no common protocol version")]
    #[serde(rename = "Version")]
    VersionMismatch,
    /// A request has fields that this release does not know.
    #[error("this downpour is too old for the request: unknown fields {}", .0.join(", "))]
    UnknownFields(Vec<String>),
    /// No packet has arrived for too long.
    #[error("connection lost: the peer exited without closing it, or the network is down")]
    #[serde(rename = "Vanished")]
    ConnectionLost,
    /// A peer that had connected made no progress for this long.
    #[error("connection closed: no progress by the peer for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The peer violated the protocol.
    #[error("protocol error by the peer: {0}")]
    #[serde(rename = "Violation")]
    ProtocolViolation(String),
    /// A block cannot be decoded, and the sender's profile sends nothing more of it.
    #[error("data lost: block undecodable and the profile sends no more repair")]
    Undecodable,
    /// A sequence number of the connection is exhausted.
    #[error("connection closed: {0}")]
    #[serde(skip)]
    Exhausted(#[serde(skip)] &'static str),
    /// The user declined the offer.
    #[error("declined")]
    Declined,
    /// The user stopped the transfer.
    #[error("cancelled")]
    Cancelled,
    /// The system, or the parent of this process, stopped the transfer.
    #[error("stopped by a signal")]
    Terminated,
    /// The ssh program cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    #[serde(skip)]
    NoSsh {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// ssh did not start a downpour on the remote host.
    #[error("{0}")]
    #[serde(skip)]
    Ssh(String),
    /// The remote host rejects the login, or its key has changed.
    #[error("cannot log in to {host}: {why}")]
    #[serde(skip)]
    LoginRefused {
        /// The host.
        host: String,
        /// ssh's error.
        why: String,
    },
    /// The remote host does not have the program.
    #[error("{program} not found on {host}")]
    #[serde(skip)]
    NotInstalled {
        /// The host.
        host: String,
        /// The program.
        program: String,
    },
    /// This program does not run on the remote host.
    #[error("cannot install on {host} ({system}): this binary is for {this}")]
    #[serde(skip)]
    NoFittingProgram {
        /// The host.
        host: String,
        /// Its kind, as `uname -s` and `uname -m` print it.
        system: String,
        /// The kind of the local host.
        this: String,
    },
    /// The program could not be installed on the remote host.
    #[error("cannot install downpour on {host}: {why}")]
    #[serde(skip)]
    BootstrapFailed {
        /// The host.
        host: String,
        /// The reason.
        why: String,
    },
    /// The key is restricted ([`KeyRestriction`](crate::remote::KeyRestriction)), and the request exceeds the
    /// restriction.
    #[error("restricted key: {0}")]
    #[serde(rename = "Limited")]
    KeyRestricted(#[source] KeyRefusal),
    /// The login runs only downpour.
    #[error("the login to {host} runs only downpour: use one that runs commands")]
    #[serde(skip)]
    RunsDownpour {
        /// The host.
        host: String,
    },
    /// Another program ran on the remote host.
    #[error("the program on {host} is not downpour: it exited without a reply{}", output.as_ref().map(|words| format!("; login output: {words}")).unwrap_or_default())]
    #[serde(skip)]
    NoDownpour {
        /// The host.
        host: String,
        /// The program that should have run.
        program: String,
        /// The output of the login.
        #[serde(rename = "says")]
        output: Option<String>,
    },
    /// ssh's configuration of the host prevents the start of programs.
    #[error("ssh configuration of {host} has {setting}: downpour cannot start")]
    #[serde(skip)]
    NothingStarts {
        /// The host.
        host: String,
        /// The setting, as ssh's configuration writes it.
        #[serde(skip)]
        setting: &'static str,
        /// The setting that would let it start.
        #[serde(skip)]
        wanted: &'static str,
    },
    /// The remote downpour lacks something that the request needs.
    #[error("remote downpour too old: {}", .0.lack())]
    Older(RequiredFeature),
    /// A failure on another host, of which only the kind and a text are known.
    #[error("{message}")]
    Described {
        /// The kind of the failure.
        kind: ErrorKind,
        /// Its text, which programs escape before display.
        message: String,
    },
    /// A failure, and where or when it occurred.
    #[error("{}", context.around(source))]
    Within {
        /// Where or when.
        context: Context,
        /// What happened.
        source: Box<Self>,
    },
    /// Sources and destination cannot be combined.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// Output about a transfer cannot be written to this file.
    #[error("cannot write {kind} to {}: {reason}", path.display())]
    #[serde(skip)]
    OutputRefused {
        /// The kind of output.
        kind: OutputKind,
        /// The file.
        path: PathBuf,
        /// The reason, and advice.
        #[serde(skip)]
        reason: &'static str,
    },
    /// The list of checksums cannot be written.
    #[error("cannot write the checksums {}: {source}{}", path.display(), if *is_over { "; the files were copied" } else { "" })]
    #[serde(skip)]
    Checksums {
        /// The list.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// Whether all files were copied.
        is_over: bool,
    },
    /// The input of a remote command cannot be read.
    #[error("cannot read stdin: {0}; remote command killed, input was incomplete")]
    #[serde(skip)]
    Input(io::Error),
    /// The output of a remote command cannot be written.
    #[error("cannot write to stdout: {0}; output truncated")]
    #[serde(skip)]
    Output(io::Error),
    /// A named stream was not relayed completely.
    #[error(transparent)]
    #[serde(skip)]
    Stream(#[from] StreamError),
    /// A tunnel cannot listen for connections.
    #[error("cannot listen on {address}: {source}")]
    #[serde(skip)]
    Listen {
        /// The address.
        address: String,
        /// The system's error.
        source: io::Error,
    },
    /// A tunnel has used all its connection numbers.
    #[error("tunnel closed: limit of 65,535 connections reached")]
    #[serde(skip)]
    ConnectionLimit,
    /// The trace file cannot be written.
    #[error("cannot write the trace {}: {source}", path.display())]
    #[serde(skip)]
    Trace {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no thread, descriptor, or random bytes.
    #[error("out of system resources: {0}")]
    #[serde(skip)]
    OutOfResources(io::Error),
    /// A defect of this program.
    #[error("internal error: {0}")]
    #[serde(skip)]
    Internal(#[serde(skip)] &'static str),
}

impl Error {
    /// Returns the kind of failure. A kind reported by another host counts only as far as that host can know it. A
    /// transfer of which some names failed succeeds: see [`Failures::count`](crate::Failures::count).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Within { context, source } => context.kind(source.kind()),
            Self::Described { kind, .. } => *kind,
            Self::Files(error) => error.kind(),
            Self::Ticket(error) => error.kind(),
            Self::Stream(error) => error.kind(),
            Self::TicketExpired(_) | Self::LoginRefused { .. } => ErrorKind::Authentication,
            Self::WrongRole { .. } => ErrorKind::WrongRole,
            Self::Unreachable { .. } | Self::Ssh(_) | Self::NoDownpour { .. } | Self::NothingStarts { .. } => {
                ErrorKind::Unreachable
            }
            Self::ConnectionLost | Self::Stalled(_) => ErrorKind::Timeout,
            Self::Undecodable => ErrorKind::Undecodable,
            Self::Declined => ErrorKind::Declined,
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Terminated => ErrorKind::Terminated,
            Self::ProtocolViolation(_) => ErrorKind::Protocol,
            Self::Exhausted(_) => ErrorKind::Exhausted,
            Self::NotInstalled { .. } | Self::NoFittingProgram { .. } => ErrorKind::NotFound,
            Self::Copy(error) => error.kind(),
            Self::Home(_)
            | Self::OutputRefused { .. }
            | Self::Net(NetError::Flow(FlowError::SymbolsTooLarge { .. })) => ErrorKind::Usage,
            Self::Checksums { .. }
            | Self::Trace { .. }
            | Self::Input(_)
            | Self::Output(_)
            | Self::KeyRestricted(_)
            | Self::RunsDownpour { .. } => ErrorKind::Storage,
            Self::NoSsh { .. }
            | Self::BootstrapFailed { .. }
            | Self::Net(_)
            | Self::VersionMismatch
            | Self::UnknownFields(_)
            | Self::Older(_)
            | Self::Listen { .. }
            | Self::ConnectionLimit
            | Self::OutOfResources(_)
            | Self::Internal(_) => ErrorKind::Other,
        }
    }

    /// Returns the end of the chain: the original failure.
    #[must_use]
    pub fn cause(&self) -> &Self {
        match self {
            Self::Within { source, .. } => source.cause(),
            cause => cause,
        }
    }

    /// Returns the contexts of the chain, outermost first.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        let mut next = self;
        std::iter::from_fn(move || match next {
            Self::Within { context, source } => {
                next = source;
                Some(context)
            }
            _ => None,
        })
    }

    /// Adds where or when the failure occurred.
    #[must_use]
    pub(crate) fn within(self, context: Context) -> Self {
        Self::Within { context, source: Box::new(self) }
    }

    /// Names the host of an error that a remote host reported.
    pub(crate) fn on(self, host: &str) -> Self {
        match self {
            Self::Within { context: Context::Host(None), source } => {
                Self::Within { context: Context::Host(Some(host.to_owned())), source }
            }
            other => other,
        }
    }
}

/// The peer of a connection, for messages to the user.
pub(crate) struct PeerContext<'a> {
    pub(crate) role: Role,
    /// Its addresses and the time waited; `None` if the peer connected to this side.
    pub(crate) tried: Option<(&'a [SocketAddr], Duration)>,
}

impl Error {
    /// Returns why a connection with `other` ended.
    pub(crate) fn ended(error: NetError, other: &PeerContext<'_>) -> Self {
        match (error, other.tried) {
            (NetError::ClosedByPeer { code, reason }, _) => {
                Closing { code, reason }.read().within(Context::Peer { role: other.role, by_ticket: true })
            }
            (NetError::HandshakeTimedOut { send_error }, Some((addresses, after))) => {
                Self::Unreachable { addresses: addresses.to_vec(), after, send_error, by_ticket: true }
            }
            (NetError::HandshakeTimedOut { .. }, None) => Self::ConnectionLost,
            (error, _) => error.into(),
        }
    }
}

impl From<NetError> for Error {
    fn from(error: NetError) -> Self {
        let owned = |error: Arc<io::Error>| {
            Arc::try_unwrap(error).unwrap_or_else(|shared| io::Error::new(shared.kind(), shared.to_string()))
        };
        match error {
            NetError::ConnectionLost | NetError::PipeEnded => Self::ConnectionLost,
            NetError::ProtocolViolation { reason } => Self::ProtocolViolation(reason.to_owned()),
            NetError::VersionMismatch { .. } => Self::VersionMismatch,
            NetError::Undecodable => Self::Undecodable,
            NetError::Exhausted { what } => Self::Exhausted(what),
            NetError::Flow(FlowError::Exhausted) => Self::Exhausted("no flow numbers are left"),
            NetError::OutOfResources(error) => Self::OutOfResources(owned(error)),
            NetError::Panicked(_) => Self::Internal("a thread of the network panicked"),
            NetError::ClosedLocally => Self::Internal("a local close was not expected"),
            // The sources and sinks of this library fail with its own errors.
            NetError::Storage(error) => owned(error).downcast().unwrap_or_else(Self::OutOfResources),
            other => Self::Net(other),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

impl From<MessageError> for Error {
    fn from(error: MessageError) -> Self {
        Self::Files(error.into())
    }
}

const fn verb(role: Role) -> &'static str {
    match role {
        Role::Sender | Role::Streams => "send",
        Role::Receiver => "receive",
        Role::Tunnel => "listen for tunnels",
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
