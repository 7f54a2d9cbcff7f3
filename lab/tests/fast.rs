//! Both kinds of cable emulate the same link, packet by packet.
//!
//! The commands on the hosts are this test program, started again with a role.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use netsim::{Duplex, Ecn, Link, OfferOutcome, Time};
use quinn_udp::{Transmit, UdpSockRef, UdpSocketState};
use rustix::process::{Pid, Signal, kill_process};

const ROLE: &str = "LAB_TEST_ROLE";
const DIRECTORY: &str = "LAB_TEST_DIRECTORY";
const SENDING: &str = "sending now";
/// A marker file.
const OVER: &str = "over";
const PORT: u16 = 7777;
/// Number of packets, payload of each, and number of packets sent as one segmented datagram.
const PACKETS: u64 = 3000;
const PAYLOAD: usize = 1000;
const AT_ONCE: u64 = 20;
const IP_BYTES: u32 = PAYLOAD as u32 + 28;
/// Bytes of the TCP transfer.
const BYTES: usize = 4_000_000;
/// A stream that makes no progress for this long has stalled.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `sender` on the first host and `receiver` on the second, over a link with these options.
fn over_link(test: &str, options: &[&str], sender: &str, receiver: &str, directory: &Path) -> Output {
    let own = std::env::current_exe().expect("a test has a file");
    let again = format!("--exact {test} --nocapture");
    let peer = format!("{ROLE}={receiver} {} {again}", own.display());
    let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    lab.arg("link").args(options).args(["--peer", &peer, "--"]).arg(&own).args(again.split(' '));
    lab.env(ROLE, sender).env(DIRECTORY, directory).output().expect("the program starts")
}

/// Plays the role for which this process was started, if any.
fn plays_role() -> bool {
    let done = match std::env::var(ROLE).as_deref() {
        Ok("send-numbers") => send_numbers(),
        Ok("receive-numbers") => receive_numbers(),
        Ok("send-stream") => send_stream(),
        Ok("receive-stream") => receive_stream(),
        Ok("send-steadily") => send_steadily(),
        _ => return false,
    };
    done.expect("sockets of a host work");
    true
}

fn peer() -> SocketAddr {
    let address = std::env::var("LAB_PEER").expect("commands have the address of their peer");
    SocketAddr::new(address.parse().expect("an address"), PORT)
}

/// Returns a packet with a number, followed by bytes derived from it.
fn packet(number: u64) -> Vec<u8> {
    let rest = (8..PAYLOAD).map(|place| (number as usize + place) as u8);
    number.to_be_bytes().into_iter().chain(rest).collect()
}

fn send_numbers() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    assert!(state.max_gso_segments() >= AT_ONCE as usize, "this kernel has no UDP segmentation offload");
    socket.set_nonblocking(false)?;
    let destination = peer();
    for first in (0..PACKETS).step_by(AT_ONCE as usize) {
        let contents: Vec<u8> = (first..first + AT_ONCE).flat_map(packet).collect();
        let piece = Transmit { destination, ecn: None, contents: &contents, segment_size: Some(PAYLOAD), src_ip: None };
        state.try_send(UdpSockRef::from(&socket), &piece)?;
    }
    // These trailing packets tell the receiver that all others have arrived.
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    for number in PACKETS..PACKETS + 500 {
        socket.send_to(&packet(number), destination)?;
        if socket.recv_from(&mut [0; 8]).is_ok() {
            return Ok(());
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn receive_numbers() -> io::Result<()> {
    let socket = UdpSocket::bind(("0.0.0.0", PORT))?;
    // As large as this kernel permits, for a receiver that wakes up late.
    let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
    state.set_recv_buffer_size(UdpSockRef::from(&socket), 4 << 20)?;
    socket.set_nonblocking(false)?;
    let mut received = String::new();
    let mut buffer = vec![0; 65_535];
    loop {
        let (length, sender) = socket.recv_from(&mut buffer)?;
        // The socket state lets the kernel combine consecutive packets (GRO).
        for datagram in buffer[..length].chunks(PAYLOAD) {
            let number = u64::from_be_bytes(*datagram.first_chunk().expect("it is long enough"));
            assert!(datagram == packet(number), "packet {number} differs from the sent one");
            if number >= PACKETS {
                let directory = std::env::var_os(DIRECTORY).expect("commands have a directory");
                fs::write(Path::new(&directory).join("received"), received)?;
                socket.send_to(b"all received", sender)?;
                return Ok(());
            }
            received += &format!("{number}\n");
        }
    }
}

fn stream() -> impl Iterator<Item = u8> {
    (0..BYTES).map(|place| (place * 31 + place / 1999) as u8)
}

fn send_stream() -> io::Result<()> {
    let mut connection = TcpStream::connect(peer())?;
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.write_all(&stream().collect::<Vec<u8>>())?;
    connection.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    assert_eq!(answer, "equal");
    Ok(())
}

fn receive_stream() -> io::Result<()> {
    let (mut connection, _) = TcpListener::bind(("0.0.0.0", PORT))?.accept()?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    connection.read_to_end(&mut bytes)?;
    let answer = if bytes.into_iter().eq(stream()) { "equal" } else { "different" };
    connection.write_all(answer.as_bytes())
}

/// Sends a packet each millisecond to a closed port, until the stall is over.
fn send_steadily() -> io::Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let over = Path::new(&std::env::var_os(DIRECTORY).expect("commands have a directory")).join(OVER);
    println!("{SENDING}");
    let start = Instant::now();
    while !over.exists() && start.elapsed() < PATIENCE {
        socket.send_to(&[0; 100], peer())?;
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Returns whether fast cables are available. If not, the lab must report it.
fn fast_cables() -> bool {
    if fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun").is_ok() {
        return true;
    }
    let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    let output = lab.args(["link", "--fast", "--", "true"]).output().expect("the program starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("/dev/net/tun") && message.contains("omit --fast"), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    eprintln!("without fast cables only the error message is tested: {message}");
    false
}

/// Returns the numbers that pass the link, in order, and how many of the first `offered` packets it loses.
fn predicted(link: &str, offered: u64) -> (Vec<u64>, u64) {
    let duplex: Duplex = link.parse().expect("a link");
    let mut link = Link::new(duplex.forward).expect("a link that makes sense");
    let mut numbers = Vec::new();
    for number in 0..offered {
        if let OfferOutcome::Delivered(deliveries) = link.offer(Time::ZERO, IP_BYTES, Ecn::NotEct) {
            let sound = deliveries.into_iter().filter(|delivery| delivery.corrupt.is_none() && number < PACKETS);
            numbers.extend(sound.map(|_| number));
        }
    }
    (numbers, link.stats().dropped_random.packets)
}

#[test]
fn fast_and_veth_lose_the_packets_of_the_model() {
    if plays_role() {
        return;
    }
    let link = "rate=40M,delay=2ms,loss=5%,burst=3,corrupt=2%,duplicate=1%,seed=7 / delay=2ms";
    let options = ["--forward", "rate=40M,loss=5%,burst=3,corrupt=2%,duplicate=1%,seed=7", "--delay", "2ms", "--json"];
    let mut kinds = vec![vec![]];
    if fast_cables() {
        kinds.push(vec!["--fast"]);
    }
    for kind in kinds {
        let directory = tempfile::tempdir().unwrap();
        let json = directory.path().join("run.json");
        let options = [&options[..], &[json.to_str().unwrap()], &kind].concat();
        let test = "fast_and_veth_lose_the_packets_of_the_model";
        let output = over_link(test, &options, "send-numbers", "receive-numbers", directory.path());
        assert!(output.status.success(), "{kind:?}: {output:?}");
        let run: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
        let forward = &run["links"][0];
        let offered = forward["offered"].as_u64().unwrap();
        let (numbers, lost) = predicted(link, offered);
        let received = fs::read_to_string(directory.path().join("received")).unwrap();
        let received: Vec<u64> = received.lines().map(|line| line.parse().unwrap()).collect();
        let only = |own: &[u64], other: &[u64]| own.iter().copied().filter(|number| !other.contains(number)).collect();
        let (unexpected, missing): (Vec<u64>, Vec<u64>) = (only(&received, &numbers), only(&numbers, &received));
        assert!(received == numbers, "{kind:?}: {unexpected:?} unexpected, {missing:?} missing; {forward}");
        assert_eq!(forward["offered_bytes"].as_u64(), Some(offered * u64::from(IP_BYTES)), "{kind:?}");
        let events = forward["events"].as_array().unwrap();
        assert!(events.contains(&serde_json::json!(["lost at random", lost])), "{kind:?}: {lost} lost, not {events:?}");
    }
}

#[test]
fn fast_cable_carries_a_stream_over_an_impaired_link() {
    if plays_role() || !fast_cables() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let faults =
        ["--loss", "0.5%", "--corrupt", "0.5%", "--duplicate", "0.5%", "--reorder", "0.5%:1ms", "--mark", "1%"];
    let options = [&["--fast", "--rate", "200M", "--delay", "500us", "--seed", "3"][..], &faults].concat();
    let test = "fast_cable_carries_a_stream_over_an_impaired_link";
    let output = over_link(test, &options, "send-stream", "receive-stream", directory.path());
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn fast_stall_makes_a_run_invalid() {
    if plays_role() || !fast_cables() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let test = "fast_stall_makes_a_run_invalid";
    let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    let directory = tempfile::tempdir().unwrap();
    lab.args(["link", "--fast", "--"]).arg(&own).args(["--exact", test, "--nocapture"]);
    lab.env(ROLE, "send-steadily").env(DIRECTORY, directory.path());
    let mut lab = lab.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(lab.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == SENDING));
    let process = Pid::from_child(&lab);
    kill_process(process, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    kill_process(process, Signal::CONT).unwrap();
    fs::write(directory.path().join(OVER), "").unwrap();
    let output = lab.wait_with_output().unwrap();
    let report = String::from_utf8_lossy(&output.stderr).into_owned();
    let (_, verdict) = report.split_once("INVALID").expect(&report);
    let (_, longest) = verdict.split_once("a packet may have waited ").expect(&report);
    let millis: f64 = longest.split(' ').next().unwrap().parse().unwrap();
    assert!(millis >= 50.0, "{report}");
}
