//! `pipe` to a command on this machine.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::far::Far;

/// A closed output ends both sides within a second, or later if the machine is busy.
const SOON: Duration = Duration::from_secs(3);

/// Waits for a program, which must end soon. Returns its exit status and its error output.
#[track_caller]
fn ended(mut child: Child) -> (ExitStatus, String) {
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begun.elapsed() > SOON {
            let _ = child.kill();
            panic!("it does not end in {SOON:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut words = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut words).expect("words");
    (status, words)
}

#[test]
fn a_closed_output_ends_the_command_on_both_sides() {
    // Commands that die of the next write, ignore the failed write, or write nothing more.
    for (command, rest) in [("yes", ""), ("trap '' PIPE; yes || exec sleep 1000", ""), ("yes", "; exec sleep 1000")] {
        for via in ["udp", "ssh"] {
            let far = Far::new();
            let line = format!("echo $$ >pid; {command}{rest}");
            let mut pipe = far.command("pipe", ["--via", via, "far", &line]);
            // An input that stays open.
            let mut child = pipe.stdin(Stdio::piped()).spawn().expect("downpour");
            let stdin = child.stdin.take();
            let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
            let mut first = String::new();
            output.read_line(&mut first).expect("a line");
            assert_eq!(first, "y\n");
            drop(output);
            let (status, words) = ended(child);
            assert_eq!(status.code(), Some(141), "{line} via {via}: {words}");
            assert!(!words.contains("downpour:"), "{line} via {via}: {words}");
            let pid = std::fs::read_to_string(far.there("pid")).expect("a file");
            far.assert_gone(&pid);
            drop(stdin);
        }
    }
}

#[test]
fn an_output_that_fails_otherwise_ends_the_command_too_and_is_told() {
    for via in ["udp", "ssh"] {
        let far = Far::new();
        let mut pipe = far.command("pipe", ["--via", via, "far", "echo $$ >pid; yes"]);
        let full = File::options().write(true).open("/dev/full").expect("a device that is full");
        let child = pipe.stdin(Stdio::piped()).stdout(full).spawn().expect("downpour");
        let (status, words) = ended(child);
        assert_eq!(status.code(), Some(7), "{words}");
        assert!(words.contains("cannot write to stdout: No space left on device"), "{words}");
        far.assert_gone(&std::fs::read_to_string(far.there("pid")).expect("a file"));
    }
}
