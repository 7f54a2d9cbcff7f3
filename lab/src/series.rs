//! `series`: the course of a connection, from a trace of downpour's --qlog.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::exit::{Code, Failure};
use crate::output::{say, warn};
use crate::picture::{Panel, panels, png};
use crate::trace::{Course, Limits, MEASURED, Trace};

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

/// No limit: every moment of the last connection, which is drawn.
const ALL: Limits = Limits { buckets: usize::MAX, connections: 1 };

/// The course of a connection, and its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NamedCourse<'a> {
    pub(crate) name: &'a str,
    pub(crate) course: &'a Course<{ MEASURED.len() }>,
}

/// Draws the traces.
///
/// # Errors
/// A file that cannot be read or written, or is not a trace.
pub fn run(args: &SeriesArgs) -> Result<u8, Failure> {
    let kind = args.out.extension().and_then(|kind| kind.to_str()).unwrap_or_default().to_ascii_lowercase();
    let is_png = match kind.as_str() {
        "png" => true,
        "svg" => false,
        _ => {
            let message = format_args!("{}: unknown format: write a name with .svg or .png", args.out.display());
            return Err(Failure::new(Code::Usage, message));
        }
    };
    let traces = args.traces.iter().map(|path| read(path)).collect::<Result<Vec<_>, Failure>>()?;
    let last = traces.iter().filter_map(|(name, trace)| Some((name, trace.connections().back()?)));
    let courses: Vec<_> = last.map(|(name, connection)| NamedCourse { name, course: connection.course() }).collect();
    let drawn = drawn(&courses, None);
    let picture = picture(&courses, &drawn, None);
    let bytes =
        if is_png { png(&picture).map_err(|error| Failure::new(Code::Other, error))? } else { picture.into_bytes() };
    write(&args.out, &bytes)?;
    let panels = units::count(drawn.len(), "panel", "panels");
    say(&format!("{}: {panels} of {}\n", args.out.display(), units::count(traces.len(), "trace", "traces")));
    if let Some(csv) = &args.csv {
        let (text, moments) = table(&courses, None);
        write(csv, text.as_bytes())?;
        say(&format!("{}: {}\n", csv.display(), units::count(moments, "point in time", "points in time")));
    }
    Ok(Code::Done as u8)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error| Failure::new(Code::Other, format_args!("cannot write {}: {error}", path.display()));
    fs::write(path, bytes).map_err(failed)
}

/// Returns the name of a file in pictures and tables.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

fn read(path: &Path) -> Result<(String, Trace), Failure> {
    let refused = |why: &dyn Display| Failure::new(Code::Usage, format_args!("{}: {why}", path.display()));
    let mut file = File::open(path).map_err(|error| refused(&error))?;
    let (mut trace, mut chunk) = (Trace::new(ALL), vec![0; 1 << 16]);
    loop {
        match file.read(&mut chunk).map_err(|error| refused(&error))? {
            0 => break,
            length => trace.push(&chunk[..length]),
        }
    }
    trace.settle();
    let warn = |notice: &dyn Display| warn(&format!("{}: {notice}", path.display()));
    let Some(last) = trace.connections().back() else {
        let (_, why) = trace.invalid_records().unwrap_or((0, "it has no records"));
        return Err(refused(&format_args!("not a trace: {why}")));
    };
    if trace.earlier() > 0 {
        let connections = units::count(trace.earlier(), "connection", "connections");
        warn(&format_args!("only the last connection is drawn; {connections} skipped"));
    }
    if let Some((count, why)) = trace.invalid_records() {
        let records = units::count(count, "record", "records");
        warn(&format_args!("skipped {records}: {why}"));
    }
    if trace.is_cut() {
        warn(&"skipped the incomplete last record");
    }
    if last.course().buckets().is_empty() {
        return Err(refused(&"not a trace of a sender: create one with `downpour send --qlog FILE`"));
    }
    Ok((name_of(path), trace))
}

/// Returns the panels with content, of all times or of a range of seconds.
pub(crate) fn drawn(courses: &[NamedCourse<'_>], range: Option<[f64; 2]>) -> Vec<Panel> {
    let points = |named: &NamedCourse<'_>, index: usize| {
        let mut points = Vec::new();
        for bucket in named.course.within(range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY])) {
            let Some(values) = bucket.values[index].mean_low_high() else { continue };
            let [mean, low, high] = values.map(|value| value * MEASURED[index].unit);
            match bucket.moments {
                1 => points.push((bucket.from, mean)),
                _ => points.extend([(bucket.from, low), (bucket.to, high)]),
            }
        }
        points
    };
    let panel = |index: usize| Panel {
        title: MEASURED[index].title.to_owned(),
        courses: courses.iter().map(|named| points(named, index)).collect(),
    };
    let panels = (0..MEASURED.len()).map(panel);
    panels.filter(|panel| panel.courses.iter().any(|course| !course.is_empty())).collect()
}

/// Returns the picture as SVG.
pub(crate) fn picture(courses: &[NamedCourse<'_>], drawn: &[Panel], range: Option<[f64; 2]>) -> String {
    let names: Vec<String> = courses.iter().map(|named| named.name.to_owned()).collect();
    panels("Course of the connection", &names, drawn, range)
}

/// Returns the numbers as CSV, in the traces' own units, and the number of points in time. If a course no longer has
/// every moment, a point is the mean of several.
pub(crate) fn table(courses: &[NamedCourse<'_>], range: Option<[f64; 2]>) -> (String, usize) {
    let mut text = format!("trace,seconds,{}\n", MEASURED.map(|measured| measured.key).join(","));
    let mut moments = 0;
    for named in courses {
        for bucket in named.course.within(range.unwrap_or([f64::NEG_INFINITY, f64::INFINITY])) {
            let cell = |value: Option<[f64; 3]>| value.map_or(String::new(), |[mean, ..]| mean.to_string());
            let cells = bucket.values.map(|value| cell(value.mean_low_high()));
            text += &format!("{},{},{}\n", named.name, bucket.time(), cells.join(","));
            moments += 1;
        }
    }
    (text, moments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(moments: impl IntoIterator<Item = (f64, f64)>, most: usize) -> Course<{ MEASURED.len() }> {
        let mut course = Course::new(most);
        for (time, window) in moments {
            let mut values = [None; MEASURED.len()];
            (values[2], values[4]) = (Some(window), Some(0.05));
            course.push(time, values);
        }
        course
    }

    #[test]
    fn series_table_and_picture_have_their_units() {
        let course = course([(0.5, 1000.0), (1.5, 20_000.0)], 9);
        let named = [NamedCourse { name: "t", course: &course }];
        let (text, moments) = table(&named, None);
        assert_eq!((text.lines().nth(2), moments), (Some("t,1.5,,,20000,,0.05,,,,,"), 2));
        assert_eq!(table(&named, Some([0.0, 1.0])).1, 1);
        let panels = drawn(&named, None);
        assert_eq!(panels.len(), 2);
        assert_eq!(panels[0].courses, [[(0.5, 1.0), (1.5, 20.0)]]);
        assert_eq!(panels[1].courses, [[(0.5, 5.0), (1.5, 5.0)]]);
    }

    /// A long course has the extremes of each interval in the picture and its mean in the table.
    #[test]
    fn long_course_has_extremes_and_means() {
        let course = course((0..4).map(|at| (f64::from(at), f64::from(at) * 1000.0)), 2);
        let named = [NamedCourse { name: "t", course: &course }];
        assert_eq!(drawn(&named, None)[0].courses, [[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]]);
        assert_eq!(table(&named, None).0.lines().nth(1), Some("t,0.5,,,500,,0.05,,,,,"));
    }

    #[test]
    fn series_refuses_other_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.qlog");
        for (text, expected) in [
            ("not json", "not a trace: it has no records"),
            ("\u{1e}not json\n\u{1e}", "not a trace: expected ident at line 1 column 2"),
            ("", "not a trace: it has no records"),
            ("\u{1e}{\"file_schema\":\"x\"}\n", "not a trace of a sender: create one with `downpour send --qlog FILE`"),
        ] {
            fs::write(&path, text).expect("written");
            let refused = read(&path).expect_err("no trace");
            assert_eq!(refused, Failure::new(Code::Usage, format_args!("{}: {expected}", path.display())));
        }
    }
}
