//! Transfers by test peers that fail.

use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::peer::{Need, Peer, PeerKind};
use super::run::{TransferRun, Unfinished};
use super::{Downpour, Job, PeerError, Presence, Programs, Transfer, all, choices, named, table, transfer};
use crate::clock;
use crate::testbed::{Host, Protocol};

const COPY: Peer = Peer {
    name: "copy",
    needs: &[],
    encrypted: false,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: ["it begins", "it ends"],
    play: PeerKind::File(|run| copy(run, |_| {})),
};

fn copy(run: &mut TransferRun<'_>, change: fn(&mut Vec<u8>)) -> Result<Duration, Unfinished> {
    run.start_clock();
    let mut bytes = fs::read(run.stage.source()).expect("the sent file");
    change(&mut bytes);
    fs::write(run.stage.target(), bytes).expect("room for its copy");
    Ok(clock::now())
}

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

fn tried(peer: &Peer, cap: Duration) -> Result<Transfer, PeerError> {
    let [from, to] = ["a", "b"].map(|name| Host::local(name).expect("a host"));
    let programs = Programs::of_this(Downpour::Found).expect("this program");
    let job = Job { size: 100_000, writes: None, endless: false, seed: 7, rate: None, choices: Vec::new(), programs };
    transfer(peer, &from, &to, &job, cap, None)
}

const SOON: Duration = Duration::from_secs(20);

#[test]
fn received_file_is_compared() {
    let good = tried(&COPY, SOON).expect("a copy");
    assert!(
        good.is_complete() && good.equal == Some(true) && good.seconds.is_some_and(|seconds| seconds < 5.0),
        "{good:?}"
    );
    assert_eq!(good.bytes_there, 100_000);
    assert_eq!((good.clock.starts.as_str(), good.clock.ends.as_str()), ("it begins", "it ends"));
    let flipped = Peer { play: PeerKind::File(|run| copy(run, |bytes| bytes[99_999] ^= 1)), ..COPY };
    let flipped = tried(&flipped, SOON).expect("a copy");
    assert!(
        !flipped.is_complete()
            && flipped.equal == Some(false)
            && flipped.seconds.is_some()
            && flipped.bytes_there == 100_000,
        "{flipped:?}"
    );
    let short = Peer { play: PeerKind::File(|run| copy(run, |bytes| bytes.truncate(10))), ..COPY };
    let short = tried(&short, SOON).expect("a copy");
    assert!(!short.is_complete() && short.equal == Some(false) && short.bytes_there == 10, "{short:?}");
    let nothing = Peer { play: PeerKind::File(|run| Ok(run.started())), ..COPY };
    let nothing = tried(&nothing, SOON).expect("nothing at all");
    assert!(!nothing.is_complete() && nothing.equal == Some(false) && nothing.bytes_there == 0, "{nothing:?}");
}

/// The process that [`cap_kills_all_started_processes`] starts in a session of its own.
static STRAY: Mutex<Option<u32>> = Mutex::new(None);

#[test]
fn cap_kills_all_started_processes() {
    let endless = Peer {
        play: PeerKind::File(|run| {
            let target = run.stage.target();
            let script = "head -c 5000 /dev/zero >\"$0\"; setsid sh -c 'echo $$; exec sleep 600' & wait";
            let mut command = shell(script);
            command.arg(target);
            let mut process = run.start_read(run.to, command)?;
            run.start_clock();
            let (stray, _) = run.wait_for_line(&mut process, &mut [], |line| line.trim().parse().ok())?;
            *STRAY.lock().expect("one test") = Some(stray);
            run.exit(&mut process, &mut [])
        }),
        ..COPY
    };
    let begun = Instant::now();
    let cut = tried(&endless, Duration::from_secs(1)).expect("no error");
    let took = begun.elapsed();
    assert!((Duration::from_secs(1)..SOON).contains(&took), "{took:?}");
    assert_eq!((cut.seconds, cut.equal, cut.bytes_there), (None, Some(false), 5000));
    let stray = STRAY.lock().expect("one test").expect("it was started");
    // Its new parent may take a moment to reap it.
    let runs = || fs::read_to_string(format!("/proc/{stray}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while runs() {
        assert!(begun.elapsed() < SOON, "{stray} still runs");
        thread::yield_now();
    }
}

#[test]
fn failing_program_is_quoted() {
    let failing = Peer {
        play: PeerKind::File(|run| {
            let mut receiver = run.start(run.to, shell("exec sleep 600"))?;
            run.start_clock();
            let mut sender = run.start(run.from, shell("echo first >&2; echo 'no route\tto b' >&2; exit 3"))?;
            run.exit(&mut receiver, &mut [&mut sender])
        }),
        ..COPY
    };
    let begun = Instant::now();
    let error = tried(&failing, SOON).expect_err("it failed").to_string();
    assert_eq!(error, "sh failed with exit status: 3: first; no route to b");
    assert!(begun.elapsed() < SOON);
}

#[test]
fn line_reads_one_line_at_a_time() {
    let talking = Peer {
        play: PeerKind::File(|run| {
            let mut receiver = run.start_read(run.to, shell("printf 'one\\ntwo\\nthree\\n'; exec sleep 600"))?;
            run.start_clock();
            run.wait_for_line(&mut receiver, &mut [], |line| (line == "one\n").then_some(()))?;
            let ((), at) = run.wait_for_line(&mut receiver, &mut [], |line| (line == "three\n").then_some(()))?;
            Ok(at)
        }),
        ..COPY
    };
    let heard = tried(&talking, SOON).expect("three lines");
    assert!(heard.seconds.is_some_and(|seconds| seconds < 10.0), "{heard:?}");
}

#[test]
fn full_waits_for_the_full_length() {
    let growing = Peer {
        play: PeerKind::File(|run| {
            let mut write =
                shell("head -c 60000 \"$0\" >\"$1\"; sleep 0.2; tail -c +60001 \"$0\" >>\"$1\"; exec sleep 600");
            write.arg(run.stage.source()).arg(run.stage.target());
            run.start_clock();
            let mut receiver = run.start(run.to, write)?;
            run.full(&mut receiver, &mut [])
        }),
        ..COPY
    };
    let grown = tried(&growing, SOON).expect("a file");
    assert!(grown.is_complete() && grown.seconds.is_some_and(|seconds| (0.2..10.0).contains(&seconds)), "{grown:?}");
    let stopping = Peer {
        play: PeerKind::File(|run| {
            let mut receiver = run.start(run.to, shell("echo broken >&2; exit 0"))?;
            run.start_clock();
            run.full(&mut receiver, &mut [])
        }),
        ..COPY
    };
    let error = tried(&stopping, SOON).expect_err("no file").to_string();
    assert_eq!(error, "sh failed with exit status: 0: broken");
}

#[test]
fn listens_quotes_an_exited_receiver() {
    let deaf = Peer {
        play: PeerKind::File(|run| {
            let port = TransferRun::free_port(run.to)?;
            let mut receiver = run.start(run.to, shell("echo in use >&2; exit 1"))?;
            run.listens(&mut receiver, run.to, Protocol::Udp, port)?;
            Ok(run.started())
        }),
        ..COPY
    };
    let error = tried(&deaf, SOON).expect_err("it does not listen").to_string();
    assert_eq!(error, "sh failed with exit status: 1: in use");
}

#[test]
fn listens_without_a_connection() {
    let host = Host::local("a").expect("a host");
    let free = TransferRun::free_port(&host).expect("a port");
    let is_open = |protocol, port| host.listening().contains(&(protocol, port));
    assert!(!is_open(Protocol::Tcp, free) && !is_open(Protocol::Udp, free));
    let tcp = std::net::TcpListener::bind((host.address(), 0)).expect("a port");
    let udp = std::net::UdpSocket::bind((host.address(), 0)).expect("a port");
    let port = |address: std::io::Result<std::net::SocketAddr>| address.expect("an address").port();
    assert!(is_open(Protocol::Tcp, port(tcp.local_addr())));
    assert!(is_open(Protocol::Udp, port(udp.local_addr())));
}

#[test]
fn absent_program_error_has_install_command() {
    const NEEDS: &[Need] = &[
        Need::Congestion("reno"),
        Need::Program { name: "downpour-no-such-program", install: "apt-get install it", version: &[] },
    ];
    let absent = Peer { needs: NEEDS, ..COPY };
    let error = tried(&absent, SOON).expect_err("it is absent").to_string();
    assert_eq!(error, "copy needs the program downpour-no-such-program: apt-get install it");
    let unknown = Peer { needs: &[Need::Congestion("nosuch")], ..COPY };
    let programs = Programs::of_this(Downpour::Found).expect("this program");
    let missing = Presence::Absent { missing: "the kernel's nosuch".into(), install: "modprobe tcp_nosuch".into() };
    assert_eq!(unknown.presence(&programs), missing);
    assert_eq!(Peer { route_congestion: Some("nosuch"), ..COPY }.presence(&programs), missing);
    assert_eq!(COPY.presence(&programs), Presence::Present);
}

#[test]
fn every_profile_has_a_peer() {
    for profile in systems::registry().profile_names() {
        named(&format!("downpour-{profile}")).expect("a row for it");
    }
}

#[test]
fn choices_follow_a_downpour_peer_name() {
    let chosen = |name: &str| choices(name).map_err(|error| error.to_string());
    let overhead = vec![("streams.overhead".to_owned(), "40%".to_owned())];
    assert_eq!(chosen("tunnel-told streams.overhead=40%"), Ok(overhead));
    assert_eq!(chosen("kcptun"), Ok(Vec::new()));
    assert_eq!(chosen("kcptun rate=1M"), Err("kcptun rate=1M: it has no profile".to_owned()));
    assert!(chosen("tunnel streams=paper").is_err());
}

#[test]
fn fixed_rate_peer_without_rate_fails() {
    let error = tried(&Peer { fixed_rate: true, ..COPY }, SOON).expect_err("no rate").to_string();
    assert_eq!(error, "copy needs a fixed rate: the link has no rate");
}

#[test]
fn peer_names_are_found_and_unique() {
    let names: Vec<&str> = all().map(Peer::name).collect();
    for name in &names {
        assert_eq!(named(name).expect("listed").name(), *name);
        assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{name}");
    }
    assert!(named("tcp-vegas").is_err_and(|error| error.to_string().contains("'tcp-vegas'")));
    let text = table(&Programs::of_this(Downpour::Found).expect("this program"));
    assert!(names.iter().all(|name| text.contains(name)), "{text}");
}
