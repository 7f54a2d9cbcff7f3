//! Advice on failures, in one table: the library reports what happened, and this program knows its own options and
//! commands. Advice is for the local user, who does not decide for the user at the other end of a ticket.

use downpour::files::{FailReason, FilesError, NotAllowed, NoticeKind, SkipReason, is_staging_name};
use downpour::streams::StreamError;
use downpour::{Context, CopyError, Error, ErrorKind, KeyRefusal, RequiredFeature, Role, TicketError};

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Returns advice on a failure; `None` if its text suffices.
pub(crate) fn on_error(error: &Error) -> Option<String> {
    // The outermost of these decides: local partial data helps whichever side failed.
    for context in error.contexts() {
        match context {
            Context::Peer { by_ticket: true, .. } => return on_ticket_peer(error.cause()).map(str::to_owned),
            Context::Kept { by_ticket, .. } => return Some(on_kept(error.cause(), *by_ticket).to_owned()),
            _ => {}
        }
    }
    let is_local = !error.contexts().any(Context::is_remote);
    on_cause(error.cause(), is_local)
}

/// Returns advice on an error from the other end of a ticket, whose user chooses its options.
const fn on_ticket_peer(cause: &Error) -> Option<&'static str> {
    match cause {
        Error::Stalled(_) => Some("try again"),
        Error::Files(FilesError::TargetExists { .. }) => {
            Some("the receiver can use --existing replace or --existing skip")
        }
        _ => None,
    }
}

fn on_kept(cause: &Error, by_ticket: bool) -> &'static str {
    match cause {
        Error::Files(FilesError::TooLarge { .. }) => {
            "raise the limit or choose another destination and run the command again, or delete it with `downpour clean`"
        }
        Error::Files(FilesError::NotPermitted { .. }) => "nothing more was accepted",
        Error::Files(FilesError::TargetExists { .. }) => "use --existing replace or --existing skip",
        cause if cause.kind() == ErrorKind::NoSpace => {
            "free disk space and run the command again, or delete it with `downpour clean`"
        }
        _ if by_ticket => {
            "send the same files to the same directory to resume, with a new ticket if the listener has exited"
        }
        _ => "run the same command to resume",
    }
}

fn on_cause(cause: &Error, is_local: bool) -> Option<String> {
    Some(match cause {
        Error::Files(error) => return on_files(error, is_local),
        Error::Ticket(error) => return on_ticket(error),
        Error::KeyRestricted(refusal) => return on_limited(refusal),
        Error::Copy(error) => return on_copy(error),
        Error::Stream(error) => return on_stream(error).map(str::to_owned),
        Error::Older(lacking) => on_older(*lacking).to_owned(),
        Error::TicketExpired(_) => "create a new ticket".to_owned(),
        Error::Unreachable { by_ticket: true, .. } => {
            "check that the peer is running, UDP is not blocked, and the ticket is current".to_owned()
        }
        Error::Unreachable { by_ticket: false, .. } => {
            "check that no firewall blocks UDP (see --port), or omit --via udp".to_owned()
        }
        Error::VersionMismatch => "update the older program".to_owned(),
        Error::UnknownFields(_) => "update it".to_owned(),
        Error::Stalled(_) if !is_local => "try again".to_owned(),
        Error::Undecodable => "retry, or use --set feedback.blocks=done or --set schedule.mend=on".to_owned(),
        Error::Exhausted(_) => "run the command again to resume".to_owned(),
        Error::ConnectionLimit => "start it again".to_owned(),
        Error::NotInstalled { host, program } if program == "downpour" => {
            format!("install it with `downpour bootstrap {host}`")
        }
        Error::NoFittingProgram { .. } => "use --from FILE (`cargo xtask dist` builds static binaries)".to_owned(),
        Error::NoDownpour { program, .. } => {
            format!("check --remote-bin, and whether the login runs another command instead of {program}")
        }
        Error::NothingStarts { wanted, .. } => format!("use --ssh 'ssh -o {wanted}'"),
        _ => return None,
    })
}

fn on_files(error: &FilesError, is_local: bool) -> Option<String> {
    let advice = match error {
        FilesError::TargetExists { .. } => "use --existing replace or --existing skip",
        FilesError::NotPermitted { reason, .. } if is_local => match reason {
            NotAllowed::Entries | NotAllowed::Bytes => "nothing more was accepted",
            NotAllowed::Chosen => "name the destination, or use --trust-sender",
            NotAllowed::Item | NotAllowed::Filtered | NotAllowed::Unlisted => {
                "not written (--trust-sender accepts names that were not requested)"
            }
        },
        FilesError::NotRecursive { .. } => "use -r",
        FilesError::SourceEmpty { .. } => "use --force-empty to allow it",
        FilesError::ParentAbsent { .. } => "create it first; cp and sync do so with --mkpath",
        FilesError::TargetSpecial { .. } => "name a file or directory",
        FilesError::IsOutput { kind, .. } => return Some(format!("choose another file for {kind}")),
        FilesError::OutOfInodes { .. } => "delete some files",
        // Partial data fills the disk, so that not even a staging directory can be opened.
        FilesError::DiskFull { path } if is_staged(path) => {
            "free disk space, or delete partial data of earlier transfers with `downpour clean`"
        }
        FilesError::DiskFull { .. } | FilesError::Quota { .. } => "free disk space and run the command again",
        _ => return None,
    };
    Some(advice.to_owned())
}

fn is_staged(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_staging_name(name.as_bytes()))
}

fn on_ticket(error: &TicketError) -> Option<String> {
    Some(match error {
        TicketError::Damaged => "copy all of it again".to_owned(),
        TicketError::Address(_) => "do not use it".to_owned(),
        TicketError::OtherUse(maker) => format!("use it with `{}`", command(*maker)),
        TicketError::Expired(_) => "request a new one; if it is new, the clock of one host is wrong".to_owned(),
        TicketError::NotReplaced { .. } => "choose another file".to_owned(),
        TicketError::Foreign { .. } => "if you trust it, make your own copy".to_owned(),
        TicketError::Writable { path } => format!("if you trust it, run `chmod go-w {}`", path.display()),
        TicketError::NotATicket
        | TicketError::Version
        | TicketError::TooManyAddresses(_)
        | TicketError::File { .. }
        | TicketError::Random(_) => return None,
    })
}

/// Returns the command for the ticket of a listener with this role.
const fn command(maker: Role) -> &'static str {
    match maker {
        Role::Sender | Role::Streams => "downpour recv",
        Role::Receiver => "downpour send --to",
        Role::Tunnel => "downpour tunnel -L",
    }
}

fn on_limited(refusal: &KeyRefusal) -> Option<String> {
    Some(match refusal {
        KeyRefusal::OtherHome(path) => format!("write ./{} for a file of that name", path.display()),
        KeyRefusal::NoFollowing => "omit --links follow".to_owned(),
        KeyRefusal::NoLinking => "omit --link-dest".to_owned(),
        KeyRefusal::NoPath => "omit --mkpath".to_owned(),
        KeyRefusal::NoRemoving => "omit --remove-source-files".to_owned(),
        KeyRefusal::NoRemovingBehindLinks => "name the file itself".to_owned(),
        KeyRefusal::NoAttributes => "omit -a and the options for attributes".to_owned(),
        KeyRefusal::TooLarge(_) => FEWER_ITEMS.to_owned(),
        _ => return None,
    })
}

const FEWER_ITEMS: &str = "name fewer items, or send directories instead of lists";

fn on_copy(error: &CopyError) -> Option<String> {
    Some(match error {
        CopyError::SeveralMachines => "copy from one host after the other".to_owned(),
        CopyError::ParentOfMatches { .. } => "name the directory itself".to_owned(),
        CopyError::OutputOfRelay { from, to, .. } => format!("run the command on {from} or {to}"),
        CopyError::NoDirectPath { .. } => "omit --via udp".to_owned(),
        CopyError::NoForwarding(_) => "update it".to_owned(),
        CopyError::TooLarge(_) => FEWER_ITEMS.to_owned(),
        _ => return None,
    })
}

const fn on_stream(error: &StreamError) -> Option<&'static str> {
    match error {
        StreamError::Reserved(_) => Some("the sender must choose another one with --name"),
        StreamError::BrokenOff(_) | StreamError::Damaged => Some("send it again"),
        StreamError::Input(_)
        | StreamError::Output(_)
        | StreamError::Target { .. }
        | StreamError::Exists(_)
        | StreamError::TooLong(_) => None,
    }
}

const fn on_older(lacking: RequiredFeature) -> &'static str {
    match lacking {
        RequiredFeature::EmptySource => "update it, or use --force-empty",
        RequiredFeature::MaxDelete => "update it, or omit --max-delete",
        RequiredFeature::SafeLinks => "update it, or omit --safe-links",
        RequiredFeature::OneFileSystem => "update it, or omit -x",
        RequiredFeature::Permitted => "update it",
        RequiredFeature::RemoveSources => "update it, or omit --remove-source-files",
        RequiredFeature::Homes => "update it, or write the whole path",
        RequiredFeature::AllFields => "update it, or omit the options that it lacks",
        RequiredFeature::Backup => "update it, or omit -b and --backup-dir",
        RequiredFeature::Preserve => "update it, or omit -a and the options for attributes",
    }
}

/// Returns advice on a name that was not transferred.
pub(crate) const fn on_name(reason: FailReason) -> Option<&'static str> {
    match reason {
        FailReason::Skipped(SkipReason::Unsized) => Some("copy it to a regular file first"),
        FailReason::Skipped(SkipReason::Contents) => Some("use -r"),
        FailReason::Refused(kind) => on_notice(kind),
        FailReason::Skipped(_) | FailReason::Voided(_) => None,
    }
}

/// Returns advice on a notice of the receiver.
pub(crate) const fn on_notice(kind: NoticeKind) -> Option<&'static str> {
    match kind {
        NoticeKind::Reserved => Some("rename it, or use --exclude"),
        NoticeKind::EmptySource => Some("use --force-empty to delete anyway"),
        NoticeKind::DeleteLimit => Some("see --max-delete"),
        NoticeKind::NameCollision => Some("rename one"),
        NoticeKind::StaleStaging => {
            Some("run the interrupted command again to resume, or delete it with `downpour clean`")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_depends_on_the_side_with_partial_data() {
        let within = |context, source: Error| Error::Within { context, source: Box::new(source) };
        let peer = |by_ticket, source| within(Context::Peer { role: Role::Sender, by_ticket }, source);
        let kept = |source| within(Context::Kept { staging: "/s".into(), by_ticket: true }, source);
        let full = || Error::Files(FilesError::DiskFull { path: "/a".into() });
        let permitted = || FilesError::NotPermitted { name: b"n".to_vec(), reason: NotAllowed::Bytes }.into();
        for (error, advice) in [
            (kept(peer(true, Error::Cancelled)), Some("with a new ticket")),
            (kept(full()), Some("free disk space")),
            (kept(permitted()), Some("nothing more was accepted")),
            (peer(true, kept(full())), None),
            (peer(true, Error::Cancelled), None),
            (peer(false, kept(full())), Some("free disk space")),
            (FilesError::NotRecursive { path: "d".into() }.into(), Some("use -r")),
        ] {
            let found = on_error(&error);
            let fits = found.as_deref().zip(advice).map_or(found.is_none() && advice.is_none(), |(a, b)| a.contains(b));
            assert!(fits, "{error}: {found:?}");
        }
    }
}
