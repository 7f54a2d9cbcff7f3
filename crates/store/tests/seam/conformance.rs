//! The contract of every pair of stores.

use std::collections::HashMap;
use std::sync::Arc;

use downpour_store::{
    Compare, Content, EntryKind, Existing, FilesError, Filter, MAX_BATCH_ENTRIES, Modes, Node, NoticeKind,
    ReceiveRequest, SkipReason, SourceOptions, SourceOutcome, Versions, VoidReason, Wanted,
};

use crate::driver::{BLOCK, Session, Way, copy, run, transfer, transfer_with};
use crate::places::{SourcePlace, TargetPlace, between_all, sources, targets};
use crate::trees::{Tree, bytes, file, files, sample, small, time};

/// Puts a tree at each end.
fn with(from: &dyn SourcePlace, source: &Tree, to: &dyn TargetPlace, target: &Tree) {
    from.put(source);
    to.put(target);
}

fn kinds(notices: &[downpour_store::Notice], kind: NoticeKind) -> Vec<String> {
    let of_kind = notices.iter().filter(|notice| notice.kind == kind);
    of_kind.map(|notice| String::from_utf8_lossy(&notice.path).into_owned()).collect()
}

#[test]
fn tree_arrives_and_second_run_wants_nothing() {
    between_all(|from, to| {
        let tree = sample();
        with(from, &tree, to, &Tree::new());
        let done = transfer(&*from.source(), &*to.target(), 1).unwrap();
        assert_eq!(to.tree(), tree);
        assert_eq!((done.wanted, done.outcome.files, done.outcome.bytes), (bytes(&tree), files(&tree), bytes(&tree)));
        assert_eq!((done.outcome.unchanged, done.outcome.failed_count), (0, 0));
        assert_eq!(done.placed.len() as u64, files(&tree), "each file is reported once");
        assert_eq!((done.outcome.directories, done.outcome.symlinks), (6, 2));
        assert_eq!(to.top(), from.top());
        let again = transfer(&*from.source(), &*to.target(), 2).unwrap();
        assert_eq!(to.tree(), tree);
        assert_eq!((again.wanted, again.placed.len(), again.notices.len()), (0, 0, 0));
        assert_eq!((again.outcome.unchanged, again.outcome.present), (files(&tree), bytes(&tree)));
    });
}

#[test]
fn local_copy_equals_sent_tree() {
    between_all(|from, to| {
        // Above a megabyte, the kernel copies if it can; zeros are holes.
        let mut tree = sample();
        tree.insert(b"large".to_vec(), file(5 << 20, 77, 0o640, 9));
        let zeros = Content::File(vec![0; 3 << 20].into());
        tree.insert(b"zeros".to_vec(), Node { content: zeros, ..file(0, 0, 0o600, 8) });
        with(from, &tree, to, &Tree::new());
        let done = copy(&*from.source(), &*to.target(), 1).unwrap();
        assert!(to.tree() == tree);
        assert_eq!((done.wanted, done.outcome.files, done.outcome.bytes), (bytes(&tree), files(&tree), bytes(&tree)));
        assert_eq!((done.placed.len() as u64, done.outcome.failed_count), (files(&tree), 0));
        let again = copy(&*from.source(), &*to.target(), 2).unwrap();
        assert_eq!((again.wanted, again.outcome.unchanged), (0, files(&tree)));
    });
}

#[test]
fn file_changed_before_local_copy_is_voided() {
    between_all(|from, to| {
        let mut tree = sample();
        tree.insert(b"large".to_vec(), file(3 << 20, 77, 0o640, 9));
        with(from, &tree, to, &Tree::new());
        let changed: Tree = [(b"large".to_vec(), file(3 << 20, 78, 0o640, 10))].into();
        let (source, target) = (from.source(), to.target());
        let done = run((&*source, &*target), Way::Copied, 1, &mut |_| from.put(&changed)).unwrap();
        assert!(done.outcome.failed_count > 0 && !to.tree().contains_key(&b"large"[..]), "{:?}", done.outcome);
        assert!(to.tree().iter().all(|(path, node)| tree[path] == *node));
    });
}

#[test]
fn batches_are_consistent_and_ordered() {
    let orders = sources().into_iter().map(|from| {
        from.put(&sample());
        let source = from.source();
        let (mut entries, mut order, mut is_last) = (Tree::new(), Vec::new(), false);
        while let Some(batch) = source.next_batch().unwrap() {
            assert!(!is_last && batch.entries.len() <= MAX_BATCH_ENTRIES && batch.skipped.is_empty());
            is_last = batch.is_last;
            for entry in batch.entries {
                if let Some(slash) = entry.path.iter().rposition(|byte| *byte == b'/') {
                    assert!(entries.contains_key(&entry.path[..slash]));
                }
                let known = &sample()[&entry.path];
                assert_eq!((entry.mode, entry.mtime), (known.mode, known.mtime), "{entry:?}");
                match (&entry.kind, &known.content) {
                    (EntryKind::File { size, hash: None, .. }, Content::File(bytes)) => {
                        assert_eq!(*size, bytes.len() as u64)
                    }
                    (EntryKind::Symlink { target }, Content::Symlink(known)) => assert_eq!(target, known),
                    (EntryKind::Directory, Content::Directory) => {}
                    other => panic!("{other:?}"),
                }
                order.push(entry.path.clone());
                entries.insert(entry.path, known.clone());
            }
        }
        assert_eq!(entries, sample());
        assert!(is_last);
        order
    });
    let orders: Vec<_> = orders.collect();
    assert!(orders.iter().all(|order| *order == orders[0]), "any store walks in the same order: {orders:?}");
}

#[test]
fn object_reads_equal_at_any_offset() {
    for from in sources() {
        let tree: Tree = [("a", file(3000, 1, 0o644, 1)), ("b", file(0, 2, 0o644, 2)), ("c", file(2000, 3, 0o644, 3))]
            .map(|(path, node)| (path.as_bytes().to_vec(), node))
            .into();
        from.put(&tree);
        let source = from.source();
        let batch = Arc::new(source.next_batch().unwrap().unwrap());
        let all: Vec<u8> = [crate::trees::noise(3000, 1), crate::trees::noise(2000, 3)].concat();
        let mut wanted = Wanted::none();
        [10..20, 2990..3010, 4999..5000].into_iter().for_each(|range| wanted.push(range));
        let expected: Vec<u8> = [&all[10..20], &all[2990..3010], &all[4999..]].concat();
        let object = source.object(Arc::clone(&batch), wanted, HashMap::new());
        assert_eq!((object.length(), object.current()), (31, Some(&b"a"[..])));
        for (start, end) in [(0, 31), (5, 25), (30, 31), (0, 1), (19, 20)] {
            let mut found = vec![0xaa; end - start + 3];
            object.read(start as u64, &mut found);
            let beyond = (end + 3).min(31);
            assert_eq!(found[..beyond - start], expected[start..beyond], "{start}..{end}");
            assert!(found[beyond - start..].iter().all(|byte| *byte == 0));
        }
        assert_eq!(object.current(), Some(&b"c"[..]));
        assert_eq!([0, 15, 20, 21, 31].map(|bytes| object.files_within(bytes)), [0, 0, 1, 1, 2]);
        assert_eq!(object.take_voided(), []);
        let (entry, _) = object.entry_again(0).unwrap();
        assert_eq!((entry.path, entry.mtime, entry.mode), (b"a".to_vec(), time(1), 0o644));
    }
}

#[test]
fn item_arrives_under_its_own_name() {
    between_all(|from, to| {
        with(from, &small(), to, &Tree::new());
        let spec = ReceiveRequest { modes: to.spec().modes, ..ReceiveRequest::into_directory(to.spec().target) };
        transfer(&*from.item("dir"), &*to.target_with(spec.clone()).unwrap(), 1).unwrap();
        transfer(&*from.item("other"), &*to.target_with(spec.clone()).unwrap(), 1).unwrap();
        assert_eq!(to.tree(), small());
        // A finished run has no claim on the name any more.
        let error = transfer(&*from.item("other"), &*to.target_with(spec).unwrap(), 1).unwrap_err();
        let FilesError::TargetExists { names } = error else { panic!("{error}") };
        assert!(names[0].ends_with("tree/other") && names.len() == 1);
    });
}

/// Targets with another version, and their treatment.
#[test]
fn top_keeps_mode_without_exact_modes() {
    between_all(|from, to| {
        with(from, &small(), to, &Tree::new());
        let (mode, _) = to.top();
        let target = to.target_with(ReceiveRequest { modes: Modes::Masked, ..to.spec() }).unwrap();
        transfer(&*from.source(), &*target, 1).unwrap();
        assert_eq!(to.top(), (mode, from.top().1));
    });
}

#[test]
fn existing_option_is_followed() {
    let newer = ("dir/file", file(10, 9, 0o640, 90));
    let older = ("other", file(10, 8, 0o640, 1));
    let target: Tree = [("dir", Node::directory(0o755, time(1))), newer.clone(), older.clone()]
        .map(|(path, node)| (path.as_bytes().to_vec(), node))
        .into();
    let kept = |names: &[&str]| {
        let mut tree = small();
        for (path, node) in [&newer, &older].into_iter().filter(|(path, _)| names.contains(path)) {
            tree.insert(path.as_bytes().to_vec(), node.clone());
        }
        tree
    };
    between_all(|from, to| {
        from.put(&small());
        for (existing, names) in [
            (Existing::Skip, &["dir/file", "other"][..]),
            (Existing::KeepNewer, &["dir/file"]),
            (Existing::Replace, &[]),
        ] {
            to.put(&target);
            let target = to.target_with(ReceiveRequest { existing, ..to.spec() }).unwrap();
            let done = transfer(&*from.source(), &*target, 1).unwrap();
            assert_eq!(to.tree(), kept(names), "{existing:?}");
            assert_eq!(kinds(&done.notices, NoticeKind::Kept), names, "{existing:?}");
        }
        to.take("other");
        let target = to.target_with(ReceiveRequest { existing: Existing::UpdateOnly, ..to.spec() }).unwrap();
        let done = transfer(&*from.source(), &*target, 1).unwrap();
        assert!(!to.tree().contains_key(&b"other"[..]) && done.wanted == 0);
    });
}

#[test]
fn changed_attributes_want_no_bytes() {
    between_all(|from, to| {
        with(from, &small(), to, &small());
        let mut other = small();
        other.get_mut(&b"other"[..]).unwrap().mode = 0o640;
        other.get_mut(&b"dir"[..]).unwrap().mtime = time(77);
        to.put(&other);
        let done = transfer(&*from.source(), &*to.target(), 1).unwrap();
        assert_eq!((done.wanted, to.tree()), (0, small()));
    });
}

#[test]
fn changed_content_found_by_time_or_digest() {
    between_all(|from, to| {
        // Longer than one read for a digest.
        let long = |seed, number| Tree::from([(b"long".to_vec(), file(150_000, seed, 0o644, number))]);
        with(from, &long(1, 1), to, &long(2, 2));
        let done = transfer(&*from.source(), &*to.target(), 1).unwrap();
        assert_eq!((done.wanted, to.tree()), (150_000, long(1, 1)), "its time differs");
        to.put(&long(2, 1));
        let done = transfer(&*from.source(), &*to.target(), 1).unwrap();
        assert_eq!((done.wanted, to.tree()), (0, long(2, 1)), "size and time are equal");
        let by_digest = || {
            let spec = ReceiveRequest { compare: Compare::Checksum, ..to.spec() };
            let options = SourceOptions { hash: true, ..SourceOptions::default() };
            transfer(&*from.source_with(options).unwrap(), &*to.target_with(spec).unwrap(), 1).unwrap()
        };
        assert_eq!((by_digest().wanted, to.tree()), (150_000, long(1, 1)));
        assert_eq!(by_digest().wanted, 0);
    });
}

#[test]
fn differences_used_if_both_stores_support_them() {
    between_all(|from, to| {
        let (new, mut old) = (crate::trees::noise(300_000, 1), crate::trees::noise(300_000, 1));
        old[150_000] ^= 1;
        let version = |bytes: &[u8], number| Tree::from([(b"long".to_vec(), Node::file(bytes, 0o644, time(number)))]);
        with(from, &version(&new, 1), to, &version(&old, 2));
        let spec = ReceiveRequest { differences: true, ..to.spec() };
        let done = transfer(&*from.source(), &*to.target_with(spec).unwrap(), 1).unwrap();
        assert_eq!(to.tree(), version(&new, 1));
        let tells = (from.store(), to.store()) == ("local", "local");
        assert!(if tells { done.wanted < 50_000 } else { done.wanted == 300_000 }, "{}", done.wanted);
    });
}

#[test]
fn safe_links_skips_links_out_of_tree() {
    between_all(|from, to| {
        let mut tree = small();
        tree.insert(b"dir/out".to_vec(), Node::symlink("../../elsewhere", time(4)));
        with(from, &tree, to, &Tree::new());
        let spec = ReceiveRequest { safe_links: true, ..to.spec() };
        let done = transfer(&*from.source(), &*to.target_with(spec).unwrap(), 1).unwrap();
        assert_eq!((to.tree(), done.outcome.unsafe_links), (small(), 1));
        transfer(&*from.source(), &*to.target(), 1).unwrap();
        assert_eq!(to.tree(), tree);
    });
}

#[test]
fn unwanted_bytes_change_nothing() {
    between_all(|from, to| {
        let other = Tree::from([(b"other".to_vec(), file(3, 3, 0o644, 3))]);
        with(from, &small(), to, &other);
        // First some of a batch are wanted, then none.
        for wanted in [3000, 0] {
            let source = from.source();
            let target = to.target_with(ReceiveRequest { existing: Existing::Skip, ..to.spec() }).unwrap();
            let mut session = Session::new(&*source, &*target, 1);
            session.begin().unwrap();
            let batch = Arc::new(source.next_batch().unwrap().unwrap());
            assert_eq!(session.announce_as(&batch, true, false).unwrap().length(batch.length), wanted);
            let object = source.object(Arc::clone(&batch), Wanted::all(), HashMap::new());
            session.send_object(&batch, &*object).unwrap();
            session.settle().unwrap();
            assert_eq!(session.finish().unwrap().outcome.kept, 1);
        }
        let mut expected = small();
        expected.extend(other);
        assert_eq!(to.tree(), expected);
    });
}

#[test]
fn changed_file_is_sent_again_once() {
    between_all(|from, to| {
        with(from, &small(), to, &Tree::new());
        let (source, target) = (from.source(), to.target());
        let mut session = Session::new(&*source, &*target, 1);
        session.begin().unwrap();
        let batch = Arc::new(source.next_batch().unwrap().unwrap());
        let wanted = session.announce(&batch).unwrap();
        let later = Tree::from([(b"dir/file".to_vec(), file(2000, 5, 0o644, 5))]);
        from.put(&later);
        let object = source.object(Arc::clone(&batch), wanted, HashMap::new());
        session.send_object(&batch, &*object).unwrap();
        session.settle().unwrap();
        assert!(!to.tree().contains_key(&b"dir/file"[..]) && to.tree().contains_key(&b"other"[..]));
        let voided = batch.entries.iter().position(|entry| entry.path == b"dir/file").unwrap();
        let (entry, ends) = object.entry_again(u32::try_from(voided).unwrap()).unwrap();
        let again = downpour_store::Batch { number: 1, length: entry.size(), entries: vec![entry], ..(*batch).clone() };
        let again = Arc::new(again);
        session.announce_as(&again, true, true).unwrap();
        let object = source.object(Arc::clone(&again), Wanted::all(), HashMap::from([(0, ends)]));
        session.send_object(&again, &*object).unwrap();
        session.settle().unwrap();
        let third = Arc::new(downpour_store::Batch { number: 2, ..(*again).clone() });
        let error = session.announce_as(&third, true, true).unwrap_err();
        assert!(matches!(error, FilesError::Protocol { .. }), "{error}");
        assert_eq!(to.tree()[&b"dir/file"[..]], later[&b"dir/file"[..]]);
    });
}

#[test]
fn delete_keeps_excluded_names() {
    between_all(|from, to| {
        let mut target = sample();
        for path in ["stale", "a/stale", "a/b/c/keep.me", "stale dir/inside", "kept dir/keep.me"] {
            if let Some((directory, _)) = path.split_once('/').filter(|(directory, _)| directory.contains("dir")) {
                target.insert(directory.as_bytes().to_vec(), Node::directory(0o755, time(1)));
            }
            target.insert(path.as_bytes().to_vec(), file(5, 1, 0o644, 1));
        }
        with(from, &sample(), to, &target);
        let filter = Filter::parse(b"- *.me").unwrap();
        let spec = ReceiveRequest { delete: Some(filter), ..to.spec() };
        let foreseen = ReceiveRequest { dry_run: true, ..spec.clone() };
        let gone = ["a/stale", "stale", "stale dir", "stale dir/inside"];
        for spec in [foreseen, spec] {
            assert_eq!(to.tree().len(), target.len(), "nothing has changed");
            let done = transfer(&*from.source(), &*to.target_with(spec).unwrap(), 1).unwrap();
            let mut deleted = kinds(&done.notices, NoticeKind::Delete);
            deleted.sort();
            assert_eq!((deleted, done.outcome.deleted), (gone.map(str::to_owned).to_vec(), 4));
        }
        let left: Vec<_> = to.tree().into_keys().filter(|path| !sample().contains_key(path)).collect();
        assert_eq!(left, [b"a/b/c/keep.me".to_vec(), b"kept dir".to_vec(), b"kept dir/keep.me".to_vec()]);
    });
}

#[test]
fn delete_empty_source_needs_force_empty() {
    between_all(|from, to| {
        with(from, &Tree::new(), to, &small());
        let spec = ReceiveRequest { delete: Some(Filter::default()), ..to.spec() };
        let done = transfer(&*from.source(), &*to.target_with(spec.clone()).unwrap(), 1).unwrap();
        assert_eq!((kinds(&done.notices, NoticeKind::EmptySource).len(), to.tree()), (1, small()));
        let spec = ReceiveRequest { force_empty: true, ..spec };
        transfer(&*from.source(), &*to.target_with(spec).unwrap(), 1).unwrap();
        assert_eq!(to.tree(), Tree::new());
    });
}

#[test]
fn dry_run_reports_without_changes() {
    between_all(|from, to| {
        let mut target = small();
        target.insert(b"other".to_vec(), file(499, 2, 0o600, 3));
        target.remove(&b"dir/file"[..]);
        with(from, &small(), to, &target);
        let (before, top) = (to.tree(), to.top());
        let spec = ReceiveRequest { dry_run: true, ..to.spec() };
        let done = transfer(&*from.source(), &*to.target_with(spec).unwrap(), 1).unwrap();
        assert_eq!(kinds(&done.notices, NoticeKind::Create), ["dir/file"]);
        assert_eq!(kinds(&done.notices, NoticeKind::Replace), ["other"]);
        assert_eq!((done.wanted, done.outcome.files), (3500, 2));
        assert_eq!((to.tree(), to.top()), (before, top));
    });
}

#[test]
fn stored_sources_removed_if_unchanged() {
    between_all(|from, to| {
        with(from, &small(), to, &Tree::new());
        let options = SourceOptions { remove_sources: true, ..SourceOptions::default() };
        let spec = ReceiveRequest { report_stored: true, ..to.spec() };
        let source = from.source_with(options).unwrap();
        let target = to.target_with(spec).unwrap();
        // Long after it was sent.
        let mut session = Session::new(&*source, &*target, 1);
        session.begin().unwrap();
        let batch = Arc::new(source.next_batch().unwrap().unwrap());
        let wanted = session.announce(&batch).unwrap();
        let object = source.object(Arc::clone(&batch), wanted, HashMap::new());
        for block in 0..u32::try_from(object.length().div_ceil(BLOCK as u64)).unwrap() {
            session.send_block(&batch, &*object, block).unwrap();
        }
        from.put(&[(b"other".to_vec(), file(500, 3, 0o600, 4))].into());
        session.settle().unwrap();
        let entry = |path: &str| batch.entries.iter().position(|entry| entry.path == path.as_bytes()).unwrap();
        assert_eq!(from.tree().into_keys().collect::<Vec<_>>(), [b"dir".to_vec(), b"other".to_vec()]);
        let gone = &batch.entries[entry("dir/file")];
        let versions = Versions { sent: batch.versions[entry("dir/file")], stored: 0 };
        assert_eq!(source.remove(gone, versions, false), SourceOutcome::Gone);
        let mut removed = session.finish().unwrap().removed;
        removed.sort_by(|one, other| one.0.cmp(&other.0));
        let kept = SourceOutcome::Kept(NoticeKind::SourceChanged);
        assert_eq!(removed, [(b"dir/file".to_vec(), SourceOutcome::Removed), (b"other".to_vec(), kept)]);
        assert_eq!(to.tree(), small());
    });
}

#[test]
fn changing_file_is_voided_rest_arrives() {
    between_all(|from, to| {
        let mut old = small();
        let before = file(77, 7, 0o644, 7);
        old.insert(b"dir/file".to_vec(), before.clone());
        with(from, &small(), to, &old);
        let mut same_size =
            |_: &downpour_store::Batch| from.put(&[(b"dir/file".to_vec(), file(3000, 5, 0o644, 6))].into());
        let done = transfer_with(&*from.source(), &*to.target(), 1, &mut same_size).unwrap();
        let reasons: Vec<_> = done.outcome.listed.iter().map(|failed| failed.reason).collect();
        assert_eq!(reasons, [downpour_store::FailReason::Voided(VoidReason::Changed)]);
        // Longer ones may have grown, as logs do.
        let mut change =
            |_: &downpour_store::Batch| from.put(&[(b"dir/file".to_vec(), file(2999, 5, 0o644, 5))].into());
        let done = transfer_with(&*from.source(), &*to.target(), 1, &mut change).unwrap();
        assert_eq!((done.outcome.failed_count, done.outcome.listed[0].path.as_slice()), (1, &b"dir/file"[..]));
        let is_void = |reason| done.outcome.listed[0].reason == downpour_store::FailReason::Voided(reason);
        assert!(is_void(VoidReason::Shrank) || is_void(VoidReason::Changed));
        assert_eq!(to.tree()[&b"dir/file"[..]], before);
        let mut vanish = |_: &downpour_store::Batch| from.take("dir/file");
        let done = transfer_with(&*from.source(), &*to.target(), 1, &mut vanish).unwrap();
        assert_eq!(done.outcome.vanished_count, 1);
        assert_eq!(to.tree()[&b"dir/file"[..]], before);
    });
}

#[test]
fn delete_keeps_skipped_names() {
    between_all(|from, to| {
        let mut target = small();
        target.insert(b"link".to_vec(), Node::symlink("elsewhere", time(1)));
        target.insert(b"stale".to_vec(), file(1, 1, 0o644, 1));
        with(from, &small(), to, &target);
        from.put(&[(b"link".to_vec(), Node::symlink("dir", time(2)))].into());
        let options = SourceOptions { links: downpour_store::LinkPolicy::Skip, ..SourceOptions::default() };
        let spec = ReceiveRequest { delete: Some(Filter::default()), ..to.spec() };
        let done = transfer(&*from.source_with(options).unwrap(), &*to.target_with(spec).unwrap(), 1).unwrap();
        assert_eq!(done.outcome.links_left_out, 1);
        assert!(to.tree().contains_key(&b"link"[..]) && !to.tree().contains_key(&b"stale"[..]));
        let spec = ReceiveRequest { delete: Some(Filter::default()), ..to.spec() };
        let (source, target) = (from.source(), to.target_with(spec).unwrap());
        let mut session = Session::new(&*source, &*target, 1);
        session.begin().unwrap();
        let mut batch = source.next_batch().unwrap().unwrap();
        batch.entries.retain(|entry| entry.path != b"other");
        batch.length -= 500;
        batch.skipped.push(downpour_store::Skipped::new(b"other".to_vec(), SkipReason::Unreadable));
        let rest = Arc::new(batch);
        session.announce(&rest).unwrap();
        assert_eq!(session.finish().unwrap().outcome.failed_count, 2, "the name, and that nothing is deleted");
        assert!(to.tree().contains_key(&b"other"[..]));
    });
}

#[test]
fn damaged_bytes_are_not_published() {
    between_all(|from, to| {
        with(from, &small(), to, &Tree::new());
        let (source, target) = (from.source(), to.target());
        let mut session = Session::new(&*source, &*target, 1);
        session.begin().unwrap();
        let batch = Arc::new(source.next_batch().unwrap().unwrap());
        let wanted = session.announce(&batch).unwrap();
        let object = source.object(Arc::clone(&batch), wanted, HashMap::new());
        session.send_block(&batch, &*object, 0).unwrap();
        let range = BLOCK as u64..2 * BLOCK as u64;
        let digest = downpour_store::messages::Digest { batch: 0, block: 1, digest: [1; 32] };
        target.write(0, range.start, &[7; BLOCK]).unwrap();
        target.expect_digest(&digest).unwrap();
        let error = target.add_local_digest(0, 1, range, [2; 32]).unwrap_err();
        assert!(matches!(&error, FilesError::Integrity { path: Some(path), .. } if path == b"dir/file"), "{error}");
        target.abandon(false).unwrap();
        assert_eq!(to.tree().into_keys().collect::<Vec<_>>(), [b"dir".to_vec()]);
        assert!(matches!(target.write(0, 0, b"late"), Err(FilesError::Over)));
        assert!(matches!(
            target.check_end(&downpour_store::messages::TransferEnd { batches: 9, ..session.end() }),
            Err(FilesError::Protocol { .. })
        ));
    });
}

#[test]
fn killed_run_is_completed_by_next() {
    between_all(|from, to| {
        with(from, &small(), to, &Tree::new());
        let spec = ReceiveRequest { existing: Existing::Refuse, ..to.spec() };
        for blocks in 0..4 {
            let (source, target) = (from.source(), to.target_with(spec.clone()).unwrap());
            let mut session = Session::new(&*source, &*target, 1);
            session.begin().unwrap();
            let batch = Arc::new(source.next_batch().unwrap().unwrap());
            let wanted = session.announce(&batch).unwrap();
            let object = source.object(Arc::clone(&batch), wanted, HashMap::new());
            let all = u32::try_from(object.length().div_ceil(BLOCK as u64)).unwrap();
            (0..all.min(blocks)).for_each(|block| session.send_block(&batch, &*object, block).unwrap());
            if blocks == 3 {
                target.flush().unwrap();
                assert_eq!(to.tree()[&b"dir/file"[..]], small()[&b"dir/file"[..]], "what is verified is published");
            }
        }
        // Names made by the earlier runs belong to them.
        let done = transfer(&*from.source(), &*to.target_with(spec).unwrap(), 1).unwrap();
        assert_eq!((to.tree(), done.outcome.failed_count), (small(), 0));
    });
}

#[test]
fn unrequested_names_are_refused() {
    for to in targets() {
        to.put(&small());
        let entry = |path: &str| downpour_store::Entry {
            path: path.as_bytes().to_vec(),
            kind: EntryKind::Directory,
            mode: 0o755,
            mtime: time(1),
            extra: downpour_store::Extra::default(),
        };
        for path in ["../up", "/top", "a//b", ".", "orphan/file", ""] {
            let target = to.target();
            target.begin(downpour_store::SourceId([1; 16])).unwrap();
            let part = downpour_store::messages::manifest_parts(0, 0, &[entry(path)]).next().unwrap();
            let offered = target.check_offer(&mut std::iter::once(&part)).unwrap_err();
            assert!(matches!(offered, FilesError::BadName { .. }), "{path}: {offered}");
            let error = target.add_manifest_part(&part).unwrap_err();
            assert!(matches!(error, FilesError::BadName { .. }), "{path}: {error}");
        }
        let items = Some(vec![downpour_store::ItemName::Exact(b"this".to_vec())]);
        let permitted = downpour_store::AllowedNames { items, ..downpour_store::AllowedNames::default() };
        let target = to.target_with(ReceiveRequest { permitted, ..to.spec() }).unwrap();
        target.begin(downpour_store::SourceId([1; 16])).unwrap();
        let part = downpour_store::messages::manifest_parts(0, 0, &[entry("that")]).next().unwrap();
        assert!(matches!(target.add_manifest_part(&part), Err(FilesError::NotPermitted { .. })));
        assert_eq!(to.tree(), small());
    }
}

#[test]
fn stop_ends_source_and_target() {
    between_all(|from, to| {
        with(from, &sample(), to, &Tree::new());
        let source = from.source();
        source.stop();
        assert!(source.next_batch().unwrap().is_none());
        let target = to.target();
        target.stop();
        let error = transfer(&*from.source(), &*target, 1).unwrap_err();
        assert!(matches!(error, FilesError::Over), "{error}");
    });
}
