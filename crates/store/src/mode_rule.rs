//! The modes of received names.

use std::io;

use request::{Modes, Preserve};
use rustix::process::geteuid;

use super::inheritance::InheritedAcl;
use super::metadata::{PERMISSIONS, SET_ID, Status, with_set_id};

/// The rule that maps a sent mode to the applied one.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModeRule {
    modes: Modes,
    mask: u32,
    /// Whether set-id bits are copied with the owner and group whose rights they give away.
    set_id: bool,
}

impl ModeRule {
    /// Returns the rule for this process.
    pub(super) fn new(modes: Modes, preserve: Preserve) -> Self {
        let set_id = modes == Modes::Exact && preserve.rights() && geteuid().is_root();
        Self { modes, mask: process_mask(), set_id }
    }

    /// Returns the mask for new files.
    pub(super) fn mask(self) -> u32 {
        self.mask
    }

    /// Whether modes are those of the sender.
    pub(super) fn is_exact(self) -> bool {
        self.modes == Modes::Exact
    }

    /// Returns the mode for a new name that was sent with `sent`.
    pub(super) fn apply(self, sent: u32) -> u32 {
        self.apply_in(sent, &InheritedAcl::default())
    }

    /// As [`Self::apply`], for a name that inherits attributes: unless modes are exact, a default ACL replaces the
    /// umask.
    pub(super) fn apply_in(self, sent: u32, inherited: &InheritedAcl) -> u32 {
        match self.modes {
            Modes::Masked => sent & PERMISSIONS & !SET_ID & (!0o777 | self.permitted(inherited)),
            Modes::Exact if self.set_id => sent & PERMISSIONS,
            Modes::Exact => sent & PERMISSIONS & !SET_ID,
        }
    }

    /// Returns the mode of a new name that was to get `mode` but was denied some permissions by the system: as for
    /// `cp`, these stay denied unless modes are exact.
    pub(super) fn without(self, mode: u32, denied: u32) -> u32 {
        if self.is_exact() { mode } else { mode & !denied }
    }

    fn permitted(self, inherited: &InheritedAcl) -> u32 {
        inherited.permitted().unwrap_or(!self.mask) & 0o777
    }

    /// Returns the mode for an existing file or directory `found` that was sent with `sent`: as for `cp`, it keeps its
    /// own unless modes are exact. Even then a directory keeps its set-id bits, and a file those that it also has at
    /// the sender.
    pub(super) fn apply_over(self, sent: u32, found: &Status) -> u32 {
        match self.modes {
            Modes::Masked => found.mode,
            Modes::Exact if self.set_id => self.apply(sent),
            Modes::Exact if found.is_directory() => with_set_id(self.apply(sent), found.mode),
            Modes::Exact => with_set_id(self.apply(sent), found.mode & sent),
        }
    }

    /// The same for a file that gets another content, which must not run with another's rights.
    pub(super) fn replace(self, sent: u32, found: u32) -> u32 {
        match self.modes {
            Modes::Masked => found & !SET_ID,
            Modes::Exact => self.apply(sent),
        }
    }

    /// Returns the final mode of a directory `found` that was to get `mode`.
    pub(super) fn seal(self, mode: u32, found: &Status) -> u32 {
        if self.set_id { mode } else { with_set_id(mode, found.mode) }
    }

    /// Returns the resulting mode of a name created with `mode`: the system applies the mask or default ACL itself.
    pub(super) fn as_made(self, mode: u32, inherited: &InheritedAcl) -> u32 {
        mode & self.permitted(inherited)
    }
}

/// Returns the mask for new files.
fn process_mask() -> u32 {
    // The system call can only replace it, which other threads would notice (`clippy.toml` forbids it).
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    field.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).or_else(|| probed_mask().ok()).unwrap_or(0o077)
}

/// Returns the mask if the system does not report it: the permissions that a new file lacks.
fn probed_mask() -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    let all = std::fs::Permissions::from_mode(0o777);
    let file = tempfile::Builder::new().permissions(all).tempfile()?;
    Ok(!file.as_file().metadata()?.permissions().mode() & 0o777)
}

#[cfg(test)]
mod tests {
    use rustix::fs::FileType;

    use super::*;

    #[test]
    fn umask_probe_equals_system_value() {
        assert_eq!(probed_mask().unwrap(), process_mask());
    }

    #[test]
    fn set_id_bits_not_taken_without_owner_and_group() {
        let masked = ModeRule { modes: Modes::Masked, mask: 0o022, set_id: false };
        assert_eq!(masked.apply(0o6777), 0o755);
        assert_eq!(masked.apply(0o1777), 0o1755);
        assert_eq!(masked.as_made(0o1777, &InheritedAcl::default()), 0o755);
        assert_eq!((masked.without(0o755, 0o7), masked.without(0o644, 0)), (0o750, 0o644));
        let exact = ModeRule { modes: Modes::Exact, mask: 0o022, set_id: false };
        assert_eq!(exact.apply(0o7777), 0o1777);
        assert_eq!(exact.without(0o755, 0o7), 0o755);
        assert_eq!((masked.replace(0o4755, 0o6700), exact.replace(0o4755, 0o6700)), (0o700, 0o755));
    }

    #[test]
    fn existing_file_keeps_set_id_bits_of_the_sender() {
        let rule = |modes| ModeRule { modes, mask: 0o022, set_id: false };
        let (masked, exact) = (rule(Modes::Masked), rule(Modes::Exact));
        let status = |file_type, mode| Status { file_type, mode, ..Status::from(rustix::fs::stat("/").unwrap()) };
        let file = |mode| status(FileType::RegularFile, mode);
        let directory = |mode| status(FileType::Directory, mode);
        assert_eq!(masked.apply_over(0o755, &file(0o4700)), 0o4700);
        assert_eq!(exact.apply_over(0o755, &file(0o4700)), 0o755);
        assert_eq!(exact.apply_over(0o6755, &file(0o4700)), 0o4755);
        assert_eq!(exact.apply_over(0o755, &directory(0o2700)), 0o2755);
        assert_eq!(exact.apply_over(0o2755, &directory(0o700)), 0o755);
    }
}
