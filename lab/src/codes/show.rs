//! Records of timed codes as pictures, as tables, and as a part of the page.

use std::fmt::Write as _;

use super::{CodePlan, CodeQuantity, CodeRecord, CodeSweep, Measured, Setting, Vary};
use crate::lists;
use crate::picture::{Chart, Lines, Mark, Series, escaped};
use crate::plan::Spread;

/// Returns the last record of each code at each point of a sweep, if there is one.
fn at<'a>(
    plan: &CodePlan,
    sweep: &CodeSweep,
    setting: &Setting,
    records: &'a [CodeRecord],
) -> Vec<Option<&'a CodeRecord>> {
    let cases = sweep.cases(plan, setting);
    cases.iter().map(|case| records.iter().rfind(|record| record.id == case.id())).collect()
}

/// Returns the position of a point, and each run of a code at it: the id of its record, and its value of a quantity.
pub(crate) fn found(
    plan: &CodePlan,
    sweep: &CodeSweep,
    (code, point): (usize, usize),
    quantity: CodeQuantity,
    records: &[CodeRecord],
) -> (f64, Vec<(String, f64)>) {
    let (_, setting) = &sweep.points[point];
    let record = at(plan, sweep, setting, records)[code];
    let value = |nanoseconds: u64| quantity.of(nanoseconds as f64, setting);
    let runs = record.map(|record| record.nanoseconds.iter().map(|time| (record.id.clone(), value(*time))).collect());
    (sweep.vary.coordinate(setting), runs.unwrap_or_default())
}

/// Returns the picture of a sweep.
pub(crate) fn picture(plan: &CodePlan, sweep: &CodeSweep, records: &[CodeRecord]) -> Chart {
    let all: Vec<_> = sweep.points.iter().map(|(_, setting)| (setting, at(plan, sweep, setting, records))).collect();
    // A point cut short by the cap has fewer runs; one without any is a gap.
    let mark = |setting: &Setting, record: Option<&CodeRecord>| {
        let x = sweep.vary.coordinate(setting);
        let Some(record) = record.filter(|record| !record.nanoseconds.is_empty()) else {
            return Mark::of_enough(None, x, 0, sweep.runs as usize);
        };
        let of = |share| plan.y.of(record.quantile(share), setting);
        let bar = match plan.spread {
            Spread::Range => [of(0.0), of(1.0)],
            Spread::Quartiles => [of(0.25), of(0.75)],
        };
        Ok(Mark::with_bar(x, of(0.5), bar))
    };
    // By the code's position in the plan, for the same style in all pictures.
    let series = plan.codes.iter().enumerate().map(|(style, code)| {
        let index = sweep.codes.iter().position(|other| other == code);
        let points =
            index.into_iter().flat_map(|index| all.iter().map(move |(setting, found)| (setting, found[index])));
        Series::new(code.to_string(), style, points.map(|(setting, record)| mark(setting, record)))
    });
    let label = |text: &String, setting: &Setting| match sweep.vary {
        Vary::Drops => units::number(sweep.vary.coordinate(setting)),
        Vary::Size | Vary::Symbol | Vary::Block => text.clone(),
    };
    let ticks = sweep.points.iter().map(|(text, setting)| (sweep.vary.coordinate(setting), label(text, setting)));
    Lines {
        title: sweep.title.clone(),
        caption: vec![caption(plan, sweep, &all)],
        sweep: sweep.name.clone(),
        x: (sweep.vary.title().to_owned(), sweep.scale),
        ticks: ticks.collect(),
        is_named: false,
        y: (plan.y.title().to_owned(), plan.y_scale),
        series: series.collect(),
        published: plan.published.clone(),
        lines: plan.lines.clone(),
        fits: Vec::new(),
    }
    .into()
}

fn caption(plan: &CodePlan, sweep: &CodeSweep, all: &[(&Setting, Vec<Option<&CodeRecord>>)]) -> String {
    let runs = all.iter().flat_map(|(_, found)| found).flatten().map(|record| record.nanoseconds.len());
    let Some(runs) = lists::counts(runs, "run", "runs") else { return "Nothing has been measured yet.".to_owned() };
    let bars = match plan.spread {
        Spread::Range => "the shortest to the longest",
        Spread::Quartiles => "the first to the third quartile",
    };
    let setting = &sweep.points[0].1;
    let mut base = Vec::new();
    if sweep.vary != Vary::Size {
        base.push(units::bytes(setting.size));
    }
    if sweep.vary != Vary::Symbol {
        let symbols = if base.is_empty() { "Symbols" } else { "symbols" };
        base.push(format!("{symbols} of {} B", setting.symbol));
    }
    base.push(format!("{} % of repair symbols", units::number(setting.repair * 100.0)));
    if sweep.measured == Measured::Decode && sweep.vary != Vary::Drops {
        let [least, most] = setting.drops.map(|share| units::number(share * 100.0));
        base.push(format!("{least} to {most} % of packets dropped"));
    }
    format!("{}. Median of {runs} of each code at each point, bars from {bars}; one thread.", base.join(", "))
}

/// Returns one line for each record, below a line of names; times in nanoseconds.
pub(crate) fn csv(records: &[CodeRecord]) -> String {
    let mut text = "id,experiment,sweep,measured,code,size,symbol,block,repair,drops_least,drops_most,seed,date,kernel,processor,runs,\
                    min_ns,first_quartile_ns,median_ns,third_quartile_ns,max_ns\n"
        .to_owned();
    for record in records {
        let CodeRecord { id, case, date, kernel, processor, nanoseconds, .. } = record;
        let Setting { size, symbol, block, repair, drops } = &case.setting;
        let measured = match case.measured {
            Measured::Encode => "encode",
            Measured::Decode => "decode",
        };
        let block = block.map_or_else(String::new, |block| block.to_string());
        let times = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| record.quantile(share).round().to_string()).join(",");
        writeln!(
            text,
            "{id},{},{},{measured},{},{size},{symbol},{block},{repair},{},{},{},{date},{kernel},\"{}\",{},{times}",
            case.experiment,
            case.sweep,
            case.code,
            drops[0],
            drops[1],
            case.seed,
            processor.replace('"', "\"\""),
            nanoseconds.len()
        )
        .expect("a string takes all");
    }
    text
}

/// Returns pictures and tables of all sweeps, and the environment of the runs, as HTML.
pub(crate) fn body(plan: &CodePlan, records: &[CodeRecord], pictures: &[String]) -> String {
    let mut html = String::new();
    for (sweep, picture) in plan.sweeps.iter().zip(pictures) {
        write!(html, "<h2>{}</h2>\n<figure>{picture}</figure>\n", escaped(&sweep.title)).expect("a string takes all");
        table(&mut html, plan, sweep, records);
    }
    let all = |of: fn(&CodeRecord) -> &str| escaped(&lists::each_once(records.iter().map(of)));
    write!(
        html,
        "<h2>Environment</h2>\n<table class=\"words\">\n<tr><td>Kernel</td><td>{}</td></tr>\n\
         <tr><td>Processor</td><td>{}</td></tr>\n<tr><td>From, to</td><td>{}</td></tr>\n</table>\n",
        all(|record| &record.kernel),
        all(|record| &record.processor),
        lists::from_to(records.iter().map(|record| record.date.as_str()))
    )
    .expect("a string takes all");
    html
}

fn table(html: &mut String, plan: &CodePlan, sweep: &CodeSweep, records: &[CodeRecord]) {
    let heads: String = sweep.points.iter().map(|(text, _)| format!("<th>{}</th>", escaped(text))).collect();
    let mut put = |line: String| writeln!(html, "{line}").expect("a string takes all");
    put(format!("<div class=\"wide\"><table>\n<tr><th>{}</th>{heads}</tr>", sweep.vary.title()));
    for (index, code) in sweep.codes.iter().enumerate() {
        let cell = |(_, setting): &(String, Setting)| {
            let Some(record) = at(plan, sweep, setting, records)[index] else { return "<td>-</td>".to_owned() };
            let [low, median, high] = [0.25, 0.5, 0.75].map(|share| record.quantile(share));
            format!(
                "<td>{:.2} us<small>{:.2} &ndash; {:.2}</small><small>{:.3} ns/byte</small><small>{} runs</small></td>",
                median / 1e3,
                low / 1e3,
                high / 1e3,
                median / setting.size as f64,
                record.nanoseconds.len()
            )
        };
        let cells: String = sweep.points.iter().map(cell).collect();
        put(format!("<tr><td>{}</td>{cells}</tr>", escaped(&code.to_string())));
    }
    put("</table></div>\n<p><small>Median of processor time, the middle half of the runs, and the median for each byte.</small></p>".to_owned());
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::plan;
    use super::*;
    use crate::picture::svg;

    fn record(plan: &CodePlan, sweep: usize, point: usize, code: usize, nanoseconds: &[u64]) -> CodeRecord {
        let sweep = &plan.sweeps[sweep];
        let case = sweep.cases(plan, &sweep.points[point].1).swap_remove(code);
        CodeRecord {
            schema: 1,
            id: case.id(),
            case,
            date: "2026-01-02T03:04:05Z".into(),
            kernel: "6.18.0".into(),
            processor: "A \"CPU\"".into(),
            made: None,
            nanoseconds: nanoseconds.to_vec(),
        }
    }

    #[test]
    fn records_become_marks_rows_and_lines() {
        let plan = plan();
        let records = [
            record(&plan, 0, 1, 0, &[10_000, 30_000, 20_000]),
            record(&plan, 0, 2, 0, &[90_000, 60_000]),
            record(&plan, 0, 1, 1, &[5_000]),
        ];
        let chart = picture(&plan, &plan.sweeps[0], &records);
        let marks: Vec<_> = chart.series.iter().map(|series| (series.name.as_str(), series.marks.clone())).collect();
        let raptorq = vec![Mark::with_bar(1e4, 2.0, [1.0, 3.0]), Mark::with_bar(3e4, 2.5, [2.0, 3.0])];
        assert_eq!(marks, [("raptorq", raptorq), ("reed-solomon", vec![Mark::at(1e4, 0.5)])]);
        assert!(chart.caption[0].contains("Median of 1 to 3 runs"), "{:?}", chart.caption);
        assert!(svg(&chart).contains(">10KB<"));
        assert_eq!(
            csv(&records[..1]).lines().nth(1).expect("a record"),
            format!(
                "{},paper/fig3,encode-size,encode,raptorq,10000,1000,,0.2,0,0.1,1,2026-01-02T03:04:05Z,6.18.0,\"A \"\"CPU\"\"\",3,\
                 10000,15000,20000,25000,30000",
                records[0].id
            )
        );
        let html = body(&plan, &records, &["<svg/>".to_owned(), "<svg/>".to_owned()]);
        assert!(html.contains("<td>20.00 us<small>15.00 &ndash; 25.00</small><small>2.000 ns/byte</small>"), "{html}");
        assert!(
            html.contains("<td>A &quot;CPU&quot;</td>") && html.matches("<td>-</td>").count() == 2 + 1 + 2,
            "{html}"
        );
    }
}
