//! The names that a program gives to profiles and algorithms.

use super::{AUTO, NamedProfile, Profile, ProfileError};
use crate::flow::schedule::{CustomSchedule, ScheduleFactory};
use crate::flow::{BlockSizing, CustomSizing, ScheduleConfig, SizingFactory};
use crate::recovery::congestion::{ControllerFactory, CustomController};
use crate::recovery::{CongestionConfig, CustomEstimator, EstimatorConfig, EstimatorFactory};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The reason for refusing the name of a profile or an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Another one of the same family has it.
    #[error("the name '{0}' is taken")]
    Taken(&'static str),
    /// It could not be distinguished from the rest of a profile's text.
    #[error("'{0}' is not a name: a name has lower-case letters, digits and hyphens, and begins with a letter")]
    Malformed(&'static str),
}

/// The names by which a program chooses profiles, and, in addition to the engine's own, controllers, schedules, block
/// sizings and loss estimators. A program makes one registry and obtains its profiles from it; every profile keeps its
/// registry. The default one has the profile `auto`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlgorithmRegistry(Arc<Names>);

/// The names of each family.
#[derive(Clone, Debug)]
struct Names {
    /// In order of registration.
    profiles: Vec<NamedProfile>,
    controllers: BTreeMap<&'static str, CustomController>,
    schedules: BTreeMap<&'static str, CustomSchedule>,
    sizings: BTreeMap<&'static str, CustomSizing>,
    estimators: BTreeMap<&'static str, CustomEstimator>,
}

/// Equal by names: in a program, a name means one profile or algorithm.
impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        let profiles = |names: &Self| names.profiles.iter().map(|profile| profile.name).collect::<Vec<_>>();
        let Self { profiles: _, controllers, schedules, sizings, estimators } = self;
        profiles(self) == profiles(other)
            && controllers.keys().eq(other.controllers.keys())
            && schedules.keys().eq(other.schedules.keys())
            && sizings.keys().eq(other.sizings.keys())
            && estimators.keys().eq(other.estimators.keys())
    }
}

/// The registry of the engine alone.
static OF_ENGINE: LazyLock<AlgorithmRegistry> = LazyLock::new(|| {
    AlgorithmRegistry(Arc::new(Names {
        profiles: vec![AUTO],
        controllers: BTreeMap::new(),
        schedules: BTreeMap::new(),
        sizings: BTreeMap::new(),
        estimators: BTreeMap::new(),
    }))
});

impl Default for AlgorithmRegistry {
    fn default() -> Self {
        OF_ENGINE.clone()
    }
}

impl AlgorithmRegistry {
    /// Adds a profile. Its algorithms need no names of their own, but can only be chosen by name if they have one.
    ///
    /// # Errors
    /// Another profile has the name, or it is malformed.
    pub fn with_profile(mut self, profile: NamedProfile) -> Result<Self, NameError> {
        check(profile.name, self.profile_names())?;
        Arc::make_mut(&mut self.0).profiles.push(profile);
        Ok(self)
    }

    /// Adds a controller: `congestion = NAME`, or `NAME:key=value`.
    ///
    /// # Errors
    /// Another controller has the name, or it is malformed.
    pub fn with_controller<F: ControllerFactory>(mut self) -> Result<Self, NameError> {
        check(F::NAME, CongestionConfig::NAMES.iter().chain(self.0.controllers.keys()).copied())?;
        Arc::make_mut(&mut self.0).controllers.insert(F::NAME, CustomController::new(F::default()));
        Ok(self)
    }

    /// Adds a schedule: `schedule = NAME`, or `NAME:key=value`.
    ///
    /// # Errors
    /// Another schedule has the name, or it is malformed.
    pub fn with_schedule<F: ScheduleFactory>(mut self) -> Result<Self, NameError> {
        check(F::NAME, ScheduleConfig::NAMES.iter().chain(self.0.schedules.keys()).copied())?;
        Arc::make_mut(&mut self.0).schedules.insert(F::NAME, CustomSchedule::new(F::default()));
        Ok(self)
    }

    /// Adds a packet and block size calculator: `blocks = NAME`, or `NAME:key=value`.
    ///
    /// # Errors
    /// Another one has the name, or it is malformed.
    pub fn with_sizing<F: SizingFactory>(mut self) -> Result<Self, NameError> {
        check(F::NAME, BlockSizing::NAMES.iter().chain(self.0.sizings.keys()).copied())?;
        Arc::make_mut(&mut self.0).sizings.insert(F::NAME, CustomSizing::new(F::default()));
        Ok(self)
    }

    /// Adds a loss estimator: `estimator = NAME`, or `NAME:key=value`.
    ///
    /// # Errors
    /// Another estimator has the name, or it is malformed.
    pub fn with_estimator<F: EstimatorFactory>(mut self) -> Result<Self, NameError> {
        check(F::NAME, EstimatorConfig::NAMES.iter().chain(self.0.estimators.keys()).copied())?;
        Arc::make_mut(&mut self.0).estimators.insert(F::NAME, CustomEstimator::new(F::default()));
        Ok(self)
    }

    /// Returns the profile of this name, which can choose from these names.
    ///
    /// # Errors
    /// [`ProfileError::UnknownName`] lists the known profiles.
    pub fn profile(&self, name: &str) -> Result<Profile, ProfileError> {
        let found = self.named(name).map(|profile| Profile { registry: self.clone(), ..(profile.make)() });
        found.ok_or_else(|| {
            let names = self.profile_names().collect::<Vec<_>>().join(", ");
            ProfileError::UnknownName { name: name.to_owned(), names }
        })
    }

    /// Iterates over the profiles, `auto` first.
    pub fn profiles(&self) -> impl Iterator<Item = &NamedProfile> {
        self.0.profiles.iter()
    }

    /// Iterates over the names of the profiles, `auto` first.
    pub fn profile_names(&self) -> impl Iterator<Item = &'static str> {
        self.0.profiles.iter().map(|profile| profile.name)
    }

    /// Returns the profile of this name.
    pub(super) fn named(&self, name: &str) -> Option<&NamedProfile> {
        self.0.profiles.iter().find(|profile| profile.name == name)
    }

    /// Returns the controllers.
    pub(super) fn controllers(&self) -> &BTreeMap<&'static str, CustomController> {
        &self.0.controllers
    }

    /// Returns the schedules.
    pub(super) fn schedules(&self) -> &BTreeMap<&'static str, CustomSchedule> {
        &self.0.schedules
    }

    /// Returns the block sizings.
    pub(super) fn sizings(&self) -> &BTreeMap<&'static str, CustomSizing> {
        &self.0.sizings
    }

    /// Returns the loss estimators.
    pub(super) fn estimators(&self) -> &BTreeMap<&'static str, CustomEstimator> {
        &self.0.estimators
    }
}

fn check(name: &'static str, mut others: impl Iterator<Item = &'static str>) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(NameError::Malformed(name));
    }
    if others.any(|other| other == name) { Err(NameError::Taken(name)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::schedule::Schedule;
    use crate::recovery::congestion::{CongestionControl, TestWindow};
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
            TestWindow { packets: self.packets }.build(max_packet)
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
        let mut profile = names().profile("auto").expect("built in");
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
            ("congestion", "vegas", ", bbr, mine)"),
            ("schedule", "restless", ", arq, mine)"),
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
        let again = NamedProfile { name: "auto", about: "", make: Profile::auto, sources: &[] };
        assert_eq!(names().with_profile(again), Err(NameError::Taken("auto")));
        for name in ["", "a:b", "a=b", "1a", "a,b"] {
            assert_eq!(check(name, std::iter::empty()), Err(NameError::Malformed(name)));
        }
    }
}
