//! The addresses under which this host can be reached, for tickets.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::ticket::MAX_ADDRESSES;

/// Returns every address under which a socket bound to `bound` can be reached: `bound` itself if it is specific,
/// otherwise all global and private addresses of this host, and loopback only if there are no others.
pub(crate) fn reachable(bound: SocketAddr) -> io::Result<Vec<SocketAddr>> {
    if !bound.ip().is_unspecified() {
        return Ok(vec![bound]);
    }
    let mut addresses: Vec<IpAddr> = if_addrs::get_if_addrs()?
        .into_iter()
        .map(|interface| interface.ip())
        .filter(|ip| usable(*ip) && (bound.is_ipv6() || ip.is_ipv4()))
        .collect();
    addresses.sort_by_key(|ip| (rank(*ip), *ip));
    addresses.dedup();
    if addresses.iter().any(|ip| !ip.is_loopback()) {
        addresses.retain(|ip| !ip.is_loopback());
    }
    addresses.truncate(MAX_ADDRESSES);
    Ok(addresses.into_iter().map(|ip| (ip, bound.port()).into()).collect())
}

/// Link-local addresses need an interface name, which differs on the other host.
fn usable(ip: IpAddr) -> bool {
    !ip.is_unspecified()
        && !ip.is_multicast()
        && match ip {
            IpAddr::V4(v4) => !v4.is_link_local(),
            IpAddr::V6(v6) => !v6.is_unicast_link_local(),
        }
}

/// Ranks the most useful addresses first, since a ticket may have few: global, then private, then loopback.
fn rank(ip: IpAddr) -> u8 {
    match ip {
        ip if ip.is_loopback() => 2,
        IpAddr::V4(v4) if v4.is_private() => 1,
        IpAddr::V6(v6) if is_unique_local(v6) => 1,
        _ => 0,
    }
}

/// fc00::/7 (RFC 4193).
const fn is_unique_local(ip: Ipv6Addr) -> bool {
    ip.segments()[0] & 0xfe00 == 0xfc00
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reachable_specific_address_only_itself() {
        let bound = "192.0.2.7:4000".parse().unwrap();
        assert_eq!(reachable(bound).unwrap(), [bound]);
    }

    #[test]
    fn any_address_becomes_those_of_this_host_with_the_port() {
        for (bound, v4_only) in [("[::]:4000", false), ("0.0.0.0:4000", true)] {
            let all = reachable(bound.parse().unwrap()).unwrap();
            assert!(!all.is_empty() && all.len() <= MAX_ADDRESSES);
            assert!(
                all.iter().all(|a| a.port() == 4000 && !a.ip().is_unspecified() && (a.is_ipv4() || !v4_only)),
                "{all:?}"
            );
            assert!(all.iter().all(|a| a.ip().is_loopback()) || !all.iter().any(|a| a.ip().is_loopback()), "{all:?}");
        }
    }

    #[test]
    fn reachable_skips_link_local() {
        for ip in ["169.254.1.1", "fe80::1", "ff02::1", "0.0.0.0"] {
            assert!(!usable(ip.parse().unwrap()), "{ip}");
        }
        assert_eq!(
            ["2001:db8::1", "fd00::1", "::1", "10.0.0.1", "198.51.100.1"].map(|ip| rank(ip.parse().unwrap())),
            [0, 1, 2, 1, 0]
        );
    }
}
