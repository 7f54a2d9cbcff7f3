//! The table of options, in the order of the help.

mod commands;
mod connection;
mod copied;
mod preserved;
mod shown;
mod speed;
mod target;
mod ticket;
mod tunnel;

use super::Command;
use super::flag::Flag;

/// All operands and options.
pub(super) static FLAGS: &[&[Flag]] = &[
    commands::FLAGS,
    tunnel::FLAGS,
    copied::FLAGS,
    preserved::FLAGS,
    target::FLAGS,
    ticket::FLAGS,
    connection::FLAGS,
    speed::FLAGS,
    shown::FLAGS,
];

/// Returns all operands and options.
pub(crate) fn all() -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().copied().flatten()
}

/// Returns those of a command.
pub(crate) fn of(command: Command) -> impl Iterator<Item = &'static Flag> {
    all().filter(move |flag| flag.of.contains(&command))
}
