use std::path::Path;

use super::super::png;
use super::*;
use crate::picture::{Lines, Mark};
use crate::plan::{LinkPlan, Scale};
use crate::results::tests::record;
use crate::results::{Ending, Record};

const PLAN: &str = r#"
name = "e"
title = "10 MB <over> loss"
link = "rate=100M,delay=25ms,queue=256KB"
size = "10MB"
peers = ["tcp-cubic", "tcp-bbr", "hysteria-brutal", "downpour-auto"]
repeats = 3
cap = "60s"
[picture]
y-scale = "log"
[[sweep]]
name = "loss"
vary = "loss"
values = ["0%", "1%", "2%", "5%", "10%"]
[[published]]
label = "TCP"
section = "figure 10(a)"
points = [{ x = "1%", y = 4.0, error = 1.0 }, { x = "5%", y = 30.0 }]
"#;

fn plan() -> LinkPlan {
    let peers = ["tcp-cubic", "tcp-bbr", "hysteria-brutal", "downpour-auto"].map(str::to_owned);
    LinkPlan::parse(Path::new("p.toml"), PLAN, &peers).expect("a plan")
}

/// Times that grow with the loss, faster for the first peers; beyond the cap a run does not finish.
fn records(plan: &LinkPlan) -> Vec<Record> {
    let mut records = Vec::new();
    let sweep = &plan.sweeps[0];
    for point in &sweep.points {
        for (index, peer) in sweep.peers.iter().enumerate() {
            for case in plan.cases_at(sweep, point, peer) {
                let mut made = record(0.0);
                let steep = [12.0, 0.3, 0.05, 0.02][index];
                let seconds = (1.1 + steep * point.x) * (1.0 + 0.2 * f64::from(case.repeat));
                made.outcome.ending = if seconds < 60.0 { Ending::Finished { seconds } } else { Ending::NotFinished };
                (made.id, made.case) = (case.id(), case);
                records.push(made);
            }
        }
    }
    records
}

#[test]
fn everything_is_drawn_once() {
    let plan = plan();
    let chart = Chart::new(&plan, &plan.sweeps[0], &records(&plan));
    let svg = svg(&chart);
    let count = |what: &str| svg.matches(what).count();
    // 4 peers x 5 losses, and one of each in the legend.
    assert_eq!(count("class=\"mark\""), 20 + 4);
    assert_eq!(count("class=\"hollow\""), 2 + 1);
    assert!(svg.contains("10 MB &lt;over&gt; loss") && svg.contains("TCP, published (figure"), "{svg}");
    let bounds = chart.series.iter().flat_map(|series| &series.marks).filter(|mark| mark.is_bound);
    // CUBIC at 5 % takes 61, 73 and 86 s, and longer at 10 %.
    assert_eq!(bounds.map(|mark| (mark.x, mark.y)).collect::<Vec<_>>(), [(5.0, 60.0), (10.0, 60.0)]);
    let bbr = chart.series[1].marks[3];
    assert_eq!((bbr.x, bbr.low, bbr.high), (5.0, 2.6, 2.6 * 1.4));
    assert!((bbr.y - 2.6 * 1.2).abs() < 1e-12);
    let (x, floor) = chart.floor[4];
    assert_eq!(x, 10.0);
    assert!((floor - (0.8 * 1500.0 / 1472.0 / 0.9 + 0.05)).abs() < 1e-12);
    assert_eq!(
        chart.caption,
        [
            "10 MB over rate=100M,delay=25ms,queue=256KB. Median of 3 valid runs at each point, bars from the shortest to the longest of them.",
            "Arrow up: half of the runs or more did not finish within 60.0 s, the value lies beyond."
        ]
    );
}

#[test]
fn the_same_picture_as_png_with_its_text() {
    let plan = plan();
    let drawn = svg(&Chart::new(&plan, &plan.sweeps[0], &records(&plan)));
    let pixels = png(&drawn).expect("a picture");
    assert_eq!(&pixels[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(pixels[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(side(16), 1470);
    // Without text it is another picture, which shows that the built-in font was found.
    let mute = drawn.replace("<text", "<desc").replace("</text", "</desc");
    assert!(pixels.len() > png(&mute).expect("a picture").len() + 10_000);
    if let Ok(folder) = std::env::var("PICTURES") {
        std::fs::write(Path::new(&folder).join("loss.png"), &pixels).expect("written");
    }
}

#[test]
fn a_case_counts_once() {
    let plan = plan();
    let mut records = records(&plan);
    let mut early = records[0].clone();
    early.outcome.ending = Ending::NotFinished;
    early.case.cap_seconds = 0.5;
    records.insert(0, early);
    let mark = Chart::new(&plan, &plan.sweeps[0], &records).series[0].marks[0];
    assert_eq!(
        (mark.low, mark.high, mark.is_bound),
        (1.1, 1.1 * 1.4, false),
        "it did not finish when it had less time"
    );
}

#[test]
fn nothing_measured_is_a_picture_too() {
    let plan = plan();
    let chart = Chart::new(&plan, &plan.sweeps[0], &[]);
    assert_eq!((chart.series.len(), &*chart.caption), (0, &["Nothing has been measured yet.".to_owned()][..]));
    png(&svg(&chart)).expect("a picture");
}

#[test]
fn long_text_is_broken_at_spaces() {
    assert_eq!(wrapped("TCP, published (figure 10(a))", 14), ["TCP, published", "(figure 10(a))"]);
    assert_eq!(wrapped("hysteria-brutal", 5), ["hysteria-brutal"]);
}

#[test]
fn lines_need_no_plan() {
    let lines = Lines {
        title: "Failures".into(),
        caption: vec!["A thousand trials.".into()],
        x: ("Overhead, %".into(), Scale::Linear),
        ticks: vec![(0.0, "none".into()), (5.0, "5".into())],
        y: ("Share that fails".into(), Scale::Log),
        series: vec![
            ("lt".into(), vec![Mark::at(0.0, 1.0), Mark::with_bar(5.0, 1e-5, [5e-6, 2e-5])]),
            ("raptorq".into(), vec![Mark::at(0.0, 4e-3)]),
        ],
    };
    let drawn = svg(&lines.into());
    assert_eq!((drawn.matches("class=\"mark\"").count(), drawn.matches("<path class=\"series\"").count()), (3 + 2, 1));
    for words in [">none<", ">1e-5<", ">lt<", ">raptorq<", ">A thousand trials.<"] {
        assert!(drawn.contains(words), "{words} is not in {drawn}");
    }
    assert!(png(&drawn).expect("a picture").len() > 1000);
}
