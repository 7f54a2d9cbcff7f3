//! Tickets: round trip, damage, expiry, secrecy.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use downpour::ticket::{MAX_ADDRESSES, Role, Ticket, TicketError, fresh_key};
use tempfile::tempdir;

fn ticket(addresses: usize) -> Ticket {
    let addresses = (0..addresses).map(|n| match n % 2 {
        0 => SocketAddr::from(([192, 0, 2, n as u8], 4000 + n as u16)),
        _ => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, n as u16], 4000)),
    });
    let expires = UNIX_EPOCH + Duration::from_secs(2_000_000_000);
    Ticket { key: [0x5a; 32], expires, addresses: addresses.collect(), listener: Role::Sender }
}

#[test]
fn ticket_text_round_trip() {
    for count in 0..=MAX_ADDRESSES {
        for listener in [Role::Sender, Role::Receiver] {
            let ticket = Ticket { listener, ..ticket(count) };
            assert_eq!(Ticket::parse(&ticket.to_text().unwrap()).unwrap(), ticket);
        }
    }
    assert!(matches!(ticket(17).to_text(), Err(TicketError::TooManyAddresses(17))));
}

#[test]
fn the_text_is_fixed() {
    let text = ticket(1).to_text().unwrap();
    assert!(text.starts_with("downpour1aeaaaaaao42zia"), "{text}");
    assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
    assert_eq!(text.len(), 9 + (53_usize * 8).div_ceil(5));
}

#[test]
fn ticket_white_space_and_case_ignored() {
    let ticket = ticket(3);
    let text = ticket.to_text().unwrap();
    let wrapped: Vec<String> = text.as_bytes().chunks(20).map(|c| String::from_utf8_lossy(c).into_owned()).collect();
    assert_eq!(Ticket::parse(&format!("  {} \r\n\n", wrapped.join(" \r\n\t"))).unwrap(), ticket);
    assert_eq!(Ticket::parse(&text.to_uppercase()).unwrap(), ticket);
}

#[test]
fn every_typo_is_noticed() {
    let text = ticket(2).to_text().unwrap();
    for at in 9..text.len() {
        for typo in ['a', '7', '0', '!', '\u{fc}'] {
            let mut chars: Vec<char> = text.chars().collect();
            if std::mem::replace(&mut chars[at], typo) == typo {
                continue;
            }
            let typed: String = chars.iter().collect();
            assert!(matches!(Ticket::parse(&typed), Err(TicketError::Damaged)), "{typed}");
        }
        let missing: String = text.chars().enumerate().filter(|(n, _)| *n != at).map(|(_, c)| c).collect();
        assert!(matches!(Ticket::parse(&missing), Err(TicketError::Damaged)), "{missing}");
        assert!(matches!(Ticket::parse(&text[..at]), Err(TicketError::Damaged)), "cut at {at}");
    }
    assert!(matches!(Ticket::parse(&(text.clone() + "aaaaaaaa")), Err(TicketError::Damaged)));
    assert!(matches!(Ticket::parse(""), Err(TicketError::NotATicket)));
    assert!(matches!(Ticket::parse(&"x".repeat(1 << 20)), Err(TicketError::NotATicket)));
    assert!(matches!(Ticket::parse(&text.replace("downpour1", "downpour2")), Err(TicketError::Version)));
}

#[test]
fn ticket_expired_reported() {
    let ticket = ticket(1);
    ticket.check_expiry(ticket.expires).unwrap();
    ticket.check_expiry(ticket.expires - Duration::from_secs(1)).unwrap();
    let error = ticket.check_expiry(ticket.expires + Duration::from_secs(7300)).unwrap_err();
    assert_eq!(error.to_string(), "ticket expired 2 hours ago");
}

#[test]
fn the_key_is_not_printed() {
    let debug = format!("{:?}", ticket(1));
    assert!(!debug.contains("90") && !debug.contains("5a"), "{debug}");
    assert!(debug.contains("192.0.2.0:4000"));
}

#[test]
fn files_are_private_and_never_written_through() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("ticket");
    let victim = dir.path().join("victim");
    fs::write(&victim, b"precious").unwrap();
    symlink(&victim, &path).unwrap();
    let ticket = ticket(2);
    ticket.save(&path).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let metadata = path.symlink_metadata().unwrap();
    assert!(metadata.is_file());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(Ticket::load(&path).unwrap(), ticket);
    // The target of /dev/stdout belongs to the system.
    assert!(matches!(ticket.save(Path::new("/proc/self/fd/1")), Err(TicketError::NotReplaced { .. })));
    Ticket { listener: Role::Receiver, ..ticket }.save(&path).unwrap();
    assert_eq!(Ticket::load(&path).unwrap().listener, Role::Receiver);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left beside it");
    assert!(matches!(Ticket::load(&dir.path().join("none")), Err(TicketError::File { .. })));
    fs::write(&path, [0xff; 100]).unwrap();
    assert!(matches!(Ticket::load(&path), Err(TicketError::NotATicket)));
}

#[test]
fn only_tickets_and_empty_files_are_replaced() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("file");
    let long = format!("{} ", "x".repeat(20_000));
    for other in [&b"precious"[..], b" ", &[0xff; 10], b"x\ndownpour1aaaa", long.as_bytes()] {
        fs::write(&path, other).unwrap();
        assert!(matches!(ticket(1).save(&path), Err(TicketError::NotReplaced { .. })));
        assert_eq!(fs::read(&path).unwrap(), other);
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert!(matches!(ticket(1).save(&path), Err(TicketError::NotReplaced { .. })));
    fs::remove_dir(&path).unwrap();
    for own in ["", "downpour1aaaa\n", "downpour9aaaa\n"] {
        fs::write(&path, own).unwrap();
        ticket(1).save(&path).unwrap();
        assert_eq!(Ticket::load(&path).unwrap(), ticket(1));
    }
}

#[test]
fn fresh_keys_differ() {
    assert_ne!(fresh_key().unwrap(), fresh_key().unwrap());
}

/// A ticket must not make its user send packets to many hosts, or to third parties.
#[test]
fn ticket_unreachable_addresses_refused() {
    let with = |address: &str| Ticket { addresses: vec![address.parse().unwrap()], ..ticket(0) }.to_text().unwrap();
    for address in [
        "224.0.0.251:5353",
        "239.255.255.250:1900",
        "255.255.255.255:4000",
        "240.0.0.1:4000",
        "0.0.0.0:4000",
        "0.1.2.3:4000",
        "192.0.2.1:0",
        "[::]:4000",
        "[ff02::1]:4000",
        "[ff0e::1]:4000",
        "[2001:db8::1]:0",
        "[::ffff:224.0.0.1]:4000",
        "[::ffff:255.255.255.255]:4000",
    ] {
        let error = Ticket::parse(&with(address)).unwrap_err();
        assert!(matches!(error, TicketError::Address(_)), "{address}: {error}");
        assert!(error.to_string().contains("ticket has invalid address"), "{error}");
    }
    for address in
        ["127.0.0.1:1", "10.0.0.1:4000", "169.254.1.1:4000", "192.0.2.1:4000", "[::1]:4000", "[fd00::1]:4000"]
    {
        assert!(Ticket::parse(&with(address)).is_ok(), "{address}");
    }
}

#[test]
fn ticket_duplicate_addresses_dropped() {
    let addresses = ["192.0.2.1:4000", "[::ffff:192.0.2.1]:4000", "192.0.2.1:4000", "192.0.2.1:4001"];
    let addresses = addresses.map(|address| address.parse().unwrap()).to_vec();
    let parsed = Ticket::parse(&Ticket { addresses, ..ticket(0) }.to_text().unwrap()).unwrap();
    let expected: [SocketAddr; 2] = ["192.0.2.1:4000", "192.0.2.1:4001"].map(|address| address.parse().unwrap());
    assert_eq!(parsed.addresses, expected);
}

#[test]
fn ticket_file_writable_by_others_refused() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("ticket");
    ticket(2).save(&path).unwrap();
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = Ticket::load(&path).unwrap_err();
        assert!(matches!(error, TicketError::Writable { .. }), "{mode:o}: {error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(Ticket::load(&path).unwrap(), ticket(2), "readable by others is allowed");
}
