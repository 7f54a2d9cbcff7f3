//! `series`: the course of a connection, from the trace that downpour's --qlog writes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::picture::{Panel, panels, png};

/// Options of `series`.
#[derive(Args, Debug)]
pub struct SeriesArgs {
    /// Traces written by `downpour --qlog`; each is one line in every panel
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// File for the picture: .svg or .png
    #[arg(short, long, value_name = "FILE", default_value = "series.svg")]
    out: PathBuf,
    /// Also write the numbers to FILE, one line per point in time
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
}

/// The quantities to draw: the name among the trace's metrics, the title, and the factor from the trace's unit to the
/// picture's.
const MEASURED: [(&str, &str, f64); 7] = [
    ("congestion_window", "Congestion window, kB", 1e-3),
    ("pacing_rate", "Pacing rate, Mbit/s", 1e-6),
    ("loss", "Loss estimate, %", 100.0),
    ("redundancy", "Symbols beyond the source, % of it", 100.0),
    ("smoothed_rtt", "Round-trip time, smoothed, ms", 1.0),
    ("queue_delay", "Queueing delay (latest less least round trip), ms", 1.0),
    ("open_blocks", "Open blocks", 1.0),
];

/// One trace.
#[derive(Debug)]
struct Trace {
    name: String,
    /// Seconds since the trace began, and the values of [`MEASURED`] known then.
    moments: Vec<(f64, [Option<f64>; MEASURED.len()])>,
}

/// The content of a file.
#[derive(Debug)]
struct Read {
    /// Its last connection.
    trace: Trace,
    /// Connections before that.
    earlier: usize,
    /// The last record is incomplete: its writer was ended, or the disk was full.
    is_cut: bool,
}

/// Draws the traces.
///
/// # Errors
/// A file that cannot be read or written, or is no trace.
pub fn run(args: &SeriesArgs) -> Result<u8, Failure> {
    let kind = args.out.extension().and_then(|kind| kind.to_str()).unwrap_or_default().to_ascii_lowercase();
    let is_png = match kind.as_str() {
        "png" => true,
        "svg" => false,
        _ => {
            let message = format_args!("{}: a picture is an .svg or a .png", args.out.display());
            return Err(Failure::new(Code::Usage, message));
        }
    };
    let traces = args.traces.iter().map(|path| read(path)).collect::<Result<Vec<Trace>, Failure>>()?;
    let names: Vec<String> = traces.iter().map(|trace| trace.name.clone()).collect();
    let course = |trace: &Trace, index: usize| {
        trace.moments.iter().filter_map(|(time, values)| Some((*time, values[index]?))).collect()
    };
    let drawn: Vec<Panel> = MEASURED
        .iter()
        .enumerate()
        .map(|(index, (_, title, _))| Panel {
            title: (*title).to_owned(),
            courses: traces.iter().map(|trace| course(trace, index)).collect(),
        })
        .filter(|panel| panel.courses.iter().any(|course| !course.is_empty()))
        .collect();
    let picture = panels("Course of the connection", &names, &drawn);
    let bytes =
        if is_png { png(&picture).map_err(|error| Failure::new(Code::Other, error))? } else { picture.into_bytes() };
    write(&args.out, &bytes)?;
    let courses = units::count(drawn.len(), "panel", "panels");
    say(&format!("{}: {courses} of {}\n", args.out.display(), units::count(traces.len(), "trace", "traces")));
    if let Some(csv) = &args.csv {
        write(csv, table(&traces).as_bytes())?;
        let moments = traces.iter().map(|trace| trace.moments.len()).sum::<usize>();
        say(&format!("{}: {}\n", csv.display(), units::count(moments, "point in time", "points in time")));
    }
    Ok(Code::Done as u8)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error| Failure::new(Code::Other, format_args!("cannot write {}: {error}", path.display()));
    fs::write(path, bytes).map_err(failed)
}

fn read(path: &Path) -> Result<Trace, Failure> {
    let refused = |why: &dyn std::fmt::Display| Failure::new(Code::Usage, format_args!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| refused(&error))?;
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let Read { trace, earlier, is_cut } = parse(name, &text).map_err(|why| refused(&why))?;
    if earlier > 0 {
        let connections = units::count(earlier, "connection", "connections");
        warn(&format!("{}: the last connection is drawn; {connections} before it are not", path.display()));
    }
    if is_cut {
        warn(&format!("{}: the last record was not written whole, and is left out", path.display()));
    }
    if trace.moments.is_empty() {
        return Err(refused(&"no trace of a sender: write one with `downpour send --qlog FILE`"));
    }
    Ok(trace)
}

/// Parses the metrics in a JSON text sequence of qlog (RFC 7464). A file may hold several connections one after the
/// other: the course is that of the last.
fn parse(name: String, text: &str) -> Result<Read, String> {
    let (mut moments, mut connections, mut is_cut) = (Vec::new(), 0_usize, false);
    let mut records = text.split('\u{1e}').filter(|record| !record.trim().is_empty()).peekable();
    while let Some(record) = records.next() {
        let record: Value = match serde_json::from_str(record) {
            Ok(record) => record,
            // RFC 7464 section 2.4: a record without the line feed at its end may have been truncated.
            Err(_) if records.peek().is_none() && connections > 0 && !record.ends_with('\n') => {
                is_cut = true;
                break;
            }
            Err(error) => return Err(format!("not a trace: {error}")),
        };
        if record.get("file_schema").is_some() {
            moments.clear();
            connections += 1;
        }
        if record["name"] == "recovery:metrics_updated"
            && let Some(time) = record["time"].as_f64()
        {
            let values = MEASURED.map(|(key, _, unit)| record["data"][key].as_f64().map(|value| value * unit));
            moments.push((time * 1e-3, values));
        }
    }
    Ok(Read { trace: Trace { name, moments }, earlier: connections.saturating_sub(1), is_cut })
}

fn table(traces: &[Trace]) -> String {
    let mut text = format!("trace,seconds,{}\n", MEASURED.map(|(key, ..)| key).join(","));
    for trace in traces {
        for (time, values) in &trace.moments {
            // In the trace's own units.
            let own = MEASURED.iter().zip(values).map(|((_, _, unit), value)| value.map(|value| value / unit));
            let cells: Vec<String> = own.map(|value| value.map_or(String::new(), |value| value.to_string())).collect();
            text += &format!("{},{time},{}\n", trace.name, cells.join(","));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_connection_of_a_trace_is_read() {
        let metrics = |time: u32, window: u32| {
            format!(
                "\u{1e}{{\"time\":{time},\"name\":\"recovery:metrics_updated\",\"data\":{{\"congestion_window\":{window},\"loss\":0.05}}}}\n"
            )
        };
        let text = format!(
            "\u{1e}{{\"file_schema\":\"x\"}}\n{}\u{1e}{{\"file_schema\":\"x\"}}\n{}{}",
            metrics(1, 1),
            metrics(1500, 20_000),
            "\u{1e}{\"time\":2,\"name\":\"downpour:flow_sent\",\"data\":{}}\n"
        );
        let Read { trace, earlier, is_cut } = parse("t".into(), &text).expect("a trace");
        assert_eq!((earlier, is_cut), (1, false));
        assert_eq!(trace.moments.len(), 1);
        let (time, values) = trace.moments[0];
        assert_eq!((time, values[0], values[1], values[2]), (1.5, Some(20.0), None, Some(5.0)));
        assert_eq!(table(&[trace]).lines().nth(1), Some("t,1.5,20000,,0.05,,,,"));
        assert!(parse("t".into(), "not json").is_err());
        // Complete records are read, wherever the last one ends.
        let end = text.rfind('\u{1e}').expect("a record");
        for cut in end + 1..text.len() {
            let read = parse("t".into(), &text[..cut]).expect("what is whole");
            assert_eq!((read.trace.moments.len(), read.is_cut), (1, cut > end + 1 && cut + 1 < text.len()), "{cut}");
        }
    }
}
