//! Whether a program needs nothing of the machine it runs on (ELF, System V ABI, chapters 4 and 5).

use std::fs;
use std::path::Path;

use xtask::failure::Failure;

const MAGIC: &[u8] = b"\x7fELF";
/// 64 bits, little-endian: the two bytes after the magic.
const CLASS: &[u8] = &[2, 1];
/// Segment types.
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
/// Tag of the entry that names a shared library, and size of an entry.
const DT_NEEDED: u64 = 1;
const DYNAMIC_ENTRY: usize = 16;

/// An error if the program asks for an interpreter or a shared library.
pub(super) fn check_static(program: &Path) -> Result<(), Failure> {
    let bytes = fs::read(program).map_err(Failure::at(program.display()))?;
    let needs = needs(&bytes).ok_or_else(|| Failure::new(format_args!("{} is no ELF file", program.display())))?;
    match needs {
        Needs::Nothing => Ok(()),
        Needs::Interpreter => Err(Failure::new(format_args!("{} asks for an interpreter", program.display()))),
        Needs::Library => Err(Failure::new(format_args!("{} needs a shared library", program.display()))),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Interpreter,
    Library,
}

/// Of a 64-bit little-endian file; nothing for any other.
fn needs(file: &[u8]) -> Option<Needs> {
    if file.get(..4)? != MAGIC || file.get(4..6)? != CLASS {
        return None;
    }
    let table = usize::try_from(number(file, 32, 8)?).ok()?;
    let (size, count) = (number(file, 54, 2)? as usize, number(file, 56, 2)? as usize);
    let mut found = Needs::Nothing;
    for index in 0..count {
        let segment = file.get(table.checked_add(index * size)?..)?;
        match number(segment, 0, 4)? as u32 {
            PT_INTERP => return Some(Needs::Interpreter),
            PT_DYNAMIC => {
                let start = usize::try_from(number(segment, 8, 8)?).ok()?;
                let length = usize::try_from(number(segment, 32, 8)?).ok()?;
                let entries = file.get(start..start.checked_add(length)?)?.chunks_exact(DYNAMIC_ENTRY);
                // The list ends with a tag of 0; what stands behind it is no entry.
                let mut tags = entries.map_while(|entry| number(entry, 0, 8).filter(|tag| *tag != 0));
                if tags.any(|tag| tag == DT_NEEDED) {
                    found = Needs::Library;
                }
            }
            _ => {}
        }
    }
    Some(found)
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + width)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header and these segments, each with the bytes of its dynamic section.
    fn file(segments: &[(u32, &[u64])]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..4].copy_from_slice(MAGIC);
        file[4..6].copy_from_slice(CLASS);
        file[32] = 64;
        file[54] = 56;
        file[56] = segments.len() as u8;
        let mut content = Vec::new();
        for (kind, words) in segments {
            let mut segment = [0; 56];
            segment[..4].copy_from_slice(&kind.to_le_bytes());
            let start = (64 + 56 * segments.len() + content.len()) as u64;
            segment[8..16].copy_from_slice(&start.to_le_bytes());
            segment[32..40].copy_from_slice(&(8 * words.len() as u64).to_le_bytes());
            file.extend(segment);
            content.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        file.extend(content);
        file
    }

    #[test]
    fn tells_what_a_program_needs() {
        assert_eq!(needs(&file(&[])), Some(Needs::Nothing));
        assert_eq!(needs(&file(&[(1, &[]), (PT_DYNAMIC, &[6, 1, 0, 0, DT_NEEDED, 9])])), Some(Needs::Nothing));
        assert_eq!(needs(&file(&[(PT_DYNAMIC, &[6, 1, DT_NEEDED, 9, 0, 0])])), Some(Needs::Library));
        assert_eq!(needs(&file(&[(PT_DYNAMIC, &[DT_NEEDED, 9]), (PT_INTERP, &[])])), Some(Needs::Interpreter));
    }

    #[test]
    fn refuses_what_is_cut_off() {
        let whole = file(&[(PT_DYNAMIC, &[6, 1, 0, 0])]);
        assert!((0..whole.len()).all(|length| needs(&whole[..length]).is_none()));
        assert_eq!(needs(b"#!/bin/sh"), None);
    }
}
