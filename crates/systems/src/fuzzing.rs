//! Fuzz target of profiles.

use crate::registry;
use serde::de::DeserializeSeed as _;
use std::fmt::Write as _;
use transport::Profile;
use transport::profile::Key;

/// Reads `data` as the name of a profile and lines `KEY=VALUE`, set one by one and all at once, then as the JSON of a
/// profile. A printed profile reads back as the same.
///
/// # Panics
/// If it is not.
pub fn fuzz_profile(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(profile) = read(text) {
        check(&profile);
    }
    let (name, lines) = text.split_once('\n').unwrap_or((text, ""));
    let Ok(mut one_by_one) = registry().profile(name) else { return };
    let mut all_at_once = one_by_one.clone();
    let choices: Vec<_> = lines.lines().filter_map(|line| line.split_once('=')).collect();
    for (key, value) in &choices {
        let before = one_by_one.clone();
        if one_by_one.set(key, value).is_err() {
            assert_eq!(one_by_one, before, "a refused {key}={value} has changed something");
        }
    }
    check_keys(&one_by_one);
    if all_at_once.set_all(choices).is_ok() {
        check(&all_at_once);
    } else {
        assert_eq!(registry().profile(name).as_ref(), Ok(&all_at_once), "a refused setting has changed something");
    }
}

fn read(text: &str) -> Result<Profile, serde_json::Error> {
    registry().deserialize(&mut serde_json::Deserializer::from_str(text))
}

/// Checks that a profile is the same when it is written and read again, as a whole and key by key.
fn check(profile: &Profile) {
    let written = serde_json::to_string(profile).expect("plain data");
    let again = read(&written).expect("the written profile");
    assert_eq!(again, *profile, "{written}");
    check_keys(profile);
}

fn check_keys(profile: &Profile) {
    for key in Key::ALL {
        let text = key.text(profile);
        let mut again = profile.clone();
        again.set(key.name(), &text).expect("the printed profile");
        assert_eq!(again, *profile, "{}={text}", key.name());
    }
    let mut shown = String::new();
    for line in profile.lines() {
        let _ = writeln!(shown, "{} = {} ({}; {})", line.key, line.value, line.allowed, line.source);
    }
    assert_eq!(profile.differences(profile), [], "{shown}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn profile() {
        hostile::replay("profile", super::fuzz_profile);
    }
}
