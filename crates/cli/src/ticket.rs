//! Tickets: input on the connecting side, output on the listening side.

use std::env;
use std::path::Path;
use std::time::Duration;

use downpour::Ticket;

use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::output::Output;
use crate::print::warn;
use crate::prompt::{self, PromptError};

/// The environment variable that holds a ticket.
const VARIABLE: &str = "DOWNPOUR_TICKET";

/// Reads the ticket from the arguments, the file, the environment or the prompt, in this order.
pub(crate) async fn read(
    argument: Option<&str>,
    file: Option<&Path>,
    interrupts: &mut SignalHandlers,
) -> Result<Ticket, Failure> {
    if let Some(text) = argument {
        warn("ticket on the command line is visible to other users: use the prompt, --ticket-file or DOWNPOUR_TICKET");
        return parse(text);
    }
    if let Some(file) = file {
        return Ok(Ticket::load(file).map_err(downpour::Error::from)?);
    }
    if let Some(text) = env::var_os(VARIABLE) {
        let text = text
            .into_string()
            .map_err(|_| Failure::new(Code::Authentication, format!("{VARIABLE} is not a ticket")))?;
        return parse(&text);
    }
    match prompt::secret("Ticket (not shown): ", downpour::ticket::is_incomplete, interrupts).await {
        Ok(text) => parse(&text),
        Err(PromptError::Stopped(stop)) => Err(Failure::stopped(stop)),
        Err(PromptError::Input(error)) => Err(Failure::new(
            Code::Usage,
            format!("no ticket on stdin: {error}; use stdin, --ticket-file or {VARIABLE}"),
        )),
    }
}

/// Returns whether a ticket is in the environment.
pub(crate) fn is_in_environment() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The peer that the listening side expects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpectedPeer {
    /// A `downpour recv`, or several.
    Receiver {
        /// `--keep`.
        many: bool,
    },
    /// A `downpour send --to`.
    Sender,
    /// Any number of `downpour tunnel -L`.
    Tunnel {
        /// `--valid`.
        valid: Duration,
    },
}

/// Prints how the peer connects, and writes the ticket file. Returns the text of a ticket that must still be printed;
/// `None` on the connecting side.
pub(crate) fn publish(
    ticket: Option<&Ticket>,
    file: Option<&Path>,
    expected: ExpectedPeer,
    output: &Output,
) -> Result<Option<String>, Failure> {
    let Some(ticket) = ticket else { return Ok(None) };
    let addresses: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
    output.detail(format_args!("Listening on {}.", addresses.join(", ")));
    let (command, validity) = match expected {
        ExpectedPeer::Receiver { many: false } => ("downpour recv", "for one transfer within an hour".to_owned()),
        ExpectedPeer::Receiver { many: true } => {
            ("downpour recv", "for any number of transfers within an hour".to_owned())
        }
        ExpectedPeer::Sender => ("downpour send PATH --to", "for one transfer within an hour".to_owned()),
        ExpectedPeer::Tunnel { valid } => {
            ("downpour tunnel -L PORT:HOST:PORT", format!("for {}", units::seconds(valid.as_secs_f64())))
        }
    };
    if let Some(file) = file {
        ticket.save(file).map_err(downpour::Error::from)?;
        output.say(format_args!(
            "Copy ticket file {} to the other host (secret; valid {validity}) and run:\n\n    \
             {command} --ticket-file {}\n",
            file.display(),
            file.file_name().unwrap_or_default().display(),
        ));
        return Ok(None);
    }
    output.say(format_args!(
        "On the other host, run\n\n    {command}\n\nand paste this ticket at its prompt (secret; valid {validity}):\n"
    ));
    Ok(Some(ticket.to_text().map_err(downpour::Error::from)?))
}

fn parse(text: &str) -> Result<Ticket, Failure> {
    Ok(Ticket::parse(text.trim()).map_err(downpour::Error::from)?)
}
