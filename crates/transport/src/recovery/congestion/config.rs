//! The controllers, and how each is named and built.

use super::CongestionControl;
use super::auto::{Auto, AutoConfig};
use super::bbr::{Bbr, BbrConfig};
use super::cubic::{Cubic, CubicConfig};
use super::custom::CustomController;
use super::fixed_rate::{FixedRate, FixedRateConfig};
use super::reno::{Reno, RenoConfig, Response};
use crate::settings::choices;

/// A controller and its numbers, which also have a text form: `fixed-rate:100M`, `cubic`,
/// `cubic:beta=0.5,fast-convergence=off`.
#[derive(Clone, Debug, PartialEq)]
pub enum CongestionConfig {
    /// Sends at a fixed rate, whatever the losses.
    FixedRate(FixedRateConfig),
    /// Reno and NewReno (arq §3, RFC 5681, RFC 6582).
    Reno(RenoConfig),
    /// The default profile's own (docs/design/auto.md).
    Auto(AutoConfig),
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
    /// BBR, version 3 (draft-ietf-ccwg-bbr).
    Bbr(BbrConfig),
    /// A controller from another crate: [`CongestionConfig::custom`].
    Custom(CustomController),
}

choices! { "congestion control", CongestionConfig {
    "fixed-rate" => FixedRate(FixedRateConfig),
    "reno" => Reno(RenoConfig),
    "auto" => Auto(AutoConfig),
    "cubic" => Cubic(CubicConfig),
    "bbr" => Bbr(BbrConfig),
} else Custom }

impl CongestionConfig {
    /// Builds the controller. A full packet has `max_packet` IP bytes.
    pub fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        match self {
            Self::FixedRate(config) => Box::new(FixedRate::new(*config, max_packet)),
            Self::Reno(config) => Box::new(Reno::new("reno", *config, Response::STANDARD, max_packet)),
            Self::Auto(config) => Box::new(Auto::new(*config, max_packet)),
            Self::Cubic(config) => Box::new(Cubic::new(*config, max_packet)),
            Self::Bbr(config) => Box::new(Bbr::new(*config, max_packet)),
            Self::Custom(custom) => custom.0.build(max_packet),
        }
    }
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self::Auto(AutoConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Algorithm, SettingError};
    use crate::time::Rate;

    #[test]
    fn text_reads_back_as_itself() {
        let texts = [
            "fixed-rate:100M",
            "fixed-rate:1500k",
            "fixed-rate:2G",
            "fixed-rate:123456789",
            "fixed-rate:100M,insist=on",
            "fixed-rate:5M,train=20",
            "auto",
            "auto:policy=low",
            "cubic",
            "cubic:beta=0.5",
            "cubic:c=1.5,fast-convergence=off",
            "cubic:beta=0.5,form=document",
            "cubic:initial=1,threshold=64,hystart=off",
            "reno",
            "reno:initial=10,threshold=none,inflation=0",
            "reno:signal=ecn",
            "reno:limit=20",
            "reno:limit=told:155M",
            "bbr:loss=5%",
        ];
        for text in texts {
            let config: CongestionConfig = text.parse().unwrap();
            assert_eq!(config.to_string(), text);
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<CongestionConfig>(&json).unwrap(), config);
        }
        let fixed: CongestionConfig = "fixed-rate:1.5G".parse().unwrap();
        assert_eq!(
            fixed,
            CongestionConfig::FixedRate(FixedRateConfig {
                rate: Rate::from_bits_per_second(1_500_000_000),
                window: true,
                insist: false,
                train: 1,
            })
        );
        assert_eq!("fixed-rate:rate=1.5G".parse::<CongestionConfig>().unwrap(), fixed);
    }

    #[test]
    fn one_number_is_changed() {
        let mut cubic: CongestionConfig = "cubic:c=1.5".parse().unwrap();
        cubic.set_number("beta", "0.5").unwrap();
        assert_eq!(cubic.to_string(), "cubic:beta=0.5,c=1.5");
        let shown: Vec<(&str, String)> = cubic.numbers().into_iter().map(|n| (n.key, n.value)).collect();
        assert_eq!(
            shown,
            [
                ("initial", "10".into()),
                ("threshold", "none".into()),
                ("beta", "0.5".into()),
                ("c", "1.5".into()),
                ("fast-convergence", "on".into()),
                ("hystart", "on".into()),
                ("form", "rfc9438".into())
            ]
        );
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let parse = |text: &str| text.parse::<CongestionConfig>().unwrap_err();
        assert!(matches!(parse("vegas"), SettingError::UnknownName { name, .. } if name == "vegas"));
        for rate in ["0", "fast", "-1M", "inf", "nan", "1e300", "1MB/s"] {
            assert!(matches!(parse(&format!("fixed-rate:{rate}")), SettingError::Value { value, .. } if value == rate));
        }
        for value in ["beta=1", "beta=nan", "c=0", "c=", "fast-convergence=maybe"] {
            let error = parse(&format!("cubic:{value}"));
            assert!(matches!(error, SettingError::Value { .. }), "{error}");
        }
        assert_eq!(parse("cubic:c=0").to_string(), "invalid c '0': use a number from 0.01 to 10");
        for key in ["beta", "gamma=1"] {
            let error = parse(&format!("cubic:{key}"));
            assert!(error.to_string().contains("beta"), "{error}");
        }
        let unknown = "cubic has no key 'gamma' (one of: initial, threshold, beta, c, fast-convergence, hystart, form)";
        assert_eq!(parse("cubic:gamma=1").to_string(), unknown);
    }
}
