//! `downpour send`.

use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use downpour::files::{SourceItem, SourceOptions};
use downpour::{Rendezvous, SendSpec, Ticket, TicketError};

use crate::args::Args;
use crate::copy::scan;
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::options;
use crate::output::Output;
use crate::ticket::{self, ExpectedPeer};
use crate::watch::{WatchOptions, begin, watch};

/// Sends; returns the exit code.
pub(crate) async fn run(args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    check_ticket(&args)?;
    let options = options::sender(&args)?;
    let peer = match &args.ticket.to {
        Some(argument) => {
            Rendezvous::Connect(ticket::read(argument.as_deref(), args.ticket.file.as_deref(), interrupts).await?)
        }
        None => options::listen(args.ticket.listen.flatten(), args.ticket.keep),
    };
    let scan = SourceOptions { hash: options.checksums.is_some(), ..scan(&args)? };
    let spec = SendSpec { roots: args.paths.iter().map(root).collect(), scan };
    let mut attention = interrupts.attend();
    let transfer = begin(&mut attention, || downpour::send(spec, peer, options)).await?;
    let mut output = Output::new(args.output);
    output.speed(args.speed.rate, args.speed.limit.as_ref());
    let expected = ExpectedPeer::Receiver { many: args.ticket.keep };
    let ticket = ticket::publish(transfer.ticket(), args.ticket.file.as_deref(), expected, &output)?;
    output.start("send", args.speed.rate, ticket.as_deref())?;
    let conduct = WatchOptions { keep: args.ticket.keep, limit: args.speed.limit, ..WatchOptions::default() };
    watch(transfer, conduct, &mut output, &mut attention).await
}

/// Refuses `--to TICKET`, which would be a file of that name, before the prompt for a ticket.
fn check_ticket(args: &Args) -> Result<(), Failure> {
    if args.ticket.to != Some(None) {
        return Ok(());
    }
    let is_absent = |path: &&PathBuf| path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
    let is_ticket =
        |path: &PathBuf| !matches!(Ticket::parse(path.to_str().unwrap_or_default()), Err(TicketError::NotATicket));
    let absent: Vec<_> = args.paths.iter().filter(is_absent).collect();
    if absent.iter().any(|path| is_ticket(path)) {
        let message = "the ticket after --to is taken as a file: write --to=TICKET; the prompt, --ticket-file and DOWNPOUR_TICKET keep it secret";
        return Err(Failure::new(Code::Usage, message));
    }
    let Some(path) = absent.first() else { return Ok(()) };
    // Only the word after --to, which is then the last path, can be meant as a ticket.
    let hint = match args.paths.last() {
        Some(last) if last == *path => " (if it is a ticket, write --to=TICKET, or omit it to use the prompt)",
        _ => "",
    };
    Err(Failure::new(Code::SourceAbsent, format!("{} does not exist{hint}", path.display())))
}

/// Returns the item of a path: with a trailing slash, the contents of the directory.
fn root(path: &PathBuf) -> SourceItem {
    if path.as_os_str().as_bytes().ends_with(b"/") { SourceItem::contents(path) } else { SourceItem::new(path) }
}
