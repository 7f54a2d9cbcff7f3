//! Changes of permissions, as chmod(1) and rsync's `--chmod` write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Permission bits, set-id bits and the sticky bit.
const ALL: u32 = 0o7777;

/// Changes of the sender's permissions, in order: `D755,F644`, `ug+rX`, `Dg+s,o-rwx`. `D` is for directories and `F`
/// for files; without a letter of `ugoa`, the umask denies some.
///
/// Its JSON, the text, is part of the protocol between releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Chmod {
    text: String,
    changes: Vec<Change>,
}

/// An invalid change of permissions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid change of permissions {0:?}: use a form such as D755,F644 or ug+rX")]
pub struct ChmodError(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    /// Of directories, or of files alone; `None` for both.
    directories: Option<bool>,
    action: Action,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    /// These bits and no others.
    Absolute(u32),
    Relative {
        operator: Operator,
        /// The bits of the named classes, within which all others are left alone.
        whom: u32,
        /// No class was named: the umask denies some.
        is_masked: bool,
        bits: u32,
        /// `X`: permission to execute if any class may execute, or search a directory.
        executes_if_any: bool,
        /// `u`, `g` or `o` after the operator: the permissions of that class for the named ones.
        copied: Option<Class>,
    },
}

/// The classes to which three bits of a mode give permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    User,
    Group,
    Others,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Remove,
    Set,
}

impl Chmod {
    /// Returns the changed mode of a file or directory. `umask` is that of the process.
    #[must_use]
    pub fn apply(&self, mode: u32, is_directory: bool, umask: u32) -> u32 {
        let concerned = self.changes.iter().filter(|change| change.directories.is_none_or(|only| only == is_directory));
        // As for rsync, X asks whether the file was executable before all changes.
        let executes = is_directory || mode & 0o111 != 0;
        concerned.fold(mode, |mode, change| change.action.apply(mode, executes, umask))
    }

    /// Returns these changes with others after them.
    #[must_use]
    pub fn and(mut self, others: Self) -> Self {
        self.text = format!("{},{}", self.text, others.text);
        self.changes.extend(others.changes);
        self
    }
}

impl Action {
    fn apply(self, mode: u32, executes: bool, umask: u32) -> u32 {
        match self {
            Self::Absolute(bits) => (mode & !ALL) | bits,
            Self::Relative { operator, whom, is_masked, bits, executes_if_any, copied } => {
                let executes = executes_if_any && executes;
                let bits = bits | copied.map_or(0, |class| 0o111 * class.permissions(mode));
                let denied = if is_masked { umask & 0o777 } else { 0 };
                let bits = (bits | if executes { 0o111 } else { 0 }) & whom & !denied;
                match operator {
                    Operator::Add => mode | bits,
                    Operator::Remove => mode & !bits,
                    // The set-id bits of a directory are kept unless they are named, as for chmod(1).
                    Operator::Set => (mode & !(whom & 0o777)) | bits,
                }
            }
        }
    }
}

impl Class {
    /// Returns the permissions of the class in a mode, shifted to the bits of others.
    const fn permissions(self, mode: u32) -> u32 {
        let shift = match self {
            Self::User => 6,
            Self::Group => 3,
            Self::Others => 0,
        };
        mode >> shift & 0o7
    }
}

impl FromStr for Chmod {
    type Err = ChmodError;

    fn from_str(text: &str) -> Result<Self, ChmodError> {
        let changes: Option<Vec<Change>> = text.split(',').map(read).collect();
        let changes = changes.ok_or_else(|| ChmodError(text.to_owned()))?;
        Ok(Self { text: text.to_owned(), changes })
    }
}

/// Reads one change.
fn read(text: &str) -> Option<Change> {
    let (directories, text) = match text.split_at_checked(1)? {
        ("D", rest) => (Some(true), rest),
        ("F", rest) => (Some(false), rest),
        _ => (None, text),
    };
    let is_octal = (1..=4).contains(&text.len()) && text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    let action = match u32::from_str_radix(text, 8) {
        Ok(bits) if is_octal => Action::Absolute(bits),
        _ => relative(text)?,
    };
    Some(Change { directories, action })
}

/// Reads a change such as `ug+rX`.
fn relative(text: &str) -> Option<Action> {
    let at = text.find(['+', '-', '='])?;
    let (named, rest) = text.split_at(at);
    let operator = match rest.as_bytes()[0] {
        b'+' => Operator::Add,
        b'-' => Operator::Remove,
        _ => Operator::Set,
    };
    let mut whom = 0;
    for who in named.bytes() {
        whom |= match who {
            b'u' => 0o4700,
            b'g' => 0o2070,
            b'o' => 0o1007,
            b'a' => ALL,
            _ => return None,
        };
    }
    let is_masked = named.is_empty();
    // As for rsync, without `u` or `g` it is the bit of the user.
    let set_id = match (named.contains('u'), named.contains('g')) {
        (true, true) => 0o6000,
        (false, true) => 0o2000,
        (_, false) => 0o4000,
    };
    let copied = match &rest[1..] {
        "u" => Some(Class::User),
        "g" => Some(Class::Group),
        "o" => Some(Class::Others),
        _ => None,
    };
    let (mut bits, mut executes_if_any) = (0, false);
    for permission in rest[1..].bytes().filter(|_| copied.is_none()) {
        match permission {
            b'r' => bits |= 0o444,
            b'w' => bits |= 0o222,
            b'x' => bits |= 0o111,
            b's' => bits |= set_id,
            b't' => bits |= 0o1000,
            b'X' => executes_if_any = true,
            _ => return None,
        }
    }
    let whom = if is_masked { ALL } else { whom | (bits & 0o5000) };
    Some(Action::Relative { operator, whom, is_masked, bits, executes_if_any, copied })
}

impl TryFrom<String> for Chmod {
    type Error = ChmodError;

    fn try_from(text: String) -> Result<Self, ChmodError> {
        text.parse()
    }
}

impl From<Chmod> for String {
    fn from(chmod: Chmod) -> Self {
        chmod.text
    }
}

impl fmt::Display for Chmod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chmod_changes_match_chmod_and_rsync() {
        for (text, file, directory) in [
            // From 0640 and 0750, with the umask 0022.
            ("D755,F644", 0o644, 0o755),
            ("a+r", 0o644, 0o754),
            ("ug+rwX", 0o660, 0o770),
            ("+w", 0o640, 0o750),
            ("+rx", 0o755, 0o755),
            ("g=u", 0o660, 0o770),
            ("g+u", 0o660, 0o770),
            ("u-g", 0o240, 0o250),
            ("o=g", 0o644, 0o755),
            ("u=rwx,g=u", 0o770, 0o770),
            ("+u", 0o644, 0o755),
            ("g=ur", 0, 0),
            ("o=rX", 0o644, 0o755),
            ("go-rwx", 0o600, 0o700),
            ("Dg+s", 0o640, 0o2750),
            ("Fu-w,g=", 0o400, 0o700),
            ("7", 0o7, 0o7),
            ("D1777", 0o640, 0o1777),
            ("o+t", 0o1640, 0o1750),
            ("u+s", 0o4640, 0o4750),
            ("a+s", 0o4640, 0o4750),
            ("ug+s", 0o6640, 0o6750),
            ("a-x,a+X", 0o640, 0o751),
        ] {
            let Ok(chmod) = text.parse::<Chmod>() else {
                assert_eq!((file, directory), (0, 0), "{text} is refused");
                continue;
            };
            assert_eq!(
                (chmod.apply(0o640, false, 0o022), chmod.apply(0o750, true, 0o022)),
                (file, directory),
                "{text}"
            );
            let json = serde_json::to_string(&chmod).unwrap();
            assert_eq!(serde_json::from_str::<Chmod>(&json).unwrap(), chmod, "{json}");
        }
        for text in ["", ",", "D", "u", "z+r", "u+z", "8", "77777", "F", "D755,", "ü"] {
            assert!(text.parse::<Chmod>().is_err(), "{text:?}");
        }
    }
}
