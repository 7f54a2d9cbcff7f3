//! The line with which the remote host answers a request.

use crate::error::{Context, Error, RequiredFeature, read_answer};
use crate::ticket::{Ticket, TicketError};

/// Prefix of the answer line that has a ticket.
pub(super) const ANSWER: &str = "DOWNPOUR1 ";

/// Prefix of the number of followed links in an answer.
const FOLLOWED: &str = "followed=";

/// Prefix of the number of items that match the sources with wildcards, in an answer.
const ITEMS: &str = "items=";

/// Prefix of the names of restrictions in an answer, separated by commas.
const ENFORCES: &str = "enforces=";

/// Prefix of the line before an error answer: the same error with its values, as JSON. Earlier releases take it for a
/// greeting of the login.
pub(super) const CAUSE: &str = "DOWNPOUR1-CAUSE ";

/// The positive answer of the remote host to a request.
#[derive(Debug)]
pub(super) struct RemoteAnswer {
    /// Ticket to connect to it.
    pub(super) ticket: Ticket,
    /// Number of remote sources that are symbolic links and were followed.
    pub(super) links_followed: u64,
    /// Number of remote items, if the request has wildcards.
    pub(super) items: Option<u64>,
    /// The restrictions of the request that the remote host enforces.
    pub(super) enforced: Vec<RequiredFeature>,
}

impl RemoteAnswer {
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
            let names: Vec<_> = self.enforced.iter().map(|feature| feature.name()).collect();
            text += &format!(" {ENFORCES}{}", names.join(","));
        }
        Ok(text)
    }
}

/// Parses a line that [`RemoteAnswer::to_text`] wrote. Unknown words are ignored.
///
/// # Errors
/// The error that the remote host reports, or a damaged ticket.
pub(super) fn parse_answer(line: &str) -> Result<RemoteAnswer, Error> {
    match line.strip_prefix("ERROR ") {
        Some(rest) => Err(read_answer(rest)),
        None => {
            let mut words = line.split_whitespace();
            // The user has no ticket.
            let ticket = Ticket::parse(words.next().unwrap_or_default())
                .map_err(|_| Error::VersionMismatch.within(Context::Host(None)))?;
            let (mut links_followed, mut items, mut enforced) = (0, None, Vec::new());
            for word in words {
                if let Some(count) = word.strip_prefix(FOLLOWED) {
                    links_followed = count.parse().unwrap_or_default();
                } else if let Some(count) = word.strip_prefix(ITEMS) {
                    items = count.parse().ok();
                } else if let Some(names) = word.strip_prefix(ENFORCES) {
                    enforced = names.split(',').filter_map(RequiredFeature::from_name).collect();
                }
            }
            Ok(RemoteAnswer { ticket, links_followed, items, enforced })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ErrorKind, RequiredFeature};

    #[test]
    fn answer_forged_kind_is_other() {
        let kind = |code: &str| parse_answer(&format!("ERROR {code} whatever")).unwrap_err().kind();
        for (number, taken) in [(2, ErrorKind::Usage), (7, ErrorKind::Storage), (75, ErrorKind::Terminated)] {
            assert_eq!(kind(&format!("{number}")), taken);
        }
        for forged in ["0", "+0", "9", "23", "24", "130", "255", "256", "-1", "x", ""] {
            assert_eq!(kind(forged), ErrorKind::Other, "{forged}");
        }
        assert_eq!(parse_answer("ERROR whatever").unwrap_err().kind(), ErrorKind::Other);
    }

    #[test]
    fn answer_words_after_ticket_parsed() {
        let ticket = Ticket {
            key: [7; 32],
            expires: std::time::SystemTime::UNIX_EPOCH,
            addresses: Vec::new(),
            listener: crate::ticket::Role::Sender,
        };
        let answer = |links_followed, items| RemoteAnswer {
            ticket: ticket.clone(),
            links_followed,
            items,
            enforced: Vec::new(),
        };
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
        assert_eq!(answer.enforced, [RequiredFeature::SafeLinks, RequiredFeature::MaxDelete]);
        assert_eq!(answer.to_text().unwrap(), text(2) + " enforces=safe-links,max-delete");
    }
}
