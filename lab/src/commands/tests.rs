use std::collections::HashSet;
use std::fs;
use std::num::NonZeroUsize;

use super::*;
use crate::codes::CodeStore;
use crate::exit::Code;
use crate::plan::{LinkCase, LinkPlan};
use crate::results::tests::record;
use crate::results::{Ending, PLAN, RECORDS, RunOutcome, Store, write};
use crate::runner::{Account, Agenda, Measure, MeasureError, RunOptions, StopFlag};
use crate::simulated::{SimCase, SimRecord, SimStore};

const PLAN_TEXT: &str = r#"
name = "paper/fig1"
title = "Time & loss"
link = "rate=10M,delay=5ms"
size = "1MB"
peers = ["a", "b"]
repeats = 2
cap = "60s"
[[claim]]
text = "b is faster than a."
section = "3.1"
[[sweep]]
name = "loss"
vary = "loss"
values = ["0%", "10%"]
[[published]]
label = "a"
section = "figure 1"
points = [{ x = "10%", y = 3.0 }]
"#;

/// `a` takes 2 s, and does not finish at 10 %; `b` takes 1 s and 1.5 s.
struct Fixed;

impl Measure for Fixed {
    fn peers(&self) -> Vec<String> {
        vec!["a".into(), "b".into()]
    }

    fn measure(&self, case: &LinkCase, _stop: &StopFlag) -> Result<RunOutcome, MeasureError> {
        let mut outcome = record(0.0).outcome;
        outcome.ending = match case.peer.as_str() {
            "a" if case.link.contains("loss=10%") => Ending::NotFinished,
            "a" => Ending::Finished { seconds: 2.0 },
            _ => Ending::Finished { seconds: 1.0 + 0.5 * f64::from(case.repeat) },
        };
        Ok(outcome)
    }

    fn measure_flows(&self, case: &SimCase, attempt: u32, _stop: &StopFlag) -> Result<SimRecord, MeasureError> {
        Err(MeasureError::Run(format!("{} unexpected measurement, {attempt}", case.label())))
    }
}

fn how(out: &Path) -> RunOptions {
    RunOptions {
        dry_run: false,
        jobs: NonZeroUsize::MIN,
        out: Some(out.to_owned()),
        only: None,
        stale: false,
        quick: false,
    }
}

/// Creates a directory with `experiments/paper/fig1.toml` in it.
fn experiments() -> tempfile::TempDir {
    experiment("paper/fig1", PLAN_TEXT)
}

/// Creates a directory with the plan of one experiment in it.
fn experiment(name: &str, plan: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    write(&directory.path().join(format!("experiments/{name}.toml")), plan.as_bytes()).expect("written");
    directory
}

/// Returns the arguments that reproduce an experiment of such a directory.
fn reproducing(name: &str, directory: &Path, how: RunOptions) -> ReproduceArgs {
    ReproduceArgs { name: name.into(), experiments: Some(directory.join("experiments")), how }
}

/// Returns the names of the files in a directory.
fn files(directory: &Path) -> HashSet<String> {
    let entries = fs::read_dir(directory).expect("results");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name")).collect()
}

#[test]
fn reproduce_measures_draws_and_reports() {
    let directory = experiments();
    let out = directory.path().join("out");
    let args = reproducing("paper/fig1", directory.path(), how(&out));
    assert_eq!(reproduce(&args, &Fixed, &StopFlag::default()), Ok(0));
    let expected = [RECORDS, PLAN, "results.csv", "loss.svg", "loss.png", "report.html"];
    assert_eq!(files(&out), expected.map(str::to_owned).into());
    assert_eq!(fs::read_to_string(out.join(PLAN)).expect("a plan"), PLAN_TEXT);
    assert_eq!(fs::read_to_string(out.join("results.csv")).expect("a table").lines().count(), 1 + 8);

    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    for part in [
        "<title>Time &amp; loss</title>",
        "b is faster than a. <small>(3.1)</small>",
        "<span>&ge; 60.0 s</span><small>&ge; 60.0 s &ndash; &ge; 60.0 s</small><small>2 not finished</small>",
        "<span class=\"best\">1.25 s</span><small>1.00 s &ndash; 1.50 s</small>",
        "<td>8 stored, 0 of them invalid and not counted above</td>",
        "<td>6.18.0</td>".replace("6.18.0", rustix::system::uname().release().to_str().expect("a release")).as_str(),
        "Not judged yet",
        "class=\"hollow\"",
    ] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
    let foreign = ["src=", "href=", "<script", "url(", "@import"];
    assert!(!foreign.iter().any(|part| page.contains(part)), "the page is self-contained");

    // The verdict is shown without another measurement.
    let verdict = r#"
        text = "It holds.\n\nAlmost <always>: {first loss 0%|.1} s, {first loss 10%} s."
        [names]
        first = "a"
        [[verdict]]
        item = "paper 1"
        claim = "b is faster."
        system = "b"
        measured = "{first loss 0% / b loss 0%} times as fast"
        holds = ["b loss * < first loss *"]
        equals = ["b loss 0% = 1.2 +- 0.1"]
        [[verdict]]
        claim = "b is nine times as fast."
        system = "b"
        measured = "{max b loss 0%} s at most"
        holds = ["b loss * < first loss *"]
        equals = ["first loss 0% / b loss 0% = 9"]
        [[verdict]]
        claim = "Losses take time."
        system = "b"
        measured = "{count(b loss * > b loss 0%)} of {points(loss)}"
        because = "it is fixed"
        holds = ["rises(b loss *)"]
        [[verdict]]
        claim = "a takes 70 s."
        system = "a"
        measured = "{a loss 10%} s"
        equals = ["a loss 10% = 70"]
    "#;
    write(&out.join("verdict.toml"), verdict.as_bytes()).expect("written");
    let before = fs::read(out.join(RECORDS)).expect("records");
    assert_eq!(reproduce(&args, &Fixed, &StopFlag::default()), Ok(0));
    assert_eq!(fs::read(out.join(RECORDS)).expect("records"), before);
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    let number = |query: &str, shown: &str| format!("<data value=\"{query}\" title=\"{query}\">{shown}</data>");
    let almost = [number("first loss 0%", "2.0"), number("first loss 10%", "over 60")];
    let almost = format!("<p>It holds.</p>\n<p>Almost &lt;always&gt;: {} s, {} s.</p>", almost[0], almost[1]);
    assert!(page.contains(&almost), "{page}");
    let text = fs::read_to_string(out.join("verdict.txt")).expect("a text");
    for part in [
        "Claim:    b is faster.\nMeasured: 1.6 times as fast (b)\nVerdict:  reproduced\n\n",
        "Measured: 1.5 s at most (b)\nVerdict:  in kind\n\n",
        "Measured: 0 of 2 (b)\nVerdict:  not reproduced\nBecause:  it is fixed\n\n",
        "Measured: over 60 s (a)\nVerdict:  not measured: a loss 10%\n\n",
        "It holds.\n\nAlmost <always>: 2.0 s, over 60 s.\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let of = |query: &str| records(&RecordsArgs { from: out.clone(), query: query.to_owned() });
    assert_eq!(of("first loss 0% / b loss 0%|.1"), Ok(0));
    assert_eq!(of("c loss 0%").map_err(|failure| failure.message), Err("unknown name 'c': one of 'a', 'b'".to_owned()));
}

#[test]
fn dry_run_lists_and_writes_nothing() {
    let directory = experiments();
    let out = directory.path().join("out");
    let plan = directory.path().join("experiments/paper/fig1.toml");
    let args = RunArgs { plan: plan.clone(), how: RunOptions { dry_run: true, ..how(&out) } };
    assert_eq!(run(&args, &Fixed, &StopFlag::default()), Ok(0));
    assert!(!out.exists());
    let plan = LinkPlan::read(&plan, &Fixed.peers()).expect("a plan");
    let list = run::list(&plan, &Agenda::new(&plan, &[], Some("/loss b "), false), NonZeroUsize::MIN);
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 5, "{list}");
    assert!(lines[..4].iter().all(|line| line.starts_with("paper/fig1/loss b 1000000 B over rate=10M,delay=5ms,")));
    assert_eq!(
        lines[4],
        "4 cases to measure of 4, 0 settled; 1 warm-up; at least 4.31 s, at most 5 min 00 s (every run at its cap)"
    );
    let none = RunArgs { how: RunOptions { only: Some("absent".into()), ..args.how.clone() }, ..args };
    let failure = run(&none, &Fixed, &StopFlag::default()).expect_err("no case");
    assert_eq!(
        (failure.code, failure.message.contains("no case of paper/fig1 contains \"absent\"")),
        (Code::Usage as u8, true)
    );
}

#[test]
fn stopped_run_keeps_exit_code_and_results() {
    let directory = experiments();
    let out = directory.path().join("out");
    let args = RunArgs { plan: directory.path().join("experiments/paper/fig1.toml"), how: how(&out) };
    let stop = StopFlag::default();
    stop.set();
    assert_eq!(run(&args, &Fixed, &stop), Ok(Code::Interrupted as u8));
    assert_eq!(Store::read(&out).expect("no results yet").len(), 0);
    let failure = report(&ReportArgs { from: vec![out], out: None }).expect_err("nothing to draw");
    assert_eq!(
        (failure.code, failure.message.contains("measure them with downpour-lab run")),
        (Code::Usage as u8, true)
    );
}

#[test]
fn reproduce_searches_parent_directories() {
    let directory = experiments();
    let deep = directory.path().join("a/b");
    fs::create_dir_all(&deep).expect("made");
    write(&directory.path().join("experiments/own/plan.toml"), b"").expect("written");
    let found = |name| reproduce::find(name, None, &deep);
    assert_eq!(found("paper/fig1"), Ok(directory.path().join("experiments/paper/fig1.toml")));
    assert_eq!(found("own"), Ok(directory.path().join("experiments/own/plan.toml")));
    let failure = found("paper/fig9").expect_err("none");
    assert!(
        failure.message.ends_with("one of own, paper/fig1") && failure.code == Code::Usage as u8,
        "{}",
        failure.message
    );
    let failure = reproduce::find("x", None, Path::new("/proc/self")).expect_err("no directory");
    assert!(failure.message.contains("--experiments"), "{}", failure.message);
}

#[test]
fn summary_is_one_line_with_exit_code() {
    let unsettled = vec![("case".to_owned(), "late".to_owned())];
    let absent = [("norm".to_owned(), "apt install libnorm1".to_owned())];
    let mut account = Account { settled: 3, invalid: 3, unsettled, ..Account::default() };
    assert_eq!(run::code(&account), Code::Invalid as u8);
    assert_eq!(
        run::summary(&account, 2, 6),
        "5 of 6 cases settled, 2 of them before; 3 runs invalid; 1 case without a valid run: use a quieter machine, or a slower link"
    );
    account.absent = absent.into();
    assert_eq!(run::code(&account), Code::Lacking as u8);
    account.interrupted = true;
    assert_eq!(run::code(&account), Code::Interrupted as u8);
    assert!(
        run::summary(&account, 0, 6)
            .ends_with("; norm is not installed: apt install libnorm1; stopped: run the same command to resume")
    );
}

/// A plan that times codes works with the same commands and uses no links.
#[test]
fn plan_of_codes_is_timed_and_reported() {
    let text = r#"
name = "paper/fig3"
title = "Time of coding"
codes = ["raptorq", "reed-solomon"]
size = "20KB"
symbol = "1KB"
runs = 3
cap = "60s"
[[claim]]
text = "It is linear."
section = "3"
[[sweep]]
name = "decode-size"
measure = "decode"
vary = "size"
values = ["1KB", "20KB"]
"#;
    let directory = experiment("paper/fig3", text);
    let plan = directory.path().join("experiments/paper/fig3.toml");
    let out = directory.path().join("out");
    let args = |how| reproducing("paper/fig3", directory.path(), how);
    assert_eq!(reproduce(&args(RunOptions { dry_run: true, ..how(&out) }), &Fixed, &StopFlag::default()), Ok(0));
    assert!(!out.exists());
    let stop = StopFlag::default();
    stop.set();
    assert_eq!(reproduce(&args(how(&out)), &Fixed, &stop), Ok(Code::Interrupted as u8));
    assert_eq!(reproduce(&args(how(&out)), &Fixed, &StopFlag::default()), Ok(0));
    let records = CodeStore::read(&out).expect("records");
    assert_eq!(records.len(), 4);
    assert!(records.iter().all(|record| record.nanoseconds.len() == 3));
    assert!(records[2..].iter().all(|record| record.nanoseconds.iter().all(|&time| time > 0)), "{records:?}");
    let expected = [RECORDS, PLAN, "results.csv", "decode-size.svg", "decode-size.png", "report.html"];
    assert_eq!(files(&out), expected.map(str::to_owned).into());
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("It is linear. <small>(3)</small>") && page.contains("<small>3 runs</small>"), "{page}");
    // A case with a record is not timed again.
    assert_eq!(run(&RunArgs { plan, how: how(&out) }, &Fixed, &StopFlag::default()), Ok(0));
    assert_eq!(CodeStore::read(&out).expect("records"), records);
    let jobs = RunOptions { jobs: NonZeroUsize::new(2).expect("two"), ..how(&out) };
    assert!(reproduce(&args(jobs), &Fixed, &StopFlag::default()).expect_err("refused").message.contains("--jobs"));
}

/// A simulated plan works with the same commands, on any number of processors, and resumes after a stop.
#[test]
fn plan_of_flows_is_simulated_and_reported() {
    let text = r#"
name = "paper/fig6"
title = "Two flows"
link = "rate=10M,delay=5ms,queue-packets=20,loss=1%"
repeats = 2
cap = "60s"
[[claim]]
text = "They are fair."
section = "6"
[[flow]]
name = "near"
profile = "arq"
size = "3MB"
[[flow]]
name = "far"
profile = "arq"
size = "3MB"
[[sweep]]
name = "delay"
vary = "far.receiver.delay"
values = ["0ms", "20ms"]
y = "jain"
[[sweep]]
name = "over-time"
vary = "time"
"#;
    let directory = experiment("paper/fig6", text);
    let simulate = |out: &Path, jobs: usize, only: Option<&str>, stop: &StopFlag| {
        let jobs = NonZeroUsize::new(jobs).expect("one or more");
        let how = RunOptions { jobs, only: only.map(str::to_owned), ..how(out) };
        let code = reproduce(&reproducing("paper/fig6", directory.path(), how), &Fixed, stop);
        let mut records = SimStore::read(out).expect("readable");
        for record in &mut records {
            (record.date, record.took_seconds) = (String::new(), 0.0);
            // The load of the machine changes from run to run.
            record.made.iter_mut().for_each(|made| made.load = 0.0);
        }
        records.sort_by(|a, b| a.id.cmp(&b.id));
        (code, records)
    };
    let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
    let stopped = StopFlag::default();
    stopped.set();
    assert_eq!(simulate(&first, 2, None, &stopped), (Ok(Code::Interrupted as u8), Vec::new()));
    let (code, some) = simulate(&first, 2, Some("20ms"), &StopFlag::default());
    assert_eq!((code, some.len()), (Ok(0), 2));
    let (code, all) = simulate(&first, 2, None, &StopFlag::default());
    // Two values with two seeds, and the base with two.
    assert_eq!((code, all.len()), (Ok(0), 6));
    assert!(some.iter().all(|record| all.contains(record)));
    assert_eq!(simulate(&second, 1, None, &StopFlag::default()), (Ok(0), all.clone()), "the same on one processor");
    let lines = fs::read_to_string(first.join(RECORDS)).expect("records").lines().count();
    assert_eq!(lines, 6, "cases with a record are not run again");
    let pictures = ["delay.svg", "delay.png", "over-time.svg", "over-time.png"];
    let expected: HashSet<String> =
        [RECORDS, PLAN, "results.csv", "report.html"].into_iter().chain(pictures).map(str::to_owned).collect();
    assert_eq!(files(&first), expected);
    let page = fs::read_to_string(first.join("report.html")).expect("a page");
    assert!(page.contains("They are fair. <small>(6)</small>") && page.contains("<small>2 runs</small>"), "{page}");
}
