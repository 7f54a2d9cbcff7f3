//! Connections through pipes: they carry, they wait for a slow reader, and they end when the other side does.

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use transport::{Closed, Rate};

use super::*;
use crate::LinkStats;

/// How a connection ends, with its figures and the words for a peer that was never reached.
pub(super) fn closed(end: &End) -> (Closed, Box<LinkStats>, Option<String>) {
    end.wait(|event| match event {
        LinkEvent::Closed { why, stats, send_error } => Some((why, stats, send_error.map(|error| error.to_string()))),
        LinkEvent::Failed(error) => panic!("failed: {error}"),
        _ => None,
    })
}

/// Two drivers and a connection between them.
pub(super) fn joined((here, there): (Way, Way)) -> (Driver, End, Driver, End, Arc<Memory>) {
    let memory = Arc::new(Memory::default());
    let (connecting, listening) = (start(here), start(there));
    let arrivals = listen(&listening, Arc::clone(&memory) as _);
    let sending = connect(&connecting, Arc::new(Memory::default()));
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    (connecting, sending, listening, receiving, memory)
}

#[test]
fn an_object_arrives_and_the_close_is_heard_though_the_end_of_file_follows() {
    const LENGTH: u64 = 5_000_001;
    for ways in [pipes(), sockets()] {
        let (connecting, sending, _listening, receiving, memory) = joined(ways);
        transfer(&sending, &receiving, LENGTH);
        assert!(*memory.received.lock().unwrap() == pattern(LENGTH), "the bytes differ");
        sending.link.close(0, "that was all");
        drop(connecting);
        let (why, stats, _) = closed(&receiving);
        assert_eq!(why, Closed::ByPeer { code: 0, reason: "that was all".into() });
        assert_eq!(stats.connection.bytes_written, LENGTH);
        assert_eq!((stats.refused, stats.connection.packets_lost), (0, 0));
    }
}

/// Both ends of a way through two processes, and those: what goes there, and what comes back.
pub(super) fn through_cats() -> (Way, Way, [Child; 2]) {
    let cat = || {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (write, read) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        (cat, OwnedFd::from(read), OwnedFd::from(write))
    };
    let ((there, read_b, write_a), (back, read_a, write_b)) = (cat(), cat());
    ((read_a, write_a), (read_b, write_b), [there, back])
}

/// Returns when a pipe has no room left.
fn wait_until_full(write: &OwnedFd) {
    let started = Instant::now();
    let nothing = Timespec { tv_sec: 0, tv_nsec: 0 };
    while poll(&mut [PollFd::new(write, PollFlags::OUT)], Some(&nothing)).unwrap() > 0 {
        assert!(started.elapsed() < PATIENCE, "the sender does not fill the pipe");
        thread::yield_now();
    }
}

#[test]
fn nothing_is_lost_and_only_probes_repeat_while_the_reader_is_stopped() {
    const LENGTH: u64 = 3_000_000;
    let ((read_a, write_a), there) = pipes();
    // What A writes goes through here.
    let (tap_read, tap_write) = pipe().unwrap();
    let mut full = Some(OwnedFd::from(tap_write.try_clone().unwrap()));
    let (connecting, listening) = (start((read_a, tap_write.into())), start(there));
    let memory = Arc::new(Memory::default());
    let arrivals = listen(&listening, Arc::clone(&memory) as _);
    let sending = connect(&connecting, Arc::new(Memory::default()));
    let (mut tap, mut out) = (File::from(OwnedFd::from(tap_read)), File::from(write_a));
    let pump = thread::spawn(move || {
        let mut buffer = vec![0; 8 << 10];
        let mut moved = 0;
        while let Ok(count @ 1..) = tap.read(&mut buffer) {
            moved += count as u64;
            // Once in the middle, as a program that ^Z has stopped.
            if moved > LENGTH / 2
                && let Some(write) = full.take()
            {
                wait_until_full(&write);
            }
            out.write_all(&buffer[..count]).unwrap();
        }
        moved
    });
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    transfer(&sending, &receiving, LENGTH);
    assert!(*memory.received.lock().unwrap() == pattern(LENGTH), "the bytes differ");
    sending.link.close(0, "");
    let (why, stats, _) = closed(&sending);
    assert_eq!((why, stats.connection.packets_lost), (Closed::ByUs, 0));
    // Two for each probe timeout, which backs off.
    assert!(stats.connection.resent_symbols <= 24, "{} symbols were sent again", stats.connection.resent_symbols);
    drop((connecting, sending));
    assert!(pump.join().unwrap() > LENGTH);
}

#[test]
fn a_limit_holds_from_now_on_until_it_is_taken_away() {
    const LENGTH: u64 = 2_000_000;
    let (_connecting, sending, _listening, receiving, memory) = joined(sockets());
    sending.wait(|event| matches!(event, LinkEvent::Connected { .. }).then_some(()));
    let rate = Rate::from_bits_per_second(8_000_000);
    sending.link.set_limit(Some(rate));
    sending.link.send_object(1, LENGTH);
    let flow = receiving.wait(|event| if let LinkEvent::Announced { flow, .. } = event { Some(flow) } else { None });
    receiving.link.accept_flow(flow);
    let pacing = |end: &End| {
        end.link.ask_stats();
        end.wait(|event| if let LinkEvent::Stats(stats) = event { Some(stats.connection.pacing_rate) } else { None })
    };
    assert_eq!(pacing(&sending), Some(rate));
    // At that rate the object takes two seconds.
    let started = Instant::now();
    sending.link.set_limit(None);
    assert!(pacing(&sending) > Some(rate));
    receiving.wait(|event| matches!(event, LinkEvent::Received { tag: 1 }).then_some(()));
    assert!(started.elapsed() < rate.time_for(LENGTH), "still limited: {:?}", started.elapsed());
    assert!(*memory.received.lock().unwrap() == pattern(LENGTH), "the bytes differ");
}

#[test]
fn a_peer_that_is_killed_is_missed_at_once() {
    for killed in [0, 1] {
        let (here, there, mut cats) = through_cats();
        let (_connecting, sending, _listening, receiving, _) = joined((here, there));
        sending.wait(|event| matches!(event, LinkEvent::Connected { .. }).then_some(()));
        sending.link.send_object(1, 1 << 40);
        let flow =
            receiving.wait(|event| if let LinkEvent::Announced { flow, .. } = event { Some(flow) } else { None });
        receiving.link.accept_flow(flow);
        receiving.wait(|event| matches!(event, LinkEvent::Digest(_)).then_some(()));
        let before = Instant::now();
        cats[killed].kill().unwrap();
        for end in [&sending, &receiving] {
            let (why, _, hint) = closed(end);
            assert_eq!((why, hint), (Closed::Dead, None), "{killed} was killed");
        }
        assert!(before.elapsed() < DEAD_AFTER / 3, "{killed} was killed, and missed after {:?}", before.elapsed());
        for cat in &mut cats {
            cat.wait().unwrap();
        }
    }
}

#[test]
fn a_pipe_that_ends_before_anybody_answered_says_so_to_those_who_come_later_too() {
    // The other side has ended, or only reads no more.
    for ended in [true, false] {
        let (here, (read, write)) = pipes();
        let driver = start(here);
        assert_eq!((driver.local_address(), driver.facts()), (PIPE_PEER, None));
        let arrivals = listen(&driver, Arc::new(Memory::default()));
        drop(read);
        let write = (!ended).then_some(write);
        let end = connect(&driver, Arc::new(Memory::default()));
        let told = end.wait(|event| match event {
            LinkEvent::Closed { why, send_error, .. } => Some((why, send_error.map(|error| error.to_string()))),
            // It came when the end was known already.
            LinkEvent::Failed(NetError::PeerLost) => Some((Closed::Dead, None)),
            _ => None,
        });
        assert_eq!(told.0, Closed::Dead);
        assert!(ended || told.1.is_some_and(|hint| hint.contains("pipe")), "the hint is there");
        let later = connect(&driver, Arc::new(Memory::default()));
        later.wait(|event| matches!(event, LinkEvent::Failed(NetError::PeerLost)).then_some(()));
        assert!(
            arrivals.recv_timeout(PATIENCE).is_err_and(|e| e == RecvTimeoutError::Disconnected),
            "nobody will come"
        );
        drop(write);
    }
}

#[test]
fn a_datagram_of_no_bytes_is_counted_and_ends_the_connection() {
    let (here, (_read, write)) = pipes();
    let driver = start(here);
    let end = connect(&driver, Arc::new(Memory::default()));
    // The link is there when this is answered.
    end.link.ask_stats();
    end.wait(|event| matches!(event, LinkEvent::Stats(_)).then_some(()));
    // One that the engine refuses comes first.
    File::from(write).write_all(&[0, 3, 1, 2, 3, 0, 0]).unwrap();
    let (why, stats, _) = closed(&end);
    assert!(matches!(&why, Closed::Violation(what) if what.contains("no bytes")), "{why:?}");
    assert_eq!(stats.refused, 2);
}
