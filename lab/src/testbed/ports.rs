//! Open ports as reported by the kernel: a connection would disturb the program that listens.

use std::fs;

/// The protocol of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// Returns the ports on which sockets of this thread's network namespace listen.
pub(super) fn listening() -> Vec<(Protocol, u16)> {
    // TCP_LISTEN; a bound UDP socket that is not connected is in TCP_CLOSE.
    const TABLES: [(&str, Protocol, &str); 4] = [
        ("tcp", Protocol::Tcp, "0A"),
        ("tcp6", Protocol::Tcp, "0A"),
        ("udp", Protocol::Udp, "07"),
        ("udp6", Protocol::Udp, "07"),
    ];
    let ports = |(table, protocol, state)| {
        // The thread's directory: its namespace is not that of the process.
        let text = fs::read_to_string(format!("/proc/thread-self/net/{table}")).unwrap_or_default();
        let port = move |row: &str| port(row, state).map(|port| (protocol, port));
        text.lines().skip(1).filter_map(port).collect::<Vec<_>>()
    };
    TABLES.into_iter().flat_map(ports).collect()
}

/// Returns the local port of a row in this state: `0: 0100007F:1F90 00000000:0000 0A ...`.
fn port(row: &str, state: &str) -> Option<u16> {
    let mut words = row.split_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    (words.nth(1)? == state).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_of_a_listening_socket() {
        let row = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7";
        assert_eq!((port(row, "0A"), port(row, "07"), port("", "0A")), (Some(8080), None, None));
    }
}
