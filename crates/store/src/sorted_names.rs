//! The sorted names of one directory.

use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::Dir;

/// Names in order, held in two allocations: a directory may have millions.
#[derive(Debug)]
pub(super) struct Listing {
    bytes: Vec<u8>,
    /// Start and length of each name in `bytes`, sorted by name.
    spans: Vec<(u32, u32)>,
}

impl Listing {
    /// Reads an open directory.
    pub(super) fn read(directory: OwnedFd) -> io::Result<Self> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        for item in Dir::new(directory)? {
            let item = item?;
            let name = CStr::to_bytes(item.file_name());
            if matches!(name, b"." | b"..") {
                continue;
            }
            let too_many = |_| io::Error::from(io::ErrorKind::OutOfMemory);
            let start = u32::try_from(bytes.len()).map_err(too_many)?;
            spans.push((start, u32::try_from(name.len()).map_err(too_many)?));
            bytes.extend_from_slice(name);
        }
        spans.sort_unstable_by(|a, b| slice(&bytes, *a).cmp(slice(&bytes, *b)));
        Ok(Self { bytes, spans })
    }

    pub(super) fn get(&self, at: usize) -> Option<&[u8]> {
        self.spans.get(at).map(|span| slice(&self.bytes, *span))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().map(|span| slice(&self.bytes, *span))
    }

    pub(super) fn contains(&self, name: &[u8]) -> bool {
        self.spans.binary_search_by(|span| slice(&self.bytes, *span).cmp(name)).is_ok()
    }
}

/// A name's bytes.
fn slice(bytes: &[u8], (start, length): (u32, u32)) -> &[u8] {
    &bytes[start as usize..][..length as usize]
}
