//! Copies between files made by the kernel, without taking the bytes into this process: as clones if the file system
//! supports them, else at the speed of its page cache. Holes stay holes.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, copy_file_range, fstat, seek};
use rustix::io::Errno;

/// Maximum bytes of one call, which cannot be interrupted.
const MOST_AT_ONCE: u64 = 64 << 20;

/// Units of `st_blocks`.
const BLOCK: u64 = 512;

/// The part that a copy has skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyResult {
    /// Nothing.
    All,
    /// Holes, so that the file may be too short.
    ButHoles,
    /// Everything: the kernel cannot copy between these files.
    Nothing,
}

/// Copies `length` bytes at `start` of one file to `at` of another, which has no data there.
///
/// # Errors
/// Errors of the system, which may concern either file; [`io::ErrorKind::UnexpectedEof`] if the first ends before.
pub(super) fn copy(from: &File, start: u64, length: u64, to: &File, at: u64) -> io::Result<CopyResult> {
    let end = start + length;
    let seen = fstat(from)?;
    let is_sparse = u64::try_from(seen.st_blocks).unwrap_or(0) * BLOCK < u64::try_from(seen.st_size).unwrap_or(0);
    let (mut position, mut copied) = (start, CopyResult::All);
    while position < end {
        let (data, hole) = if is_sparse { next_data(from, position, end)? } else { (position, end) };
        if data > position {
            copied = CopyResult::ButHoles;
        }
        position = data;
        while position < hole {
            let most = usize::try_from((hole - position).min(MOST_AT_ONCE)).unwrap_or(usize::MAX);
            let (mut source, mut target) = (position, at + (position - start));
            match copy_file_range(from, Some(&mut source), to, Some(&mut target), most) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => position += count as u64,
                Err(Errno::INTR) => {}
                // Two file systems, a system without the call, a file without offsets, a kernel that denies the call to
                // this process.
                Err(
                    Errno::XDEV
                    | Errno::INVAL
                    | Errno::OPNOTSUPP
                    | Errno::NOSYS
                    | Errno::PERM
                    | Errno::BADF
                    | Errno::ISDIR,
                ) if position == start => {
                    return Ok(CopyResult::Nothing);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(copied)
}

/// Returns the next data of a file from `position` on, up to `end`.
fn next_data(file: &File, position: u64, end: u64) -> io::Result<(u64, u64)> {
    let data = match seek(file, SeekFrom::Data(position)) {
        Ok(data) => data.min(end),
        // Only a hole is left.
        Err(Errno::NXIO) => return Ok((end, end)),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((position, end)),
        Err(error) => return Err(error.into()),
    };
    if data == end {
        return Ok((end, end));
    }
    let hole = seek(file, SeekFrom::Hole(data))?.min(end);
    // A file that is changed meanwhile may have none.
    Ok((data, hole.max(data + 1)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt as _};

    use super::*;

    #[test]
    fn kernel_copy_keeps_holes() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            File::options().read(true).write(true).create(true).truncate(true).open(dir.path().join(name)).unwrap()
        };
        let (from, to) = (open("from"), open("to"));
        let size = 8 << 20;
        from.set_len(size).unwrap();
        from.write_all_at(&[7; 5000], 3 << 20).unwrap();
        from.write_all_at(&[8; 100], size - 100).unwrap();
        assert_eq!(copy(&from, 0, 4 << 20, &to, 0).unwrap(), CopyResult::ButHoles);
        assert_eq!(copy(&from, 4 << 20, 4 << 20, &to, 4 << 20).unwrap(), CopyResult::ButHoles);
        let (mut wanted, mut found) = (vec![0; size as usize], vec![1; size as usize]);
        from.read_exact_at(&mut wanted, 0).unwrap();
        to.read_exact_at(&mut found, 0).unwrap();
        assert!(wanted == found);
        assert!(to.metadata().unwrap().blocks() * BLOCK < 1 << 20, "{:?}", to.metadata());
    }

    #[test]
    fn kernel_copy_range_and_early_end() {
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        from.write_all_at(b"0123456789", 0).unwrap();
        assert_eq!(copy(&from, 2, 5, &to, 1).unwrap(), CopyResult::All);
        let mut found = [0; 6];
        to.read_exact_at(&mut found, 0).unwrap();
        assert_eq!(&found, b"\x0023456");
        let error = copy(&from, 5, 6, &to, 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn kernel_copy_unsupported_file_returns_nothing() {
        let (pipe, _writer) = io::pipe().unwrap();
        let from = File::from(std::os::fd::OwnedFd::from(pipe));
        assert_eq!(copy(&from, 0, 5, &tempfile::tempfile().unwrap(), 0).unwrap(), CopyResult::Nothing);
    }
}
