//! `send -`, and `recv` of its stream, which has a name.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use downpour::Ticket;
use downpour::files::Existing;
use downpour::streams::{SignalProbe, StreamFetch, StreamOffer, StreamSource, StreamTarget, is_name};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::interrupt::{Attention, SignalHandlers};
use crate::output::Output;
use crate::prompt::Question;
use crate::stop_signal::StopSignal;
use crate::ticket::{self, ExpectedPeer};
use crate::{announce, escape, options, print};

/// The default name of a stream.
const DEFAULT_NAME: &str = "stdin";

/// Returns whether the arguments request to send stdin.
pub(crate) fn is_requested(args: &Args) -> bool {
    args.stream_name.is_some() || args.paths.iter().any(|path| path == Path::new("-"))
}

/// Sends stdin; returns the exit code. A hang-up ends the process, like the one that feeds it.
pub(crate) async fn send(args: Args) -> Result<u8, Failure> {
    let name = name(&args)?;
    let probe = SignalProbe::start()?;
    let mut interrupts = crate::taken(SignalHandlers::without_hang_up())?;
    let options = options::engine(&args)?;
    let mut attention = interrupts.attend();
    let offer = StreamOffer::listen(name.clone(), args.ticket.listen.flatten(), options::TICKET_LIFETIME, options)?;
    let output = Output::new(args.output);
    output.speed(args.speed.rate, args.speed.limit.as_ref());
    let expected = ExpectedPeer::Receiver { many: false };
    let ticket = ticket::publish(Some(offer.ticket()), args.ticket.file.as_deref(), expected, &output)?;
    output.start("send", args.speed.rate, ticket.as_deref())?;
    let taken = Arc::<AtomicU64>::default();
    announce::piped(Arc::clone(&taken));
    let mut stopped = None;
    let sent = offer.serve(StreamSource::Stdin(probe), taken, stop(&mut attention, &mut stopped)).await;
    let bytes = done(sent, stopped)?;
    output.say(format_args!("Sent {} as {}, verified by the receiver.", units::bytes(bytes), escape::name(&name)));
    Ok(Code::Done as u8)
}

/// Returns the name of the stream.
fn name(args: &Args) -> Result<Vec<u8>, Failure> {
    let refused = |message: &str| Failure::new(Code::Usage, message);
    if args.paths != [Path::new("-")] {
        return Err(refused(
            "stdin cannot be sent with other paths: write `send - --name NAME`, or ./- for a file of that name",
        ));
    }
    if args.ticket.to.is_some() {
        return Err(refused("`send -` prints the ticket: omit --to, and run `downpour recv -` on the receiving host"));
    }
    if args.ticket.keep {
        return Err(refused("stdin can be read only once, by one receiver: omit --keep"));
    }
    if args.files_from.is_some() {
        return Err(refused("--files-from needs a directory, not stdin: name the directory instead of -"));
    }
    if args.options.checksums.is_some() {
        return Err(refused("--checksums does not support stdin: omit it"));
    }
    check_output(args)?;
    if args.speed.limit.as_ref().is_some_and(crate::rate_timetable::Limit::changes) {
        return Err(refused("a stream supports one limit, not a timetable: use --limit RATE"));
    }
    let name = args.stream_name.as_deref().map_or(DEFAULT_NAME.as_bytes(), |name| name.as_bytes());
    if !is_name(name) {
        return Err(refused("--name: write a name of at most 255 bytes without a slash, such as backup.tar"));
    }
    Ok(name.to_vec())
}

/// Refuses options of output that streams do not support.
fn check_output(args: &Args) -> Result<(), Failure> {
    let refused = |message: &str| Err(Failure::new(Code::Usage, message));
    match (args.output.json, &args.options.qlog) {
        (true, _) => refused("--json does not support streams: omit it"),
        (false, Some(_)) => refused("--qlog does not support streams: omit it"),
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
        let words =
            format!("Offered: {shown} (a stream of unknown length, not resumable)\nInto:    {}", into.display());
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
            let message = "a stream has no size and no time to compare: use --existing replace or --existing refuse";
            return Err(Failure::new(Code::Usage, message));
        }
    };
    Ok(StreamTarget::Directory { path: args.receive.target.clone(), replaces })
}

async fn answer(attention: &mut Attention<'_>) -> Result<bool, Failure> {
    let mut question = Question::ask("Accept?");
    let answer: io::Result<bool> = tokio::select! {
        answer = question.answer() => answer,
        stop = attention.next() => {
            question.withdraw();
            return Err(Failure::stopped(stop));
        }
    };
    answer.map_err(|_| {
        let message = "stream declined: no answer on stdin; answer y, or use --yes";
        Failure::new(Code::Usage, message)
    })
}

/// Waits for a signal to stop, and stores it.
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
