//! Edits of files between and during the runs of a transfer.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use fastrand::Rng;

use crate::random::{self, Object, is_staging, snapshot};

/// How files are edited.
pub(crate) struct Edits {
    /// Some edits keep size and time.
    pub(crate) by_content: bool,
    /// A directory outside of the transfer, to which links may point.
    pub(crate) canary: PathBuf,
}

impl Edits {
    /// Edits, makes or removes a file of a source. Each edit is one system call, so that there is no intermediate
    /// version; `scratch` is on the same file system.
    pub(crate) fn source(&self, rng: &mut Rng, tree: &Path, scratch: &Path) {
        let Some(file) = any_file(rng, tree) else { return };
        let kind = rng.u8(0..6);
        eprintln!("edit {kind} of the source: {file:?}");
        match kind {
            0 => truncate(rng, &file),
            1 => append(&file),
            2 if file.file_name() != Some(OsStr::new("always")) => fs::remove_file(&file).expect("a file"),
            2 | 3 => {
                let new = scratch.join("new");
                fs::write(&new, random::bytes(rng, 500_000)).expect("a file");
                let name = if rng.bool() { file } else { file.with_file_name("made later") };
                fs::rename(new, name).expect("another file");
            }
            _ => self.flip(rng, &file),
        }
    }

    /// Edits or removes a file at the target, replaces it or its directory by a link, or adds a file.
    pub(crate) fn target(&self, rng: &mut Rng, tree: &Path) {
        let Some(file) = any_file(rng, tree) else { return };
        let kind = rng.u8(0..7);
        eprintln!("edit {kind} of the target: {file:?}");
        match kind {
            0 => truncate(rng, &file),
            1 => fs::remove_file(&file).expect("a file"),
            2 => {
                fs::remove_file(&file).expect("a file");
                symlink(any_file(rng, &self.canary).unwrap_or_default(), &file).unwrap_or_default();
            }
            3 if file.parent() != Some(tree) => {
                let directory = file.parent().expect("a directory");
                fs::remove_dir_all(directory).expect("a directory");
                symlink(&self.canary, directory).expect("a link");
            }
            4 => {
                // An earlier edit may have made a link.
                let added = file.with_file_name("of the target");
                if added.symlink_metadata().is_err() {
                    fs::write(added, "mine").expect("a file");
                }
            }
            _ => self.flip(rng, &file),
        }
    }

    /// Edits, removes or adds a file in a staging directory, or replaces it by a link.
    pub(crate) fn staging(&self, rng: &mut Rng, target: &Path) {
        let names = fs::read_dir(target).expect("a directory").map(|entry| entry.expect("an entry").path());
        let Some(staging) = names.into_iter().find(|path| is_staging(path)) else { return };
        let Some(file) = any_file(rng, &staging) else { return };
        let kind = rng.u8(0..9);
        eprintln!("edit {kind} of what is kept: {file:?}");
        match kind {
            0 => truncate(rng, &file),
            1 => append(&file),
            2 => fs::remove_file(&file).expect("a file"),
            3 => fs::remove_dir_all(&staging).expect("a directory"),
            4 => fs::write(staging.join("of another program"), "mine").expect("a file"),
            5 => {
                fs::remove_file(&file).expect("a file");
                symlink(any_file(rng, &self.canary).unwrap_or_default(), &file).unwrap_or_default();
            }
            _ => self.flip(rng, &file),
        }
    }

    /// Changes a byte, and sometimes restores the time.
    pub(crate) fn flip(&self, rng: &mut Rng, file: &Path) {
        let status = file.metadata().expect("a status");
        if status.len() == 0 {
            return append(file);
        }
        let at = rng.u64(..status.len());
        let opened = File::options().read(true).write(true).open(file).expect("a file");
        let mut byte = [0];
        opened.read_exact_at(&mut byte, at).expect("a byte");
        opened.write_all_at(&[byte[0] ^ 0x20], at).expect("a byte");
        if self.by_content && rng.bool() {
            opened.set_modified(status.modified().expect("a time")).expect("a time");
        }
    }
}

fn truncate(rng: &mut Rng, file: &Path) {
    let length = file.metadata().expect("a status").len();
    File::options().write(true).open(file).and_then(|file| file.set_len(rng.u64(..=length))).expect("a file");
}

fn append(file: &Path) {
    let length = file.metadata().expect("a status").len();
    File::options().write(true).open(file).and_then(|file| file.write_all_at(b"more", length)).expect("a file");
}

/// A regular file beneath a directory.
fn any_file(rng: &mut Rng, directory: &Path) -> Option<PathBuf> {
    let tree = snapshot(directory);
    let files: Vec<_> = tree.iter().filter(|(_, found)| matches!(found.object, Object::File(_))).collect();
    (!files.is_empty()).then(|| directory.join(files[rng.usize(..files.len())].0))
}
