//! The line with which the other side answers a request.

use super::restriction::Restriction;
use crate::error::{CloseCode, Error, ErrorKind};
use crate::ticket::{Ticket, TicketError};

/// Beginning of the line in which the other side answers with its ticket.
pub(super) const ANSWER: &str = "DOWNPOUR1 ";

/// Prefix of the number of followed links in an answer.
const FOLLOWED: &str = "followed=";

/// Prefix of the number of items that the sources with wildcards stand for, in an answer.
const ITEMS: &str = "items=";

/// Prefix of the names of restrictions in an answer, separated by commas.
const ENFORCES: &str = "enforces=";

/// Kinds of failure by their numbers on the line that answers a request: the exit codes of the first release. A remote
/// side cannot be stopped by its own user, nor miss names, so those kinds are absent.
pub(super) const KINDS: [(u8, ErrorKind); 9] = [
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

/// The positive answer of the other side to a request.
#[derive(Debug)]
pub(super) struct Answer {
    /// Ticket to connect to it.
    pub(super) ticket: Ticket,
    /// Number of sources at the other side that are symbolic links and were followed.
    pub(super) links_followed: u64,
    /// Number of items at the other side, if the request has wildcards.
    pub(super) items: Option<u64>,
    /// The restrictions of the request that the other side enforces.
    pub(super) enforced: Vec<Restriction>,
}

impl Answer {
    /// Returns the line without [`ANSWER`]: the ticket, followed by words `KEY=VALUE`, which are only present if
    /// requested.
    pub(super) fn to_text(&self) -> Result<String, TicketError> {
        let mut text = self.ticket.to_text()?;
        if self.links_followed > 0 {
            text += &format!(" {FOLLOWED}{}", self.links_followed);
        }
        if let Some(items) = self.items {
            text += &format!(" {ITEMS}{items}");
        }
        if !self.enforced.is_empty() {
            let names: Vec<_> = self.enforced.iter().map(|restriction| restriction.name()).collect();
            text += &format!(" {ENFORCES}{}", names.join(","));
        }
        Ok(text)
    }
}

/// Parses a line that [`Answer::to_text`] wrote. Unknown words are ignored.
///
/// # Errors
/// The error that the other side reports, or a damaged ticket.
pub(super) fn parse_answer(line: &str) -> Result<Answer, Error> {
    match line.strip_prefix("ERROR ") {
        Some(rest) => {
            let (code, message) = rest.split_once(' ').unwrap_or(("1", rest));
            let message = crate::error::reason_of_peer(message.to_owned());
            Err(Error::Remote { kind: code.parse().map_or(ErrorKind::Other, kind_of), message })
        }
        None => {
            let mut words = line.split_whitespace();
            // The user knows of no ticket.
            let ticket = Ticket::parse(words.next().unwrap_or_default()).map_err(|_| {
                let message = "its downpour answers with what this one cannot read: update the older of the two";
                Error::Remote { kind: ErrorKind::Other, message: message.into() }
            })?;
            let (mut links_followed, mut items, mut enforced) = (0, None, Vec::new());
            for word in words {
                if let Some(count) = word.strip_prefix(FOLLOWED) {
                    links_followed = count.parse().unwrap_or_default();
                } else if let Some(count) = word.strip_prefix(ITEMS) {
                    items = count.parse().ok();
                } else if let Some(names) = word.strip_prefix(ENFORCES) {
                    enforced = names.split(',').filter_map(Restriction::from_name).collect();
                }
            }
            Ok(Answer { ticket, links_followed, items, enforced })
        }
    }
}

/// Formats an error for the answer line.
pub(super) fn answer_error(error: &Error) -> String {
    let message = match error.close_code() {
        CloseCode::Done => String::new(),
        _ => error.close_reason(),
    };
    format!("ERROR {} {}", number_of(error.kind()), message.replace(['\n', '\r'], " "))
}

/// Returns the number of a kind of failure; that of [`ErrorKind::Other`] if it is not among [`KINDS`].
pub(super) fn number_of(kind: ErrorKind) -> u8 {
    KINDS.into_iter().find(|(_, known)| *known == kind).map_or(1, |(number, _)| number)
}

/// Returns the kind of failure with this number.
pub(super) fn kind_of(number: u8) -> ErrorKind {
    KINDS.into_iter().find(|(known, _)| *known == number).map_or(ErrorKind::Other, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::super::restriction::Restriction;
    use super::*;

    #[test]
    fn only_kinds_of_a_failed_start_are_taken_over() {
        let kind = |code: &str| parse_answer(&format!("ERROR {code} whatever")).unwrap_err().kind();
        for (taken, known) in KINDS {
            assert_eq!(kind(&taken.to_string()), known);
        }
        assert_eq!(KINDS.map(|(number, _)| number), [1, 2, 3, 4, 5, 6, 7, 8, 75]);
        for forged in ["0", "+0", "9", "23", "24", "130", "255", "256", "-1", "x", ""] {
            assert_eq!(kind(forged), ErrorKind::Other, "{forged}");
        }
        assert_eq!(parse_answer("ERROR whatever").unwrap_err().kind(), ErrorKind::Other);
    }

    #[test]
    fn an_answer_may_have_words_behind_its_ticket() {
        let ticket = Ticket {
            key: [7; 32],
            expires: std::time::SystemTime::UNIX_EPOCH,
            addresses: Vec::new(),
            listener: crate::ticket::Role::Sends,
        };
        let answer =
            |links_followed, items| Answer { ticket: ticket.clone(), links_followed, items, enforced: Vec::new() };
        let text = |links_followed| answer(links_followed, None).to_text().unwrap();
        assert_eq!(text(0), ticket.to_text().unwrap(), "what older programs read");
        for (line, followed) in
            [(text(0), 0), (text(3), 3), (text(0) + " new=1 followed=2", 2), (text(0) + " followed=x", 0)]
        {
            let answer = parse_answer(&line).unwrap();
            assert_eq!((answer.ticket, answer.links_followed), (ticket.clone(), followed), "{line}");
        }
        for items in [None, Some(0), Some(1), Some(7)] {
            assert_eq!(parse_answer(&answer(0, items).to_text().unwrap()).unwrap().items, items);
        }
        assert!(parse_answer("followed=1").is_err());
        let line = text(2) + " enforces=safe-links,later,max-delete";
        let answer = parse_answer(&line).unwrap();
        assert_eq!(answer.enforced, [Restriction::SafeLinks, Restriction::MaxDelete]);
        assert_eq!(answer.to_text().unwrap(), text(2) + " enforces=safe-links,max-delete");
    }
}
