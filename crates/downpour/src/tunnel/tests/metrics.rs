//! The metrics of a tunnel, as served to Prometheus.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::tunnel::http::{Hosts, serve_metrics};

impl Ends {
    /// Serves the metrics of the local side; returns the port.
    fn serve_metrics(&mut self) -> u16 {
        let place = tcp("localhost", 0);
        let listener = Listener::bind(&place).unwrap();
        let (port, hosts) = (listener.port().unwrap(), Hosts::of(&place, &listener));
        self.tasks.spawn(serve_metrics(listener, hosts, Arc::clone(&self.local)));
        port
    }
}

/// Sends a request; returns the response.
async fn ask(port: u16, request: &str) -> String {
    let mut client = dial(port).await;
    client.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).await.unwrap();
    response
}

async fn scrape(port: u16) -> BTreeMap<String, f64> {
    let response = ask(port, &format!("GET /metrics HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")).await;
    let (head, page) = response.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{head}"
    );
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", page.len())), "{head}");
    samples(page)
}

/// Reads a page of version 0.0.4 strictly; returns the value of each sample by its name with its labels.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
    assert!(page.ends_with('\n'), "the last line ends too");
    let mut lines = page.lines().peekable();
    let is_name = |name: &str| {
        let rest_is_fine = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        rest_is_fine && name.starts_with("downpour_")
    };
    while let Some(line) = lines.next() {
        let (name, help) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')).expect(line);
        assert!(is_name(name) && families.insert(name) && !help.contains('\\') && help.ends_with('.'), "{line}");
        let line = lines.next().expect("a type");
        let (same, kind) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')).expect(line);
        assert_eq!((same, kind), (name, if name.ends_with("_total") { "counter" } else { "gauge" }), "{line}");
        let before = samples.len();
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (sample, value) = line.rsplit_once(' ').expect(line);
            let labels = sample.strip_prefix(name).expect("the name of its family");
            if !labels.is_empty() {
                let labels = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix('}')).expect(line);
                for label in labels.split(',') {
                    let (label, value) = label.split_once('=').expect(line);
                    let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect(line);
                    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
                    assert!(is_plain(label) && is_plain(value) && !label.is_empty(), "{line}");
                }
            }
            let value: f64 = value.parse().expect(line);
            assert!(value.is_finite() && value >= 0.0, "{line}");
            assert_eq!(samples.insert(sample.to_owned(), value), None, "{line}");
        }
        assert!(samples.len() > before, "{name} has no sample");
    }
    samples
}

/// Returns the samples of connections that local programs have opened: total, opening, open, opened, completed, cut,
/// refused.
fn of_local(samples: &BTreeMap<String, f64>) -> [f64; 7] {
    let outcome = |outcome: &str| format!("_ended_total{{from=\"here\",outcome=\"{outcome}\"}}");
    let plain = ["total", "opening", "open", "opened_total"].map(|name| format!("_{name}{{from=\"here\"}}"));
    let [total, opening, open, opened] = plain;
    [total, opening, open, opened, outcome("completed"), outcome("cut"), outcome("refused")]
        .map(|name| samples[&format!("downpour_tunnel_connections{name}")])
}

#[tokio::test]
async fn metrics_count_connections_and_bytes() {
    let mut ends = Ends::new(vec![]).await;
    let metrics = ends.serve_metrics();
    let before = scrape(metrics).await;
    assert_eq!(of_local(&before), [0.0; 7]);
    let server = serve(echo).await;
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", server)));
    exchange(&mut dial(port).await, &pattern(100_000)).await.unwrap();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
    let refused = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", closed)));
    broken(&mut dial(refused).await).await;
    let greets = serve(async |mut socket: TcpStream| {
        socket.write_all(b"hello").await.unwrap();
        let _ = socket.read_to_end(&mut Vec::new()).await;
    });
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", greets.await)));
    let mut hello = [0; 5];
    let [mut kept, mut cut] = [dial(port).await, dial(port).await];
    kept.read_exact(&mut hello).await.unwrap();
    cut.read_exact(&mut hello).await.unwrap();
    set_socket_linger(&cut, Some(Duration::ZERO)).unwrap();
    drop(cut);
    // Its end takes a moment.
    let mut after = scrape(metrics).await;
    while of_local(&after)[5] < 1.0 || of_local(&after)[4] < 1.0 {
        after = scrape(metrics).await;
    }
    assert_eq!(of_local(&after), [4.0, 0.0, 1.0, 3.0, 1.0, 1.0, 1.0]);
    assert_eq!(after["downpour_tunnel_sent_bytes_total"], 100_000.0);
    assert_eq!(after["downpour_tunnel_received_bytes_total"], 100_010.0);
    assert_eq!(after["downpour_tunnel_connections_total{from=\"there\"}"], 0.0);
    for grown in
        ["sent_bytes_total", "received_bytes_total", "packets_sent_total", "symbols_sent_total{kind=\"source\"}"]
    {
        let name = format!("downpour_transport_{grown}");
        assert!(after[&name] > before[&name], "{name}");
    }
    assert!((0.000_001..10.0).contains(&after["downpour_transport_round_trip_seconds"]));
    assert!(after["downpour_transport_loss_ratio"] <= 1.0);
    assert_eq!(after["downpour_transport_datagrams_refused_total{reason=\"authentication_failed\"}"], 0.0);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((now - 60.0..=now).contains(&after["downpour_tunnel_start_time_seconds"]));
    assert!(after.keys().all(|name| before.contains_key(name) || name.contains("round_trip") || name.contains("rate")));
}

#[tokio::test]
async fn a_few_clients_are_served_at_once_and_others_wait() {
    let mut ends = Ends::new(vec![]).await;
    let metrics = ends.serve_metrics();
    let mut idle = Vec::new();
    for _ in 0..8 {
        idle.push(dial(metrics).await);
    }
    let mut waits = dial(metrics).await;
    waits.write_all(b"HEAD /metrics HTTP/1.0\r\n\r\n").await.unwrap();
    // Meanwhile the tunnel carries data.
    let server = serve(echo).await;
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", server)));
    exchange(&mut dial(port).await, b"hello").await.unwrap();
    let early = waits.try_read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(io::ErrorKind::WouldBlock));
    drop(idle.pop());
    let mut response = String::new();
    waits.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
}
