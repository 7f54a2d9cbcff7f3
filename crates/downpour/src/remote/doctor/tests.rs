//! Tests of the verdict on invented figures, and of examinations within this process.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::thread::JoinHandle;

use tokio::sync::mpsc::Receiver;
use transport::SendLimit;
use transport::congestion::CongestionConfig;

use super::meter::{ProbeCounters, Traffic};
use super::verdict::judge;
use super::*;
use crate::remote::answer::{ANSWER, parse_answer};
use crate::remote::greeting::Greeting;
use crate::remote::request::Request;
use crate::ticket::Ticket;

const ENOUGH: BufferFacts = BufferFacts { asked: 8 << 20, granted: 8 << 20, limit: Some(8 << 20) };

fn machine() -> Machine {
    let socket =
        SocketInfo { send_segments: 64, receive_segments: 64, receive_buffer: ENOUGH, send_buffer: ENOUGH, ecn: true };
    Machine {
        version: "1.2.3".into(),
        system: "Linux 6.1 x86_64".into(),
        cores: 8,
        load: Some(0.2),
        socket: Some(socket),
        core: Core { cipher: "aes-256-gcm".into(), aes_256_gcm: 4 << 30, chacha20_poly1305: 2 << 30, blake3: 3 << 30 },
        disk: Disk {
            absent: None,
            directory: "/data".into(),
            free: Some(2_000_000_000_000),
            write: Some(1_000_000_000),
            read: Some(2_000_000_000),
            small_files: Some(20_000),
            trouble: None,
        },
    }
}

/// 100 MB/s of files.
fn traffic() -> Traffic {
    let share = Some(ThreadShare { running: 0.3, waiting: 0.01 });
    Traffic {
        control: "auto".into(),
        set_bits_per_second: None,
        sent_bits_per_second: Some(840_424_943),
        rate_bits_per_second: 840_340_909,
        goodput: 100_000_000,
        loss: 0.0001,
        packets: 100_000,
        marked: 0.0,
        ecn: Some(true),
        loaded_rtt: Some(0.06),
        limited_by: SendLimit::Window,
        sender: share,
        receiver: share,
        bytes_sent: 300_000_000,
    }
}

/// A checkup without problems.
fn checkup() -> Checkup {
    Checkup {
        host: "far".into(),
        udp: Udp::Open {
            address: "192.0.2.1:4000".parse().unwrap(),
            datagram: 1451,
            packet: 1479,
            largest_tried: 1451,
            min_rtt: Some(0.05),
        },
        over_ssh: false,
        min_rtt: Some(0.05),
        up: Some(traffic()),
        down: Some(traffic()),
        local: machine(),
        remote: machine(),
        troubles: Vec::new(),
        verdict: DoctorVerdict::default(),
    }
}

/// Adds the verdict.
fn judged(mut checkup: Checkup, doctor: &DoctorOptions) -> Checkup {
    checkup.verdict = judge(&checkup, doctor.engine.profile.fixed_rate().is_some(), doctor.size);
    checkup
}

#[test]
fn doctor_figures_have_labels() {
    let mut found = checkup();
    found.down = Some(Traffic {
        control: "fixed-rate".into(),
        set_bits_per_second: Some(1_700_000_000),
        rate_bits_per_second: 1_683_000_000,
        goodput: 200_000_000,
        loss: 0.01,
        ..traffic()
    });
    let text = judged(found, &DoctorOptions::new("far")).to_string();
    for line in [
        "UDP     open both ways at 192.0.2.1:4000; datagrams of 1451 bytes pass (IP packets of 1479); idle RTT 50 ms",
        "up      100 MB/s of files with auto (840 Mbit/s arrive), 0.010 % lost, RTT 60 ms under load; limited by congestion control",
        "down    fixed rate 1.7 Gbit/s: 1.68 Gbit/s arrive (200 MB/s of files), 1.0 % lost, RTT 60 ms under load",
        "traffic 300 MB up, 300 MB down for these tests",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}

#[test]
fn probe_remote_counters_bounded_old_ones_read() {
    let counts = |text: &str| serde_json::from_str::<ProbeCounters>(text).unwrap();
    let of = |sender: &ProbeCounters, receiver: &ProbeCounters| {
        Traffic::of(&CongestionConfig::default(), sender, receiver, 28)
    };
    let ours = counts(
        r#"{"half_micros":1000000,"half_bytes_sent":1000000,"half_packets_sent":1000,"half_packets_lost":20,"datagram":1451}"#,
    );
    let lie = counts(
        r#"{"half_micros":1,"half_received":18446744073709551615,"packets_received":18446744073709551615,"rtt_micros":18446744073709551615}"#,
    );
    let up = of(&ours, &lie);
    assert_eq!((up.sent_bits_per_second, up.rate_bits_per_second), (Some(8_000_000), 12_000_000));
    assert_eq!((up.loss, up.packets), (0.02, 1000));
    let earlier = counts(
        r#"{"half_micros":1500000,"half_received":0,"packets_sent":3000,"packets_lost":30,"packets_received":10,"surplus_symbols":0,"marked":0,"ecn":null,"datagram":1451,"rtt_micros":51000,"limited_by":"window","running_micros":1,"waiting_micros":1,"micros":3000000}"#,
    );
    let receiver = counts(r#"{"half_micros":1000000,"half_received":1000000,"bytes_received":3000000}"#);
    let down = of(&earlier, &receiver);
    assert_eq!((down.loss, down.rate_bits_per_second, down.sent_bits_per_second), (0.01, 8_000_000, None));
    assert_eq!(down.bytes_sent, 3_000_000, "at least what arrived");
}

fn closed(arrived: bool) -> Udp {
    Udp::Closed { port: 4000, waited: 4.0, arrived, hint: None }
}

#[test]
fn doctor_forecast_names_bottleneck() {
    use ForecastLimit::{ConfiguredRate, Cpu, Disk as OfDisk, Network, Ssh};
    type Change = fn(&mut Checkup);
    let cases: [(&str, Change, ForecastLimit, ForecastLimit); 9] = [
        ("nothing special", |_| {}, Network, Network),
        ("slow remote disk", |c| c.remote.disk.write = Some(50_000_000), OfDisk(Side::Remote), Network),
        ("slow remote source", |c| c.remote.disk.read = Some(50_000_000), Network, OfDisk(Side::Remote)),
        ("slow local disk", |c| c.local.disk.write = Some(99_999_999), Network, OfDisk(Side::Local)),
        ("unknown disk", |c| c.local.disk = Disk::default(), Network, Network),
        (
            "full local core",
            |c| c.up.as_mut().unwrap().sender = Some(ThreadShare { running: 0.6, waiting: 0.3 }),
            Cpu(Side::Local),
            Network,
        ),
        (
            "full core of the local receiver",
            |c| c.down.as_mut().unwrap().receiver = Some(ThreadShare { running: 0.95, waiting: 0.0 }),
            Network,
            Cpu(Side::Local),
        ),
        ("slow receiver", |c| c.up.as_mut().unwrap().limited_by = SendLimit::Receiver, Cpu(Side::Remote), Network),
        ("over ssh", |c| c.over_ssh = true, Ssh, Ssh),
    ];
    for (name, change, up, down) in cases {
        let mut checkup = checkup();
        change(&mut checkup);
        let verdict = judge(&checkup, false, None);
        let found = [verdict.up, verdict.down].map(|speed| speed.unwrap().bottleneck);
        assert_eq!(found, [up, down], "{name}");
    }
    let mut paced = checkup();
    paced.up.as_mut().unwrap().limited_by = SendLimit::Pacing;
    assert_eq!(judge(&paced, true, None).up.unwrap().bottleneck, ConfiguredRate);
    paced.down = None;
    assert_eq!(judge(&paced, false, None).down, None);
}

#[test]
fn doctor_forecast_predicts_time() {
    let near = |found: Option<f64>, expected: f64| found.is_some_and(|found| (found / expected - 1.0).abs() < 0.02);
    let mut found = checkup();
    found.local.disk.write = Some(50_000_000);
    let forecasts = judge(&found, false, None).forecasts;
    let sizes: Vec<(u64, u64)> = forecasts.iter().map(|forecast| (forecast.files, forecast.bytes)).collect();
    assert_eq!(sizes, [(1, 10u64.pow(9)), (1, 10u64.pow(11)), (1, 10u64.pow(12)), (100_000, 400_000_000)]);
    // 1.5 round trips and 100 MB/s up; limited by the disk down.
    assert!(near(forecasts[0].up, 10.075) && near(forecasts[0].down, 20.0), "{forecasts:?}");
    assert!(near(forecasts[2].up, 10_000.0), "{forecasts:?}");
    // 20,000 files per second take longer than 400 MB up, and the disk's rate longer than both down.
    assert!(near(forecasts[3].up, 5.0) && near(forecasts[3].down, 8.0), "{forecasts:?}");
    let one = judge(&found, false, Some(5_000_000)).forecasts;
    assert_eq!((one.len(), one[0].bytes), (2, 5_000_000));
    assert!(near(one[0].up, 0.125), "{one:?}");
    (found.up, found.down) = (None, None);
    assert!(judge(&found, false, None).forecasts.iter().all(|forecast| (forecast.up, forecast.down) == (None, None)));
}

#[test]
fn doctor_text_has_bounded_lines() {
    let (mut worst, mut doctor) = (checkup(), DoctorOptions::new("far"));
    doctor.size = None;
    worst.udp = closed(true);
    (worst.over_ssh, worst.up) = (true, None);
    worst.troubles = vec!["first".into(), "second".into()];
    for side in [&mut worst.local, &mut worst.remote] {
        let socket = side.socket.as_mut().unwrap();
        (socket.receive_buffer.granted, socket.send_segments) = (1, 1);
        side.disk.small_files = Some(1);
        side.load = Some(100.0);
    }
    let text = judged(worst, &doctor).to_string();
    assert!(text.lines().count() <= super::show::MAX_LINES, "{text}");
    assert!(text.contains("BLOCKED: no answer from port 4000 within 4 s"), "{text}");
    let text = judged(checkup(), &DoctorOptions::new("far")).to_string();
    assert!(text.contains("100,000 files of 4 kB    5.00 s        5.00 s"), "{text}");
    let usual = "up      100 MB/s of files with auto (840 Mbit/s arrive), 0.010 % lost, RTT 60 ms under load";
    assert!(text.contains(usual), "{text}");
}

#[test]
fn doctor_remote_texts_escaped() {
    let mut hostile = machine();
    hostile.version = "1\u{1b}[2J".repeat(1000);
    hostile.disk.trouble = Some("a\nb".into());
    hostile.load = Some(-1e300);
    let clean = hostile.cleaned();
    assert!(clean.version.len() <= 480 && !clean.version.contains('\u{1b}'), "{clean:?}");
    assert_eq!((clean.disk.trouble.as_deref(), clean.load), (Some(r"a\nb"), Some(0.0)));
}

/// Which datagrams a firewall lets through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Firewall {
    Open,
    /// Nothing arrives.
    Closed,
    /// Replies are lost.
    OneWay,
}

/// An examination of this process by itself.
struct Scene {
    attending: JoinHandle<Result<(), Error>>,
    events: Receiver<DoctorEvent>,
    result: Result<Checkup, Error>,
    /// The port given to the doctor.
    port: u16,
}

/// Receives datagrams in place of `behind`, and may forward them.
fn intercept(behind: SocketAddr, passes: bool) -> (SocketAddr, JoinHandle<()>) {
    let (socket, out) =
        (UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let address = socket.local_addr().unwrap();
    socket.set_read_timeout(Some(3 * PATIENCE)).unwrap();
    let work = move || {
        let mut buffer = [0; 2000];
        while let Ok(length) = socket.recv(&mut buffer) {
            if passes {
                out.send_to(&buffer[..length], behind).unwrap();
            }
        }
    };
    (address, thread::spawn(work))
}

/// How long to wait for an answer to the first datagram.
const PATIENCE: Duration = Duration::from_millis(400);

fn examined(firewall: Firewall) -> Scene {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let halves = |socket: UnixStream| {
        let (read, write) = (OwnedFd::from(socket.try_clone().unwrap()), OwnedFd::from(socket));
        (File::from(read), File::from(write))
    };
    let directory = tempfile::tempdir().unwrap();
    let doctor = DoctorOptions {
        path: PathOptions { family: net::Family::V4, ..PathOptions::default() },
        target: Some(directory.path().to_owned()),
        local: Some(directory.path().to_owned()),
        probe_time: Duration::from_millis(300),
        ..DoctorOptions::new("far")
    };
    let request = Request::read(
        &mut &examine::request(&doctor).to_frame().unwrap()[..],
        &systems::registry(),
        crate::remote::request::Bounds::OF_USER,
    )
    .unwrap();
    let (read, write) = halves(theirs);
    let attending = thread::spawn(move || attend(request, read, write));
    let (mut read, write) = halves(ours);
    let (_, answer) = Greeting::default().read_to(&mut read, &[ANSWER]).unwrap().unwrap();
    let mut ticket: Ticket = parse_answer(&answer).unwrap().ticket;
    let behind = SocketAddr::from((Ipv4Addr::LOCALHOST, ticket.addresses[0].port()));
    let before = (firewall != Firewall::Open).then(|| intercept(behind, firewall == Firewall::OneWay));
    let address = before.as_ref().map_or(behind, |(address, _)| *address);
    ticket.addresses = vec![address];
    let (sender, events) = mpsc::channel(MAX_EVENTS);
    let reporter = Reporter { events: sender, switch: Arc::default() };
    let result = examine::examine(&doctor, ticket, (read, write), PATIENCE, &reporter);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something is left behind");
    if let Some((_, interceptor)) = before {
        interceptor.join().unwrap();
    }
    Scene { attending, events, result, port: address.port() }
}

fn assert_sane(traffic: Option<&Traffic>) {
    let traffic = traffic.expect("a figure");
    let line = traffic.rate_bits_per_second as f64 / 8.0;
    assert!(line > 1e6 && traffic.goodput as f64 > 0.5 * line && (traffic.goodput as f64) < line, "{traffic:?}");
    assert!((0.0..0.5).contains(&traffic.loss) && traffic.loaded_rtt.is_some_and(|rtt| rtt < 5.0), "{traffic:?}");
    let share = |share: ThreadShare| share.running > 0.0 && share.running <= 1.0;
    assert!([traffic.sender, traffic.receiver].into_iter().flatten().all(share), "{traffic:?}");
}

#[test]
fn doctor_open_path_measured_both_directions() {
    let Scene { attending, mut events, result, .. } = examined(Firewall::Open);
    let checkup = result.unwrap();
    attending.join().unwrap().unwrap();
    assert_eq!(checkup.troubles, [""; 0]);
    let Udp::Open { address, datagram, packet, largest_tried, .. } = &checkup.udp else { panic!("{checkup:?}") };
    assert!(address.ip().is_loopback() && (*datagram, *packet, *largest_tried) == (1451, 1479, 1451), "{checkup:?}");
    assert!(!checkup.over_ssh && checkup.min_rtt.is_some_and(|rtt| rtt > 0.0 && rtt < 1.0), "{checkup:?}");
    assert_sane(checkup.up.as_ref());
    assert_sane(checkup.down.as_ref());
    for machine in [&checkup.local, &checkup.remote] {
        assert_eq!(machine.version, env!("CARGO_PKG_VERSION"));
        assert!(machine.cores > 0 && machine.system.starts_with("Linux "), "{machine:?}");
        assert!(machine.socket.is_some_and(|socket| socket.receive_buffer.asked > 0), "{machine:?}");
        let core = &machine.core;
        assert!([core.aes_256_gcm, core.chacha20_poly1305, core.blake3].iter().all(|rate| *rate > 1_000_000));
        assert!(machine.disk.write.is_some() && machine.disk.small_files.is_some(), "{machine:?}");
    }
    assert!(checkup.verdict.forecasts.iter().all(|forecast| forecast.up.is_some() && forecast.down.is_some()));
    let json: serde_json::Value = serde_json::to_value(&checkup).unwrap();
    assert_eq!((&json["udp"]["state"], &json["udp"]["datagram"]), (&"open".into(), &1451.into()));
    assert!(json["up"]["control"] == "auto" && json["up"]["limited_by"].is_string(), "{json}");
    assert!(json["verdict"]["up"]["bottleneck"]["what"].is_string(), "{json}");
    assert_eq!(std::iter::from_fn(|| events.blocking_recv()).count(), 5, "UDP, two directions, two hosts");
}

#[test]
fn doctor_udp_blocked_measures_pipes() {
    for firewall in [Firewall::Closed, Firewall::OneWay] {
        let Scene { attending, result, port, .. } = examined(firewall);
        let checkup = result.unwrap();
        attending.join().unwrap().unwrap();
        let Udp::Closed { port: reported, arrived, .. } = checkup.udp else { panic!("{checkup:?}") };
        assert_eq!((reported, arrived), (port, firewall == Firewall::OneWay), "{checkup:?}");
        assert!(checkup.over_ssh && checkup.troubles.is_empty(), "{checkup:?}");
        assert_sane(checkup.up.as_ref());
        assert_sane(checkup.down.as_ref());
        assert!(checkup.remote.disk.write.is_some() && checkup.local.disk.write.is_some(), "{checkup:?}");
    }
}

#[test]
fn doctor_stop_ends_at_once() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let doctor = DoctorOptions {
        path: PathOptions { family: net::Family::V4, ..PathOptions::default() },
        ..DoctorOptions::new("far")
    };
    let ticket = Ticket {
        key: [1; 32],
        expires: std::time::SystemTime::UNIX_EPOCH,
        addresses: vec!["127.0.0.1:9".parse().unwrap()],
        listener: crate::ticket::Role::Receiver,
    };
    let (sender, _events) = mpsc::channel(MAX_EVENTS);
    let reporter = Reporter { events: sender, switch: Arc::default() };
    reporter.switch.stop(StopReason::Terminated);
    let pipes = (File::from(OwnedFd::from(ours.try_clone().unwrap())), File::from(OwnedFd::from(ours)));
    let result = examine::examine(&doctor, ticket, pipes, Duration::from_secs(60), &reporter);
    assert!(matches!(result, Err(Error::Terminated)), "{result:?}");
    drop(theirs);
}
