//! Every profile transfers 10 MB intact over every kind of link. One table each, so that a change of speed is a
//! readable diff.

use downpour_sim::{Case, Ending};
use std::fmt::Write as _;
use std::time::Duration;
use transport::{Profile, Rate};

/// Virtual seconds after which a transfer is aborted.
const LIMIT: u64 = 600;
const SEED: u64 = 1;
/// Rate of the link, configured in profiles that require it.
const RATE: &str = "20M";
const LOSSES: [&str; 7] = ["0%", "1%", "5%", "10%", "20%", "5%,burst=10", "20%,burst=10"];
const ROUND_TRIPS: [u32; 3] = [10, 100, 500];

/// Returns the profile as a user would configure it for this link.
fn fitted(name: &str) -> Profile {
    let profile = systems::profile(name).expect("listed");
    let fixed = |profile: Profile| profile.with_fixed_rate(Rate::from_bits_per_second(20_000_000));
    match name {
        // rc-udp §IV-B: its rate is given.
        "rc-udp" => fixed(profile),
        "ttp" => {
            // ttp §III-A: it starts at 80 % of the bottleneck rate, its maximum.
            let mut profile = profile;
            for key in ["congestion.bottleneck", "congestion.max"] {
                profile.set(key, RATE).expect("a number of ttp's controller");
            }
            profile
        }
        _ => profile,
    }
}

/// Returns a row for each loss. It contains, for each round trip, the seconds and the bytes sent per byte of the
/// object. The reference is the least time that the link permits.
fn table(name: &str) -> String {
    let mut text = format!("{:14}", "loss");
    for rtt in ROUND_TRIPS {
        _ = write!(text, "{:>26}", format!("RTT {rtt} ms"));
    }
    for loss in LOSSES {
        _ = write!(text, "\n{loss:14}");
        for rtt in ROUND_TRIPS {
            let link = format!("rate={RATE},delay={}ms,queue=1MB,mark-above=250KB,mtu=1500B,loss={loss}", rtt / 2);
            let limit = Duration::from_secs(LIMIT);
            let case = Case { profile: fitted(name), limit, ..Case::new(link.parse().expect("a link")) };
            let outcome = case.run(SEED);
            let cell = match (outcome.is_identical(), outcome.ending) {
                (true, Ending::Closed) => {
                    let seconds = outcome.completed_secs();
                    let floors = seconds / case.floor().as_secs_f64();
                    let sent = outcome.bytes_until_complete as f64 / case.size as f64;
                    format!("{seconds:.2} s {floors:.2}x {sent:.3}")
                }
                (_, Ending::TimeUp) => format!("not within {LIMIT} s"),
                wrong => format!("WRONG: {wrong:?}"),
            };
            _ = write!(text, "{cell:>26}");
        }
    }
    assert!(!text.contains("WRONG"), "{name}:\n{text}");
    text
}

macro_rules! profiles {
    ($($test:ident $name:literal),+ $(,)?) => {
        $(
            #[test]
            fn $test() {
                insta::assert_snapshot!($name, table($name));
            }
        )+

        #[test]
        fn no_profile_is_omitted() {
            assert_eq!(systems::registry().profile_names().collect::<Vec<_>>(), [$($name),+]);
        }
    };
}

profiles! {
    auto "auto",
    arq "arq",
    rc_udp "rc-udp",
    tornado_transfer "tornado-transfer",
    lt_tcp "lt-tcp",
    ttp "ttp",
}

/// IPv6's minimum MTU (RFC 8200 section 5) is the MTU of tunnels.
#[test]
fn every_profile_passes_the_smallest_possible_path() {
    for name in systems::registry().profile_names() {
        let link = "rate=20M,delay=20ms,queue=100KB,loss=1%,mtu=1280B".parse().expect("a link");
        let case = Case { profile: fitted(name), size: 300_000, limit: Duration::from_secs(60), ..Case::new(link) };
        let outcome = case.run(SEED);
        assert!(outcome.is_identical() && outcome.ending == Ending::Closed, "{name}: {:?}", outcome.ending);
    }
}
