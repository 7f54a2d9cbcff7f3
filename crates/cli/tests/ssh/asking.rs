//! Prompts and messages of ssh itself.

use std::process::{Command, Stdio};

use tempfile::tempdir;

use crate::client::Client;
use crate::program::{Program, arguments};
use crate::sshd::Sshd;
use crate::terminal::Terminal;
use crate::tools::DOWNPOUR;
use crate::tree;

#[test]
#[ignore = "cargo xtask test-ssh"]
fn ssh_prompt_on_terminal_and_output_prefixed() {
    let (sshd, local) = (Sshd::start(), tempdir().expect("a directory"));
    let client = Client::of(&[("there", &sshd)]);
    client.know(&[]);
    let file = tree::file(&local.path().join("file"), 100_000);
    let (mut terminal, input, stderr) = Terminal::open();
    // Its own session, whose terminal this is.
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", DOWNPOUR, "cp", "--config=none", "--remote-bin", DOWNPOUR, "--ssh"]);
    let asks = "-oBatchMode=no -oStrictHostKeyChecking=ask -oHashKnownHosts=no -oLogLevel=INFO";
    command.arg(format!("{} {asks}", client.words())).args(arguments!["--via=ssh", file, "there:copy"]);
    command.stdin(input).stderr(stderr).stdout(Stdio::null());
    let program = Program::start(command);
    terminal.wait_for("continue connecting (yes/no");
    assert!(terminal.shown.contains("The authenticity of host"), "{}", terminal.shown);
    assert!(!terminal.shown.contains("there: "), "ssh asks on the terminal itself: {}", terminal.shown);
    terminal.type_line("yes");
    terminal.wait_for("there: Warning: Permanently added");
    terminal.wait_for("1 file");
    program.end().expect(0);
    tree::assert_same(&file, &sshd.home().join("copy"));
}

/// ssh leaves a process behind that keeps the connection for the next login.
#[test]
#[ignore = "cargo xtask test-ssh"]
fn control_persist_not_waited_for() {
    let (sshd, local) = (Sshd::start(), tempdir().expect("a directory"));
    let client = Client::of(&[("there", &sshd)]);
    let file = tree::file(&local.path().join("file"), 100_000);
    let path = local.path().join("control");
    let keeps = format!("-oControlMaster=auto -oControlPersist=300 -oControlPath={}", path.display());
    for target in ["there:first", "there:second"] {
        let mut command = Command::new(DOWNPOUR);
        command.args(["cp", "--config=none", "--via=ssh", "--remote-bin", DOWNPOUR]);
        command.args(["--ssh", &format!("{} {keeps}", client.words())]);
        command.arg(&file).arg(target).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Program::start(command).end().expect(0);
        assert!(path.exists(), "the connection is kept");
    }
    let mut exit = client.ssh();
    let exited = exit.args(["-O", "exit"]).arg(format!("-oControlPath={}", path.display())).arg("there").status();
    assert!(exited.expect("ssh").success());
    tree::assert_same(&file, &sshd.home().join("second"));
}
