//! `cargo xtask test-ssh` and `cargo xtask compare-rsync`: the tests of the program that are otherwise ignored, since
//! not every machine has the programs that they start.

use std::env;
use std::ffi::OsString;

use xtask::failure::Failure;
use xtask::tools;

/// A test target of the program.
pub(crate) struct Tests {
    name: &'static str,
    /// The programs that the tests start, and their packages on Debian.
    needed: &'static [(&'static str, &'static str)],
}

/// These start sshd themselves, as the current user, on a free port.
pub(crate) const SSH: Tests = Tests {
    name: "ssh",
    needed: &[
        ("sshd", "openssh-server"),
        ("ssh", "openssh-client"),
        ("ssh-keygen", "openssh-client"),
        ("rsync", "rsync"),
        ("curl", "curl"),
        ("nft", "nftables"),
        ("ip", "iproute2"),
        ("nsenter", "util-linux"),
        ("setpriv", "util-linux"),
        ("unshare", "util-linux"),
    ],
};

pub(crate) const RSYNC: Tests = Tests { name: "rsync", needed: &[("rsync", "rsync"), ("timeout", "coreutils")] };

impl Tests {
    /// Runs them.
    ///
    /// # Errors
    /// One fails, or a program is missing: the error names it.
    pub(crate) fn run(&self, arguments: &[OsString]) -> Result<(), Failure> {
        let missing: Vec<_> = self.needed.iter().filter(|(program, _)| tools::find(program).is_none()).collect();
        if !missing.is_empty() {
            let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
            let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
            packages.dedup();
            return Err(Failure::new(format_args!(
                "{} is not installed: on Debian, apt-get install {}",
                programs.join(", no "),
                packages.join(" ")
            )));
        }
        let mut tests = tools::cargo(tools::root());
        // Of the whole workspace, since cargo would rebuild the dependencies with the features of a single package.
        // Tests print skipped comparisons on stdout.
        tests.args(["test", "--workspace", "--test", self.name, "--", "--ignored", "--show-output"]).args(arguments);
        // For `relayed-ssh`.
        tests.env("XTASK", env::current_exe().map_err(Failure::at("this program"))?);
        tools::run(&mut tests)
    }
}
