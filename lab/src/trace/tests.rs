//! Traces in fragments, in series, and with errors.

use super::course::Bucket;
use super::*;

const HEADER: &str = "\u{1e}{\"file_schema\":\"x\"}\n";

fn metrics(time: u32, window: u32) -> String {
    format!(
        "\u{1e}{{\"time\":{time},\"name\":\"recovery:metrics_updated\",\"data\":{{\"congestion_window\":{window},\
         \"loss\":0.05,\"delivered\":1000,\"pacing_rate\":null,\"limited_by\":\"window\",\"congestion_control\":\"auto\"}}}}\n"
    )
}

fn trace() -> Trace {
    Trace::new(Limits { buckets: 1000, connections: 2 })
}

fn windows(connection: &TracedConnection) -> Vec<(f64, f64)> {
    let of = |bucket: &Bucket<{ MEASURED.len() }>| Some((bucket.time(), bucket.values[2].mean_low_high()?[0]));
    connection.course().buckets().iter().filter_map(of).collect()
}

/// Complete records count, whatever the sizes of the reads, and an incomplete one waits for its rest.
#[test]
fn trace_is_read_in_any_fragments() {
    let text = format!("{HEADER}{}{}", metrics(1, 1000), metrics(1500, 20_000));
    let end = text.rfind('\u{1e}').expect("a record");
    for cut in 1..text.len() {
        let mut trace = trace();
        trace.push(&text.as_bytes()[..cut]);
        trace.settle();
        if cut > end {
            assert_eq!(trace.is_cut(), cut > end + 1 && cut + 1 < text.len(), "{cut}");
        }
        trace.push(&text.as_bytes()[cut..]);
        trace.settle();
        assert!(!trace.is_cut());
        assert_eq!(trace.invalid_records(), None, "{cut}");
        assert_eq!(windows(&trace.connections()[0]), [(0.001, 1000.0), (1.5, 20_000.0)], "{cut}");
    }
}

#[test]
fn trace_keeps_the_last_connections() {
    let mut trace = trace();
    (1..=3).for_each(|number| trace.push(format!("{HEADER}{}", metrics(number, number)).as_bytes()));
    trace.settle();
    assert_eq!((trace.connections().len(), trace.earlier()), (2, 1));
    assert_eq!(windows(&trace.connections()[1]), [(0.003, 3.0)]);
}

/// Garbage is counted and reported, and the next record is read.
#[test]
fn trace_counts_and_skips_garbage() {
    let mut trace = trace();
    let cut = &metrics(1, 1)[..20];
    trace.push(format!("garbage{HEADER}{cut}{}\u{1e}[1]\n\u{1e}{{\"name\":7}}\n", metrics(2, 2)).as_bytes());
    trace.push(&[0x1e, 0xff, 0xfe, b'\n', 0x1e]);
    trace.push(&vec![b'x'; 3 << 20]);
    trace.push(metrics(3, 3).as_bytes());
    trace.settle();
    assert_eq!(windows(&trace.connections()[0]), [(0.002, 2.0), (0.003, 3.0)]);
    let (count, first) = trace.invalid_records().expect("garbage");
    assert_eq!(count, 4, "before the header, a cut one, bytes that are not text, and one without an end");
    assert!(first.contains("line 1 column 1"), "{first}");
}

#[test]
fn delivered_bytes_become_a_rate() {
    let mut trace = trace();
    trace.push(HEADER.as_bytes());
    // 1,000 bytes every 10 ms are 800 kbit/s, from the beginning on.
    (1..=100).for_each(|at| trace.push(metrics(at * 10, 1).as_bytes()));
    trace.settle();
    let connection = &trace.connections()[0];
    for bucket in connection.course().buckets() {
        let [rate, ..] = bucket.values[0].mean_low_high().expect("a rate");
        assert!((rate - 800_000.0).abs() < 1.0, "{rate} at {}", bucket.from);
    }
    assert_eq!(connection.last()[2..5], [Some(1.0), None, Some(0.05)]);
    assert_eq!((connection.controller(), connection.limit()), (Some("auto"), Some("limited by: window")));
}

/// The progress of a program is shown with percent and time left; with a rate limit the path is not given as
/// bottleneck.
#[test]
fn program_progress_overrides_engine() {
    let limited = |time: u32| metrics(time, 1).replace("\"window\"", "\"rate-limit\"");
    let progress = "\u{1e}{\"time\":3,\"name\":\"downpour:progress\",\"data\":{\"bytes\":1820000000,\"known_bytes\":4230000000,\
                \"known_is_all\":true,\"files\":12,\"known_files\":31,\"goodput\":8e8,\"left\":24.1,\
                \"limited_by\":\"remote writes\"}}\n";
    let state = "\u{1e}{\"time\":1,\"name\":\"recovery:congestion_state_updated\",\"data\":{\"old\":null,\
                 \"new\":\"default cruise\",\"constraint\":\"rate-limit\"}}\n";
    let mut trace = trace();
    trace.push(format!("{HEADER}{state}{}", limited(2)).as_bytes());
    trace.settle();
    let connection = &trace.connections()[0];
    assert_eq!((connection.limit(), connection.reported_progress()), (Some("limited by: rate limit"), None));
    assert_eq!(connection.doing(), Some("full rate with a short queue"));
    let changes: Vec<_> = connection.changes().map(|(_, words)| words.as_str()).collect();
    assert!(changes.iter().all(|words| !words.contains("limited by the path")), "{changes:?}");
    trace.push(format!("{progress}{}", limited(4)).as_bytes());
    trace.settle();
    let connection = &trace.connections()[0];
    assert_eq!(connection.limit(), Some("limited by: remote writes"));
    let progress = connection.reported_progress().expect("reported progress");
    assert_eq!(progress.words(), "43 %, 1.82 GB of 4.23 GB, 12 of 31 files, 25 s left");
    // One file, with more to follow; without progress.
    trace.push(
        b"\x1e{\"time\":5,\"name\":\"downpour:progress\",\"data\":{\"bytes\":5,\"known_bytes\":0,\"known_files\":1}}\n",
    );
    trace.settle();
    let connection = &trace.connections()[0];
    assert_eq!(connection.limit(), None);
    let words = connection.reported_progress().map(super::connection::Progress::words);
    assert_eq!(words.as_deref(), Some("100 %, 5 B of 0 B+, 0 of 1+ files"));
}

#[test]
fn events_are_counted_and_states_described() {
    let event =
        |time: u32, name: &str, data: &str| format!("\u{1e}{{\"time\":{time},\"name\":\"{name}\",\"data\":{data}}}\n");
    let mut trace = trace();
    let text = [
        HEADER.to_owned(),
        event(0, "downpour:flow_opened", r#"{"flow":2,"length":1000}"#),
        event(
            1,
            "downpour:packet_sent",
            r#"{"header":{},"symbol":{"flow":2,"block":0,"esi":0,"count":2,"kind":"source"}}"#,
        ),
        event(
            2,
            "downpour:packet_sent",
            r#"{"header":{},"symbol":{"flow":2,"block":1,"esi":0,"count":2,"kind":"repair"}}"#,
        ),
        event(3, "downpour:packet_received", "{}"),
        event(4, "recovery:packet_lost", "{}"),
        event(5, "recovery:congestion_state_updated", r#"{"old":null,"new":"default start","constraint":"search"}"#),
        event(6, "downpour:block_acknowledged", r#"{"flow":2,"block":0}"#),
    ];
    trace.push(text.concat().as_bytes());
    trace.settle();
    let connection = &trace.connections()[0];
    assert_eq!(connection.packets(), [2, 1, 1]);
    assert_eq!(connection.seconds(), 0.006);
    let changes: Vec<_> = connection.changes().cloned().collect();
    assert_eq!(changes, [(0.005, "searching for the rate".to_owned())]);
    let flows = serde_json::to_value(connection.flows()).expect("numbers and letters");
    assert_eq!((&flows[0]["map"], &flows[0]["length"]), (&"dr".into(), &1000.into()));
    assert!(!connection.is_closed());
}
