//! Verdicts as HTML, and as a table in Markdown.

use std::fmt::Write as _;

use super::{ClaimVerdict, Outcome, Text, TextPart, Verdicts, plain};
use crate::picture::escaped;

/// Returns a text as HTML. Each number has its expression.
fn html(text: &Text) -> String {
    let piece = |piece: &TextPart| match piece {
        TextPart::Words(words) => escaped(words).clone(),
        TextPart::Number { query, shown } => {
            format!("<data value=\"{0}\" title=\"{0}\">{1}</data>", escaped(query), escaped(shown))
        }
    };
    text.iter().map(piece).collect()
}

/// Returns the CSS class of an outcome.
pub(crate) fn class(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Reproduced => "reproduced",
        Outcome::InKind => "in-kind",
        Outcome::Not => "not",
        Outcome::NotMeasured(_) => "unmeasured",
    }
}

/// Returns the verdicts on one plan's results and their further paragraphs.
pub(crate) fn section(judged: &Verdicts) -> String {
    let mut out = String::new();
    if !judged.verdicts.is_empty() {
        out +=
            "<div class=\"wide\"><table class=\"words\">\n<tr><th>Claim</th><th>Measured</th><th>Verdict</th></tr>\n";
        for verdict in &judged.verdicts {
            out += &format!("<tr>{}</tr>\n", cells(verdict));
        }
        out += "</table></div>\n";
    }
    for paragraph in &judged.text {
        writeln!(out, "<p>{}</p>", html(paragraph)).expect("a string takes all");
    }
    out
}

fn cells(verdict: &ClaimVerdict) -> String {
    let ClaimVerdict { claim, system, measured, outcome, because, .. } = verdict;
    let because = if because.iter().any(|piece| piece != &TextPart::Words(String::new())) {
        format!("<small>{}</small>", html(because))
    } else {
        String::new()
    };
    format!(
        "<td>{}</td><td>{}<small>{}</small></td><td class=\"{}\">{}{because}</td>",
        escaped(claim),
        html(measured),
        escaped(system),
        class(outcome),
        escaped(&outcome.to_string())
    )
}

/// The name of a plan, the verdicts on its results, and whether an older build made some of them.
pub(crate) type PlanVerdicts<'a> = (&'a str, &'a Verdicts, bool);

/// Returns the claims for which the documents are known, with the results of `auto`.
fn headlines<'a>(all: &[PlanVerdicts<'a>]) -> Vec<(&'a str, &'a ClaimVerdict, &'a Text)> {
    let of = |(name, judged, _): &PlanVerdicts<'a>| {
        let (name, judged) = (*name, *judged);
        judged.verdicts.iter().filter_map(move |verdict| Some((name, verdict, verdict.auto.as_ref()?)))
    };
    all.iter().flat_map(of).collect()
}

/// Returns tables of the verdicts of several plans.
pub(crate) fn overview(all: &[PlanVerdicts<'_>]) -> String {
    let mut out = "<h1>Headline claims</h1>\n<div class=\"wide\"><table class=\"words\">\n\
         <tr><th>Item</th><th>Claim</th><th>Result of its own system</th><th>Verdict</th><th>auto, without and with a fixed rate</th></tr>\n"
        .to_owned();
    for (_, verdict, auto) in headlines(all) {
        writeln!(out, "<tr><td>{}</td>{}<td>{}</td></tr>", escaped(&verdict.item), cells(verdict), html(auto))
            .expect("a string takes all");
    }
    out += "</table></div>\n<h1>Verdicts</h1>\n<p>Reproduced: every number is within the document's spread, or 20 % where it gives none, and \
         every order and direction is as claimed. In kind: every order and direction is as claimed, and a number is not. \
         Not reproduced: neither. Each number names the expression that it comes from; <code>downpour-lab records DIRECTORY \
         EXPRESSION</code> lists the runs behind it.</p>\n<div class=\"wide\"><table class=\"words\">\n\
         <tr><th>Item</th><th>Claim</th><th>Measured</th><th>Verdict</th></tr>\n";
    for &(name, judged, is_stale) in all {
        for verdict in &judged.verdicts {
            let item = if verdict.item.is_empty() { name } else { &verdict.item };
            let stale = if is_stale { "<small>of an older build</small>" } else { "" };
            writeln!(
                out,
                "<tr><td><a href=\"#{}\">{}</a>{stale}</td>{}</tr>",
                escaped(&anchor(name)),
                escaped(item),
                cells(verdict)
            )
            .expect("a string takes all");
        }
    }
    out + "</table></div>\n"
}

/// Returns the anchor of a plan's section.
pub(crate) fn anchor(name: &str) -> String {
    name.replace('/', "-")
}

/// Returns the same tables in Markdown, with links relative to the directory of experiments.
pub(crate) fn markdown(all: &[PlanVerdicts<'_>]) -> String {
    let cell = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let mut out = String::new();
    let headlines = headlines(all);
    if !headlines.is_empty() {
        out += "## Headline claims\n\n| item | claim | result of its own system | verdict | `auto`, without and with a fixed rate |\n|---|---|---|---|---|\n";
    }
    for (name, ClaimVerdict { item, claim, measured, outcome, .. }, auto) in &headlines {
        writeln!(
            out,
            "| [{}]({name}/verdict.toml) | {} | {} | {outcome} | {} |",
            cell(item),
            cell(claim),
            cell(&plain(measured)),
            cell(&plain(auto))
        )
        .expect("a string takes all");
    }
    out += if headlines.is_empty() { "" } else { "\n## All claims\n\n" };
    out += "| item | claim | system | measured | verdict |\n|---|---|---|---|---|\n";
    for &(name, judged, is_stale) in all {
        for ClaimVerdict { item, claim, system, measured, outcome, because, .. } in &judged.verdicts {
            let item = if item.is_empty() { name } else { item };
            let because = plain(because);
            let because = if because.is_empty() { String::new() } else { format!(": {}", cell(&because)) };
            writeln!(
                out,
                "| [{}]({name}/verdict.toml){} | {} | {} | {} | {outcome}{because} |",
                cell(item),
                if is_stale { ", older build" } else { "" },
                cell(claim),
                cell(system),
                cell(&plain(measured)),
            )
            .expect("a string takes all");
        }
    }
    out
}
