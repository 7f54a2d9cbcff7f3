//! Encoding and decoding of message bodies; the tables are in docs/PROTOCOL.md, section 8.

use std::num::NonZeroU64;

use request::MAX_PATH;

use super::{
    Attributes, Chunk, Chunks, Complete, DeviceNumber, Digest, Entry, EntryKind, Extra, HostPressure, IdKind, IdName,
    ListChunks, ListState, MAX_ID_NAME, MAX_MESSAGE, MAX_XATTR_NAME, MAX_XATTRS, ManifestPart, Message, MessageError,
    Mtime, Notice, NoticeKind, Owner, RootHash, SkipReason, Skipped, SourceId, Special, Stored, StoredEntry,
    TransferEnd, UnverifiedFiles, Void, VoidReason, WantedPart, Xattr,
};

const MANIFEST: u8 = 1;
const DIGEST: u8 = 2;
const VOID: u8 = 3;
const SKIPPED: u8 = 4;
const END: u8 = 5;
const SCANNED: u8 = 6;
const BEGIN: u8 = 7;
const TOP: u8 = 8;
const ID_NAME: u8 = 9;
const TOP_WITH_EXTRA: u8 = 10;
const CHUNKS: u8 = 11;
const REMOVED: u8 = 12;
const ACCEPTED: u8 = 65;
const WANTS: u8 = 66;
const COMPLETE: u8 = 67;
const NOTICE: u8 = 68;
const LIMIT: u8 = 69;
const UNTOUCHED: u8 = 70;
const STRAIN: u8 = 71;
const LIST_CHUNKS: u8 = 72;
const STORED: u8 = 73;
const ALL_STORED: u8 = 74;

const KIND_FILE: u8 = 1;
const KIND_DIRECTORY: u8 = 2;
const KIND_SYMLINK: u8 = 3;
const KIND_HARD_LINK: u8 = 4;
const KIND_HASHED_FILE: u8 = 5;
const KIND_SPECIAL: u8 = 6;
/// Set in a kind that an extra follows.
const HAS_EXTRA: u8 = 0x80;

const MODE_BITS: u32 = 0o7777;
const NANOSECONDS: u32 = 1_000_000_000;

impl Message {
    /// Appends the message with its length and type to `out`.
    ///
    /// # Errors
    /// A name, target or message beyond its limit, or a field that no peer would accept; `out` is then unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        match self {
            Self::Manifest(part) => part.encode(out),
            Self::Digest(digest) => digest.encode(out),
            Self::Void(void) => void.encode(out),
            Self::Skipped(skipped) => skipped.encode(out),
            Self::End(end) => framed(END, out, |out| {
                out.extend(end.batches.to_be_bytes());
                out.extend(end.entries.to_be_bytes());
                out.extend(end.bytes.to_be_bytes());
                out.extend(end.skipped.to_be_bytes());
                out.extend(end.root.0);
                Ok(())
            }),
            Self::Begin(source) => source.encode(out),
            Self::Top(top) => top.encode(out),
            Self::IdName(name) => name.encode(out),
            Self::Wants(wants) => wants.encode(out),
            Self::Chunks(chunks) => chunks.encode(out),
            Self::ListChunks(asked) => asked.encode(out),
            Self::Notice(notice) => framed(NOTICE, out, |out| {
                out.push(notice.kind as u8);
                put_name(NOTICE, &notice.path, out)
            }),
            Self::Limit(rate) => framed(LIMIT, out, |out| {
                out.extend(rate.map_or(0, NonZeroU64::get).to_be_bytes());
                Ok(())
            }),
            Self::Scanned => framed(SCANNED, out, |_| Ok(())),
            Self::Accepted => framed(ACCEPTED, out, |_| Ok(())),
            Self::Untouched(untouched) => framed(UNTOUCHED, out, |out| {
                out.extend(untouched.unchanged.to_be_bytes());
                out.extend(untouched.kept.to_be_bytes());
                Ok(())
            }),
            Self::Strain(strain) => framed(STRAIN, out, |out| {
                out.push(strain.memory.into());
                out.extend(strain.overflowed.to_be_bytes());
                Ok(())
            }),
            Self::Stored(stored) => framed(STORED, out, |out| {
                out.extend(stored.batch.to_be_bytes());
                out.push(stored.last.into());
                for StoredEntry { entry, version } in &stored.entries {
                    out.extend(entry.to_be_bytes());
                    out.extend(version.to_be_bytes());
                }
                Ok(())
            }),
            Self::AllStored => framed(ALL_STORED, out, |_| Ok(())),
            Self::Removed(count) => framed(REMOVED, out, |out| {
                out.extend(count.to_be_bytes());
                Ok(())
            }),
            Self::Complete(complete) => framed(COMPLETE, out, |out| {
                out.extend(complete.files.to_be_bytes());
                out.extend(complete.bytes.to_be_bytes());
                out.extend(complete.present.to_be_bytes());
                out.extend(complete.failed.to_be_bytes());
                // Earlier releases do not accept this field.
                if complete.unchecked > 0 {
                    out.extend(complete.unchecked.to_be_bytes());
                }
                Ok(())
            }),
        }
    }

    /// Decodes type and body, the part after the length field.
    pub(super) fn decode(framed: &[u8]) -> Result<Self, MessageError> {
        let (&kind, rest) = framed.split_first().ok_or(MessageError::Length(0))?;
        let mut body = Body { kind, rest };
        let message = match kind {
            MANIFEST => Self::Manifest(ManifestPart::decode(&mut body)?),
            DIGEST => Self::Digest(Digest { batch: body.u32()?, block: body.u32()?, digest: body.array()? }),
            VOID => {
                let (batch, entry) = (body.u32()?, body.u32()?);
                let reason = VoidReason::from_code(body.u8()?).ok_or(MessageError::Field(kind, "reason"))?;
                Self::Void(Void { batch, entry, reason })
            }
            SKIPPED => {
                let reason = SkipReason::from_code(body.u8()?).ok_or(MessageError::Field(kind, "reason"))?;
                Self::Skipped(Skipped { reason, path: body.name()? })
            }
            END => Self::End(TransferEnd {
                batches: body.u32()?,
                entries: body.u64()?,
                bytes: body.u64()?,
                skipped: body.u64()?,
                root: RootHash(body.array()?),
            }),
            BEGIN => Self::Begin(SourceId(body.array()?)),
            TOP => {
                let (mode, mtime) = take_attributes(&mut body)?;
                Self::Top(Attributes { mode, mtime, extra: Extra::default() })
            }
            TOP_WITH_EXTRA => match Attributes::decode(&mut body)? {
                top if top.extra.is_empty() => return Err(MessageError::Field(kind, "extra")),
                top => Self::Top(top),
            },
            ID_NAME => Self::IdName(IdName::decode(&mut body)?),
            WANTS => Self::Wants(WantedPart::decode(&mut body)?),
            CHUNKS => Self::Chunks(Chunks::decode(&mut body)?),
            LIST_CHUNKS => Self::ListChunks(ListChunks::decode(&mut body)?),
            NOTICE => {
                let kind = NoticeKind::from_code(body.u8()?).ok_or(MessageError::Field(kind, "kind"))?;
                Self::Notice(Notice { kind, path: body.name()? })
            }
            LIMIT => Self::Limit(NonZeroU64::new(body.u64()?)),
            SCANNED => Self::Scanned,
            ACCEPTED => Self::Accepted,
            UNTOUCHED => Self::Untouched(UnverifiedFiles { unchanged: body.u64()?, kept: body.u64()? }),
            COMPLETE => Self::Complete(Complete {
                files: body.u64()?,
                bytes: body.u64()?,
                present: body.u64()?,
                failed: body.u64()?,
                unchecked: if body.rest.is_empty() { 0 } else { body.u64()? },
            }),
            STORED => {
                let (batch, last, mut entries) = (body.u32()?, body.flag()?, Vec::new());
                while !body.rest.is_empty() {
                    entries.push(StoredEntry { entry: body.u32()?, version: body.u64()? });
                }
                Self::Stored(Stored { batch, last, entries })
            }
            ALL_STORED => Self::AllStored,
            REMOVED => Self::Removed(body.u64()?),
            STRAIN => Self::Strain(HostPressure { memory: body.flag()?, overflowed: body.u64()? }),
            unknown => return Err(MessageError::UnknownType(unknown)),
        };
        if body.rest.is_empty() { Ok(message) } else { Err(MessageError::Truncated(kind)) }
    }
}

impl ManifestPart {
    /// Appends the part as a message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(MANIFEST, out, |out| {
            out.extend(self.batch.to_be_bytes());
            out.push(u8::from(self.last) | u8::from(self.whole) << 1 | u8::from(self.again) << 2);
            out.extend(self.length.to_be_bytes());
            self.entries.iter().try_for_each(|entry| put_entry(entry, out))
        })
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let batch = body.u32()?;
        let flags = body.u8()?;
        if flags > 7 {
            return Err(MessageError::Field(MANIFEST, "flag"));
        }
        let (last, whole, again) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
        let length = body.u64()?;
        let mut entries = Vec::new();
        while !body.rest.is_empty() {
            entries.push(take_entry(body)?);
        }
        Ok(Self { batch, last, whole, again, length, entries })
    }
}

impl SourceId {
    /// Appends the id as the message that begins a transfer.
    pub(crate) fn encode(self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(BEGIN, out, |out| {
            out.extend(self.0);
            Ok(())
        })
    }
}

impl Attributes {
    /// Appends them as the message about the directory whose contents are sent.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        if self.extra.is_empty() {
            return framed(TOP, out, |out| put_attributes(TOP, self.mode, self.mtime, out));
        }
        framed(TOP_WITH_EXTRA, out, |out| self.put(out))
    }

    /// Returns them without length and type, for a list on disk.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, MessageError> {
        let mut bytes = Vec::new();
        self.put(&mut bytes).map(|()| bytes)
    }

    /// Reads the result of [`Attributes::to_bytes`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, MessageError> {
        Self::decode(&mut Body { kind: TOP_WITH_EXTRA, rest: bytes })
    }

    fn put(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        put_attributes(TOP_WITH_EXTRA, self.mode, self.mtime, out)?;
        self.extra.encode(TOP_WITH_EXTRA, out)
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let (mode, mtime) = take_attributes(body)?;
        Ok(Self { mode, mtime, extra: Extra::decode(body)? })
    }
}

impl IdName {
    /// Appends the name as a message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(ID_NAME, out, |out| {
            out.push(self.kind as u8);
            out.extend(self.id.to_be_bytes());
            let length = u8::try_from(self.name.len()).ok().filter(|_| is_id_name(&self.name));
            out.push(length.ok_or(MessageError::Field(ID_NAME, "name"))?);
            out.extend(&self.name);
            Ok(())
        })
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let kind = match body.u8()? {
            1 => IdKind::User,
            2 => IdKind::Group,
            _ => return Err(MessageError::Field(ID_NAME, "kind")),
        };
        let id = body.u32()?;
        let length = usize::from(body.u8()?);
        let name = body.bytes(length)?.to_vec();
        if is_id_name(&name) { Ok(Self { kind, id, name }) } else { Err(MessageError::Field(ID_NAME, "name")) }
    }
}

fn is_id_name(name: &[u8]) -> bool {
    (1..=MAX_ID_NAME).contains(&name.len()) && !name.contains(&0)
}

impl Extra {
    /// Appends the attributes as they follow an entry of a message of type `kind`.
    pub(crate) fn encode(&self, kind: u8, out: &mut Vec<u8>) -> Result<(), MessageError> {
        out.push(self.owner.is_some().into());
        if let Some(Owner { user, group }) = self.owner {
            out.extend(user.to_be_bytes());
            out.extend(group.to_be_bytes());
        }
        let count = u16::try_from(self.xattrs.len()).ok().filter(|_| self.has_valid_xattrs());
        out.extend(count.ok_or(MessageError::Field(kind, "extended attributes"))?.to_be_bytes());
        for Xattr { name, value } in &self.xattrs {
            out.push(u8::try_from(name.len()).map_err(|_| MessageError::Field(kind, "extended attributes"))?);
            out.extend(name);
            let length = u32::try_from(value.len()).map_err(|_| MessageError::Field(kind, "extended attributes"))?;
            out.extend(length.to_be_bytes());
            out.extend(value);
        }
        Ok(())
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let owner = if body.flag()? { Some(Owner { user: body.u32()?, group: body.u32()? }) } else { None };
        // For `chown`, this number means none.
        if owner.is_some_and(|Owner { user, group }| user == u32::MAX || group == u32::MAX) && body.kind == MANIFEST {
            return Err(MessageError::Field(body.kind, "owner"));
        }
        let (count, mut extra) = (body.u16()?, Self { owner, xattrs: Vec::new() });
        for _ in 0..count {
            let length = usize::from(body.u8()?);
            let name = body.bytes(length)?.to_vec();
            let length = usize::try_from(body.u32()?).unwrap_or(usize::MAX);
            extra.xattrs.push(Xattr { name, value: body.bytes(length)?.to_vec() });
        }
        if extra.has_valid_xattrs() { Ok(extra) } else { Err(MessageError::Field(body.kind, "extended attributes")) }
    }

    fn has_valid_xattrs(&self) -> bool {
        let is_name = |name: &[u8]| (1..=MAX_XATTR_NAME).contains(&name.len()) && !name.contains(&0);
        self.size() <= MAX_XATTRS
            && self.xattrs.iter().all(|xattr| is_name(&xattr.name))
            && self.xattrs.is_sorted_by(|one, next| one.name < next.name)
    }

    /// Returns the number of bytes that [`Extra::encode`] appends for an entry.
    fn length(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let xattrs = self.xattrs.iter().map(|xattr| 1 + xattr.name.len() + 4 + xattr.value.len());
        1 + if self.owner.is_some() { 8 } else { 0 } + 2 + xattrs.sum::<usize>()
    }
}

impl WantedPart {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(WANTS, out, |out| {
            out.extend(self.batch.to_be_bytes());
            out.push(self.last.into());
            for range in &self.ranges {
                out.extend(range.start.to_be_bytes());
                out.extend(range.end.to_be_bytes());
            }
            Ok(())
        })
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let batch = body.u32()?;
        let last = body.flag()?;
        let mut ranges = Vec::new();
        while !body.rest.is_empty() {
            ranges.push(body.u64()?..body.u64()?);
        }
        Ok(Self { batch, last, ranges })
    }
}

impl Chunks {
    /// Appends the chunks as a message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(CHUNKS, out, |out| {
            out.extend(self.batch.to_be_bytes());
            out.extend(self.entry.to_be_bytes());
            out.push(self.state as u8);
            for Chunk { length, digest } in &self.chunks {
                if *length == 0 {
                    return Err(MessageError::Field(CHUNKS, "length"));
                }
                out.extend(length.to_be_bytes());
                out.extend(digest);
            }
            Ok(())
        })
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let (batch, entry) = (body.u32()?, body.u32()?);
        let state = match body.u8()? {
            0 => ListState::Going,
            1 => ListState::Complete,
            2 => ListState::Void,
            _ => return Err(MessageError::Field(CHUNKS, "state")),
        };
        let mut chunks = Vec::new();
        while !body.rest.is_empty() {
            let chunk = Chunk { length: body.u32()?, digest: body.array()? };
            if chunk.length == 0 {
                return Err(MessageError::Field(CHUNKS, "length"));
            }
            chunks.push(chunk);
        }
        Ok(Self { batch, entry, state, chunks })
    }
}

impl ListChunks {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(LIST_CHUNKS, out, |out| {
            if !self.is_valid() {
                return Err(MessageError::Field(LIST_CHUNKS, "entry"));
            }
            out.extend(self.batch.to_be_bytes());
            out.extend(self.entries.iter().flat_map(|entry| entry.to_be_bytes()));
            Ok(())
        })
    }

    fn decode(body: &mut Body<'_>) -> Result<Self, MessageError> {
        let (batch, mut entries) = (body.u32()?, Vec::new());
        while !body.rest.is_empty() {
            entries.push(body.u32()?);
        }
        let asked = Self { batch, entries };
        if asked.is_valid() { Ok(asked) } else { Err(MessageError::Field(LIST_CHUNKS, "entry")) }
    }

    fn is_valid(&self) -> bool {
        !self.entries.is_empty() && self.entries.is_sorted_by(|one, next| one < next)
    }
}

impl Digest {
    /// Appends the digest as a message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(DIGEST, out, |out| {
            out.extend(self.batch.to_be_bytes());
            out.extend(self.block.to_be_bytes());
            out.extend(self.digest);
            Ok(())
        })
    }
}

impl Void {
    /// Appends the void as a message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(VOID, out, |out| {
            out.extend(self.batch.to_be_bytes());
            out.extend(self.entry.to_be_bytes());
            out.push(self.reason as u8);
            Ok(())
        })
    }
}

impl Skipped {
    /// Appends the note as a message.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) -> Result<(), MessageError> {
        framed(SKIPPED, out, |out| {
            out.push(self.reason as u8);
            put_name(SKIPPED, &self.path, out)
        })
    }
}

/// Returns the number of bytes of an entry in a manifest part.
pub(super) fn entry_length(entry: &Entry) -> usize {
    /// Kind, mode, times and the length of the path.
    const FIXED: usize = 1 + 2 + 8 + 4 + 2;
    FIXED
        + entry.path.len()
        + match &entry.kind {
            EntryKind::File { hash: None, .. } => 16,
            EntryKind::File { hash: Some(_), .. } => 48,
            EntryKind::Directory => 0,
            EntryKind::Special(_) => 9,
            EntryKind::Symlink { target } | EntryKind::HardLink { target } => 2 + target.len(),
        }
        + entry.extra.length()
}

fn put_entry(entry: &Entry, out: &mut Vec<u8>) -> Result<(), MessageError> {
    let kind = match entry.kind {
        EntryKind::File { hash: None, .. } => KIND_FILE,
        EntryKind::File { hash: Some(_), .. } => KIND_HASHED_FILE,
        EntryKind::Directory => KIND_DIRECTORY,
        EntryKind::Symlink { .. } => KIND_SYMLINK,
        EntryKind::HardLink { .. } => KIND_HARD_LINK,
        EntryKind::Special(_) => KIND_SPECIAL,
    };
    out.push(if entry.extra.is_empty() { kind } else { kind | HAS_EXTRA });
    put_attributes(MANIFEST, entry.mode, entry.mtime, out)?;
    put_name(MANIFEST, &entry.path, out)?;
    match &entry.kind {
        EntryKind::File { size, version, hash } => {
            out.extend(size.to_be_bytes());
            out.extend(version.to_be_bytes());
            out.extend(hash.iter().flatten());
        }
        EntryKind::Directory => {}
        EntryKind::Symlink { target } | EntryKind::HardLink { target } => put_name(MANIFEST, target, out)?,
        EntryKind::Special(special) => {
            let (number, DeviceNumber { major, minor }) = special_code(*special);
            out.push(number);
            out.extend(major.to_be_bytes());
            out.extend(minor.to_be_bytes());
        }
    }
    if entry.extra.is_empty() { Ok(()) } else { entry.extra.encode(MANIFEST, out) }
}

/// Returns the number of a special file's type, and its device number.
const fn special_code(special: Special) -> (u8, DeviceNumber) {
    const NO_DEVICE: DeviceNumber = DeviceNumber { major: 0, minor: 0 };
    match special {
        Special::Pipe => (1, NO_DEVICE),
        Special::Socket => (2, NO_DEVICE),
        Special::CharacterDevice(device) => (3, device),
        Special::BlockDevice(device) => (4, device),
    }
}

fn take_special(body: &mut Body<'_>) -> Result<Special, MessageError> {
    let number = body.u8()?;
    let device = DeviceNumber { major: body.u32()?, minor: body.u32()? };
    let special = match number {
        1 => Special::Pipe,
        2 => Special::Socket,
        3 => Special::CharacterDevice(device),
        4 => Special::BlockDevice(device),
        _ => return Err(MessageError::Field(MANIFEST, "special file")),
    };
    /// The largest numbers that Linux supports.
    const MAX: DeviceNumber = DeviceNumber { major: (1 << 12) - 1, minor: (1 << 20) - 1 };
    if device.major > MAX.major || device.minor > MAX.minor {
        return Err(MessageError::Field(MANIFEST, "device"));
    }
    // Each has one form.
    if special_code(special) == (number, device) { Ok(special) } else { Err(MessageError::Field(MANIFEST, "device")) }
}

fn take_entry(body: &mut Body<'_>) -> Result<Entry, MessageError> {
    let number = body.u8()?;
    let (mode, mtime) = take_attributes(body)?;
    let path = body.name()?;
    let kind = match number & !HAS_EXTRA {
        KIND_FILE => EntryKind::File { size: body.u64()?, version: body.u64()?, hash: None },
        KIND_HASHED_FILE => EntryKind::File { size: body.u64()?, version: body.u64()?, hash: Some(body.array()?) },
        KIND_HARD_LINK => EntryKind::HardLink { target: body.name()? },
        KIND_DIRECTORY => EntryKind::Directory,
        KIND_SYMLINK => EntryKind::Symlink { target: body.name()? },
        KIND_SPECIAL => EntryKind::Special(take_special(body)?),
        _ => return Err(MessageError::Field(MANIFEST, "kind")),
    };
    let extra = if number & HAS_EXTRA == 0 { Extra::default() } else { Extra::decode(body)? };
    if number & HAS_EXTRA != 0 && extra.is_empty() {
        return Err(MessageError::Field(MANIFEST, "extra"));
    }
    Ok(Entry { path, kind, mode, mtime, extra })
}

fn put_attributes(kind: u8, mode: u32, mtime: Mtime, out: &mut Vec<u8>) -> Result<(), MessageError> {
    let mode = u16::try_from(mode).ok().filter(|_| mode <= MODE_BITS);
    out.extend(mode.ok_or(MessageError::Field(kind, "mode"))?.to_be_bytes());
    out.extend(mtime.seconds.to_be_bytes());
    out.extend(mtime.nanoseconds.to_be_bytes());
    Ok(())
}

fn take_attributes(body: &mut Body<'_>) -> Result<(u32, Mtime), MessageError> {
    let mode = u32::from(body.u16()?);
    if mode > MODE_BITS {
        return Err(MessageError::Field(body.kind, "mode"));
    }
    let mtime = Mtime { seconds: i64::from_be_bytes(body.array()?), nanoseconds: body.u32()? };
    if mtime.nanoseconds >= NANOSECONDS {
        return Err(MessageError::Field(body.kind, "time"));
    }
    Ok((mode, mtime))
}

fn put_name(kind: u8, name: &[u8], out: &mut Vec<u8>) -> Result<(), MessageError> {
    let length = u16::try_from(name.len()).ok().filter(|l| (1..=MAX_PATH).contains(&usize::from(*l)));
    out.extend(length.ok_or(MessageError::Field(kind, "name"))?.to_be_bytes());
    out.extend(name);
    Ok(())
}

/// Appends a message: length and type, then what `body` appends. Removes everything again if `body` fails or the
/// message is too long.
fn framed(
    kind: u8,
    out: &mut Vec<u8>,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), MessageError>,
) -> Result<(), MessageError> {
    let start = out.len();
    out.extend([0; 4]);
    out.push(kind);
    let result = body(out).and_then(|()| {
        let length = out.len() - start - 4;
        let field = u32::try_from(length).ok().filter(|_| length <= MAX_MESSAGE);
        field.ok_or(MessageError::Length(length as u64))
    });
    match result {
        Ok(length) => out[start..start + 4].copy_from_slice(&length.to_be_bytes()),
        Err(_) => out.truncate(start),
    }
    result.map(|_| ())
}

/// The rest of a body. Every length is checked against it before anything is taken or allocated.
struct Body<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], MessageError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(MessageError::Truncated(self.kind))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(MessageError::Truncated(self.kind))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads flags of which only bit 0 has a meaning.
    fn flag(&mut self) -> Result<bool, MessageError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MessageError::Field(self.kind, "flag")),
        }
    }

    fn u8(&mut self) -> Result<u8, MessageError> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a length and that many bytes, 1 to [`MAX_PATH`].
    fn name(&mut self) -> Result<Vec<u8>, MessageError> {
        let length = usize::from(self.u16()?);
        if !(1..=MAX_PATH).contains(&length) {
            return Err(MessageError::Field(self.kind, "name"));
        }
        self.bytes(length).map(<[u8]>::to_vec)
    }
}
