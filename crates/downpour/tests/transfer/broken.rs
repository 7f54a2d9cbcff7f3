//! Interrupted transfers, and disturbances that do not interrupt them.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use downpour::files::{Existing, FailReason, Failed, ReceiveRequest, VoidReason};
use downpour::{
    Context, Error, ErrorKind, Profile, Progress, Rate, Rendezvous, StopReason, Ticket, Transfer, TransferEvent,
    TransferOptions, receive, send,
};

use crate::support::{directory, done, listen, listen_on, noise, run, said_kind, sending_by, ticket, tree, wait_for};

/// Environment variable that selects the child of this test program.
const CHILD: &str = "DOWNPOUR_TEST_CHILD";

/// More than a receiver's credit, so that the sender cannot have read all of it before the receiver writes.
const BEYOND_CREDIT: usize = 80_000_000;

/// Runs this test program in another process, restricted to the test `name`, with `argument`.
fn child(wrapper: &[&str], name: &str, argument: &str) -> (Child, BufReader<ChildStdout>) {
    let program = std::env::current_exe().unwrap();
    let mut words: Vec<&std::ffi::OsStr> = wrapper.iter().map(std::ffi::OsStr::new).collect();
    words.push(program.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--exact", name, "--nocapture", "--ignored"]);
    let mut child = command.env(CHILD, argument).stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    (child, output)
}

/// Returns the rest of the first output line that begins with `mark`.
fn line(output: &mut impl BufRead, mark: &str) -> Option<String> {
    output.lines().map_while(Result::ok).find_map(|line| Some(line.split_once(mark)?.1.to_owned()))
}

async fn offered(receiver: &mut Transfer) {
    wait_for(receiver, |event| matches!(event, TransferEvent::Offer(_)).then_some(())).await;
}

#[test]
#[ignore = "the child of another test"]
fn child_that_sends() {
    let path = std::env::var_os(CHILD).unwrap();
    let sender = send(vec![PathBuf::from(path)], listen(), TransferOptions::default()).unwrap();
    println!("ticket: {}", ticket(&sender).to_text().unwrap());
    let _ = run(sender.finish());
}

#[test]
fn killed_sender_detected_partial_data_kept() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(BEYOND_CREDIT, 1)).unwrap();
    let (mut process, mut output) = child(&[], "broken::child_that_sends", from.path().join("file").to_str().unwrap());
    let ticket = Ticket::parse(&line(&mut output, "ticket: ").unwrap()).unwrap();
    let error = run(async {
        let mut options = TransferOptions::default();
        options.engine.endpoint.dead_after = Duration::from_millis(700);
        let mut receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket), options).unwrap();
        // Slow enough to be killed before the end.
        receiver.set_limit(Some(Rate::from_bits_per_second(50_000_000)));
        wait_for(&mut receiver, |event| {
            let came = |now: &Progress| now.connection.packets.bytes_received > 5_000_000;
            matches!(event, TransferEvent::Progress(now) if came(&now)).then_some(())
        })
        .await;
        process.kill().unwrap();
        process.wait().unwrap();
        wait_for(&mut receiver, done).await.unwrap_err()
    });
    let Error::Within { context: Context::Kept { staging, by_ticket: true }, source: cause } = &error else {
        panic!("{error}")
    };
    assert!(matches!(**cause, Error::ConnectionLost), "{error}");
    assert_eq!(error.kind(), downpour::ErrorKind::Timeout);
    assert!(staging.starts_with(to.path()) && staging.is_dir(), "{error}");
    assert!(!to.path().join("file").exists());
}

#[test]
fn killed_receiver_detected() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(BEYOND_CREDIT, 1)).unwrap();
    let mut options = TransferOptions::default();
    options.engine.endpoint.dead_after = Duration::from_millis(700);
    let mut sender = send(vec![from.path().join("file")], listen_on(), options).unwrap();
    let argument = format!("{} {}", ticket(&sender).to_text().unwrap(), to.path().display());
    let (mut process, mut output) = child(&[], "broken::child_that_is_asked", &argument);
    let error = run(async {
        line(&mut output, "offered").unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
        wait_for(&mut sender, done).await.unwrap_err()
    });
    assert!(matches!(error, Error::ConnectionLost), "{error}");
    assert_eq!(error.kind(), downpour::ErrorKind::Timeout);
}

/// The receiver's kernel reports that the port is closed.
#[test]
fn receiver_killed_found_before_timeout() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(6_000_000, 1)).unwrap();
    let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(16_000_000));
    let mut options = sending_by(profile);
    options.engine.endpoint.dead_after = Duration::from_secs(300);
    let mut sender = send(vec![from.path().join("file")], listen_on(), options).unwrap();
    let argument = format!("{} {}", ticket(&sender).to_text().unwrap(), to.path().display());
    let (mut process, _output) = child(&[], "broken::child_that_runs_full", &argument);
    run(async {
        wait_for(&mut sender, |event| {
            matches!(event, TransferEvent::Progress(now) if now.bytes_done > 1_000_000).then_some(())
        })
        .await;
        process.kill().unwrap();
        process.wait().unwrap();
        let begun = Instant::now();
        let error = tokio::time::timeout(Duration::from_secs(10), wait_for(&mut sender, done)).await;
        let error = error.expect("it is missed").unwrap_err();
        assert!(matches!(error, Error::ConnectionLost), "{error}");
        assert_eq!(error.kind(), downpour::ErrorKind::Timeout);
        assert!(begun.elapsed() >= Duration::from_secs(3), "a hint is no proof: {:?}", begun.elapsed());
    });
}

#[test]
fn killed_receiver_replaced_by_next() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(6_000_000, 1)).unwrap();
    let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(16_000_000));
    // Silence alone does not end a connection in this test.
    let mut options = sending_by(profile);
    options.engine.endpoint.dead_after = Duration::from_secs(300);
    let mut sender = send(vec![from.path().join("file")], listen(), options).unwrap();
    let real = ticket(&sender);
    let argument = format!("{} {}", real.to_text().unwrap(), to.path().display());
    let (mut process, _output) = child(&[], "broken::child_that_runs_full", &argument);
    run(async {
        wait_for(&mut sender, |event| {
            matches!(event, TransferEvent::Progress(now) if now.bytes_done > 1_000_000).then_some(())
        })
        .await;
        process.kill().unwrap();
        process.wait().unwrap();
        let begun = Instant::now();
        let receiver = receive(to.path().to_owned(), Rendezvous::Connect(real), TransferOptions::default()).unwrap();
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), receiver.finish());
        assert_eq!((sent.unwrap().bytes.total, received.unwrap().bytes.total), (6_000_000, 6_000_000));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    });
    assert_eq!(tree(from.path()), tree(to.path()));
}

/// The receiver was killed while its user was asked: nothing was in flight to it, and it owed no answer.
#[test]
fn killed_idle_receiver_replaced_by_next() {
    let (from, lost, to) = (directory(), directory(), directory());
    fs::write(from.path().join("file"), noise(100_000, 1)).unwrap();
    // Silence alone does not end a connection in this test.
    let mut options = TransferOptions::default();
    options.engine.endpoint.dead_after = Duration::from_secs(300);
    let mut sender = send(vec![from.path().join("file")], listen(), options).unwrap();
    let real = ticket(&sender);
    let argument = format!("{} {}", real.to_text().unwrap(), lost.path().display());
    let (mut process, mut output) = child(&[], "broken::child_that_lists_wanted_ranges", &argument);
    line(&mut output, "offered").unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    run(async {
        let receiver = |to: &Path| {
            receive(to.to_owned(), Rendezvous::Connect(real.clone()), TransferOptions::default()).unwrap().finish()
        };
        // Connection attempts by others do not extend the time of the dead peer.
        let turned_away = Cell::new(0);
        let others = async {
            loop {
                tokio::time::sleep(Duration::from_millis(500)).await;
                let error = receiver(&directory().path().join("other")).await.unwrap_err();
                assert_eq!(said_kind(&error), Some(ErrorKind::Busy));
                turned_away.set(turned_away.get() + 1);
            }
        };
        let (sent, received) = tokio::select! {
            biased;
            both = async { tokio::join!(wait_for(&mut sender, done), receiver(to.path())) } => both,
            () = others => unreachable!("they continue"),
        };
        assert!(turned_away.get() > 0);
        assert_eq!((sent.unwrap().bytes.total, received.unwrap().bytes.total), (100_000, 100_000));
    });
    assert_eq!(tree(from.path()), tree(to.path()));
}

/// A receiver lists its wanted ranges before any bytes arrive, and then its user does not answer.
#[test]
#[ignore = "the child of another test"]
fn child_that_lists_wanted_ranges() {
    let argument = std::env::var(CHILD).unwrap();
    let (ticket, into) = argument.split_once(' ').unwrap();
    let settings = ReceiveRequest { dry_run: true, ..ReceiveRequest::into_directory(into) };
    let options = TransferOptions::default().confirm(true);
    let mut receiver = receive(settings, Rendezvous::Connect(Ticket::parse(ticket).unwrap()), options).unwrap();
    run(offered(&mut receiver));
    println!("offered");
    let _ = run(wait_for(&mut receiver, done));
}

#[test]
#[ignore = "the child of another test"]
fn child_that_is_asked() {
    let argument = std::env::var(CHILD).unwrap();
    let (ticket, into) = argument.split_once(' ').unwrap();
    let options = TransferOptions::default().confirm(true);
    let mut receiver =
        receive(PathBuf::from(into), Rendezvous::Connect(Ticket::parse(ticket).unwrap()), options).unwrap();
    run(offered(&mut receiver));
    println!("offered");
    let _ = run(wait_for(&mut receiver, done));
}

#[test]
fn stopped_receiver_keeps_data_informs_sender() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(BEYOND_CREDIT, 1)).unwrap();
    run(async {
        // 50 Mbit/s: slow enough to be cancelled before the end.
        let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(50_000_000));
        let options = sending_by(profile);
        let mut sender = send(vec![from.path().join("file")], listen_on(), options).unwrap();
        let mut receiver =
            receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), TransferOptions::default()).unwrap();
        wait_for(&mut receiver, |event| {
            matches!(event, TransferEvent::Progress(now) if now.bytes_done > 5_000_000).then_some(())
        })
        .await;
        receiver.stop(StopReason::Cancelled);
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), wait_for(&mut receiver, done));
        assert_eq!(received.unwrap_err().kind(), downpour::ErrorKind::Cancelled);
        let sent = sent.unwrap_err();
        assert_eq!(sent.to_string(), "error from the receiver: interrupted by its user");
        assert_eq!(said_kind(&sent), Some(ErrorKind::Cancelled));
        // The same transfer again fetches only the rest.
        let settings = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(to.path()) };
        let receiver = receive(settings, Rendezvous::Connect(ticket(&sender)), TransferOptions::default()).unwrap();
        let summary = receiver.finish().await.unwrap();
        assert!(summary.bytes.present > 3_000_000, "{summary:?}");
        assert_eq!(summary.bytes.total, BEYOND_CREDIT as u64);
        assert!(summary.wire_bytes < (BEYOND_CREDIT as u64 - summary.bytes.present) * 12 / 10, "{summary:?}");
    });
    assert_eq!(fs::read(to.path().join("file")).unwrap(), noise(BEYOND_CREDIT, 1));
    assert_eq!(tree(to.path()).len(), 1, "nothing else is left");
}

#[test]
fn receiver_waiting_for_staging_can_be_stopped() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(BEYOND_CREDIT, 1)).unwrap();
    run(async {
        let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(50_000_000));
        let options = sending_by(profile);
        let begin = || {
            let sender = send(vec![from.path().join("file")], listen(), options.clone()).unwrap();
            let peer = Rendezvous::Connect(ticket(&sender));
            (sender, receive(to.path().to_owned(), peer, TransferOptions::default()).unwrap())
        };
        let (_first_sender, mut first) = begin();
        wait_for(&mut first, |event| {
            matches!(event, TransferEvent::Progress(now) if now.bytes_done > 1_000_000).then_some(())
        })
        .await;
        let (_second_sender, mut second) = begin();
        wait_for(&mut second, |event| matches!(event, TransferEvent::Connected { .. }).then_some(())).await;
        let begun = Instant::now();
        second.stop(StopReason::Terminated);
        let error = wait_for(&mut second, done).await.unwrap_err();
        assert!(matches!(error, Error::Terminated), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
        // The first one continues.
        wait_for(&mut first, |event| {
            matches!(event, TransferEvent::Progress(now) if now.bytes_done > 2_000_000).then_some(())
        })
        .await;
    });
}

#[test]
fn shrinking_file_voided_others_complete() {
    let (from, to) = (directory(), directory());
    let root = from.path().join("dir");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), noise(1_000_000, 1)).unwrap();
    fs::write(root.join("b"), noise(BEYOND_CREDIT, 2)).unwrap();
    fs::write(root.join("c"), noise(1_000_000, 3)).unwrap();
    run(async {
        let mut sender = send(vec![root.clone()], listen(), TransferOptions::default()).unwrap();
        let options = TransferOptions::default().confirm(true);
        let mut receiver = receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), options).unwrap();
        offered(&mut receiver).await;
        fs::File::options().write(true).open(root.join("b")).unwrap().set_len(50_000_000).unwrap();
        receiver.accept();
        let mut reported = Vec::new();
        let collect = |event| {
            if let TransferEvent::Files(files) = &event {
                reported.extend(files.iter().map(|(path, _)| path.clone()));
            }
            done(event)
        };
        let (sent, received) = tokio::join!(wait_for(&mut sender, collect), wait_for(&mut receiver, done));
        assert_eq!(reported, [b"dir/a".to_vec(), b"dir/c".to_vec()], "the sender reports no failed file");
        let (sent, received) = (sent.unwrap(), received.unwrap());
        let reason = FailReason::Voided(VoidReason::Shrank);
        let failed = vec![Failed { path: b"dir/b".to_vec(), reason }];
        assert_eq!(
            (&sent.failures.listed, sent.names.files, &received.failures.listed, received.names.files),
            (&failed, 2, &failed, 2)
        );
        assert_eq!((received.failures.count, received.failures.vanished), (1, 0));
    });
    assert!(!to.path().join("dir/b").exists());
    for name in ["dir/a", "dir/c"] {
        assert!(fs::read(from.path().join(name)).unwrap() == fs::read(to.path().join(name)).unwrap(), "{name}");
    }
}

#[test]
fn garbage_during_a_transfer_is_counted_and_does_no_harm() {
    const GARBAGE: usize = 2_000;
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(20_000_000, 1)).unwrap();
    run(async {
        let mut sender = send(vec![from.path().join("file")], listen(), TransferOptions::default()).unwrap();
        let (target, stranger) = (ticket(&sender).addresses[0], UdpSocket::bind("127.0.0.1:0").unwrap());
        let receiver =
            receive(to.path().to_owned(), Rendezvous::Connect(ticket(&sender)), TransferOptions::default()).unwrap();
        for seed in 0..GARBAGE {
            // All lengths up to a full packet, all values of the first byte.
            let mut bytes = noise(1 + seed * 7 % 1472, seed as u64);
            bytes[0] = u8::try_from(seed % 256).unwrap();
            stranger.send_to(&bytes, target).unwrap();
        }
        let (sent, received) = tokio::join!(wait_for(&mut sender, done), receiver.finish());
        assert_eq!(received.unwrap().bytes.total, 20_000_000);
        // The kernel's queue may have overflowed on a busy host, but most datagrams must have been seen.
        let refused = sent.unwrap().connection.refused;
        assert!((GARBAGE as u64 / 2..=GARBAGE as u64 + 10).contains(&refused), "{refused}");
    });
    assert_eq!(tree(from.path()), tree(to.path()));
}

#[test]
fn full_disk_reported_to_both_peers() {
    let (from, to) = (directory(), directory());
    fs::write(from.path().join("file"), noise(8_000_000, 1)).unwrap();
    // At this rate the first blocks are small, and complete before the disk is full.
    let profile = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(16_000_000));
    let mut sender = send(vec![from.path().join("file")], listen_on(), sending_by(profile)).unwrap();
    let argument = format!("{} {}", ticket(&sender).to_text().unwrap(), to.path().display());
    // A file system of 2 MB visible to the child only.
    let script = format!("mount -t tmpfs -o size=2m tmpfs '{}' && exec \"$0\" \"$@\"", to.path().display());
    let (mut process, mut output) =
        child(&["unshare", "-rm", "sh", "-c", &script], "broken::child_that_runs_full", &argument);
    let received = line(&mut output, "received: ")
        .expect("this test needs user namespaces: allow unprivileged ones, or run it as root, for `unshare -rm`");
    let sent = run(wait_for(&mut sender, done)).unwrap_err();
    process.wait().unwrap();
    assert!(received.starts_with("NoSpace disk full while writing "), "{received}");
    assert!(received.contains("partial data kept in "), "{received}");
    assert!(sent.to_string().starts_with("error from the receiver: disk full while writing "), "{sent}");
    assert_eq!(sent.kind(), ErrorKind::NoSpace);
}

#[test]
#[ignore = "the child of another test"]
fn child_that_runs_full() {
    let argument = std::env::var(CHILD).unwrap();
    let (ticket, into) = argument.split_once(' ').unwrap();
    let receiver =
        receive(PathBuf::from(into), Rendezvous::Connect(Ticket::parse(ticket).unwrap()), TransferOptions::default())
            .unwrap();
    let error = run(receiver.finish()).unwrap_err();
    println!("received: {:?} {error}", error.kind());
}
