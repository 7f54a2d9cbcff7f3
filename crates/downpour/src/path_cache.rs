//! Measurements of paths, kept for a day: the next transfer starts at the rate of the last (careful resume, RFC 9959),
//! and does not wait for UDP where the last one got no answer.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use transport::congestion::SavedPath;

use crate::private_directory::{cache_home, is_own, own_directory};

/// Age beyond which a measurement is discarded.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of kept paths; the oldest are removed.
const MOST: usize = 256;
/// Maximum size of the file in bytes: all paths take a third.
const LARGEST: u64 = 200_000;
/// Bits of an address that name its network.
const V4_NETWORK: u32 = u32::MAX << 8;
const V6_NETWORK: u128 = u128::MAX << 80;

/// The path cache of a user. Its files are read only if they belong to this user and nobody else can write them;
/// transfers work without them.
#[derive(Clone, Debug)]
pub struct PathCache {
    /// The directory, which must belong to this user.
    base: PathBuf,
}

/// The ends of a path: the local network, a /24 for IPv4 and a /48 for IPv6, and the remote address. Its neighbours are
/// not included: a receiver that reports false arrivals would raise the rate to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Ends {
    local: IpAddr,
    remote: IpAddr,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct CachedPath {
    ends: Ends,
    /// Seconds since 1970.
    at: u64,
    memory: SavedPath,
}

/// A host that UDP does not reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UdpBlocked {
    ends: Ends,
    /// Seconds since 1970.
    at: u64,
}

/// A record of a cache file.
trait CacheRecord: Serialize + DeserializeOwned {
    /// The name of the file.
    const FILE: &'static str;

    /// When it was measured, in seconds since 1970.
    fn at(&self) -> u64;

    /// Returns whether it is plausible: the file may hold anything.
    fn is_credible(&self) -> bool;
}

/// A cached path that is taken out of the cache while a connection uses it: each entry serves one connection at a time.
#[derive(Debug)]
pub(crate) struct Lease {
    cache: PathCache,
    ends: Ends,
    taken: Option<CachedPath>,
}

impl PathCache {
    /// Returns the user's cache, in `$XDG_CACHE_HOME` or `~/.cache`; `None` without a home.
    pub fn of_user() -> Option<Self> {
        cache_home().map(|base| Self { base })
    }

    /// Takes out the entry of the path to `peer`. Returns `None` for peers on this host.
    pub(crate) fn lease(&self, peer: SocketAddr) -> Option<Lease> {
        let ends = Ends::of(source_of(peer)?, peer.ip())?;
        Some(self.lease_between(ends, now()))
    }

    /// Returns whether UDP did not reach `peer` at the last full attempt.
    pub(crate) fn udp_is_closed(&self, peer: SocketAddr) -> bool {
        let ends = source_of(peer).and_then(|source| Ends::of(source, peer.ip()));
        ends.is_some_and(|ends| self.is_closed(ends, now()))
    }

    /// Stores whether UDP reaches `peer`.
    pub(crate) fn remember_udp(&self, peer: SocketAddr, is_closed: bool) {
        if let Some(ends) = source_of(peer).and_then(|source| Ends::of(source, peer.ip())) {
            self.set_closed(ends, is_closed, now());
        }
    }

    fn is_closed(&self, ends: Ends, now: u64) -> bool {
        let found = self.open(UdpBlocked::FILE, false).and_then(|file| {
            change(file, now, |all: &mut Vec<UdpBlocked>| all.iter().any(|closed| closed.ends == ends))
        });
        found.unwrap_or(false)
    }

    fn set_closed(&self, ends: Ends, is_closed: bool, now: u64) {
        // If it fails, the next transfer waits, as this one did.
        drop(self.open(UdpBlocked::FILE, is_closed).and_then(|file| {
            change(file, now, |all: &mut Vec<UdpBlocked>| {
                all.retain(|closed| closed.ends != ends);
                all.extend(is_closed.then_some(UdpBlocked { ends, at: now }));
            })
        }));
    }

    fn lease_between(&self, ends: Ends, now: u64) -> Lease {
        // No file is created for a transfer that may measure nothing.
        let taken = self.open(CachedPath::FILE, false).and_then(|file| {
            change(file, now, |entries: &mut Vec<CachedPath>| {
                let at = entries.iter().position(|entry| entry.ends == ends)?;
                Some(entries.remove(at))
            })
        });
        Lease { cache: self.clone(), ends, taken: taken.ok().flatten() }
    }

    /// Opens the file of this name, and creates it on request.
    fn open(&self, name: &str, create: bool) -> io::Result<File> {
        let directory = own_directory(&self.base, create)?;
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = File::options();
        options.read(true).write(true).create(create).truncate(false).mode(0o600).custom_flags(flags);
        let file = options.open(directory.join(name))?;
        let found = file.metadata()?;
        if found.is_file() && is_own(&found) { Ok(file) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

/// Changes the entries that are plausible and young enough. Two processes at once do not wait for each other: one of
/// them works without the cache.
fn change<E: CacheRecord, T>(file: File, now: u64, change: impl FnOnce(&mut Vec<E>) -> T) -> io::Result<T> {
    file.try_lock().map_err(io::Error::from)?;
    let result = rewrite(&file, now, change);
    // Closing the file does not unlock it while a process that is starting still shares it.
    file.unlock().and(result)
}

fn rewrite<E: CacheRecord, T>(mut file: &File, now: u64, change: impl FnOnce(&mut Vec<E>) -> T) -> io::Result<T> {
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text)?;
    let mut entries: Vec<E> = serde_json::from_slice(&text).unwrap_or_default();
    let is_young = |entry: &E| now.checked_sub(entry.at()).is_some_and(|age| age <= LIFETIME.as_secs());
    entries.retain(|entry| is_young(entry) && entry.is_credible());
    let result = change(&mut entries);
    let excess = entries.len().saturating_sub(MOST);
    entries.sort_by_key(CacheRecord::at);
    entries.drain(..excess);
    let text = serde_json::to_vec(&entries).map_err(io::Error::other)?;
    file.rewind()?;
    file.set_len(0)?;
    file.write_all(&text)?;
    Ok(result)
}

impl Lease {
    /// Returns the measurements of an earlier transfer.
    pub(crate) fn memory(&self) -> Option<SavedPath> {
        self.taken.map(|entry| entry.memory)
    }

    /// Stores the measurements of the transfer; if there are none, the earlier ones.
    pub(crate) fn restore(self, learned: Option<SavedPath>) {
        self.restore_at(learned, now());
    }

    fn restore_at(self, learned: Option<SavedPath>, now: u64) {
        let Self { cache, ends, taken } = self;
        if let Some(entry) = learned.map(|memory| CachedPath { ends, at: now, memory }).or(taken) {
            // If it fails, the next transfer searches for the rate, as the first one did.
            drop(cache.open(CachedPath::FILE, true).and_then(|file| {
                change(file, now, |entries: &mut Vec<CachedPath>| {
                    entries.retain(|other| other.ends != ends);
                    entries.push(entry);
                })
            }));
        }
    }
}

impl Ends {
    /// Returns the ends of a path between these addresses; `None` if they are on one host.
    fn of(local: IpAddr, remote: IpAddr) -> Option<Self> {
        let (local, remote) = (local.to_canonical(), remote.to_canonical());
        let is_local = local == remote || remote.is_loopback() || remote.is_unspecified();
        let local = match local {
            IpAddr::V4(address) => IpAddr::V4((address.to_bits() & V4_NETWORK).into()),
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from(address.to_bits() & V6_NETWORK)),
        };
        (!is_local).then_some(Self { local, remote })
    }
}

impl CacheRecord for UdpBlocked {
    const FILE: &'static str = "closed.json";

    fn at(&self) -> u64 {
        self.at
    }

    fn is_credible(&self) -> bool {
        true
    }
}

impl CacheRecord for CachedPath {
    const FILE: &'static str = "paths.json";

    fn at(&self) -> u64 {
        self.at
    }

    fn is_credible(&self) -> bool {
        let SavedPath { rate, base, baseline, burst } = self.memory;
        (1..=1_000_000_000_000).contains(&rate.bits_per_second())
            && (Duration::from_micros(1)..=Duration::from_secs(60)).contains(&base)
            && baseline.is_none_or(|share| (0.0..=0.5).contains(&share))
            && (1.0..=10_000.0).contains(&burst)
    }
}

/// Returns the address from which packets to `peer` leave.
fn source_of(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if peer.is_ipv4() { [0, 0, 0, 0].into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a UDP socket sends nothing.
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn now() -> u64 {
    runtime::system_time().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use tempfile::{TempDir, tempdir};
    use transport::Rate;

    const NOW: u64 = 1_000_000;

    fn cache() -> (TempDir, PathCache) {
        let home = tempdir().expect("a directory");
        let cache = PathCache { base: home.path().join(".cache") };
        (home, cache)
    }

    fn memory(megabits: u64) -> SavedPath {
        let base = Duration::from_millis(100);
        SavedPath { rate: Rate::from_bits_per_second(megabits * 1_000_000), base, baseline: Some(0.05), burst: 2.0 }
    }

    fn ends(remote: &str) -> Ends {
        between("192.0.2.1", remote).expect("two machines")
    }

    fn between(local: &str, remote: &str) -> Option<Ends> {
        Ends::of(local.parse().expect("an address"), remote.parse().expect("an address"))
    }

    fn known(cache: &PathCache, remote: &str, now: u64) -> Option<u64> {
        let lease = cache.lease_between(ends(remote), now);
        let found = lease.memory().map(|memory| memory.rate.bits_per_second() / 1_000_000);
        lease.restore_at(None, now);
        found
    }

    fn learn(cache: &PathCache, remote: &str, megabits: u64, now: u64) {
        cache.lease_between(ends(remote), now).restore_at(Some(memory(megabits)), now);
    }

    /// A receiver that reports false arrivals raises no rate but that of transfers to itself.
    #[test]
    fn path_cache_keeps_address_for_a_day() {
        let (_home, cache) = cache();
        assert_eq!(known(&cache, "198.51.100.7", NOW), None);
        assert!(!cache.base.exists(), "nothing was learned");
        learn(&cache, "198.51.100.7", 90, NOW);
        learn(&cache, "203.0.113.1", 20, NOW);
        assert_eq!(known(&cache, "198.51.100.7", NOW + 1), Some(90));
        assert_eq!(known(&cache, "198.51.100.8", NOW + 1), None, "a neighbour");
        learn(&cache, "198.51.100.7", 50, NOW + 2);
        assert_eq!(known(&cache, "198.51.100.7", NOW + 2 + LIFETIME.as_secs()), Some(50), "the newest");
        assert_eq!(known(&cache, "203.0.113.1", NOW + LIFETIME.as_secs() + 1), None, "a day has passed");
        assert_eq!(known(&cache, "198.51.100.7", NOW - 1), None, "from the future");
    }

    #[test]
    fn path_cache_entry_serves_one_connection() {
        let (_home, cache) = cache();
        learn(&cache, "198.51.100.7", 90, NOW);
        let first = cache.lease_between(ends("198.51.100.7"), NOW);
        let second = cache.lease_between(ends("198.51.100.7"), NOW);
        assert!(first.memory().is_some() && second.memory().is_none());
        first.restore_at(None, NOW);
        assert_eq!(known(&cache, "198.51.100.7", NOW), Some(90), "a short transfer has learned nothing new");
    }

    #[test]
    fn path_cache_change_unlocks_shared_file() {
        let (_home, cache) = cache();
        learn(&cache, "198.51.100.7", 90, NOW);
        let file = cache.open(CachedPath::FILE, false).expect("the file");
        // A process that is being started shares every open file until it runs its program.
        let _shared = file.try_clone().expect("a second descriptor");
        change(file, NOW, |_: &mut Vec<CachedPath>| ()).expect("a change");
        assert_eq!(known(&cache, "198.51.100.7", NOW), Some(90));
    }

    #[test]
    fn path_cache_file_private_bounded_repaired() {
        let (_home, cache) = cache();
        let file = cache.base.join("downpour/paths.json");
        (0..300).for_each(|nth| learn(&cache, &format!("198.18.{}.1", nth % 256), 1 + nth, NOW + nth));
        (0..60).for_each(|nth| learn(&cache, &format!("198.19.{nth}.1"), 1, NOW + 400));
        let found = fs::metadata(&file).expect("the file");
        assert_eq!(found.mode() & 0o777, 0o600);
        assert!(found.len() < LARGEST / 2, "{} bytes", found.len());
        assert_eq!(known(&cache, "198.18.44.1", NOW + 400), None, "the oldest were removed");
        assert_eq!(known(&cache, "198.18.255.1", NOW + 400), Some(256));
        let fast = CachedPath { ends: ends("198.51.100.7"), at: NOW, memory: memory(2_000_000) };
        let lossy = CachedPath { memory: SavedPath { baseline: Some(0.9), ..memory(1) }, ..fast };
        let unfit = serde_json::to_string(&[fast, lossy]).expect("text");
        for broken in [unfit.as_str(), "[{", "", "\u{0}\u{1}", &"[".repeat(300_000)] {
            fs::write(&file, broken).expect("a broken file");
            assert_eq!(known(&cache, "198.51.100.7", NOW), None);
            learn(&cache, "198.51.100.7", 7, NOW);
            assert_eq!(known(&cache, "198.51.100.7", NOW), Some(7), "after {broken:.10}");
        }
    }

    #[test]
    fn path_cache_foreign_file_ignored() {
        let (home, cache) = cache();
        learn(&cache, "198.51.100.7", 90, NOW);
        let directory = cache.base.join("downpour");
        let file = directory.join("paths.json");
        for path in [&file, &directory] {
            let before = fs::metadata(path).expect("it exists").permissions();
            fs::set_permissions(path, Permissions::from_mode(before.mode() | 0o022)).expect("ours");
            assert_eq!(known(&cache, "198.51.100.7", NOW), None, "{}", path.display());
            fs::set_permissions(path, before).expect("ours");
            assert_eq!(known(&cache, "198.51.100.7", NOW), Some(90));
        }
        let moved = home.path().join("moved");
        fs::rename(&file, &moved).expect("moved");
        symlink(&moved, &file).expect("a link");
        let before = fs::read(&moved).expect("readable");
        assert_eq!(known(&cache, "198.51.100.7", NOW), None);
        learn(&cache, "198.51.100.7", 1, NOW);
        assert_eq!(fs::read(&moved).expect("readable"), before);
        // Belongs to root, or cannot be written by an ordinary user.
        let foreign = PathCache { base: PathBuf::from("/proc/sys") };
        assert_eq!(known(&foreign, "198.51.100.7", NOW), None);
    }

    #[test]
    fn path_cache_keeps_blocked_udp_for_a_day() {
        let (_home, cache) = cache();
        let (one, other) = (ends("198.51.100.7"), ends("198.51.100.8"));
        cache.set_closed(one, false, NOW);
        assert!(!cache.is_closed(one, NOW) && !cache.base.exists(), "nothing was learned");
        cache.set_closed(one, true, NOW);
        assert!(cache.is_closed(one, NOW + LIFETIME.as_secs()));
        assert!(!cache.is_closed(one, NOW + LIFETIME.as_secs() + 1), "a day has passed");
        cache.set_closed(one, true, NOW);
        assert!(!cache.is_closed(other, NOW), "another host of the same network");
        assert!(cache.is_closed(ends("::ffff:198.51.100.7"), NOW));
        cache.set_closed(other, true, NOW);
        cache.set_closed(one, false, NOW + 1);
        assert!(!cache.is_closed(one, NOW + 1) && cache.is_closed(other, NOW + 1));
        (0..300).for_each(|nth| cache.set_closed(ends(&format!("198.18.{}.{}", nth / 256, nth % 256)), true, NOW + 2));
        let found = fs::metadata(cache.base.join("downpour/closed.json")).expect("the file");
        assert_eq!(found.mode() & 0o777, 0o600);
        assert!(found.len() < LARGEST / 2, "{} bytes", found.len());
        assert!(!cache.is_closed(other, NOW + 2), "the oldest were removed");
        assert!(between("127.0.0.1", "127.0.0.1").is_none());
    }

    #[test]
    fn path_cache_skips_local_peers() {
        let (_home, cache) = cache();
        for peer in ["127.0.0.1:9", "[::1]:9"] {
            assert!(cache.lease(peer.parse().expect("an address")).is_none(), "{peer}");
        }
        assert!(between("192.0.2.1", "::ffff:192.0.2.1").is_none());
    }

    #[test]
    fn path_cache_key_is_local_network_and_remote_address() {
        assert_eq!(between("192.0.2.1", "198.51.100.7"), between("192.0.2.99", "::ffff:198.51.100.7"));
        assert_ne!(between("192.0.2.1", "198.51.100.7"), between("192.0.3.1", "198.51.100.7"));
        let far = "2001:db8:1:2::3";
        assert_eq!(between("2001:db8::1", far), between("2001:db8:0:9::4", far));
        for other in ["2001:db8:1:2::4", "2001:db8:1:3::3"] {
            assert_ne!(between("2001:db8::1", far), between("2001:db8::1", other), "{other}");
        }
    }
}
