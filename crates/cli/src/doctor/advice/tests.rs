//! Tests of the advice on made-up figures.

use downpour::remote::doctor::{BufferFacts, Core, Disk, DoctorVerdict, Machine, SocketInfo, Speed, ThreadShare};
use transport::SendLimit;

use super::*;
use crate::doctor::lines;

const ENOUGH: BufferFacts = BufferFacts { asked: 8 << 20, granted: 8 << 20, limit: Some(8 << 20) };

fn machine() -> Machine {
    let socket =
        SocketInfo { send_segments: 64, receive_segments: 64, receive_buffer: ENOUGH, send_buffer: ENOUGH, ecn: true };
    let disk =
        Disk { directory: "/data".into(), free: Some(2_000_000_000_000), small_files: Some(20_000), ..Disk::default() };
    Machine {
        version: "1.2.3".into(),
        system: "Linux 6.1 x86_64".into(),
        cores: 8,
        load: None,
        socket: Some(socket),
        core: Core { cipher: "aes-256-gcm".into(), aes_256_gcm: 4 << 30, chacha20_poly1305: 2 << 30, blake3: 3 << 30 },
        disk,
    }
}

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
    let udp = Udp::Open {
        address: "192.0.2.1:4000".parse().expect("an address"),
        datagram: 1451,
        packet: 1479,
        largest_tried: 1451,
        min_rtt: Some(0.05),
    };
    Checkup {
        host: "far".into(),
        udp,
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

fn closed(arrived: bool) -> Udp {
    Udp::Closed { port: 4000, waited: 4.0, arrived, hint: None }
}

fn slow_disk() -> Speed {
    Speed { goodput: 1_000_000, bottleneck: ForecastLimit::Disk(Side::Remote) }
}

#[test]
fn advice_is_given_where_it_applies() {
    type Change = fn(&mut Checkup, &mut Requested);
    let cases: [(&str, Change, Side, &str); 15] = [
        ("closed", |c, _| c.udp = closed(false), Side::Remote, "sudo ufw allow 44000:44009/udp "),
        ("a port", |c, d| (c.udp, d.ports) = (closed(false), Some(7..=7)), Side::Remote, "dport 7 accept"),
        ("half closed", |c, _| c.udp = closed(true), Side::Local, "ct state established,related accept"),
        (
            "small MTU",
            |c, _| {
                if let Udp::Open { datagram, .. } = &mut c.udp {
                    *datagram = 1200;
                }
            },
            Side::Local,
            "tracepath -n 192.0.2.1",
        ),
        (
            "short queue",
            |c, _| c.remote.socket.as_mut().expect("figures").receive_buffer.granted = 212_992,
            Side::Remote,
            "sudo sysctl -w net.core.rmem_max=8388608",
        ),
        (
            "short queues",
            |c, _| {
                let socket = c.local.socket.as_mut().expect("figures");
                (socket.receive_buffer.granted, socket.send_buffer.granted) = (1, 2);
            },
            Side::Local,
            "sudo sysctl -w net.core.rmem_max=8388608 net.core.wmem_max=8388608",
        ),
        ("no offload", |c, _| c.local.socket.as_mut().expect("figures").send_segments = 1, Side::Local, "uname -r"),
        (
            "set too much",
            |c, _| {
                let up = c.up.as_mut().expect("figures");
                (up.control, up.set_bits_per_second, up.loss) = ("fixed-rate".into(), Some(9_500_000), 0.2);
            },
            Side::Local,
            "downpour doctor --set congestion=auto far",
        ),
        (
            "loss taken for congestion",
            |c, _| {
                let down = c.down.as_mut().expect("figures");
                (down.control, down.loss) = ("cubic".into(), 0.004);
            },
            Side::Local,
            "downpour doctor --set congestion=auto far",
        ),
        ("long queue", |c, _| c.up.as_mut().expect("figures").loaded_rtt = Some(0.4), Side::Local, "--limit 756M"),
        (
            "busy there",
            |c, _| c.down.as_mut().expect("figures").sender = Some(ThreadShare { running: 0.2, waiting: 0.5 }),
            Side::Remote,
            "top -b -n 1",
        ),
        ("slow disk", |c, _| c.verdict.up = Some(slow_disk()), Side::Remote, "iostat -x 1 3"),
        (
            "full disk",
            |c, d| {
                d.size = Some(1 << 40);
                (c.remote.disk.free, c.remote.disk.directory) = (Some(5), "/it's".into());
            },
            Side::Remote,
            r"df -h '/it'\''s'",
        ),
        ("slow files", |c, _| c.remote.disk.small_files = Some(200), Side::Remote, "| downpour pipe far 'tar -xf -'"),
        ("two versions", |c, _| c.remote.version = "0.9".into(), Side::Local, "ssh far 'mkdir -p .local/bin"),
    ];
    assert_eq!(advise(&checkup(), &Requested::default()), []);
    for (name, change, side, command) in cases {
        let (mut checkup, mut requested) = (checkup(), Requested::default());
        change(&mut checkup, &mut requested);
        let advice = advise(&checkup, &requested);
        let [only] = &advice[..] else { panic!("{name}: {advice:?}") };
        assert!(only.side == side && only.command.contains(command), "{name}: {only:?}");
    }
}

#[test]
fn a_few_items_are_shown_and_the_rest_is_counted() {
    let item = |n| Advice { side: Side::Local, why: format!("problem {n}"), command: "true".into() };
    let all: Vec<Advice> = (0..7).map(item).collect();
    let text = lines(&all);
    assert!(
        text.starts_with("\nlocal   problem 0; run: true\n") && text.ends_with("\n        and 2 more: see --json"),
        "{text}"
    );
    assert_eq!((text.lines().count(), lines(&all[..5]).lines().count(), lines(&[])), (7, 6, String::new()));
}
