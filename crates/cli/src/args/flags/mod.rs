//! The table of options, in the order of the help.

mod attributes;
mod commands;
mod connection;
mod destination;
mod output;
mod selection;
mod speed;
mod ticket;
mod tunnel;

use super::Command;
use super::flag::Flag;

/// All operands and options.
pub(super) static FLAGS: &[&[Flag]] = &[
    commands::FLAGS,
    tunnel::FLAGS,
    selection::FLAGS,
    attributes::FLAGS,
    destination::FLAGS,
    ticket::FLAGS,
    connection::FLAGS,
    speed::FLAGS,
    output::FLAGS,
];

/// Returns all operands and options.
pub(crate) fn all() -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().copied().flatten()
}

/// Returns the operands and options of a command.
pub(crate) fn of(command: Command) -> impl Iterator<Item = &'static Flag> {
    all().filter(move |flag| flag.of.contains(&command))
}
