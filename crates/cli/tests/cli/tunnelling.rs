//! `tunnel` to the local host, with real sockets at both ends.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use crate::fake_ssh::FakeHost;
use crate::program::{Program, json, wait_until};
use crate::proxying::NOTED;

/// Longer than any answer within one host takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Starts a server that echoes the input of each connection when it ends; returns its port.
pub(crate) fn echo_server() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.expect("a connection");
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // Clients may break off.
                if socket.read_to_end(&mut bytes).is_ok() {
                    let _ = socket.write_all(&bytes);
                }
            });
        }
    });
    port
}

/// Returns a port on which no program listens.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr()).expect("a port").port()
}

pub(crate) fn dial(port: u16) -> TcpStream {
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a listener");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// Sends this and returns the answer, of which the end is the server's.
pub(crate) fn exchange(port: u16, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut socket = dial(port);
    socket.write_all(bytes)?;
    socket.shutdown(Shutdown::Write)?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Waits until no remote process runs.
fn wait_until_gone(far: &FakeHost) {
    wait_until("the remote process has ended", || far.processes("remote").is_empty());
}

/// Opens a tunnel, and waits until it is open. The first forward may have port 0: returns the port that it got.
fn open(far: &FakeHost, arguments: &[&str]) -> (Program, u16) {
    let mut tunnel = Program::start(far.command("tunnel", arguments.iter().chain(&["far"])));
    let line = tunnel.wait_for_words("");
    let port = line.split_once("localhost:").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    if !line.contains("is open") {
        tunnel.wait_for_words("The tunnel to far is open");
    }
    (tunnel, port.unwrap_or_default())
}

#[test]
fn tunnel_forwards_both_directions_udp_and_ssh() {
    let server = echo_server();
    for via in ["udp", "ssh"] {
        let (far, behind) = (FakeHost::new(), free_port());
        let (local, remote) = (format!("0:localhost:{server}"), format!("{behind}:127.0.0.1:{server}"));
        let (tunnel, port) = open(&far, &["--via", via, "-L", &local, "-R", &remote]);
        let bytes: Vec<u8> = (0..2_000_000_u32).map(|at| (at % 251) as u8).collect();
        for port in [port, behind] {
            assert!(exchange(port, &bytes).expect("an answer") == bytes, "{via}");
            assert_eq!(exchange(port, b"").expect("an answer"), b"", "{via}");
        }
        // An open connection is reset with the tunnel, at both ends, and the remote process ends.
        let mut held = dial(port);
        held.write_all(b"some").expect("it is open");
        tunnel.signal(Signal::INT);
        let ended = tunnel.end();
        assert_eq!((ended.status.code(), ended.stdout.as_str()), (Some(130), ""), "{}", ended.stderr);
        held.read_to_end(&mut Vec::new()).expect_err("no end");
        wait_until_gone(&far);
    }
}

#[test]
fn socks_proxy_resolves_remotely_and_reports() {
    let (far, server) = (FakeHost::new(), echo_server());
    let (_tunnel, proxy) = open(&far, &["-D", "0"]);
    let asked = |port: u16| {
        let mut socket = dial(proxy);
        let [high, low] = port.to_be_bytes();
        socket.write_all(b"\x05\x01\x00").expect("it is open");
        socket.write_all(&[b"\x05\x01\x00\x03\x09localhost", &[high, low][..]].concat()).expect("it is open");
        let mut answer = [0; 12];
        socket.read_exact(&mut answer).expect("an answer");
        (answer[3], socket)
    };
    let (answer, mut socket) = asked(server);
    assert_eq!(answer, 0);
    socket.write_all(b"hello").expect("it is open");
    socket.shutdown(Shutdown::Write).expect("it is open");
    let mut echoed = String::new();
    socket.read_to_string(&mut echoed).expect("an answer");
    assert_eq!(echoed, "hello");
    // RFC 1928 section 6: connection refused.
    assert_eq!(asked(free_port()).0, 5);
}

#[test]
fn socks_proxy_eager_answers_at_once() {
    let (far, server) = (FakeHost::new(), echo_server());
    far.run("tunnel", ["--eager", "-L", "8080:web:80", "far"]).expect(2);
    let (mut tunnel, proxy) = open(&far, &["--eager", "-D", "0"]);
    let asked = |port: u16| {
        let mut socket = dial(proxy);
        // The client sends everything before it gets an answer.
        let [high, low] = port.to_be_bytes();
        socket
            .write_all(&[b"\x04\x01", &[high, low][..], b"\x7f\x00\x00\x01me\x00hello"].concat())
            .expect("it is open");
        let mut answer = [0; 8];
        socket.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer, [0, 90, 0, 0, 0, 0, 0, 0]);
        socket
    };
    let mut socket = asked(server);
    socket.shutdown(Shutdown::Write).expect("it is open");
    let mut echoed = String::new();
    socket.read_to_string(&mut echoed).expect("an answer");
    assert_eq!(echoed, "hello");
    let error = asked(free_port()).read_to_end(&mut Vec::new()).expect_err("no end");
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    tunnel.wait_for_words("connection failed: 127.0.0.1:");
}

/// Asks for a page as scripts do; returns the status and the page.
fn curl(arguments: &[&str]) -> (String, String) {
    let mut command = Command::new("curl");
    command.args(["-sS", "--noproxy", "*", "--max-time", "20", "-w", "%{stderr}%{http_code}"]).args(arguments);
    let output = command.output().expect("curl");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
    (stderr, stdout)
}

#[test]
fn tunnel_metrics_served_also_in_background() {
    let (far, server) = (FakeHost::with_login(NOTED), echo_server());
    let forward = format!("0:localhost:{server}");
    let mut tunnel = Program::start(far.command("tunnel", ["--json", "-L", &forward, "--metrics", "0", "far"]));
    let mut listens = |event: &str| {
        let event = format!("\"event\":\"{event}\"");
        let line = tunnel.wait_for(&event, |line| line.contains(&event));
        let line: serde_json::Value = serde_json::from_str(&line).expect("an object");
        line["listen"].as_str().map(str::to_owned).expect("a place")
    };
    let (port, place) = (listens("listening"), listens("metrics"));
    let port = port.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    assert_eq!(exchange(port, b"hello").expect("an answer"), b"hello");
    let (status, page) = curl(&[&format!("http://{place}/metrics")]);
    assert_eq!(status, "200");
    for line in [
        "# TYPE downpour_tunnel_connections_open gauge\n",
        "\ndownpour_tunnel_connections_total{from=\"here\"} 1\n",
        "\ndownpour_tunnel_sent_bytes_total 5\n",
        "\ndownpour_transport_round_trip_seconds 0.",
    ] {
        assert!(page.contains(line), "{line:?} in {page}");
    }
    assert_eq!(curl(&["-I", &format!("http://{place}/metrics")]).0, "200");
    assert_eq!(curl(&["-d", "x=1", &format!("http://{place}/metrics")]).0, "405");
    assert_eq!(curl(&[&format!("http://{place}/")]).0, "404");
    // A port in use is reported first.
    let taken = far.run("tunnel", ["-L", "0:localhost:80", "--metrics", &place, "far"]);
    taken.expect_line(1, &format!("cannot listen on {place}: Address already in use"));
    drop(tunnel);
    let metrics = free_port().to_string();
    let started = far.run("tunnel", ["-f", "--persist", "10m", "-D", "0", "--metrics", &metrics, "far"]).expect(0);
    let address = format!("http://localhost:{metrics}/metrics");
    assert!(started.stderr.contains(&format!("metrics at {address}")), "{}", started.stderr);
    assert_eq!(curl(&[&address]).0, "200");
    far.run("tunnel", ["-O", "exit", "far"]).expect(0);
}

#[test]
fn tunnel_port_in_use_exit_1() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let (far, forward) = (FakeHost::new(), format!("{port}:localhost:80"));
    for (option, on) in [("-L", ""), ("-R", "far: ")] {
        let ended = far.run("tunnel", [option, &forward, "far"]);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
        let words = format!("{on}cannot listen on localhost:{port}: Address already in use");
        assert!(ended.stderr.contains(&words), "{}", ended.stderr);
    }
}

#[test]
fn tunnel_outlives_its_ssh() {
    // The login is a pair of processes that only pass on bytes.
    let (far, server) = (FakeHost::with_login(r#"cat | sh -c "$command" | cat"#), echo_server());
    let (tunnel, port) = open(&far, &["--via", "udp", "-L", &format!("0:localhost:{server}")]);
    let mut held = dial(port);
    held.write_all(b"some").expect("it is open");
    let logins = far.processes("cat");
    assert_eq!(logins.len(), 2);
    logins.into_iter().for_each(|login| kill_process(login, Signal::KILL).expect("it runs"));
    held.write_all(b" more").expect("it is open");
    held.shutdown(Shutdown::Write).expect("it is open");
    let mut answer = Vec::new();
    held.read_to_end(&mut answer).expect("an answer");
    assert_eq!(answer, b"some more");
    assert_eq!(exchange(port, b"another").expect("an answer"), b"another");
    tunnel.signal(Signal::TERM);
    assert_eq!(tunnel.end().status.code(), Some(75));
    wait_until_gone(&far);
}

#[test]
fn tunnel_json_events_of_connections() {
    let (far, server, closed_port) = (FakeHost::new(), echo_server(), free_port());
    let [first, second] = [server, closed_port].map(|port| format!("0:localhost:{port}"));
    let mut tunnel = Program::start(far.command("tunnel", ["--json", "-L", &first, "-L", &second, "far"]));
    let port_of = |line: String| {
        let line: serde_json::Value = serde_json::from_str(&line).expect("an object");
        line["listen"].as_str().and_then(|place| place.rsplit(':').next()?.parse().ok()).expect("a port")
    };
    let ports = [(); 2].map(|()| port_of(tunnel.wait_for("listening", |line| line.contains("listening"))));
    assert_eq!(exchange(ports[0], b"hello").expect("an answer"), b"hello");
    tunnel.wait_for("over", |line| line.contains("\"over\""));
    drop(dial(ports[1]));
    tunnel.wait_for("refused", |line| line.contains("\"refused\""));
    tunnel.signal(Signal::INT);
    let lines = json(&tunnel.end().expect(130).stdout);
    let of = |number: u64| lines.iter().filter(move |line| line["number"] == number);
    let events: Vec<_> = of(1).map(|line| line["event"].as_str().unwrap_or_default()).collect();
    assert_eq!(events, ["wanted", "open", "over"], "{lines:?}");
    let (wanted, over) = (of(1).next().expect("it"), of(1).next_back().expect("it"));
    assert_eq!((&wanted["to"], &wanted["from_there"]), (&format!("localhost:{server}").into(), &false.into()));
    assert_eq!((&over["bytes_sent"], &over["bytes_received"], &over["cut"]), (&5.into(), &5.into(), &false.into()));
    let refused = of(2).find(|line| line["event"] == "refused").expect("it");
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("Connection refused")), "{refused}");
    assert_eq!(lines.last().map(|line| &line["type"]), Some(&"error".into()));
}
