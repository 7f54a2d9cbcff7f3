//! Expands paths that begin with `~`, as a shell does: `~` and `~/x` are in the home of this user, `~name` and
//! `~name/x` in that of another. A path with an unknown user is refused: taken literally, it would become a directory
//! of that name.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::{User, geteuid};

/// Why a path that begins with `~` cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HomeError {
    /// Neither `HOME` nor the system has a home for this user.
    #[error("cannot expand {}: this user has no home directory; write the full path", .0.display())]
    NoHome(PathBuf),
    /// No user of the host has this name.
    #[error("cannot expand {}: no such user; write ./{} for a file of that name", .0.display(), .0.display())]
    NoUser(PathBuf),
}

/// Returns whether a path begins with `~`, and therefore with the name of a user.
pub(crate) fn names_user(path: &Path) -> bool {
    matches!(path.as_os_str().as_bytes(), [b'~', next, ..] if *next != b'/')
}

/// Expands `~` and `~name` at the beginning of a path, as a login shell does.
///
/// # Errors
/// See [`HomeError`].
pub fn expand(path: &Path) -> Result<PathBuf, HomeError> {
    let Some(tilde) = path.as_os_str().as_bytes().strip_prefix(b"~") else { return Ok(path.to_owned()) };
    let slash = tilde.iter().position(|byte| *byte == b'/').unwrap_or(tilde.len());
    let (name, rest) = tilde.split_at(slash);
    let home = if name.is_empty() {
        own().ok_or_else(|| HomeError::NoHome(path.to_owned()))?
    } else {
        of_user(OsStr::from_bytes(name)).ok_or_else(|| HomeError::NoUser(path.to_owned()))?
    };
    // Not joined, which would drop a slash at the end.
    let mut whole = home.into_os_string().into_vec();
    if !rest.is_empty() && whole.ends_with(b"/") {
        whole.pop();
    }
    whole.extend(rest);
    Ok(OsStr::from_bytes(&whole).into())
}

/// Expands a path that a local shell may have expanded before: an existing file of that name is meant, since shells
/// expand `~` and replace wildcards by file names.
///
/// # Errors
/// See [`HomeError`].
pub fn expand_typed(path: &Path) -> Result<PathBuf, HomeError> {
    let first = path.components().next();
    let exists = || first.is_some_and(|first| Path::new(first.as_os_str()).symlink_metadata().is_ok());
    if path.as_os_str().as_bytes().starts_with(b"~") && exists() { Ok(path.to_owned()) } else { expand(path) }
}

/// Returns the home of this user.
fn own() -> Option<PathBuf> {
    let named = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    named.or_else(|| User::from_uid(geteuid()).ok().flatten().map(|user| user.dir))
}

/// Returns the home of another user. A static program reads only /etc/passwd; names that are not in it are looked up
/// with `getent`, which uses all sources of the host (LDAP, sssd).
fn of_user(name: &OsStr) -> Option<PathBuf> {
    let name = name.to_str().filter(|name| !name.starts_with('-') && !name.contains([':', '\n', '\0']))?;
    if let Ok(Some(user)) = User::from_name(name) {
        return Some(user.dir);
    }
    let asked = Command::new("getent").args(["passwd", name]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    home_in(&asked.ok().filter(|asked| asked.status.success())?.stdout, name)
}

/// Returns the home in a line of `passwd(5)`. `getent` takes a number for that of a user, which is no name.
fn home_in(line: &[u8], name: &str) -> Option<PathBuf> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\n').next()?.split(|byte| *byte == b':').collect();
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    let has_name = fields.first().is_some_and(|found| !is_number || *found == name.as_bytes());
    let home = fields.get(5).filter(|home| has_name && home.starts_with(b"/"))?;
    Some(OsStr::from_bytes(home).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_is_read_as_by_a_shell() {
        let me = User::from_uid(geteuid()).expect("a lookup").expect("this user");
        let home = own().expect("a home");
        let root = User::from_name("root").expect("a lookup").expect("root").dir;
        let shown = |path: &Path| path.display().to_string();
        for (path, expanded) in [
            ("~".to_owned(), shown(&home)),
            ("~/".to_owned(), format!("{}/", shown(&home))),
            ("~/x/.".to_owned(), format!("{}/x/.", shown(&home))),
            (format!("~{}", me.name), shown(&me.dir)),
            (format!("~{}/a//b/", me.name), format!("{}/a//b/", shown(&me.dir))),
            ("~root/x".to_owned(), format!("{}/x", shown(&root))),
            ("./~root/x".to_owned(), "./~root/x".to_owned()),
            ("a/~/x".to_owned(), "a/~/x".to_owned()),
            (String::new(), String::new()),
        ] {
            assert_eq!(expand(Path::new(&path)).map(|path| shown(&path)), Ok(expanded), "{path}");
        }
    }

    #[test]
    fn tilde_unknown_user_refused() {
        for path in ["~no-such-user", "~no-such-user/x", "~+", "~-", "~-x/y", "~0", "~root:x/y", "~$report.docx", "~*"]
        {
            let path = Path::new(path);
            assert_eq!(expand(path), Err(HomeError::NoUser(path.into())), "{path:?}");
        }
        let text = HomeError::NoUser("~x/y".into()).to_string();
        assert_eq!(text, "cannot expand ~x/y: no such user; write ./~x/y for a file of that name");
    }

    #[test]
    fn getent_line_gives_home_of_name() {
        let line = b"who:*:7:7:W:/home/who:/bin/sh\n";
        assert_eq!(home_in(line, "who"), Some("/home/who".into()));
        assert_eq!(home_in(line, "WHO@example.org"), Some("/home/who".into()), "a directory may have its own spelling");
        assert_eq!(home_in(line, "7"), None);
        assert_eq!(home_in(b"who:*:7\n", "who"), None);
        assert_eq!(home_in(b"", "who"), None);
    }
}
