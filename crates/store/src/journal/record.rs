//! Records and the header of a journal, as bytes.

use std::ops::Range;

use crate::messages::SourceId;
use crate::staged_id::StagedId;

const MAGIC: [u8; 8] = *b"DPRJNL\0\x02";
/// Size of the header in bytes.
pub(super) const HEADER: usize = 64;
/// Size of a record in bytes.
pub(super) const RECORD: usize = 72;
const CHECK: usize = 4;

const VERIFIED: u32 = 1;
const SYNCED: u32 = 2;
const ITEM: u32 = 3;
const DROPPED: u32 = 4;

/// BLAKE3 of a range.
pub(crate) type RangeDigest = [u8; 32];

/// Distinguishes one boot of the system from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BootId(pub(super) [u8; 16]);

impl BootId {
    /// Matches no boot.
    pub(super) const NONE: Self = Self([u8::MAX; 16]);
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Record {
    /// A range of a staged file whose bytes are written and verified, and their digest.
    Verified(StagedId, Range<u64>, RangeDigest),
    /// Everything in this many first records is durable.
    Synced(u64),
    /// An item that the transfer created.
    Item(Item),
    /// A range of a staged file that differs from its record: it is no longer held.
    Dropped(StagedId, Range<u64>),
}

/// An item at the top of the transfer, identified by inode number and birth time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Item {
    name: [u8; 16],
    inode: u64,
    /// See [`birth`](crate::metadata::birth).
    birth: u64,
}

impl Item {
    pub(crate) fn new(name: &[u8], inode: u64, birth: u64) -> Self {
        let hash = blake3::hash(name);
        let (name, _) = hash.as_bytes().split_first_chunk().expect("32 bytes");
        Self { name: *name, inode, birth }
    }
}

impl Record {
    pub(super) fn encode(&self, number: u64) -> [u8; RECORD] {
        let (kind, id, first, second, digest) = match self {
            Self::Verified(id, range, digest) => (VERIFIED, id.0, range.start, range.end, *digest),
            Self::Synced(count) => (SYNCED, [0; 16], *count, 0, [0; 32]),
            Self::Item(item) => (ITEM, item.name, item.inode, item.birth, [0; 32]),
            Self::Dropped(id, range) => (DROPPED, id.0, range.start, range.end, [0; 32]),
        };
        let mut bytes = [0; RECORD];
        bytes[..4].copy_from_slice(&kind.to_be_bytes());
        bytes[4..20].copy_from_slice(&id);
        bytes[20..28].copy_from_slice(&first.to_be_bytes());
        bytes[28..36].copy_from_slice(&second.to_be_bytes());
        bytes[36..68].copy_from_slice(&digest);
        let check = check(number, &bytes[..RECORD - CHECK]);
        bytes[RECORD - CHECK..].copy_from_slice(&check);
        bytes
    }

    /// Decodes a record; `None` if the check or the kind is wrong.
    pub(super) fn decode(number: u64, bytes: &[u8; RECORD]) -> Option<Self> {
        let (fields, found) = bytes.split_last_chunk::<CHECK>()?;
        if *found != check(number, fields) {
            return None;
        }
        let (kind, rest) = fields.split_first_chunk()?;
        let (id, rest) = rest.split_first_chunk()?;
        let (first, rest) = rest.split_first_chunk()?;
        let (second, rest) = rest.split_first_chunk()?;
        let digest = rest.first_chunk()?;
        let (first, second) = (u64::from_be_bytes(*first), u64::from_be_bytes(*second));
        match u32::from_be_bytes(*kind) {
            VERIFIED => Some(Self::Verified(StagedId(*id), first..second, *digest)),
            SYNCED => Some(Self::Synced(first)),
            ITEM => Some(Self::Item(Item { name: *id, inode: first, birth: second })),
            DROPPED => Some(Self::Dropped(StagedId(*id), first..second)),
            _ => None,
        }
    }
}

fn check(number: u64, fields: &[u8]) -> [u8; CHECK] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&number.to_be_bytes()).update(fields);
    *hasher.finalize().as_bytes().first_chunk().expect("32 bytes")
}

pub(super) fn header(source: SourceId, boot: BootId) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..24].copy_from_slice(&source.0);
    bytes[24..40].copy_from_slice(&boot.0);
    let check = check(u64::MAX, &bytes[..HEADER - CHECK]);
    bytes[HEADER - CHECK..].copy_from_slice(&check);
    bytes
}

/// Decodes a header; `None` if it is damaged or of another format.
pub(super) fn decode_header(bytes: &[u8; HEADER]) -> Option<(SourceId, BootId)> {
    let source = SourceId(*bytes[8..].first_chunk()?);
    let boot = BootId(*bytes[24..].first_chunk()?);
    (*bytes == header(source, boot)).then_some((source, boot))
}
