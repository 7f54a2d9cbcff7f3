//! One pattern of rsync's language.

use std::fmt::{self, Write as _};

use super::PatternError;
use super::class::Class;

/// A pattern for paths, as rsync understands it.
///
/// - A pattern that begins with `/` matches from the transfer's root, any other at the end of the path, from any of its
///   components on.
/// - One that ends in `/` matches directories only; one that ends in `/***` matches a directory and everything in it.
/// - `?` is any byte but `/`, `*` any number of them; `**` is any bytes; `[a-z]`, `[!a-z]` and `[[:alpha:]]` are one
///   byte of a class.
/// - A backslash makes the next byte literal, in a pattern that has `*`, `?` or `[` at all.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct Pattern {
    pub(super) text: Vec<u8>,
    pub(super) anchored: bool,
    pub(super) directories_only: bool,
    pub(super) tokens: Vec<Token>,
    reach: Reach,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Byte(u8),
    /// `?`
    NotSlash,
    Class(Box<Class>),
    /// `*`
    Star,
    /// `**`
    DeepStar,
}

/// The number of path components that a pattern can match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// So many components.
    Components(usize),
    /// Any number: it has a `**`.
    Any,
}

impl Token {
    pub(super) fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Byte(own) => *own == byte,
            Self::NotSlash => byte != b'/',
            Self::Class(class) => byte != b'/' && class.has(byte),
            Self::Star | Self::DeepStar => false,
        }
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// A pattern that is empty but for slashes, contains a NUL byte, or a class without an end or with an unknown name.
    pub fn new(text: &[u8]) -> Result<Self, PatternError> {
        if text.contains(&0) {
            return Err(PatternError::Nul);
        }
        let (anchored, body) = text.strip_prefix(b"/").map_or((false, text), |body| (true, body));
        let kept = body.iter().rposition(|b| *b != b'/').map_or(0, |at| at + 1);
        let directories_only = kept < body.len();
        let tokens = tokens(&body[..kept])?;
        if tokens.is_empty() {
            return Err(PatternError::Empty);
        }
        let slashes = tokens.iter().filter(|token| **token == Token::Byte(b'/')).count();
        let reach = if tokens.contains(&Token::DeepStar) { Reach::Any } else { Reach::Components(slashes + 1) };
        Ok(Self { text: text.to_vec(), anchored, directories_only, tokens, reach })
    }

    /// Returns the pattern as it was written.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the pattern matches the name at `path`, components joined by `/`, beginning at the transfer's root.
    #[must_use]
    pub fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        if self.directories_only && !is_directory {
            return false;
        }
        if self.matches_by(&self.tokens, path) {
            return true;
        }
        // Of `directory/***`, the part that matches the directory itself.
        let directory = self.tokens.len().checked_sub(2).filter(|_| is_directory && self.text.ends_with(b"/***"));
        directory.is_some_and(|length| self.matches_by(&self.tokens[..length], path))
    }

    /// Whether these tokens match the path from a position where this pattern may begin.
    fn matches_by(&self, tokens: &[Token], path: &[u8]) -> bool {
        if self.anchored {
            return matches(tokens, path);
        }
        match self.reach {
            Reach::Components(count) => last_components(path, count).is_some_and(|end| matches(tokens, end)),
            Reach::Any => {
                // A `**/` in front may match nothing.
                let front = tokens.strip_prefix(&[Token::DeepStar, Token::Byte(b'/')]);
                let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/');
                front.is_some_and(|rest| matches(rest, path))
                    || matches(tokens, path)
                    || slashes.map(|(at, _)| &path[at + 1..]).any(|end| matches(tokens, end))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.text.utf8_chunks() {
            for c in chunk.valid().chars() {
                if c.is_control() || c == '\\' { write!(f, "{}", c.escape_default())? } else { f.write_char(c)? }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        Ok(())
    }
}

impl TryFrom<Vec<u8>> for Pattern {
    type Error = PatternError;

    fn try_from(text: Vec<u8>) -> Result<Self, PatternError> {
        Self::new(&text)
    }
}

impl From<Pattern> for Vec<u8> {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

/// Returns the last `count` components of a path that has so many.
fn last_components(path: &[u8], count: usize) -> Option<&[u8]> {
    let mut slashes = path.iter().enumerate().rev().filter(|(_, b)| **b == b'/');
    match slashes.nth(count - 1) {
        Some((slash, _)) => Some(&path[slash + 1..]),
        None => (path.split(|b| *b == b'/').count() == count).then_some(path),
    }
}

fn tokens(text: &[u8]) -> Result<Vec<Token>, PatternError> {
    if !text.iter().any(|b| matches!(b, b'*' | b'?' | b'[')) {
        return Ok(text.iter().copied().map(Token::Byte).collect());
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        tokens.push(match byte {
            b'?' => Token::NotSlash,
            b'*' => {
                let stars = rest.iter().take_while(|b| **b == b'*').count();
                rest = &rest[stars..];
                if stars == 0 { Token::Star } else { Token::DeepStar }
            }
            b'[' => {
                let (class, after) = Class::parse(rest)?;
                rest = after;
                Token::Class(Box::new(class))
            }
            b'\\' => {
                let escaped = rest.split_first();
                rest = escaped.map_or(rest, |(_, after)| after);
                Token::Byte(escaped.map_or(b'\\', |(byte, _)| *byte))
            }
            byte => Token::Byte(byte),
        });
    }
    Ok(tokens)
}

/// Whether the tokens match the whole text.
///
/// Only the last `*` and the last `**` are tried again: the tokens before them have their shortest match, and a longer
/// one would leave less for them; text between two `*` of different components has only one match.
fn matches(tokens: &[Token], text: &[u8]) -> bool {
    /// The position to continue from if a star takes one byte more: token and byte.
    type Retry = Option<(usize, usize)>;
    let (mut star, mut deep): (Retry, Retry) = (None, None);
    let (mut token, mut at) = (0, 0);
    loop {
        match (tokens.get(token), text.get(at)) {
            (None, None) => return true,
            (Some(Token::Star), _) => {
                token += 1;
                star = Some((token, at));
                continue;
            }
            (Some(Token::DeepStar), _) => {
                token += 1;
                (star, deep) = (None, Some((token, at)));
                continue;
            }
            (Some(single), Some(byte)) if single.takes(*byte) => {
                (token, at) = (token + 1, at + 1);
                continue;
            }
            _ => {}
        }
        let longer = |retry: Retry, crosses: bool| {
            retry
                .filter(|(_, from)| text.get(*from).is_some_and(|b| crosses || *b != b'/'))
                .map(|(t, from)| (t, from + 1))
        };
        star = longer(star, false);
        if star.is_none() {
            deep = longer(deep, true);
        }
        match star.or(deep) {
            Some(retry) => (token, at) = retry,
            None => return false,
        }
    }
}
