//! Messages on flow 0: layouts byte by byte, limits, and invalid input from a peer.

use std::num::NonZeroU64;

use downpour_store::messages::{
    Chunk, Chunks, Complete, Digest, HostPressure, ListChunks, ListState, MAX_MESSAGE, MAX_XATTRS, ManifestPart,
    Message, MessageError, MessageReader, RootHash, RootHasher, Stored, StoredEntry, TransferEnd, UnverifiedFiles,
    Void, WantedPart, manifest_parts, wants,
};
use downpour_store::{
    Attributes, DeviceNumber, Entry, EntryKind, Extra, IdKind, IdName, MAX_PATH, Mtime, Notice, NoticeKind, Owner,
    SkipReason, Skipped, SourceId, Special, VoidReason, Wanted, Xattr,
};
use hostile::fuzz_messages;

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).unwrap();
    bytes
}

fn read(mut bytes: &[u8]) -> Result<Option<Message>, MessageError> {
    MessageReader::new().next(&mut bytes)
}

fn examples() -> Vec<(Message, String)> {
    let mtime = Mtime { seconds: -2, nanoseconds: 999_999_999 };
    let entry = |path: &str, kind| Entry { path: path.into(), kind, mode: 0o755, mtime, extra: Extra::default() };
    let entries = vec![
        entry("d", EntryKind::Directory),
        entry("d/f", EntryKind::File { size: 0x1_0000_0002, version: 9, hash: None }),
        entry("d/l", EntryKind::Symlink { target: b"../x".to_vec() }),
        entry("d/h", EntryKind::HardLink { target: b"d/f".to_vec() }),
        entry("d/c", EntryKind::File { size: 0, version: 8, hash: Some([2; 32]) }),
    ];
    let mode_and_time = "01edfffffffffffffffe3b9ac9ff";
    let twos = "02".repeat(32);
    let manifest = [
        "000000bb010000000701",
        "0000000100000002",
        &format!("02{mode_and_time}000164"),
        &format!("01{mode_and_time}0003642f6600000001000000020000000000000009"),
        &format!("03{mode_and_time}0003642f6c00042e2e2f78"),
        &format!("04{mode_and_time}0003642f680003642f66"),
        &format!("05{mode_and_time}0003642f6300000000000000000000000000000008{twos}"),
    ];
    let part = ManifestPart { batch: 7, last: true, whole: false, again: false, length: 0x1_0000_0002, entries };
    let ones = "01".repeat(32);
    vec![
        (Message::Manifest(part), manifest.concat()),
        (Message::Digest(Digest { batch: 1, block: 2, digest: [1; 32] }), format!("00000029020000000100000002{ones}")),
        (Message::Void(Void { batch: 1, entry: 2, reason: VoidReason::Shrank }), "0000000a03000000010000000202".into()),
        (
            Message::Skipped(Skipped { path: b"a/b".to_vec(), reason: SkipReason::SpecialFile }),
            "0000000704030003612f62".into(),
        ),
        (
            Message::End(TransferEnd { batches: 1, entries: 2, bytes: 3, skipped: 4, root: RootHash([1; 32]) }),
            format!("0000003d0500000001000000000000000200000000000000030000000000000004{ones}"),
        ),
        (Message::Begin(SourceId([3; 16])), format!("0000001107{}", "03".repeat(16))),
        (
            Message::Top(Attributes { mode: 0o755, mtime, extra: Extra::default() }),
            format!("0000000f08{mode_and_time}"),
        ),
        (Message::Accepted, "0000000141".into()),
        (
            Message::Wants(WantedPart { batch: 1, last: true, ranges: vec![2..3, 4..0x0100] }),
            "000000264200000001010000000000000002000000000000000300000000000000040000000000000100".into(),
        ),
        (Message::Notice(Notice { kind: NoticeKind::Permission, path: b"a".to_vec() }), "000000054410000161".into()),
        (Message::Limit(NonZeroU64::new(0x0102)), "00000009450000000000000102".into()),
        (Message::Limit(None), "00000009450000000000000000".into()),
        (
            Message::Complete(Complete { files: 1, bytes: 3, present: 2, failed: 3, unchecked: 0 }),
            "0000002143000000000000000100000000000000030000000000000002".to_owned() + "0000000000000003",
        ),
        (
            Message::Complete(Complete { files: 1, bytes: 3, present: 2, failed: 3, unchecked: 1 }),
            "0000002943000000000000000100000000000000030000000000000002".to_owned()
                + "0000000000000003"
                + "0000000000000001",
        ),
        (Message::Strain(HostPressure { memory: true, overflowed: 0x0102 }), "0000000a47010000000000000102".into()),
        (
            Message::Stored(Stored {
                batch: 1,
                last: true,
                entries: vec![StoredEntry { entry: 2, version: 3 }, StoredEntry { entry: 4, version: 5 }],
            }),
            "0000001e490000000101000000020000000000000003000000040000000000000005".into(),
        ),
        (Message::AllStored, "000000014a".into()),
        (Message::Removed(6), "000000090c0000000000000006".into()),
        (
            Message::Untouched(UnverifiedFiles { unchanged: 4, kept: 5 }),
            "000000114600000000000000040000000000000005".into(),
        ),
    ]
}

/// Messages that are only sent on request.
fn examples_on_request() -> Vec<(Message, String)> {
    let mtime = Mtime { seconds: -2, nanoseconds: 999_999_999 };
    let entry = |path: &str, kind| Entry { path: path.into(), kind, mode: 0o755, mtime, extra: Extra::default() };
    let owner = Some(Owner { user: 0x0102, group: 0x0304 });
    let xattr = |name: &str, value: &[u8]| Xattr { name: name.into(), value: value.into() };
    let extra = Extra { owner, xattrs: vec![xattr("a", b""), xattr("user.b", b"\0x")] };
    let device = EntryKind::Special(Special::BlockDevice(DeviceNumber { major: 8, minor: 1 }));
    let owned = vec![
        Entry { extra: extra.clone(), ..entry("o", EntryKind::Symlink { target: b"x".to_vec() }) },
        Entry { extra: Extra { owner, ..Extra::default() }, ..entry("b", device) },
        entry("p", EntryKind::Special(Special::Pipe)),
    ];
    let extra_bytes = "0100000102000003040002016100000000".to_owned() + "06757365722e62000000020078";
    let mode_and_time = "01edfffffffffffffffe3b9ac9ff";
    let special_files = [
        "0000008201".to_owned(),
        "000000080100000000".to_owned() + "00000000",
        format!("83{mode_and_time}00016f000178{extra_bytes}"),
        format!("86{mode_and_time}000162040000000800000001") + "0100000102000003040000",
        format!("06{mode_and_time}000170010000000000000000"),
    ];
    vec![
        (
            Message::Manifest(ManifestPart {
                batch: 8,
                last: true,
                whole: false,
                again: false,
                length: 0,
                entries: owned,
            }),
            special_files.concat(),
        ),
        (Message::Top(Attributes { mode: 0o755, mtime, extra }), format!("0000002d0a{mode_and_time}{extra_bytes}")),
        (
            Message::ListChunks(ListChunks { batch: 1, entries: vec![2, 0x0100] }),
            "0000000d48000000010000000200000100".into(),
        ),
        (
            Message::Chunks(Chunks {
                batch: 1,
                entry: 2,
                state: ListState::Complete,
                chunks: vec![Chunk { length: 0x0102, digest: [1; 24] }],
            }),
            "000000260b0000000100000002010000".to_owned() + "0102" + &"01".repeat(24),
        ),
        (
            Message::IdName(IdName { kind: IdKind::Group, id: 0x0304, name: b"ann".to_vec() }),
            "0000000a0902".to_owned() + "0000030403616e6e",
        ),
    ]
}

#[test]
fn message_layouts_match_document() {
    for (message, bytes) in examples().into_iter().chain(examples_on_request()) {
        assert_eq!(hex(&encoded(&message)), bytes, "{message:?}");
        assert_eq!(read(&encoded(&message)).unwrap(), Some(message));
    }
}

#[test]
fn messages_survive_any_chunking() {
    let messages: Vec<_> = examples().into_iter().chain(examples_on_request()).map(|(m, _)| m).collect();
    let stream: Vec<u8> = messages.iter().flat_map(encoded).collect();
    for size in 1..=stream.len() {
        let mut reader = MessageReader::new();
        let mut got = Vec::new();
        for mut chunk in stream.chunks(size) {
            while let Some(message) = reader.next(&mut chunk).unwrap() {
                got.push(message);
            }
        }
        assert_eq!(got, messages, "chunks of {size}");
    }
}

#[test]
fn message_bodies_of_wrong_length_are_rejected() {
    for (message, _) in examples().into_iter().chain(examples_on_request()) {
        let bytes = encoded(&message);
        let kind = bytes[4];
        for length in 1..bytes.len() - 4 {
            let mut cut = (length as u32).to_be_bytes().to_vec();
            cut.extend(&bytes[4..4 + length]);
            // A part with fewer entries, ranges or chunks is also a valid message.
            match read(&cut) {
                Err(MessageError::Truncated(k) | MessageError::Field(k, _)) => assert_eq!(k, kind),
                Ok(Some(
                    Message::Manifest(_)
                    | Message::Wants(_)
                    | Message::Chunks(_)
                    | Message::ListChunks(_)
                    | Message::Stored(_),
                )) => {}
                // Messages of earlier releases end here.
                Ok(Some(Message::Complete(Complete { unchecked: 0, .. }))) => assert_eq!(length, 33),
                other => panic!("{message:?} cut to {length}: {other:?}"),
            }
        }
        let mut longer = (bytes.len() as u32 - 4 + 1).to_be_bytes().to_vec();
        longer.extend(&bytes[4..]);
        longer.push(0);
        assert_eq!(read(&longer), Err(MessageError::Truncated(kind)), "{message:?}");
    }
}

#[test]
fn claimed_lengths_allocate_nothing() {
    for claimed in [0, MAX_MESSAGE as u32 + 1, u32::MAX] {
        assert_eq!(read(&claimed.to_be_bytes()), Err(MessageError::Length(claimed.into())));
    }
    let mut reader = MessageReader::new();
    let mut start: &[u8] = &[0, 0x10, 0, 0, 1, 0];
    assert_eq!(reader.next(&mut start), Ok(None));
    assert_eq!(reader.pending(), 6, "only the received bytes are held");
    // A 10 MB path does not fit its length field, nor a message.
    let path = vec![b'a'; 10 << 20];
    let message = Message::Skipped(Skipped { path: path.clone(), reason: SkipReason::Unreadable });
    assert_eq!(message.encode(&mut Vec::new()), Err(MessageError::Field(4, "name")));
    let mut forged = (path.len() as u32 + 4).to_be_bytes().to_vec();
    forged.extend([4, 1, 0xff, 0xff]);
    forged.extend(&path);
    assert_eq!(read(&forged), Err(MessageError::Length(path.len() as u64 + 4)));
    for length in [0_u16, MAX_PATH as u16 + 1, u16::MAX] {
        let mut body = vec![4, 1];
        body.extend(length.to_be_bytes());
        body.extend(vec![b'a'; usize::from(length)]);
        let mut forged = (body.len() as u32).to_be_bytes().to_vec();
        forged.extend(body);
        assert_eq!(read(&forged), Err(MessageError::Field(4, "name")), "length {length}");
    }
}

#[test]
fn empty_or_repeated_lists_are_rejected() {
    for entries in [vec![], vec![2, 2], vec![3, 2]] {
        let asked = Message::ListChunks(ListChunks { batch: 1, entries: entries.clone() });
        assert_eq!(asked.encode(&mut Vec::new()), Err(MessageError::Field(72, "entry")));
        let body = [1].into_iter().chain(entries).flat_map(u32::to_be_bytes);
        let body: Vec<u8> = [72].into_iter().chain(body).collect();
        let forged = [&(body.len() as u32).to_be_bytes()[..], &body].concat();
        assert_eq!(read(&forged), Err(MessageError::Field(72, "entry")));
    }
    let chunk = Chunk { length: 0, digest: [1; 24] };
    let empty = Message::Chunks(Chunks { batch: 1, entry: 2, state: ListState::Going, chunks: vec![chunk] });
    assert_eq!(empty.encode(&mut Vec::new()), Err(MessageError::Field(11, "length")));
    let forged = [&[0, 0, 0, 38, 11][..], &[0, 0, 0, 1, 0, 0, 0, 2, 0], &[0; 4], &[1; 24]].concat();
    assert_eq!(read(&forged), Err(MessageError::Field(11, "length")));
    let forged = [&[0, 0, 0, 10, 11][..], &[0, 0, 0, 1, 0, 0, 0, 2, 3]].concat();
    assert_eq!(read(&forged), Err(MessageError::Field(11, "state")));
}

#[test]
fn fields_out_of_range_are_rejected_for_good() {
    let (manifest, _) = examples().swap_remove(0);
    let good = encoded(&manifest);
    for (at, value, field) in [(9, 8, "flag"), (18, 9, "kind"), (19, 0x10, "mode"), (29, 0xff, "time")] {
        let mut bad = good.clone();
        bad[at] = value;
        assert_eq!(read(&bad), Err(MessageError::Field(1, field)), "byte {at}");
    }
    assert_eq!(read(&[0, 0, 0, 1, 6]), Ok(Some(Message::Scanned)));
    for unknown in [0, 13, 64, 75, 99, 255] {
        assert_eq!(read(&[0, 0, 0, 1, unknown]), Err(MessageError::UnknownType(unknown)));
    }
    let mut reader = MessageReader::new();
    assert!(reader.next(&mut &[0, 0, 0, 1, 99][..]).is_err());
    assert_eq!(reader.next(&mut &encoded(&Message::Accepted)[..]), Err(MessageError::UnknownType(99)));
}

/// Everything that a receiver may reject, and that a sender therefore must not make.
#[test]
fn extras_have_one_form_and_limits() {
    let entry =
        |extra| Entry { path: b"a".to_vec(), kind: EntryKind::Directory, mode: 0o755, mtime: Mtime::default(), extra };
    let message = |extra| {
        Message::Manifest(ManifestPart {
            batch: 0,
            last: true,
            whole: false,
            again: false,
            length: 0,
            entries: vec![entry(extra)],
        })
    };
    let xattr = |name: &str, length| Xattr { name: name.into(), value: vec![7; length] };
    let xattrs = |xattrs| Extra { xattrs, ..Extra::default() };
    let largest = xattrs(vec![xattr("a", MAX_XATTRS / 2 - 65), xattr("b", MAX_XATTRS / 2 - 65)]);
    assert_eq!(largest.size(), MAX_XATTRS);
    assert_eq!(read(&encoded(&message(largest.clone()))).unwrap(), Some(message(largest)));
    for bad in [
        xattrs(vec![xattr("a", MAX_XATTRS - 64)]),
        xattrs(vec![xattr("b", 0), xattr("a", 0)]),
        xattrs(vec![xattr("a", 0), xattr("a", 1)]),
        xattrs(vec![xattr("", 0)]),
        xattrs(vec![xattr("a\0", 0)]),
        xattrs(vec![xattr(&"a".repeat(256), 0)]),
    ] {
        assert!(message(bad.clone()).encode(&mut Vec::new()).is_err(), "{bad:?}");
    }
    // The same from a sender without checks: the second name is made equal to the first.
    let mut same = encoded(&message(xattrs(vec![xattr("a", 0), xattr("b", 0)])));
    let at = same.iter().rposition(|byte| *byte == b'b').unwrap();
    same[at] = b'a';
    assert_eq!(read(&same), Err(MessageError::Field(1, "extended attributes")));
    // An empty extra, and an invalid device.
    let mut empty = encoded(&message(Extra { owner: Some(Owner { user: 0, group: 0 }), ..Extra::default() }));
    let length = empty.len();
    empty.truncate(length - 11);
    empty.extend([0, 0, 0]);
    empty[3] -= 8;
    assert_eq!(read(&empty), Err(MessageError::Field(1, "extra")));
    let mut top = encoded(&Message::Top(Attributes {
        mode: 0o755,
        mtime: Mtime::default(),
        extra: Extra { owner: Some(Owner { user: 0, group: 0 }), ..Extra::default() },
    }));
    let length = top.len();
    top.truncate(length - 11);
    top.extend([0, 0, 0]);
    top[3] -= 8;
    assert_eq!(read(&top), Err(MessageError::Field(10, "extra")));
    let pipe = Entry { kind: EntryKind::Special(Special::Pipe), ..entry(Extra::default()) };
    let mut pipe = encoded(&Message::Manifest(ManifestPart {
        batch: 0,
        last: true,
        whole: false,
        again: false,
        length: 0,
        entries: vec![pipe],
    }));
    *pipe.last_mut().unwrap() = 1;
    assert_eq!(read(&pipe), Err(MessageError::Field(1, "device")));
    let name = |name: &[u8]| Message::IdName(IdName { kind: IdKind::User, id: 1, name: name.into() });
    for bad in [&b""[..], b"a\0b", &[b'a'; 256]] {
        assert!(name(bad).encode(&mut Vec::new()).is_err(), "{bad:?}");
    }
}

#[test]
fn failed_encoding_leaves_buffer_unchanged() {
    let mut out = vec![1, 2, 3];
    let entry = Entry {
        path: b"a".to_vec(),
        kind: EntryKind::Directory,
        mode: 0o10_000,
        mtime: Mtime::default(),
        extra: Extra::default(),
    };
    let part = ManifestPart { batch: 0, last: true, whole: false, again: false, length: 0, entries: vec![entry] };
    assert_eq!(Message::Manifest(part).encode(&mut out), Err(MessageError::Field(1, "mode")));
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn manifest_parts_hold_64_kib_each_entry_once() {
    let entry = |n: usize| Entry {
        path: format!("{n:0>4000}").into_bytes(),
        kind: EntryKind::File { size: 1, version: 0, hash: None },
        mode: 0o644,
        mtime: Mtime::default(),
        extra: Extra::default(),
    };
    for count in [0, 1, 15, 16, 17, 100] {
        let entries: Vec<_> = (0..count).map(entry).collect();
        let parts: Vec<_> = manifest_parts(3, count as u64, &entries).collect();
        assert!(parts.iter().all(|p| encoded(&Message::Manifest(p.clone())).len() <= (64 << 10) + 18));
        assert_eq!(parts.iter().position(|p| p.last), Some(parts.len() - 1));
        assert_eq!(parts.len(), count.div_ceil(16).max(1), "{count} entries");
        assert_eq!(parts.into_iter().flat_map(|p| p.entries).collect::<Vec<_>>(), entries);
    }
}

#[test]
fn root_depends_on_bytes_and_order() {
    let root = |messages: &[&[u8]]| {
        let mut hasher = RootHasher::new();
        messages.iter().for_each(|m| hasher.add(m));
        hasher.root()
    };
    assert_eq!(root(&[b"a", b"b"]), root(&[b"a", b"b"]));
    assert_ne!(root(&[b"a", b"b"]), root(&[b"b", b"a"]));
    assert_ne!(root(&[b"a"]), root(&[b"a", b"b"]));
}

/// Replays the seeds of the fuzz target, whole and with every byte damaged.
#[test]
fn message_corpus_is_replayed() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/messages");
    let mut seeds = 0;
    for item in std::fs::read_dir(corpus).unwrap() {
        let seed = std::fs::read(item.unwrap().path()).unwrap();
        fuzz_messages(&seed);
        for at in 0..seed.len() {
            for flip in [1, 0x80, 0xff] {
                let mut damaged = seed.clone();
                damaged[at] ^= flip;
                fuzz_messages(&damaged);
            }
            fuzz_messages(&seed[..at]);
        }
        seeds += 1;
    }
    assert!(seeds >= 4, "{seeds} seeds");
}

#[test]
fn long_wants_are_split_into_messages() {
    let mut wanted = Wanted::none();
    (0..10_000).for_each(|at| wanted.push(at * 3..at * 3 + 2));
    let parts: Vec<_> = wants(3, &wanted, 30_000).collect();
    assert_eq!(parts.iter().map(|part| part.last).collect::<Vec<_>>(), [false, false, true]);
    let mut joined = Wanted::none();
    for range in parts.into_iter().flat_map(|part| part.ranges) {
        joined.push_received(range, 30_000).unwrap();
    }
    assert_eq!(joined, wanted);
    assert_eq!(
        wants(0, &Wanted::none(), 7).collect::<Vec<_>>(),
        [WantedPart { batch: 0, last: true, ranges: Vec::new() }]
    );
    assert_eq!(
        wants(0, &Wanted::all(), 7).collect::<Vec<_>>(),
        [WantedPart { batch: 0, last: true, ranges: Vec::from_iter(std::iter::once(0..7)) }]
    );
}
