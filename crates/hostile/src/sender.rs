//! A sender of arbitrary messages.

use store::messages::{Digest, ManifestPart, Message, RootHasher, TransferEnd, Void};
use store::{
    Attributes, Entry, EntryKind, Extra, FileSink, FilesError, IdKind, IdName, ManifestState, Mtime, Owner, SkipReason,
    Skipped, SourceId, Special, VoidReason, Wanted, Xattr,
};

use crate::draws::Draws;
use crate::tree::path;

/// The content of every sent file.
pub(crate) const SENT: u8 = b'n';

/// The announcements of a sender, in its order.
#[derive(Debug, Default)]
pub(crate) struct Announcements {
    pub(crate) entries: Vec<Entry>,
    pub(crate) skipped: bool,
}

/// The sender of a transfer into a sink.
struct Sender<'a> {
    sink: &'a FileSink,
    announcements: &'a mut Announcements,
    root: RootHasher,
    end: TransferEnd,
}

/// Makes every call of a sender, in any order, until something is refused or the transfer ends. Returns whether it
/// ended well.
pub(crate) fn attack(draws: &mut Draws<'_>, sink: &FileSink, announcements: &mut Announcements) -> bool {
    let root = RootHasher::new();
    let end = TransferEnd { batches: 0, entries: 0, bytes: 0, skipped: 0, root: root.root() };
    Sender { sink, announcements, root, end }.run(draws).is_ok()
}

impl Sender<'_> {
    fn run(&mut self, draws: &mut Draws<'_>) -> Result<(), FilesError> {
        let source = SourceId([1; 16]);
        self.sink.begin(source)?;
        self.hash(&Message::Begin(source))?;
        for batch in 0..=draws.below(3) {
            if draws.one_in(9) {
                let top = Attributes { mode: 0o700, mtime: Mtime::default(), extra: extra(draws) };
                self.sink.top(top.clone())?;
                self.hash(&Message::Top(top))?;
            }
            if draws.one_in(9) {
                let name = IdName { kind: IdKind::User, id: draws.below(3).into(), name: b"nobody".to_vec() };
                self.sink.id_name(&name)?;
                self.hash(&Message::IdName(name))?;
            }
            self.batch(draws, batch.into())?;
            self.sink.settle(|_, _| {})?;
        }
        self.end.root = self.root.root();
        self.sink.finish(&self.end).map(drop)
    }

    /// Counts a message in the root.
    fn hash(&mut self, message: &Message) -> Result<(), FilesError> {
        let mut bytes = Vec::new();
        message.encode(&mut bytes)?;
        self.root.add(&bytes);
        Ok(())
    }

    /// Announces a batch and sends its wanted ranges.
    fn batch(&mut self, draws: &mut Draws<'_>, batch: u32) -> Result<(), FilesError> {
        let mut entries: Vec<_> = (0..=draws.below(6)).map(|_| entry(draws)).collect();
        if !draws.one_in(4) {
            // An honest order reaches further.
            entries.sort_by_key(|entry| entry.path.iter().filter(|byte| **byte == b'/').count());
        }
        let length = entries.iter().map(Entry::size).sum::<u64>() + u64::from(draws.one_in(20));
        self.sink.decide(entries.first())?;
        self.announcements.entries.extend(entries.iter().cloned());
        (self.end.entries, self.end.bytes) = (self.end.entries + entries.len() as u64, self.end.bytes + length);
        self.end.batches += 1;
        let count = entries.len();
        let rest = draws.one_in(5).then(|| entries.split_off(count / 2));
        let whole = draws.one_in(5);
        let part = |last, entries| ManifestPart { batch, last, whole, again: false, length, entries };
        let parts = [Some(part(rest.is_none(), entries)), rest.map(|rest| part(true, rest))];
        let mut state = ManifestState::More;
        for part in parts.into_iter().flatten() {
            state = self.sink.add_manifest_part(&part)?;
            self.hash(&Message::Manifest(part))?;
        }
        if draws.one_in(9) {
            self.skip(draws)?;
        }
        let wanted = match state {
            ManifestState::Complete(wanted) => wanted,
            ManifestState::Whole(_) => Wanted::all(),
            ManifestState::More | ManifestState::Compare(_) => return Ok(()),
        };
        if draws.one_in(12) {
            let entry = u32::from(draws.below(8));
            let void = Void { batch, entry, reason: VoidReason::Changed };
            self.sink.void(&void)?;
            self.hash(&Message::Void(void))?;
        }
        let length = wanted.length(length);
        // A dry run asks for nothing.
        if length > 0 && !self.sink.spec().dry_run { self.send(draws, batch, length) } else { Ok(()) }
    }

    fn skip(&mut self, draws: &mut Draws<'_>) -> Result<(), FilesError> {
        let skipped = Skipped { path: path(draws, 2).into(), reason: SkipReason::Unreadable };
        self.sink.skipped(&skipped)?;
        self.hash(&Message::Skipped(skipped))?;
        self.end.skipped += 1;
        self.announcements.skipped = true;
        Ok(())
    }

    /// Sends the object of a batch in blocks, some of which may be missing, sent twice or differ from their digests.
    fn send(&mut self, draws: &mut Draws<'_>, batch: u32, length: u64) -> Result<(), FilesError> {
        let block_size = if draws.one_in(4) { 1 + u64::from(draws.below(3)) } else { length };
        for (block, start) in (0..).zip((0..length).step_by(usize::try_from(block_size).expect("a few bytes"))) {
            let bytes = vec![SENT; usize::try_from(block_size.min(length - start)).expect("a few bytes")];
            let digest = *blake3::hash(&bytes).as_bytes();
            let say = |sender: &mut Self, digest| {
                let message = Digest { batch, block, digest };
                sender.sink.expect_digest(&message)?;
                sender.hash(&Message::Digest(message))
            };
            match draws.below(40) {
                1 => say(self, [7; 32])?,
                2 => continue,
                3 => {
                    say(self, digest)?;
                    say(self, digest)?;
                }
                _ => say(self, digest)?,
            }
            let range = start..start + bytes.len() as u64;
            let length = bytes.len();
            let written = match draws.below(40) {
                1 => vec![b'x'; length],
                2 => vec![SENT; length + 9],
                _ => bytes,
            };
            self.sink.write(batch, start, &written)?;
            // The network's digest of the block.
            let found = *blake3::hash(&written[..length]).as_bytes();
            self.sink.found_digest(batch, block, range, found)?;
        }
        Ok(())
    }
}

fn entry(draws: &mut Draws<'_>) -> Entry {
    let bad = ["../outside/new", "a/../../outside/new", "/etc/new", "a//b", "a/", ".", "outside/../a", "a\0b"];
    let path = if draws.one_in(40) { draws.one_of(&bad).to_owned() } else { path(draws, 3) };
    let kind = match draws.below(10) {
        0..=3 => EntryKind::Directory,
        4..=6 => EntryKind::File { size: draws.below(4).into(), version: draws.below(2).into(), hash: None },
        7 | 8 => {
            let to = ["../outside", "/etc", "b", "a/b", "../../outside/victim", "../a", "a/../b", "./..//.."];
            EntryKind::Symlink { target: draws.one_of(&to).into() }
        }
        9 if draws.one_in(3) => EntryKind::Special(Special::Pipe),
        _ => EntryKind::HardLink { target: self::path(draws, 2).into() },
    };
    let mode = draws.one_of(&[0o644, 0o755, 0o4755, 0o000, 0o777]);
    let mtime = Mtime { seconds: draws.below(3).into(), nanoseconds: 0 };
    Entry { path: path.into(), kind, mode, mtime, extra: extra(draws) }
}

fn extra(draws: &mut Draws<'_>) -> Extra {
    let owner = draws.one_in(6).then(|| Owner { user: draws.below(3).into(), group: draws.below(3).into() });
    let name = draws.one_of(&["user.a", "trusted.a", "system.posix_acl_access", "security.capability"]);
    let xattr = || Xattr { name: name.into(), value: b"value".to_vec() };
    Extra { owner, xattrs: draws.one_in(6).then(xattr).into_iter().collect() }
}
