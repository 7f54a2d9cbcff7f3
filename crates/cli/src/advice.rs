//! What a user can do about a failure, in one table: the library says what happened, and this program knows its own
//! options and commands. Advice is for this side's user, who does not decide for the user of another program that a
//! ticket leads to.

use downpour::files::{FailReason, FilesError, NotAllowed, NoticeKind, SkipReason, is_staging_name};
use downpour::remote::{CopyError, Limited, Restriction};
use downpour::streams::StreamError;
use downpour::{Context, Error, ErrorKind, Role, TicketError};

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Returns what can be done about a failure; `None` if its text says all.
pub(crate) fn on_error(error: &Error) -> Option<String> {
    // The outermost of these decides: what is kept here helps whoever has failed.
    for context in error.contexts() {
        match context {
            Context::Peer { by_ticket: true, .. } => return on_guest(error.cause()).map(str::to_owned),
            Context::Kept { by_ticket, .. } => return Some(on_kept(error.cause(), *by_ticket).to_owned()),
            _ => {}
        }
    }
    let is_here = !error.contexts().any(Context::is_elsewhere);
    on_cause(error.cause(), is_here)
}

/// Advice on what the other end of a ticket says, whose options are its user's.
const fn on_guest(cause: &Error) -> Option<&'static str> {
    match cause {
        Error::Stalled(_) => Some("try again"),
        Error::Files(FilesError::TargetExists { .. }) => {
            Some("the receiver decides: there, --existing replace or --existing skip goes on")
        }
        _ => None,
    }
}

fn on_kept(cause: &Error, by_ticket: bool) -> &'static str {
    match cause {
        Error::Files(FilesError::TooLarge { .. }) => {
            "raise that limit, or name a target elsewhere, and repeat the command, or remove it with `downpour clean`"
        }
        Error::Files(FilesError::NotPermitted { .. }) => "nothing more was accepted",
        Error::Files(FilesError::TargetExists { .. }) => "--existing replace or --existing skip goes on",
        cause if cause.kind() == ErrorKind::NoSpace => {
            "make room there and repeat the command, or remove it with `downpour clean`"
        }
        _ if by_ticket => {
            "the same files, sent into the same directory again, go on from there; with a new ticket where this one's maker has ended"
        }
        _ => "the same command goes on from there",
    }
}

fn on_cause(cause: &Error, is_here: bool) -> Option<String> {
    Some(match cause {
        Error::Files(error) => return on_files(error, is_here),
        Error::Ticket(error) => return on_ticket(error),
        Error::KeyRestricted(refusal) => return on_limited(refusal),
        Error::Copy(error) => return on_copy(error),
        Error::Stream(error) => return on_stream(error).map(str::to_owned),
        Error::Older(lacking) => on_older(*lacking).to_owned(),
        Error::TicketExpired(_) => "make a new one".to_owned(),
        Error::Unreachable { by_ticket: true, .. } => {
            "check that the other side still runs, that a firewall lets UDP through, and that the ticket is the latest"
                .to_owned()
        }
        Error::Unreachable { by_ticket: false, .. } => {
            "check that a firewall lets UDP through (see --port), or leave --via udp out".to_owned()
        }
        Error::VersionMismatch => "update the older program".to_owned(),
        Error::UnknownFields(_) => "update it".to_owned(),
        Error::Stalled(_) if !is_here => "try again".to_owned(),
        Error::Undecodable => "another try may do, or --set feedback.blocks=done, or --set schedule.mend=on".to_owned(),
        Error::Exhausted(_) => "start the transfer again, which goes on from there".to_owned(),
        Error::ConnectionLimit => "open it again".to_owned(),
        Error::NotInstalled { host, program } if program == "downpour" => {
            format!("`downpour bootstrap {host}` copies this one there")
        }
        Error::NoFittingProgram { .. } => {
            "name one for it with --from (`cargo xtask dist` makes static programs)".to_owned()
        }
        Error::NoDownpour { program, .. } => {
            format!("check --remote-bin, and whether the login runs something else in place of {program}")
        }
        Error::NothingStarts { wanted, .. } => format!("write --ssh 'ssh -o {wanted}'"),
        _ => return None,
    })
}

fn on_files(error: &FilesError, is_here: bool) -> Option<String> {
    let advice = match error {
        FilesError::TargetExists { .. } => "--existing replace or --existing skip goes on",
        FilesError::NotPermitted { reason, .. } if is_here => match reason {
            NotAllowed::Entries | NotAllowed::Bytes => "nothing more was accepted",
            NotAllowed::Chosen => "name the target, or accept it with --trust-sender",
            NotAllowed::Item | NotAllowed::Filtered | NotAllowed::Unlisted => {
                "it was not written (--trust-sender accepts names that were not requested)"
            }
        },
        FilesError::NotRecursive { .. } => "use -r",
        FilesError::SourceEmpty { .. } => "if that is intended, use --force-empty",
        FilesError::ParentAbsent { .. } => "make it first, as cp and sync do with --mkpath",
        FilesError::TargetSpecial { .. } => "name a file or directory",
        FilesError::IsOutput { kind, .. } => return Some(format!("name another file for {kind}")),
        FilesError::OutOfInodes { .. } => "remove some files there",
        // Its own leftovers fill the disk, where not even a staging directory can be opened any more.
        FilesError::DiskFull { path } if is_staged(path) => {
            "make room there, or remove with `downpour clean` what earlier transfers have left"
        }
        FilesError::DiskFull { .. } | FilesError::Quota { .. } => "make room there and repeat the command",
        _ => return None,
    };
    Some(advice.to_owned())
}

fn is_staged(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_staging_name(name.as_bytes()))
}

fn on_ticket(error: &TicketError) -> Option<String> {
    Some(match error {
        TicketError::Damaged => "copy it again, whole".to_owned(),
        TicketError::Address(_) => "do not use it".to_owned(),
        TicketError::OtherUse(maker) => format!("use it with `{}`", command(*maker)),
        TicketError::Expired(_) => "ask for a new one; if it is new, one machine's clock is wrong".to_owned(),
        TicketError::NotReplaced { .. } => "name another file for the ticket".to_owned(),
        TicketError::Foreign { .. } => "make a copy of your own if you trust it".to_owned(),
        TicketError::Writable { path } => format!("run `chmod go-w {}` if the ticket is the right one", path.display()),
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

fn on_limited(refusal: &Limited) -> Option<String> {
    Some(match refusal {
        Limited::OtherHome(path) => format!("write ./{} for a file of that name", path.display()),
        Limited::NoFollowing => "leave out --links follow".to_owned(),
        Limited::NoLinking => "leave out --link-dest".to_owned(),
        Limited::NoPath => "leave out --mkpath".to_owned(),
        Limited::NoRemoving => "leave out --remove-source-files".to_owned(),
        Limited::NoRemovingBehindLinks => "name the file itself".to_owned(),
        Limited::NoAttributes => "leave out -a and the options for those".to_owned(),
        Limited::TooLarge(_) => FEWER_ITEMS.to_owned(),
        _ => return None,
    })
}

const FEWER_ITEMS: &str = "name fewer items, or send directories instead of lists";

fn on_copy(error: &CopyError) -> Option<String> {
    Some(match error {
        CopyError::SeveralMachines => "copy from one after the other".to_owned(),
        CopyError::ParentOfMatches { .. } => "name that directory itself".to_owned(),
        CopyError::OutputElsewhere { from, to, .. } => format!("run the command on {from} or {to}"),
        CopyError::NoDirectPath { .. } => "leave --via out".to_owned(),
        CopyError::NoForwarding(_) => "update it".to_owned(),
        CopyError::TooLarge(_) => FEWER_ITEMS.to_owned(),
        _ => return None,
    })
}

const fn on_stream(error: &StreamError) -> Option<&'static str> {
    match error {
        StreamError::Reserved(_) => Some("have it sent under another one (--name)"),
        StreamError::BrokenOff(_) | StreamError::Damaged => Some("send it again"),
        StreamError::Input(_)
        | StreamError::Output(_)
        | StreamError::Target { .. }
        | StreamError::Exists(_)
        | StreamError::TooLong(_) => None,
    }
}

const fn on_older(lacking: Restriction) -> &'static str {
    match lacking {
        Restriction::EmptySource => "update it, or accept that with --force-empty",
        Restriction::MaxDelete => "update it, or leave --max-delete out",
        Restriction::SafeLinks => "update it, or leave --safe-links out",
        Restriction::OneFileSystem => "update it, or leave -x out",
        Restriction::Permitted => "update it",
        Restriction::RemoveSources => "update it, or leave --remove-source-files out",
        Restriction::Homes => "update it, or write the whole path",
        Restriction::Later => "update it, or leave those out that it lacks",
        Restriction::Backup => "update it, or leave -b and --backup-dir out",
        Restriction::Preserve => "update it, or leave -a and the options for those out",
    }
}

/// Returns what can be done about a name that was not transferred.
pub(crate) const fn on_name(reason: FailReason) -> Option<&'static str> {
    match reason {
        FailReason::Skipped(SkipReason::Unsized) => Some("write it to a file first"),
        FailReason::Skipped(SkipReason::Contents) => Some("use -r"),
        FailReason::Refused(kind) => on_notice(kind),
        FailReason::Skipped(_) | FailReason::Voided(_) => None,
    }
}

/// Returns what can be done about what happens to a name at the receiver.
pub(crate) const fn on_notice(kind: NoticeKind) -> Option<&'static str> {
    match kind {
        NoticeKind::Reserved => Some("remove it at the source, or leave it out with --exclude"),
        NoticeKind::EmptySource => Some("if that is intended, use --force-empty"),
        NoticeKind::DeleteLimit => Some("see --max-delete"),
        NoticeKind::NameCollision => Some("rename one of them"),
        NoticeKind::StaleStaging => Some("run again what was interrupted, or remove it with `downpour clean`"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_here_helps_and_what_a_guest_has_is_its_own() {
        let within = |context, source: Error| Error::Within { context, source: Box::new(source) };
        let peer = |by_ticket, source| within(Context::Peer { role: Role::Sender, by_ticket }, source);
        let kept = |source| within(Context::Kept { staging: "/s".into(), by_ticket: true }, source);
        let full = || Error::Files(FilesError::DiskFull { path: "/a".into() });
        let permitted = || FilesError::NotPermitted { name: b"n".to_vec(), reason: NotAllowed::Bytes }.into();
        for (error, advice) in [
            (kept(peer(true, Error::Cancelled)), Some("with a new ticket")),
            (kept(full()), Some("make room there")),
            (kept(permitted()), Some("nothing more was accepted")),
            (peer(true, kept(full())), None),
            (peer(true, Error::Cancelled), None),
            (peer(false, kept(full())), Some("make room there")),
            (FilesError::NotRecursive { path: "d".into() }.into(), Some("use -r")),
        ] {
            let found = on_error(&error);
            let fits = found.as_deref().zip(advice).map_or(found.is_none() && advice.is_none(), |(a, b)| a.contains(b));
            assert!(fits, "{error}: {found:?}");
        }
    }
}
