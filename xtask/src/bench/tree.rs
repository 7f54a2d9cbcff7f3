//! Folders with many files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use xtask::failure::Failure;

/// Files of a folder.
const IN_A_FOLDER: u64 = 1000;

/// Makes a folder with `count` files whose sizes `size` says; the bytes of all.
pub(super) fn grow(root: &Path, count: u64, size: impl Fn(u64, &mut fastrand::Rng) -> usize) -> Result<u64, Failure> {
    let mut random = fastrand::Rng::with_seed(count);
    let mut content = Vec::new();
    let mut bytes = 0;
    fs::create_dir_all(root).map_err(Failure::at(root.display()))?;
    for number in 0..count {
        let folder = root.join(format!("{:04}", number / IN_A_FOLDER));
        if number % IN_A_FOLDER == 0 {
            fs::create_dir(&folder).map_err(Failure::at(folder.display()))?;
        }
        content.resize(size(number, &mut random), 0);
        random.fill(&mut content);
        bytes += content.len() as u64;
        let path = folder.join(format!("{number:07}"));
        let written = File::create_new(&path).and_then(|mut file| file.write_all(&content));
        written.map_err(Failure::at(path.display()))?;
    }
    Ok(bytes)
}

/// An error unless both folders hold the same names and bytes.
pub(super) fn compare(a: &Path, b: &Path) -> Result<(), Failure> {
    let (left, right) = (names(a)?, names(b)?);
    if left.iter().map(|(name, _)| name).ne(right.iter().map(|(name, _)| name)) {
        return Err(Failure::new(format_args!("{} has other names than {}", b.display(), a.display())));
    }
    for (name, is_folder) in left {
        let (one, other) = (a.join(&name), b.join(&name));
        if is_folder {
            compare(&one, &other)?;
            continue;
        }
        let read = |path: &PathBuf| fs::read(path).map_err(Failure::at(path.display()));
        if read(&one)? != read(&other)? {
            return Err(Failure::new(format_args!("{} differs from {}", other.display(), one.display())));
        }
    }
    Ok(())
}

/// Names in a folder, sorted, and whether each is a folder itself.
fn names(folder: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, Failure> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(Failure::at(folder.display()))? {
        let entry = entry.map_err(Failure::at(folder.display()))?;
        let kind = entry.file_type().map_err(Failure::at(folder.display()))?;
        names.push((entry.file_name(), kind.is_dir()));
    }
    names.sort();
    Ok(names)
}
