//! `pipe`: a remote command with local input.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::hosts::Hosts;
use crate::program::{assert_stays, end_within, poll_within};
use crate::tools::{stdout_of, words};
use crate::tree;

/// Both hosts notice any failure within this time: 2 s for a dead connection, and more for a busy host.
const NOTICED: Duration = Duration::from_secs(8);

/// A command that creates `whole` only if its input ended normally.
const WHOLE_ONLY: &str = "cat >part && mv part whole";

/// Returns `downpour pipe OPTIONS there COMMAND`, not started yet.
fn pipe(hosts: &Hosts, options: &[&str], command: &str) -> Command {
    let mut pipe = hosts.command("pipe");
    pipe.args(options).args(["there", command]).stdin(Stdio::piped());
    pipe
}

/// Runs the same with a file as input, to its end.
fn piped(hosts: &Hosts, options: &[&str], command: &str, input: &Path) -> Output {
    let file = fs::File::open(input).expect("a file");
    pipe(hosts, options, command).stdin(file).output().expect("downpour")
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_carries_all_input() {
    let hosts = Hosts::start();
    let input = tree::file(&hosts.local("input"), 50_000_000);
    let expected = stdout_of(Command::new("sha256sum").stdin(fs::File::open(&input).expect("a file")));
    for via in ["udp", "ssh"] {
        let hashed = piped(&hosts, &["--via", via], "sha256sum", &input);
        assert!(hashed.status.success(), "{}", words(&hashed.stderr));
        assert_eq!(words(&hashed.stdout), expected, "{via}");
        let back = piped(&hosts, &["--via", via], "cat", &input);
        assert!(back.stdout == fs::read(&input).expect("a file"), "{via}: {} bytes", back.stdout.len());
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_stdout_full_exit_7() {
    let hosts = Hosts::start();
    let full = fs::File::options().write(true).open("/dev/full").expect("a device that is full");
    let mut command = pipe(&hosts, &[], "echo done");
    let ended = command.stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().expect("downpour");
    assert_eq!(ended.status.code(), Some(7), "{}", words(&ended.stderr));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_runs_remote_shell_and_returns_exit_code() {
    let hosts = Hosts::start();
    let input = tree::file(&hosts.local("input"), 1000);
    for via in ["udp", "ssh"] {
        let options = ["--via", via];
        let ended = piped(&hosts, &options, "cat >'a b'; echo \"$HOME\" | wc -l; echo complaint >&2; exit 17", &input);
        assert_eq!(ended.status.code(), Some(17), "{via}: {}", words(&ended.stderr));
        assert_eq!(words(&ended.stdout), "1");
        assert!(words(&ended.stderr).lines().any(|line| line == "complaint"), "{}", words(&ended.stderr));
        tree::assert_same(&input, &hosts.remote("a b"));
        let absent = piped(&hosts, &options, "no-such-program", &input);
        assert_eq!(absent.status.code(), Some(127), "{via}: {}", words(&absent.stderr));
        let empty = piped(&hosts, &options, "wc -c", Path::new("/dev/null"));
        assert_eq!((empty.status.code(), words(&empty.stdout)), (Some(0), "0".to_owned()), "{via}");
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_ends_with_its_command() {
    let hosts = Hosts::start();
    let input = tree::file(&hosts.local("input"), 50_000_000);
    for via in ["udp", "ssh"] {
        let early = piped(&hosts, &["--via", via], "head -c 5 | wc -c; exit 3", &input);
        assert_eq!(
            (early.status.code(), words(&early.stdout)),
            (Some(3), "5".to_owned()),
            "{via}: {}",
            words(&early.stderr)
        );
        // An endless input does not delay the exit.
        let (child, stdin) = begin(pipe(&hosts, &["--via", via], "exit 4"));
        let ended = soon(child);
        assert_eq!(ended.status.code(), Some(4), "{via}: {}", words(&ended.stderr));
        drop(stdin);
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_stdout_closed_ends_command() {
    let hosts = Hosts::start();
    for via in ["udp", "ssh"] {
        for command in ["yes", "yes; exec sleep 1000"] {
            let (mut child, stdin) = begin(pipe(&hosts, &["--via", via], command));
            let mut output = child.stdout.take().expect("a pipe");
            output.read_exact(&mut [0; 100_000]).expect("output");
            drop(output);
            let begun = Instant::now();
            let mut pipe = child.stderr.take().expect("a pipe");
            let status = child.wait().expect("downpour");
            let mut text = String::new();
            pipe.read_to_string(&mut text).expect("words");
            assert_eq!((status.code(), &*text), (Some(141), ""), "{via}: {command}");
            assert!(begun.elapsed() < NOTICED, "{via}: {:?}", begun.elapsed());
            hosts.assert_remote_idle();
            drop(stdin);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_backpressure_bounds_memory() {
    for via in ["udp", "ssh"] {
        slows_down(via);
    }
}

fn slows_down(via: &str) {
    let hosts = Hosts::start();
    let (child, mut stdin) = begin(pipe(&hosts, &["--via", via], "cat fifo; wc -c"));
    stdout_of(Command::new("mkfifo").arg(hosts.remote("fifo")));
    // More than the capacity of all buffers. The thread ends with the pipe.
    let fed = thread::spawn(move || stdin.write_all(&vec![0; 300_000_000]).is_ok());
    assert_stays(Duration::from_secs(2), "not all of the 300 MB is taken", || !fed.is_finished());
    let most = most_memory(&hosts);
    assert!(most < 150_000, "{most} kB");
    fs::write(hosts.remote("fifo"), "").expect("a pipe");
    let ended = child.wait_with_output().expect("downpour");
    assert_eq!(words(&ended.stdout), "300000000", "{}", words(&ended.stderr));
    assert!(fed.join().expect("a thread"));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_background_child_survives() {
    let hosts = Hosts::start();
    let command = "mkfifo fifo; (cat fifo >late) >/dev/null 2>&1 & exec head -c 3";
    let ended = piped(&hosts, &["--via", "udp"], command, &tree::file(&hosts.local("input"), 1000));
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(0), 3), "{}", words(&ended.stderr));
    fs::write(hosts.remote("fifo"), "goes on").expect("a pipe");
    hosts.assert_remote_idle();
    assert_eq!(fs::read_to_string(hosts.remote("late")).expect("a file"), "goes on");
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_stdin_unreadable_kills_command() {
    for via in ["udp", "ssh"] {
        let hosts = Hosts::start();
        let begun = Instant::now();
        let directory = hosts.local("");
        let ended = piped(&hosts, &["--via", via], WHOLE_ONLY, &directory);
        assert_eq!(ended.status.code(), Some(7), "{via}: {}", words(&ended.stderr));
        assert!(words(&ended.stderr).contains("cannot read stdin: Is a directory"), "{via}: {}", words(&ended.stderr));
        assert!(begun.elapsed() < NOTICED, "{via}: {:?}", begun.elapsed());
        hosts.assert_remote_idle();
        assert!(!hosts.remote("whole").exists(), "{via}");
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_ends_with_ssh_despite_udp() {
    type Break = fn(&Hosts);
    let breaks: [(&str, Break); 2] = [
        ("the program there is killed", Hosts::kill_remote),
        ("the session is killed", |hosts| hosts.sshd.kill_sessions()),
    ];
    for (description, break_it) in breaks {
        let hosts = Hosts::start();
        // A dead connection is only detected after a longer time.
        let (child, stdin) = under_way_with(&hosts, &["--via", "udp", "--timeout", "30"]);
        break_it(&hosts);
        let ended = soon(child);
        assert_eq!(ended.status.code(), Some(8), "{description}: {}", words(&ended.stderr));
        hosts.assert_remote_idle();
        assert!(!hosts.remote("whole").exists(), "{description}");
        drop(stdin);
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_exit_code_over_ssh_after_udp_loss() {
    let hosts = Hosts::with_cable();
    let options = ["--via", "udp", "--timeout", "30"];
    let (child, mut stdin) = begin(pipe(&hosts, &options, "head -c 5 >part; cat fifo; exit 17"));
    stdout_of(Command::new("mkfifo").arg(hosts.remote("fifo")));
    stdin.write_all(b"bytes").expect("a pipe");
    assert_arrives(&hosts, 5, NOTICED);
    hosts.network.as_ref().expect("a network").drop_udp();
    fs::write(hosts.remote("fifo"), "").expect("a pipe");
    let ended = soon(child);
    assert_eq!(ended.status.code(), Some(17), "{}", words(&ended.stderr));
    drop(stdin);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_via_ssh_binds_no_udp_port() {
    let hosts = Hosts::start();
    let taken = UdpSocket::bind("[::]:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let input = tree::file(&hosts.local("input"), 1000);
    let ended = piped(&hosts, &["--via", "ssh", "--port", &port], "wc -c", &input);
    assert_eq!((ended.status.code(), &*words(&ended.stdout)), (Some(0), "1000"), "{}", words(&ended.stderr));
}

/// Returns the memory of the largest process of the program on either host, in kB.
fn most_memory(hosts: &Hosts) -> u64 {
    let processes = hosts.remote_processes().into_iter().chain(hosts.local_processes());
    let resident = |process: Pid| {
        let status = fs::read_to_string(format!("/proc/{}/status", process.as_raw_nonzero())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().split(' ').next()?.parse().ok()
    };
    processes.filter_map(resident).max().expect("a process")
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_broken_input_never_looks_complete() {
    type Break = fn(&Hosts, &Child);
    let breaks: [(&str, Break); 4] = [
        ("this side is killed", |_, child| signal(child, Signal::KILL)),
        ("the session is killed", |hosts, _| hosts.sshd.kill_sessions()),
        ("the program there is killed", |hosts, _| hosts.kill_remote()),
        ("Ctrl-C", |_, child| signal(child, Signal::INT)),
    ];
    for (description, break_it) in breaks {
        for via in ["udp", "ssh"] {
            let hosts = Hosts::start();
            let (child, stdin) = under_way(&hosts, via);
            break_it(&hosts, &child);
            let ended = soon(child);
            assert!(!ended.status.success(), "{description}, {via}");
            hosts.assert_remote_idle();
            assert!(!hosts.remote("whole").exists(), "{description}, {via}");
            drop(stdin);
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_sigint_to_group_is_not_eof() {
    for via in ["udp", "ssh"] {
        for _ in 0..5 {
            let hosts = Hosts::start();
            let mut line = hosts.command("pipe");
            line.args(["--via", via, "there", WHOLE_ONLY]);
            let mut shell = Command::new("sh");
            shell.args(["-c", r#"(head -c 100000 /dev/zero; exec sleep 1000) | "$@""#, "sh"]).arg(line.get_program());
            shell.args(line.get_args()).envs(line.get_envs().filter_map(|(name, value)| Some((name, value?))));
            // Like a terminal's foreground job: one process group, which gets the signal.
            let shell = shell.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a shell");
            assert_arrives(&hosts, 100_000, NOTICED);
            kill_process_group(Pid::from_child(&shell), Signal::INT).expect("a group");
            soon(shell);
            hosts.assert_remote_idle();
            assert!(!hosts.remote("whole").exists(), "{via}");
        }
    }
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_udp_lost_kills_command() {
    let hosts = Hosts::with_cable();
    let (child, stdin) = under_way(&hosts, "udp");
    hosts.network.as_ref().expect("a network").drop_udp();
    let ended = soon(child);
    assert_eq!(ended.status.code(), Some(8), "{}", words(&ended.stderr));
    hosts.assert_remote_idle();
    assert!(!hosts.remote("whole").exists());
    drop(stdin);
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_udp_blocked_falls_back_to_ssh() {
    let hosts = Hosts::with_cable();
    let input = tree::file(&hosts.local("input"), 1_000_000);
    hosts.network.as_ref().expect("a network").drop_udp();
    let ended = piped(&hosts, &[], WHOLE_ONLY, &input);
    assert_eq!(ended.status.code(), Some(0), "{}", words(&ended.stderr));
    assert!(words(&ended.stderr).contains("using ssh, which is slower"), "{}", words(&ended.stderr));
    tree::assert_same(&input, &hosts.remote("whole"));
    let refused = piped(&hosts, &["--via", "udp"], "cat", &input);
    assert_eq!(refused.status.code(), Some(5), "{}", words(&refused.stderr));
}

#[test]
#[ignore = "cargo xtask test-ssh"]
fn pipe_udp_one_way_lasts_until_input_ends() {
    let hosts = Hosts::with_cable();
    // The remote host receives datagrams, but its answers are dropped.
    hosts.network.as_ref().expect("a network").drop_udp_from_remote();
    let (mut child, mut stdin) = begin(pipe(&hosts, &["--timeout", "2"], WHOLE_ONLY));
    stdin.write_all(&[7; 100_000]).expect("a pipe");
    assert_arrives(&hosts, 100_000, 2 * NOTICED);
    // Everything left of the attempt over UDP has ended by then.
    assert_stays(NOTICED, "the pipe runs as long as its input", || child.try_wait().expect("a child").is_none());
    stdin.write_all(&[7; 100_000]).expect("a pipe");
    drop(stdin);
    let ended = soon(child);
    assert_eq!(ended.status.code(), Some(0), "{}", words(&ended.stderr));
    assert_eq!(fs::read(hosts.remote("whole")).expect("a file"), [7; 200_000]);
}

/// Starts a pipe to [`WHOLE_ONLY`] and waits until some of its input has arrived.
fn under_way(hosts: &Hosts, via: &str) -> (Child, ChildStdin) {
    under_way_with(hosts, &["--via", via, "--timeout", "2"])
}

fn under_way_with(hosts: &Hosts, options: &[&str]) -> (Child, ChildStdin) {
    let (child, mut stdin) = begin(pipe(hosts, options, WHOLE_ONLY));
    stdin.write_all(&[7; 100_000]).expect("a pipe");
    assert_arrives(hosts, 100_000, NOTICED);
    (child, stdin)
}

/// Waits until the command has read this many bytes.
#[track_caller]
fn assert_arrives(hosts: &Hosts, bytes: u64, within: Duration) {
    let part = hosts.remote("part");
    poll_within(within, "all bytes at the command", || {
        fs::metadata(&part).is_ok_and(|file| file.len() == bytes).then_some(())
    });
}

fn begin(mut pipe: Command) -> (Child, ChildStdin) {
    let mut child = pipe.spawn().expect("downpour");
    let stdin = child.stdin.take().expect("a piped stdin");
    (child, stdin)
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).expect("a process");
}

/// Waits for the program to end, which must be soon, even if other pipes are open.
#[track_caller]
fn soon(mut child: Child) -> Output {
    let status = end_within(NOTICED, "the pipe", &mut child);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    child.stdout.take().expect("a pipe").read_to_end(&mut stdout).expect("words");
    child.stderr.take().expect("a pipe").read_to_end(&mut stderr).expect("words");
    Output { status, stdout, stderr }
}
