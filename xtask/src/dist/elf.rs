//! Whether a program needs nothing of the machine it runs on.

use std::fs;
use std::path::Path;

use object::LittleEndian;
use object::elf::{DT_NEEDED, DT_NULL, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};

use xtask::failure::Failure;

/// An error if the program asks for an interpreter or a shared library.
pub(super) fn check_static(program: &Path) -> Result<(), Failure> {
    let bytes = fs::read(program).map_err(Failure::at(program.display()))?;
    match needs(&bytes).map_err(Failure::at(program.display()))? {
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

fn needs(file: &[u8]) -> object::read::Result<Needs> {
    let header = FileHeader64::<LittleEndian>::parse(file)?;
    let endian = header.endian()?;
    let mut found = Needs::Nothing;
    for segment in header.program_headers(endian, file)? {
        if segment.interpreter(endian, file)?.is_some() {
            return Ok(Needs::Interpreter);
        }
        let entries = segment.dynamic(endian, file)?.unwrap_or_default();
        // Bytes behind the end of the list are no entry.
        let mut tags = entries.iter().map(|entry| entry.d_tag(endian)).take_while(|tag| *tag != DT_NULL);
        if tags.any(|tag| tag == DT_NEEDED) {
            found = Needs::Library;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use object::elf::{ELFMAG, PT_DYNAMIC, PT_INTERP, PT_LOAD, ProgramType};

    use super::*;

    /// A header and these segments, each with the bytes of its dynamic section.
    fn file(segments: &[(ProgramType, &[i64])]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..4].copy_from_slice(&ELFMAG);
        // 64 bits, little-endian, of the first version.
        file[4..7].copy_from_slice(&[2, 1, 1]);
        file[32] = 64;
        file[54] = 56;
        file[56] = segments.len() as u8;
        let mut content = Vec::new();
        for (kind, words) in segments {
            let mut segment = [0; 56];
            segment[..4].copy_from_slice(&kind.0.to_le_bytes());
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
    fn elf_needs_of_a_program_are_found() {
        let (none, library) = ([6, 1, 0, 0, DT_NEEDED.0, 9], [6, 1, DT_NEEDED.0, 9, 0, 0]);
        assert_eq!(needs(&file(&[])), Ok(Needs::Nothing));
        assert_eq!(needs(&file(&[(PT_LOAD, &[]), (PT_DYNAMIC, &none)])), Ok(Needs::Nothing));
        assert_eq!(needs(&file(&[(PT_DYNAMIC, &library)])), Ok(Needs::Library));
        assert_eq!(needs(&file(&[(PT_DYNAMIC, &library), (PT_INTERP, &[0])])), Ok(Needs::Interpreter));
        assert!(needs(b"#!/bin/sh").is_err());
    }
}
