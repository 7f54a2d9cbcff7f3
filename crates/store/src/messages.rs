//! The program's messages on flow 0, the reliable control stream of a connection.
//!
//! # Layouts
//! All numbers are big-endian. A message is
//!
//! | field | bytes | |
//! |---|---|---|
//! | length | 4 | bytes that follow this field: 1 to 1,048,576 |
//! | type | 1 | |
//! | body | length - 1 | exactly what the layout says: a byte more or less is an error |
//!
//! From the sender of files:
//!
//! | type | message | body |
//! |---|---|---|
//! | 7 | begin | source id 16 |
//! | 8 | top | mode 2, modification time 8 + 4, as in an entry |
//! | 10 | top with extra | the same, then an extra |
//! | 1 | manifest part | batch 4, flags 1 (bit 0: last part of the batch; bit 1: all of the batch follows; bit 2: its files come again; others 0), length of the batch 8, then entries to the end |
//! | 2 | digest | batch 4, block 4, BLAKE3 of the block's bytes 32 (without padding behind the object's end) |
//! | 3 | void | batch 4, entry 4 (index in the batch, from 0), reason 1 (1 changed, 2 shrank, 3 vanished, 4 unreadable) |
//! | 4 | skipped | reason 1 (1 unreadable, 2 vanished, 3 special file, 4 name too long, 5 absent, 6 loop, 7 dangling, 8 link left out, 9 no size, 10 other file system, 11 large extended attributes), path length 2, path |
//! | 11 | chunks | batch 4, entry 4, state 1 (0 more follow, 1 complete, 2 void), then chunks to the end, each length 4 (not 0), digest 24 (the first bytes of its BLAKE3) |
//! | 9 | id name | kind 1 (1 user, 2 group), id 4, name length 1 (1 to 255), name without NUL |
//! | 6 | scanned | nothing |
//! | 5 | end | batches 4, entries 8, bytes 8, skipped 8, root 32 |
//! | 12 | removed | names 8 |
//!
//! An entry is kind 1 (1 file, 2 folder, 3 symlink, 4 hard link, 5 file with hash, 6 special file), mode 2 (`st_mode & 0o7777`),
//! modification time 8 (seconds since 1970, two's complement) + 4 (nanoseconds, below 10^9), path length 2 (1 to 4096),
//! path; a file adds its size 8 and version 8, a file with hash then the BLAKE3 32 of its content; a link adds target
//! length 2 (1 to 4096), target, which for a hard link is the path of an earlier file entry; a special file adds its
//! type 1 (1 pipe, 2 socket, 3 character device, 4 block device), major 4 and minor 4, which are 0 for no device. Bit 7
//! of the kind says that an extra follows: owner 1 (0 none, 1: user id 4, group id 4 follow), number of extended
//! attributes 2, and for each its name's length 1, name, value's length 4, value, in ascending order of their names.
//! Special files, extras and id names are only sent on request.
//!
//! From the receiver of files:
//!
//! | type | message | body |
//! |---|---|---|
//! | 65 | accepted | nothing |
//! | 66 | wants | batch 4, flags 1 (bit 0: last part; others 0), then ranges to the end, each start 8, end 8 |
//! | 67 | complete | files 8, bytes 8, present 8, failed 8, and unchecked 8 unless it is 0 |
//! | 68 | notice | kind 1 (1 create, 2 replace, 3 attributes, 4 delete, 5 kept, 16 permission, 17 no links, 18 bad name, 19 folder in the way, 20 other, 21 no first name, 22 special file in the way, 23 reserved name, 24 nothing is deleted, 25 exists, 26 unsafe link, 27 empty source, 28 deletion limit, 29 folded, 30 attributes lost, 31 low space, 35 no backup; of a sender: 6 removed from the source, 32 changed there, 33 not removed there, 34 the same at the target), path length 2, path |
//! | 69 | limit | bits of IP packets per second 8, 0 for none: the sender goes no faster from now on |
//! | 70 | untouched | unchanged 8, kept 8 |
//! | 72 | list chunks | batch 4, then entries to the end, each 4 (index in the batch, from 0), ascending, at least one |
//! | 73 | stored | batch 4, flags 1 (bit 0: last part of the batch; others 0), then for each name entry 4 (index in the batch), version 8 |
//! | 74 | all stored | nothing |
//!
//! From either:
//!
//! | type | message | body |
//! |---|---|---|
//! | 71 | strain | flags 1 (bit 0: its bound on memory binds; others 0), datagrams that its full socket has dropped 8 |
//!
//! # What is wanted
//! A receiver that may hold some of the bytes says so in the handshake. It then answers each batch's last manifest part
//! with its wants: ranges of the batch, that is of the concatenation of its files, ascending and apart from each other.
//! The batch's object is the concatenation of those ranges; without such a receiver it is the whole batch. Blocks and
//! digests count in the object. An object of no bytes is not opened. Where all parts of a manifest say that all of the
//! batch follows, its object is the whole batch though the receiver may hold some of it: the sender does not wait for
//! wants, which come all the same and only say what was needed.
//!
//! # Differences
//! A receiver that holds another version of a file asks for its chunks: list chunks names such files of a batch, once,
//! before the wants of that batch, and the sender answers for each in turn. Chunks begin at the file's start and follow
//! each other without gaps; a list that is complete may end before the file does. Void, which says that the file has
//! changed meanwhile, ends a list too, and all chunks of it count as never sent. The receiver copies chunks that it has
//! and wants the rest. Where chunks end is the sender's choice; [`crate`] says where it does, and where a receiver
//! looks for them.
//!
//! # What may be removed
//! A sender that is to remove what has arrived tells it with the request for the transfer, not here. The receiver then
//! says of each batch which entries are durable under their final names, each with the version of what stands there:
//! where that is the version of the source, the two are one and the same. Hard links follow once they are made. The
//! sender answers *all stored* with notices about what it has removed or kept, and *removed*; only then comes complete.
//!
//! # Order
//! - Begin comes first. Top, where what is in one folder comes without the folder, follows it: the folder's own.
//! - Batches count from 0. The parts of one batch follow each other, and the next batch begins after the last part. A
//!   part holds about 64 KiB, a batch at most 65,536 entries and 8 MiB of names. Every part carries the length of the
//!   whole batch, which the file sizes add up to. A folder stands before what is in it.
//! - At most [`MAX_OPEN_BATCHES`] batches are open, that is not yet verified by the receiver; a sender keeps to half.
//! - A batch's digests follow its last part, in any order, each block's once.
//! - The name of an id precedes the first entry with it; each comes at most once, and at most 65,536 of them.
//! - A void precedes the digest of the block whose reading revealed it: a receiver that has verified a whole batch
//!   forgets it.
//! - Skipped messages stand anywhere before the end.
//! - Scanned, if it comes, precedes the last part of the last batch: with that part, all names there are have been announced.
//! - All of a batch follows only if the receiver announced in the handshake that it understands that.
//! - Files come again after the last batch, if the receiver announced in the handshake that it takes them: those that
//!   were voided because they had changed or shrunk, once each, in one batch, when all digests before are written.
//! - A receiver asks for chunks only if the sender announced in the handshake that it lists them, and says what it wants
//!   of a batch after the last list that it asked for.
//! - End comes last; its root is [`RootHasher`]'s over all begin, top, id name, manifest, chunks, digest, void and
//!   skipped messages as they stand on flow 0.
//! - A receiver answers accepted once, to the first batch, before any wants, and complete to the end; notices and
//!   limits stand anywhere between. It refuses by closing the connection, with a code and a reason for the sender's
//!   user.
//! - Untouched precedes complete. It is only sent if the sender announced in the handshake that it understands it.
//! - Strain stands anywhere, after the end too. It is only sent to a side that announced in the handshake that it
//!   understands it.

mod entry;
mod extra;
mod fuzz;
mod layout;
mod notice;
mod reader;
mod root;
mod wanted;

use std::num::NonZeroU64;
use std::ops::Range;

pub use entry::{
    Attributes, DeviceNumber, Entry, Kind, MAX_BATCH_ENTRIES, MAX_BATCH_NAMES, Mtime, SkipReason, Skipped, SourceId,
    Special, VoidReason,
};
pub use extra::{Extra, IdKind, IdName, MAX_ID_NAME, MAX_ID_NAMES, MAX_XATTR_NAME, MAX_XATTRS, Owner, Xattr};
pub use fuzz::fuzz_messages;
pub use notice::{Notice, NoticeKind};
pub use reader::MessageReader;
pub use root::{Root, RootHasher};
pub(crate) use wanted::shortest;
pub use wanted::{Wanted, WantedError};

/// Largest message, counted as its length field does.
pub const MAX_MESSAGE: usize = 1 << 20;
/// Batches that may be open at a receiver, that is begun and not yet verified.
pub const MAX_OPEN_BATCHES: usize = 8;
/// The entries of a manifest part stay below this size, in bytes; any single one does.
const PART_TARGET: usize = 64 << 10;

/// Ranges in one message of wants: a long list takes several.
const WANTS_TARGET: usize = 4096;

/// Chunks in one message: a long list takes several.
pub const CHUNKS_TARGET: usize = 2048;

/// Entries in one message of those that are stored.
const STORED_TARGET: usize = 4096;

/// A message on flow 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// What is sent.
    Begin(SourceId),
    /// Mode, time and further attributes of the folder whose content is sent.
    Top(Attributes),
    /// The name of a user or group.
    IdName(IdName),
    /// Entries of a batch.
    Manifest(ManifestPart),
    /// The digest of one block.
    Digest(Digest),
    /// A file whose bytes must be dropped.
    Void(Void),
    /// Chunks of a file.
    Chunks(Chunks),
    /// A name that is not sent.
    Skipped(Skipped),
    /// No further batch follows.
    Scanned,
    /// All is sent.
    End(End),
    /// The receiver takes the transfer.
    Accepted,
    /// What the receiver wants of a batch.
    Wants(Wants),
    /// The receiver holds other versions of these files.
    ListChunks(ListChunks),
    /// What becomes of a name at the receiver.
    Notice(Notice),
    /// The receiver asks for no more than this rate, in bits of IP packets per second.
    Limit(Option<NonZeroU64>),
    /// Number of files that the receiver left as they were.
    Untouched(Untouched),
    /// Entries of a batch that are durable under their final names.
    Stored(Stored),
    /// No further entry is stored.
    AllStored,
    /// Number of names that the sender has removed of what was stored, or would remove.
    Removed(u64),
    /// Everything is verified and under its final name.
    Complete(Complete),
    /// How the machine of the side that says it is strained by now.
    Strain(Strain),
}

/// Entries of a batch, in the order of its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestPart {
    /// Counts from 0.
    pub batch: u32,
    /// Whether the batch ends with this part.
    pub last: bool,
    /// Whether the object is the whole batch, whatever the receiver wants; the same in all parts.
    pub whole: bool,
    /// Whether its entries were voided before, and have new sizes and times; the same in all parts.
    pub again: bool,
    /// Length of the whole batch in bytes.
    pub length: u64,
    /// The entries of this part.
    pub entries: Vec<Entry>,
}

/// Some of the ranges that a receiver wants of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wants {
    /// Batch.
    pub batch: u32,
    /// Whether no more follow.
    pub last: bool,
    /// In bytes of the batch.
    pub ranges: Vec<Range<u64>>,
}

/// Files of a batch whose chunks a receiver asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListChunks {
    /// Batch.
    pub batch: u32,
    /// Indices in the batch, ascending, at least one.
    pub entries: Vec<u32>,
}

/// Some of the chunks of a file, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunks {
    /// Batch.
    pub batch: u32,
    /// Index of the file's entry in the batch, from 0.
    pub entry: u32,
    /// Whether more follow.
    pub state: ListState,
    /// They begin where those before them ended.
    pub chunks: Vec<Chunk>,
}

/// A range of a file and what identifies its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes, not 0.
    pub length: u32,
    /// The first bytes of its BLAKE3 digest.
    pub digest: ChunkDigest,
}

/// The first 24 bytes of a BLAKE3 digest: two contents with the same one take 2^96 attempts to find.
pub type ChunkDigest = [u8; 24];

/// How the list of a file's chunks goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListState {
    /// More chunks follow.
    Going = 0,
    /// The list ends here.
    Complete = 1,
    /// The list ends here, and none of its chunks counts: the file has changed.
    Void = 2,
}

/// The BLAKE3 digest of one block's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// Batch.
    pub batch: u32,
    /// Block of the batch's object.
    pub block: u32,
    /// BLAKE3, 32 bytes.
    pub digest: [u8; 32],
}

/// A file of a batch whose bytes cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Void {
    /// Batch.
    pub batch: u32,
    /// Index of the entry in the batch, from 0.
    pub entry: u32,
    /// Why.
    pub reason: VoidReason,
}

/// The sender's last message: what the whole transfer was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// Batches sent.
    pub batches: u32,
    /// Entries in all manifests.
    pub entries: u64,
    /// Lengths of all batches, in bytes.
    pub bytes: u64,
    /// Skipped messages sent.
    pub skipped: u64,
    /// Root over the messages before this one.
    pub root: Root,
}

/// What stands under its final name at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Complete {
    /// Regular files.
    pub files: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Bytes among these that were there before.
    pub present: u64,
    /// Entries that came and are not there: voided, or refused by the receiver's file system.
    pub failed: u64,
    /// Bytes among `present` that an earlier run has left and that were not checked.
    pub unchecked: u64,
}

/// Entries that are durable under their final names, with the content that was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stored {
    /// Batch.
    pub batch: u32,
    /// Whether no more follow but hard links.
    pub last: bool,
    /// The entries, in ascending order, but for hard links.
    pub entries: Vec<StoredEntry>,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredEntry {
    /// Index of the entry in the batch, from 0.
    pub entry: u32,
    /// Version of what stands under its final name, made as a sender makes those of files.
    pub version: u64,
}

/// Numbers of files that existed before and whose content was neither transferred nor compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Untouched {
    /// Files with the size and modification time of the source.
    pub unchanged: u64,
    /// Files with any content that were to be left alone.
    pub kept: u64,
}

/// What holds a machine back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strain {
    /// Whether the bound on memory binds at present.
    pub memory: bool,
    /// Datagrams that its kernel has dropped so far because the socket's receive buffer was full.
    pub overflowed: u64,
}

/// A message that cannot be encoded or decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// The length field is 0 or beyond [`MAX_MESSAGE`].
    #[error("a message of {0} bytes is outside the limits")]
    Length(u64),
    /// No message has this type.
    #[error("unknown message type {0}")]
    UnknownType(u8),
    /// The body ends too early or too late.
    #[error("message type {0} has the wrong length")]
    Truncated(u8),
    /// A field has a value it cannot have.
    #[error("message type {0} has a bad {1}")]
    Field(u8, &'static str),
}

/// Cuts a batch's manifest into parts of about 64 KiB, made one at a time. A batch without entries has one empty part.
pub fn manifest_parts(batch: u32, length: u64, entries: &[Entry]) -> impl Iterator<Item = ManifestPart> + use<'_> {
    let mut rest = Some(entries);
    std::iter::from_fn(move || {
        let left = rest?;
        let ends = left.iter().scan(0, |bytes, entry| {
            *bytes += layout::entry_length(entry);
            Some(*bytes)
        });
        let taken = ends.take_while(|end| *end < PART_TARGET).count().max(1).min(left.len());
        let (part, after) = left.split_at(taken);
        rest = (!after.is_empty()).then_some(after);
        Some(ManifestPart { batch, last: after.is_empty(), whole: false, again: false, length, entries: part.to_vec() })
    })
}

/// Cuts a batch's stored entries into messages; the last one is there even if nothing is stored.
pub fn stored(batch: u32, entries: &[StoredEntry]) -> impl Iterator<Item = Stored> + use<'_> {
    let parts = entries.len().div_ceil(STORED_TARGET).max(1);
    (0..parts).map(move |part| {
        let of_part = entries.chunks(STORED_TARGET).nth(part).unwrap_or_default();
        Stored { batch, last: part + 1 == parts, entries: of_part.to_vec() }
    })
}

/// Cuts what is wanted of a batch of `full` bytes into messages; the last one is there even if nothing is wanted.
pub fn wants(batch: u32, wanted: &Wanted, full: u64) -> impl Iterator<Item = Wants> + use<'_> {
    let mut rest = wanted.ranges(full).peekable();
    let mut ended = false;
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let ranges: Vec<_> = rest.by_ref().take(WANTS_TARGET).collect();
        ended = rest.peek().is_none();
        Some(Wants { batch, last: ended, ranges })
    })
}
