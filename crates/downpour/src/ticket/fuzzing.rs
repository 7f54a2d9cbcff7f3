//! Fuzz target of tickets.

use std::time::{Duration, UNIX_EPOCH};

use data_encoding::BASE32_NOPAD;

use super::{MAX_ADDRESSES, PREFIX, Ticket, checksum, may_listen};

/// Reads `data` as the text of a ticket, then as the fields of one with a valid checksum. An accepted ticket has only
/// addresses of hosts and is the same when it is written and read again.
///
/// # Panics
/// If it differs.
pub fn fuzz_ticket(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        check(text);
    }
    let coded = BASE32_NOPAD.encode(&[data, &checksum(data)].concat());
    check(&format!("{PREFIX}{coded}"));
}

fn check(text: &str) {
    let Ok(ticket) = Ticket::parse(text) else { return };
    assert!(ticket.addresses.len() <= MAX_ADDRESSES);
    assert!(ticket.addresses.iter().all(|address| may_listen(*address)), "{ticket:?}");
    for (nth, address) in ticket.addresses.iter().enumerate() {
        assert!(!ticket.addresses[..nth].contains(address), "{address} twice");
    }
    let again = ticket.to_text().expect("as many addresses as were read");
    assert_eq!(Ticket::parse(&again).expect("what was written"), ticket);
    let spaced = again.to_ascii_uppercase().replace('A', "A \n");
    assert_eq!(Ticket::parse(&spaced).expect("white space and upper case are allowed"), ticket);
    assert_eq!(ticket.check_expiry(ticket.expires).ok(), Some(()));
    if let Some(later) = ticket.expires.checked_add(Duration::from_secs(1)) {
        assert!(ticket.check_expiry(later).is_err());
    }
    assert!(ticket.expires < UNIX_EPOCH || ticket.check_expiry(UNIX_EPOCH).is_ok());
}
