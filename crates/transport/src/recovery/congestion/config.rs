//! Controllers by name: parsed, printed, built.

use super::CongestionControl;
use super::cubic::Cubic;
use super::told::Told;
use crate::time::Rate;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A controller and its numbers, written as text: `told:100M`, `cubic`, `cubic:beta=0.5,fast-convergence=off`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum CongestionConfig {
    /// Sends at a rate it is told, whatever is lost.
    Told {
        /// In IP bits per second.
        rate: Rate,
    },
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
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

/// Text that names no controller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CongestionParseError {
    /// No controller has this name.
    #[error("no congestion control is called '{0}' (there are: told:RATE, cubic)")]
    UnknownName(String),
    /// Not a rate.
    #[error("'{0}' is not a rate in bits per second, such as 100M or 1.5G")]
    Rate(String),
    /// Not a parameter of this controller, or a value out of its range.
    #[error("'{0}' is not one of beta=0.1..0.95, c=0.01..10, fast-convergence=on|off")]
    Parameter(String),
}

impl CongestionConfig {
    /// The controller, for packets of `max_packet` IP bytes.
    pub fn build(&self, max_packet: u32) -> Box<dyn CongestionControl> {
        match self {
            Self::Told { rate } => Box::new(Told::new(*rate, max_packet)),
            Self::Cubic(config) => Box::new(Cubic::new(*config, max_packet)),
        }
    }
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self::Cubic(CubicConfig::default())
    }
}

impl fmt::Display for CongestionConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Told { rate } => write!(f, "told:{}", rate_text(*rate)),
            Self::Cubic(config) => {
                let standard = CubicConfig::default();
                let mut parameters = Vec::new();
                if config.beta != standard.beta {
                    parameters.push(format!("beta={}", config.beta));
                }
                if config.c != standard.c {
                    parameters.push(format!("c={}", config.c));
                }
                if config.fast_convergence != standard.fast_convergence {
                    parameters.push("fast-convergence=off".to_owned());
                }
                let colon = if parameters.is_empty() { "" } else { ":" };
                write!(f, "cubic{colon}{}", parameters.join(","))
            }
        }
    }
}

impl FromStr for CongestionConfig {
    type Err = CongestionParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "told" => match parse_rate(rest) {
                Some(rate) => Ok(Self::Told { rate }),
                None => Err(CongestionParseError::Rate(rest.to_owned())),
            },
            "cubic" => rest
                .split(',')
                .filter(|parameter| !parameter.is_empty())
                .try_fold(CubicConfig::default(), CubicConfig::with)
                .map(Self::Cubic),
            _ => Err(CongestionParseError::UnknownName(name.to_owned())),
        }
    }
}

impl CubicConfig {
    fn with(mut self, parameter: &str) -> Result<Self, CongestionParseError> {
        let invalid = || CongestionParseError::Parameter(parameter.to_owned());
        let within = |value: &str, low: f64, high: f64| match value.parse::<f64>() {
            Ok(value) if (low..=high).contains(&value) => Ok(value),
            _ => Err(invalid()),
        };
        match parameter.split_once('=') {
            Some(("beta", value)) => self.beta = within(value, 0.1, 0.95)?,
            Some(("c", value)) => self.c = within(value, 0.01, 10.0)?,
            Some(("fast-convergence", "on")) => self.fast_convergence = true,
            Some(("fast-convergence", "off")) => self.fast_convergence = false,
            _ => return Err(invalid()),
        }
        Ok(self)
    }
}

impl TryFrom<String> for CongestionConfig {
    type Error = CongestionParseError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CongestionConfig> for String {
    fn from(config: CongestionConfig) -> Self {
        config.to_string()
    }
}

const UNITS: [(char, u64); 3] = [('G', 1_000_000_000), ('M', 1_000_000), ('k', 1000)];

/// A rate with the largest unit that divides it, so that it reads back exactly.
fn rate_text(rate: Rate) -> String {
    let bits = rate.bits_per_second();
    let unit = UNITS.iter().find(|(_, unit)| bits.is_multiple_of(*unit));
    unit.map_or_else(|| bits.to_string(), |(letter, unit)| format!("{}{letter}", bits / unit))
}

fn parse_rate(text: &str) -> Option<Rate> {
    let unit = UNITS.iter().find(|(letter, _)| text.ends_with(*letter));
    let (digits, unit) = unit.map_or((text, 1), |(letter, unit)| (text.trim_end_matches(*letter), *unit));
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let bits = match digits.parse::<u64>() {
        Ok(whole) => whole.checked_mul(unit)?,
        Err(_) => (digits.parse::<f64>().ok()? * unit as f64).round() as u64,
    };
    (bits > 0 && bits < u64::MAX).then(|| Rate::from_bits_per_second(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(told, CongestionConfig::Told { rate: Rate::from_bits_per_second(1_500_000_000) });
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        let parse = |text: &str| text.parse::<CongestionConfig>().unwrap_err();
        assert_eq!(parse("vegas"), CongestionParseError::UnknownName("vegas".to_owned()));
        for rate in ["", "0", "fast", "-1M", "inf", "nan", "1e300", "1MM1", "20000000000G", "1MB/s"] {
            assert_eq!(parse(&format!("told:{rate}")), CongestionParseError::Rate(rate.to_owned()));
        }
        for parameter in ["beta=1", "beta=nan", "c=0", "c=", "beta", "fast-convergence=maybe", "gamma=1"] {
            assert_eq!(parse(&format!("cubic:{parameter}")), CongestionParseError::Parameter(parameter.to_owned()));
        }
    }
}
