//! The state of a trace for the page.

use serde_json::{Value, json};

use crate::trace::{MEASURED, TracedConnection};

use super::follow::TraceView;

/// The most shown changes of the controller's state.
const CHANGES: usize = 8;

/// Returns the state without the courses, which viewers request separately.
pub(super) fn state(name: &str, state: &TraceView) -> Value {
    let first = state.trace.earlier();
    let connections = state.trace.connections().iter().enumerate();
    json!({
        "name": name,
        "bytes": state.bytes,
        "anew": state.replacements,
        "is_over": false,
        "notices": notices(state),
        "connections": connections.map(|(at, each)| connection(first + at, each)).collect::<Vec<_>>(),
    })
}

fn connection(number: usize, connection: &TracedConnection) -> Value {
    let changes: Vec<_> = connection.changes().collect();
    let [sent, received, lost] = connection.packets();
    json!({
        "number": number,
        "seconds": connection.seconds(),
        "sent": sent,
        "received": received,
        "lost": lost,
        "is_closed": connection.is_closed(),
        "controller": connection.controller(),
        "doing": connection.doing(),
        "limit": connection.limit(),
        "progress": connection.reported_progress().map(|progress| json!({ "percent": progress.percent(), "words": progress.words() })),
        "changes": changes[changes.len().saturating_sub(CHANGES)..],
        "last": connection.last(),
        "flows": connection.flows(),
    })
}

/// Returns the notices about the file, one line each.
fn notices(state: &TraceView) -> Vec<String> {
    let mut lines = Vec::new();
    lines.extend(state.trouble.clone());
    if state.replacements > 0 {
        let times = units::count(state.replacements, "time", "times");
        lines.push(format!("replaced or truncated {times}; read from the start"));
    }
    if let Some((count, why)) = state.trace.invalid_records() {
        let records = units::count(count, "record", "records");
        lines.push(format!("skipped {records}; first error: {why}"));
    }
    if state.trace.earlier() > 0 {
        let connections = units::count(state.trace.earlier(), "earlier connection", "earlier connections");
        lines.push(format!("{connections} dropped"));
    }
    let is_sender = |connection: &TracedConnection| !connection.course().buckets().is_empty();
    match state.trace.connections().back() {
        Some(last) if !is_sender(last) => lines.push("no data about this host's sending yet".to_owned()),
        None if state.bytes > 0 => lines.push("not a trace so far: create one with `--qlog`".to_owned()),
        _ => {}
    }
    if state.trace.is_cut() {
        lines.push("the last record is incomplete".to_owned());
    }
    lines
}

/// Returns the course of a connection in an interval of time, in about this number of steps at most: of each step its
/// time, and of each quantity the mean, least and greatest value in the trace's units, or null.
pub(super) fn course(connection: &TracedConnection, range: [f64; 2], most: usize) -> Value {
    let steps = connection.course().overview(range, most);
    let of = |index: usize, which: usize| -> Vec<Option<f64>> {
        steps.iter().map(|step| step.values[index].mean_low_high().map(|values| values[which])).collect()
    };
    let has_spread = steps.iter().any(|step| step.moments > 1);
    let quantity = |index: usize| match has_spread {
        true => json!({ "mean": of(index, 0), "low": of(index, 1), "high": of(index, 2) }),
        false => json!({ "mean": of(index, 0) }),
    };
    json!({
        "times": steps.iter().map(|step| step.time()).collect::<Vec<_>>(),
        "quantities": (0..MEASURED.len()).map(quantity).collect::<Vec<_>>(),
    })
}
