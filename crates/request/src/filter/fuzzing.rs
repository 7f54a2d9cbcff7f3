//! Fuzz target of the filter rules.

use super::pattern::Token;
use super::{Filter, Pattern};

/// Reads the part of `data` before the first NUL byte as rules, and the rest as paths, each ended by another NUL: every
/// pattern must match exactly as a slow matcher does, and rules must survive serialisation.
///
/// # Panics
/// If they do not.
pub fn fuzz_filter(data: &[u8]) {
    /// Limits the cost of an input.
    const LONGEST: usize = 200;
    let mut parts = data.split(|byte| *byte == 0);
    let rules = parts.next().unwrap_or_default();
    let Ok(filter) = Filter::parse(rules) else { return };
    let text = serde_json::to_vec(&filter).expect("rules are plain data");
    assert_eq!(serde_json::from_slice::<Filter>(&text).expect("what was written"), filter);
    for rule in filter.rules() {
        assert_eq!(Pattern::new(rule.pattern().text()).as_ref(), Ok(rule.pattern()));
    }
    for path in parts.filter(|path| path.len() <= LONGEST) {
        for is_directory in [false, true] {
            let matches = |pattern: &Pattern| {
                let expected = matches_slowly(pattern, path, is_directory);
                assert_eq!(pattern.matches(path, is_directory), expected, "{pattern}, {}", path.escape_ascii());
                expected
            };
            let decides = filter.rules().iter().find(|rule| matches(rule.pattern()));
            assert_eq!(filter.allows(path, is_directory), decides.is_none_or(|rule| rule.includes()));
        }
    }
}

/// Matches as [`Pattern::matches`], formulated again.
fn matches_slowly(pattern: &Pattern, path: &[u8], is_directory: bool) -> bool {
    if pattern.directories_only && !is_directory {
        return false;
    }
    let tokens = &pattern.tokens[..];
    // `directory/***` matches the directory as well as everything in it.
    let name = if is_directory && pattern.text.ends_with(b"/***") { [path, b"/"].concat() } else { path.to_vec() };
    if pattern.anchored {
        return whole(tokens, &name);
    }
    // `**/` in front may match no component.
    if tokens[0] == Token::DeepStar && whole(tokens, &[b"/", &name[..]].concat()) {
        return true;
    }
    let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
    std::iter::once(0).chain(slashes.map(|at| at + 1)).any(|start| whole(tokens, &name[start..]))
}

/// Returns whether tokens match a whole text: the reachable positions in the pattern are tracked byte by byte.
fn whole(tokens: &[Token], text: &[u8]) -> bool {
    let is_star = |at: usize| matches!(tokens.get(at), Some(Token::Star | Token::DeepStar));
    // A star may match nothing.
    let skip_stars = |places: &mut Vec<bool>| {
        for at in 0..tokens.len() {
            places[at + 1] |= places[at] && is_star(at);
        }
    };
    let mut places = vec![false; tokens.len() + 1];
    places[0] = true;
    skip_stars(&mut places);
    for byte in text {
        let mut next = vec![false; tokens.len() + 1];
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| places[*at]) {
            match token {
                Token::DeepStar => next[at] = true,
                Token::Star => next[at] |= *byte != b'/',
                single => next[at + 1] |= single.takes(*byte),
            }
        }
        skip_stars(&mut next);
        places = next;
    }
    places[tokens.len()]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn filter_corpus_equals_slow_matcher() {
        hostile::replay("filter", fuzz_filter);
    }

    fn pattern() -> impl Strategy<Value = String> {
        let part = prop::sample::select(vec!["a", "b", "a", "/", "/", "*", "**", "***", "?", "[a-b]", "[!a]", r"\*"]);
        let parts = prop::collection::vec(part, 1..9);
        let end = prop::sample::select(vec!["", "", "", "/", "/***"]);
        // A pattern without wildcards takes a backslash literally.
        (parts, end).prop_map(|(parts, end)| format!("{}{end}", parts.concat())).prop_filter(
            "means itself",
            |pattern| {
                (!pattern.contains('\\') || pattern.contains(['?', '[']) || pattern.replace(r"\*", "").contains('*'))
                    && Pattern::new(pattern.as_bytes()).is_ok()
            },
        )
    }

    fn path() -> impl Strategy<Value = String> {
        let component = prop::sample::select(vec!["a", "b", "c", "*", "ab", "ba", "aab", "abab"]);
        prop::collection::vec(component, 1..6).prop_map(|components| components.join("/"))
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fast_matcher_equals_slow_matcher(pattern in pattern(), path in path()) {
            fuzz_filter(format!("- {pattern}\0{path}").as_bytes());
        }
    }
}
