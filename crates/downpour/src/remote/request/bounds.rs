//! Bounds on the length of a request and on its size in memory: an empty name takes 3 bytes of text, and many times as
//! much once it is read.

use crate::error::{CopyError, Error, KeyRefusal};

/// Estimated memory of each value, beside the text: more than an element of a list takes, in this form and in that of
/// the transfer.
const VALUE: u64 = 64;
/// Estimated memory of each object in addition, which may be a map.
const OBJECT: u64 = 640;

/// Bounds on a request, in bytes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Bounds {
    /// Length of the text.
    pub(super) length: u32,
    /// Estimated size in memory.
    memory: u64,
    /// Length of one string.
    string: u64,
    is_limited: bool,
}

impl Bounds {
    /// For a user who could run anything: enough for a list of a million names.
    pub(in super::super) const OF_USER: Self =
        Self { length: 256 << 20, memory: 2 << 30, string: 256 << 20, is_limited: false };

    /// For a restricted key: enough for a list of a hundred thousand names. A string is at most a path.
    pub(in super::super) const LIMITED: Self =
        Self { length: 16 << 20, memory: 64 << 20, string: 16 << 10, is_limited: true };

    /// Checks the length of a request before it is read.
    ///
    /// # Errors
    /// It is too long.
    pub(super) fn check_length(&self, length: u64) -> Result<(), Error> {
        if length <= self.length.into() { Ok(()) } else { Err(self.refusal(length)) }
    }

    /// Checks the text of a request before it is parsed, by counting all possible values.
    ///
    /// # Errors
    /// It is too long, or its size in memory is too large.
    pub(super) fn check(&self, text: &[u8]) -> Result<(), Error> {
        self.check_length(text.len() as u64)?;
        let Size { memory, longest } = Size::of(text);
        if memory > self.memory {
            return Err(self.refusal(memory));
        }
        if longest > self.string { Err(self.refusal(longest)) } else { Ok(()) }
    }

    fn refusal(&self, bytes: u64) -> Error {
        match self.is_limited {
            true => Error::KeyRestricted(KeyRefusal::TooLarge(bytes)),
            false => CopyError::TooLarge(bytes).into(),
        }
    }
}

/// The estimated size of a JSON text.
struct Size {
    memory: u64,
    /// The length of its longest string.
    longest: u64,
}

impl Size {
    fn of(text: &[u8]) -> Self {
        let mut size = Self { memory: text.len() as u64, longest: 0 };
        // The length of the current string.
        let mut string: Option<u64> = None;
        let mut bytes = text.iter();
        while let Some(byte) = bytes.next() {
            match (byte, &mut string) {
                (b'"', None) => string = Some(0),
                (b'"', Some(length)) => {
                    size.longest = size.longest.max(*length);
                    string = None;
                }
                (b'\\', Some(length)) => {
                    *length += 2;
                    bytes.next();
                }
                (_, Some(length)) => *length += 1,
                (b'{', None) => size.memory += VALUE + OBJECT,
                (b'[' | b',' | b':', None) => size.memory += VALUE,
                (_, None) => {}
            }
        }
        size.longest = size.longest.max(string.unwrap_or(0));
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_bounds_ignore_string_contents() {
        for (text, values, objects, longest) in [
            (r#""""#, 0, 0, 0),
            (r#"["",""]"#, 2, 0, 0),
            (r#"{"a":["{[,:\"","b"]}"#, 4, 1, 6),
            (r#"[{},{"a":1,"b":{}}]"#, 8, 3, 1),
            (r#"["unfinished"#, 1, 0, 10),
        ] {
            let size = Size::of(text.as_bytes());
            let wanted = text.len() as u64 + values * VALUE + objects * OBJECT;
            assert_eq!((size.memory, size.longest), (wanted, longest), "{text}");
        }
    }

    #[test]
    fn request_bounds_lower_for_restricted_key() {
        let names = |count: usize| format!("[{}]", vec![r#""""#; count].join(","));
        for (text, is_limited) in [
            (names(100_000), true),
            (names(2_000_000), false),
            (format!("\"{}\"", "x".repeat(20_000)), false),
            (format!("[{}]", vec!["{}"; 100_000].join(",")), false),
        ] {
            assert!(Bounds::OF_USER.check(text.as_bytes()).is_ok());
            assert_eq!(Bounds::LIMITED.check(text.as_bytes()).is_ok(), is_limited, "{} bytes", text.len());
        }
        let refused = Bounds::LIMITED.check(names(2_000_000).as_bytes()).unwrap_err().to_string();
        assert!(refused.contains("request too large: 134 MB"), "{refused}");
    }
}
