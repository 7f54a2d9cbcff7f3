//! `downpour status`.

use std::time::Duration;

use downpour::activity::{Activity, Running, running};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::json::{self, JsonRecord};
use crate::print::{err, out};
use crate::progress::in_words;
use crate::{announce, escape};

/// Time for all processes to answer: each answers at once, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows the running transfers of this user; returns the exit code.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let mut found = running(PATIENCE);
    found.retain(|running| args.pid.is_none_or(|pid| running.pid == pid));
    for running in &found {
        if args.output.json {
            json::print(&JsonRecord::Running(json::Running::from(running)));
        } else {
            out(lines(running));
        }
    }
    match (args.pid, &found[..]) {
        (Some(pid), []) => {
            Err(Failure::new(Code::Other, format!("process {pid} is not a running transfer of this user")))
        }
        (Some(pid), [Running { activity: None, .. }]) => {
            Err(Failure::new(Code::Timeout, format!("process {pid} does not answer: it may be stopped")))
        }
        (None, []) if !args.output.json => {
            err("No transfers are running.");
            Ok(Code::Done as u8)
        }
        _ => Ok(Code::Done as u8),
    }
}

/// Formats the activity of a process and its progress.
fn lines(running: &Running) -> String {
    let pid = running.pid;
    match &running.activity {
        None => format!("{pid}  does not answer: it may be stopped"),
        Some(activity) => {
            let (command, age) = (command_line(activity), in_words(activity.age()));
            format!("{pid}  {command}, for {age}\n    {}", announce::describe(activity))
        }
    }
}

/// Formats `cp photos/ far:archive`.
fn command_line(activity: &Activity) -> String {
    let words = [&activity.command].into_iter().chain(&activity.from).chain(&activity.to);
    words.map(|word| escape::text(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names come from other processes.
    #[test]
    fn status_escapes_names() {
        let from = vec!["a\x1b[2J\nb".to_owned()];
        let activity = Some(Activity::begun("cp", from, Some("far:".to_owned())));
        let shown = lines(&Running { pid: 7, activity });
        let (command, progress) = shown.split_once(", for ").expect("a name and an age");
        assert_eq!(command, "7  cp a\\u{1b}[2J\\nb far:");
        assert!(progress.ends_with(" s\n    waiting for the peer"), "{progress}");
        assert!(lines(&Running { pid: 7, activity: None }).starts_with("7  does not answer"));
    }
}
