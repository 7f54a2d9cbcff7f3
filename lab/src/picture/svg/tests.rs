use std::path::Path;

use super::super::png;
use super::*;
use crate::picture::{Gap, Lines, Mark, MarkStyle};
use crate::plan::{LinkPlan, Published, PublishedPoint, ReferenceCurve, Scale};
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
fn svg_draws_every_element_once() {
    let plan = plan();
    let chart = Chart::new(&plan, &plan.sweeps[0], &records(&plan));
    let svg = svg(&chart);
    let count = |text: &str| svg.matches(text).count();
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
fn png_equals_svg_with_text() {
    let plan = plan();
    let drawn = svg(&Chart::new(&plan, &plan.sweeps[0], &records(&plan)));
    let pixels = png(&drawn).expect("a picture");
    assert_eq!(&pixels[..8], b"\x89PNG\r\n\x1a\n");
    let side = |at: usize| u32::from_be_bytes(pixels[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(side(16), 1470);
    // Without text the picture is smaller, which shows that the built-in font is used.
    let mute = drawn.replace("<text", "<desc").replace("</text", "</desc");
    assert!(pixels.len() > png(&mute).expect("a picture").len() + 10_000);
    if let Ok(directory) = std::env::var("PICTURES") {
        std::fs::write(Path::new(&directory).join("loss.png"), &pixels).expect("written");
    }
}

#[test]
fn last_run_of_a_case_counts() {
    let plan = plan();
    let mut records = records(&plan);
    let mut early = records[0].clone();
    early.outcome.ending = Ending::NotFinished;
    early.case.cap_seconds = 0.5;
    records.insert(0, early);
    let mark = Chart::new(&plan, &plan.sweeps[0], &records).series[0].marks[0];
    assert_eq!((mark.low, mark.high, mark.is_bound), (1.1, 1.1 * 1.4, false), "unfinished with a shorter cap");
}

#[test]
fn chart_without_records_is_drawn() {
    let plan = plan();
    let chart = Chart::new(&plan, &plan.sweeps[0], &[]);
    assert_eq!((chart.series.len(), &*chart.caption), (0, &["Nothing has been measured yet.".to_owned()][..]));
    png(&svg(&chart)).expect("a picture");
}

fn lines(series: Vec<Series>) -> Lines {
    Lines {
        title: "Failures".into(),
        caption: vec!["A thousand trials.".into()],
        sweep: "overhead".into(),
        x: ("Overhead, %".into(), Scale::Linear),
        ticks: vec![(0.0, "none".into()), (5.0, "5".into()), (10.0, "10".into())],
        is_named: false,
        y: ("Share that fails".into(), Scale::Log),
        series,
        published: Vec::new(),
        lines: Vec::new(),
        fits: Vec::new(),
    }
}

/// Returns the positions of every line of a class within the plot, except those in the legend.
fn polylines(svg: &str, class: &str) -> Vec<Vec<(f64, f64)>> {
    let start = format!("<polyline class=\"{class}\" points=\"");
    let pair = |pair: &str| {
        let (x, y) = pair.split_once(',').expect("a pair");
        (x.parse().expect("a number"), y.parse().expect("a number"))
    };
    let all = svg.split(&start).skip(1).map(|rest| rest.split('"').next().expect("points"));
    let all = all.map(|points| points.split(' ').map(pair).collect::<Vec<(f64, f64)>>());
    all.filter(|places| places[0].0 < LEGEND).collect()
}

#[test]
fn lines_are_drawn_without_a_plan() {
    let lt = Series::new("lt", 0, [Ok(Mark::at(0.0, 1.0)), Ok(Mark::with_bar(5.0, 1e-5, [5e-6, 2e-5]))]);
    let raptorq = Series::new("raptorq", 1, [Ok(Mark::at(0.0, 4e-3))]);
    let drawn = svg(&lines(vec![lt, raptorq]).into());
    assert_eq!((drawn.matches("class=\"mark\"").count(), drawn.matches("<path class=\"series\"").count()), (3 + 2, 1));
    for words in [">none<", ">1e-5<", ">lt<", ">raptorq<", ">A thousand trials.<"] {
        assert!(drawn.contains(words), "{words} is not in {drawn}");
    }
    assert!(png(&drawn).expect("a picture").len() > 1000);
}

#[test]
fn points_have_titles_and_data() {
    let series =
        |style: usize, name: &str, y: f64| Series::new(name, style, [Ok(Mark::with_bar(5.0, y, [y / 2.0, 2.0 * y]))]);
    let drawn = svg(&lines(vec![series(0, "a <b>", 0.123_456), series(1, "c", 0.5), series(2, "d", 0.123_456)]).into());
    for words in [
        "data-series=\"0 2\" data-x=\"5\"",
        "<title>a &lt;b&gt; = d, 5: 0.1235 (0.06173 to 0.2469)</title>",
        "data-series=\"1\" data-x=\"5\"",
        "<title>c, 5: 0.5 (0.25 to 1)</title>",
    ] {
        assert!(drawn.contains(words), "{words} is not in {drawn}");
    }
    assert_eq!(drawn.matches("data-series").count(), 2, "the legend has none");
    png(&drawn).expect("a picture");
}

#[test]
fn gap_is_marked_and_not_crossed() {
    let series = |style: usize, gap: Result<Mark, Gap>| {
        Series::new(["a", "b"][style], style, [Ok(Mark::at(0.0, 1.0)), gap, Ok(Mark::at(10.0, 0.1))])
    };
    let few = Err(Gap { x: 5.0, valid: 1, planned: 5 });
    let drawn = svg(&lines(vec![series(0, few), series(1, Ok(Mark::at(5.0, 0.5)))]).into());
    let [whole] = &polylines(&drawn, "series")[..] else { panic!("one line, and no other joins two points: {drawn}") };
    assert_eq!(whole.len(), 3);
    let middle = whole[1].0;
    assert_eq!(drawn.matches("class=\"gap\"").count(), 1);
    assert!(drawn.contains(&format!("<text class=\"soft\" x=\"{middle:.1}\"")) && drawn.contains(">1/5<"), "{drawn}");
    assert!(drawn.contains("only n of m runs have a valid value"), "{drawn}");
}

#[test]
fn numbers_axis_does_not_shift_series() {
    let series = |style: usize, y: f64| {
        Series::new(["a", "b", "c"][style], style, [0.0, 5.0, 10.0].map(|x| Ok(Mark::at(x, y + x / 100.0))))
    };
    let drawn = svg(&lines(vec![series(0, 0.1), series(1, 0.2), series(2, 0.1)]).into());
    let drawn_lines = polylines(&drawn, "series");
    // Equal series are one; different ones are not shifted.
    let [first, second] = &drawn_lines[..] else { panic!("two lines: {drawn}") };
    assert!(first.iter().zip(second).all(|(a, b)| a.0 == b.0 && a.1 != b.1), "{first:?} {second:?}");
    assert!(drawn.contains(">a = c<") && drawn.contains(">b<"), "{drawn}");
    // The labels are beside the ends of the lines, without another legend.
    assert_eq!(polylines(&drawn, "leader").len(), 2);
}

#[test]
fn courses_have_bands_and_few_markers() {
    let course = |style: usize| {
        let marks = (0..500).map(|at| f64::from(at) / 50.0).map(|x| {
            let y = 1.0 + x.sin() * 0.1 * style as f64;
            Ok(Mark::with_bar(x, y, [y * 0.9, y * 1.1]))
        });
        Series::new(format!("{style}"), style, marks).drawn(MarkStyle::Course)
    };
    let drawn = svg(&Lines { ticks: Vec::new(), ..lines(vec![course(0), course(1)]) }.into());
    let [first, second] = &polylines(&drawn, "series")[..] else { panic!("two lines") };
    assert_eq!((first.len(), second.len(), first[250].0), (500, 500, second[250].0));
    assert_eq!(drawn.matches("class=\"band\"").count(), 2);
    assert_eq!(drawn.matches("class=\"mark\"").count(), 2 * 8 + 2, "the legend has one of each");
}

#[test]
fn many_series_get_small_plots() {
    let names = ["auto", "auto, fixed rate", "arq", "lt-tcp", "ttp", "rc-udp", "quic"];
    let series = |(style, name): (usize, &&str)| {
        Series::new(*name, style, [0.0, 5.0].map(|x| Ok(Mark::at(x, 0.1 * (1.0 + style as f64)))))
    };
    let all = Lines {
        lines: vec![ReferenceCurve { sweep: None, label: "true value".into(), factor: 0.3, power: 0.0 }],
        ..lines(names.iter().enumerate().map(series).collect())
    };
    let drawn = svg(&all.into());
    assert_eq!(drawn.matches("class=\"frame\"").count(), 6, "auto has one");
    let count = |class: &str| drawn.matches(&format!("<polyline class=\"{class}\"")).count();
    assert_eq!(count("series"), 7);
    assert_eq!(count("behind"), 5 * 6 + 5, "the others are behind each");
    assert_eq!(count("truth"), 6 + 1, "in each plot, and above");
    assert_eq!(drawn.matches(">true value<").count(), 1);
    // Each name is above the plot of its system.
    let number = |element: &str, key: &str| -> f64 {
        let value = element.split(&format!(" {key}=\"")).nth(1).expect("a position");
        value.split('"').next().and_then(|value| value.parse().ok()).expect("a number")
    };
    let place = |element: &str| (number(element, "x"), number(element, "y"));
    let frames: Vec<_> = drawn.lines().filter(|line| line.contains("class=\"frame\"")).map(place).collect();
    for (name, frame) in
        [("auto, fixed rate", frames[0]), ("arq", frames[1]), ("rc-udp", frames[4]), ("quic", frames[5])]
    {
        let (x, y) = place(drawn.lines().find(|line| line.contains(&format!(">{name}<"))).expect(name));
        let (dx, dy) = (x - frame.0, frame.1 - y);
        assert!((0.0..20.0).contains(&dx) && (0.0..40.0).contains(&dy), "{name} is {dx}, {dy} from its plot");
    }
    // Names are letters, since they do not fit.
    let all = names.iter().enumerate().map(series).collect();
    let drawn = svg(&Lines { is_named: true, ..lines(all) }.into());
    assert!(drawn.contains(">a: none; b: 5; c: 10<") && drawn.matches(">b<").count() == 3, "{drawn}");
    png(&drawn).expect("a picture");
}

#[test]
fn four_courses_with_bands_get_small_plots() {
    let course = |style: usize| {
        let marks = [1.0, 2.0, 3.0].map(|x| Ok(Mark::with_bar(x, 1.0 + style as f64, [0.5, 9.0])));
        Series::new(["old: a", "old: b", "new: a", "new: b"][style], style, marks).drawn(MarkStyle::Course)
    };
    let frames = |count: usize| {
        let all = Lines { ticks: Vec::new(), ..lines((0..count).map(course).collect()) };
        svg(&all.into()).matches("class=\"frame\"").count()
    };
    assert_eq!((frames(3), frames(4)), (1, 2));
}

#[test]
fn published_points_above_series_laws_within_axes() {
    let own = Series::new("own", 3, [0.0, 5.0, 10.0].map(|x| Ok(Mark::at(x, 0.1 + x))));
    let published = |sweep: &str, of: Option<&str>| Published {
        sweep: sweep.into(),
        label: "theirs".into(),
        section: "table 1".into(),
        claim: None,
        of: of.map(str::to_owned),
        points: vec![PublishedPoint { x: 5.0, y: 2.0, error: None }],
    };
    let law = |sweep: Option<&str>| ReferenceCurve {
        sweep: sweep.map(str::to_owned),
        label: "c / sqrt(x)".into(),
        factor: 3.0,
        power: -0.5,
    };
    let all = Lines {
        published: vec![published("overhead", Some("own")), published("other", None)],
        lines: vec![law(None), law(Some("other"))],
        ..lines(vec![own])
    };
    let drawn = svg(&all.into());
    let places = |text: &str| drawn.match_indices(text).map(|(at, _)| at).collect::<Vec<_>>();
    let (marks, open) = (places("class=\"mark\""), places("class=\"open\""));
    assert_eq!((marks.len(), open.len()), (3 + 1, 1 + 1));
    assert!(open[0] > marks[2], "over the series");
    assert!(drawn.contains(">theirs, published (table 1)<"), "{drawn}");
    let [truth] = &polylines(&drawn, "truth")[..] else { panic!("one law: {drawn}") };
    assert!(truth.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "it falls: {truth:?}");
}
