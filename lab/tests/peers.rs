//! Transfers of small files by every peer on this machine, and small writes over every peer that carries connections.
//!
//! The kernel's TCP and quinn are part of this program. The others are tested by `cargo test -p lab --test peers --
//! --ignored`, after `cargo xtask lab-deps` has installed them and `cargo build` has built downpour. A missing peer
//! fails and says how to install it.

use std::fs;
use std::time::Duration;

use lab::peers::{Job, PeerError, Programs, Transfer, named, transfer};
use lab::plan::Writes;
use lab::testbed::Host;
use netsim::Rate;

const CAP: Duration = Duration::from_secs(60);

fn moved(name: &str, size: u64) -> Transfer {
    tried(name, size).unwrap_or_else(|error| panic!("{name}, {size} bytes: {error}"))
}

fn tried(name: &str, size: u64) -> Result<Transfer, PeerError> {
    within(name, size, CAP)
}

fn within(name: &str, size: u64, cap: Duration) -> Result<Transfer, PeerError> {
    done(name, size, None, cap)
}

fn done(name: &str, size: u64, writes: Option<Writes>, cap: Duration) -> Result<Transfer, PeerError> {
    let [from, to] = ["a", "b"].map(|name| Host::local(name).expect("a host"));
    let peer = named(name).expect("a peer");
    let programs = Programs::beside(env!("CARGO_BIN_EXE_downpour-lab").into());
    let rate = Some(Rate::from_megabits_per_second(1000));
    let job = Job { size, writes, endless: false, seed: size + 1, rate, choices: Vec::new(), programs };
    transfer(peer, &from, &to, &job, cap, None)
}

/// Moves files of these sizes and checks that they arrive.
fn moves(name: &str, sizes: &[u64]) {
    for size in sizes {
        let transfer = moved(name, *size);
        assert!(transfer.is_complete(), "{name}, {size} bytes: {transfer:?}");
        assert_eq!(transfer.equal, (!name.starts_with("iperf3")).then_some(true), "{name}");
        assert_eq!(transfer.bytes_there, *size, "{name}");
        let seconds = transfer.seconds.expect("it has arrived");
        assert!(seconds > 0.0 && seconds < CAP.as_secs_f64(), "{name}, {size} bytes: {seconds} s");
    }
}

/// Bytes uploaded beside small writes, which may end them early.
const UPLOAD: u64 = 50_000_000;

/// Writes over a connection of a peer, and checks that all writes or echoes arrive soon.
fn writes(name: &str) {
    let plain = Writes { every_seconds: 0.02, poisson: false, seconds: 1.0, echo: false, beside: None };
    let echoed = Writes { poisson: true, echo: true, ..plain };
    for (writes, size) in [(plain, 1000), (echoed, 1), (Writes { beside: Some(UPLOAD), ..echoed }, 1)] {
        let written = done(name, size, Some(writes), CAP).unwrap_or_else(|error| panic!("{name}, {writes}: {error}"));
        let delays = written.delays.unwrap_or_else(|| panic!("{name}, {writes}: {written:?}"));
        assert!(written.is_complete() && written.equal == Some(true), "{name}, {writes}: {written:?}");
        let ordered = [0.0, delays.p50_ms, delays.p90_ms, delays.p99_ms, delays.max_ms];
        assert!(ordered.is_sorted() && delays.p50_ms > 0.0 && delays.p50_ms < 500.0, "{name}, {writes}: {delays:?}");
        match writes.beside {
            None => {
                assert_eq!((written.bytes_there, delays.count), (0, if writes.poisson { delays.count } else { 50 }))
            }
            Some(_) => assert!(written.bytes_there > 0 && delays.count > 0, "{name}, {writes}: {written:?}"),
        }
    }
}

const SIZES: [u64; 3] = [0, 1, 1_000_000];

/// Returns whether this user may choose a congestion control: cubic may need an administrator.
fn may_choose(congestion: &str) -> bool {
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").expect("a Linux kernel");
    allowed.split_whitespace().any(|allowed| allowed == congestion)
}

#[test]
fn tcp() {
    for name in ["tcp-reno", "tcp8-reno"] {
        moves(name, &SIZES);
        assert_eq!(moved(name, 7).congestion.as_deref(), Some("reno"));
    }
    writes("tcp-reno");
    for congestion in ["cubic", "bbr"].into_iter().filter(|congestion| may_choose(congestion)) {
        let name = format!("tcp-{congestion}");
        moves(&name, &SIZES);
        assert_eq!(moved(&name, 7).congestion.as_deref(), Some(congestion));
    }
}

#[test]
fn quinn() {
    moves("quinn-cubic", &SIZES);
    moves("quinn-bbr", &SIZES);
    assert!(moved("quinn-cubic", 1).encrypted);
}

#[test]
fn file_only_peer_refuses_writes() {
    let writes = Writes { every_seconds: 0.1, poisson: false, seconds: 1.0, echo: true, beside: None };
    let error = done("tcp8-reno", 1, Some(writes), CAP).expect_err("eight connections share a file").to_string();
    assert_eq!(error, "tcp8-reno carries no connections: small writes need a peer such as tunnel");
}

#[test]
fn late_file_is_no_error() {
    for name in ["tcp-reno", "tcp8-reno", "quinn-cubic"] {
        let late = within(name, 100_000_000, Duration::from_millis(1)).expect("a result");
        assert!(late.seconds.is_none() && !late.is_complete() && late.bytes_there < 100_000_000, "{name}: {late:?}");
    }
}

#[test]
#[ignore = "needs an administrator, who may choose cubic"]
fn tcp_with_any_congestion_control() {
    for congestion in ["cubic", "bbr"] {
        for name in [format!("tcp-{congestion}"), format!("tcp8-{congestion}")] {
            moves(&name, &SIZES);
            assert_eq!(moved(&name, 7).congestion.as_deref(), Some(congestion));
        }
    }
}

#[test]
#[ignore = "needs an administrator, who may load it into the kernel"]
fn tcp_grow_only() {
    moves("tcp-grow-only", &SIZES);
    assert_eq!(moved("tcp-grow-only", 7).congestion.as_deref(), Some("lab_grow_only"));
    let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("a Linux kernel");
    assert!(!known.contains("lab_grow_only"), "unloaded after the socket's choice: {known}");
}

#[test]
#[ignore = "needs downpour: cargo build --package downpour-cli"]
fn downpour() {
    for name in ["downpour-arq", "downpour-auto", "downpour-auto-told"] {
        moves(name, &SIZES);
    }
    assert!(moved("downpour-auto", 1).versions["downpour"].starts_with("downpour "));
}

#[test]
#[ignore = "needs sshd, scp and rsync: apt-get install openssh-server openssh-client rsync"]
fn ssh() {
    for name in ["scp-cubic", "scp-bbr", "rsync-cubic", "rsync-bbr"] {
        moves(name, &SIZES);
    }
    for name in ["ssh-forward-cubic", "ssh-forward-bbr"] {
        moves(name, &SIZES);
        writes(name);
    }
    let route = |name| named(name).expect("a peer").route_congestion();
    assert_eq!(route("ssh-forward-bbr"), Some("bbr"));
    assert_eq!((route("scp-cubic"), route("rsync-bbr"), route("tcp-cubic")), (Some("cubic"), Some("bbr"), None));
}

#[test]
#[ignore = "needs downpour (cargo build --package downpour-cli) and sshd: apt-get install openssh-server openssh-client"]
fn downpour_cp() {
    moves("downpour-cp", &SIZES);
    assert!(moved("downpour-cp", 1).versions["downpour"].starts_with("downpour "));
}

#[test]
#[ignore = "needs downpour (cargo build --package downpour-cli) and sshd: apt-get install openssh-server openssh-client"]
fn tunnel() {
    for name in ["tunnel", "tunnel-told"] {
        moves(name, &SIZES);
        writes(name);
    }
    assert!(moved("tunnel", 1).versions["downpour"].starts_with("downpour "));
}

#[test]
#[ignore = "needs iperf3 (apt-get install iperf3), and an administrator, who may choose cubic"]
fn iperf3() {
    for congestion in ["cubic", "reno", "bbr"] {
        let name = format!("iperf3-{congestion}");
        moves(&name, &SIZES[1..]);
        assert_eq!(moved(&name, 7).congestion.as_deref(), Some(congestion));
    }
    assert_eq!(tried("iperf3-reno", 0).expect_err("endless").to_string(), "iperf3 cannot send an empty file");
}

#[test]
#[ignore = "needs kcptun: apt-get install kcptun"]
fn kcptun() {
    moves("kcptun", &SIZES);
    writes("kcptun");
    moves("kcptun-nofec", &SIZES);
}

#[test]
#[ignore = "needs uftp: apt-get install uftp"]
fn uftp() {
    moves("uftp", &SIZES);
}

#[test]
#[ignore = "needs srt-file-transmit: apt-get install srt-tools"]
fn srt() {
    moves("srt", &SIZES[1..]);
    assert_eq!(tried("srt", 0).expect_err("a broken connection").to_string(), "srt cannot send an empty file");
}

#[test]
#[ignore = "needs hysteria: its program in PATH"]
fn hysteria() {
    moves("hysteria-bbr", &SIZES);
    writes("hysteria-bbr");
    moves("hysteria-brutal", &SIZES);
    assert!(moved("hysteria-bbr", 1).versions["hysteria"].starts_with("Version:"));
}

#[test]
#[ignore = "needs NORM and UDT: cargo xtask lab-deps"]
fn norm_and_udt() {
    moves("udt", &SIZES);
    moves("norm", &SIZES[1..]);
    moves("norm-proactive", &SIZES[1..]);
    assert_eq!(tried("norm", 0).expect_err("no file of NORM's").to_string(), "norm cannot send an empty file");
}
