//! `downpour-lab simulate` as users run it.

use std::process::{Command, Output};

fn simulate(options: &[&str]) -> Output {
    let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    lab.arg("simulate").args(options).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Returns the seconds in `a to b: 1 MB in 1.23 s, ...`.
fn seconds(line: &str) -> f64 {
    let time = line.split(" in ").nth(1).and_then(|rest| rest.split(',').next()).and_then(|time| time.split_once(' '));
    let scale = |unit: &str| if unit == "ms" { 1e-3 } else { 1.0 };
    let seconds = time.and_then(|(number, unit)| Some(number.parse::<f64>().ok()? * scale(unit)));
    seconds.unwrap_or_else(|| panic!("no time in {line:?}"))
}

#[test]
fn simulate_run_is_deterministic() {
    let options = ["--rate", "20M", "--delay", "10ms", "--queue", "1bdp", "--loss", "2%", "--size", "1MB"];
    let first = stdout(&simulate(&options));
    assert_eq!(first, stdout(&simulate(&options)));
    assert_ne!(first, stdout(&simulate(&[options.as_slice(), &["--run", "1"]].concat())));
}

#[test]
fn simulate_json_has_the_results() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("results.json");
    let options = ["--rate", "20M", "--delay", "10ms", "--queue", "1bdp", "--loss", "2%", "--size", "1MB"];
    let with_file = [options.as_slice(), &["--json", file.to_str().unwrap()]].concat();
    let text = stdout(&simulate(&with_file));
    assert_eq!(text, stdout(&simulate(&options)));
    let read = |file| serde_json::from_slice::<serde_json::Value>(&std::fs::read(file).unwrap()).unwrap();
    let results = read(&file);
    let flow = &results["flows"][0];
    assert_eq!((&flow["from"], &flow["to"], &flow["bytes"]), (&"a".into(), &"b".into(), &1_000_000.into()));
    let printed = seconds(text.lines().next().unwrap());
    assert!((flow["seconds"].as_f64().unwrap() - printed).abs() < 0.005 * printed.max(1.0), "{flow} and {printed}");
    assert_eq!(results["links"].as_array().map(Vec::len), Some(2));
    // An unfinished transfer.
    let cut = [with_file.as_slice(), &["--limit", "0"]].concat();
    assert!(!simulate(&cut).status.success());
    assert!(read(&file)["flows"][0]["seconds"].is_null());
}

#[test]
fn simulate_topology_pairs_share_bottleneck() {
    const DUMBBELL: &str = r#"
        hosts = ["a1", "a2", "b1", "b2"]
        routers = ["left", "right"]
        links = [
            { between = ["left", "right"], link = "rate=20M,delay=5ms,queue=1bdp" },
            { between = ["a1", "left"], link = "delay=1ms" },
            { between = ["a2", "left"], link = "delay=1ms" },
            { between = ["b1", "right"], link = "perfect" },
            { between = ["b2", "right"], link = "perfect" },
        ]
        pairs = [{ from = "a1", to = "b1" }, { from = "a2", to = "b2" }]
    "#;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dumbbell.toml");
    std::fs::write(&file, DUMBBELL).unwrap();
    let text = stdout(&simulate(&["--topology", file.to_str().unwrap(), "--size", "5MB", "--told", "9M"]));
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("a1 to b1: 5 MB in ") && lines[1].starts_with("a2 to b2: 5 MB in "), "{text}");
    // 5 MB at 9 Mbit/s take 4.44 s without headers, and both flows fit.
    for line in &lines[..2] {
        assert!((4.4..5.2).contains(&seconds(line)), "{line}");
    }
    assert!(lines[2].trim_start().starts_with("left>right: "), "{text}");
}

#[test]
fn simulate_profile_name_file_and_set() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, "based-on = \"arq\"\ncongestion = \"cubic\"\n\"congestion.beta\" = 0.8\n").unwrap();
    let link = ["--rate", "20M", "--delay", "10ms", "--queue", "1bdp", "--loss", "1%", "--size", "1MB"];
    let run = |options: &[&str]| stdout(&simulate(&[&link[..], options].concat()));
    let changed = run(&["--profile", "arq", "--set", "congestion=cubic", "--set", "congestion.beta=0.8"]);
    assert_eq!(run(&["--profile", file.to_str().unwrap()]), changed);
    assert_ne!(run(&["--profile", "arq", "--set", "congestion=cubic"]), changed);
}

#[test]
fn simulate_linux_tcp_has_no_choices() {
    let run = |options: &[&str]| {
        let link = ["--rate", "20M", "--delay", "10ms", "--queue", "1bdp", "--size", "1MB", "--profile", "linux-tcp"];
        simulate(&[&link[..], options].concat())
    };
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.qlog");
    let text = stdout(&run(&["--qlog", file.to_str().unwrap()]));
    let trace = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("a to b: 1 MB in "), "{text}");
    assert!(trace.contains(r#""congestion_control":"cubic""#) && trace.contains(r#""pacing_rate":null"#), "{trace}");
    for (options, said) in [
        (["--set", "congestion=reno"], "--set congestion: linux-tcp has no choices"),
        (["--told", "19M"], "--told has no effect on linux-tcp"),
    ] {
        let refused = run(&options);
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && error.contains(said), "{error}");
    }
}

/// Checks the demands of draft-ietf-quic-qlog-main-schema on a file in JSON-SEQ: the members of its header, and of each
/// event a time that does not go back, a name with a namespace, and data.
fn is_qlog(trace: &str) {
    let (before, records) = trace.split_once('\u{1e}').expect("records");
    assert_eq!(before, "");
    let mut records = records.split('\u{1e}').map(|record| {
        assert!(record.ends_with('\n'), "{record}");
        serde_json::from_str::<serde_json::Value>(record).expect("JSON")
    });
    let header = records.next().expect("a header");
    assert_eq!(header["file_schema"], "urn:ietf:params:qlog:file:sequential");
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    let common = &header["trace"]["common_fields"];
    assert_eq!(common["time_format"], "relative_to_epoch");
    // A monotonic clock has no known epoch.
    assert_eq!(common["reference_time"], serde_json::json!({ "clock_type": "monotonic", "epoch": "unknown" }));
    let point = header["trace"]["vantage_point"]["type"].as_str();
    assert!(matches!(point, Some("client" | "server" | "network" | "unknown")), "{point:?}");
    let schemas = header["trace"]["event_schemas"].as_array().expect("a list");
    assert!(
        !schemas.is_empty() && schemas.iter().all(|schema| schema.as_str().is_some_and(|urn| urn.starts_with("urn:")))
    );
    let mut last = 0.0;
    for event in records {
        let (time, name) = (event["time"].as_f64().expect("a time"), event["name"].as_str().expect("a name"));
        let (namespace, kind) = name.split_once(':').expect("a namespace");
        assert!(time >= last && matches!(namespace, "recovery" | "downpour") && !kind.is_empty(), "{event}");
        assert!(event["data"].is_object(), "{event}");
        last = time;
    }
}

/// The trace of a simulated transfer can be drawn: it ends with the transfer and names the controller.
#[test]
fn simulate_qlog_can_be_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let link = ["--rate", "20M", "--delay", "10ms", "--size", "1MB", "--set", "congestion=reno"];
    let text = stdout(&simulate(&[&link[..], &["--qlog", &at("run.qlog")]].concat()));
    let trace = std::fs::read_to_string(at("run.qlog")).unwrap();
    assert!(trace.contains(r#""congestion_control":"reno""#), "{trace}");
    is_qlog(&trace);
    let mut series = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
    series.args(["series", &at("run.qlog"), "--out", &at("run.svg"), "--csv", &at("run.csv")]);
    stdout(&series.output().expect("the program starts"));
    let numbers = std::fs::read_to_string(at("run.csv")).unwrap();
    let last = numbers.lines().last().and_then(|line| line.split(',').nth(1)).unwrap().parse::<f64>().unwrap();
    assert!((last - seconds(text.lines().next().unwrap())).abs() < 0.1, "{last}: {text}");
}

#[test]
fn simulate_invalid_or_unfinished_exit_code() {
    let cases: [(&[&str], i32, &str); 7] = [
        (&["--profile", "brutal"], 2, "unknown profile 'brutal'"),
        (&["--profile", "./none.toml"], 2, "cannot read ./none.toml"),
        (&["--set", "congestion"], 2, "--set congestion: write KEY=VALUE"),
        (&["--set", "congestion=brutal"], 2, "unknown congestion control 'brutal'"),
        (&["--loss", "120%"], 2, "loss is 1.2"),
        (&["--size", "much"], 2, "cannot read size=much"),
        (&["--rate", "1M", "--limit", "2"], 4, "not every transfer finished in time"),
    ];
    for (options, code, message) in cases {
        let output = simulate(options);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains(message) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn stdout_write_error_exit_code() {
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("a device that is full");
    let lab = |arguments: &[&str]| {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_downpour-lab"));
        lab.args(arguments);
        lab
    };
    for arguments in [&["simulate", "--size", "10KB", "--rate", "10M"][..], &["peers"]] {
        let output = lab(arguments).stdout(full()).output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with("downpour-lab: cannot write to stdout: No space left") && said.lines().count() == 1,
            "{said}"
        );
        // A reader that closes its pipe has read enough.
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = lab(arguments).stdout(writer).output().expect("the program starts");
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
    }
    let output = lab(&["simulate", "--profile", "nope"]).stderr(full()).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn simulate_small_mtu_error() {
    let output = simulate(&["--mtu", "576B", "--rate", "10M", "--delay", "10ms", "--size", "10KB", "--limit", "5"]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("first packets of 1228 bytes") && !text.contains("--limit"), "{text}");
    assert!(simulate(&["--mtu", "1228B", "--rate", "10M", "--delay", "10ms", "--size", "10KB"]).status.success());
}
