//! Marks and headings.

use std::fmt;

/// How many targets were met.
#[derive(Debug, Default)]
pub struct Tally {
    met: u32,
    short: Vec<String>,
}

impl Tally {
    /// Judges a number that should be at most so much; returns the mark.
    pub fn at_most(&mut self, what: impl fmt::Display, number: f64, limit: f64) -> &'static str {
        self.judge(what, number, limit, number <= limit)
    }

    /// Judges a number that should be at least so much; returns the mark.
    pub fn at_least(&mut self, what: impl fmt::Display, number: f64, limit: f64) -> &'static str {
        self.judge(what, number, limit, number >= limit)
    }

    /// Returns the number of met targets, and the missed ones in words.
    pub fn outcome(&self) -> (u32, &[String]) {
        (self.met, &self.short)
    }

    fn judge(&mut self, what: impl fmt::Display, number: f64, limit: f64, met: bool) -> &'static str {
        if met {
            self.met += 1;
            return "pass";
        }
        self.short.push(format!("{what}: {number:.3}, target {limit:.3}"));
        "short"
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} targets met", self.met, self.met as usize + self.short.len())?;
        self.short.iter().try_for_each(|line| write!(f, "\n  short: {line}"))
    }
}

/// Prints the heading of a part.
pub fn heading(text: impl fmt::Display) {
    println!("== {text}");
}
