//! The progress of a transfer on stderr: a moving line, a line per minute, or nothing.

mod bar;
mod figures;
mod lines;

use std::io::{self, IsTerminal};
use std::time::Instant;

use crate::args::ProgressMode;
use bar::Bar;
pub(crate) use figures::{Figures, in_words};
use lines::Lines;

/// The progress display.
#[derive(Debug)]
pub(crate) struct ProgressDisplay(How);

#[derive(Debug)]
enum How {
    /// A moving line, removed when this is dropped.
    Bar(Bar),
    /// One line per minute.
    Lines(Lines),
    /// Nothing.
    Nothing,
}

impl ProgressDisplay {
    /// Creates the requested display; by default a bar if it can be drawn, otherwise lines.
    pub(crate) fn new(how: Option<ProgressMode>) -> Self {
        Self(match how {
            Some(ProgressMode::None) => How::Nothing,
            Some(ProgressMode::Line) => How::Lines(Lines::default()),
            Some(ProgressMode::Bar) | None => {
                let bar = Bar::new();
                if bar.is_hidden() { How::Lines(Lines::default()) } else { How::Bar(bar) }
            }
        })
    }

    /// Shows the progress.
    pub(crate) fn figures(&mut self, now: Instant, figures: &Figures) {
        match &mut self.0 {
            How::Bar(bar) => bar.show(figures),
            How::Lines(lines) => lines.show(now, figures),
            How::Nothing => {}
        }
    }

    /// Shows words instead of figures, if there is a moving line.
    pub(crate) fn words(&self, words: &str) {
        if let How::Bar(bar) = &self.0 {
            bar.say(words);
        }
    }

    /// Prints something above the moving line.
    pub(crate) fn above(&self, print: impl FnOnce()) {
        match &self.0 {
            How::Bar(bar) => bar.above(print),
            How::Lines(_) | How::Nothing => print(),
        }
    }

    /// Removes the moving line until there are figures again.
    pub(crate) fn clear(&self) {
        if let How::Bar(bar) = &self.0 {
            bar.clear();
        }
    }

    /// Stops drawing on a closed terminal.
    pub(crate) fn hang_up(&mut self) {
        if matches!(self.0, How::Bar(_)) && !io::stderr().is_terminal() {
            self.0 = How::Nothing;
        }
    }
}
