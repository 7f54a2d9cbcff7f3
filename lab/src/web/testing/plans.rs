//! Plans as text: parsed with the readers of `run`, and extended by repeats.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use netsim::{Duplex, TraceFile};
use toml::{Table, Value};

use crate::peers::{self, Presence, Programs};
use crate::plan::is_name;
use crate::tables::Measured;
use crate::web::experiment_index::ExperimentIndex;
use crate::web::refusal::Refusal;

/// Bounds on plans from a browser: bytes, and runs.
pub(super) const LONGEST: usize = 256 << 10;
const MOST_RUNS: u64 = 50_000;
/// Bounds on names, which become names of directories.
const LONGEST_NAME: usize = 100;
const DEEPEST_NAME: usize = 4;

/// The name of an unsaved plan in errors.
const UNSAVED: &str = "plan.toml";

/// Reads a plan from its text, with topologies from `beside` and traces from the directories of the shelf.
///
/// # Errors
/// The error of the plan readers, in one line; a plan that is too large, or needs another file.
pub(super) fn read(text: &str, beside: &Path, experiments: &ExperimentIndex) -> Result<Measured, Refusal> {
    if text.len() > LONGEST {
        return Err(Refusal::bad(format_args!("plan too long: at most {} KiB", LONGEST >> 10)));
    }
    if text.parse::<Table>().is_ok_and(|table| runs(&table) > MOST_RUNS) {
        return Err(Refusal::bad(format_args!("more than {MOST_RUNS} runs: use fewer values, systems or repeats")));
    }
    let file = beside.join(UNSAVED);
    let known: Vec<String> = peers::all().map(|peer| peer.name().to_owned()).collect();
    let measured = Measured::parse(&file, text, Some(&known));
    let measured =
        measured.map_err(|error| Refusal::bad(error.to_string().replacen(&file.display().to_string(), UNSAVED, 1)))?;
    let (_, name) = measured.title_and_name();
    if !is_name(name) || name.len() > LONGEST_NAME || name.split('/').count() > DEEPEST_NAME {
        return Err(Refusal::bad(format_args!(
            "{name:?} is too long for a directory name: use at most {LONGEST_NAME} letters and {DEEPEST_NAME} parts"
        )));
    }
    // The run would read it, and its error would show the text.
    if let Some(trace) = traces(&measured).into_iter().find(|trace| !experiments.has(Path::new(trace))) {
        return Err(Refusal::bad(format_args!("trace {trace} must be a file in {}", experiments.places())));
    }
    Ok(measured)
}

/// Returns the names of the trace files of a plan's runs. Simulated runs have none, and the topology of a plan is a
/// file that exists already.
fn traces(measured: &Measured) -> BTreeSet<String> {
    let of = |link: &Duplex| {
        let name = |trace: &Option<TraceFile>| trace.as_ref().map(|trace| trace.name().to_owned());
        [name(&link.forward.trace), name(&link.backward.trace)]
    };
    let links: Vec<[Option<String>; 2]> = match measured {
        Measured::Links(plan, _) => {
            plan.sweeps.iter().flat_map(|sweep| &sweep.points).map(|point| of(&point.link.duplex)).collect()
        }
        Measured::Simulated(plan, _) => {
            let scenarios = plan.sweeps.iter().flat_map(|sweep| &sweep.points).flat_map(|point| &point.scenarios);
            let emulated = scenarios.filter_map(|scenario| scenario.programs(plan.cap).ok());
            emulated.flat_map(|case| case.topology.links().iter().map(|it| of(&it.link)).collect::<Vec<_>>()).collect()
        }
        Measured::Codes(..) => Vec::new(),
    };
    links.into_iter().flatten().flatten().collect()
}

/// Returns an upper bound of a plan's runs, before its reader lists them all.
fn runs(plan: &Table) -> u64 {
    let length = |value: Option<&Value>| value.and_then(Value::as_array).map_or(1, |all| all.len().max(1) as u64);
    let number =
        |table: &Table, key: &str| table.get(key).and_then(Value::as_integer).map_or(1, |n| n.max(1).cast_unsigned());
    let systems = length(plan.get("peers")).max(length(plan.get("series"))).max(length(plan.get("codes")));
    let ranges = plan.get("ranges").and_then(Value::as_table);
    let combinations =
        ranges.map_or(0, |ranges| ranges.values().fold(1, |all: u64, of| all.saturating_mul(length(Some(of)))));
    let sweeps = plan.get("sweep").and_then(Value::as_array).map_or(&[][..], |all| all);
    let own = |sweep: &Value| {
        let Some(sweep) = sweep.as_table() else { return 1 };
        let peers = length(sweep.get("peers")).max(length(sweep.get("codes")));
        length(sweep.get("values")).saturating_mul(peers).saturating_mul(number(sweep, "repeats"))
    };
    let points = sweeps.iter().map(own).fold(combinations, u64::saturating_add);
    let repeats = number(plan, "repeats").saturating_mul(length(plan.get("seeds")));
    points.max(1).saturating_mul(systems).saturating_mul(repeats)
}

/// Returns the topology files of a plan, which are stored with its results: the path of each, and its stored name.
pub(super) fn topologies(measured: &Measured, beside: &Path) -> Vec<(PathBuf, PathBuf)> {
    let files = match measured {
        Measured::Links(plan, _) => plan.topology.iter().map(|topology| topology.file.clone()).collect(),
        Measured::Simulated(plan, _) => plan.topology_files(),
        Measured::Codes(..) => Vec::new(),
    };
    let place = |file: PathBuf| Some((file.clone(), file.strip_prefix(beside).ok()?.to_owned()));
    files.into_iter().filter_map(place).collect()
}

/// Returns the missing requirements of a plan's peers, one line for each.
pub(super) fn lacking(measured: &Measured, programs: &Programs) -> Vec<String> {
    let named: Vec<String> = match measured {
        Measured::Links(plan, _) => plan.sweeps.iter().flat_map(|sweep| sweep.peers.clone()).collect(),
        Measured::Simulated(plan, _) => {
            let points = plan.sweeps.iter().flat_map(|sweep| &sweep.points);
            let flows = points.flat_map(|point| &point.scenarios).flat_map(|scenario| &scenario.flows);
            flows.filter_map(|flow| flow.peer.clone()).collect()
        }
        Measured::Codes(..) => Vec::new(),
    };
    let named: BTreeSet<String> = named.into_iter().collect();
    let lacks = |name: String| match peers::named(&name).ok()?.presence(programs) {
        Presence::Present => None,
        Presence::Absent { missing, install } => Some(format!("{name} needs {missing}: {install}")),
    };
    named.into_iter().filter_map(lacks).collect()
}

/// Returns the text of a plan with more repeats: more seeds if it lists them, more runs of codes. Comments and the
/// order of lines are unchanged.
///
/// # Errors
/// A list of seeds over several lines, or no such key at its usual position.
pub(super) fn with_more_repeats(text: &str, more: u32) -> Result<String, Refusal> {
    let failed = || Refusal::bad("cannot add repeats to this plan: edit repeats or seeds in its text");
    let table: Table = text.parse().map_err(Refusal::bad)?;
    let key = if table.contains_key("codes") { "runs" } else { "repeats" };
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if let Some(seeds) = table.get("seeds") {
        let seeds: Vec<i64> = seeds.as_array().ok_or_else(failed)?.iter().filter_map(Value::as_integer).collect();
        let last = seeds.iter().copied().max().unwrap_or(0);
        let added = (1..=i64::from(more)).map(|step| last.saturating_add(step));
        let all: Vec<String> = seeds.iter().copied().chain(added).map(|seed| seed.to_string()).collect();
        let line = lines.iter_mut().find(|line| is_of(line, "seeds") && line.contains(']')).ok_or_else(failed)?;
        *line = format!("seeds = [{}]", all.join(", "));
    } else {
        let is_inherited = table.get(key).is_none() && repeats(&table, key).1;
        for line in lines.iter_mut().filter(|line| is_of(line, key)) {
            let (_, rest) = line.split_once('=').ok_or_else(failed)?;
            let (number, comment) =
                rest.split_once('#').map_or((rest, String::new()), |(number, words)| (number, format!("  #{words}")));
            let number: u32 = number.trim().replace('_', "").parse().map_err(|_| failed())?;
            *line = format!("{key} = {}{comment}", number.saturating_add(more));
        }
        if is_inherited {
            // Above the first table; the default is 1.
            let place = lines.iter().position(|line| line.trim_start().starts_with('[')).unwrap_or(lines.len());
            lines.insert(place, format!("{key} = {}", 1 + more));
        }
    }
    let text = lines.join("\n") + "\n";
    // The changed line may have been part of a text of several lines.
    let changed: Table = text.parse().map_err(|_| failed())?;
    let rest = |table: &Table| {
        let mut table = table.clone();
        table.retain(|name, _| name != key && name != "seeds" && name != "sweep");
        table
    };
    let of_each = |table: &Table| match table.get("seeds").and_then(Value::as_array) {
        Some(seeds) => vec![seeds.len() as i64],
        None => repeats(table, key).0,
    };
    let expected: Vec<i64> = of_each(&table).into_iter().map(|number| number.saturating_add(more.into())).collect();
    if rest(&changed) == rest(&table) && of_each(&changed) == expected { Ok(text) } else { Err(failed()) }
}

/// Returns the repeats of each sweep of a plan, and whether any sweep uses those of the plan.
fn repeats(plan: &Table, key: &str) -> (Vec<i64>, bool) {
    let number = |table: &Table| table.get(key).and_then(Value::as_integer);
    let sweeps = plan.get("sweep").and_then(Value::as_array).map_or(&[][..], |all| all);
    let mut own: Vec<Option<i64>> = sweeps.iter().map(|sweep| sweep.as_table().and_then(number)).collect();
    if plan.contains_key("ranges") {
        own.push(None);
    }
    let inherited = number(plan).unwrap_or(1);
    (own.iter().map(|own| own.unwrap_or(inherited)).collect(), own.contains(&None))
}

/// Returns whether a line sets this key.
fn is_of(line: &str, key: &str) -> bool {
    line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::web) const PLAN: &str = r#"name = "my/loss"
title = "Loss"
link = "rate=10M,delay=5ms,queue=1bdp"
repeats = 2  # each
cap = "60s"

[[flow]]
name = "file"
profile = "auto"
size = "100KB"

[[series]]
name = "auto"
[[series]]
name = "arq"
set = { "file.profile" = "arq" }

[[sweep]]
name = "loss"
vary = "link.loss"
values = ["0%", "2%"]
"#;

    /// Reads a plan without other files.
    pub(in crate::web) fn alone(text: &str) -> Result<Measured, Refusal> {
        read(text, Path::new(""), &ExperimentIndex::of(None, PathBuf::from("lab-results")))
    }

    fn said(text: &str) -> String {
        alone(text).expect_err("refused").to_string()
    }

    #[test]
    fn trace_must_be_in_a_listed_directory() {
        let home = tempfile::tempdir().expect("a directory");
        let at = |name: &str| home.path().join(name).display().to_string();
        for (name, text) in [("results/up.trace", "1\n"), ("secret", "password\n")] {
            crate::results::write(&home.path().join(name), text.as_bytes()).expect("written");
        }
        std::os::unix::fs::symlink(at("secret"), at("results/link")).expect("a link");
        let experiments = ExperimentIndex::of(None, home.path().join("results"));
        let over_links = |link: &str, value: &str| {
            format!(
                "name = \"x\"\ntitle = \"x\"\nlink = \"{link}\"\nsize = \"100KB\"\ncap = \"60s\"\npeers = [\"tcp-cubic\"]\n\
                 [[sweep]]\nname = \"x\"\nvary = \"link\"\nvalues = [\"{value}\"]\n"
            )
        };
        let programs = |link: &str, access: &str, vary: &str, value: &str| {
            format!(
                "name = \"x\"\ntitle = \"x\"\nlink = \"{link}\"\naccess = \"{access}\"\ncap = \"60s\"\n\
                 [[flow]]\nname = \"file\"\npeer = \"tcp-cubic\"\nsize = \"100KB\"\n\
                 [[sweep]]\nname = \"x\"\nvary = \"{vary}\"\nvalues = [\"{value}\"]\n"
            )
        };
        let plans = |trace: &str| {
            let link = format!("trace={trace}");
            [
                over_links(&link, "delay=5ms"),
                over_links("delay=5ms", &format!("loss=1% / {link}")),
                programs(&link, "perfect", "link.delay", "5ms"),
                programs("rate=10M", &link, "link.delay", "5ms"),
                programs("delay=5ms", "perfect", "link.trace", trace),
                programs("delay=5ms", "perfect", "file.receiver", &link),
            ]
        };
        for text in plans(&at("results/up.trace")) {
            read(&text, Path::new(""), &experiments).unwrap_or_else(|refusal| panic!("{refusal}: {text}"));
        }
        for trace in
            ["/etc/passwd", "/etc/no", &at("secret"), &at("results/../secret"), &at("results/link"), &at("results")]
        {
            for text in plans(trace) {
                let said = read(&text, Path::new(""), &experiments).expect_err(&text).to_string();
                assert_eq!(said, format!("trace {trace} must be a file in {}", at("results")));
            }
        }
    }

    #[test]
    fn plans_read_reports_reader_errors() {
        let read = alone(PLAN).expect("it makes sense");
        let outlook = read.outlook(std::num::NonZeroUsize::MIN);
        assert_eq!((outlook.settled, outlook.total, read.needs_quiet()), (0, 2 * 2 * 2, false));
        assert!(
            said(&PLAN.replace("2%", "2 apples")).starts_with("plan.toml:18: "),
            "{}",
            said(&PLAN.replace("2%", "2 apples"))
        );
        assert!(said("nonsense").starts_with("plan.toml:1: "), "{}", said("nonsense"));
        assert!(said(&PLAN.replace("my/loss", "../../etc")).contains("invalid name"));
        assert!(said(&PLAN.replace("my/loss", "a/b/c/d/e")).contains("too long for a directory name"));
    }

    #[test]
    fn plans_read_refuses_large_plans_first() {
        assert!(said(&"#".repeat(LONGEST + 1)).contains("plan too long"));
        for (from, to) in [
            ("repeats = 2", "repeats = 4294967295"),
            ("repeats = 2", "seeds = []\nrepeats = 9223372036854775807"),
            ("[\"0%\", \"2%\"]", &format!("[{}]", "\"0%\",".repeat(20_000))),
        ] {
            assert!(said(&PLAN.replace(from, to)).contains("more than 50000 runs"), "{to:.40}");
        }
    }

    #[test]
    fn with_more_repeats_changes_one_line() {
        let more = |text: &str| with_more_repeats(text, 3).map_err(|refusal| refusal.to_string());
        assert_eq!(more(PLAN), Ok(PLAN.replace("repeats = 2  # each", "repeats = 5  # each")));
        let with_seeds = PLAN.replace("repeats = 2  # each", "seeds = [3, 7]");
        assert_eq!(more(&with_seeds), Ok(PLAN.replace("repeats = 2  # each", "seeds = [3, 7, 8, 9, 10]")));
        let without = PLAN.replace("repeats = 2  # each\n", "");
        let added = more(&without).expect("it is added");
        assert!(added.contains("cap = \"60s\"\n\nrepeats = 4\n[[flow]]"), "{added}");
        assert!(alone(&added).is_ok_and(|plan| plan.outlook(std::num::NonZeroUsize::MIN).total == 16));
        // A sweep with repeats of its own, and one with the default of the plan.
        let second = "[[sweep]]\nname = \"rate\"\nvary = \"link.rate\"\nvalues = [\"5M\"]\n";
        let two = format!("{without}{second}repeats = 2\n");
        let added = two.replace("repeats = 2", "repeats = 5").replace("\n[[flow]]", "\nrepeats = 4\n[[flow]]");
        assert_eq!(more(&two), Ok(added));
        let none = format!("name = \"x\"\n{second}repeats = 2\n");
        assert_eq!(more(&none), Ok(none.replace("= 2", "= 5")), "no sweep uses those of the plan");
        assert!(more("sweep = [{ repeats = 2 }, { name = \"b\" }]\n").is_err(), "no line has only those");
        assert!(more(&with_seeds.replace("[3, 7]", "[3,\n 7]")).is_err());
        assert!(more("title = \"\"\"\nrepeats = 1\n\"\"\"\n").is_err(), "part of a text");
    }
}
