//! The progress line of a running transfer.

use std::cell::Cell;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Figures;

/// Terminal width from which there is room for a bar beside the figures.
const WIDE: u16 = 100;
const DRAWINGS_PER_SECOND: u8 = 10;

/// A progress line on stderr, removed when this is dropped. Hidden if stderr is not a terminal.
#[derive(Debug)]
pub(super) struct Bar {
    bar: ProgressBar,
    /// Whether the line is on the screen.
    is_up: Cell<bool>,
}

impl Bar {
    /// Creates a line that appears with the first figures.
    pub(super) fn new() -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWINGS_PER_SECOND);
        Self {
            bar: ProgressBar::with_draw_target(None, target).with_style(style("{wide_msg}")),
            is_up: Cell::new(false),
        }
    }

    /// Whether there is no terminal to draw on.
    pub(super) fn is_hidden(&self) -> bool {
        self.bar.is_hidden()
    }

    /// Shows the progress.
    pub(super) fn show(&self, figures: &Figures) {
        self.raise();
        if self.bar.length() != Some(figures.known) {
            let wide = "{percent:>3} % {bar:20}  {wide_msg}";
            self.bar.set_length(figures.known);
            self.bar.set_style(style(if is_wide() { wide } else { "{percent:>3} %  {wide_msg}" }));
        }
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
            self.bar.finish_and_clear();
        }
    }

    fn raise(&self) {
        if !self.is_up.replace(true) && self.bar.is_finished() {
            self.bar.reset();
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

fn is_wide() -> bool {
    rustix::termios::tcgetwinsize(std::io::stderr()).is_ok_and(|size| size.ws_col >= WIDE)
}
