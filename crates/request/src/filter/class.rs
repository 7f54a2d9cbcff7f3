//! A class of bytes in a pattern: `[a-z]`, `[!0-9]`, `[[:alpha:]_]`.

use super::PatternError;

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class([u64; 4]);

impl Class {
    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    /// Reads the text behind the opening bracket; returns the class and the text behind its closing bracket. A closing
    /// bracket in the first place is a member, and so is a byte after a backslash.
    pub(super) fn parse(text: &[u8]) -> Result<(Self, &[u8]), PatternError> {
        let (negated, mut rest) = match text {
            [b'!' | b'^', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let mut class = Self([0; 4]);
        let mut first = true;
        loop {
            match rest {
                [b']', after @ ..] if !first => {
                    let bits = if negated { class.0.map(|bits| !bits) } else { class.0 };
                    return Ok((Self(bits), after));
                }
                [b'[', b':', after @ ..] => rest = class.add_named(after)?,
                _ => {
                    let (low, after) = member(rest)?;
                    match after {
                        [b'-', end @ ..] if !end.starts_with(b"]") => {
                            let (high, after) = member(end)?;
                            (low..=high).for_each(|byte| class.add(byte));
                            rest = after;
                        }
                        _ => {
                            class.add(low);
                            rest = after;
                        }
                    }
                }
            }
            first = false;
        }
    }

    /// Adds a class of POSIX, in the "C" locale; returns the text behind it.
    fn add_named<'a>(&mut self, text: &'a [u8]) -> Result<&'a [u8], PatternError> {
        let end = text.windows(2).position(|pair| pair == b":]").ok_or(PatternError::OpenClass)?;
        let is_in: fn(&u8) -> bool = match &text[..end] {
            b"alnum" => u8::is_ascii_alphanumeric,
            b"alpha" => u8::is_ascii_alphabetic,
            b"blank" => |byte| matches!(byte, b' ' | b'\t'),
            b"cntrl" => u8::is_ascii_control,
            b"digit" => u8::is_ascii_digit,
            b"graph" => u8::is_ascii_graphic,
            b"lower" => u8::is_ascii_lowercase,
            b"print" => |byte| matches!(byte, b' '..=b'~'),
            b"punct" => u8::is_ascii_punctuation,
            b"space" => |byte| matches!(byte, b' ' | b'\t'..=b'\r'),
            b"upper" => u8::is_ascii_uppercase,
            b"xdigit" => u8::is_ascii_hexdigit,
            _ => return Err(PatternError::ClassName),
        };
        (0..=u8::MAX).filter(is_in).for_each(|byte| self.add(byte));
        Ok(&text[end + 2..])
    }
}

/// Returns one byte of a class, and the text behind it.
fn member(text: &[u8]) -> Result<(u8, &[u8]), PatternError> {
    match text {
        [b'\\', byte, rest @ ..] | [byte, rest @ ..] => Ok((*byte, rest)),
        [] => Err(PatternError::OpenClass),
    }
}
