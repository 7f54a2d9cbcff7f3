//! The numbers of kinds of failures on the wire.

use crate::files::ErrorKind;

/// Number of the close frame of a peer that has completed everything.
pub(crate) const DONE: u32 = 0;

/// The code of close frames for kinds without a code of their own.
const OTHER: u32 = 0x108;

/// Codes of close frames (PROTOCOL.md section 8). The engine keeps those below 0x100 for itself.
const CLOSE_CODES: [(u32, ErrorKind); 13] = [
    (1, ErrorKind::Protocol),
    (2, ErrorKind::Undecodable),
    (3, ErrorKind::Exhausted),
    (0x100, ErrorKind::Declined),
    (0x101, ErrorKind::Exists),
    (0x102, ErrorKind::NoSpace),
    (0x103, ErrorKind::Permission),
    (0x104, ErrorKind::Integrity),
    (0x105, ErrorKind::Cancelled),
    (0x106, ErrorKind::WrongRole),
    (0x107, ErrorKind::Busy),
    (OTHER, ErrorKind::Other),
    (0x109, ErrorKind::Terminated),
];

/// Numbers in the error answer to a request: the exit codes of the first release. A remote host cannot be stopped by
/// its own user, nor miss names, so those are absent.
const ANSWERS: [(u8, ErrorKind); 9] = [
    (1, ErrorKind::Other),
    (2, ErrorKind::Usage),
    (3, ErrorKind::NotFound),
    (4, ErrorKind::Authentication),
    (5, ErrorKind::Unreachable),
    (6, ErrorKind::Integrity),
    (7, ErrorKind::Storage),
    (8, ErrorKind::Timeout),
    (75, ErrorKind::Terminated),
];

/// Returns the code with which a failure of this kind closes a connection.
pub(crate) fn close_code(kind: ErrorKind) -> u32 {
    let sent = match kind {
        ErrorKind::NotRequested => ErrorKind::Protocol,
        // The peer has lost its connection, and may try again.
        ErrorKind::Timeout => ErrorKind::Busy,
        other => other,
    };
    CLOSE_CODES.into_iter().find(|(_, known)| *known == sent).map_or(OTHER, |(code, _)| code)
}

/// Returns the kind that a close frame with this code means; an unknown code is [`ErrorKind::Other`].
pub(crate) fn kind_of_close(code: u32) -> ErrorKind {
    CLOSE_CODES.into_iter().find(|(known, _)| *known == code).map_or(ErrorKind::Other, |(_, kind)| kind)
}

/// Returns the number of a kind of failure in an answer.
pub(crate) fn answer_number(kind: ErrorKind) -> u8 {
    let sent = coarse(kind);
    ANSWERS.into_iter().find(|(_, known)| *known == sent).map_or(1, |(number, _)| number)
}

/// Returns the kind of failure with this number in an answer.
pub(crate) fn kind_of_answer(number: u8) -> ErrorKind {
    ANSWERS.into_iter().find(|(known, _)| *known == number).map_or(ErrorKind::Other, |(_, kind)| kind)
}

/// Returns the kind of the first release that includes a kind.
fn coarse(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::WrongRole => ErrorKind::Authentication,
        ErrorKind::Undecodable | ErrorKind::NotRequested => ErrorKind::Integrity,
        ErrorKind::NoSpace | ErrorKind::Permission => ErrorKind::Storage,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_first_release() {
        for (code, kind) in CLOSE_CODES {
            assert_eq!((close_code(kind), kind_of_close(code)), (code, kind));
        }
        assert_eq!(kind_of_close(0x10a), ErrorKind::Other);
        for (number, kind) in ANSWERS {
            assert_eq!((answer_number(kind), kind_of_answer(number)), (number, kind));
        }
        for forged in [0, 9, 23, 24, 130, 255] {
            assert_eq!(kind_of_answer(forged), ErrorKind::Other, "{forged}");
        }
        for (kind, number) in [
            (ErrorKind::WrongRole, 4),
            (ErrorKind::Undecodable, 6),
            (ErrorKind::NotRequested, 6),
            (ErrorKind::NoSpace, 7),
            (ErrorKind::Permission, 7),
            (ErrorKind::Cancelled, 1),
            (ErrorKind::Exists, 1),
        ] {
            assert_eq!(answer_number(kind), number, "{kind:?}");
        }
    }
}
