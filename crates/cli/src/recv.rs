//! `downpour recv`.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _};
use std::path::Path;

use downpour::{Rendezvous, Role};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::interrupt::{Attention, SignalHandlers};
use crate::output::Output;
use crate::stop_signal::stopping;
use crate::ticket::{self, ExpectedPeer};
use crate::watch::{OfferPolicy, WatchOptions, begin, watch};
use crate::{options, print, stream};

/// Receives; returns the exit code.
pub(crate) async fn run(args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    let (is_to_stdout, given) = operands(&args)?;
    let peer = match args.ticket.listen {
        Some(address) => options::listen(address, false),
        None => {
            let ticket = ticket::read(given.as_deref(), args.ticket.file.as_deref(), interrupts).await?;
            if ticket.listener == Role::Streams {
                return stream::receive(ticket, args, is_to_stdout, interrupts).await;
            }
            Rendezvous::Connect(ticket)
        }
    };
    match is_to_stdout {
        true => to_stdout(args, peer, interrupts).await,
        false => follow(args, peer, &mut interrupts.attend()).await,
    }
}

/// Returns whether to write to stdout, and the ticket on the command line, which may be several words.
fn operands(args: &Args) -> Result<(bool, Option<String>), Failure> {
    let is_to_stdout = args.receive.target == Path::new("-") || args.words.iter().any(|word| word == "-");
    if is_to_stdout && (args.ticket.listen.is_some() || args.output.json) {
        let message = "`recv -` writes data to stdout and needs the sender's ticket: omit --listen and --json";
        return Err(Failure::new(Code::Usage, message));
    }
    if is_to_stdout && io::stdout().is_terminal() {
        let message = "the data could contain control sequences of the terminal: redirect stdout, or use --into DIR";
        return Err(Failure::new(Code::Usage, message));
    }
    let words: Vec<&str> = args.words.iter().map(String::as_str).filter(|word| *word != "-").collect();
    Ok((is_to_stdout, (!words.is_empty()).then(|| words.join(" "))))
}

/// Receives one file, and writes it to stdout once it is complete. A signal to stop also ends the writing; the file is
/// removed.
async fn to_stdout(mut args: Args, peer: Rendezvous, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::new(Code::Disk, format!("cannot store the file for stdout: {error}"));
    let directory = tempfile::tempdir().map_err(failed)?;
    args.receive.target = directory.path().to_owned();
    (args.options.confirm, args.receive.permitted.max_entries) = (false, Some(1));
    let mut attention = interrupts.attend();
    let code = follow(args, peer, &mut attention).await?;
    for entry in directory.path().read_dir().map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_type().map_err(failed)?.is_file() {
            return Err(Failure::new(Code::Usage, "the sender sent a directory or link: use --into DIR"));
        }
        let mut file = File::open(entry.path()).map_err(failed)?;
        let mut buffer = vec![0; 128 << 10];
        loop {
            if let Some(stop) = stopping() {
                return Err(Failure::stopped(stop));
            }
            match file.read(&mut buffer).map_err(failed)? {
                0 => break,
                count => print::write_out(&buffer[..count]),
            }
        }
    }
    Ok(code)
}

/// Receives into a directory.
async fn follow(args: Args, peer: Rendezvous, attention: &mut Attention<'_>) -> Result<u8, Failure> {
    let offer = if args.options.confirm { OfferPolicy::Ask } else { OfferPolicy::ShowAndAccept };
    let Args { receive, options, .. } = args;
    let transfer = begin(attention, || downpour::receive(receive, peer, options)).await?;
    let mut output = Output::new(args.output);
    let ticket = ticket::publish(transfer.ticket(), args.ticket.file.as_deref(), ExpectedPeer::Sender, &output)?;
    output.start("recv", None, ticket.as_deref())?;
    watch(transfer, WatchOptions { offer, ..WatchOptions::default() }, &mut output, attention).await
}
