//! Tickets: a text that one peer prints and the user pastes into the other, which connects the two.
//!
//! The text is `downpour1` and base32 (RFC 4648, lower case, no padding). Base32 rather than base64: it survives a
//! change of case, has no character at which a terminal or messenger breaks or links, and a double click selects all of
//! it. The encoded bytes, big-endian:
//!
//! | field | bytes | |
//! |---|---|---|
//! | role of the listener | 1 | 1 sender, 2 receiver, 3 tunnel, 4 sender of a stream |
//! | expiry | 8 | seconds since 1970 |
//! | key | 32 | |
//! | addresses | 1 | their number, at most 16; then each: 4 or 6, the unicast address in 4 or 16 bytes, port 2 (not 0) |
//! | checksum | 4 | the first bytes of BLAKE3 over the preceding bytes, in key derivation mode |

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod pasted;

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::{BASE32_NOPAD, HEXLOWER};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::files::ErrorKind;
use crate::files::directory::parent_of;

pub use pasted::is_incomplete;

/// Maximum number of addresses in a ticket.
pub const MAX_ADDRESSES: usize = 16;
/// Prefix of a ticket's text: the program, and the version of the layout.
const PREFIX: &str = "downpour1";
/// The prefix without its version.
const PROGRAM: &str = "downpour";
/// Separates this use of BLAKE3 from every other one.
const CONTEXT: &str = "downpour 2026 ticket checksum v1";
const CHECKSUM: usize = 4;
/// Maximum length of the text from a prompt or file, far beyond any ticket, with white space.
const MAX_TEXT: usize = 16 << 10;

/// The data that the connecting peer needs. Its holder can take part in the transfer: it is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Pre-shared key of the handshake.
    pub key: [u8; 32],
    /// When the listener stops answering.
    pub expires: SystemTime,
    /// The addresses of the listener; at most [`MAX_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
    /// The role of the listener.
    pub listener: Role,
}

impl From<&Ticket> for net::Peer {
    fn from(ticket: &Ticket) -> Self {
        (ticket.key, ticket.addresses.clone()).into()
    }
}

/// The role of a peer in a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum Role {
    /// Sends files.
    #[serde(rename = "Sends")]
    Sender = 1,
    /// Receives files.
    #[serde(rename = "Receives")]
    Receiver = 2,
    /// Carries the connections of programs.
    #[serde(rename = "Tunnels")]
    Tunnel = 3,
    /// Sends a named stream.
    Streams = 4,
}

impl Role {
    /// Returns the role of the peer.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Sender | Self::Streams => Self::Receiver,
            Self::Receiver => Self::Sender,
            Self::Tunnel => Self::Tunnel,
        }
    }
}

/// A ticket that cannot be created or used.
#[derive(Debug, thiserror::Error)]
pub enum TicketError {
    /// The text is no ticket.
    #[error("not a ticket: tickets begin with {PREFIX}")]
    NotATicket,
    /// Its version is unknown.
    #[error("ticket of another version of downpour")]
    Version,
    /// A character is wrong, missing or too many.
    #[error("ticket damaged")]
    Damaged,
    /// It contains an address that no listener can have.
    #[error("ticket has invalid address {0}")]
    Address(SocketAddr),
    /// The role of its listener does not match.
    #[error("wrong ticket: its creator {}", part(*.0))]
    OtherUse(Role),
    /// It has expired.
    #[error("ticket expired {} ago", spoken(*.0))]
    Expired(Duration),
    /// More addresses than a ticket may have.
    #[error("too many addresses: {0}, a ticket may have {MAX_ADDRESSES}")]
    TooManyAddresses(usize),
    /// A ticket file could not be read or written.
    #[error("ticket file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Saving a ticket would replace another file.
    #[error("{} exists and is not a ticket", path.display())]
    NotReplaced {
        /// The file.
        path: PathBuf,
    },
    /// The ticket file belongs to another user, who could redirect the transfer.
    #[error("ticket file {} belongs to another user (uid {owner})", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Other users may write to the ticket file.
    #[error("ticket file {} is writable by other users", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
    },
    /// The system gave no random bytes.
    #[error("no random bytes from the system: {0}")]
    Random(io::Error),
}

/// Returns the action of a listener with this role.
const fn part(listener: Role) -> &'static str {
    match listener {
        Role::Sender => "sends files",
        Role::Streams => "sends a stream",
        Role::Receiver => "receives files",
        Role::Tunnel => "opens a tunnel",
    }
}

impl TicketError {
    /// Returns the kind of failure.
    pub(crate) const fn kind(&self) -> ErrorKind {
        match self {
            Self::File { .. }
            | Self::NotReplaced { .. }
            | Self::Foreign { .. }
            | Self::Writable { .. }
            | Self::TooManyAddresses(_) => ErrorKind::Usage,
            Self::Random(_) => ErrorKind::Other,
            Self::NotATicket
            | Self::Version
            | Self::Damaged
            | Self::Address(_)
            | Self::OtherUse(_)
            | Self::Expired(_) => ErrorKind::Authentication,
        }
    }
}

/// Returns a random key from the system's random source.
///
/// # Errors
/// [`TicketError::Random`] if there is none.
pub fn fresh_key() -> Result<[u8; 32], TicketError> {
    let mut key = [0; 32];
    runtime::fill(&mut key).map_err(TicketError::Random)?;
    Ok(key)
}

impl Ticket {
    /// Returns the text to paste. It is the secret itself: show it, never log it.
    ///
    /// # Errors
    /// [`TicketError::TooManyAddresses`].
    pub fn to_text(&self) -> Result<String, TicketError> {
        if self.addresses.len() > MAX_ADDRESSES {
            return Err(TicketError::TooManyAddresses(self.addresses.len()));
        }
        let mut bytes = vec![self.listener as u8];
        let expires = self.expires.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        bytes.extend(expires.to_be_bytes());
        bytes.extend(self.key);
        bytes.extend(u8::try_from(self.addresses.len()));
        for address in &self.addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(4);
                    bytes.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(6);
                    bytes.extend(ip.octets());
                }
            }
            bytes.extend(address.port().to_be_bytes());
        }
        bytes.extend(checksum(&bytes));
        let mut text = PREFIX.to_owned();
        text.push_str(&BASE32_NOPAD.encode(&bytes).to_ascii_lowercase());
        Ok(text)
    }

    /// Parses a ticket's pasted text: white space and line breaks in it, upper case, quotes around it and words before
    /// it are allowed. An expired ticket is valid here: see [`Ticket::check_expiry`].
    ///
    /// # Errors
    /// [`TicketError::NotATicket`], [`TicketError::Version`], [`TicketError::Damaged`], [`TicketError::Address`].
    pub fn parse(text: &str) -> Result<Self, TicketError> {
        if text.len() > MAX_TEXT {
            return Err(TicketError::NotATicket);
        }
        let coded = pasted::find(text)?;
        let bytes = BASE32_NOPAD.decode(coded.to_ascii_uppercase().as_bytes()).map_err(|_| TicketError::Damaged)?;
        let (fields, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(TicketError::Damaged)?;
        if checksum(fields) != *sum {
            return Err(TicketError::Damaged);
        }
        let ticket = Self::decode(fields).ok_or(TicketError::Damaged)?;
        match ticket.addresses.iter().find(|address| !may_listen(**address)) {
            Some(address) => Err(TicketError::Address(*address)),
            None => Ok(ticket),
        }
    }

    /// Checks that the ticket is valid at `now`.
    ///
    /// # Errors
    /// [`TicketError::Expired`] with the time since.
    pub fn check_expiry(&self, now: SystemTime) -> Result<(), TicketError> {
        match now.duration_since(self.expires) {
            Ok(since) if !since.is_zero() => Err(TicketError::Expired(since)),
            _ => Ok(()),
        }
    }

    /// Writes the text to `path`, readable by its owner only. An existing file is replaced atomically, never written
    /// through: a reader never sees an incomplete ticket, and a symbolic link under the name is not followed.
    ///
    /// # Errors
    /// [`TicketError::File`], [`TicketError::NotReplaced`] for a file that is neither empty nor a ticket,
    /// [`TicketError::TooManyAddresses`].
    pub fn save(&self, path: &Path) -> Result<(), TicketError> {
        let text = self.to_text()?;
        let failed = |source| TicketError::File { path: path.to_owned(), source };
        if !may_replace(path).map_err(failed)? {
            return Err(TicketError::NotReplaced { path: path.to_owned() });
        }
        let mut suffix = [0; 8];
        runtime::fill(&mut suffix).map_err(TicketError::Random)?;
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(HEXLOWER.encode(&suffix));
        let beside = path.with_file_name(hidden);
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&beside).map_err(failed)?;
        let written = writeln!(file, "{text}").and_then(|()| std::fs::rename(&beside, path));
        written.map_err(|error| {
            // The first error is the one to report; a remaining file under a random name is harmless.
            let _ = std::fs::remove_file(&beside);
            failed(error)
        })
    }

    /// Reads a ticket from a file that must be owned by this user or root, and not writable by others.
    ///
    /// # Errors
    /// [`TicketError::File`], [`TicketError::Foreign`], [`TicketError::Writable`], or an error of [`Ticket::parse`].
    pub fn load(path: &Path) -> Result<Self, TicketError> {
        let failed = |source| TicketError::File { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        // Other users cannot replace a terminal. A pipe may have a name in a directory of another user.
        if !metadata.file_type().is_char_device() {
            check_owner(path, (metadata.uid(), metadata.mode()), geteuid().as_raw())?;
        }
        let mut bytes = Vec::new();
        file.take(MAX_TEXT as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        Self::parse(std::str::from_utf8(&bytes).map_err(|_| TicketError::NotATicket)?)
    }

    fn decode(mut bytes: &[u8]) -> Option<Self> {
        let listener = match take::<1>(&mut bytes)? {
            [1] => Role::Sender,
            [2] => Role::Receiver,
            [3] => Role::Tunnel,
            [4] => Role::Streams,
            _ => return None,
        };
        let expires = UNIX_EPOCH.checked_add(Duration::from_secs(u64::from_be_bytes(take(&mut bytes)?)))?;
        let key = take(&mut bytes)?;
        let [count] = take(&mut bytes)?;
        if usize::from(count) > MAX_ADDRESSES {
            return None;
        }
        let mut addresses = Vec::new();
        for _ in 0..count {
            let ip = match take(&mut bytes)? {
                [4] => IpAddr::from(take::<4>(&mut bytes)?),
                [6] => IpAddr::from(take::<16>(&mut bytes)?),
                _ => return None,
            };
            let address = SocketAddr::new(ip.to_canonical(), u16::from_be_bytes(take(&mut bytes)?));
            // Every address gets the same packets, so duplicates are dropped.
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        bytes.is_empty().then_some(Self { key, expires, addresses, listener })
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("key", &"..")
            .field("expires", &self.expires)
            .field("addresses", &self.addresses)
            .field("listener", &self.listener)
            .finish()
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

/// Returns whether a listener can have this address: a unicast address and a port other than 0. Private and loopback
/// addresses are allowed, since most tickets are for the same network.
fn may_listen(address: SocketAddr) -> bool {
    let of_a_host = match address.ip() {
        // 0.0.0.0/8 is "this network", 240.0.0.0/4 is reserved and ends with the broadcast address.
        IpAddr::V4(ip) => !ip.is_multicast() && ip.octets()[0] != 0 && ip.octets()[0] < 240,
        IpAddr::V6(ip) => !ip.is_multicast() && !ip.is_unspecified(),
    };
    of_a_host && address.port() != 0
}

/// Returns whether a ticket may be saved under this name: it is free, a link outside of the system's directories, an
/// empty file, or a ticket of any version.
fn may_replace(path: &Path) -> io::Result<bool> {
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if found.is_symlink() {
        // /dev/stdout and the like belong to the system.
        let directory = parent_of(path).canonicalize()?;
        return Ok(!["/dev", "/proc"].iter().any(|system| directory.starts_with(system)));
    }
    if !found.is_file() || found.len() > MAX_TEXT as u64 {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MAX_TEXT as u64).read_to_end(&mut bytes)?;
    Ok(bytes.is_empty() || std::str::from_utf8(&bytes).is_ok_and(pasted::begins_as_ticket))
}

/// Rejects a ticket file with this owner and mode if a user other than `user` or root could have written it, as ssh
/// does for keys: a ticket determines with whom files are exchanged.
fn check_owner(path: &Path, (owner, mode): (u32, u32), user: u32) -> Result<(), TicketError> {
    if owner != user && owner != 0 {
        return Err(TicketError::Foreign { path: path.to_owned(), owner });
    }
    if mode & 0o022 != 0 {
        return Err(TicketError::Writable { path: path.to_owned() });
    }
    Ok(())
}

fn checksum(fields: &[u8]) -> [u8; CHECKSUM] {
    let hash = blake3::derive_key(CONTEXT, fields);
    *hash.first_chunk().expect("a hash of 32 bytes has 4")
}

fn spoken(duration: Duration) -> String {
    match duration.as_secs() {
        s @ ..120 => format!("{s} seconds"),
        s @ 120..7200 => format!("{} minutes", s / 60),
        s @ 7200..172_800 => format!("{} hours", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticket_file_owner_and_mode_checked() {
        let check =
            |owner, mode| check_owner(Path::new("ticket"), (owner, mode), 1_000).map_err(|error| error.to_string());
        for (owner, mode) in [(1_000, 0o600), (1_000, 0o644), (0, 0o644), (1_000, 0o400)] {
            assert_eq!(check(owner, 0o100_000 | mode), Ok(()), "{owner} {mode:o}");
        }
        let foreign = "ticket file ticket belongs to another user (uid 1001)";
        assert_eq!(check(1_001, 0o100_600), Err(foreign.to_owned()));
        for (owner, mode) in [(1_000, 0o620), (1_000, 0o602), (0, 0o666)] {
            let writable = "ticket file ticket is writable by other users";
            assert_eq!(check(owner, 0o100_000 | mode), Err(writable.to_owned()), "{owner} {mode:o}");
        }
    }
}
