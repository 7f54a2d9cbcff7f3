//! Controllers by name: parsed, printed, built.

use super::CongestionControl;
use super::cubic::Cubic;
use super::told::Told;
use crate::settings::{BitRate, Number, Setting, Settings, Switch, choices, field};
use crate::time::Rate;

/// A controller and its numbers, written as text: `told:100M`, `cubic`, `cubic:beta=0.5,fast-convergence=off`.
#[derive(Clone, Debug, PartialEq)]
pub enum CongestionConfig {
    /// Sends at a rate it is told, whatever is lost.
    Told(ToldConfig),
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
}

choices! { "congestion control", CongestionConfig { "told" => Told(ToldConfig), "cubic" => Cubic(CubicConfig) } }

/// Numbers of a told rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldConfig {
    /// In IP bits per second.
    pub rate: Rate,
}

impl Default for ToldConfig {
    fn default() -> Self {
        Self { rate: Rate::from_bits_per_second(10_000_000) }
    }
}

impl Settings for ToldConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[field!(bare "rate", rate, BitRate)];
}

/// Numbers of CUBIC (RFC 9438 section 4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// What a congestion event leaves of the window: 0.7, between 0.1 and 0.95.
    pub beta: f64,
    /// C, in packets per second cubed: 0.4, between 0.01 and 10.
    pub c: f64,
    /// A flow that loses ground gives up more (section 4.7): on.
    pub fast_convergence: bool,
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self { beta: 0.7, c: 0.4, fast_convergence: true }
    }
}

impl Settings for CubicConfig {
    const SETTINGS: &'static [&'static dyn Setting<Self>] = &[
        field!("beta", beta, Number(0.1, 0.95)),
        field!("c", c, Number(0.01, 10.0)),
        field!("fast-convergence", fast_convergence, Switch),
    ];
}

impl CongestionConfig {
    /// The controller, for packets of `max_packet` IP bytes.
    pub fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        match self {
            Self::Told(told) => Box::new(Told::new(told.rate, max_packet)),
            Self::Cubic(config) => Box::new(Cubic::new(*config, max_packet)),
        }
    }
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self::Cubic(CubicConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Choice, SettingError};

    #[test]
    fn text_reads_back_as_itself() {
        let texts = [
            "told:100M",
            "told:1500k",
            "told:2G",
            "told:123456789",
            "cubic",
            "cubic:beta=0.5",
            "cubic:c=1.5,fast-convergence=off",
        ];
        for text in texts {
            let config: CongestionConfig = text.parse().unwrap();
            assert_eq!(config.to_string(), text);
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<CongestionConfig>(&json).unwrap(), config);
        }
        let told: CongestionConfig = "told:1.5G".parse().unwrap();
        assert_eq!(told, CongestionConfig::Told(ToldConfig { rate: Rate::from_bits_per_second(1_500_000_000) }));
        assert_eq!("told:rate=1.5G".parse::<CongestionConfig>().unwrap(), told);
    }

    #[test]
    fn one_number_is_changed() {
        let mut cubic: CongestionConfig = "cubic:c=1.5".parse().unwrap();
        cubic.set_number("beta", "0.5").unwrap();
        assert_eq!(cubic.to_string(), "cubic:beta=0.5,c=1.5");
        let shown: Vec<(&str, String)> = cubic.numbers().into_iter().map(|n| (n.key, n.value)).collect();
        assert_eq!(shown, [("beta", "0.5".into()), ("c", "1.5".into()), ("fast-convergence", "on".into())]);
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let parse = |text: &str| text.parse::<CongestionConfig>().unwrap_err();
        assert!(matches!(parse("vegas"), SettingError::UnknownName { name, .. } if name == "vegas"));
        for rate in ["0", "fast", "-1M", "inf", "nan", "1e300", "1MB/s"] {
            assert!(matches!(parse(&format!("told:{rate}")), SettingError::Value { value, .. } if value == rate));
        }
        for value in ["beta=1", "beta=nan", "c=0", "c=", "fast-convergence=maybe"] {
            let error = parse(&format!("cubic:{value}"));
            assert!(matches!(error, SettingError::Value { .. }), "{error}");
        }
        assert_eq!(parse("cubic:c=0").to_string(), "'0' is not a c: it is a number from 0.01 to 10");
        for key in ["beta", "gamma=1"] {
            let error = parse(&format!("cubic:{key}"));
            assert!(error.to_string().contains("beta"), "{error}");
        }
        let unknown = "cubic has no 'gamma' (it has: beta, c, fast-convergence)";
        assert_eq!(parse("cubic:gamma=1").to_string(), unknown);
    }
}
