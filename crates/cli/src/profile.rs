//! `downpour profile`.

use std::fmt::Write as _;

use downpour::Profile;
use downpour::profile::{Difference, NamedProfile, SettingRow};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::{options, print};

/// Lists the profiles; returns the exit code.
pub(crate) fn list() -> u8 {
    print::write_out(listed().as_bytes());
    Code::Done as u8
}

/// Shows a profile; returns the exit code.
pub(crate) fn show(args: &Args) -> Result<u8, Failure> {
    let profile = options::changed(options::chosen(args.profiles.first())?, &args.speed.set)?;
    print::write_out(shown(&profile, args.allowed).as_bytes());
    Ok(Code::Done as u8)
}

/// Compares two profiles; returns the exit code.
pub(crate) fn diff(args: &Args) -> Result<u8, Failure> {
    let text = compared(&options::chosen(args.profiles.first())?, &options::chosen(args.profiles.get(1))?);
    print::write_out(text.as_bytes());
    Ok(Code::Done as u8)
}

fn listed() -> String {
    let names = crate::names();
    let width = names.profile_names().map(str::len).max().unwrap_or_default();
    let line = |text: String, named: &NamedProfile| text + &format!("{:width$}  {}\n", named.name, named.about);
    names.profiles().fold(String::new(), line)
}

/// Formats a profile as a file, with the sources as comments.
fn shown(profile: &Profile, allowed: bool) -> String {
    let mut text = String::new();
    let is_same = |named: &&NamedProfile| named.name == profile.base && named.name == profile.name;
    if let Some(named) = profile.registry.profiles().find(is_same) {
        _ = writeln!(text, "# {}", named.about);
    }
    _ = writeln!(text, "name = {}", quoted(&profile.name));
    if profile.base != profile.name {
        _ = writeln!(text, "based-on = {}", quoted(profile.base));
    }
    let lines = profile.lines();
    let settings: Vec<String> = lines.iter().map(setting).collect();
    let width = settings.iter().map(|setting| setting.chars().count()).max().unwrap_or_default();
    for (line, setting) in lines.iter().zip(&settings) {
        let mut comment = line.source.to_owned();
        if allowed && !line.allowed.is_empty() {
            comment = format!("{comment} ({})", line.allowed);
        }
        let row = if comment.is_empty() { setting.clone() } else { format!("{setting:width$}  # {comment}") };
        _ = writeln!(text, "{row}");
    }
    text
}

fn setting(line: &SettingRow) -> String {
    let key = if line.key.contains('.') { quoted(&line.key) } else { line.key.clone() };
    format!("{key} = {}", quoted(&line.value))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

/// Returns the name of a profile, marked if a file uses the name of a built-in profile for another one.
fn display_name(profile: &Profile) -> String {
    let is_other =
        profile.name == profile.base && profile.registry.profile(profile.base).is_ok_and(|own| own != *profile);
    format!("{}{}", profile.name.escape_debug(), if is_other { ", changed" } else { "" })
}

fn compared(first: &Profile, second: &Profile) -> String {
    let differences = first.differences(second);
    if differences.is_empty() {
        return format!("no difference between {} and {}\n", display_name(first), display_name(second));
    }
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let title = Difference { key: String::new(), first: display_name(first), second: display_name(second) };
    let rows: Vec<Difference> = std::iter::once(title).chain(differences).collect();
    let key_width = rows.iter().map(|row| row.key.len()).max().unwrap_or_default();
    let width = rows.iter().map(|row| or_none(&row.first).len()).max().unwrap_or_default();
    rows.iter().fold(String::new(), |text, row| {
        let (first, second) = (or_none(&row.first), or_none(&row.second));
        text + &format!("{:key_width$}  {first:width$}  {second}\n", row.key)
    })
}
