//! A pseudo-terminal for the program.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The user's end of a terminal and its output so far.
pub(crate) struct Terminal {
    pub(crate) user: File,
    pub(crate) shown: String,
}

impl Terminal {
    /// Opens a terminal. Also returns two descriptors of the program's end.
    pub(crate) fn open() -> (Self, OwnedFd, OwnedFd) {
        let user = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&user).expect("a terminal");
        unlockpt(&user).expect("a terminal");
        let name = ptsname(&user, Vec::new()).expect("its name").into_string().expect("a name");
        let program = File::options().read(true).write(true).open(name).expect("its other side");
        let again = program.try_clone().expect("a second descriptor");
        (Self { user: File::from(user), shown: String::new() }, program.into(), again.into())
    }

    /// Reads until the output contains `words`. Panics at the end of the output.
    pub(crate) fn wait_for(&mut self, words: &str) {
        let mut buffer = [0; 4096];
        while !self.shown.contains(words) {
            match self.user.read(&mut buffer) {
                Ok(length) if length > 0 => self.shown += &String::from_utf8_lossy(&buffer[..length]),
                _ => panic!("no {words:?} in {:?}", self.shown),
            }
        }
    }

    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.user, "{line}").expect("a terminal");
    }
}
