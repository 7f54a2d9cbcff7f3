//! Reads a file only if no user but its owner and root can change it, as ssh requires of `~/.ssh/config`: a line
//! `ssh = ...` in it runs a program.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::process::geteuid;

/// The bits of a mode by which a group or others can write.
const OTHERS_WRITE: u32 = 0o022;
/// The bit of a directory's mode by which only the owner of an entry can replace it.
const STICKY: u32 = 0o1000;
/// Most symbolic links on a path, as in Linux.
const MAX_LINKS: u32 = 40;

/// The reason to reject a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrustError {
    /// The system's error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file, or a directory on its path, belongs to another user.
    #[error("{} belongs to another user (uid {owner}), who could make it run any program: {advice} {}, or use --config none", .path.display(), quoted(path))]
    Owner {
        path: PathBuf,
        owner: u32,
        /// The command that corrects it.
        advice: String,
    },
    /// Other users can write the file or a directory on its path.
    #[error("{} is writable by other users, who could make it run any program: chmod go-w {}", .path.display(), quoted(path))]
    Writable { path: PathBuf },
    /// Its path now leads to another file.
    #[error("the file was replaced during the read: try again")]
    Replaced,
}

/// The user whose files are trusted, and the directory up to which they are checked.
#[derive(Debug)]
pub(super) struct Trusted {
    user: u32,
    /// Directories above it are not checked, as in sshd: they are the administrator's.
    home: Option<PathBuf>,
}

impl Trusted {
    /// Trusts the user of this process, with this home directory.
    pub(super) fn user_at(home: Option<&Path>) -> Self {
        Self { user: geteuid().as_raw(), home: home.and_then(|home| home.canonicalize().ok()) }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// See [`TrustError`].
    pub(super) fn read(&self, path: &Path) -> Result<String, TrustError> {
        let mut file = File::open(path)?;
        self.check(path, &file.metadata()?)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Checks the open file and every directory and link by which its path leads to it.
    fn check(&self, path: &Path, opened: &Metadata) -> Result<(), TrustError> {
        let mut left: VecDeque<OsString> = names(&std::path::absolute(path)?).collect();
        let (mut at, mut links) = (PathBuf::from("/"), 0);
        while let Some(name) = left.pop_front() {
            if name == ".." {
                at.pop();
                continue;
            }
            let entry = at.join(&name);
            // An open file of this process, such as `/dev/stdin` and the pipe of a shell's `<(...)`.
            if at == Path::new("/proc").join(std::process::id().to_string()).join("fd") {
                return self.check_owner_and_mode(&entry, opened);
            }
            let found = entry.symlink_metadata()?;
            self.check_directory(&at, &found)?;
            if !found.is_symlink() {
                at = entry;
                continue;
            }
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::from(rustix::io::Errno::LOOP).into());
            }
            let target = entry.read_link()?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            for name in names(&target).rev() {
                left.push_front(name);
            }
        }
        self.check_owner_and_mode(&at, opened)?;
        let found = at.symlink_metadata()?;
        if (found.dev(), found.ino()) == (opened.dev(), opened.ino()) { Ok(()) } else { Err(TrustError::Replaced) }
    }

    /// Checks a directory on the path, in which `entry` is the next name.
    fn check_directory(&self, path: &Path, entry: &Metadata) -> Result<(), TrustError> {
        if self.home.as_ref().is_some_and(|home| home != path && home.starts_with(path)) {
            return Ok(());
        }
        let found = path.metadata()?;
        if found.mode() & STICKY != 0 && self.is_trusted(&found) && self.is_trusted(entry) {
            return Ok(());
        }
        self.check_owner_and_mode(path, &found)
    }

    fn check_owner_and_mode(&self, path: &Path, found: &Metadata) -> Result<(), TrustError> {
        if !self.is_trusted(found) {
            let advice = format!("chown {}", self.user);
            return Err(TrustError::Owner { path: path.to_owned(), owner: found.uid(), advice });
        }
        // Other users cannot change the contents of a device such as `/dev/null`.
        if found.mode() & OTHERS_WRITE != 0 && !found.file_type().is_char_device() {
            return Err(TrustError::Writable { path: path.to_owned() });
        }
        Ok(())
    }

    fn is_trusted(&self, found: &Metadata) -> bool {
        found.uid() == 0 || found.uid() == self.user
    }
}

/// Returns the names of a path; `..` is one of them.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Returns a path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
    }

    /// Creates `a/b/file`, and a link `link` to `a`; nothing is writable by others.
    fn tree() -> tempfile::TempDir {
        let top = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(top.path().join("a/b")).expect("directories");
        fs::write(top.path().join("a/b/file"), "text").expect("a file");
        symlink("a", top.path().join("link")).expect("a link");
        symlink(top.path().join("link/b/../b/file"), top.path().join("far")).expect("a link");
        for (name, mode) in [("a", 0o755), ("a/b", 0o755), ("a/b/file", 0o644)] {
            set(&top.path().join(name), mode);
        }
        top
    }

    const WAYS: [&str; 4] = ["a/b/file", "a/../a/b/./file", "link/b/file", "far"];

    fn read(top: &Path, way: &str) -> Result<String, String> {
        Trusted::user_at(None).read(&top.join(way)).map_err(|error| error.to_string())
    }

    #[test]
    fn writable_step_of_a_path_is_rejected() {
        let top = tree();
        for way in WAYS {
            assert_eq!(read(top.path(), way).as_deref(), Ok("text"), "{way}");
        }
        for (name, closed) in [("a", 0o755), ("a/b", 0o755), ("a/b/file", 0o644)] {
            let path = top.path().join(name);
            for open in [0o020, 0o002] {
                set(&path, closed | open);
                for way in WAYS {
                    let error = read(top.path(), way).expect_err(way);
                    let real = path.canonicalize().expect("a path");
                    let advice = format!("chmod go-w {}", real.display());
                    assert!(error.contains("is writable by other users") && error.ends_with(&advice), "{way}: {error}");
                }
            }
            set(&path, closed);
        }
        // The directory of a link counts, too.
        set(top.path(), 0o777);
        for way in WAYS {
            assert!(read(top.path(), way).is_err(), "{way}");
        }
        set(top.path(), 0o1777);
        for way in WAYS {
            assert_eq!(read(top.path(), way).as_deref(), Ok("text"), "{way}: files in a sticky directory are safe");
        }
    }

    #[test]
    fn file_of_another_user_is_rejected() {
        let top = tree();
        let file = top.path().join("a/b/file");
        let other = Trusted { user: geteuid().as_raw().wrapping_add(1), home: None };
        let error = other.read(&file).map_err(|error| error.to_string());
        if geteuid().is_root() {
            assert_eq!(error.as_deref(), Ok("text"), "root's files are trusted");
            for name in ["a/b/file", "a/b", "a"] {
                let path = top.path().join(name);
                std::os::unix::fs::chown(&path, Some(12345), None).expect("an owner");
                for way in WAYS {
                    let error = read(top.path(), way).expect_err(way);
                    let wanted = "belongs to another user (uid 12345)";
                    assert!(error.contains(wanted) && error.contains(": chown 0 "), "{way}: {error}");
                }
                std::os::unix::fs::chown(&path, Some(0), None).expect("an owner");
            }
        } else {
            let error = error.expect_err("another user's");
            assert!(error.contains(&format!("belongs to another user (uid {})", geteuid().as_raw())), "{error}");
        }
    }

    #[test]
    fn directories_above_the_home_are_not_checked() {
        let top = tree();
        set(&top.path().join("a"), 0o777);
        let trusted = Trusted::user_at(Some(&top.path().join("a/b")));
        assert_eq!(trusted.read(&top.path().join("a/b/file")).expect("a home"), "text");
        set(&top.path().join("a/b"), 0o777);
        assert!(trusted.read(&top.path().join("a/b/file")).is_err());
    }

    #[test]
    fn devices_and_open_pipes_are_read() {
        assert_eq!(Trusted::user_at(None).read(Path::new("/dev/null")).expect("a device"), "");
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(writer);
        let named = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        assert_eq!(Trusted::user_at(None).read(Path::new(&named)).expect("a pipe"), "");
    }

    #[test]
    fn quoted_path_can_be_pasted() {
        assert_eq!(quoted(Path::new("/home/a/x.toml")), "/home/a/x.toml");
        assert_eq!(quoted(Path::new("/home/it's a/x")), r"'/home/it'\''s a/x'");
    }
}
