//! `downpour pipe`.

use downpour::remote::{self, Pipe, PipeEvent, Witness};
use tokio::time::Instant;

use crate::args::PipeArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::limit::Limit;
use crate::watch::{GRACE, at};
use crate::{escape, options, print, taken};

/// Runs a pipe; returns the exit code of the command. Ctrl-C and SIGTERM end it within [`GRACE`], since there is
/// nothing to save.
pub(crate) async fn run(args: PipeArgs) -> Result<u8, Failure> {
    let witness = Witness::start()?;
    let mut interrupts = taken(Interrupts::without_hang_up())?;
    if args.speed.limit.as_ref().is_some_and(Limit::changes) {
        return Err(Failure::new(Code::Usage, "a pipe has one limit, not a timetable: write --limit RATE"));
    }
    let profile = options::stream_profile(&args.speed, &args.overhead)?;
    let pipe = Pipe {
        // Joined like ssh does.
        command: args.command.join(" "),
        via: options::via(args.via),
        ssh: options::ssh(&args.ssh),
        ports: args.network.port.clone(),
        family: options::family(&args.network),
        profile,
        endpoint: options::endpoint(args.network.timeout, args.speed.memory),
        host: args.host,
    };
    let mut piping = remote::pipe(pipe, witness)?;
    let (mut stopped, mut deadline) = (None, None);
    loop {
        let event = tokio::select! {
            event = piping.next() => event,
            stop = interrupts.next(), if stopped.is_none() => {
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
            (Some(PipeEvent::Note(line)), _) if args.quiet => drop(line),
            (Some(PipeEvent::Note(line)), _) => print::err(escape::text(&line)),
            (_, Some(stop)) => return Err(Failure::stopped(stop)),
            (Some(PipeEvent::Done(result)), None) => return Ok(result?),
            (None, None) => return Err(Failure::new(Code::Other, "the pipe ended without a word")),
        }
    }
}
