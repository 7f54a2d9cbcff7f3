//! `--relative`: sources that keep their paths, as names in a common base directory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use downpour::files::permitted::has_wildcards;
use downpour::remote::Location;

use crate::exit::{Code, Failure};

/// Separates the base directory from the kept part of a path.
const PIVOT: &[u8] = b"/./";

/// Sources that keep their paths.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Relative {
    /// The common base directory.
    pub(crate) base: Location,
    /// The paths below it; `None` for everything in it.
    pub(crate) names: Option<Vec<Vec<u8>>>,
}

/// Returns the common base directory of sources, and their paths below it.
///
/// # Errors
/// Sources with several base directories, with `..`, or with remote wildcards.
pub(crate) fn relative(sources: &[Location]) -> Result<Relative, Failure> {
    let refused = |message: &str| Err(Failure::new(Code::Usage, format!("--relative: {message}")));
    let (mut base, mut names) = (None, Vec::new());
    for source in sources {
        let path = source.path();
        let (begin, rest) = split(path.as_os_str().as_bytes());
        let begin = at(source, begin);
        if base.get_or_insert_with(|| begin.clone()) != &begin {
            return refused(
                "sources have different base directories: mark a common one with /./, or copy one source after the other",
            );
        }
        let parts = || rest.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".");
        if parts().any(|part| part == b"..") {
            return refused("a source contains ..: write the path without it");
        }
        if ends_in_link(source, rest) {
            return refused("a source is a link with a trailing slash: name the target of the link");
        }
        if matches!(source, Location::Remote { .. }) && has_wildcards(rest) {
            return refused("remote wildcards are not supported: name the paths");
        }
        names.push(parts().collect::<Vec<_>>().join(&b'/'));
    }
    let is_all = names.iter().any(Vec::is_empty);
    // The command line has a source.
    let base = base.unwrap_or_else(|| Location::Local(".".into()));
    Ok(Relative { base, names: (!is_all).then_some(names) })
}

/// Returns whether a source with a trailing slash is, or on a remote host may be, a link to a directory, which would be sent
/// as a link.
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

/// Splits a path into the base directory and the kept part.
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

/// Returns the contents of a directory on the host of `source`.
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
    fn relative_splits_sources_at_their_base() {
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
