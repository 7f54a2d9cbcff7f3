//! Schedules from other crates.

use super::{Schedule, ScheduleConfig};
use crate::registry::{self, RegisterError, Registered, Registry};
use crate::settings::SettingError;

/// Makes a schedule from its numbers, the text after its name's colon. [`settings::read`](crate::settings::read) reads such text. Asked when
/// a profile is read too, to see whether the numbers are allowed.
pub type Build = fn(numbers: &str) -> Result<Box<dyn Schedule>, SettingError>;

static SCHEDULES: Registry<Build> = Registry::new();

/// Makes a schedule known by `name`, in the whole process: `--set schedule=NAME`, or `NAME:key=value`. Before the first use of the name.
///
/// # Errors
/// A name that is taken, or that is none.
pub fn register(name: &'static str, build: Build) -> Result<(), RegisterError> {
    SCHEDULES.register(ScheduleConfig::NAMES, name, build)
}

impl registry::Build for Build {
    fn registry() -> &'static Registry<Self> {
        &SCHEDULES
    }

    fn check(self, numbers: &str) -> Result<(), SettingError> {
        self(numbers).map(drop)
    }
}

/// A schedule that another crate has registered, and its numbers.
pub type AddedSchedule = Registered<Build>;

impl AddedSchedule {
    pub(super) fn build(&self) -> Box<dyn Schedule> {
        (self.build)(&self.numbers).expect("the numbers were allowed when they were read")
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::Line;
    use super::super::{Next, PathEstimate, SendBlocks};
    use super::*;
    use crate::recovery::Report;
    use crate::settings::{Choice, Count, Setting, Settings, field, read};
    use crate::time::Time;

    /// Source in order, a pause of a second after so many symbols.
    #[derive(Clone, Debug, PartialEq, Default)]
    struct Resting {
        after: u32,
        sent: u32,
    }

    impl Settings for Resting {
        const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("after", after, Count(1, 100))];
    }

    impl Schedule for Resting {
        fn next(&mut self, now: Time, _flow: &SendBlocks, _path: &PathEstimate) -> Next {
            self.sent += 1;
            if self.sent > self.after { Next::Wait(now + std::time::Duration::from_secs(1)) } else { Next::Source }
        }

        fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}
    }

    fn build(numbers: &str) -> Result<Box<dyn Schedule>, SettingError> {
        read::<Resting>("resting", numbers).map(|schedule| Box::new(schedule) as Box<_>)
    }

    #[test]
    fn a_registered_name_is_a_schedule_like_any_other() {
        let parse = |text: &str| text.parse::<ScheduleConfig>();
        assert!(parse("resting").is_err());
        register("resting", build).expect("a new name");
        let mut resting = parse("resting:after=7").expect("registered");
        assert_eq!(resting.to_string(), "resting:after=7");
        assert_eq!(Line::new("resting:after=7", "raptorq", 2, 10).send(99).len(), 7);
        resting.set_number("after", "9").expect("allowed");
        assert_eq!(resting.to_string(), "resting:after=9");
        assert!(resting.set_number("after", "0").is_err());
        assert!(matches!(parse("resting:after=0"), Err(SettingError::Value { .. })));
        assert!(parse("restless").expect_err("nothing").to_string().ends_with(", resting)"));
        assert_eq!(register("resting", build), Err(RegisterError::Taken("resting".into())));
        assert_eq!(register("windowed", build), Err(RegisterError::Taken("windowed".into())));
    }
}
