//! How far a transfer is: a line that moves, a line a minute, or nothing. All of it on stderr.

mod bar;
mod figures;
mod lines;

use std::io::{self, IsTerminal};
use std::time::Instant;

use crate::args::HowShown;
use bar::Bar;
pub(crate) use figures::Figures;
use lines::Lines;

/// What is shown of progress.
#[derive(Debug)]
pub(crate) struct Showing(How);

#[derive(Debug)]
enum How {
    /// A line that moves, gone when this is dropped.
    Bar(Bar),
    /// A line a minute.
    Lines(Lines),
    /// Nothing.
    Nothing,
}

impl Showing {
    /// What was asked for; a bar where it can be drawn, and lines where it cannot.
    pub(crate) fn new(how: Option<HowShown>) -> Self {
        Self(match how {
            Some(HowShown::None) => How::Nothing,
            Some(HowShown::Line) => How::Lines(Lines::default()),
            Some(HowShown::Bar) | None => {
                let bar = Bar::new();
                if bar.is_hidden() { How::Lines(Lines::default()) } else { How::Bar(bar) }
            }
        })
    }

    /// Shows how far it is.
    pub(crate) fn figures(&mut self, now: Instant, figures: &Figures) {
        match &mut self.0 {
            How::Bar(bar) => bar.show(figures),
            How::Lines(lines) => lines.show(now, figures),
            How::Nothing => {}
        }
    }

    /// Shows words instead of figures, where there is a line that moves.
    pub(crate) fn words(&self, words: &str) {
        if let How::Bar(bar) = &self.0 {
            bar.say(words);
        }
    }

    /// Prints something above the line that moves.
    pub(crate) fn above(&self, print: impl FnOnce()) {
        match &self.0 {
            How::Bar(bar) => bar.above(print),
            How::Lines(_) | How::Nothing => print(),
        }
    }

    /// Takes the line that moves away, until figures come again.
    pub(crate) fn clear(&self) {
        if let How::Bar(bar) = &self.0 {
            bar.clear();
        }
    }

    /// Draws no more on a terminal that is gone.
    pub(crate) fn hang_up(&mut self) {
        if matches!(self.0, How::Bar(_)) && !io::stderr().is_terminal() {
            self.0 = How::Nothing;
        }
    }
}
