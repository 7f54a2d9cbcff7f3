//! Names that are known, and those that were meant.

/// How much alike two names have to be for a hint.
const ALIKE: f64 = 0.7;

/// The one of these names that is most like `name`, if it is like it at all.
pub(super) fn like<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known.map(|known| (strsim::jaro_winkler(known, name), known));
    alike.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score >= ALIKE).map(|(_, known)| known)
}
