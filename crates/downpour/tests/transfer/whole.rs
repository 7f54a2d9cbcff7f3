//! Successful transfers.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, UNIX_EPOCH};

use downpour::files::{Existing, ReceiveRequest};
use downpour::{Profile, Rate, Rendezvous, StopReason, TransferEvent, TransferOptions, receive, send};

use crate::support::{
    Listener, directory, done, listen, listening, noise, run, sending_by, ticket, transfer, tree, wait_for,
};

#[test]
fn one_file_of_any_length_arrives_in_both_directions() {
    for listener in [Listener::Sender, Listener::Receiver] {
        for length in [0, 1, 1407, 1408, 1409, 100_000, 5_000_000] {
            let (from, to) = (directory(), directory());
            let path = from.path().join("file");
            fs::write(&path, noise(length, 1)).unwrap();
            let (sent, received) = run(transfer(vec![path], to.path(), listener));
            let (sent, received) = (sent.unwrap(), received.unwrap());
            assert_eq!((sent.names.files, sent.bytes.total), (1, length as u64), "{listener:?}, {length}: {sent:?}");
            assert_eq!((received.names.files, received.bytes.total, received.failures.count), (1, length as u64, 0));
            assert_eq!(tree(from.path()), tree(to.path()), "{listener:?}, {length}");
        }
    }
}

#[test]
fn a_tree_arrives_with_its_modes_times_links_and_empty_directories() {
    let (from, to) = (directory(), directory());
    let root = from.path().join("tree");
    fs::create_dir_all(root.join("empty/inner")).unwrap();
    fs::create_dir(root.join("closed")).unwrap();
    for (at, (name, length)) in
        [("a", 10), ("empty file", 0), ("closed/b", 70_000), ("c.bin", 2_000_000)].into_iter().enumerate()
    {
        let path = root.join(name);
        fs::write(&path, noise(length, at as u64)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode([0o644, 0o600, 0o755, 0o444][at])).unwrap();
        let time = UNIX_EPOCH + Duration::new(1_000_000_000 + at as u64, 123_456_789);
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
    }
    symlink("c.bin", root.join("link")).unwrap();
    symlink("/nowhere/at all", root.join("broken link")).unwrap();
    fs::set_permissions(root.join("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    let (sent, received) = run(transfer(vec![root.clone()], to.path(), Listener::Sender));
    let received = received.unwrap();
    assert_eq!((received.names.files, received.names.directories, received.names.symlinks), (4, 4, 2), "{received:?}");
    assert_eq!(sent.unwrap().bytes.total, 2_070_010);
    assert_eq!(tree(from.path()), tree(to.path()));
    // So that the temporary directories can be removed.
    for top in [from.path(), to.path()] {
        fs::set_permissions(top.join("tree/closed"), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn ten_thousand_tiny_files_arrive() {
    let (from, to) = (directory(), directory());
    for branch in 0..100 {
        let branch = from.path().join(format!("all/{branch}"));
        fs::create_dir_all(&branch).unwrap();
        for file in 0..100 {
            fs::write(branch.join(file.to_string()), noise(file, file as u64)).unwrap();
        }
    }
    let (sent, received) = run(transfer(vec![from.path().join("all")], to.path(), Listener::Receiver));
    assert_eq!(sent.unwrap().names.files, 10_000);
    assert_eq!(received.unwrap().names.files, 10_000);
    assert_eq!(tree(from.path()), tree(to.path()));
}

#[test]
fn one_sender_serves_two_receivers_at_once() {
    let (from, to) = (directory(), [directory(), directory()]);
    let path = from.path().join("file");
    fs::write(&path, noise(20_000_000, 3)).unwrap();
    run(async {
        let keep = Rendezvous::Listen(listening().keep(true));
        let mut sender = send(vec![path], keep, TransferOptions::default()).unwrap();
        let receivers = to.each_ref().map(|to| {
            let peer = Rendezvous::Connect(ticket(&sender));
            receive(to.path().to_owned(), peer, TransferOptions::default()).unwrap().finish()
        });
        let [first, second] = receivers;
        let both_sent = async {
            for _ in 0..2 {
                wait_for(&mut sender, |event| matches!(event, TransferEvent::Done(Ok(_))).then_some(())).await;
            }
        };
        let (first, second, ()) = tokio::join!(first, second, both_sent);
        assert_eq!((first.unwrap().bytes.total, second.unwrap().bytes.total), (20_000_000, 20_000_000));
        sender.stop(StopReason::Cancelled);
        let last = wait_for(&mut sender, done).await;
        assert_eq!(last.unwrap_err().kind(), downpour::ErrorKind::Cancelled);
    });
    for to in &to {
        assert_eq!(tree(from.path()), tree(to.path()));
    }
}

#[test]
fn confirm_writes_nothing_before_answer() {
    let (from, to) = (directory(), directory());
    fs::create_dir(from.path().join("dir")).unwrap();
    fs::write(from.path().join("dir/file"), noise(3_000_000, 4)).unwrap();
    run(async {
        let mut sender = send(vec![from.path().join("dir")], listen(), TransferOptions::default()).unwrap();
        let options = TransferOptions::default().confirm(true);
        let mut receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), options).unwrap();
        let offer =
            wait_for(&mut receiver, |event| if let TransferEvent::Offer(offer) = event { Some(offer) } else { None })
                .await;
        assert_eq!((offer.names, offer.entries, offer.bytes), (vec![b"dir".to_vec()], 2, 3_000_000));
        assert!(offer.is_all, "one batch that ends the scan is everything");
        assert!(tree(to.path()).is_empty());
        // The time of the user is not counted, neither while the user is asked nor afterwards.
        let mut last = Duration::ZERO;
        for _ in 0..3 {
            let now = wait_for(&mut receiver, |event| match event {
                TransferEvent::Progress(now) => Some(now.elapsed),
                _ => None,
            })
            .await;
            assert!(now < Duration::from_millis(400) && now >= last, "{now:?} after {last:?}");
            last = now;
        }
        let asked = Duration::from_millis(400);
        receiver.accept();
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), wait_for(&mut receiver, done));
        let (sent, received) = (sent.unwrap(), received.unwrap());
        assert_eq!((sent.bytes.total, received.bytes.total), (3_000_000, 3_000_000));
        assert!(sent.elapsed > received.elapsed + asked, "{:?} {:?}", sent.elapsed, received.elapsed);
    });
    assert_eq!(tree(from.path()), tree(to.path()));
}

#[test]
fn progress_and_files_reported_trace_written() {
    let (from, to) = (directory(), directory());
    let path = from.path().join("file");
    fs::write(&path, noise(4_000_000, 5)).unwrap();
    let (traces, mut files, mut progress) = ([from.path().join("s.qlog"), from.path().join("r.qlog")], 0, Vec::new());
    run(async {
        // 20 Mbit/s: slow enough for several reports.
        let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(20_000_000));
        let options = sending_by(profile).qlog(traces[0].clone());
        let mut sender = send(vec![path], listen(), options).unwrap();
        let options = TransferOptions::default().qlog(traces[1].clone());
        let receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), options).unwrap();
        let watched = wait_for(&mut sender, |event| match event {
            TransferEvent::Files(sent) => {
                assert_eq!(sent, [(b"file".to_vec(), 4_000_000)]);
                files += sent.len();
                None
            }
            TransferEvent::Progress(now) => {
                progress.push(now);
                None
            }
            other => done(other),
        });
        let (sent, received) = tokio::join!(watched, receiver.finish());
        let (sent, share) = (sent.unwrap(), |share: f64| (0.5..=1.1).contains(&share));
        assert!(sent.connection.path_share.is_some_and(share), "{sent:?}");
        assert_eq!(received.unwrap().bytes.total, 4_000_000);
    });
    assert_eq!(files, 1);
    assert!(progress.len() >= 4, "{progress:?}");
    assert!(progress.is_sorted_by_key(|now| (now.elapsed, now.bytes_done)), "{progress:?}");
    assert!(progress.iter().all(|now| now.bytes_known == 4_000_000 && now.goodput < 30e6), "{progress:?}");
    for trace in traces {
        let trace = fs::read(trace).unwrap();
        assert!(trace.starts_with(b"\x1e{") && trace.ends_with(b"}\n"), "{} bytes", trace.len());
    }
}

#[test]
fn changed_files_resent_once() {
    const LONG: usize = 64_000_000;
    for existing in [Existing::Refuse, Existing::Replace] {
        let (from, to) = (directory(), directory());
        let path = |name: &str| from.path().join("dir").join(name);
        fs::create_dir(path("")).unwrap();
        fs::write(path("a"), noise(LONG, 5)).unwrap();
        for (seed, name) in (6..).zip(["gone", "log", "other", "shorter"]) {
            fs::write(path(name), noise(200_000, seed)).unwrap();
        }
        let change = || {
            fs::remove_file(path("gone")).unwrap();
            File::options().append(true).open(path("log")).unwrap().write_all(b"a line\n").unwrap();
            fs::write(path("other"), noise(200_001, 20)).unwrap();
            fs::write(path("shorter"), "").unwrap();
        };
        if existing == Existing::Replace {
            fs::create_dir(to.path().join("dir")).unwrap();
            fs::write(to.path().join("dir/other"), noise(200_000, 30)).unwrap();
            let other = File::options().write(true).open(to.path().join("dir/other")).unwrap();
            other.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        let (mut notes, mut files) = (Vec::new(), Vec::new());
        run(async {
            // Slow enough, and with so little read-ahead, that the others change before they are read.
            let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(100_000_000));
            let mut options = sending_by(profile);
            options.engine.endpoint.max_memory = Some(32 << 20);
            let mut sender = send(vec![path("")], listen(), options).unwrap();
            let spec = ReceiveRequest { existing, differences: true, ..ReceiveRequest::into_directory(to.path()) };
            let mut options = TransferOptions::default();
            options.engine.endpoint.max_memory = Some(32 << 20);
            let receiver = receive(spec, Rendezvous::Connect(ticket(&sender)), options).unwrap();
            let watched = wait_for(&mut sender, |event| match event {
                TransferEvent::Progress(now) if now.bytes_done > 0 && notes.is_empty() => {
                    change();
                    notes.push(String::new());
                    None
                }
                TransferEvent::UserNote(note) => {
                    notes.push(note);
                    None
                }
                TransferEvent::Files(sent) => {
                    files.extend(sent.into_iter().map(|(name, size)| (String::from_utf8(name).unwrap(), size)));
                    None
                }
                other => done(other),
            });
            let (sent, received) = tokio::join!(watched, receiver.finish());
            for summary in [sent.unwrap(), received.unwrap()] {
                assert_eq!((summary.names.files, summary.failures.count, summary.failures.vanished), (4, 1, 1));
                assert_eq!(summary.failures.listed[0].path, b"dir/gone");
                assert_eq!(summary.bytes.total, LONG as u64 + 200_007 + 200_001);
            }
        });
        assert_eq!(notes[1..], ["resending 3 files that changed meanwhile"]);
        files.sort();
        let again = [("dir/log", 200_007), ("dir/other", 200_001)];
        assert!(again.iter().all(|(name, size)| files.contains(&((*name).to_owned(), *size))), "{files:?}");
        let (sent, found) = (tree(from.path()), tree(to.path()));
        assert!(sent.keys().eq(found.keys()) && sent.iter().skip(1).eq(found.iter().skip(1)), "{existing:?}");
    }
}

#[test]
fn confirm_sends_little_before_consent() {
    let (from, to) = (directory(), directory());
    let path = from.path().join("file");
    fs::write(&path, noise(30_000_000, 1)).unwrap();
    run(async {
        let mut sender = send(vec![path], listen(), TransferOptions::default()).unwrap();
        let options = TransferOptions::default().confirm(true);
        let mut receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), options).unwrap();
        wait_for(&mut receiver, |event| matches!(event, TransferEvent::Offer(_)).then_some(())).await;
        // More than a second, in which all of it could have been sent.
        let mut reports = 0;
        let sent = wait_for(&mut sender, |event| {
            let TransferEvent::Progress(now) = event else { return None };
            reports += 1;
            (reports == 8).then_some(now.connection.packets.bytes_sent)
        });
        let sent = sent.await;
        assert!(sent < 100_000, "{sent} bytes");
        receiver.accept();
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), wait_for(&mut receiver, done));
        assert!(sent.unwrap().is_verified() && received.unwrap().is_verified());
    });
    assert_eq!(tree(from.path()), tree(to.path()));
}
