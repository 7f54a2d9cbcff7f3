//! `downpour pipe`.

use std::io::{self, IsTerminal as _};

use downpour::remote::{self, PipeEvent, PipeOptions};
use downpour::streams::SignalProbe;
use tokio::time::Instant;

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::rate_timetable::Limit;
use crate::watch::{GRACE, at};
use crate::{announce, options, print, taken};

/// Runs a pipe; returns the exit code of the command. Ctrl-C and SIGTERM end it within [`GRACE`]: nothing can be resumed.
pub(crate) async fn run(args: Args) -> Result<u8, Failure> {
    let probe = SignalProbe::start()?;
    let mut interrupts = taken(SignalHandlers::without_hang_up())?;
    if args.speed.limit.as_ref().is_some_and(Limit::changes) {
        return Err(Failure::new(Code::Usage, "a pipe supports one limit, not a timetable: use --limit RATE"));
    }
    let mut reach = options::reach(&args)?;
    // The stderr of the command is a result: files and programs get it unchanged, as from ssh. Only a terminal interprets
    // control characters.
    if !io::stderr().is_terminal() {
        reach.ssh.stderr_handler = None;
    }
    // Joined like ssh does.
    let pipe = PipeOptions { command: args.words.join(" "), reach };
    let mut attention = interrupts.attend();
    let mut piping = remote::pipe(pipe, probe)?;
    announce::piped(piping.taken());
    let (mut stopped, mut deadline) = (None, None);
    loop {
        let event = tokio::select! {
            event = piping.next() => event,
            stop = attention.next(), if stopped.is_none() => {
                (stopped, deadline) = (Some(stop), Some(Instant::now() + GRACE));
                piping.stop(stop.into());
                continue;
            }
            () = at(deadline) => {
                piping.abandon();
                None
            }
        };
        match (event, stopped) {
            (Some(PipeEvent::Note(line)), _) if args.output.quiet => drop(line),
            (Some(PipeEvent::Note(line)), _) => print::note(&line),
            (_, Some(stop)) => return Err(Failure::stopped(stop)),
            (Some(PipeEvent::Done(result)), None) => return Ok(result?),
            (None, None) => return Err(Failure::new(Code::Other, "internal error: the pipe ended without a result")),
        }
    }
}
