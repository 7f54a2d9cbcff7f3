//! Suggestions for misspelled names.

/// Minimum similarity of two names for a suggestion.
const ALIKE: f64 = 0.7;

/// Returns the most similar of the known names, if it is similar enough.
pub(super) fn like<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.map(|known| (strsim::jaro_winkler(known, name), known));
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score >= ALIKE).map(|(_, known)| known)
}
