//! Controllers from other crates.

use super::{CongestionConfig, CongestionControl};
use crate::settings::seam;

seam! {
    /// Numbers of a controller that another crate implements, and its constructor.
    ControllerFactory, DynController, CustomController, CongestionConfig;
    required {
        /// Builds the controller. `max_packet` is the number of IP bytes in a full packet.
        fn build(&self, max_packet: u32) -> Box<dyn CongestionControl>;
    }
    provided {}
}

#[cfg(test)]
mod tests {
    use super::super::TestWindow;
    use super::*;
    use crate::settings::{Algorithm, SettingError};

    #[test]
    fn a_custom_controller_is_a_value_like_any_other() {
        let mut mine = CongestionConfig::custom(TestWindow { packets: 7 });
        assert_eq!((mine.to_string(), mine.build(1000).window()), ("mine:packets=7".into(), 7000));
        let before = mine.clone();
        mine.set_number("packets", "9").unwrap();
        assert_eq!((mine.to_string(), mine.build(1000).window()), ("mine:packets=9".into(), 9000));
        assert_eq!((before.to_string(), before.build(1000).window()), ("mine:packets=7".into(), 7000));
        assert_ne!(mine, before);
        assert_eq!(mine, CongestionConfig::custom(TestWindow { packets: 9 }));
        let numbers: Vec<(&str, String)> =
            mine.numbers().into_iter().map(|number| (number.key, number.value)).collect();
        assert_eq!(numbers, [("packets", "9".into())]);

        assert!(matches!(mine.set_number("packets", "0"), Err(SettingError::Value { .. })));
        assert!(matches!(mine.set_number("beta", "1"), Err(SettingError::UnknownKey { of, .. }) if of == "mine"));
        assert_eq!(mine.build(1000).window(), 9000, "a refused number changes nothing");
        assert!("mine".parse::<CongestionConfig>().is_err(), "the engine knows its own names only");
    }
}
