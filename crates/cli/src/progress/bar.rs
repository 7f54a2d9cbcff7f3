//! The progress line of a running transfer, with the current file below it if there are several.

use std::cell::Cell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Figures;
use crate::print;

/// Terminal width from which a bar fits beside the figures.
const WIDE: u16 = 100;
const DRAWINGS_PER_SECOND: u8 = 10;

/// A progress line on stderr, removed when this is dropped. Hidden if stderr is not a terminal.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
    /// Whether it has a second line.
    has_names: Cell<bool>,
    /// Whether the line is on the screen.
    is_up: Cell<bool>,
}

impl Bar {
    /// Creates a line that appears with the first figures.
    pub(super) fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND);
        Self {
            bar: ProgressBar::with_draw_target(None, target).with_style(style("{wide_msg}")),
            has_names: Cell::new(false),
            is_up: Cell::new(false),
        }
    }

    /// Returns whether there is no terminal to draw on.
    pub(super) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows the progress.
    pub(super) fn show(&self, figures: &Figures) {
        self.raise();
        let (names, columns) = (figures.names(), columns());
        if self.bar.length() != Some(figures.known) || self.has_names.get() != names.is_some() {
            self.bar.set_length(figures.known);
            self.has_names.set(names.is_some());
            let first =
                if columns >= WIDE { "{percent:>3} % {bar:20}  {wide_msg}" } else { "{percent:>3} %  {wide_msg}" };
            let second = if names.is_some() { "\n{prefix}" } else { "" };
            self.bar.set_style(style(&format!("{first}{second}")));
        }
        self.bar.set_prefix(names.map(|names| fitting(&names, columns.into())).unwrap_or_default());
        self.bar.set_position(figures.bytes.min(figures.known));
        self.bar.set_message(figures.to_string());
    }

    /// Shows words instead of figures.
    pub(super) fn say(&self, words: &str) {
        self.raise();
        // Later figures have a different length, and set their own style.
        self.bar.unset_length();
        self.bar.set_style(style("{wide_msg}"));
        self.bar.set_message(words.to_owned());
        self.bar.tick();
    }

    /// Prints something above the line.
    pub(super) fn above(&self, print: impl FnOnce()) {
        if self.is_up.get() { self.bar.suspend(print) } else { print() }
    }

    /// Removes the line until there are figures again.
    pub(super) fn clear(&self) {
        if self.is_up.take() {
            print::set_moving_line(None);
            self.bar.finish_and_clear();
        }
    }

    fn raise(&self) {
        if !self.is_up.replace(true) {
            if self.bar.is_finished() {
                self.bar.reset();
            }
            print::set_moving_line(Some(self.bar.clone()));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the templates are constants").progress_chars("=> ")
}

/// Returns the width of the terminal.
fn columns() -> u16 {
    rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col)
}

/// Cuts the middle of a text wider than so many columns. The end is the name of a file.
fn fitting(text: &str, columns: usize) -> String {
    /// Characters of the beginning that are kept, with the number of files.
    const KEPT: usize = 24;
    // A character may take two columns.
    let width = |text: &str| text.chars().map(|char| if char < '\u{1100}' { 1 } else { 2 }).sum::<usize>();
    // A terminal of unknown width is assumed to have 80 columns.
    let columns = if columns == 0 { 80 } else { columns };
    if width(text) < columns {
        return text.to_owned();
    }
    let first: String = text.chars().take(KEPT.min(columns / 2)).collect();
    let room = columns.saturating_sub(width(&first) + 2);
    let mut rest = &text[first.len()..];
    while width(rest) > room {
        let mut chars = rest.chars();
        chars.next();
        rest = chars.as_str();
    }
    format!("{first}\u{2026}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitting_cuts_the_middle_of_a_long_name() {
        assert_eq!(fitting("3 of 4 files  a/b", 80), "3 of 4 files  a/b");
        let long = format!("3 of 4 files  {}/end", "x".repeat(200));
        let cut = fitting(&long, 40);
        assert_eq!(cut.chars().count(), 39);
        assert!(cut.starts_with("3 of 4 files  xxx") && cut.ends_with("xxx/end"), "{cut}");
        assert_eq!(fitting(&"\u{4e00}".repeat(50), 20).chars().count(), 10 + 1);
        assert_eq!(fitting("abcdefgh", 4), "ab\u{2026}");
    }
}
