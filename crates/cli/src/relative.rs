//! `--relative`: sources that keep their paths, as names in the directory where those begin.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use downpour::files::permitted::has_wildcards;
use downpour::remote::Location;

use crate::exit::{Code, Failure};

/// Where the part of a path begins that is kept.
const PIVOT: &[u8] = b"/./";

/// Sources that keep their paths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Relative {
    /// The directory in which the paths of all begin.
    pub(crate) base: Location,
    /// These paths; `None` for all that is in it.
    pub(crate) names: Option<Vec<Vec<u8>>>,
}

/// Returns the common beginning of sources, and their paths from there.
///
/// # Errors
/// Sources that begin in several directories, that lead upwards, or that another machine would have to find.
pub(crate) fn relative(sources: &[Location]) -> Result<Relative, Failure> {
    let refused = |message: &str| Err(Failure::new(Code::Usage, format!("--relative: {message}")));
    let (mut base, mut names) = (None, Vec::new());
    for source in sources {
        let path = source.path();
        let (begin, rest) = split(path.as_os_str().as_bytes());
        let begin = at(source, begin);
        if base.get_or_insert_with(|| begin.clone()) != &begin {
            return refused(
                "these paths begin in several directories: give all the same beginning, with /./ behind it, or copy one after the other",
            );
        }
        let parts = || rest.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        if parts().any(|part| part == b"..") {
            return refused("a path with .. has no place below the target: write it without");
        }
        if ends_in_link(source, rest) {
            return refused("a slash behind a link stands for what it leads to: name that itself");
        }
        if matches!(source, Location::Remote { .. }) && has_wildcards(rest) {
            return refused("wildcards are not searched on another machine: name the paths");
        }
        names.push(parts().collect::<Vec<_>>().join(&b'/'));
    }
    let is_all = names.iter().any(Vec::is_empty);
    // The command line has a source.
    let base = base.unwrap_or_else(|| Location::Local(".".into()));
    Ok(Relative { base, names: (!is_all).then_some(names) })
}

/// Whether a source with a slash at its end is, or on another machine may be, a link to a directory: that would be sent as a
/// link.
fn ends_in_link(source: &Location, rest: &[u8]) -> bool {
    let Some(name) = rest.strip_suffix(b"/.").or_else(|| rest.strip_suffix(b"/")) else { return false };
    match source {
        Location::Local(path) => {
            let length = path.as_os_str().len() - (rest.len() - name.len());
            Path::new(OsStr::from_bytes(&path.as_os_str().as_bytes()[..length])).is_symlink()
        }
        Location::Remote { .. } => !name.is_empty(),
    }
}

/// Splits a path into the directory where the kept part begins, and that part.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    if let Some(at) = path.windows(PIVOT.len()).position(|part| part == PIVOT) {
        let begin = if at == 0 { &b"/"[..] } else { &path[..at] };
        return (begin, &path[at + PIVOT.len()..]);
    }
    match path {
        [b'/', rest @ ..] => (b"/", rest),
        [b'~', ..] => match path.iter().position(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (path, b""),
        },
        rest => (b".", rest),
    }
}

/// Returns the contents of a directory on the machine of `source`.
fn at(source: &Location, directory: &[u8]) -> Location {
    let path = [directory.strip_suffix(b"/").unwrap_or(directory), b"/"].concat();
    match source {
        Location::Local(_) => Location::Local(OsStr::from_bytes(&path).into()),
        Location::Remote { host, .. } => Location::Remote { host: host.clone(), path },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_kept_from_where_they_begin() {
        let local = |path: &str| Location::Local(path.into());
        let far = |path: &str| Location::Remote { host: "far".into(), path: path.into() };
        let names = |names: &[&str]| Some(names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>());
        for (sources, base, kept) in [
            (vec![local("a/b/c"), local("./d//e/")], local("./"), names(&["a/b/c", "d/e"])),
            (vec![local("/srv/./a/b"), local("/srv/./c")], local("/srv/"), names(&["a/b", "c"])),
            (vec![local("/a/b")], local("/"), names(&["a/b"])),
            (vec![local("/./a")], local("/"), names(&["a"])),
            (vec![local("x/./.")], local("x/"), None),
            (vec![local("a"), local(".")], local("./"), None),
            (vec![far("~me/a")], far("~me/"), names(&["a"])),
            (vec![far("a/b")], far("./"), names(&["a/b"])),
        ] {
            let found = relative(&sources).unwrap_or_else(|failure| panic!("{sources:?}: {}", failure.message));
            assert_eq!(found, Relative { base, names: kept }, "{sources:?}");
        }
        for sources in [
            vec![local("a"), local("/b")],
            vec![local("a/../b")],
            vec![far("a*")],
            vec![far("a/")],
            vec![local("/proc/self/")],
        ] {
            assert!(relative(&sources).is_err(), "{sources:?}");
        }
    }
}
