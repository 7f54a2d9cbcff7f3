//! Changed files of which only the differences are sent.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour_store::messages::{Chunk, Chunks, Digest, ListState, ManifestPart, Message};
use downpour_store::{
    Batch, BatchSource, EntryKind, Existing, FileSink, FilesError, Modes, ReceiveRequest, Roots, Scanner, SourceItem,
    SourceOptions, Wanted, list_chunks,
};
use tempfile::TempDir;

use crate::common::{BLOCK, Control, Done, entry, noise, quick_dir, send_block, snapshot, transfer_as};

const LONG: usize = 3 << 20;

/// A directory with `file`, and a target with another version of it.
struct Versions {
    from: TempDir,
    into: TempDir,
}

impl Versions {
    fn new(old: &[u8], new: &[u8]) -> Self {
        let (from, into) = (quick_dir(), quick_dir());
        fs::write(from.path().join("file"), new).unwrap();
        fs::write(into.path().join("file"), old).unwrap();
        // Versions of the same length differ by their times.
        File::options()
            .write(true)
            .open(into.path().join("file"))
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
        Self { from, into }
    }

    fn source(&self) -> PathBuf {
        self.from.path().join("file")
    }

    fn spec(&self) -> ReceiveRequest {
        ReceiveRequest {
            existing: Existing::Replace,
            modes: Modes::Exact,
            differences: true,
            ..ReceiveRequest::into_directory(self.into.path())
        }
    }

    /// Transfers the file; checks that the target is equal then, and that nothing else remains in it.
    fn transfer(&self) -> Done {
        let done = transfer_as(&[self.source()], self.spec(), 1, &mut |_| {}).unwrap();
        assert_same(self.from.path(), self.into.path());
        done
    }

    /// Scans the file.
    fn scan(&self) -> (Arc<Batch>, Arc<Roots>) {
        let mut scanner = Scanner::new(vec![SourceItem::new(self.source())], SourceOptions::default()).unwrap();
        let roots = scanner.roots();
        (Arc::new(scanner.next().unwrap()), roots)
    }

    /// Opens the target and announces the file; its chunks are requested.
    fn announce<'a>(&self, sink: &'a FileSink, batch: &Batch) -> Control<'a> {
        sink.sender_lists();
        let mut control = Control::begin(sink).unwrap();
        control.send_manifest(batch).unwrap();
        assert_eq!(std::mem::take(&mut control.compared), [0]);
        control
    }
}

/// Checks that two directories have equal contents, except for their own times.
fn assert_same(one: &Path, other: &Path) {
    let [one, other] = [one, other].map(|directory| {
        let mut found = snapshot(directory);
        found.remove(&b""[..]);
        found
    });
    assert!(one == other, "{other:#?}");
}

/// Lists the chunks of the only file of a batch.
fn list(batch: &Arc<Batch>, roots: &Arc<Roots>) -> (Vec<Chunk>, ListState) {
    let source = BatchSource::new(Arc::clone(batch), Arc::clone(roots), Wanted::all());
    let (mut all, mut end) = (Vec::new(), ListState::Going);
    list_chunks(&source, 0, None, |chunks, state| {
        assert_eq!(end, ListState::Going);
        all.extend(chunks);
        end = state;
        ControlFlow::Continue(())
    });
    (all, end)
}

fn chunks(state: ListState, chunks: &[Chunk]) -> Message {
    Message::Chunks(Chunks { batch: 0, entry: 0, state, chunks: chunks.to_vec() })
}

/// Sends the wanted ranges, and ends the transfer.
fn send_rest(mut control: Control<'_>, batch: &Arc<Batch>, roots: &Arc<Roots>) {
    let source = BatchSource::new(Arc::clone(batch), Arc::clone(roots), control.wanted.clone());
    for block in 0..u32::try_from(source.length().div_ceil(BLOCK as u64)).unwrap() {
        send_block(&mut control, &source, 0, block, true).unwrap();
    }
    control.receiving.settle(|_, _| {}).unwrap();
    control.receiving.finish(&control.end()).unwrap();
}

#[test]
fn changed_file_wants_only_differences() {
    let old = noise(LONG, 1);
    let edit = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut new = old.clone();
        edit(&mut new);
        new
    };
    // A chunk has at most 16 KiB, and the cuts after a change come back within some of them.
    let (one, few) = (16 << 10, 64 << 10);
    let cases: [(&str, Vec<u8>, u64); 9] = [
        ("the same bytes", old.clone(), 0),
        ("a byte in the middle", edit(&|new| new[LONG / 2] ^= 1), few),
        ("the first and the last byte", edit(&|new| (new[0], new[LONG - 1]) = (!new[0], !new[LONG - 1])), 2 * few),
        ("bytes inserted", edit(&|new| drop(new.splice(777_777..777_777, noise(1000, 2)))), few + 1000),
        ("bytes removed", edit(&|new| drop(new.drain(1_000_000..1_500_001))), few),
        ("bytes at the end", edit(&|new| new.extend(noise(100_000, 3))), few + 100_000),
        ("cut short", edit(&|new| new.truncate(LONG / 2 + 5)), one),
        ("halves exchanged", edit(&|new| new.rotate_left(LONG / 2)), 2 * few),
        ("twice", edit(&|new| new.extend(old.clone())), 2 * few),
    ];
    for (name, new, most) in cases {
        let here = Versions::new(&old, &new);
        let done = here.transfer();
        assert!(done.wanted <= most, "{name}: {} bytes are wanted", done.wanted);
        assert!(done.wanted > 0 || name == "the same bytes", "{name}");
        assert_eq!(done.outcome.present, new.len() as u64 - done.wanted, "{name}");
    }
}

#[test]
fn differences_keep_holes_and_zeros() {
    let mut old = vec![0; LONG];
    old[100_000..300_000].copy_from_slice(&noise(200_000, 1));
    let mut new = vec![0; LONG + 1_000_000];
    new[1_100_000..1_300_000].copy_from_slice(&noise(200_000, 1));
    let done = Versions::new(&old, &new).transfer();
    assert!(done.wanted < 300_000, "{}", done.wanted);
    let done = Versions::new(&new, &vec![0; LONG]).transfer();
    assert!(done.wanted < 64 << 10, "{}", done.wanted);
}

#[test]
fn differences_of_random_edits_arrive() {
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    for seed in first..first + 40 {
        println!("replay with SEED={seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let old = noise(random.usize(130_000..2 << 20), seed);
        let mut new = old.clone();
        for _ in 0..random.usize(0..6) {
            let at = random.usize(..=new.len());
            let end = at + random.usize(..=(new.len() - at).min(200_000));
            match random.u8(..4) {
                0 => drop(new.drain(at..end)),
                1 => new[at..end].fill(0),
                2 => drop(new.splice(at..at, noise(random.usize(..100_000), random.u64(..)))),
                _ => new[at..end].reverse(),
            }
        }
        let done = Versions::new(&old, &new).transfer();
        assert!(done.wanted <= new.len() as u64);
    }
}

#[test]
fn differences_not_used_if_useless_or_unrequested() {
    let (old, new) = (noise(LONG, 1), [noise(LONG, 1), vec![1]].concat());
    let all = new.len() as u64;
    let whole = |here: &Versions, spec| transfer_as(&[here.source()], spec, 1, &mut |_| {}).unwrap().wanted;
    let here = Versions::new(&old, &new);
    assert_eq!(whole(&here, ReceiveRequest { differences: false, ..here.spec() }), all);
    // Neither with a link nor with a file that is much shorter.
    let here = Versions::new(&old[..100_000], &new);
    assert_eq!(whole(&here, here.spec()), all);
    let here = Versions::new(&old, &new);
    fs::rename(here.into.path().join("file"), here.into.path().join("other")).unwrap();
    std::os::unix::fs::symlink("other", here.into.path().join("file")).unwrap();
    assert_eq!(whole(&here, here.spec()), all);
    let small = noise(100_000, 1);
    let here = Versions::new(&small, &small);
    assert_eq!(whole(&here, here.spec()), 100_000);
}

#[test]
fn differences_unreadable_version_received_in_full() {
    let here = Versions::new(&noise(LONG, 1), &noise(LONG, 1));
    let (batch, roots) = here.scan();
    let sink = FileSink::new(here.spec()).unwrap();
    let mut control = here.announce(&sink, &batch);
    // Another user has replaced it by a FIFO.
    fs::remove_file(here.into.path().join("file")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        here.into.path().join("file"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let (listed, _) = list(&batch, &roots);
    control.send(&chunks(ListState::Complete, &listed)).unwrap();
    assert_eq!(control.wanted.length(batch.length), LONG as u64);
}

/// Changes the version at the target after it was indexed, while chunks are copied from it.
#[test]
fn differences_basis_changed_meanwhile_not_copied() {
    let new = [noise(1000, 2), noise(LONG, 1)].concat();
    let here = Versions::new(&noise(LONG, 1), &new);
    let (batch, roots) = here.scan();
    let sink = FileSink::new(here.spec()).unwrap();
    let mut control = here.announce(&sink, &batch);
    let (listed, state) = list(&batch, &roots);
    assert_eq!(state, ListState::Complete);
    let (first, rest) = listed.split_at(listed.len() / 2);
    control.send(&chunks(ListState::Going, first)).unwrap();
    let old = File::options().write(true).open(here.into.path().join("file")).unwrap();
    old.write_all_at(&[0xaa; 300_000], 2_000_000).unwrap();
    control.send(&chunks(ListState::Complete, rest)).unwrap();
    let wanted = control.wanted.length(batch.length);
    assert!((300_000..400_000).contains(&wanted), "{wanted}");
    send_rest(control, &batch, &roots);
    assert!(fs::read(here.into.path().join("file")).unwrap() == new);
}

#[test]
fn chunk_list_of_changing_file_is_void() {
    // Zeros, in place of copied bytes that are not zero.
    let (old, new) = (noise(LONG, 1), vec![0; LONG]);
    let here = Versions::new(&old, &old);
    let (batch, roots) = here.scan();
    let (listed, _) = list(&batch, &roots);
    let touched = File::options().write(true).open(here.source()).unwrap();
    let time = touched.metadata().unwrap().modified().unwrap();
    touched.write_all_at(&new, 0).unwrap();
    touched.set_modified(time).unwrap();
    assert_eq!(list(&batch, &roots), (Vec::new(), ListState::Void), "its version differs");
    let sink = FileSink::new(here.spec()).unwrap();
    let mut control = here.announce(&sink, &batch);
    control.send(&chunks(ListState::Going, &listed)).unwrap();
    control.send(&chunks(ListState::Void, &[])).unwrap();
    assert_eq!(control.wanted.length(batch.length), LONG as u64);
    send_rest(control, &batch, &roots);
    assert!(fs::read(here.into.path().join("file")).unwrap() == new);
}

/// A file that is sent in one piece after some of it was copied.
#[test]
fn void_chunk_list_short_file_received_in_full() {
    let old = noise(150_000, 1);
    let mut new = old.clone();
    new[140_000] ^= 1;
    new[70_000..70_100].fill(0);
    for is_told_at_once in [false, true] {
        let here = Versions::new(&old, &new);
        let (batch, roots) = here.scan();
        let (listed, _) = list(&batch, &roots);
        let sink = FileSink::new(here.spec()).unwrap();
        let mut control = here.announce(&sink, &batch);
        if is_told_at_once {
            control.send(&chunks(ListState::Void, &listed)).unwrap();
        } else {
            control.send(&chunks(ListState::Going, &listed)).unwrap();
            control.send(&chunks(ListState::Void, &[])).unwrap();
        }
        assert_eq!(control.wanted.length(batch.length), 150_000);
        let source = BatchSource::new(Arc::clone(&batch), roots, Wanted::all());
        let mut bytes = vec![0; 150_000];
        source.read(0, &mut bytes);
        let digest = *blake3::hash(&bytes).as_bytes();
        control.send(&Message::Digest(Digest { batch: 0, block: 0, digest })).unwrap();
        sink.write(0, 0, &bytes).unwrap();
        sink.found_digest(0, 0, 0..150_000, digest).unwrap();
        sink.settle(|_, _| {}).unwrap();
        sink.finish(&control.end()).unwrap();
        assert!(fs::read(here.into.path().join("file")).unwrap() == new);
    }
}

/// A sender accepts a list of limited length. With more ranges, the resuming run would fail too.
#[test]
fn scattered_differences_limit_wanted_ranges() {
    const ISLANDS: usize = 66_000;
    const EACH: usize = 32 << 10;
    let into = quick_dir();
    let size = (ISLANDS * (EACH + 1)) as u64;
    File::create(into.path().join("file")).unwrap().set_len(140 << 20).unwrap();
    let zeros = Chunk {
        length: u32::try_from(EACH).unwrap(),
        digest: *blake3::hash(&vec![0; EACH]).as_bytes().first_chunk().unwrap(),
    };
    let other = Chunk { length: 1, digest: [7; 24] };
    let file = entry("file", EntryKind::File { size, version: 1, hash: None });
    let part = ManifestPart { batch: 0, last: true, whole: false, again: false, length: size, entries: vec![file] };
    for run in 0..2 {
        let spec = ReceiveRequest {
            existing: Existing::Replace,
            differences: true,
            ..ReceiveRequest::into_directory(into.path())
        };
        let sink = FileSink::new(spec).unwrap();
        sink.sender_lists();
        let mut control = Control::begin(&sink).unwrap();
        control.send(&Message::Manifest(part.clone())).unwrap();
        assert_eq!(control.compared, [0]);
        if run == 0 {
            let some: Vec<_> = (0..1000).flat_map(|_| [zeros, other]).collect();
            (0..ISLANDS / 1000).for_each(|_| control.send(&chunks(ListState::Going, &some)).unwrap());
        }
        control.send(&chunks(ListState::Complete, &[])).unwrap();
        let (ranges, wanted) = (control.wanted.ranges(size).count(), control.wanted.length(size));
        assert!((50_000..=65_536).contains(&ranges), "run {run}: {ranges}");
        assert!(wanted < size / 5, "run {run}: {wanted} of {size}");
    }
}

#[test]
fn chunk_list_may_end_early() {
    let here = Versions::new(&noise(LONG, 1), &noise(LONG, 1));
    let (batch, roots) = here.scan();
    let sink = FileSink::new(here.spec()).unwrap();
    let mut control = here.announce(&sink, &batch);
    let (listed, _) = list(&batch, &roots);
    let first = &listed[..listed.len() / 3];
    control.send(&chunks(ListState::Complete, first)).unwrap();
    let rest = LONG as u64 - first.iter().map(|chunk| u64::from(chunk.length)).sum::<u64>();
    assert_eq!(control.wanted.length(batch.length), rest);
    send_rest(control, &batch, &roots);
    assert!(fs::read(here.into.path().join("file")).unwrap() == noise(LONG, 1));
}

/// Copied ranges are on record like received ones: the next run does not even need the old version.
#[test]
fn interrupted_run_keeps_copied_ranges() {
    let new = [noise(1_000_000, 2), noise(LONG, 1)].concat();
    let here = Versions::new(&noise(LONG, 1), &new);
    let (batch, roots) = here.scan();
    let wanted = {
        let sink = FileSink::new(here.spec()).unwrap();
        let mut control = here.announce(&sink, &batch);
        control.send(&chunks(ListState::Complete, &list(&batch, &roots).0)).unwrap();
        sink.settle(|_, _| {}).unwrap();
        control.wanted.length(batch.length)
    };
    assert!((1_000_000..1_100_000).contains(&wanted), "{wanted}");
    fs::remove_file(here.into.path().join("file")).unwrap();
    let done = here.transfer();
    assert_eq!((done.wanted, done.outcome.altered), (wanted, 0));
}

/// A run that is interrupted before the differences are sent, and a second one that finds another old version.
#[test]
fn resume_uses_staged_and_local_ranges() {
    let new = [noise(1_000_000, 2), noise(LONG, 1), noise(1_000_000, 3)].concat();
    let here = Versions::new(&noise(LONG, 1), &new);
    let (batch, roots) = here.scan();
    {
        let sink = FileSink::new(here.spec()).unwrap();
        let mut control = here.announce(&sink, &batch);
        control.send(&chunks(ListState::Complete, &list(&batch, &roots).0)).unwrap();
        let source = BatchSource::new(Arc::clone(&batch), Arc::clone(&roots), control.wanted.clone());
        (0..8).for_each(|block| send_block(&mut control, &source, 0, block, true).unwrap());
    }
    fs::write(here.into.path().join("file"), [noise(LONG, 9), noise(1_000_000, 3)].concat()).unwrap();
    let done = here.transfer();
    let rest = 1_000_000 - 8 * BLOCK as u64;
    assert!((rest..rest + 100_000).contains(&done.wanted), "{}", done.wanted);
}

#[test]
fn differences_of_many_files_in_one_batch() {
    let (from, into) = (quick_dir(), quick_dir());
    let mut least = 0;
    for number in 0..30_u64 {
        let size = 150_000 + 1000 * usize::try_from(number).unwrap();
        let write = |directory: &Path, bytes: &[u8]| fs::write(directory.join(number.to_string()), bytes).unwrap();
        write(from.path(), &noise(size, number));
        match number % 3 {
            0 => write(into.path(), &[noise(size, number), vec![1]].concat()),
            1 => write(into.path(), &noise(size / 2, number)),
            _ => least += size,
        }
    }
    let spec = ReceiveRequest {
        existing: Existing::Replace,
        modes: Modes::Exact,
        differences: true,
        ..ReceiveRequest::into_directory(into.path())
    };
    let paths: Vec<_> = (0..30).map(|number| from.path().join(number.to_string())).collect();
    let done = transfer_as(&paths, spec, 1, &mut |_| {}).unwrap();
    assert_same(from.path(), into.path());
    let halves: usize = (1..30).step_by(3).map(|number| (150_000 + 1000 * number) / 2).sum();
    let (least, wanted) = (least as u64, done.wanted);
    assert!((least..least + halves as u64 + 20 * (32 << 10)).contains(&wanted), "{wanted} of {least}");
}

#[test]
fn unexpected_chunks_end_the_transfer() {
    let here = Versions::new(&noise(LONG, 1), &noise(LONG, 1));
    let (batch, roots) = here.scan();
    let (listed, _) = list(&batch, &roots);
    let long = Chunk { length: u32::try_from(LONG).unwrap(), digest: [0; 24] };
    let of = |batch, entry| Message::Chunks(Chunks { batch, entry, state: ListState::Going, chunks: vec![] });
    let cases: [(&str, Vec<Message>); 5] = [
        ("another batch", vec![of(1, 0)]),
        ("another entry", vec![of(0, 1)]),
        ("after the end", vec![chunks(ListState::Complete, &listed), chunks(ListState::Going, &[])]),
        ("beyond the end of the file", vec![chunks(ListState::Going, &listed), chunks(ListState::Going, &listed[..1])]),
        ("longer than the file", vec![chunks(ListState::Going, &[long, listed[0]])]),
    ];
    for (name, messages) in cases {
        let sink = FileSink::new(here.spec()).unwrap();
        let mut control = here.announce(&sink, &batch);
        let (last, first) = messages.split_last().unwrap();
        first.iter().for_each(|message| control.send(message).unwrap());
        let refused = control.send(last);
        assert!(matches!(refused, Err(FilesError::Protocol { .. })), "{name}: {refused:?}");
        sink.abandon(true).unwrap();
    }
}
