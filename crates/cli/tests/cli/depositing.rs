//! The command of the systemd unit, as systemd would start it: its settings, its mask, its directories, and a user for
//! each depositor.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Signal, geteuid};
use tempfile::{TempDir, tempdir};

use crate::program::{Ended, Program, arguments, copy_program, downpour, program_with, wait_until};
use crate::tree;

const UNIT: &str = include_str!("../../../../packaging/systemd/downpour-recv@.service");

/// The users that depositors get where the test may choose them.
const FIRST_USER: u32 = 61_184;

/// Returns the value of a setting of the unit.
fn setting(name: &str) -> &'static str {
    let lines: Vec<&str> = UNIT.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect();
    assert_eq!(lines.len(), 1, "{name}: {lines:?}");
    lines[0]
}

/// A host with the unit.
struct Machine {
    directory: TempDir,
    program: PathBuf,
    /// The settings of `systemctl edit`.
    settings: &'static str,
}

impl Machine {
    fn new(settings: &'static str) -> Self {
        let directory = tempdir().expect("a directory");
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).expect("a mode");
        let program = directory.path().join("downpour");
        // Not every user can enter the directory that it was built in.
        copy_program(&program);
        Self { directory, program, settings }
    }

    /// `/run` or `/var/lib`.
    fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Makes the directory of a depositor, as systemd does.
    fn directory_of(&self, place: &str, setting_name: &str, depositor: &str) -> PathBuf {
        let mode = u32::from_str_radix(setting(&format!("{setting_name}Mode")), 8).expect("a mode");
        let directory = self.place(place).join(setting(setting_name).replace("%i", depositor));
        if !directory.exists() {
            fs::create_dir_all(&directory).expect("a directory");
            fs::set_permissions(&directory, Permissions::from_mode(mode)).expect("a mode");
            if geteuid().is_root() {
                let user = Some(user_of(depositor));
                chown(&directory, user, user).expect("an owner");
            }
        }
        directory
    }

    fn state_of(&self, depositor: &str) -> PathBuf {
        self.directory_of("lib", "StateDirectory", depositor)
    }

    fn ticket_of(&self, depositor: &str) -> PathBuf {
        self.directory_of("run", "RuntimeDirectory", depositor).join("ticket")
    }

    /// Starts the unit for a depositor and waits for the ticket.
    fn start(&self, depositor: &str) -> Program {
        let ticket = self.ticket_of(depositor);
        let _ = fs::remove_file(&ticket);
        self.state_of(depositor);
        let mut line = setting("ExecStart").replace("%i", depositor);
        line = line.replace("%t", &self.place("run").display().to_string());
        line = line.replace("%S", &self.place("lib").display().to_string());
        let assignments =
            setting("Environment").split(' ').chain(self.settings.split(' ').filter(|part| !part.is_empty()));
        // The last assignment counts.
        for (name, value) in assignments.map(|one| one.split_once('=').expect("an assignment")).rev() {
            line = line.replace(&format!("${{{name}}}"), value);
        }
        let words: Vec<&str> = line.split(' ').skip(1).collect();
        let with_mask = format!("umask {}; exec \"$0\" \"$@\"", setting("UMask"));
        let mut shell: Command = program_with(Path::new("/bin/sh"), arguments!["-c", with_mask, self.program]);
        shell.args(words).current_dir("/");
        if geteuid().is_root() {
            shell.uid(user_of(depositor)).gid(user_of(depositor));
        }
        let listener = Program::start(shell);
        wait_until(&format!("a ticket: {line}"), || fs::read_to_string(&ticket).is_ok_and(|text| text.ends_with('\n')));
        listener
    }

    /// A depositor sends files with the ticket that root has handed over.
    fn deposit(&self, depositor: &str, source: &Path) -> Ended {
        let handed = self.place("handed");
        let _ = fs::remove_file(&handed);
        fs::copy(self.ticket_of(depositor), &handed).expect("a ticket");
        downpour(arguments!["send", "--to", "--ticket-file", handed, source]).end()
    }
}

fn user_of(depositor: &str) -> u32 {
    FIRST_USER + u32::from(depositor.as_bytes()[0])
}

#[test]
fn depositors_separate_and_replace_nothing() {
    let (machine, local) = (Machine::new(""), tempdir().expect("a directory"));
    let source = tree::directory(&local.path().join("photos"));
    let mut listeners: Vec<Program> = ["alice", "bob"].map(|depositor| machine.start(depositor)).into();
    for depositor in ["alice", "bob"] {
        machine.deposit(depositor, &source).expect(0);
        let arrived = machine.state_of(depositor).join("photos");
        assert_eq!(
            fs::read(arrived.join("in/some")).expect("a file"),
            fs::read(source.join("in/some")).expect("a file")
        );
        let status = fs::metadata(arrived.join("one")).expect("a file");
        assert_eq!(status.mode() & 0o077, 0, "private");
        assert!(!geteuid().is_root() || status.uid() == user_of(depositor), "{}", status.uid());
        listeners.remove(0).end().expect(0);
    }
    // Alice sends another file under a name that she and Bob have.
    fs::write(source.join("one"), "another").expect("a file");
    let before = fs::read(machine.state_of("alice").join("photos/one")).expect("a file");
    let listener = machine.start("alice");
    machine.deposit("alice", &source).expect(1);
    listener.end().expect(1);
    for depositor in ["alice", "bob"] {
        assert_eq!(fs::read(machine.state_of(depositor).join("photos/one")).expect("a file"), before, "{depositor}");
        assert_eq!(tree::names(&machine.state_of(depositor)), [PathBuf::from("photos")]);
    }
}

#[test]
fn deposit_over_quota_refused() {
    let local = tempdir().expect("a directory");
    let (small, large) = (tree::file(&local.path().join("small"), 900), tree::file(&local.path().join("large"), 1_001));
    let many = local.path().join("many");
    fs::create_dir(&many).expect("a directory");
    for name in ["1", "2", "3"] {
        tree::file(&many.join(name), 1);
    }
    let machine = Machine::new("QUOTA=1kB MAX_FILES=3");
    let listener = machine.start("alice");
    for source in [&large, &many] {
        machine.deposit("alice", source).expect(7);
        assert!(tree::names(&machine.state_of("alice")).is_empty());
    }
    machine.deposit("alice", &small).expect(0);
    listener.end().expect(0);
    assert_eq!(tree::names(&machine.state_of("alice")), [PathBuf::from("small")]);
}

#[test]
fn depositor_writes_only_own_directory() {
    if !geteuid().is_root() {
        println!("not checked: only root has users for the depositors");
        return;
    }
    let machine = Machine::new("");
    let listener = machine.start("alice");
    machine.state_of("bob");
    // The rights of Alice's program if an attacker controlled it.
    let write = |into: PathBuf| {
        let mut shell = Command::new("/bin/sh");
        let script = format!(": > '{}/mine'", into.display());
        let status = shell.args(["-c", &script]).uid(user_of("alice")).gid(user_of("alice")).status().expect("a shell");
        status.success()
    };
    assert!(write(machine.state_of("alice")));
    assert!(!write(machine.state_of("bob")));
    assert!(!write(machine.place("lib")));
    listener.signal(Signal::TERM);
    listener.end().expect(75);
}
