//! Connections through pipes: transfers, slow readers, and the exit of the peer.

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::Instant;

use super::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

#[test]
fn an_object_and_the_close_arrive_before_the_end_of_file() {
    const LENGTH: u64 = 5_000_001;
    for ways in [pipes(), sockets()] {
        let (connecting, sending, _listening, receiving) = joined(ways);
        transfer_pattern(&sending, &receiving, LENGTH);
        sending.connection.close(0, "end of stream");
        drop(connecting);
        let (why, stats) = receiving.closed();
        assert!(matches!(why, NetError::ClosedByPeer { code: 0, reason } if reason == "end of stream"));
        assert_eq!(stats.connection.objects.written, LENGTH);
        assert_eq!((stats.refused.total(), stats.connection.packets.lost), (0, 0));
    }
}

/// Returns both ends of a connection through two processes, and these: one for each direction.
pub(super) fn through_cats() -> (PipePair, PipePair, [Child; 2]) {
    let cat = || {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (write, read) = (cat.stdin.take().unwrap(), cat.stdout.take().unwrap());
        (cat, OwnedFd::from(read), OwnedFd::from(write))
    };
    let ((remote, read_b, write_a), (back, read_a, write_b)) = (cat(), cat());
    ((read_a, write_a), (read_b, write_b), [remote, back])
}

/// Returns when a pipe is full.
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
    let ((read_a, write_a), remote) = pipes();
    // A's output goes through this pipe.
    let (tap_read, tap_write) = pipe().unwrap();
    let mut full = Some(OwnedFd::from(tap_write.try_clone().unwrap()));
    let (connecting, listening) = (start((read_a, tap_write.into())), start(remote));
    let arrivals = listen(&listening);
    let sending = connect(&connecting);
    let (mut tap, mut out) = (File::from(OwnedFd::from(tap_read)), File::from(write_a));
    let pump = thread::spawn(move || {
        let mut buffer = vec![0; 8 << 10];
        let mut moved = 0;
        while let Ok(count @ 1..) = tap.read(&mut buffer) {
            moved += count as u64;
            // Once in the middle, like a program stopped by ^Z.
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
    transfer_pattern(&sending, &receiving, LENGTH);
    sending.connection.close(0, "");
    let (why, stats) = sending.closed();
    assert!(matches!(why, NetError::ClosedLocally));
    assert_eq!(stats.connection.packets.lost, 0);
    // Two for each probe timeout, which backs off.
    assert!(stats.connection.symbols.resent <= 24, "{} symbols were sent again", stats.connection.symbols.resent);
    drop((connecting, sending));
    assert!(pump.join().unwrap() > LENGTH);
}

#[test]
fn a_limit_holds_from_now_on_until_it_is_taken_away() {
    const LENGTH: u64 = 2_000_000;
    let (_connecting, sending, _listening, receiving) = joined(sockets());
    let memory = Arc::new(Memory::default());
    sending.connected();
    let rate = Rate::from_bits_per_second(8_000_000);
    sending.connection.set_limit(Some(rate));
    sending.connection.send_object(1, LENGTH, Arc::clone(&memory) as _);
    receiving.announced().accept(Arc::clone(&memory) as _);
    let pacing = || sending.stats().connection.congestion.pacing_rate;
    assert_eq!(pacing(), Some(rate));
    // At that rate the object takes two seconds.
    let started = Instant::now();
    sending.connection.set_limit(None);
    assert!(pacing() > Some(rate));
    receiving.wait(|event| matches!(event, Event::ObjectReceived { tag: 1 }).then_some(()));
    assert!(started.elapsed() < rate.time_for(LENGTH), "still limited: {:?}", started.elapsed());
    assert!(*memory.received.lock().unwrap() == pattern(LENGTH), "the bytes differ");
}

#[test]
fn a_killed_peer_is_detected_at_once() {
    for killed in [0, 1] {
        let (local, remote, mut cats) = through_cats();
        let (_connecting, sending, _listening, receiving) = joined((local, remote));
        sending.connected();
        sending.connection.send_object(1, 1 << 40, Arc::<Memory>::default());
        receiving.announced().accept(Arc::<Memory>::default());
        receiving.wait(|event| matches!(event, Event::Digest(_)).then_some(()));
        let before = Instant::now();
        cats[killed].kill().unwrap();
        for end in [&sending, &receiving] {
            assert!(matches!(end.closed().0, NetError::ConnectionLost), "{killed} was killed");
        }
        assert!(before.elapsed() < DEAD_AFTER / 3, "{killed} was killed, and missed after {:?}", before.elapsed());
        for cat in &mut cats {
            cat.wait().unwrap();
        }
    }
}

#[test]
fn a_pipe_closed_before_an_answer_is_reported_to_later_callers_too() {
    // The peer has exited, or only stopped reading.
    for ended in [true, false] {
        let (local, (read, write)) = pipes();
        let endpoint = start(local);
        assert_eq!((endpoint.local_address(), endpoint.facts()), (PIPE_PEER, None));
        let arrivals = listen(&endpoint);
        drop(read);
        let write = (!ended).then_some(write);
        for _ in 0..2 {
            assert!(matches!(connect(&endpoint).closed().0, NetError::PipeEnded));
        }
        assert!(
            arrivals.recv_timeout(PATIENCE).is_err_and(|e| e == RecvTimeoutError::Disconnected),
            "no peer will connect"
        );
        drop(write);
    }
}

#[test]
fn a_datagram_of_no_bytes_is_counted_and_ends_the_connection() {
    let (local, (_read, write)) = pipes();
    let endpoint = start(local);
    let end = connect(&endpoint);
    // The connection has begun when this is answered.
    end.stats();
    // A datagram that the engine rejects is first.
    File::from(write).write_all(&[0, 3, 1, 2, 3, 0, 0]).unwrap();
    let (why, stats) = end.closed();
    assert!(matches!(&why, NetError::ProtocolViolation { reason } if reason.contains("empty datagram")), "{why:?}");
    let counted: Vec<_> = stats.refused.by_reason().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [("too_short", 1), ("empty", 1)]);
}
