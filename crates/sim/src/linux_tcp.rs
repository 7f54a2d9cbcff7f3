//! A neighbour that sends as TCP with CUBIC does in Linux.

use transport::Profile;
use transport::congestion::{CongestionConfig, CubicConfig, CubicForm};

/// The name of [`linux_tcp`] where profiles are named.
pub const LINUX_TCP: &str = "linux-tcp";

/// Every choice but the controller with all its numbers, so that a change of another profile does not change the model
/// of TCP.
const CHOICES: [(&str, &str); 14] = [
    ("symbols", "1400,1344,1280,1152:per-packet=1"),
    ("blocks", "fixed:k=1024,code=uncoded,small-code=uncoded,small-k=256"),
    ("streams", "blocks:overhead=50%"),
    ("schedule", "arq"),
    ("pacing", "off"),
    (
        "detection",
        "threshold:packets=3,time=1.125,granularity=1ms,adapt=on,most-packets=1024,most-time=2,feedback-delay=1ms",
    ),
    ("timeout", "probe:max=1s,steady=0"),
    ("rtt", "ewma:alpha=0.125,beta=0.25"),
    ("estimator", "packets:initial=5%,half-life=2000"),
    ("in-flight", "packets"),
    ("feedback.packets", "ranges"),
    ("feedback.blocks", "needs"),
    ("feedback.timing", "every:packets=2,threshold=0%,factor=2"),
    ("limit", "none"),
];

/// The numbers of RFC 9438.
const CUBIC: CubicConfig = CubicConfig {
    initial: 10,
    threshold: None,
    beta: 0.7,
    c: 0.4,
    fast_convergence: true,
    hystart: true,
    form: CubicForm::Rfc9438,
};

/// Returns a profile that sends as TCP with CUBIC does in Linux: no redundancy, selective acknowledgements of every
/// second packet and of each one beyond a gap (RFC 5681 section 4.2), and packets that go out as soon as the window has
/// room for them. Linux paces TCP only below the queue discipline fq or with BBR.
///
/// Its slow start ends by HyStart++ (RFC 9406), a revision of Linux's HyStart. A timeout sends probes, as Linux's does
/// first (RFC 8985 section 7), and backs off to 1 s at most, where Linux's continues to 120 s: it is no slower than
/// TCP.
pub fn linux_tcp() -> Profile {
    as_linux(systems::arq::profile())
}

/// Makes every choice of a profile, whatever it was.
fn as_linux(mut profile: Profile) -> Profile {
    profile.set_all(CHOICES).expect("choices of every profile");
    profile.recovery.congestion = CongestionConfig::Cubic(CUBIC);
    profile
}

#[cfg(test)]
mod tests {
    use super::*;
    use transport::profile::Key;
    use transport::settings::SettingText;

    fn choices(profile: &Profile) -> Vec<(&'static str, String, Vec<SettingText>)> {
        Key::ALL.iter().map(|key| (key.name(), key.of(profile).written(&[]), key.of(profile).numbers())).collect()
    }

    #[test]
    fn nothing_is_inherited_from_the_profile_that_it_starts_from() {
        let named: Vec<&str> = CHOICES.iter().map(|(key, _)| *key).chain(["congestion"]).collect();
        for key in Key::ALL {
            assert!(named.contains(&key.name()), "{} is left to a default", key.name());
        }
        let expected = choices(&linux_tcp());
        for name in systems::registry().profile_names() {
            let other = systems::profile(name).expect("a built-in profile");
            assert_eq!(choices(&as_linux(other)), expected, "started from {name}");
        }
        // All numbers are named, so no algorithm's standard ones apply.
        for ((key, text), shown) in CHOICES.iter().zip(Key::ALL.iter().filter(|key| key.name() != "congestion")) {
            assert_eq!(*key, shown.name());
            for SettingText { key: number, .. } in shown.of(&linux_tcp()).numbers() {
                assert!(text.contains(&format!("{number}=")), "{key}.{number} is left to a default");
            }
        }
    }

    /// Its behaviour when all but three choices came from `arq`: recorded results have this one.
    #[test]
    fn linux_tcp_matches_the_recorded_behaviour() {
        let mut recorded = systems::arq::profile();
        let changed = [
            ("feedback.packets", "ranges"),
            ("feedback.timing", "every:packets=2,threshold=0%,factor=2"),
            ("detection", "threshold"),
        ];
        recorded.set_all(changed).expect("choices");
        recorded.recovery.congestion = CongestionConfig::Cubic(CUBIC);
        assert_eq!(linux_tcp(), recorded);
        assert_eq!(CUBIC, CubicConfig::default());
    }
}
