//! What ends a transfer: an error that says in one line what to do, its kind for programs, and its close code for the
//! peer.

mod close_code;
mod kind;

use std::ffi::OsStr;
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::NetError;
use transport::FlowError;

use crate::files::{Class, FilesError, OutputKind, is_staging_name};
use crate::home::HomeError;
use crate::messages::MessageError;
use crate::streams::StreamError;
use crate::ticket::{Role, TicketError};
use crate::tunnel::Place;
pub use close_code::CloseCode;
pub use kind::ErrorKind;

/// Why a transfer ended without success.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something about the files on this side.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A path is in the home of nobody.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The ticket is of no use.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// The ticket leads to a peer that does the same as we.
    #[error("both sides {}: one of them must {}", verb(*.both), verb(both.other()))]
    WrongRole {
        /// What both sides do.
        both: Role,
    },
    /// The ticket's time is over and nobody has used it.
    #[error("nobody came while the ticket was good ({} s): make a new one", .0.as_secs())]
    NobodyCame(Duration),
    /// The ticket's time is over and no transfer was complete.
    #[error("the ticket's time ({} s) is over and no transfer was complete; the last one: {last}", after.as_secs())]
    NoneComplete {
        /// For how long the ticket was good.
        after: Duration,
        /// Why the last transfer failed.
        last: Box<Self>,
    },
    /// The network: no socket, no connection, no flow.
    #[error(transparent)]
    Net(NetError),
    /// The peer answered at none of its addresses. A wrong key looks the same: strangers get silence.
    #[error("no answer from {} in {} s: check that the other side still runs, that a firewall lets UDP through, and that the ticket is the latest{}", list(addresses), after.as_secs_f64(), hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
    Unreachable {
        /// The addresses tried.
        addresses: Vec<SocketAddr>,
        /// For how long.
        after: Duration,
        /// What the kernel said about sending, if anything.
        hint: Option<String>,
    },
    /// The two programs are too different.
    #[error("the other side speaks no version of the protocol known here: update the older program")]
    Version,
    /// A request has fields that this release does not know.
    #[error("this downpour is too old for what was asked of it: it does not know {}; update it", .0.join(", "))]
    UnknownFields(Vec<String>),
    /// The peer was there and is gone.
    #[error("the other side has vanished: it has ended without a word, or the network is down")]
    Vanished,
    /// A peer that connected to this side made no progress for this long.
    #[error("the other side made no progress for {} s", .0.as_secs())]
    Stalled(Duration),
    /// The peer ended the transfer and said why.
    #[error("the {} said: {reason}", noun(*.peer))]
    Peer {
        /// What the peer does.
        peer: Role,
        /// Its code.
        code: CloseCode,
        /// Its words, which a program escapes before it shows them.
        reason: String,
    },
    /// The peer broke the protocol.
    #[error("the other side broke the protocol: {0}")]
    Violation(String),
    /// A block cannot be decoded, and as the sender's profile has it nothing more of it is sent.
    #[error(
        "a block cannot be decoded and its profile sends nothing more of it: its bytes are lost (another try may do, or --set feedback.blocks=done, or schedule.mend=on)"
    )]
    Undecodable,
    /// A sequence number of the connection is exhausted.
    #[error("the connection can go on no longer: {0}; start the transfer again, which goes on from there")]
    Exhausted(&'static str),
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
    NoSsh {
        /// The program.
        program: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// ssh did not lead to a downpour on the other machine.
    #[error("{0}")]
    Ssh(String),
    /// The other machine does not let this user in, or is not the one that it was.
    #[error("cannot log in to {host}: {why}")]
    LoginRefused {
        /// The machine.
        host: String,
        /// ssh's words.
        why: String,
    },
    /// The other machine has no such program.
    #[error("{host} has no program {program}{}", copied_by_bootstrap(program, host))]
    NotInstalled {
        /// The machine.
        host: String,
        /// What was looked for.
        program: String,
    },
    /// This program does not run on the other machine.
    #[error(
        "{host} is {system}, and this program is for {this}: name one for it with --from (`cargo xtask dist` makes static programs)"
    )]
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
    NotCopied {
        /// The machine.
        host: String,
        /// Its words.
        why: String,
    },
    /// The login is limited ([`Limit`](crate::remote::Limit)), and the request exceeds the limit.
    #[error("this login is limited to one folder: {0}")]
    Limited(String),
    /// The login runs downpour in place of all commands.
    #[error("the login at {host} runs `downpour remote` only, and bootstrap needs one that runs commands")]
    RunsDownpour {
        /// The machine.
        host: String,
    },
    /// The downpour on the other machine did not begin.
    #[error("on the other machine: {message}")]
    Remote {
        /// What kind of failure it reports.
        kind: ErrorKind,
        /// Its words, which a program escapes before it shows them.
        message: String,
    },
    /// As [`Error::Remote`], on a machine that ssh knows by this name.
    #[error("on {host}: {message}")]
    Elsewhere {
        /// The machine.
        host: String,
        /// What kind of failure it reports.
        kind: ErrorKind,
        /// Its words, which a program escapes before it shows them.
        message: String,
    },
    /// Sources and target make no sense together.
    #[error("{0}")]
    Copy(String),
    /// What is written about a transfer cannot go to this file.
    #[error("{kind} cannot go to {}: {reason}", path.display())]
    OutputRefused {
        /// What is written.
        kind: OutputKind,
        /// Where.
        path: PathBuf,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// The list of checksums cannot be written.
    #[error("cannot write the checksums {}: {source}{}", path.display(), if *is_over { "; everything else is done" } else { "" })]
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
    Input(io::Error),
    /// What a command over there prints cannot be written here.
    #[error("cannot write to stdout: {0}; the output of the command is not complete")]
    Output(io::Error),
    /// A stream under a name was not passed on whole.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A tunnel cannot take connections where it should.
    #[error("cannot listen on {place}: {source}")]
    Listen {
        /// The place.
        place: Place,
        /// The system's words.
        source: io::Error,
    },
    /// A tunnel has no numbers left for further connections.
    #[error("the tunnel has carried 65,535 connections, which is all that one can: open it again")]
    Spent,
    /// The transfer broke off; what had arrived is kept.
    #[error("{error}; what has arrived is kept in {}: {}", staging.display(), goes_on(*.by_ticket))]
    Kept {
        /// What happened.
        error: Box<Self>,
        /// The staging folder.
        staging: PathBuf,
        /// The peer was found by a ticket, which may be good no longer.
        by_ticket: bool,
    },
    /// The trace file cannot be written.
    #[error("cannot write the trace {}: {source}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// The system refuses a thread, a descriptor, or random bytes.
    #[error("the system refuses what a transfer needs: {0}")]
    System(io::Error),
    /// A fault of this program.
    #[error("internal error: {0}")]
    Internal(&'static str),
}

/// Says how a program gets there, if it has the usual name.
fn copied_by_bootstrap(program: &str, host: &str) -> String {
    if program == "downpour" { format!(": `downpour bootstrap {host}` copies this one there") } else { String::new() }
}

impl Error {
    /// What kind of failure it is. A transfer of which some names failed succeeds: see
    /// [`Failures::count`](crate::Failures::count).
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Files(error) => match error.class() {
                Class::Source => ErrorKind::NotFound,
                Class::Usage => ErrorKind::Usage,
                Class::Full | Class::Denied | Class::TooMuch => ErrorKind::Storage,
                Class::Integrity | Class::NotPermitted => ErrorKind::Integrity,
                Class::Exists | Class::Busy | Class::Protocol | Class::Other => ErrorKind::Other,
            },
            Self::Ticket(
                TicketError::File { .. }
                | TicketError::NotReplaced { .. }
                | TicketError::Foreign { .. }
                | TicketError::Writable { .. }
                | TicketError::TooManyAddresses(_),
            ) => ErrorKind::Usage,
            Self::Ticket(TicketError::Random(_)) => ErrorKind::Other,
            Self::Ticket(_) | Self::WrongRole { .. } | Self::NobodyCame(_) | Self::LoginRefused { .. } => {
                ErrorKind::Authentication
            }
            Self::NoneComplete { last, .. } => last.kind(),
            Self::Unreachable { .. } | Self::Ssh(_) => ErrorKind::Unreachable,
            Self::Vanished | Self::Stalled(_) => ErrorKind::Timeout,
            Self::Undecodable => ErrorKind::Integrity,
            Self::Peer { code, .. } => match code {
                CloseCode::NoSpace | CloseCode::Permission => ErrorKind::Storage,
                CloseCode::Integrity | CloseCode::Undecodable => ErrorKind::Integrity,
                CloseCode::WrongRole => ErrorKind::Authentication,
                _ => ErrorKind::Other,
            },
            Self::Cancelled => ErrorKind::Cancelled,
            Self::Terminated => ErrorKind::Terminated,
            Self::NotInstalled { .. } | Self::NoFittingProgram { .. } => ErrorKind::NotFound,
            Self::Remote { kind, .. } | Self::Elsewhere { kind, .. } => *kind,
            Self::Copy(_)
            | Self::Home(_)
            | Self::OutputRefused { .. }
            | Self::Net(NetError::Flow(FlowError::SymbolsTooLarge { .. })) => ErrorKind::Usage,
            Self::Checksums { .. }
            | Self::Trace { .. }
            | Self::Input(_)
            | Self::Output(_)
            | Self::Limited(_)
            | Self::RunsDownpour { .. } => ErrorKind::Storage,
            Self::Kept { error, .. } => error.kind(),
            Self::Stream(error) => error.kind(),
            Self::NoSsh { .. }
            | Self::NotCopied { .. }
            | Self::Net(_)
            | Self::Version
            | Self::UnknownFields(_)
            | Self::Violation(_)
            | Self::Exhausted(_)
            | Self::Declined
            | Self::Listen { .. }
            | Self::Spent
            | Self::System(_)
            | Self::Internal(_) => ErrorKind::Other,
        }
    }

    /// What the peer is told when this ends the connection.
    pub(crate) fn close_code(&self) -> CloseCode {
        match self {
            Self::Declined => CloseCode::Declined,
            Self::Cancelled => CloseCode::Interrupted,
            Self::Terminated => CloseCode::Terminated,
            Self::WrongRole { .. } => CloseCode::WrongRole,
            Self::Violation(_) => CloseCode::Protocol,
            Self::Undecodable => CloseCode::Undecodable,
            Self::Exhausted(_) => CloseCode::Exhausted,
            Self::Stalled(_) => CloseCode::Busy,
            Self::Kept { error, .. } => error.close_code(),
            Self::Stream(error) => error.close_code(),
            Self::Files(error) => match error.class() {
                Class::Exists => CloseCode::TargetExists,
                Class::Busy => CloseCode::Busy,
                Class::Full | Class::TooMuch => CloseCode::NoSpace,
                Class::Denied => CloseCode::Permission,
                Class::Protocol | Class::NotPermitted => CloseCode::Protocol,
                Class::Integrity => CloseCode::Integrity,
                Class::Source | Class::Usage | Class::Other => CloseCode::Other,
            },
            _ => CloseCode::Other,
        }
    }

    /// The same in words for the peer. The paths in it are this side's own and were named by its user or by the peer.
    pub(crate) fn close_reason(&self) -> String {
        match self {
            // Whoever sends has to know what to do about it, and may have no other word from there.
            Self::Kept { error, staging, .. } if error.close_code() == CloseCode::NoSpace => {
                let advice = match **error {
                    Self::Files(FilesError::TooLarge { .. }) => "raise that limit, or name a target elsewhere,",
                    _ => "make room there",
                };
                format!(
                    "{}; what has arrived is kept in {}: {advice} and repeat the command, or remove it with `downpour clean`",
                    error.close_reason(),
                    staging.display()
                )
            }
            // Its own leftovers fill the disk, where not even a staging directory can be opened any more.
            Self::Files(FilesError::DiskFull { path }) if path.file_name().is_some_and(is_staged) => {
                format!("{self}: make room there, or remove with `downpour clean` what earlier transfers have left")
            }
            Self::Kept { error, .. } => error.close_reason(),
            Self::Cancelled => "interrupted by its user".to_owned(),
            Self::Terminated => "stopped by a signal".to_owned(),
            Self::Declined => "declined by its user".to_owned(),
            Self::Stalled(time) => format!("no progress for {} s; try again", time.as_secs()),
            other => other.to_string(),
        }
    }
}

/// Who ends a connection, as this side knows it: for words to the user.
pub(crate) struct Other<'a> {
    pub(crate) role: Role,
    /// Where it was looked for, and for how long; nothing if it came to us.
    pub(crate) tried: Option<(&'a [SocketAddr], Duration)>,
}

impl Error {
    /// Why a connection with `other` has ended.
    pub(crate) fn ended(error: NetError, other: &Other<'_>) -> Self {
        match (error, other.tried) {
            (NetError::ClosedByPeer { code, reason }, _) => {
                Self::Peer { peer: other.role, code: CloseCode::from_code(code), reason: reason_of_peer(reason) }
            }
            (NetError::HandshakeTimedOut { send_error }, Some((addresses, after))) => Self::Unreachable {
                addresses: addresses.to_vec(),
                after,
                hint: send_error.map(|error| format!("this host says: {error}")),
            },
            (NetError::HandshakeTimedOut { .. }, None) => Self::Vanished,
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
            NetError::PeerLost | NetError::PipeEnded => Self::Vanished,
            NetError::ProtocolViolation { reason } => Self::Violation(reason.to_owned()),
            NetError::VersionMismatch { .. } => Self::Version,
            NetError::Undecodable => Self::Undecodable,
            NetError::Exhausted { what } => Self::Exhausted(what),
            NetError::Flow(FlowError::Exhausted) => Self::Exhausted("no flow numbers are left"),
            NetError::System(error) => Self::System(owned(error)),
            NetError::Panicked(_) => Self::Internal("a thread of the network panicked"),
            NetError::ClosedLocally => Self::Internal("the connection was closed by nobody"),
            // The sources and sinks of this library fail with its own errors.
            NetError::Storage(error) => owned(error).downcast().unwrap_or_else(Self::System),
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

impl Error {
    /// Names the machine that an error of another one is from.
    pub(crate) fn on(self, host: &str) -> Self {
        match self {
            Self::Remote { kind, message } => Self::Elsewhere { host: host.to_owned(), kind, message },
            other => other,
        }
    }
}

fn is_staged(name: &OsStr) -> bool {
    is_staging_name(name.as_bytes())
}

/// What a peer gave as its reason.
pub(crate) fn reason_of_peer(reason: String) -> String {
    if reason.is_empty() { "nothing".to_owned() } else { reason }
}

const fn verb(role: Role) -> &'static str {
    match role {
        Role::Sends | Role::Streams => "send",
        Role::Receives => "receive",
        Role::Tunnels => "listen for tunnels",
    }
}

const fn goes_on(by_ticket: bool) -> &'static str {
    match by_ticket {
        true => {
            "the same files, sent into the same folder again, go on from there; with a new ticket where this one's maker has ended"
        }
        false => "the same command goes on from there",
    }
}

const fn noun(role: Role) -> &'static str {
    match role {
        Role::Sends | Role::Streams => "sender",
        Role::Receives => "receiver",
        Role::Tunnels => "other end",
    }
}

fn list(addresses: &[SocketAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
