//! Numbers of parameters: clippy counts a tuple as one (`too_many_arguments`), and a reader does not.
//!
//! It reads the signatures of functions outside tests, and needs no compiler.

use xtask::failure::Failure;

use crate::sources;

/// `transport` is omitted until its simulated records are measured again, which any change of its sources makes stale.
const CRATES: [&str; 8] = ["units", "runtime", "request", "net", "store", "downpour", "cli", "linkrelay"];

/// Most parameters of a function, as of clippy.
const MOST: usize = 7;

/// Checks every crate; the error lists the functions.
pub(crate) fn check() -> Result<(), Failure> {
    let mut wrong = Vec::new();
    for source in sources::of(&CRATES)? {
        wrong.extend(excessive(&source.code).into_iter().map(|(line, name, count)| {
            format!("{}:{line}: {name} has {count} parameters, with those in tuples", source.path)
        }));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::new(wrong.join("\n"))) }
}

/// Returns the functions with too many parameters: line, name, and how many.
fn excessive(code: &str) -> Vec<(usize, &str, usize)> {
    let declared = code.match_indices("fn ").filter_map(|(at, _)| {
        let rest = &code[at + 3..];
        let name = &rest[..rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?];
        let list = rest[name.len()..].strip_prefix(['(', '<'])?;
        // Behind generic parameters, which have no parentheses but those of bounds.
        let list = if rest[name.len()..].starts_with('<') { list.split_once(">(")?.1 } else { list };
        let count = parameters(list);
        let line = code[..at].matches('\n').count() + 1;
        (!name.is_empty() && count > MOST).then_some((line, name, count))
    });
    declared.collect()
}

/// Counts the names of a list of parameters up to its closing parenthesis: those in a pattern one by one.
fn parameters(list: &str) -> usize {
    let (mut depth, mut angles, mut count, mut in_pattern, mut is_empty) = (0, 0, 0, true, true);
    let mut before = ' ';
    for c in list.chars() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            '<' => angles += 1,
            '>' if before != '-' && before != '=' => angles -= 1,
            // The end of a pattern.
            ':' if depth == 0 && angles == 0 => in_pattern = false,
            ',' if depth == 0 && angles == 0 => {
                (count, in_pattern, is_empty) = (count + usize::from(!is_empty), true, true)
            }
            ',' if in_pattern => count += 1,
            _ => {}
        }
        is_empty &= c.is_whitespace() || c == ',';
        before = c;
    }
    count + usize::from(!is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_tuples_are_parameters() {
        for (list, count) in [
            (")", 0),
            ("a: u8)", 1),
            ("&self, a: u8, (b, c): (u8, Vec<(u8, u8)>),\n) -> u8", 4),
            ("f: impl Fn(u8, u8) -> u8, g: &mut dyn FnMut(), [h, i]: [u8; 2])", 4),
            ("map: HashMap<u8, u8>, Pair { one, two }: Pair)", 3),
        ] {
            assert_eq!(parameters(list), count, "{list}");
        }
        let code = "\nfn few<T: Into<u8>>(a: T) {}\nfn many((a, b, c, d): [u8; 4], (e, f, g, h): [u8; 4]) {}";
        assert_eq!(excessive(code), [(3, "many", 8)]);
    }
}
