//! Schedules from other crates.

use super::{Schedule, ScheduleConfig};
use crate::settings::seam;

seam! {
    /// Parameters of a schedule that another crate implements, and its constructor.
    ScheduleFactory, DynSchedule, CustomSchedule, ScheduleConfig;
    required {
        /// Builds the schedule of one flow.
        fn build(&self) -> Box<dyn Schedule>;
    }
    provided {}
}

#[cfg(test)]
mod tests {
    use super::super::{PathEstimate, ScheduleAction};
    use super::*;
    use crate::flow::SendBlocks;
    use crate::flow::schedule::harness::TestFlow;
    use crate::recovery::Report;
    use crate::settings::{Algorithm, IntegerRange, Setting, Settings, field};
    use crate::time::Time;

    /// Source in order, with a pause of one second after a number of symbols.
    #[derive(Clone, Debug, PartialEq, Default)]
    struct Resting {
        after: u32,
        sent: u32,
    }

    impl Settings for Resting {
        const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("after", after, IntegerRange(1, 100))];
    }

    impl Schedule for Resting {
        fn next(&mut self, now: Time, _flow: &SendBlocks, _path: &PathEstimate) -> ScheduleAction {
            self.sent += 1;
            if self.sent > self.after {
                ScheduleAction::Wait(now + std::time::Duration::from_secs(1))
            } else {
                ScheduleAction::Source
            }
        }

        fn on_report(&mut self, _report: &Report<'_>, _flow: &SendBlocks) {}
    }

    impl ScheduleFactory for Resting {
        const NAME: &'static str = "resting";

        fn build(&self) -> Box<dyn Schedule> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn a_custom_schedule_is_a_value_like_any_other() {
        let mut resting = ScheduleConfig::custom(Resting { after: 7, sent: 0 });
        assert_eq!(resting.to_string(), "resting:after=7");
        assert_eq!(TestFlow::with(&resting, "raptorq", &[10, 10]).send(99).len(), 7);
        resting.set_number("after", "9").expect("allowed");
        assert_eq!(resting.to_string(), "resting:after=9");
        assert!(resting.set_number("after", "0").is_err());
        assert_eq!(resting, ScheduleConfig::custom(Resting { after: 9, sent: 0 }));
        assert!("resting".parse::<ScheduleConfig>().is_err(), "the engine knows its own names only");
    }
}
