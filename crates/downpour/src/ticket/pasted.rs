//! Finds a ticket in a pasted text: wrapped, quoted, or surrounded by words.

use data_encoding::BASE32_NOPAD;

use super::{CHECKSUM, MAX_ADDRESSES, PREFIX, PROGRAM, TicketError};

/// Bytes before the addresses of a ticket: role, expiry, key, and the number of addresses.
const HEAD: usize = 1 + 8 + 32 + 1;

/// Returns the base32 of the last ticket in a text, in lower case. Characters that messengers and terminals insert are
/// dropped: white space and line breaks of all kinds, invisible marks, quotes, and `>` before a cited line. Words may
/// come before it.
///
/// # Errors
/// [`TicketError::Version`] if there is only one of another version, [`TicketError::NotATicket`] if there is none.
pub(super) fn find(text: &str) -> Result<String, TicketError> {
    let text: String = text.chars().filter(|c| !is_dropped(*c)).map(|c| c.to_ascii_lowercase()).collect();
    let Some(at) = text.rfind(PREFIX) else {
        let is_other = text.match_indices(PROGRAM).any(|(at, _)| is_version(&text[at..]));
        return Err(if is_other { TicketError::Version } else { TicketError::NotATicket });
    };
    let coded = text[at + PREFIX.len()..].chars();
    Ok(coded.take_while(|c| matches!(c, 'a'..='z' | '2'..='7')).collect())
}

/// Returns whether a text is the beginning of a ticket that continues in the next line, or only the quotes before one.
#[must_use]
pub fn is_incomplete(text: &str) -> bool {
    match find(text) {
        Ok(coded) => length(&coded).is_none_or(|bytes| coded.len() < (bytes * 8).div_ceil(5)),
        Err(_) => !text.trim().is_empty() && text.chars().all(is_dropped),
    }
}

/// Returns whether a text begins as a ticket of any version does, apart from white space.
pub(super) fn begins_as_ticket(text: &str) -> bool {
    let begin: String = text.chars().filter(|c| !c.is_whitespace()).take(PREFIX.len()).collect();
    is_version(&begin.to_ascii_lowercase())
}

fn is_version(text: &str) -> bool {
    text.strip_prefix(PROGRAM).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the number of bytes of a ticket with this beginning; `None` while it is unknown.
fn length(coded: &str) -> Option<usize> {
    // Whole groups of 8 characters, which are 5 bytes each.
    let whole = &coded[..coded.len() / 8 * 8];
    let bytes = BASE32_NOPAD.decode(whole.to_ascii_uppercase().as_bytes()).ok()?;
    let count = usize::from(*bytes.get(HEAD - 1)?).min(MAX_ADDRESSES);
    let mut length = HEAD;
    for _ in 0..count {
        length += match bytes.get(length)? {
            4 => 1 + 4 + 2,
            // A damaged ticket is not waited for.
            _ => 1 + 16 + 2,
        };
    }
    Some(length + CHECKSUM)
}

fn is_dropped(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(
            c,
            '"' | '\'' | '`' | '\u{b4}' | '<' | '>' | '\u{ab}' | '\u{bb}' | '\u{2018}'
                ..='\u{201f}' | '\u{2039}' | '\u{203a}'
        )
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::{Duration, UNIX_EPOCH};

    use super::super::{Role, Ticket};
    use super::*;

    fn ticket(addresses: &[&str]) -> Ticket {
        let addresses = addresses.iter().map(|text| text.parse::<SocketAddr>().unwrap()).collect();
        Ticket {
            key: [0xa7; 32],
            expires: UNIX_EPOCH + Duration::from_secs(2_000_000_000),
            addresses,
            listener: Role::Sender,
        }
    }

    #[test]
    fn pasted_ticket_found_in_any_form() {
        let ticket = ticket(&["192.0.2.1:4000", "[2001:db8::1]:4000"]);
        let text = ticket.to_text().unwrap();
        let (first, rest) = text.split_at(40);
        for pasted in [
            format!("{first}\n{rest}"),
            format!("{first}\r\n    {rest}\r\n"),
            format!("> {first}\n> {rest}"),
            format!("\"{text}\""),
            format!("'{text}'"),
            format!("`{text}`"),
            format!("```\n{text}\n```"),
            format!("\u{201c}{text}\u{201d}"),
            format!("\u{ab}\u{a0}{text}\u{a0}\u{bb}"),
            format!("\u{feff}{text}"),
            format!("{first}\u{200b}{rest}\u{2028}"),
            format!("Ticket: {text}"),
            format!("downpour recv {text}"),
            format!("$ downpour recv '{text}' --into x"),
            format!("export DOWNPOUR_TICKET={text};"),
            format!("{text}\n{text}"),
            format!("({text})."),
        ] {
            assert_eq!(Ticket::parse(&pasted).unwrap(), ticket, "{pasted}");
        }
        for (other, is_version) in [("downpour recv", false), ("downpour 2abc", true), ("the ticket", false)] {
            let error = Ticket::parse(other).unwrap_err();
            assert_eq!(matches!(error, TicketError::Version), is_version, "{other}: {error}");
            assert!(is_version || matches!(error, TicketError::NotATicket), "{other}: {error}");
        }
    }

    #[test]
    fn pasted_ticket_continues_until_complete() {
        for addresses in
            [&[][..], &["192.0.2.1:4000"], &["192.0.2.1:4000", "[2001:db8::1]:4000"], &["[2001:db8::1]:1"; 16]]
        {
            let text = ticket(addresses).to_text().unwrap();
            for at in PREFIX.len()..text.len() {
                assert!(is_incomplete(&text[..at]), "{at} of {}", text.len());
                assert!(is_incomplete(&format!("`{}", &text[..at])));
            }
            assert!(
                !is_incomplete(&text) && !is_incomplete(&format!("{text}`")) && !is_incomplete(&format!("{text}a"))
            );
        }
        assert!(
            is_incomplete("```")
                && !is_incomplete("")
                && !is_incomplete(" ")
                && !is_incomplete("y")
                && !is_incomplete("downpour2")
        );
    }

    #[test]
    fn ticket_save_keeps_note_about_tickets() {
        let text = ticket(&[]).to_text().unwrap();
        assert!(begins_as_ticket(&text) && begins_as_ticket(" downpour2x") && begins_as_ticket("DOWN\npour1"));
        for other in [format!("ticket: {text}"), format!("`{text}`"), "downpour".to_owned(), String::new()] {
            assert!(!begins_as_ticket(&other), "{other}");
        }
    }
}
