//! The commands of README.md, as they stand there, in a home like a new user's: ssh is a script that logs in to this
//! machine.

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::program::{Ended, Program, answer};
use crate::tree;
use crate::tunnelling::echo_server;

const README: &str = include_str!("../../../../README.md");

/// Logs in to this machine with another home, or connects by what ProxyCommand names, to the port of a server of the
/// test.
const SSH: &str = r#"#!/bin/sh
case " $* " in *' -G '*) exit;; esac
proxy=none
for word; do case $word in ProxyCommand=*) proxy=${word#*=};; esac; done
[ "$proxy" = none ] || exec sh -c "$(echo "$proxy" | sed "s/%r/me/; s/%n/far/; s/%p/$SERVER/")"
for command; do :; done
cd "$FAR_HOME" || exit
export HOME="$FAR_HOME"
# In a process of its own, which can outlive the login, as with ssh.
sh -c "$command"
"#;

/// Draws nothing, and ends with its input.
const LAB: &str = "#!/bin/sh\necho http://127.0.0.1:1/5ecret/#live; while read -r line; do :; done\n";

/// A user's machine, and another one that ssh reaches.
struct Machines(TempDir);

impl Machines {
    fn new() -> Self {
        let machines = Self(tempfile::tempdir().expect("a directory"));
        for directory in ["bin", "run", "home/data", "far/incoming", "far/data"] {
            fs::create_dir_all(machines.path(directory)).expect("a directory");
        }
        // In another process: one that other tests start meanwhile could keep the file open for writing.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_downpour")).arg(machines.path("bin/downpour")).status();
        assert!(copied.expect("cp").success());
        for (name, script) in [("ssh", SSH), ("downpour-lab", LAB)] {
            let path = machines.path("bin").join(name);
            fs::write(&path, script).expect("a script");
            fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("a mode");
        }
        tree::directory(&machines.path("home/photos"));
        tree::file(&machines.path("home/notes.txt"), 1_000);
        tree::file(&machines.path("home/huge.tar"), 3_000_000);
        tree::file(&machines.path("far/data/new"), 2_000);
        tree::file(&machines.path("home/data/old"), 2_000);
        machines
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Starts a line of README.md.
    fn start(&self, line: &str, server: u16) -> Program {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec {line}")]).current_dir(self.path("home")).env_clear();
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        shell.env("PATH", path).env("HOME", self.path("home")).env("FAR_HOME", self.path("far"));
        shell.env("XDG_RUNTIME_DIR", self.path("run")).env("SERVER", server.to_string());
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::start(shell)
    }

    /// Runs it to its end, with this on its stdin.
    fn run(&self, line: &str, server: u16, input: &str) -> Ended {
        let mut program = self.start(line, server);
        program.stdin().write_all(input.as_bytes()).expect("a program that reads");
        let ended = program.end();
        assert_eq!(ended.status.code(), Some(0), "{line}: {}{}", ended.stdout, ended.stderr);
        ended
    }

    /// Starts a line that goes on until it is stopped; waits for these words of it.
    fn tunnel(&self, line: &str, ticket: &str) {
        let mut tunnel = self.start(line, 0);
        if !ticket.is_empty() {
            answer(tunnel.stdin(), ticket);
        }
        tunnel.wait_for_words(" is open");
        tunnel.signal(Signal::INT);
        assert_eq!(tunnel.end().status.code(), Some(130), "{line}");
    }
}

/// Returns the lines of README.md that a user types.
fn commands() -> Vec<&'static str> {
    let blocks = README.split("```\n").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with(' '));
    lines.map(|line| line.split("  #").next().unwrap_or(line).trim()).collect()
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[test]
fn every_command_does_what_it_is_there_for() {
    let (machines, server) = (Machines::new(), echo_server());
    let same = |a: &str, b: &str| assert!(tree_of(&machines.path(a)) == tree_of(&machines.path(b)), "{a} is not {b}");
    // With a slash at the end, what is in a directory is copied.
    let holds = |a: &str, b: &str| {
        let found = tree_of(&machines.path(a));
        assert!(tree_of(&machines.path(b)).iter().all(|file| found.contains(file)), "{a} lacks some of {b}");
    };
    let mut commands = commands().into_iter();
    while let Some(line) = commands.next() {
        match line {
            // Whoever runs this test has built it.
            "cargo build --release" | "cargo test --workspace" => {}
            "cargo run --release -- demo" => {
                let shown = machines.run("downpour demo --size 300kB", server, "").stdout;
                assert!(shown.contains("floor") && shown.contains("TCP, simulated"), "{shown}");
            }
            "downpour cp -r photos notes.txt me@far:incoming/" => {
                machines.run(line, server, "");
                holds("far/incoming/photos", "home/photos");
                same("far/incoming/notes.txt", "home/notes.txt");
            }
            "downpour sync --delete me@far:data/ data/" => {
                machines.run(line, server, "");
                same("home/data", "far/data");
            }
            "downpour cp --rate 100M --retry-for 1h huge.tar far:" | "downpour cp --web huge.tar far:" => {
                _ = fs::remove_file(machines.path("far/huge.tar"));
                machines.run(line, server, "");
                same("far/huge.tar", "home/huge.tar");
            }
            "downpour send photos/" => {
                let mut sender = machines.start(line, server);
                let ticket = sender.wait_for("a ticket", |line| line.starts_with("downpour1"));
                let receives = commands.next().expect("the command for the other side");
                assert_eq!(receives, "downpour recv --into ~/incoming");
                machines.run(receives, server, &format!("{ticket}\ny\n"));
                sender.end().expect(0);
                same("home/incoming", "home/photos");
            }
            // The tests of the lab start it.
            "cd lab && cargo build --release" | "../target/release/downpour-lab web --open" => {
                let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab");
                let manifest = fs::read_to_string(lab.join("Cargo.toml")).expect("the lab");
                assert!(manifest.contains("name = \"lab\"") && manifest.contains("name = \"downpour-lab\""));
            }
            "downpour doctor far" => {
                let shown = machines.run(line, server, "").stdout;
                assert!(shown.contains("UDP"), "{shown}");
            }
            "downpour tunnel -L 8080:localhost:80 -D 1080 far" | "downpour tunnel -L 8080:localhost:80" => {
                if !is_free(8080) || !is_free(1080) {
                    eprintln!("NOT RUN: {line}: another program has port 8080 or 1080");
                } else if line.ends_with("far") {
                    machines.tunnel(line, "");
                } else {
                    let made = "downpour tunnel --listen --permit localhost:80";
                    assert!(README.contains(&format!("`{made}`")));
                    let mut listener = machines.start(made, server);
                    let ticket = listener.wait_for("a ticket", |line| line.starts_with("downpour1"));
                    machines.tunnel(line, &ticket);
                    listener.signal(Signal::TERM);
                    listener.end();
                }
            }
            line if line.starts_with("ssh ") && line.contains("downpour proxy") => {
                // ssh's part is tried by `cargo xtask test-ssh`.
                // Without the ends of lines, which are not kept here.
                assert_eq!(machines.run(line, server, "SSH-2.0-test\r\n").stdout.trim_end(), "SSH-2.0-test", "{line}");
            }
            line => panic!("README.md has a new command: say here how it is tried: {line}"),
        }
    }
    machines.run("downpour tunnel -O exit me@far", server, "");
}

/// Returns the files at and below a path with their bytes, without the path itself.
fn tree_of(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.pop() {
        if next.is_symlink() {
            let name = next.strip_prefix(path).expect("below it").to_owned();
            found.push((name, fs::read_link(&next).expect("a link").into_os_string().into_encoded_bytes()));
        } else if next.is_dir() {
            open.extend(fs::read_dir(&next).expect("a directory").map(|entry| entry.expect("an entry").path()));
        } else {
            let name = next.strip_prefix(path).expect("below it").to_owned();
            found.push((name, fs::read(&next).unwrap_or_else(|error| panic!("{}: {error}", next.display()))));
        }
    }
    assert!(!found.is_empty(), "{} is empty", path.display());
    found.sort();
    found
}

/// The examples in Rust of every README, and of the guide, are compiled by `cargo test --doc`.
#[test]
fn examples_in_documents_are_compiled() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut seen = 0;
    for entry in fs::read_dir(&crates).expect("the crates") {
        let directory = entry.expect("an entry").path();
        let Ok(readme) = fs::read_to_string(directory.join("README.md")) else { continue };
        let library = fs::read_to_string(directory.join("src/lib.rs")).expect("a library");
        assert!(library.contains("#[doc = include_str!(\"../README.md\")]"), "{} is not compiled", directory.display());
        let blocks = readme.split("```").skip(1).step_by(2);
        for block in blocks.filter(|block| block.starts_with("rust")) {
            let kind = block.lines().next().unwrap_or_default();
            assert!(["rust", "rust,no_run"].contains(&kind), "{}: {kind} is not compiled", directory.display());
            seen += 1;
        }
        let indented = readme.lines().any(|line| line.starts_with("    ") && line.trim_end().ends_with(';'));
        assert!(!indented, "{}: write code between fences", directory.display());
    }
    assert!(seen >= 4, "{seen} examples");
}
