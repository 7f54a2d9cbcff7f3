//! docs/COMMANDS.md: the text of `--help` of all commands.

use std::fmt::Write as _;

use super::commands::{COMMANDS, Command, Entry};
use super::flag::{Flag, Settable, Takes};
use super::flags;
use crate::exit;

/// The beginning of the page.
const HEAD: &str = "\
# Commands

Every command, operand and option of `downpour`, as `downpour COMMAND --help` explains them. This page is written by
`cargo xtask commands` from the tables in `crates/cli/src/args`; [USING.md](USING.md) explains how the commands work
together. An option with † is part of the request to the remote downpour; an older one that does not know the option
refuses it. `downpour man cp` shows a command's page, and `downpour completions SHELL` prints completions.
";

/// The mark of an option for a single run.
const ONLY_TYPED: &str = "*Command line only.*";

/// Returns the whole page.
pub(crate) fn reference() -> String {
    let mut page = HEAD.to_owned();
    page += "\n| command | meaning |\n|---|---|\n";
    for entry in shown() {
        _ = writeln!(page, "| [`{0}`](#{1}) | {2} |", title(entry), title(entry).replace(' ', "-"), cell(entry.about));
    }
    shown().for_each(|entry| page += &section(entry));
    page + "\n## Exit codes, numbers, patterns and the configuration\n\n```text\n" + &exit::help() + "\n```\n"
}

fn shown() -> impl Iterator<Item = &'static Entry> {
    COMMANDS.iter().filter(|entry| !entry.hidden || entry.command == Command::Remote)
}

fn title(entry: &Entry) -> String {
    entry.within.map_or_else(|| entry.name.to_owned(), |within| format!("{within} {}", entry.name))
}

fn section(entry: &Entry) -> String {
    let mut section = format!("\n## {}\n\n{}.\n", title(entry), entry.about);
    if !entry.more.is_empty() {
        _ = write!(section, "\n{}\n", entry.more);
    }
    _ = write!(section, "\n```text\n{}\n```\n", usage(entry));
    let all = || flags::of(entry.command).filter(|flag| !flag.hidden);
    if all().next().is_some() {
        section += "\n| option | meaning |\n|---|---|\n";
    }
    for flag in all() {
        let mark = if flag.request.is_empty() { "" } else { " †" };
        _ = writeln!(section, "| {}{mark} | {} |", written(flag), explained(flag));
    }
    if !entry.examples.is_empty() {
        _ = write!(section, "\n```text\n{}\n```\n", entry.examples);
    }
    section
}

fn usage(entry: &Entry) -> String {
    if let Some(usage) = entry.usage {
        return usage.to_owned();
    }
    let operand = |flag: &Flag| {
        let name = flag.takes.value().map_or("", |value| value.name);
        match flag.takes {
            Takes::Operand(_) => Some(format!(" {name}")),
            Takes::OptionalOperand(_) => Some(format!(" [{name}]")),
            Takes::Operands(_) | Takes::Rest(_) => Some(format!(" {name}...")),
            Takes::OptionalOperands(_) => Some(format!(" [{name}]...")),
            Takes::Nothing
            | Takes::Value(_)
            | Takes::Values(_)
            | Takes::OptionalValue(_)
            | Takes::OptionalValueAfterEquals(_) => None,
        }
    };
    let operands: String = flags::of(entry.command).filter_map(operand).collect();
    format!("downpour {} [OPTIONS]{operands}", title(entry))
}

/// Returns an option as it is typed.
fn written(flag: &Flag) -> String {
    let value = flag.takes.value().map_or("", |value| value.name).replace('|', "\\|");
    let short = flag.short.map_or_else(String::new, |short| format!("`-{short}`, "));
    match flag.takes {
        Takes::Nothing => format!("{short}`--{}`", flag.name),
        Takes::Value(_) | Takes::Values(_) => format!("{short}`--{} {value}`", flag.name),
        Takes::OptionalValue(_) => format!("{short}`--{} [{value}]`", flag.name),
        Takes::OptionalValueAfterEquals(_) => format!("{short}`--{}[={value}]`", flag.name),
        Takes::Operand(_)
        | Takes::OptionalOperand(_)
        | Takes::Operands(_)
        | Takes::OptionalOperands(_)
        | Takes::Rest(_) => format!("`{value}`"),
    }
}

fn explained(flag: &Flag) -> String {
    let mut text = flag.help.to_owned();
    if let Some(value) = flag.takes.value() {
        if let Some(words) = (value.parser)().possible_values() {
            let words: Vec<String> = words
                .map(|word| {
                    let help = word.get_help().map_or_else(String::new, |help| format!(" ({help})"));
                    format!("`{}`{help}", word.get_name())
                })
                .collect();
            _ = write!(text, ": {}", words.join("; "));
        }
        if let Some(default) = value.default {
            _ = write!(text, " [default: {default}]");
        }
    }
    if !flag.more.is_empty() {
        _ = write!(text, ". {}", flag.more.replace("\n\n", " "));
    }
    if flag.settable == Settable::Typed && !flag.takes.is_operand() {
        let end = if text.ends_with('.') { "" } else { "." };
        _ = write!(text, "{end} {ONLY_TYPED}");
    }
    cell(&text)
}

/// Returns a text that may be in a table.
fn cell(text: &str) -> String {
    let escaped = text.replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*");
    escaped.replace(&ONLY_TYPED.replace('*', "\\*"), ONLY_TYPED)
}
