//! The verdicts of a directory as they were last written, without reading its records.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::FileText;

/// The verdicts as text, beside `verdict.toml`.
pub(crate) const TEXT: &str = "verdict.txt";

/// A verdict from `verdict.txt`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct StoredVerdict {
    /// The document's figure or table; empty for a claim of no document.
    pub(crate) item: String,
    pub(crate) claim: String,
    /// The measured numbers, and the system in brackets.
    pub(crate) measured: String,
    /// `reproduced`, `in kind`, `not reproduced`, or `not measured` with the reason.
    pub(crate) verdict: String,
    /// Its CSS class.
    pub(crate) class: &'static str,
    pub(crate) because: String,
    /// The result of `auto`, for a claim for which the document is known.
    pub(crate) auto: String,
}

/// Returns the verdicts of a directory, if any were written. Unreadable ones are skipped: opening the directory reports
/// the reason.
pub(crate) fn stored(directory: &Path) -> Vec<StoredVerdict> {
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let mut all = parse(&read(TEXT));
    let file: FileText = toml::from_str(&read(super::FILE)).unwrap_or_default();
    // The same verdicts in the same order, unless the file has been changed since.
    for (stored, written) in all.iter_mut().zip(&file.verdict) {
        if stored.claim == written.claim {
            stored.item.clone_from(&written.item);
        }
    }
    all
}

fn parse(text: &str) -> Vec<StoredVerdict> {
    let mut all: Vec<StoredVerdict> = Vec::new();
    for line in text.lines() {
        if let Some(claim) = line.strip_prefix("Claim:    ") {
            all.push(StoredVerdict { claim: claim.to_owned(), class: "unmeasured", ..StoredVerdict::default() });
        }
        let Some(last) = all.last_mut() else { continue };
        if let Some(measured) = line.strip_prefix("Measured: ") {
            last.measured = measured.to_owned();
        } else if let Some(verdict) = line.strip_prefix("Verdict:  ") {
            last.verdict = verdict.to_owned();
            last.class = match verdict {
                "reproduced" => "reproduced",
                "in kind" => "in-kind",
                "not reproduced" => "not",
                _ => "unmeasured",
            };
        } else if let Some(because) = line.strip_prefix("Because:  ") {
            last.because = because.to_owned();
        } else if let Some(auto) = line.strip_prefix("auto:     ") {
            last.auto = auto.to_owned();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{ClaimVerdict, Outcome, TextPart, Verdicts, class};
    use super::*;

    #[test]
    fn verdict_txt_round_trip() {
        let words = |text: &str| vec![TextPart::Words(text.to_owned())];
        let verdict = |outcome: Outcome| ClaimVerdict {
            item: "arq 3".into(),
            claim: "It falls.".into(),
            system: "arq".into(),
            measured: words("3 s"),
            outcome,
            because: words("so it is"),
            auto: Some(words("1 s")),
        };
        let outcomes = [Outcome::Reproduced, Outcome::InKind, Outcome::Not, Outcome::NotMeasured("a loss 5%".into())];
        let judged = Verdicts { verdicts: outcomes.clone().map(verdict).into(), text: vec![words("And so on.")] };
        let read = parse(&judged.to_string());
        assert_eq!(read.len(), outcomes.len());
        for (stored, outcome) in read.iter().zip(&outcomes) {
            assert_eq!((stored.class, &stored.verdict), (class(outcome), &outcome.to_string()));
            let said = [&stored.claim, &stored.measured, &stored.because, &stored.auto].map(String::as_str);
            assert_eq!(said, ["It falls.", "3 s (arq)", "so it is", "1 s"]);
        }
        assert_eq!(parse("Nothing of the kind.\n"), []);
    }
}
