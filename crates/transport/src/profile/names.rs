//! Names that a program gives to its own algorithms.

use super::{Profile, ProfileError};
use crate::flow::ScheduleConfig;
use crate::flow::schedule::{CustomSchedule, ScheduleFactory};
use crate::recovery::CongestionConfig;
use crate::recovery::congestion::{ControllerFactory, CustomController};
use crate::settings::{Algorithm, SettingError};
use std::collections::BTreeMap;

/// The reason for refusing an algorithm's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Another algorithm of the same family has it.
    #[error("the name '{0}' is taken")]
    Taken(&'static str),
    /// It could not be distinguished from the rest of a profile's text.
    #[error("'{0}' is not a name: a name has lower-case letters, digits and hyphens, and begins with a letter")]
    Malformed(&'static str),
}

/// The names, in addition to the built-in ones, by which the profiles of a program choose controllers and schedules. A
/// program makes one such table and obtains its profiles from it; every profile keeps its table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlgorithmRegistry {
    controllers: BTreeMap<&'static str, CustomController>,
    schedules: BTreeMap<&'static str, CustomSchedule>,
}

impl AlgorithmRegistry {
    /// Adds a controller: `congestion = NAME`, or `NAME:key=value`.
    ///
    /// # Errors
    /// Another controller has the name, or it is malformed.
    pub fn with_controller<F: ControllerFactory>(mut self) -> Result<Self, NameError> {
        check(F::NAME, CongestionConfig::NAMES, &self.controllers)?;
        self.controllers.insert(F::NAME, CustomController::new(F::default()));
        Ok(self)
    }

    /// Adds a schedule: `schedule = NAME`, or `NAME:key=value`.
    ///
    /// # Errors
    /// Another schedule has the name, or it is malformed.
    pub fn with_schedule<F: ScheduleFactory>(mut self) -> Result<Self, NameError> {
        check(F::NAME, ScheduleConfig::NAMES, &self.schedules)?;
        self.schedules.insert(F::NAME, CustomSchedule::new(F::default()));
        Ok(self)
    }

    /// Returns the built-in profile of this name, which can choose from these names.
    ///
    /// # Errors
    /// [`ProfileError::UnknownName`] lists the known profiles.
    pub fn profile(&self, name: &str) -> Result<Profile, ProfileError> {
        Ok(Profile { names: self.clone(), ..Profile::named(name)? })
    }

    /// Returns the controller that `text` names, if it is one of these.
    pub(super) fn controller(&self, text: &str) -> Option<Result<CongestionConfig, SettingError>> {
        Some(read(&self.controllers, text)?.map(CongestionConfig::Custom))
    }

    /// Returns the schedule that `text` names, if it is one of these.
    pub(super) fn schedule(&self, text: &str) -> Option<Result<ScheduleConfig, SettingError>> {
        Some(read(&self.schedules, text)?.map(ScheduleConfig::Custom))
    }

    /// Adds these names to those that an error lists.
    pub(super) fn complete(&self, key: &str, mut error: SettingError) -> SettingError {
        if let SettingError::UnknownName { names, .. } = &mut error {
            let own: Vec<&&str> = match key {
                "congestion" => self.controllers.keys().collect(),
                "schedule" => self.schedules.keys().collect(),
                _ => Vec::new(),
            };
            own.into_iter().for_each(|name| *names += &format!(", {name}"));
        }
        error
    }
}

fn check<T>(name: &'static str, built_in: &[&str], own: &BTreeMap<&'static str, T>) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(NameError::Malformed(name));
    }
    if built_in.contains(&name) || own.contains_key(name) {
        return Err(NameError::Taken(name));
    }
    Ok(())
}

fn read<C: Algorithm + Clone>(own: &BTreeMap<&'static str, C>, text: &str) -> Option<Result<C, SettingError>> {
    let mut choice = own.get(text.split(':').next()?)?.clone();
    Some(choice.set(text).map(|()| choice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::schedule::Schedule;
    use crate::recovery::congestion::{CongestionControl, FixedWindowConfig};
    use crate::settings::{IntegerRange, Setting, Settings, field};
    use serde::de::DeserializeSeed as _;

    /// Numbers under the name in the type's parameter.
    #[derive(Clone, Debug, PartialEq)]
    struct Mine<const NAME: usize> {
        packets: u32,
    }

    const CALLED: [&str; 4] = ["mine", "cubic", "Mine", "windowed"];

    impl<const NAME: usize> Default for Mine<NAME> {
        fn default() -> Self {
            Self { packets: 5 }
        }
    }

    impl<const NAME: usize> Settings for Mine<NAME> {
        const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!("packets", packets, IntegerRange(1, 100))];
    }

    impl<const NAME: usize> ControllerFactory for Mine<NAME> {
        const NAME: &'static str = CALLED[NAME];

        fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
            CongestionConfig::FixedWindow(FixedWindowConfig { segments: self.packets, rate: None }).build(max_packet)
        }
    }

    impl<const NAME: usize> ScheduleFactory for Mine<NAME> {
        const NAME: &'static str = CALLED[NAME];

        fn build(&self) -> Box<dyn Schedule> {
            ScheduleConfig::Arq.build()
        }
    }

    fn names() -> AlgorithmRegistry {
        let names = AlgorithmRegistry::default().with_controller::<Mine<0>>().expect("a new name");
        names.with_schedule::<Mine<0>>().expect("another family")
    }

    #[test]
    fn a_profile_chooses_from_the_names_of_its_program() {
        let mut profile = names().profile("arq").expect("built in");
        for (key, value, text) in [
            ("congestion", "mine", "mine"),
            ("congestion", "mine:packets=7", "mine:packets=7"),
            ("congestion.packets", "9", "mine:packets=9"),
        ] {
            profile.set(key, value).expect("a name of this program");
            assert_eq!(profile.recovery.congestion.to_string(), text);
        }
        assert_eq!(profile.recovery.congestion.build(1000).window(), 9000);
        profile.set("schedule", "mine").expect("a name of this program");
        assert_eq!(profile.schedule, ScheduleConfig::custom(Mine::<0> { packets: 5 }));
        let before = profile.clone();
        for (key, value, says) in [
            ("congestion", "mine:packets=0", "invalid packets '0'"),
            ("congestion", "vegas", ", grow-only, mine)"),
            ("schedule", "restless", ", chunks, mine)"),
            ("timeout", "never", "(one of: probe, rto)"),
        ] {
            let error = profile.set(key, value).expect_err(value).to_string();
            assert!(error.contains(says), "{error}");
            assert_eq!(profile, before);
        }
        let sent = serde_json::to_string(&profile).expect("plain data");
        let read = |names: &AlgorithmRegistry| names.deserialize(&mut serde_json::Deserializer::from_str(&sent));
        assert_eq!(read(&names()).expect("the same program"), profile);
        let error = read(&AlgorithmRegistry::default()).expect_err("another program").to_string();
        assert!(error.contains("unknown congestion control 'mine'"), "{error}");
    }

    #[test]
    fn a_name_means_one_algorithm() {
        assert_eq!(names().with_controller::<Mine<0>>(), Err(NameError::Taken("mine")));
        assert_eq!(names().with_schedule::<Mine<0>>(), Err(NameError::Taken("mine")));
        assert_eq!(names().with_controller::<Mine<1>>(), Err(NameError::Taken("cubic")));
        assert_eq!(names().with_schedule::<Mine<3>>(), Err(NameError::Taken("windowed")));
        assert_eq!(names().with_controller::<Mine<2>>(), Err(NameError::Malformed("Mine")));
        for name in ["", "a:b", "a=b", "1a", "a,b"] {
            assert_eq!(check::<()>(name, &[], &BTreeMap::new()), Err(NameError::Malformed(name)));
        }
    }
}
