//! Tickets: how the connecting side gets its ticket, and how the listening side publishes its own.

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
        warn(
            "other users of this machine can read a ticket given as an argument: \
             the prompt, --ticket-file and DOWNPOUR_TICKET keep it secret",
        );
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
    match prompt::secret("Ticket (not shown): ", downpour::ticket::goes_on, interrupts).await {
        Ok(text) => parse(&text),
        Err(PromptError::Stopped(stop)) => Err(Failure::stopped(stop)),
        Err(PromptError::Input(error)) => Err(Failure::new(
            Code::Usage,
            format!("no ticket on stdin ({error}): give one there, by --ticket-file or by {VARIABLE}"),
        )),
    }
}

/// Returns whether a ticket is in the environment.
pub(crate) fn is_in_environment() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// The peer that the listening side expects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Guest {
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

/// Prints how the other side connects, and writes the ticket file. Returns the ticket's text if it is yet to be
/// printed; `None` for a side that connects.
pub(crate) fn publish(
    ticket: Option<&Ticket>,
    file: Option<&Path>,
    guest: Guest,
    output: &Output,
) -> Result<Option<String>, Failure> {
    let Some(ticket) = ticket else { return Ok(None) };
    let addresses: Vec<String> = ticket.addresses.iter().map(ToString::to_string).collect();
    output.detail(format_args!("Listening on {}.", addresses.join(", ")));
    let (command, use_up) = match guest {
        Guest::Receiver { many: false } => ("downpour recv", "one complete fetch within an hour".to_owned()),
        Guest::Receiver { many: true } => ("downpour recv", "any number of fetches within an hour".to_owned()),
        Guest::Sender => ("downpour send PATH --to", "one complete transfer within an hour".to_owned()),
        Guest::Tunnel { valid } => (
            "downpour tunnel -L PORT:HOST:PORT",
            format!("whoever connects within {}", units::seconds(valid.as_secs_f64())),
        ),
    };
    if let Some(file) = file {
        ticket.save(file).map_err(downpour::Error::from)?;
        output.say(format_args!(
            "Take the ticket, {} (secret; good for {use_up}), to the other machine and run there:\n\n    \
             {command} --ticket-file {}\n",
            file.display(),
            file.file_name().unwrap_or_default().display(),
        ));
        return Ok(None);
    }
    output.say(format_args!(
        "On the other machine, run\n\n    {command}\n\nand paste this ticket when it asks (secret; good for {use_up}):\n"
    ));
    Ok(Some(ticket.to_text().map_err(downpour::Error::from)?))
}

fn parse(text: &str) -> Result<Ticket, Failure> {
    Ok(Ticket::parse(text.trim()).map_err(downpour::Error::from)?)
}
