//! Checks of received names, which are hostile, before they touch the file system.

/// Maximum length of an entry's path and of a symlink's target, in bytes (Linux `PATH_MAX`).
pub const MAX_PATH: usize = 4096;
/// Maximum length of a path component, in bytes (POSIX `NAME_MAX` of the common file systems).
pub const MAX_COMPONENT: usize = 255;
/// Prefix of the names of all staging directories.
pub const STAGING_PREFIX: &str = ".downpour-";
/// Base32 characters after the prefix.
pub const STAGING_CHARACTERS: usize = 8;

/// The rule that a received name breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No bytes at all, or two `/` in a row, or one at the end.
    #[error("empty component")]
    Empty,
    /// The name begins with `/`.
    #[error("absolute path")]
    Absolute,
    /// A component is `.` or `..`.
    #[error("component . or ..")]
    Dots,
    /// The name contains a NUL byte.
    #[error("contains a NUL byte")]
    Nul,
    /// Longer than [`MAX_PATH`], or a component longer than [`MAX_COMPONENT`].
    #[error("too long")]
    TooLong,
    /// The name has several components instead of one.
    #[error("several components")]
    Slash,
    /// The name has the form of a staging directory's name.
    #[error("reserved for staging directories")]
    Reserved,
    /// Its parent directory was not announced before it.
    #[error("parent directory was not announced")]
    Orphan,
    /// The name was received before.
    #[error("announced twice")]
    Duplicate,
}

/// Checks the form of a received path; returns it with its first component.
///
/// The sink checks separately whether its parent was announced.
///
/// # Errors
/// The rule it breaks.
pub fn check_path(path: &[u8]) -> Result<&[u8], NameError> {
    if path.len() > MAX_PATH {
        return Err(NameError::TooLong);
    }
    if path.starts_with(b"/") {
        return Err(NameError::Absolute);
    }
    if path.contains(&0) {
        return Err(NameError::Nul);
    }
    for component in path.split(|b| *b == b'/') {
        match component {
            b"" => return Err(NameError::Empty),
            b"." | b".." => return Err(NameError::Dots),
            long if long.len() > MAX_COMPONENT => return Err(NameError::TooLong),
            _ => {}
        }
    }
    Ok(path.split(|b| *b == b'/').next().unwrap_or(path))
}

/// Checks the target of a received symlink: it is stored unchanged and never followed, so only its form counts.
///
/// # Errors
/// The rule broken by an empty or too long target, or one with a NUL byte.
pub fn check_target(target: &[u8]) -> Result<(), NameError> {
    match target {
        [] => Err(NameError::Empty),
        long if long.len() > MAX_PATH => Err(NameError::TooLong),
        nul if nul.contains(&0) => Err(NameError::Nul),
        _ => Ok(()),
    }
}

/// Whether a name at the top of a target could be that of a staging directory; some file systems ignore case.
#[must_use]
pub fn is_staging_name(name: &[u8]) -> bool {
    let Some((start, id)) = name.split_at_checked(STAGING_PREFIX.len()) else { return false };
    let is_digit = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'a'..=b'z' | b'2'..=b'7');
    start.eq_ignore_ascii_case(STAGING_PREFIX.as_bytes()) && id.len() == STAGING_CHARACTERS && id.iter().all(is_digit)
}

/// Whether a symbolic link at `path` with this target may point out of the copied tree: it is absolute, has more `..`
/// than directories above it, or has one after a name, which may be that of another link. rsync's `--safe-links`
/// decides in the same way.
#[must_use]
pub fn link_leads_out(path: &[u8], target: &[u8]) -> bool {
    let above = path.iter().filter(|byte| **byte == b'/').count();
    let mut components =
        target.split(|byte| *byte == b'/').filter(|component| !matches!(*component, b"" | b".")).peekable();
    let mut up = 0;
    while components.next_if(|component| *component == b"..").is_some() {
        up += 1;
    }
    target.starts_with(b"/") || up > above || components.any(|component| component == b"..")
}

/// Removes the redundant parts of a listed name: leading, trailing and repeated slashes, and `.` components.
pub fn tidy(name: &mut Vec<u8>) {
    let is_plain = |component: &[u8]| !matches!(component, b"" | b".");
    if !name.split(|b| *b == b'/').all(is_plain) {
        let components: Vec<_> = name.split(|b| *b == b'/').filter(|component| is_plain(component)).collect();
        *name = components.join(&b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(path: &[u8]) -> Option<NameError> {
        check_path(path).err()
    }

    #[test]
    fn only_plain_relative_paths_pass() {
        assert_eq!(rule(b"a/b/-c/..d/e.."), None);
        assert_eq!(rule(b"\xff\n"), None);
        assert_eq!(rule(b"../../etc/passwd"), Some(NameError::Dots));
        assert_eq!(rule(b"a/.."), Some(NameError::Dots));
        assert_eq!(rule(b"./a"), Some(NameError::Dots));
        assert_eq!(rule(b"/etc/passwd"), Some(NameError::Absolute));
        assert_eq!(rule(b""), Some(NameError::Empty));
        assert_eq!(rule(b"a//b"), Some(NameError::Empty));
        assert_eq!(rule(b"a/"), Some(NameError::Empty));
        assert_eq!(rule(b"a\0b"), Some(NameError::Nul));
        assert_eq!(rule(&[b'a'; 255]), None);
        assert_eq!(rule(&[b'a'; 256]), Some(NameError::TooLong));
        assert_eq!(rule(&b"a/".repeat(2048)[..4095]), None);
        assert_eq!(rule(&b"a/".repeat(2049)[..4097]), Some(NameError::TooLong));
    }

    #[test]
    fn link_leads_out_distinguishes_links() {
        for (path, target) in [("l", "a"), ("l", "./a/b"), ("t/l", "../t/a"), ("t/u/l", "../../x"), ("t/l", "..")] {
            assert!(!link_leads_out(path.as_bytes(), target.as_bytes()), "{path} -> {target}");
        }
        for (path, target) in
            [("l", "/etc"), ("l", ".."), ("t/l", "../../x"), ("t/u/l", "a/../x"), ("t/u/l", "../a/..")]
        {
            assert!(link_leads_out(path.as_bytes(), target.as_bytes()), "{path} -> {target}");
        }
    }

    #[test]
    fn the_first_component_is_returned() {
        assert_eq!(check_path(b"top/a/b").unwrap(), b"top");
        assert_eq!(check_path(b"top").unwrap(), b"top");
    }
}
