//! The controllers, and how each is named and built.

use super::CongestionControl;
use super::auto::{Auto, AutoConfig};
use super::bbr::{Bbr, BbrConfig};
use super::ccid2::{self, Ccid2Config};
use super::cubic::{Cubic, CubicConfig};
use super::custom::CustomController;
use super::fixed_rate::{FixedRate, FixedRateConfig};
use super::fixed_window::{FixedWindow, FixedWindowConfig};
use super::grow_only::{GrowOnly, GrowOnlyConfig};
use super::highspeed::{self, HighSpeedConfig};
use super::ledbat::{Ledbat, LedbatConfig};
use super::reno::{Reno, RenoConfig, Response};
use super::tfrc::{Tfrc, TfrcConfig};
use super::ttp::{Ttp, TtpConfig};
use crate::settings::choices;

/// A controller and its numbers, which also have a text form: `fixed-rate:100M`, `cubic`,
/// `cubic:beta=0.5,fast-convergence=off`.
#[derive(Clone, Debug, PartialEq)]
pub enum CongestionConfig {
    /// Sends at a fixed rate, whatever the losses.
    FixedRate(FixedRateConfig),
    /// A fixed window (arq §2.1).
    FixedWindow(FixedWindowConfig),
    /// Reno and NewReno (arq §3, RFC 5681, RFC 6582).
    Reno(RenoConfig),
    /// The default profile's own (docs/design/auto.md).
    Auto(AutoConfig),
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
    /// HighSpeed TCP (RFC 3649).
    HighSpeed(HighSpeedConfig),
    /// BBR, version 3 (draft-ietf-ccwg-bbr).
    Bbr(BbrConfig),
    /// CCID 2 of DCCP (RFC 4341).
    Ccid2(Ccid2Config),
    /// CCID 3 of DCCP, TCP-friendly rate control (RFC 5348).
    Tfrc(TfrcConfig),
    /// LEDBAT (RFC 6817).
    Ledbat(LedbatConfig),
    /// TTP's rate (ttp §II-B).
    Ttp(TtpConfig),
    /// A window that never shrinks (lt-tcp §2.3).
    GrowOnly(GrowOnlyConfig),
    /// A controller from another crate: [`CongestionConfig::custom`].
    Custom(CustomController),
}

choices! { "congestion control", CongestionConfig {
    "fixed-rate" => FixedRate(FixedRateConfig),
    "fixed-window" => FixedWindow(FixedWindowConfig),
    "reno" => Reno(RenoConfig),
    "auto" => Auto(AutoConfig),
    "cubic" => Cubic(CubicConfig),
    "highspeed" => HighSpeed(HighSpeedConfig),
    "bbr" => Bbr(BbrConfig),
    "ccid2" => Ccid2(Ccid2Config),
    "tfrc" => Tfrc(TfrcConfig),
    "ledbat" => Ledbat(LedbatConfig),
    "ttp" => Ttp(TtpConfig),
    "grow-only" => GrowOnly(GrowOnlyConfig),
} else Custom }

impl CongestionConfig {
    /// Builds the controller. A full packet has `max_packet` IP bytes.
    pub fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        match self {
            Self::FixedRate(config) => Box::new(FixedRate::new(*config, max_packet)),
            Self::FixedWindow(config) => Box::new(FixedWindow::new(*config, max_packet)),
            Self::Reno(config) => Box::new(Reno::new("reno", *config, Response::Standard, max_packet)),
            Self::Auto(config) => Box::new(Auto::new(*config, max_packet)),
            Self::Cubic(config) => Box::new(Cubic::new(*config, max_packet)),
            Self::HighSpeed(config) => Box::new(highspeed::highspeed(*config, max_packet)),
            Self::Bbr(config) => Box::new(Bbr::new(*config, max_packet)),
            Self::Ccid2(config) => Box::new(ccid2::ccid2(*config, max_packet)),
            Self::Tfrc(config) => Box::new(Tfrc::new(*config, max_packet)),
            Self::Ledbat(config) => Box::new(Ledbat::new(*config, max_packet)),
            Self::Ttp(config) => Box::new(Ttp::new(*config, max_packet)),
            Self::GrowOnly(config) => Box::new(GrowOnly::new(*config, max_packet)),
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
            "fixed-window",
            "fixed-window:segments=20",
            "fixed-window:rate=50M",
            "reno",
            "reno:initial=10,threshold=none,inflation=0",
            "reno:signal=ecn",
            "reno:limit=20",
            "reno:limit=told:155M",
            "highspeed",
            "bbr:loss=5%",
            "ccid2",
            "tfrc:intervals=16",
            "ledbat:target=25ms",
            "ttp:start=50%,max=100M,q=5",
            "grow-only:initial=2",
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
