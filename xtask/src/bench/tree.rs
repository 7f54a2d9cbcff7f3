//! Directories with many files.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use xtask::failure::Failure;

/// Files of a directory.
const IN_A_DIRECTORY: u64 = 1000;

/// Makes a directory with `count` files of the sizes from `size`; returns the bytes of all.
pub(super) fn grow(root: &Path, count: u64, size: impl Fn(u64, &mut fastrand::Rng) -> usize) -> Result<u64, Failure> {
    let mut random = fastrand::Rng::with_seed(count);
    let mut content = Vec::new();
    let mut bytes = 0;
    fs::create_dir_all(root).map_err(Failure::at(root.display()))?;
    for number in 0..count {
        let directory = root.join(format!("{:04}", number / IN_A_DIRECTORY));
        if number % IN_A_DIRECTORY == 0 {
            fs::create_dir(&directory).map_err(Failure::at(directory.display()))?;
        }
        content.resize(size(number, &mut random), 0);
        random.fill(&mut content);
        bytes += content.len() as u64;
        let path = directory.join(format!("{number:07}"));
        let written = File::create_new(&path).and_then(|mut file| file.write_all(&content));
        written.map_err(Failure::at(path.display()))?;
    }
    Ok(bytes)
}

/// An error unless both directories hold the same names and bytes.
pub(super) fn compare(a: &Path, b: &Path) -> Result<(), Failure> {
    let (left, right) = (names(a)?, names(b)?);
    if left.iter().map(|(name, _)| name).ne(right.iter().map(|(name, _)| name)) {
        return Err(Failure::new(format_args!("{} has other names than {}", b.display(), a.display())));
    }
    for (name, is_directory) in left {
        let (one, other) = (a.join(&name), b.join(&name));
        if is_directory {
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

/// Names in a directory, sorted, and whether each is a directory itself.
fn names(directory: &Path) -> Result<Vec<(std::ffi::OsString, bool)>, Failure> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(Failure::at(directory.display()))? {
        let entry = entry.map_err(Failure::at(directory.display()))?;
        let kind = entry.file_type().map_err(Failure::at(directory.display()))?;
        names.push((entry.file_name(), kind.is_dir()));
    }
    names.sort();
    Ok(names)
}
