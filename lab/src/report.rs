//! Results as a self-contained page of HTML.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::claims::{self, Verdicts};
use crate::codes;
use crate::lists;
use crate::picture::{escaped, summaries};
use crate::plan::{Axis, LinkPlan, Point, Quantity, Sweep};
use crate::results::{Bound, Origin, PointSummary, Record};
use crate::simulated;

pub use crate::tables::Measured;

/// A plan and its results.
#[derive(Clone, Debug)]
pub struct Section {
    /// The plan and its records.
    pub measured: Measured,
    /// The picture of each of its sweeps, as SVG.
    pub pictures: Vec<String>,
    /// The verdicts on its claims.
    pub(crate) judged: Option<Verdicts>,
}

/// Light and dark, according to the reader's system. The classes of pictures follow.
const STYLE: &str = "\
:root{color-scheme:light dark;--paper:#fff;--ink:#1a1a1a;--soft:#555;--line:#ddd}
@media(prefers-color-scheme:dark){:root{--paper:#16181c;--ink:#e8e8e8;--soft:#aaa;--line:#3a3d44}}
body{background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem}h2{font-size:1.25rem;margin-top:2.5rem}h3{font-size:1.05rem}
figure{margin:1rem 0}svg{max-width:100%;height:auto}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.3rem .7rem;text-align:right;vertical-align:top}
th:first-child,td:first-child,.words td,.words th{text-align:left}td small,p small{color:var(--soft);display:block}
.best{font-weight:600}blockquote{margin:.5rem 0;padding-left:1rem;border-left:3px solid var(--line)}
svg .paper{fill:var(--paper)}svg .ink{fill:var(--ink)}svg .soft{fill:var(--soft)}svg .grid{stroke:var(--line)}
data{border-bottom:1px dotted var(--soft)}td.reproduced{border-left:4px solid #2a8}td.in-kind{border-left:4px solid #c90}td.not{border-left:4px solid #c44}td.unmeasured{border-left:4px solid var(--line)}\
@media print{body{max-width:none;margin:0;font-size:11px}h1{break-before:page}h1:first-of-type{break-before:auto}figure,tr{break-inside:avoid}.wide{overflow:visible}}\
svg .ink-line{stroke:var(--ink)}svg .hollow{fill:var(--paper);stroke:var(--soft)}svg .mark{stroke:var(--paper)}";

/// Returns the page.
pub fn page(sections: &[Section]) -> String {
    let title = match sections {
        [only] => only.measured.title_and_name().0.to_owned(),
        _ => "Measurements".to_owned(),
    };
    let mut page = Page(String::new());
    let judged = || {
        sections.iter().filter_map(|section| {
            let (_, name) = section.measured.title_and_name();
            Some((name, section.judged.as_ref()?, section.measured.stale() > 0))
        })
    };
    if sections.len() > 1 && judged().any(|(_, judged, _)| !judged.verdicts.is_empty()) {
        page.0 += &claims::overview(&judged().collect::<Vec<_>>());
    }
    for section in sections {
        page.section(section);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>{}</title>\n<style>{STYLE}</style></head>\n<body>\n{}</body></html>\n",
        escaped(&title),
        page.0
    )
}

struct Page(String);

impl Page {
    fn put(&mut self, html: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{html}").expect("a string takes all");
    }

    fn section(&mut self, section: &Section) {
        let Section { measured, pictures, judged } = section;
        let (title, name) = measured.title_and_name();
        let anchor = claims::anchor(name);
        self.put(format_args!(
            "<h1 id=\"{}\">{}</h1>\n<p><small>{}</small></p>",
            escaped(&anchor),
            escaped(title),
            escaped(name)
        ));
        self.claims(&measured.claims());
        self.put(format_args!("<h2>Verdict</h2>"));
        match judged {
            Some(judged) => self.0.push_str(&claims::section(judged)),
            None => self.put(format_args!("<p>Not judged yet: add verdict.toml to the directory of results.</p>")),
        }
        match measured {
            Measured::Links(plan, records) => {
                for (sweep, picture) in plan.sweeps.iter().zip(pictures) {
                    self.sweep(plan, sweep, picture, records);
                }
                self.environment(plan, records);
            }
            Measured::Codes(plan, records) => self.0.push_str(&codes::body(plan, records, pictures)),
            Measured::Simulated(plan, records) => self.0.push_str(&simulated::body(plan, records, pictures)),
        }
        self.origin(measured);
    }

    /// Adds a table of the origin of the records.
    fn origin(&mut self, measured: &Measured) {
        let made = measured.made();
        let all = |of: fn(&Origin) -> &str| lists::each_once(made.iter().flatten().map(|made| of(made)));
        let loads = || made.iter().flatten().map(|made| made.load);
        let load = match made.iter().flatten().count() {
            0 => String::new(),
            _ => {
                format!("{:.2} to {:.2} processes", loads().fold(f64::INFINITY, f64::min), loads().fold(0.0, f64::max))
            }
        };
        let unknown = made.iter().filter(|made| made.is_none()).count();
        let stale = match measured.stale() {
            0 => String::new(),
            count => format!("{} with records of another build only", units::count(count, "case", "cases")),
        };
        let rows = [
            ("Stale", stale),
            ("Unknown", if unknown > 0 { format!("the build of {unknown} records") } else { String::new() }),
            ("Commits", all(|made| &made.commit)),
            ("Machines", all(|made| &made.machine)),
            ("Load", load),
        ];
        self.put(format_args!("<h3>Origin of the records</h3>\n<table class=\"words\">"));
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            self.put(format_args!("<tr><td>{name}</td><td>{}</td></tr>", escaped(value)));
        }
        self.put(format_args!("</table>"));
    }

    fn claims(&mut self, all: &[(&str, &str)]) {
        if !all.is_empty() {
            self.put(format_args!("<h2>Claims</h2>"));
        }
        for (text, section) in all {
            self.put(format_args!("<blockquote>{} <small>({})</small></blockquote>", escaped(text), escaped(section)));
        }
    }

    fn sweep(&mut self, plan: &LinkPlan, sweep: &Sweep, picture: &str, records: &[Record]) {
        self.put(format_args!("<h2>{}</h2>\n<figure>{picture}</figure>", escaped(&sweep.title)));
        let Some(writes) = plan.writes else {
            self.table(plan, sweep, Quantity::Seconds, records);
            self.note(sweep, "Medians of the valid runs, and from the shortest to the longest; the shortest median");
            return;
        };
        for quantity in Quantity::OF_WRITES {
            if quantity == Quantity::Upload && writes.beside.is_none() {
                continue;
            }
            self.put(format_args!("<h3>{}</h3>", escaped(quantity.title())));
            self.table(plan, sweep, quantity, records);
        }
        self.note(sweep, "Medians of the valid runs, and from the least to the most; the best median");
    }

    fn note(&mut self, sweep: &Sweep, caption: &str) {
        self.put(format_args!(
            "<p><small>{caption} of a column is highlighted. &ge;: half of the runs or more did not finish within the cap of {}.</small></p>",
            units::seconds(sweep.cap.as_secs_f64())
        ));
    }

    /// Adds a table of one quantity, with a row for each peer.
    fn table(&mut self, plan: &LinkPlan, sweep: &Sweep, quantity: Quantity, records: &[Record]) {
        let all = summaries(plan, sweep, records, quantity);
        let heads = all.iter().map(|(point, _)| format!("<th>{}</th>", escaped(&head(sweep, point))));
        let heads = heads.collect::<String>();
        self.put(format_args!("<div class=\"wide\"><table>\n<tr><th>{}</th>{heads}</tr>", escaped(sweep.axis.title())));
        if let Some(floor) = plan.picture.floor {
            let floors = all.iter().map(|(point, _)| point.floor(floor).map_or("-".to_owned(), units::seconds));
            let floors = floors.map(|floor| format!("<td>{floor}</td>")).collect::<String>();
            self.put(format_args!("<tr><td><em>floor</em></td>{floors}</tr>"));
        }
        let best: Vec<Option<f64>> = all.iter().map(|(_, peers)| best(peers, quantity)).collect();
        for (index, peer) in sweep.peers.iter().enumerate() {
            let cells = all
                .iter()
                .zip(&best)
                .map(|((_, peers), best)| cell(&peers[index].1, *best, quantity))
                .collect::<String>();
            self.put(format_args!("<tr><td>{}</td>{cells}</tr>", escaped(peer)));
        }
        self.put(format_args!("</table></div>"));
    }

    fn environment(&mut self, plan: &LinkPlan, records: &[Record]) {
        self.put(format_args!("<h2>Environment</h2>"));
        let all = |of: fn(&Record) -> &str| lists::each_once(records.iter().map(of));
        let invalid = records.iter().filter(|record| !record.is_valid()).count();
        let latest =
            records.iter().filter(|record| record.is_valid()).map(|record| record.outcome.verdict.lateness.p99_us);
        let rows = [
            ("Kernel", all(|record| &record.kernel)),
            ("Emulator", all(|record| &record.outcome.environment.back_end)),
            ("Offloads", all(|record| &record.outcome.environment.offloads)),
            ("From, to", lists::from_to(records.iter().map(|record| record.date.as_str()))),
            ("Runs", format!("{} stored, {invalid} of them invalid and not counted above", records.len())),
            (
                "Lateness",
                format!("99 % of packets at most {:.0} us late in every valid run", latest.fold(0.0, f64::max)),
            ),
        ];
        self.put(format_args!("<table class=\"words\">"));
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            self.put(format_args!("<tr><td>{name}</td><td>{}</td></tr>", escaped(value)));
        }
        self.put(format_args!("</table>\n<h3>Peers</h3>\n<div class=\"wide\"><table class=\"words\">"));
        self.put(format_args!(
            "<tr><th>Peer</th><th>Versions</th><th>Congestion control</th><th>Encrypted</th><th>Start and end of the clock</th></tr>"
        ));
        let by_peer: BTreeMap<&str, &Record> =
            records.iter().map(|record| (record.case.peer.as_str(), record)).collect();
        for (peer, record) in plan.peers.iter().filter_map(|peer| by_peer.get_key_value(peer.as_str())) {
            let (environment, clock) = (&record.outcome.environment, &record.outcome.clock);
            let versions: Vec<_> =
                environment.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
            let cells = [
                (*peer).to_owned(),
                versions.join(", "),
                environment.congestion.clone().unwrap_or_default(),
                if environment.encrypted { "yes" } else { "no" }.to_owned(),
                format!("{}, {}", clock.starts, clock.ends),
            ];
            let cells = cells.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect::<String>();
            self.put(format_args!("<tr>{cells}</tr>"));
        }
        self.put(format_args!("</table></div>"));
    }
}

fn head(sweep: &Sweep, point: &Point) -> String {
    match sweep.axis {
        Axis::Link => point.label.clone(),
        axis => format!("{} {}", units::number(point.x), axis.unit()),
    }
}

/// Returns the best median of finished runs.
fn best(peers: &[(&str, PointSummary)], quantity: Quantity) -> Option<f64> {
    let medians = peers.iter().filter_map(|(_, summary)| summary.times).filter(|times| !times.median.is_bound());
    let medians = medians.map(|times| times.median.value());
    if quantity.is_rate() { medians.max_by(f64::total_cmp) } else { medians.min_by(f64::total_cmp) }
}

fn cell(summary: &PointSummary, best: Option<f64>, quantity: Quantity) -> String {
    let bound = |bound| bounded(bound, quantity);
    let mut notes = Vec::new();
    let Some(times) = summary.times else {
        let invalid =
            if summary.invalid > 0 { format!("<small>{} invalid</small>", summary.invalid) } else { "-".to_owned() };
        return format!("<td>{invalid}</td>");
    };
    if summary.valid() > 1 {
        notes.push(format!("{} &ndash; {}", bound(times.min), bound(times.max)));
    }
    for (count, outcome) in
        [(summary.not_finished, "not finished"), (summary.failed, "failed"), (summary.invalid, "invalid, not counted")]
    {
        if count > 0 {
            notes.push(format!("{count} {outcome}"));
        }
    }
    let class = if !times.median.is_bound() && best == Some(times.median.value()) { " class=\"best\"" } else { "" };
    let notes = notes.iter().map(|note| format!("<small>{note}</small>")).collect::<String>();
    format!("<td><span{class}>{}</span>{notes}</td>", bound(times.median))
}

fn bounded(bound: Bound, quantity: Quantity) -> String {
    let sign = if bound.is_bound() { "&ge; " } else { "" };
    let value = match quantity {
        Quantity::Seconds | Quantity::Goodput => units::seconds(bound.value()),
        Quantity::WirePerByte | Quantity::Upload => format!("{:.2}", bound.value()),
        _ => format!("{:.1}", bound.value()),
    };
    format!("{sign}{value}")
}
