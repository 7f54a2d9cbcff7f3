//! Controllers from other crates.

use super::{CongestionConfig, CongestionControl};
use crate::settings::{Algorithm, Custom, NamedSettings, Settings};

/// Numbers of a controller that another crate implements, and its constructor.
pub trait ControllerFactory: Settings + Send + Sync {
    /// The controller's name, in profiles and traces: lower-case letters, digits and hyphens.
    const NAME: &'static str;

    /// Builds the controller. `max_packet` is the number of IP bytes in a full packet.
    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl>;
}

/// An object-safe [`ControllerFactory`]. Every factory is one.
pub trait DynController: Algorithm + Send + Sync {
    /// Builds the controller, for full packets of `max_packet` IP bytes.
    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl>;

    /// Clones the factory.
    fn to_boxed(&self) -> Box<dyn DynController>;
}

impl<F: ControllerFactory> DynController for NamedSettings<F> {
    fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        self.settings.build(max_packet)
    }

    fn to_boxed(&self) -> Box<dyn DynController> {
        Box::new(self.clone())
    }
}

/// A controller from another crate, as a profile holds it.
pub type CustomController = Custom<dyn DynController>;

impl CustomController {
    /// Wraps `factory`.
    pub fn new<F: ControllerFactory>(factory: F) -> Self {
        Self(Box::new(NamedSettings { name: F::NAME, settings: factory }))
    }
}

impl Clone for CustomController {
    fn clone(&self) -> Self {
        Self(self.0.to_boxed())
    }
}

impl CongestionConfig {
    /// Returns a controller from another crate.
    pub fn custom<F: ControllerFactory>(factory: F) -> Self {
        Self::Custom(CustomController::new(factory))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixed_window::{FixedWindow, FixedWindowConfig};
    use super::*;
    use crate::settings::SettingError;

    impl ControllerFactory for FixedWindowConfig {
        const NAME: &'static str = "mine";

        fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
            Box::new(FixedWindow::new(*self, max_packet))
        }
    }

    #[test]
    fn a_custom_controller_is_a_value_like_any_other() {
        let mut mine = CongestionConfig::custom(FixedWindowConfig { segments: 7, rate: None });
        assert_eq!((mine.to_string(), mine.build(1000).window()), ("mine:segments=7".into(), 7000));
        let before = mine.clone();
        mine.set_number("segments", "9").unwrap();
        assert_eq!((mine.to_string(), mine.build(1000).window()), ("mine:segments=9".into(), 9000));
        assert_eq!((before.to_string(), before.build(1000).window()), ("mine:segments=7".into(), 7000));
        assert_ne!(mine, before);
        assert_eq!(mine, CongestionConfig::custom(FixedWindowConfig { segments: 9, rate: None }));
        let numbers: Vec<(&str, String)> =
            mine.numbers().into_iter().map(|number| (number.key, number.value)).collect();
        assert_eq!(numbers, [("segments", "9".into()), ("rate", "none".into())]);

        assert!(matches!(mine.set_number("segments", "0"), Err(SettingError::Value { .. })));
        assert!(matches!(mine.set_number("beta", "1"), Err(SettingError::UnknownKey { of, .. }) if of == "mine"));
        assert_eq!(mine.build(1000).window(), 9000, "a refused number changes nothing");
        assert!("mine".parse::<CongestionConfig>().is_err(), "the engine knows its own names only");
    }
}
