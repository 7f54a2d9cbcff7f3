//! `--limit`: a rate, or a timetable in local time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use downpour::Rate;
use jiff::Zoned;

use crate::rate;

/// Interval of checks of a timetable. A timer for an entry would miss it when the clock jumps or the host sleeps.
pub(crate) const CHECK_PERIOD: Duration = Duration::from_secs(5);

/// The limit of a sender for every time of the day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    /// Limits by the minute of the day from which they apply, ascending. The last one of a day applies into the next.
    entries: Vec<(u16, Option<Rate>)>,
}

/// An invalid limit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum LimitError {
    /// An invalid rate.
    #[error(transparent)]
    Rate(#[from] rate::RateError),
    /// An invalid entry of a timetable.
    #[error("{0:?} is not an entry of a timetable: write a time and a rate, such as 08:00,200M or 19:00,off")]
    Entry(String),
    /// The same time twice.
    #[error("{0} occurs twice in the timetable")]
    Twice(String),
}

impl FromStr for Limit {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Self, LimitError> {
        // A rate may contain a space: `100 Mbit/s`.
        if !text.contains([':', ',']) {
            return Ok(Self { entries: vec![(0, rate(text)?)] });
        }
        let mut entries = Vec::new();
        for entry in text.split_whitespace() {
            let refused = || LimitError::Entry(entry.to_owned());
            let (time, limit) = entry.split_once(',').ok_or_else(refused)?;
            entries.push((minute(time).ok_or_else(refused)?, rate(limit)?));
        }
        entries.sort_by_key(|(minute, _)| *minute);
        match entries.windows(2).find(|two| two[0].0 == two[1].0) {
            Some(two) => Err(LimitError::Twice(clock(two[0].0))),
            None => Ok(Self { entries }),
        }
    }
}

fn rate(text: &str) -> Result<Option<Rate>, LimitError> {
    if text.trim() == "off" { Ok(None) } else { Ok(Some(rate::parse(text)?)) }
}

/// Parses `08:00`, `8:00` or `23:59`.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !(digits(hours) && digits(minutes) && minutes.len() == 2) {
        return None;
    }
    let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)
}

fn clock(minute: u16) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |rate: Option<Rate>| rate.map_or_else(|| "off".to_owned(), |rate| rate::Both(rate).to_string());
        match &self.entries[..] {
            [(_, only)] => f.write_str(&rate(*only)),
            entries => {
                let entries = entries.iter().map(|(minute, limit)| format!("from {} {}", clock(*minute), rate(*limit)));
                f.write_str(&entries.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

impl Limit {
    /// Returns the limit that applies now.
    pub(crate) fn now(&self) -> Option<Rate> {
        self.at(minute_of_day(&Zoned::now()))
    }

    /// Returns the limit that applies at a minute of the day.
    fn at(&self, minute: u16) -> Option<Rate> {
        let begun = self.entries.iter().rev().find(|(from, _)| *from <= minute);
        begun.or(self.entries.last()).and_then(|(_, limit)| *limit)
    }

    /// Returns whether it is ever lower than this rate.
    pub(crate) fn is_below(&self, rate: Rate) -> bool {
        self.entries.iter().any(|(_, limit)| limit.is_some_and(|limit| limit < rate))
    }

    /// Returns whether the limit changes over the day.
    pub(crate) fn changes(&self) -> bool {
        self.entries.len() > 1
    }
}

fn minute_of_day(now: &Zoned) -> u16 {
    u16::from(now.hour().unsigned_abs()) * 60 + u16::from(now.minute().unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(text: &str) -> Limit {
        text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    fn megabits(number: u64) -> Option<Rate> {
        Some(Rate::from_bits_per_second(number * 1_000_000))
    }

    #[test]
    fn limit_without_timetable_constant() {
        for (text, rate) in [("100M", megabits(100)), ("100 Mbit/s", megabits(100)), ("off", None)] {
            for minute in [0, 719, 1439] {
                assert_eq!(limit(text).at(minute), rate, "{text} at {minute}");
            }
        }
    }

    #[test]
    fn limit_timetable_holds_over_midnight() {
        let day = limit("19:00,off 08:00,200M 12:30,50M");
        for (minute, rate) in [
            (0, None),
            (479, None),
            (480, megabits(200)),
            (749, megabits(200)),
            (750, megabits(50)),
            (1139, megabits(50)),
            (1140, None),
            (1439, None),
        ] {
            assert_eq!(day.at(minute), rate, "at {minute}");
        }
        assert_eq!(limit("22:00,10M 7:15,20M").at(0), megabits(10), "yesterday's last");
        assert_eq!(limit("8:00,200M").at(0), megabits(200), "a single entry");
    }

    #[test]
    fn limit_error_has_an_example() {
        for (text, hint) in [
            ("08:00", "08:00,200M"),
            ("24:00,10M", "08:00,200M"),
            ("8:60,10M", "08:00,200M"),
            ("8:0,10M", "08:00,200M"),
            ("+8:00,10M", "08:00,200M"),
            ("08:00,200M 19:00", "19:00,off"),
            ("08:00,12MB", "12MB/s"),
            ("08:00,1M 8:00,2M", "08:00 occurs twice"),
            ("fast", "such as 100M"),
            ("", "such as 100M"),
        ] {
            let error = text.parse::<Limit>().expect_err(text).to_string();
            assert!(error.contains(hint), "{text:?} gave {error:?}, without {hint:?}");
        }
    }

    #[test]
    fn limit_is_below_any_entry() {
        let below = |text, megabits_per_second| limit(text).is_below(megabits(megabits_per_second).expect("a rate"));
        assert!(below("8M", 1000) && below("08:00,8M 19:00,off", 1000) && !below("8M", 8) && !below("off", 1));
    }

    #[test]
    fn limit_display_both_units() {
        assert_eq!(limit("12MB/s").to_string(), "96 Mbit/s = 12 MB/s");
        assert_eq!(limit("08:00,8M 19:00,off").to_string(), "from 08:00 8 Mbit/s = 1 MB/s, from 19:00 off");
    }
}
