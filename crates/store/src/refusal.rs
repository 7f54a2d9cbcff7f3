//! Errors that concern a single name, which is then reported while the transfer continues.

use std::io;

use rustix::io::Errno;

use crate::messages::NoticeKind;
use crate::sandbox::errno;

/// Inside an [`io::Error`]: a file to be replaced or deleted cannot be backed up.
#[derive(Debug, thiserror::Error)]
#[error("its backup cannot be created")]
pub(crate) struct NoBackup;

/// Maps an error for a single name to a notice; `None` if it concerns more than that name.
pub(crate) fn refusal_of(error: &io::Error) -> Option<NoticeKind> {
    if error.get_ref().is_some_and(|inner| inner.is::<NoBackup>()) {
        return Some(NoticeKind::NoBackup);
    }
    refusal(errno(error))
}

/// The same for an error of the system.
pub(crate) fn refusal(error: Errno) -> Option<NoticeKind> {
    match error {
        Errno::NOSPC
        | Errno::DQUOT
        | Errno::FBIG
        | Errno::ROFS
        | Errno::IO
        | Errno::MFILE
        | Errno::NFILE
        | Errno::NOMEM => None,
        Errno::ACCESS | Errno::PERM => Some(NoticeKind::Permission),
        Errno::NAMETOOLONG => Some(NoticeKind::NameTooLong),
        Errno::INVAL | Errno::ILSEQ => Some(NoticeKind::BadCharacters),
        Errno::ISDIR | Errno::NOTEMPTY => Some(NoticeKind::DirectoryNotEmpty),
        Errno::MLINK => Some(NoticeKind::TooManyLinks),
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Some(NoticeKind::NoDirectory),
        Errno::BUSY | Errno::TXTBSY => Some(NoticeKind::Busy),
        Errno::STALE => Some(NoticeKind::Exchanged),
        _ => Some(NoticeKind::Other),
    }
}
