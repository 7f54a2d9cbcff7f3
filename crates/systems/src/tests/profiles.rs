use super::{congestion, named};
use crate::registry;
use serde::de::DeserializeSeed as _;
use transport::profile::{Key, SymbolSizes};
use transport::{Profile, Rate, WindowCode};

fn read(text: &str) -> Result<Profile, serde_json::Error> {
    registry().deserialize(&mut serde_json::Deserializer::from_str(text))
}

#[test]
fn profiles_survive_being_written_down() {
    for name in registry().profile_names() {
        let profile = named(name);
        assert_eq!(profile.name, name);
        let fixed = profile.with_fixed_rate(Rate::from_bits_per_second(90_000_000)).with_window_code(WindowCode::Rlc);
        let text = serde_json::to_string(&fixed).expect("plain data");
        assert!(text.contains(r#""congestion":"told:90M"#), "{text}");
        assert_eq!(read(&text).expect("round trip"), fixed);
    }
    assert!(registry().profile("brutal").is_err_and(|e| e.to_string().contains("auto, arq")));
}

#[test]
fn only_differences_are_sent() {
    let mut profile = named("auto");
    assert_eq!(serde_json::to_value(&profile).expect("plain data"), serde_json::json!({ "name": "auto" }));
    profile.set("timeout.steady", "3").expect("a number");
    let sent = serde_json::json!({ "name": "auto", "timeout": "probe:steady=3" });
    assert_eq!(serde_json::to_value(&profile).expect("plain data"), sent);
    // A difference from `auto` is not sent if the profile is based on another one.
    assert_eq!(serde_json::to_value(named("ttp")).expect("plain data"), serde_json::json!({ "name": "ttp" }));
}

#[test]
fn renamed_controllers_are_read_by_both_names_and_sent_by_the_former() {
    for (present, former) in [("fixed-rate:20M", "told:20M"), ("fixed-window:segments=7", "fixed:segments=7")] {
        let mut profile = named("auto");
        profile.set("congestion", former).expect("the former name");
        assert_eq!(profile.recovery.congestion.to_string(), present);
        let mut again = named("auto");
        again.set("congestion", present).expect("the present name");
        assert_eq!(again, profile);
        let sent = serde_json::to_value(&profile).expect("plain data");
        assert_eq!(sent["congestion"], former, "the previous release knows no other name");
        for text in [present, former] {
            let received = read(&serde_json::json!({ "congestion": text }).to_string());
            assert_eq!(received.ok(), Some(profile.clone()), "{text}");
        }
    }
    let error = named("auto").set("congestion", "told:fast").expect_err("no rate").to_string();
    assert!(error.starts_with("invalid rate 'fast'"), "{error}");
    assert!(named("auto").set("schedule", "told").is_err());
}

#[test]
fn symbols_fit_the_path() {
    let auto = named("auto");
    for (payload, size) in [(1472, 1408), (1451, 1408), (1450, 1344), (1200, 1152), (900, 1152)] {
        assert_eq!(auto.symbols.for_payload(payload), size, "{payload}");
    }
}

#[test]
fn symbols_per_packet_are_a_number_or_fit() {
    let rc_udp = named("rc-udp");
    assert_eq!(rc_udp.symbols.to_string(), "1024:per-packet=fit");
    // 9000-byte frames: 8 x 1024 + 43 + 48 bytes.
    assert_eq!(rc_udp.symbols.per_packet(1024), 8);
    let mut profile = named("auto");
    assert_eq!((profile.symbols.to_string().as_str(), profile.symbols.per_packet(1408)), ("1408,1344,1280,1152", 1));
    for (value, at_256, at_8900) in [("fit", 34, 1), ("1", 1, 1), ("3", 3, 3), ("64", 64, 7)] {
        profile.set("symbols.per-packet", value).expect("allowed");
        assert_eq!((profile.symbols.per_packet(256), profile.symbols.per_packet(8900)), (at_256, at_8900), "{value}");
        assert_eq!(profile.symbols.to_string().parse::<SymbolSizes>().as_ref(), Ok(&profile.symbols));
    }
    for value in ["0", "65", "all", ""] {
        assert!(profile.set("symbols.per-packet", value).is_err(), "{value}");
    }
    for text in ["1024:per-packet", "1024:r=3", "1024:3", ":per-packet=2"] {
        assert!(text.parse::<SymbolSizes>().is_err(), "{text}");
    }
}

#[test]
fn every_number_has_a_citation() {
    for name in registry().profile_names() {
        let profile = named(name);
        let lines = profile.lines();
        for (at, line) in lines.iter().enumerate() {
            let prefix = format!("{}.", line.key);
            let has_numbers = lines.get(at + 1).is_some_and(|next| next.key.starts_with(&prefix));
            // A choice without numbers is the profile's shape, which its own page explains.
            let number = !line.allowed.is_empty();
            assert!(!number || !line.source.is_empty(), "{name}: {} = {} has no source", line.key, line.value);
            assert!(has_numbers || number || !line.value.is_empty(), "{name}: {} has no value", line.key);
        }
        let registry = registry();
        let named = registry.profiles().find(|named| named.name == name).expect("listed");
        for source in named.sources {
            let known = lines.iter().any(|line| line.key == source.key);
            assert!(known, "{name}: {} is no key of it", source.key);
        }
    }
}

#[test]
fn a_choice_and_one_number_of_it_are_set() {
    let mut profile = named("auto");
    profile.set("congestion", "cubic:c=1").expect("known");
    profile.set("congestion.beta", "0.5").expect("known");
    profile.set("feedback.timing.per-rtt", "8").expect("known");
    profile.set("limit", "50M").expect("known");
    assert_eq!(profile.recovery.congestion.to_string(), "cubic:beta=0.5,c=1");
    assert_eq!(profile.feedback.timing.to_string(), "spaced:per-rtt=8");
    assert_eq!(profile.limit, Some(Rate::from_bits_per_second(50_000_000)));
    let mut cubic = named("auto");
    cubic.set("congestion", "cubic").expect("known");
    let changed: Vec<String> = cubic.differences(&profile).into_iter().map(|d| d.key).collect();
    assert_eq!(changed, ["congestion.beta", "congestion.c", "feedback.timing.per-rtt", "limit"]);
    let before = profile.clone();
    for (key, value, says) in [
        ("congestions", "cubic", "unknown profile key 'congestions'"),
        ("congestion", "vegas", "unknown congestion control 'vegas'"),
        ("congestion.q", "3", "cubic has no key 'q'"),
        ("congestion.beta", "2", "invalid beta '2': use a number from 0.1 to 0.95"),
        ("symbols", "100,200", "largest first"),
        ("limit", "fast", "none, or a rate"),
        ("limit.x", "1", "no numbers"),
        ("", "", "unknown profile key ''"),
    ] {
        let error = profile.set(key, value).expect_err(key).to_string();
        assert!(error.contains(says), "{error}");
        assert_eq!(profile, before);
    }
}

/// An omitted number of a choice is the profile's own, not a standard one.
#[test]
fn a_choice_starts_from_the_profiles_own() {
    for (name, key, value, text) in [
        ("arq", "congestion", "cubic", "cubic:initial=1,threshold=64,beta=0.5,hystart=off,form=document"),
        ("arq", "congestion", "cubic:c=1", "cubic:initial=1,threshold=64,beta=0.5,c=1,hystart=off,form=document"),
        ("arq", "congestion", "cubic:beta=0.7", "cubic:initial=1,threshold=64,hystart=off,form=document"),
        ("arq", "congestion", "reno:beta=0.7", "reno:beta=0.7"),
        ("lt-tcp", "congestion", "reno:limit=20", "reno:initial=10,threshold=none,inflation=0,signal=ecn,limit=20"),
        ("lt-tcp", "timeout", "rto:max=60s", "rto:min=200ms"),
        ("lt-tcp", "congestion", "cubic:beta=0.5", "cubic:beta=0.5"),
        ("rc-udp", "symbols", "512", "512:per-packet=fit"),
    ] {
        let mut profile = named(name);
        // An earlier choice is forgotten.
        if key == "congestion" {
            profile.set(key, "cubic:beta=0.9,c=9").expect("a choice");
        }
        profile.set(key, value).expect("a choice");
        let key = Key::ALL.into_iter().find(|other| other.name() == key).expect("a key");
        assert_eq!(key.of(&profile).text(), text, "{name}: {value}");
        let sent = serde_json::to_string(&profile).expect("plain data");
        assert_eq!(read(&sent).expect("round trip"), profile, "{sent}");
    }
}

/// The previous release starts from the standard numbers, so those that the profile has otherwise are written.
#[test]
fn a_sent_profile_means_the_same_to_both_releases() {
    let rfc = "cubic:initial=10,threshold=none,beta=0.7,hystart=on,form=rfc9438";
    let mut profile = named("arq");
    profile.set("congestion", rfc).expect("a choice");
    assert_eq!(profile.recovery.congestion, "cubic".parse().expect("standard numbers"));
    assert_eq!(serde_json::to_value(&profile).expect("plain data")["congestion"], rfc);
    for name in registry().profile_names() {
        let own = named(name);
        for other in registry().profile_names().map(named) {
            for key in Key::ALL {
                let mut mixed = own.clone();
                mixed.set(key.name(), &key.of(&other).text()).expect("a choice of a profile");
                let text = key.text(&mixed);
                let mut again = own.clone();
                again.set(key.name(), &text).expect("the written profile");
                assert_eq!(again, mixed, "{name}: {}={text}", key.name());
                let parsed = match key.name() {
                    "congestion" => (congestion(&text), mixed.recovery.timeout.clone()),
                    "timeout" => (mixed.recovery.congestion.clone(), text.parse().expect("its text")),
                    _ => continue,
                };
                assert_eq!(
                    parsed,
                    (mixed.recovery.congestion, mixed.recovery.timeout),
                    "{name}: {}={text}",
                    key.name()
                );
            }
        }
    }
}

#[test]
fn a_profile_file_lists_differences() {
    let text = r#"{"name": "mine", "based-on": "arq", "congestion": "cubic:form=document", "congestion.beta": 0.6, "congestion.fast-convergence": true}"#;
    let mine = read(text).expect("a profile");
    assert_eq!(mine.name, "mine");
    assert_eq!(mine.base, "arq");
    let again = serde_json::to_string(&mine).expect("plain data");
    assert_eq!(read(&again).expect("round trip"), mine);
    assert_eq!(Profile { name: "arq".into(), ..mine.clone() }.differences(&named("arq")).len(), 1);
    let wrong = read(r#"{"congestion": "cubic", "congestion.gamma": "1"}"#).expect_err("no such number");
    assert!(wrong.to_string().contains("cubic has no key 'gamma'"), "{wrong}");
}

#[test]
fn only_differences_lose_their_citation() {
    let sources = |profile: &Profile, key: &str| {
        profile.lines().into_iter().find(|line| line.key == key).map_or("", |line| line.source)
    };
    let mut mine = named("arq");
    for (key, value) in [("congestion.beta", "0.6"), ("limit", "5M"), ("schedule", "windowed")] {
        mine.set(key, value).expect(key);
    }
    for name in ["arq", "mine"] {
        mine.name = name.into();
        for line in named("arq").lines().iter().filter(|line| line.key.split('.').next() != Some("schedule")) {
            let is_set = ["congestion.beta", "limit"].contains(&line.key.as_str());
            let wanted = if is_set { "set" } else { line.source };
            assert_eq!(sources(&mine, &line.key), wanted, "{name}: {}", line.key);
        }
        assert_eq!(sources(&mine, "schedule"), "set", "another algorithm");
        assert_eq!(sources(&mine, "congestion.c"), sources(&named("arq"), "congestion.c"));
    }
}

#[test]
fn choices_come_before_their_numbers_in_any_order() {
    for choices in [
        [
            ("congestion.signal", "ecn"),
            ("congestion", "reno"),
            ("feedback.timing", "spaced"),
            ("feedback.timing.per-rtt", "8"),
        ],
        [
            ("feedback.timing.per-rtt", "8"),
            ("feedback.timing", "spaced"),
            ("congestion", "reno"),
            ("congestion.signal", "ecn"),
        ],
    ] {
        let mut profile = named("auto");
        profile.set_all(choices).expect("valid choices");
        assert_eq!(profile.recovery.congestion.to_string(), "reno:signal=ecn");
        assert_eq!(profile.feedback.timing.to_string(), "spaced:per-rtt=8");
    }
    let mut profile = named("auto");
    let wrong =
        profile.set_all([("limit", "5M"), ("congestion", "cubic"), ("congestion.q", "3")]).expect_err("no such number");
    assert!(wrong.to_string().starts_with("congestion.q=3: cubic has no key 'q'"), "{wrong}");
    assert_eq!(profile, named("auto"));
}

#[test]
fn numbers_that_leave_nothing_between_them_are_refused() {
    for (name, least, most) in [
        ("ttp", ("congestion.min", "1G"), ("congestion.max", "1")),
        ("lt-tcp", ("blocks.least", "32768"), ("blocks.most", "1")),
        ("lt-tcp", ("timeout.min", "600s"), ("timeout.max", "1ms")),
    ] {
        let mut profile = named(name);
        let before = profile.clone();
        let error = profile.set_all([most, least]).expect_err(name).to_string();
        let [least, most] = [least, most].map(|(key, value)| format!("{key}={value}"));
        assert_eq!(error, format!("{least} must not exceed {most}"));
        assert_eq!(profile, before);
    }
}

#[test]
fn tables_lists_and_numbers_are_taken_as_they_are_meant() {
    let text = r#"{"detection": {"packets": 4}, "feedback": {"packets": "in-order", "timing": {"per-rtt": 8}}, "symbols": [1400, 1344]}"#;
    let mine = read(text).expect("a profile");
    assert_eq!(mine.recovery.detection.to_string(), "threshold:packets=4");
    assert_eq!((mine.feedback.packets.to_string().as_str(), mine.symbols.all()), ("in-order", &[1400, 1344][..]));
    let long = format!(r#"{{"limit": "{}"}}"#, "x".repeat(5000));
    for (text, says) in [
        (r#"{"congestion": {"beta": 0.6}, "congestion.beta": 0.7}"#, "duplicate key congestion.beta"),
        (r#"{"congestion": {"$__toml_private_datetime": "1979-05-27"}}"#, "congestion: a date is not allowed"),
        (r#"{"symbols": [{"a": 1}]}"#, "a text, a number or a list of them for symbols"),
        (r#"{"limit": null}"#, "a text, a number or a list of them for limit"),
        (r#"{"based-on": "./c.toml"}"#, "based-on needs the name of a profile, not a file"),
        (&long, "limit has a value of 5000 bytes"),
        ("5", "keys and values"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(says) && error.len() < 300, "{error}");
    }
}
