//! `cargo xtask test-ssh`: the tests of the program that need a real sshd. They start it themselves, as whoever runs
//! them, on a free port.

use std::env;
use std::ffi::OsString;

use xtask::failure::Failure;
use xtask::tools;

/// What the tests start, and the packages that have it on Debian.
const NEEDED: [(&str, &str); 10] = [
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
];

/// Runs them; an error that names what is missing where something is.
pub(crate) fn run(arguments: &[OsString]) -> Result<(), Failure> {
    let missing: Vec<_> = NEEDED.iter().filter(|(program, _)| tools::find(program).is_none()).collect();
    if !missing.is_empty() {
        let programs: Vec<&str> = missing.iter().map(|(program, _)| *program).collect();
        let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
        packages.dedup();
        return Err(Failure::new(format_args!(
            "there is no {} here: on Debian, apt-get install {}",
            programs.join(", no "),
            packages.join(" ")
        )));
    }
    let mut tests = tools::cargo(tools::root());
    tests.args(["test", "--package", "cli", "--test", "ssh", "--", "--ignored"]).args(arguments);
    // For `relayed-ssh`.
    tests.env("XTASK", env::current_exe().map_err(Failure::at("this program"))?);
    tools::run(&mut tests)
}
