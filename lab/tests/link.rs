//! `downpour-lab link` as users run it. Needs a kernel that lets this user create network namespaces, and bash for its
//! `/dev/udp`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use netsim::{Ecn, Link, OfferOutcome, Time};

fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_downpour-lab"))
}

fn link(options: &[&str], command: &[&str]) -> Output {
    lab().arg("link").args(options).arg("--").args(command).output().expect("the program starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the report as JSON, and the exit code.
fn report(options: &[&str], script: &str) -> (serde_json::Value, Option<i32>) {
    let directory = tempfile::tempdir().expect("a directory for temporary files");
    let path = directory.path().join("report.json");
    let options = [options, &["--json", path.to_str().expect("it has an ordinary name")]].concat();
    let output = link(&options, &["bash", "-c", script]);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    (serde_json::from_str(&text).expect("the report is JSON"), output.status.code())
}

/// Returns how many of the first `count` packets of this IP size the model loses.
fn losses_of_model(link: &str, count: u32, ip_bytes: u32) -> u64 {
    let mut link = Link::new(link.parse().expect("a link")).expect("a link that makes sense");
    let lost = (0..count).filter(|_| matches!(link.offer(Time::ZERO, ip_bytes, Ecn::NotEct), OfferOutcome::Dropped(_)));
    lost.count() as u64
}

fn lost(report: &serde_json::Value) -> u64 {
    let events = report["links"][0]["events"].as_array().expect("events are a list");
    events
        .iter()
        .find(|event| event[0] == "lost at random")
        .map_or(0, |event| event[1].as_u64().expect("counts are numbers"))
}

#[test]
fn link_resolves_peer_and_returns_exit_code() {
    let script = "getent hosts peer; echo $LAB_PEER $LAB_SELF; exit 7";
    let output = link(&["--delay", "1ms"], &["bash", "-c", script]);
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["10.77.0.2", "b", "peer", "10.77.0.2", "10.77.0.1"]);
    let ended_by_signal = link(&[], &["bash", "-c", "kill -TERM $$"]);
    assert_eq!(ended_by_signal.status.code(), Some(128 + 15));
}

/// This machine's name servers are not on the link: a question to them would make the run invalid.
#[test]
fn link_dns_isolated() {
    let (report, code) = report(&["--delay", "1ms"], "! getent hosts name.example && ! getent hosts other.example");
    assert_eq!((code, &report["valid"]), (Some(0), &true.into()), "{report}");
}

#[test]
fn link_loses_the_packets_of_the_model() {
    for (loss, seed) in [("20%", 1_u32), ("20%", 2), ("5%", 3)] {
        let options = ["--loss", loss, "--seed", &seed.to_string(), "--backward", "loss=0%"];
        let script = "for i in {1..300}; do echo -n 12345678 > /dev/udp/peer/9; done";
        let (report, code) = report(&options, script);
        assert_eq!(code, Some(0));
        assert_eq!(report["links"][0]["offered"], 300);
        assert_eq!(report["links"][0]["offered_bytes"], 300 * 36);
        assert_eq!(lost(&report), losses_of_model(&format!("loss={loss},seed={seed}"), 300, 36));
    }
}

#[test]
fn impair_switches_faults_off_and_on() {
    let lab = env!("CARGO_BIN_EXE_downpour-lab");
    let send = |count: u32| format!("for i in {{1..{count}}}; do echo -n x > /dev/udp/peer/9; done");
    let script = format!("{}; {lab} impair on && {}; {lab} impair off && {}", send(10), send(20), send(40));
    let (report, code) = report(&["--unimpaired", "--loss", "100%", "--backward", "loss=0%"], &script);
    assert_eq!(code, Some(0));
    assert_eq!((report["links"][0]["offered"].as_u64(), lost(&report)), (Some(70), 20));
    let output = self::lab().args(["impair", "on"]).env_remove("LAB_CONTROL").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("use this within `downpour-lab link`"), "{}", stderr(&output));
}

#[test]
fn link_waits_until_peer_listens() {
    // Servers take a moment to start; a client that connects earlier is refused.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let lab = env!("CARGO_BIN_EXE_downpour-lab");
    let peer = format!("sleep 0.3; exec {lab} peer tcp-receive --listen 10.77.0.2:4000 --size 5 {}", file.display());
    let client = "exec 3<> /dev/tcp/peer/4000 && echo connected";
    let output = link(&["--delay", "1ms", "--peer", &peer], &["bash", "-c", client]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("connected"), "{}", stderr(&output));
}

const DUMBBELL: &str = r#"
    hosts = ["a1", "a2", "b1", "b2"]
    routers = ["left", "right"]
    links = [
        { between = ["left", "right"], link = "rate=10M,delay=2ms,loss=20%,seed=4 / rate=10M" },
        { between = ["a1", "left"], link = "delay=1ms" },
        { between = ["a2", "left"], link = "perfect" },
        { between = ["b1", "right"], link = "perfect" },
        { between = ["b2", "right"], link = "perfect" },
    ]
    pairs = [{ from = "a1", to = "b1" }, { from = "a2", to = "b2" }]
"#;

#[test]
fn link_topology_pairs_share_bottleneck() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dumbbell.toml");
    std::fs::write(&file, DUMBBELL).unwrap();
    let file = file.to_str().unwrap();
    let send = "for i in {1..150}; do echo -n 12345678 > /dev/udp/peer/9; done";
    let at = format!("a2=bash -c '{send}; exec 3<>/dev/udp/127.0.0.1/9; sleep 60'");
    // Host `a2` has finished sending when it has a socket open. Then `a1` begins.
    let (report, code) = report(&["--topology", file, "--at", &at], &format!("{send}; getent hosts peer | grep -q b1"));
    assert_eq!(code, Some(0));
    assert_eq!(report["links"][0]["name"], "left>right");
    assert_eq!(report["links"][0]["offered"], 300);
    let model: netsim::topology::Topology = DUMBBELL.parse().unwrap();
    let mut link = Link::new(model.links()[0].link.forward.clone()).unwrap();
    let dropped = (0..300).filter(|&i| {
        matches!(link.offer(Time::from_nanos(i * 100_000_000), 36, Ecn::NotEct), OfferOutcome::Dropped(_))
    });
    assert_eq!(lost(&report), dropped.count() as u64);
    let unknown = lab().args(["link", "--topology", file, "--at", "c=true", "--", "true"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("unknown host c: one of a1, a2, b1, b2"), "{}", stderr(&unknown));
}

#[test]
fn link_down_loses_packets() {
    // The link is down from the start until after the commands have ended.
    let (report, _) = report(&["--down", "0s..600s"], "for i in {1..20}; do echo -n x > /dev/udp/peer/9; done");
    assert_eq!(report["links"][0]["events"], serde_json::json!([["dropped while down", 20]]));
}

#[test]
fn link_invalid_options_exit_2() {
    let cases: [(&[&str], &str); 9] = [
        (&["--trace", "/no/such/trace"], "cannot read the trace /no/such/trace: "),
        (&["--topology", "/no/such/topology"], "cannot read the topology /no/such/topology: "),
        (&["--rate", "1M", "--topology", "x.toml"], "link options have no effect with --topology"),
        (&["--loss", "120%"], "loss is 1.2: write a probability from 0% to 100%"),
        (&["--rate", "1M", "--queue", "0"], "queue"),
        (&["--delay", "50"], "cannot read delay=50: write it like 50ms"),
        (&["--loss", "5%", "--burst", "1"], "burst is 1: with 0.05 loss write at least 1.053"),
        (&["--forward", "speed=1M"], "unknown key \"speed\""),
        (&["--queue", "256KB"], "queue has no effect without a rate"),
    ];
    for (options, message) in cases {
        let output = link(options, &["true"]);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {}", stderr(&output));
        let text = stderr(&output);
        assert!(text.contains(message), "{options:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    let mistyped = lab().args(["link", "--los", "5%", "--", "true"]).output().unwrap();
    assert_eq!(mistyped.status.code(), Some(2));
    assert!(stderr(&mistyped).contains("unexpected argument '--los'"), "{}", stderr(&mistyped));
    let directory = tempfile::tempdir().unwrap();
    let was_run = &directory.path().join("was-run");
    let was_run = was_run.to_str().unwrap();
    let unwritable = link(&["--json", "/no/such/directory/report.json"], &["touch", was_run]);
    assert_eq!(unwritable.status.code(), Some(125));
    assert!(!Path::new(was_run).exists());
    let absent = link(&[], &["/no/such/program"]);
    assert_eq!(absent.status.code(), Some(127));
    assert_eq!(stderr(&absent), "downpour-lab: /no/such/program: command not found\n");
    assert_eq!(link(&[], &["/etc/passwd"]).status.code(), Some(126));
}

/// Returns whether a process with this command line exists.
fn is_running(mark: &str) -> bool {
    let commands = std::fs::read_dir("/proc")
        .expect("/proc exists")
        .filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
    commands
        .map(|command| String::from_utf8_lossy(&command).replace('\0', " "))
        .any(|command| command.starts_with(mark))
}

fn is_gone_within(mark: &str, time: Duration) -> bool {
    let start = Instant::now();
    while is_running(mark) {
        if start.elapsed() > time {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn link_killed_ends_all_processes() {
    // Unique command lines: sleeps of odd durations.
    let (peer, own) = (format!("sleep 1{}.25", std::process::id()), format!("sleep 1{}.75", std::process::id()));
    let script = format!("setsid {own} & echo started; {own}");
    let directory = tempfile::tempdir().unwrap();
    let mut child = lab()
        .env("TMPDIR", directory.path())
        .args(["link", "--peer", &format!("setsid {peer} & exec {peer}"), "--", "bash", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "started\n");
    assert!(is_running(&peer));
    child.kill().unwrap();
    child.wait().unwrap();
    for mark in [&peer, &own] {
        assert!(is_gone_within(mark, Duration::from_secs(10)), "{mark} still runs");
    }
    let left = |directory: &Path| {
        let names = std::fs::read_dir(directory)
            .unwrap()
            .filter_map(|entry| Some(entry.ok()?.file_name().into_string().unwrap()));
        names.filter(|name| name.starts_with("downpour-lab-")).count()
    };
    assert!(left(directory.path()) > 0);
    let cleaned = lab().arg("clean").env("TMPDIR", directory.path()).output().unwrap();
    assert!(cleaned.status.success());
    assert_eq!(left(directory.path()), 0, "{}", String::from_utf8_lossy(&cleaned.stdout));
}

#[test]
fn link_peer_killed_after_command() {
    // If the command does not exist, the peer is not waited for. A peer that ignores signals is killed.
    let start = Instant::now();
    let absent = link(&["--peer", "sleep 600"], &["/no/such/program"]);
    assert_eq!(absent.status.code(), Some(127), "{}", stderr(&absent));
    assert!(!stderr(&absent).contains("failed:"), "a killed command did not fail: {}", stderr(&absent));
    let failed = link(&["--peer", "exit 9"], &["true"]);
    assert_eq!(failed.status.code(), Some(0));
    assert!(stderr(&failed).contains("command on b failed: exit status: 9"), "{}", stderr(&failed));
    let deaf = link(&["--peer", "trap '' TERM; while :; do sleep 0.1; done"], &["true"]);
    assert_eq!(deaf.status.code(), Some(0), "{}", stderr(&deaf));
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn link_interrupted_prints_the_report() {
    let mut child = lab()
        .args([
            "link",
            "--delay",
            "1ms",
            "--",
            "bash",
            "-c",
            "trap 'exit 9' TERM; echo started; while :; do sleep 0.01; done",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(9));
    assert!(stderr(&output).contains("verdict: "), "{}", stderr(&output));
}
