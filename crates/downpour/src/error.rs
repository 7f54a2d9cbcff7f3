//! What ends a transfer: a chain from where a failure was noticed to its cause, whose [kind](ErrorKind) and values
//! programs read. The text states them; what to do about it is for a program to say, which knows what its user has
//! typed.

mod context;
mod numbers;
mod reported;

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
use crate::remote::copy_error::CopyError;
use crate::remote::limited::Limited;
use crate::remote::restriction::Restriction;
use crate::streams::StreamError;
use crate::ticket::{Role, TicketError};
use crate::tunnel::ForwardAddress;
pub use context::Context;
pub(crate) use numbers::{answer_number, kind_of_answer};
pub(crate) use reported::{Closing, answer_line, cause_line, is_done, or_nothing, read_answer, read_cause};

/// Why a transfer ended without success. As JSON it crosses the wire, except for variants that mean nothing elsewhere.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// Something about the files on this side.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A path is in the home of nobody.
    #[error(transparent)]
    #[serde(skip)]
    Home(#[from] HomeError),
    /// The ticket is of no use.
    #[error(transparent)]
    #[serde(skip)]
    Ticket(#[from] TicketError),
    /// The ticket leads to a peer that does the same as we.
    #[error("both sides {}: one of them must {}", verb(*.both), verb(both.other()))]
    WrongRole {
        /// What both sides do.
        both: Role,
    },
    /// The ticket's time is over and nobody has used it.
    #[error("nobody came while the ticket was good ({} s)", .0.as_secs())]
    #[serde(skip)]
    TicketExpired(Duration),
    /// The network: no socket, no connection, no flow.
    #[error(transparent)]
    #[serde(skip)]
    Net(NetError),
    /// The peer answered at none of its addresses. A wrong key looks the same: strangers get silence.
    #[error("no answer from {} in {} s{}", list(addresses), after.as_secs_f64(), send_error.as_ref().map(|error| format!(" (this host says: {error})")).unwrap_or_default())]
    #[serde(skip)]
    Unreachable {
        /// The addresses tried.
        addresses: Vec<SocketAddr>,
        /// For how long.
        after: Duration,
        /// What the kernel said about sending, if anything.
        send_error: Option<Arc<io::Error>>,
        /// The addresses are those of a ticket, not of a host that ssh reached.
        by_ticket: bool,
    },
    /// The two programs are too different.
    #[error("the other side speaks no version of the protocol known here")]
    #[serde(rename = "Version")]
    VersionMismatch,
    /// A request has fields that this release does not know.
    #[error("this downpour is too old for what was asked of it: it does not know {}", .0.join(", "))]
    UnknownFields(Vec<String>),
    /// The peer was there and is gone.
    #[error("the other side has vanished: it has ended without a word, or the network is down")]
    #[serde(rename = "Vanished")]
    ConnectionLost,
    /// A peer that connected to this side made no progress for this long.
    #[error("the other side made no progress for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The peer broke the protocol.
    #[error("the other side broke the protocol: {0}")]
    #[serde(rename = "Violation")]
    ProtocolViolation(String),
    /// A block cannot be decoded, and as the sender's profile has it nothing more of it is sent.
    #[error("a block cannot be decoded and its profile sends nothing more of it: its bytes are lost")]
    Undecodable,
    /// A sequence number of the connection is exhausted.
    #[error("the connection can go on no longer: {0}")]
    #[serde(skip)]
    Exhausted(#[serde(skip)] &'static str),
    /// The user said no to what was offered.
    #[error("declined")]
    Declined,
    /// The user stopped the transfer.
    #[error("cancelled")]
    Cancelled,
    /// The system stopped the transfer, or what had started this program.
    #[error("stopped by a signal")]
    Terminated,
    /// This machine has no such ssh.
    #[error("{} cannot be started: {source}", program.display())]
    #[serde(skip)]
    NoSsh {
        /// The program.
        program: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// ssh did not lead to a downpour on the other machine.
    #[error("{0}")]
    #[serde(skip)]
    Ssh(String),
    /// The other machine does not let this user in, or is not the one that it was.
    #[error("cannot log in to {host}: {why}")]
    #[serde(skip)]
    LoginRefused {
        /// The machine.
        host: String,
        /// ssh's words.
        why: String,
    },
    /// The other machine has no such program.
    #[error("{host} has no program {program}")]
    #[serde(skip)]
    NotInstalled {
        /// The machine.
        host: String,
        /// What was looked for.
        program: String,
    },
    /// This program does not run on the other machine.
    #[error("{host} is {system}, and this program is for {this}")]
    #[serde(skip)]
    NoFittingProgram {
        /// The machine.
        host: String,
        /// Its kind, as `uname -s` and `uname -m` say it.
        system: String,
        /// The kind of this machine.
        this: String,
    },
    /// A program could not be copied to the other machine.
    #[error("downpour was not copied to {host}: {why}")]
    #[serde(skip)]
    BootstrapFailed {
        /// The machine.
        host: String,
        /// Its words.
        why: String,
    },
    /// The login is limited ([`Limit`](crate::remote::KeyRestriction)), and the request exceeds the limit.
    #[error("this login is limited to one directory: {0}")]
    #[serde(rename = "Limited")]
    KeyRestricted(#[source] Limited),
    /// The login runs downpour in place of all commands.
    #[error("the login at {host} runs downpour alone, and one that runs commands is needed")]
    #[serde(skip)]
    RunsDownpour {
        /// The machine.
        host: String,
    },
    /// What ran on the other machine is another program.
    #[error("what ran at {host} is no downpour, since it ended without a word{}", says.as_ref().map(|words| format!("; the login says: {words}")).unwrap_or_default())]
    #[serde(skip)]
    NoDownpour {
        /// The machine.
        host: String,
        /// What was to run there.
        program: String,
        /// What the login has printed.
        says: Option<String>,
    },
    /// ssh's configuration for the machine lets no program start there.
    #[error("ssh's configuration has {setting} for {host}, so that no downpour starts there")]
    #[serde(skip)]
    NothingStarts {
        /// The machine.
        host: String,
        /// The setting in the way, as ssh's configuration writes it.
        #[serde(skip)]
        setting: &'static str,
        /// The setting that would let it start.
        #[serde(skip)]
        wanted: &'static str,
    },
    /// The other machine's downpour is older than something that the request needs.
    #[error("its older downpour {}", .0.lack())]
    Older(Restriction),
    /// What another machine says of a failure, where both know no more of it than its kind.
    #[error("{message}")]
    Described {
        /// What kind of failure it reports.
        kind: ErrorKind,
        /// Its words, which a program escapes before it shows them.
        message: String,
    },
    /// A failure, and where or when it came about.
    #[error("{}", context.around(source))]
    Within {
        /// Where or when.
        context: Context,
        /// What happened.
        source: Box<Self>,
    },
    /// Sources and target make no sense together.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// What is written about a transfer cannot go to this file.
    #[error("{kind} cannot go to {}: {reason}", path.display())]
    #[serde(skip)]
    OutputRefused {
        /// What is written.
        kind: OutputKind,
        /// Where.
        path: PathBuf,
        /// Why, and what to do.
        #[serde(skip)]
        reason: &'static str,
    },
    /// The list of checksums cannot be written.
    #[error("cannot write the checksums {}: {source}{}", path.display(), if *is_over { "; everything else is done" } else { "" })]
    #[serde(skip)]
    Checksums {
        /// The list.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
        /// Whether the files have arrived.
        is_over: bool,
    },
    /// What a command over there is to read cannot be read here.
    #[error("cannot read stdin: {0}; the command was ended before its input was whole")]
    #[serde(skip)]
    Input(io::Error),
    /// What a command over there prints cannot be written here.
    #[error("cannot write to stdout: {0}; the output of the command is not complete")]
    #[serde(skip)]
    Output(io::Error),
    /// A stream under a name was not passed on whole.
    #[error(transparent)]
    #[serde(skip)]
    Stream(#[from] StreamError),
    /// A tunnel cannot take connections where it should.
    #[error("cannot listen on {place}: {source}")]
    #[serde(skip)]
    Listen {
        /// The place.
        place: ForwardAddress,
        /// The system's words.
        source: io::Error,
    },
    /// A tunnel has no numbers left for further connections.
    #[error("the tunnel has carried 65,535 connections, which is all that one can")]
    #[serde(skip)]
    ConnectionLimit,
    /// The trace file cannot be written.
    #[error("cannot write the trace {}: {source}", path.display())]
    #[serde(skip)]
    Trace {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The system refuses a thread, a descriptor, or random bytes.
    #[error("the system refuses what a transfer needs: {0}")]
    #[serde(skip)]
    OutOfResources(io::Error),
    /// A fault of this program.
    #[error("internal error: {0}")]
    #[serde(skip)]
    Internal(#[serde(skip)] &'static str),
}

impl Error {
    /// What kind of failure it is. What another machine claims counts only as far as it can know. A
    /// transfer of which some names failed succeeds: see
    /// [`Failures::count`](crate::Failures::count).
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

    /// Returns the end of the chain: what happened, wherever that was.
    #[must_use]
    pub fn cause(&self) -> &Self {
        match self {
            Self::Within { source, .. } => source.cause(),
            cause => cause,
        }
    }

    /// Returns the contexts of the chain, from the outermost on.
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

    /// Adds where or when the failure came about.
    #[must_use]
    pub(crate) fn within(self, context: Context) -> Self {
        Self::Within { context, source: Box::new(self) }
    }

    /// Names the machine that an error of another one is from.
    pub(crate) fn on(self, host: &str) -> Self {
        match self {
            Self::Within { context: Context::Host(None), source } => {
                Self::Within { context: Context::Host(Some(host.to_owned())), source }
            }
            other => other,
        }
    }
}

/// Who ends a connection, as this side knows it: for words to the user.
pub(crate) struct PeerContext<'a> {
    pub(crate) role: Role,
    /// Where it was looked for, and for how long; nothing if it came to us.
    pub(crate) tried: Option<(&'a [SocketAddr], Duration)>,
}

impl Error {
    /// Why a connection with `other` has ended.
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
            NetError::ClosedLocally => Self::Internal("the connection was closed by nobody"),
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
