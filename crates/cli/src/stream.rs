//! `send -` and `recv` of what it sends: a stream under a name.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use downpour::Ticket;
use downpour::files::Existing;
use downpour::remote::SignalProbe;
use downpour::streams::{StreamFetch, StreamOffer, StreamTarget, is_name};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::interrupt::{Attention, SignalHandlers};
use crate::output::Output;
use crate::prompt::Question;
use crate::stop_signal::StopSignal;
use crate::ticket::{self, Guest};
use crate::{announce, escape, options, print};

/// The name of a stream that was given none.
const UNNAMED: &str = "stdin";

/// Whether stdin is to be sent.
pub(crate) fn is_sent(args: &Args) -> bool {
    args.stream_name.is_some() || args.paths.iter().any(|path| path == Path::new("-"))
}

/// Sends stdin; returns the exit code. A hang-up ends the process as well as the one that feeds it.
pub(crate) async fn send(args: Args) -> Result<u8, Failure> {
    let name = name(&args)?;
    let witness = SignalProbe::start()?;
    let mut interrupts = crate::taken(SignalHandlers::without_hang_up())?;
    let options = options::engine(&args)?;
    let mut attention = interrupts.attend();
    let offer = StreamOffer::listen(name.clone(), args.ticket.listen.flatten(), options::TICKET_LIFETIME, options)?;
    let output = Output::new(args.output);
    output.speed(args.speed.rate, args.speed.limit.as_ref());
    let guest = Guest::Receiver { many: false };
    let ticket = ticket::publish(Some(offer.ticket()), args.ticket.file.as_deref(), guest, &output)?;
    output.start("send", args.speed.rate, ticket.as_deref())?;
    let taken = Arc::<AtomicU64>::default();
    announce::piped(Arc::clone(&taken));
    let mut stopped = None;
    let sent = offer.serve(witness, taken, stop(&mut attention, &mut stopped)).await;
    let bytes = done(sent, stopped)?;
    output.say(format_args!("Sent {} as {}, verified there.", units::bytes(bytes), escape::name(&name)));
    Ok(Code::Done as u8)
}

/// Returns the name of the stream.
fn name(args: &Args) -> Result<Vec<u8>, Failure> {
    let refused = |message: &str| Failure::new(Code::Usage, message);
    if args.paths != [Path::new("-")] {
        return Err(refused("a stream goes alone: write `send - --name NAME`, or ./- for a file of that name"));
    }
    if args.ticket.to.is_some() {
        return Err(refused("`send -` makes the ticket: leave --to out, and run `downpour recv -` on the other side"));
    }
    if args.ticket.keep {
        return Err(refused("stdin can be read only once, by one receiver: leave --keep out"));
    }
    if args.files_from.is_some() {
        return Err(refused("--files-from lists files, and `-` sends stdin: name the directory of the files instead"));
    }
    if args.options.checksums.is_some() {
        return Err(refused("--checksums lists files, and stdin is none: leave it out"));
    }
    check_output(args)?;
    if args.speed.limit.as_ref().is_some_and(crate::rate_timetable::Limit::changes) {
        return Err(refused("a stream has one limit, not a timetable: write --limit RATE"));
    }
    let name = args.stream_name.as_deref().map_or(UNNAMED.as_bytes(), |name| name.as_bytes());
    if !is_name(name) {
        return Err(refused("--name: a name of up to 255 bytes without a slash, such as backup.tar"));
    }
    Ok(name.to_vec())
}

/// Refuses output that streams do not have.
fn check_output(args: &Args) -> Result<(), Failure> {
    let refused = |message: &str| Err(Failure::new(Code::Usage, message));
    match (args.output.json, &args.options.qlog) {
        (true, _) => refused("--json has no lines for streams: leave it out"),
        (false, Some(_)) => refused("--qlog traces transfers of files, and this is a stream: leave it out"),
        (false, None) => Ok(()),
    }
}

/// Receives a stream, to stdout or under its name; returns the exit code.
pub(crate) async fn receive(
    ticket: Ticket,
    args: Args,
    is_to_stdout: bool,
    interrupts: &mut SignalHandlers,
) -> Result<u8, Failure> {
    let target = target(&args, is_to_stdout)?;
    let options = options::engine(&args)?;
    let output = Output::new(args.output);
    let (mut attention, mut stopped) = (interrupts.attend(), None);
    let connected =
        StreamFetch::connect(&ticket, options, args.options.handshake_timeout, stop(&mut attention, &mut stopped))
            .await;
    let offered = done(connected, stopped)?.check(&target).await?;
    let shown = escape::name(offered.name());
    if let StreamTarget::Directory { path, .. } = &target {
        let into = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let words = format!(
            "Coming: {shown} (a stream, whose length is open; it cannot be resumed)\nInto:   {}",
            into.display()
        );
        if !args.options.confirm {
            output.say(words);
        } else {
            print::err(words);
            match answer(&mut attention).await {
                Ok(true) => {}
                Ok(false) => {
                    offered.decline().await;
                    return Err(downpour::Error::Declined.into());
                }
                Err(failure) => {
                    offered.decline().await;
                    return Err(failure);
                }
            }
        }
    }
    let (mut stopped, arrived) = (None, Arc::<AtomicU64>::default());
    announce::piped(Arc::clone(&arrived));
    let taken =
        offered.take(target, args.receive.permitted.max_bytes, arrived, stop(&mut attention, &mut stopped)).await;
    let bytes = done(taken, stopped)?;
    output.say(format_args!("Received {} as {shown}, verified.", units::bytes(bytes)));
    Ok(Code::Done as u8)
}

fn target(args: &Args, is_to_stdout: bool) -> Result<StreamTarget, Failure> {
    check_output(args)?;
    if is_to_stdout {
        return Ok(StreamTarget::Stdout);
    }
    let replaces = match args.receive.existing {
        Existing::Refuse => false,
        Existing::Replace => true,
        Existing::Skip | Existing::KeepNewer | Existing::UpdateOnly => {
            let message = "a stream has no length and no time to compare: write --existing replace or refuse";
            return Err(Failure::new(Code::Usage, message));
        }
    };
    Ok(StreamTarget::Directory { path: args.receive.target.clone(), replaces })
}

async fn answer(attention: &mut Attention<'_>) -> Result<bool, Failure> {
    let mut question = Question::ask("Take it?");
    let answer: io::Result<bool> = tokio::select! {
        answer = question.answer() => answer,
        stop = attention.next() => {
            question.withdraw();
            return Err(Failure::stopped(stop));
        }
    };
    answer.map_err(|_| {
        let message = "no answer, so the stream was not accepted: answer y on stdin, or give --yes to accept it";
        Failure::new(Code::Usage, message)
    })
}

/// Waits for a signal to stop, and keeps it.
async fn stop(attention: &mut Attention<'_>, stopped: &mut Option<StopSignal>) -> downpour::StopReason {
    let stop = attention.next().await;
    *stopped = Some(stop);
    stop.into()
}

fn done<T>(result: Result<T, downpour::Error>, stopped: Option<StopSignal>) -> Result<T, Failure> {
    match stopped {
        Some(stop) => Err(Failure::stopped(stop)),
        None => Ok(result?),
    }
}
