use std::path::Path;
use std::time::Duration;

use super::*;

const SWEEPS: &str = r#"
name = "paper/fig1"
title = "Time over loss"
link = "rate=100M,delay=50ms,loss=1%,queue=130KB"
size = "1MB"
peers = ["tcp-cubic", "downpour-auto"]
seeds = [1, 2]
repeats = 3
told = "97%"

[[claim]]
text = "Coding is not slowed down by loss."
section = "VI-B"

[[sweep]]
name = "loss"
vary = "loss"
values = ["0%", "1%", "10%"]

[[sweep]]
name = "delay"
vary = "delay"
values = ["500us", "50ms"]
scale = "log"
size = "10MB"
cap = "60s"

[[published]]
sweep = "loss"
label = "TCP"
section = "figure 1"
points = [{ x = "5%", y = 14.0, error = 2.0 }]
"#;

fn peers() -> Vec<String> {
    ["tcp-cubic", "downpour-auto"].map(str::to_owned).to_vec()
}

fn parse(text: &str) -> Result<LinkPlan, PlanError> {
    LinkPlan::parse(Path::new("p.toml"), text, &peers())
}

fn plan(text: &str) -> LinkPlan {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// `downpour demo` writes this plan, and its tests have the file.
#[test]
fn demo_plan_is_one_transfer() {
    let plan = plan(include_str!("../../../crates/cli/tests/demo/plan.toml"));
    let [case] = &plan.cases()[..] else { panic!("{:?}", plan.cases()) };
    assert_eq!((case.peer.as_str(), case.size, case.seed, case.cap_seconds), ("tcp-cubic", 300_000, 7, 15.0));
    assert_eq!(case.link, "rate=200M,delay=2ms,queue=100KB,loss=2%,seed=7");
}

#[test]
fn sweep_varies_one_quantity() {
    let plan = plan(SWEEPS);
    let [loss, delay] = &plan.sweeps[..] else { panic!("{:?}", plan.sweeps) };
    let points = |sweep: &Sweep| sweep.points.iter().map(|point| (point.label.clone(), point.x)).collect::<Vec<_>>();
    assert_eq!(points(loss), [("0%".into(), 0.0), ("1%".into(), 1.0), ("10%".into(), 10.0)]);
    assert_eq!(points(delay), [("500us".into(), 0.5), ("50ms".into(), 50.0)]);
    assert_eq!((loss.cap, delay.cap), (Duration::from_secs(120), Duration::from_secs(60)));
    assert_eq!((loss.points[0].size, delay.points[0].size), (1_000_000, 10_000_000));
    assert_eq!(loss.points[2].link.text, "rate=100M,delay=50ms,loss=10%,queue=130KB");
    assert_eq!(delay.points[0].link.text, "rate=100M,delay=500us,loss=1%,queue=130KB");
    assert_eq!(plan.published[0].points, [PublishedPoint { x: 5.0, y: 14.0, error: Some(2.0) }]);

    // (3 losses + 2 delays) x 2 peers x 2 seeds x 3 repeats.
    let cases = plan.cases();
    assert_eq!(cases.len(), 60);
    let first = &cases[0];
    assert_eq!(first.link, "rate=100M,delay=50ms,queue=130KB,loss=0%,seed=1");
    assert_eq!((first.fixed_rate, first.seed, first.repeat, first.size), (Some(97_000_000), 1, 0, 1_000_000));
    assert_eq!(
        first.label(),
        "paper/fig1/loss tcp-cubic 1000000 B over rate=100M,delay=50ms,queue=130KB,loss=0%,seed=1 #0"
    );
}

#[test]
fn sweeps_share_cases_of_a_common_point() {
    let plan = plan(&SWEEPS.replace("size = \"10MB\"\n", ""));
    assert_eq!(plan.cases().len(), 48, "1 % and 50 ms are the same runs");
    let ids = |sweep: usize, point: usize| {
        let sweep = &plan.sweeps[sweep];
        plan.cases_at(sweep, &sweep.points[point], "tcp-cubic").map(|case| case.id()).collect::<Vec<_>>()
    };
    assert_eq!(ids(0, 1), ids(1, 1));
    assert_ne!(ids(0, 0), ids(1, 0));
}

#[test]
fn ranges_make_a_sweep_per_combination() {
    let head = SWEEPS.split("[[claim]]").next().expect("a head");
    let ranges = "[picture]\nx = \"loss\"\n[ranges]\nloss = [\"1%\", \"2%\"]\ndelay = [\"5ms\", \"10ms\"]\nsize = [\"1MB\", \"2MB\", \"3MB\"]\n";
    let plan = plan(&format!("{head}{ranges}"));
    let names: Vec<_> = plan.sweeps.iter().map(|sweep| sweep.name.as_str()).collect();
    let expected = [
        "loss-size-1mb-delay-5ms",
        "loss-size-2mb-delay-5ms",
        "loss-size-3mb-delay-5ms",
        "loss-size-1mb-delay-10ms",
        "loss-size-2mb-delay-10ms",
        "loss-size-3mb-delay-10ms",
    ];
    assert_eq!(names, expected);
    assert_eq!(plan.sweeps[4].title, "Time over loss, size 2MB, delay 10ms");
    assert_eq!(plan.sweeps[4].points[1].link.text, "rate=100M,delay=10ms,loss=2%,queue=130KB");
    assert_eq!(plan.sweeps[4].points[1].size, 2_000_000);
    // 2 x 2 x 3 values, 2 peers, 2 seeds, 3 repeats.
    assert_eq!(plan.cases().len(), 144);
}

#[test]
fn floor_is_wire_time_and_round_trips() {
    let plan = plan(SWEEPS);
    let floor = |round_trips, point: &Point| point.floor(Floor { round_trips }).expect("a rate");
    // 1 MB at 100 Mbit/s is 80 ms; 28 bytes of 1500 are headers; 1 % is lost; RTT 100 ms.
    let wire = 0.08 * 1500.0 / 1472.0 / 0.99;
    assert!((floor(1.0, &plan.sweeps[0].points[1]) - (wire + 0.1)).abs() < 1e-12);
    assert!((floor(1.5, &plan.sweeps[0].points[1]) - (wire + 0.15)).abs() < 1e-12);
    let rateless = Point { link: link::with("delay=5ms", "").expect("a link"), ..plan.sweeps[0].points[0].clone() };
    assert_eq!(rateless.floor(Floor { round_trips: 1.0 }), None);
}

#[test]
fn plan_error_names_line() {
    for (old, new, line, hint) in [
        ("\"10%\"]", "\"120%\"]", 18, "loss is 1.2: write a probability"),
        ("[\"0%\", \"1%\", \"10%\"]", "[]", 18, "loss is empty: add at least one value"),
        ("\"1%\", \"10%\"]", "\"0%\"]", 18, "duplicate value \"0%\" in loss"),
        ("\"10%\"]", "10]", 18, "expected a string"),
        (
            "\"tcp-cubic\", \"down",
            "\"tcp-cubik\", \"down",
            6,
            "unknown peer \"tcp-cubik\": one of tcp-cubic, downpour-auto",
        ),
        ("peers = [\"tcp-cubic\", \"downpour-auto\"]", "peers = []", 6, "peers is empty"),
        ("\"tcp-cubic\"", "\"tcp-cubic congestion=reno\"", 6, "it has no profile"),
        ("\"downpour-auto\"", "\"downpour-auto congestion=vegas\"", 6, "unknown congestion control 'vegas'"),
        ("repeats = 3", "repeat = 3", 8, "unknown field `repeat`"),
        ("repeats = 3", "repeats = 0", 8, "repeats is 0: write at least 1"),
        ("seeds = [1, 2]", "seeds = []", 7, "seeds is empty"),
        ("told = \"97%\"", "told = \"0%\"", 9, "such as 95%"),
        ("cap = \"60s\"", "cap = \"60\"", 26, "write it like 120s"),
        ("cap = \"60s\"", "cap = \"0s\"", 26, "cap is 0"),
        ("size = \"1MB\"", "size = \"0MB\"", 5, "size"),
        ("vary = \"delay\"", "vary = \"colour\"", 22, "unknown variant `colour`"),
        ("\"500us\", ", "\"0ms\", ", 0, "delay is 0 in delay, which cannot be shown on a logarithmic axis"),
        ("\"500us\", ", "\"5\", ", 23, "cannot read delay=5: write it like 50ms"),
        ("name = \"delay\"", "name = \"loss\"", 21, "duplicate sweep name \"loss\""),
        ("name = \"paper/fig1\"", "name = \"../etc\"", 2, "invalid name"),
        ("link = \"rate", "link = \"mate", 4, "unknown key \"mate\""),
        ("sweep = \"loss\"", "sweep = \"rate\"", 29, "write sweep = one of loss, delay"),
        ("points = [{ x = \"5%\", y = 14.0, error = 2.0 }]", "", 28, "add points, or the claim in words"),
        ("x = \"5%\"", "x = \"5 packets\"", 32, "of loss"),
        ("[[claim]]", "[ranges]\nloss = [\"1%\"]\n[[claim]]", 11, "[ranges] and [[sweep]] exclude each other"),
        (
            "told",
            "topology = { file = \"none.toml\", between = [\"l\", \"r\"], pair = [\"a\", \"b\"] }\ntold",
            9,
            "cannot read topology ",
        ),
        (
            "told",
            "topology = { file = \"../t.toml\", between = [\"l\", \"r\"], pair = [\"a\", \"b\"] }\ntold",
            9,
            "topology ../t.toml must be in the directory of the plan",
        ),
    ] {
        let text = SWEEPS.replacen(old, new, 1);
        assert_ne!(text, SWEEPS, "{old}");
        let error = parse(&text).expect_err(new).to_string();
        let place = if line == 0 { "p.toml: ".to_owned() } else { format!("p.toml:{line}: ") };
        assert!(error.starts_with(&place) && error.contains(hint), "{new:?} gave {error:?}, wanted {place:?} {hint:?}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[test]
fn equal_sweeps_are_refused() {
    let again = "[[sweep]]\nname = \"again\"\nvary = \"loss\"\nvalues = [\"0%\", \"1%\", \"10%\"]\n";
    let error = parse(&format!("{SWEEPS}{again}")).expect_err("twice").to_string();
    assert!(error.ends_with("sweep \"again\" equals sweep \"loss\": remove one"), "{error}");
}

const WRITES: &str = r#"
name = "tunnel/keys"
title = "Keys"
link = "rate=20M,delay=50ms,loss=5%"
size = "1B"
writes = { every = "200ms", poisson = true, for = "60s", echo = true, beside = "100MB" }
peers = ["tunnel", "kcptun", "downpour-auto"]
[picture]
y = "upload"
[[sweep]]
name = "loss"
vary = "loss"
peers = ["tunnel", "kcptun"]
values = ["0%"]
"#;

fn parse_writes(text: &str) -> Result<LinkPlan, PlanError> {
    LinkPlan::parse(Path::new("p.toml"), text, &["tunnel", "kcptun", "downpour-auto"].map(str::to_owned))
}

#[test]
fn writes_replace_a_file() {
    let text = WRITES.replace(", \"downpour-auto\"", "");
    let plan = parse_writes(&text).unwrap_or_else(|error| panic!("{error}"));
    let writes = Writes { every_seconds: 0.2, poisson: true, seconds: 60.0, echo: true, beside: Some(100_000_000) };
    assert_eq!((plan.writes, plan.picture.y, plan.picture.floor), (Some(writes), Quantity::Upload, None));
    let cases = plan.cases();
    assert_eq!((cases.len(), cases[0].size, cases[0].writes), (2, 1, Some(writes)));
    // The upload may end at once.
    assert_eq!(plan.least(&plan.sweeps[0].points[0]), 0.0);

    let alone = text.replace(", echo = true, beside = \"100MB\"", "").replace("y = \"upload\"", "");
    let plan = parse_writes(&alone).unwrap_or_else(|error| panic!("{error}"));
    let writes = plan.writes.expect("writes");
    assert_eq!((writes.echo, writes.beside, plan.picture.y), (false, None, Quantity::DelayP99));
    assert_eq!(plan.least(&plan.sweeps[0].points[0]), 60.0);
}

#[test]
fn writes_error_names_line() {
    let good = WRITES.replace(", \"downpour-auto\"", "");
    for (old, new, line, hint) in [
        (
            "\"kcptun\"]\n[pic",
            "\"kcptun\", \"downpour-auto\"]\n[pic",
            7,
            "downpour-auto moves files only: small writes need peers",
        ),
        ("every = \"200ms\"", "every = \"0ms\"", 6, "every is 0"),
        ("every = \"200ms\"", "every = \"1us\"", 6, "more than 1000000 writes"),
        ("for = \"60s\"", "for = \"60\"", 6, "write it like 120s"),
        ("for = \"60s\"", "for = \"2m\"", 6, "cannot read for=2m"),
        ("for = \"60s\"", "for = \"120s\"", 6, "the cap of loss ends before the last write"),
        ("for = \"60s\", ", "", 6, "missing field `for`"),
        ("beside = \"100MB\"", "beside = \"much\"", 6, "cannot read size=much"),
        (
            ", beside = \"100MB\"",
            "",
            9,
            "upload is not available for these runs: one of delay-p50, delay-p90, delay-p99",
        ),
        ("\"upload\"", "\"goodput\"", 9, "goodput is not available for these runs"),
    ] {
        let text = good.replacen(old, new, 1);
        assert_ne!(text, good, "{old}");
        let error = parse_writes(&text).expect_err(new).to_string();
        let place = format!("p.toml:{line}: ");
        assert!(error.starts_with(&place) && error.contains(hint), "{new:?} gave {error:?}, wanted {place:?} {hint:?}");
    }
    let files = SWEEPS.replace("[[claim]]", "[picture]\ny = \"delay-p99\"\n[[claim]]");
    let error = parse(&files).expect_err("files").to_string();
    assert!(error.contains("delay-p99 is not available for these runs: one of seconds, goodput"), "{error}");
}
