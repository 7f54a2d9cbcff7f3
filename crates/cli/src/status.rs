//! `downpour status`.

use std::time::Duration;

use downpour::activity::{Activity, Running, running};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::json::{self, JsonRecord};
use crate::print::{err, out};
use crate::progress::in_words;
use crate::{announce, escape};

/// How long processes may take to answer, all of them together: each does so at once, unless it is stopped.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows what this user has running; returns the exit code.
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
        (Some(pid), []) => Err(Failure::new(Code::Other, format!("no transfer of this user runs as process {pid}"))),
        (Some(pid), [Running { activity: None, .. }]) => {
            Err(Failure::new(Code::Timeout, format!("process {pid} does not answer: it may be stopped")))
        }
        (None, []) if !args.output.json => {
            err("No transfer of this user runs.");
            Ok(Code::Done as u8)
        }
        _ => Ok(Code::Done as u8),
    }
}

/// Formats what a process is, and how far.
fn lines(running: &Running) -> String {
    let pid = running.pid;
    match &running.activity {
        None => format!("{pid}  does not answer: it may be stopped"),
        Some(activity) => {
            let (what, age) = (what(activity), in_words(activity.age()));
            format!("{pid}  {what}, for {age}\n    {}", announce::how_far(activity))
        }
    }
}

/// Formats `cp photos/ far:archive`.
fn what(activity: &Activity) -> String {
    let words = [&activity.command].into_iter().chain(&activity.from).chain(&activity.to);
    words.map(|word| escape::text(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names come from other processes.
    #[test]
    fn a_name_cannot_write_to_the_terminal() {
        let from = vec!["a\x1b[2J\nb".to_owned()];
        let activity = Some(Activity::begun("cp", from, Some("far:".to_owned())));
        let shown = lines(&Running { pid: 7, activity });
        let (what, how_far) = shown.split_once(", for ").expect("a name and an age");
        assert_eq!(what, "7  cp a\\u{1b}[2J\\nb far:");
        assert!(how_far.ends_with(" s\n    waiting for the other side"), "{how_far}");
        assert!(lines(&Running { pid: 7, activity: None }).starts_with("7  does not answer"));
    }
}
