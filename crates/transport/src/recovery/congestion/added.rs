//! Controllers from other crates.

use super::{CongestionConfig, CongestionControl};
use crate::registry::{self, RegisterError, Registered, Registry};
use crate::settings::SettingError;

/// Makes a controller from its numbers, the text after its name's colon, and the IP bytes of a full packet.
/// [`settings::read`](crate::settings::read) reads such text. Asked when a profile is read too, to see whether the numbers are allowed.
pub type Build = fn(numbers: &str, max_packet: u32) -> Result<Box<dyn CongestionControl>, SettingError>;

static CONTROLLERS: Registry<Build> = Registry::new();

/// Packets of this size are assumed where a controller is built only to see whether its numbers are allowed.
const ANY_PACKET: u32 = 1500;

/// Makes a controller known by `name`, in the whole process: `--set congestion=NAME`, or `NAME:key=value`. Before the first use of the name.
///
/// # Errors
/// A name that is taken, or that is none.
pub fn register(name: &'static str, build: Build) -> Result<(), RegisterError> {
    CONTROLLERS.register(CongestionConfig::NAMES, name, build)
}

impl registry::Build for Build {
    fn registry() -> &'static Registry<Self> {
        &CONTROLLERS
    }

    fn check(self, numbers: &str) -> Result<(), SettingError> {
        self(numbers, ANY_PACKET).map(drop)
    }
}

/// A controller that another crate has registered, and its numbers.
pub type AddedController = Registered<Build>;

impl AddedController {
    pub(super) fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        (self.build)(&self.numbers, max_packet).expect("the numbers were allowed when they were read")
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixed_window::{FixedWindow, FixedWindowConfig};
    use super::*;
    use crate::settings::{Choice, read};

    fn build(numbers: &str, max_packet: u32) -> Result<Box<dyn CongestionControl>, SettingError> {
        read::<FixedWindowConfig>("mine", numbers)
            .map(|config| Box::new(FixedWindow::new(config, max_packet)) as Box<_>)
    }

    #[test]
    fn a_registered_name_is_a_controller_like_any_other() {
        let parse = |text: &str| text.parse::<CongestionConfig>();
        assert!(parse("mine").is_err());
        register("mine", build).unwrap();
        let mut mine = parse("mine:segments=7").unwrap();
        assert_eq!(mine.to_string(), "mine:segments=7");
        assert_eq!(mine.build(1000).window(), 7000);
        mine.set_number("segments", "9").unwrap();
        assert_eq!((mine.to_string(), mine.build(1000).window()), ("mine:segments=9".into(), 9000));
        mine.set_number("rate", "8M").unwrap();
        assert_eq!(mine.to_string(), "mine:segments=9,rate=8M");
        let json = serde_json::to_string(&mine).unwrap();
        assert_eq!(serde_json::from_str::<CongestionConfig>(&json).unwrap(), mine);

        assert!(matches!(parse("mine:segments=0"), Err(SettingError::Value { .. })));
        assert!(mine.set_number("segments", "0").is_err());
        assert_eq!(mine.build(1000).window(), 9000, "refused numbers change nothing");
        assert!(parse("vegas").unwrap_err().to_string().ends_with(", mine)"));

        assert_eq!(register("mine", build), Err(RegisterError::Taken("mine".into())));
        assert_eq!(register("cubic", build), Err(RegisterError::Taken("cubic".into())));
        for name in ["", "a:b", "Mine", "a=b", "1a", "a,b"] {
            assert_eq!(register(name, build), Err(RegisterError::Name(name.into())));
        }
    }
}
