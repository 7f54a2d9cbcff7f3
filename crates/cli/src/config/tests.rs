use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use downpour::Rate;

use super::*;
use crate::args::Policy;

fn built() -> clap::Command {
    let mut definition = args::definition();
    definition.build();
    definition
}

/// Parses a `cp` command line with this file and these variables; the file is called `FILE` in messages.
fn read(file: &str, variables: &[(&str, &str)], line: &str) -> Result<Args, String> {
    let home = tempfile::tempdir().expect("a directory");
    let directory = home.path().join(".config/downpour");
    fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("config.toml");
    fs::write(&path, file).expect("a file");
    // Whatever the umask of the tests.
    for (path, mode) in [(home.path().join(".config"), 0o755), (directory, 0o755), (path.clone(), 0o644)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let all = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let variables = all.chain([("HOME".into(), home.path().into())]).collect();
    let words: Vec<OsString> = format!("downpour {line}").split(' ').map(OsString::from).collect();
    match (ConfigSources { variables }).read(&words, &built()) {
        Ok(Ok(cli)) => Ok(cli),
        Ok(Err(error)) => Err(error.to_string()),
        Err(failure) => Err(failure.message.replace(&path.display().to_string(), "FILE")),
    }
}

fn cp(file: &str, variables: &[(&str, &str)], line: &str) -> Args {
    read(file, variables, line).unwrap_or_else(|error| panic!("{file:?} {variables:?} {line}: {error}"))
}

const FILE: &str = r#"
rate = "1M"
retry-for = "1h"

[host."far*"]
rate = "2M"

[host."me@far.example"]
rate = "3M"
timeout = 5

[host."*.example"]
rate = "4M"
timeout = 6
verbose = true
"#;

#[test]
fn config_nearest_layer_decides() {
    let variable = [("DOWNPOUR_RATE", "9M")];
    let none: [(&str, &str); 0] = [];
    for (variables, line, megabits) in [
        (&none[..], "cp a b", Some(1)),
        (&none[..], "cp a near:b", Some(1)),
        (&none[..], "cp a far.example:b", Some(2)),
        (&none[..], "cp a me@far.example:b", Some(2)),
        (&none[..], "cp FAR:a b", Some(2)),
        (&none[..], "cp a you@near.example:b", Some(4)),
        (&variable[..], "cp a far.example:b", Some(9)),
        (&variable[..], "cp --rate 7M a far.example:b", Some(7)),
        (&variable[..], "cp --rate=7M a b", Some(7)),
        (&[("DOWNPOUR_RATE", "")][..], "cp a b", Some(1)),
        (&none[..], "cp --config none a b", None),
        (&variable[..], "cp --config none a b", Some(9)),
        (&[("DOWNPOUR_CONFIG", "none")][..], "cp a b", None),
    ] {
        let rate = cp(FILE, variables, line).speed.rate.map(Rate::bits_per_second);
        assert_eq!(rate, megabits.map(|megabits| megabits * 1_000_000), "{variables:?} {line}");
    }
    for (line, timeout) in [("cp a me@far.example:b", 5), ("cp a far.example:b", 6), ("cp a b", 30)] {
        let args = cp(FILE, &none, line);
        assert_eq!(args.options.engine.endpoint.dead_after.as_secs(), timeout, "{line}");
        assert_eq!(args.options.retry_for.map(|time| time.as_secs()), Some(3600));
    }
}

#[test]
fn config_switches_turn_on_and_off() {
    let quiet = "quiet = true";
    assert!(cp(quiet, &[], "cp a b").output.quiet);
    assert!(!cp(quiet, &[("DOWNPOUR_QUIET", "false")], "cp a b").output.quiet);
    assert!(cp("quiet = false", &[("DOWNPOUR_QUIET", "1")], "cp a b").output.quiet);
    assert!(cp("", &[("DOWNPOUR_HARD_LINKS", "yes")], "cp a b").scan.hard_links);
}

#[test]
fn config_cli_overrides_conflicting_key() {
    let shown = cp("quiet = true", &[], "cp -v a b").output;
    assert!(shown.verbose && !shown.quiet);
    let shown = cp("quiet = true", &[("DOWNPOUR_VERBOSE", "on")], "cp a b").output;
    assert!(shown.verbose && !shown.quiet);
    let path = cp("ipv6 = true", &[], "cp -4 a b").path;
    assert_eq!(path.family, downpour::Family::V4);
}

#[test]
fn config_nearer_of_rate_and_policy_counts() {
    let policies = [Policy::Low, Policy::Fixed];
    for (file, line, rate, min_rate, policy) in [
        ("policy = 'low'", "cp --rate 1M a b", Some(1), None, None),
        ("rate = '1M'", "cp --policy low a b", None, None, Some(policies[0])),
        ("policy = 'low'", "cp --min-rate 1M a b", None, Some(1), Some(policies[0])),
        ("policy = 'fixed'", "cp --rate 1M a b", Some(1), None, Some(policies[1])),
        ("policy = 'fixed'\nrate = '1M'", "cp --min-rate 2M a b", None, Some(2), None),
        ("policy = 'low'\n[host.far]\nrate = '1M'", "cp a far:b", Some(1), None, None),
        ("", "cp --policy low --rate 1M a b", Some(1), None, Some(policies[0])),
    ] {
        let speed = cp(file, &[], line).speed;
        let megabits = [speed.rate, speed.min_rate].map(|rate| rate.map(|rate| rate.bits_per_second() / 1_000_000));
        assert_eq!((megabits, speed.policy), ([rate, min_rate], policy), "{file:?} {line}");
    }
    for line in ["cp --profile arq a b", "cp --set congestion=cubic a b"] {
        assert_eq!(cp("policy = 'low'", &[], line).speed.policy, None, "{line}");
    }
    for line in ["cp --profile auto a b", "cp --set congestion=auto:share=0.5 a b", "cp --set limit=1M a b"] {
        assert_eq!(cp("policy = 'low'", &[], line).speed.policy, Some(policies[0]), "{line}");
    }
    let speed = cp("profile = 'arq'", &[], "cp --policy low a b").speed;
    assert_eq!(crate::options::profile(&speed).expect("a profile").name, "auto");
    let both = read("rate = '1M'\npolicy = 'low'", &[], "cp a b").expect_err("both in one layer");
    assert!(both.contains("policy and rate exclude each other"), "{both}");
}

#[test]
fn config_disabled_switch_excludes_nothing() {
    for (file, variables) in [
        ("[host.far]\nipv4 = false\nipv6 = true", &[][..]),
        ("[host.far]\nipv6 = true\nipv4 = false", &[]),
        ("ipv6 = true\n[host.far]\nipv4 = false", &[]),
        ("ipv6 = true", &[("DOWNPOUR_IPV4", "no")]),
        ("ipv4 = true\n[host.far]\nipv4 = false\nipv6 = true", &[]),
    ] {
        let path = cp(file, variables, "cp a far:b").path;
        assert_eq!(path.family, downpour::Family::V6, "{file:?}");
    }
    let shown = cp("verbose = true", &[("DOWNPOUR_QUIET", "false")], "cp a b").output;
    assert!(shown.verbose && !shown.quiet);
    let shown = cp("quiet = false\nverbose = false", &[], "cp a b").output;
    assert!(!shown.verbose && !shown.quiet);
    let shown = cp("quiet = true", &[("DOWNPOUR_QUIET", "false")], "cp a b").output;
    assert!(!shown.quiet, "and it is the nearest that decides");
}

#[test]
fn config_exclude_include_order() {
    let patterns =
        |args: Args| -> Vec<String> { args.rules.list.iter().map(|rule| rule.pattern().to_string()).collect() };
    let file = "exclude = ['*.o', '.git/']\ninclude = 'keep.o'";
    assert_eq!(patterns(cp(file, &[], "cp a b")), ["keep.o", "*.o", ".git/"]);
    assert_eq!(patterns(cp(file, &[], "cp --exclude x a b")), ["x", "keep.o", "*.o", ".git/"]);
    assert_eq!(patterns(cp("", &[("DOWNPOUR_EXCLUDE", "a\nb c")], "cp a b")), ["a", "b c"]);
}

#[test]
fn config_patterns_add_up_until_an_empty_one() {
    let rules = |file: &str, variables: &[(&str, &str)], line: &str| -> Vec<String> {
        cp(file, variables, line).rules.list.iter().map(ToString::to_string).collect()
    };
    let file = "exclude = 'top'\ninclude = 'not top'\n[host.far]\nexclude = ['host', 'too']\n[host.'f*']\ninclude = 'not host'";
    let configured = ["- host", "- too", "+ not host", "+ not top", "- top"];
    assert_eq!(rules(file, &[], "cp a far:b"), configured);
    let typed = rules(file, &[("DOWNPOUR_EXCLUDE", "set")], "cp --exclude x --include y a far:b");
    assert_eq!(typed, [&["- x", "+ y", "- set"][..], &configured].concat());
    let empty = |file: &str, line: &str| rules(file, &[], line);
    assert_eq!(empty(file, "cp --exclude x --exclude= a far:b"), ["- x", "+ not host", "+ not top"]);
    assert_eq!(empty(file, "cp --exclude= --include= a far:b"), [""; 0]);
    for nothing in ["[]", "''", "['']"] {
        let file = format!("exclude = 'top'\n[host.far]\nexclude = {nothing}");
        assert_eq!(empty(&file, "cp --exclude x a far:b"), ["- x"], "{nothing}");
        assert_eq!(empty(&file, "cp a near:b"), ["- top"], "{nothing}");
    }
    assert_eq!(empty(file, "cp --no-config --exclude x a far:b"), ["- x"]);
    for nothing in ["", "\n"] {
        let set = [("DOWNPOUR_EXCLUDE", nothing)];
        assert_eq!(rules(file, &set, "cp a b"), ["+ not top", "- top"], "an empty variable sets nothing");
    }
}

#[test]
fn config_ignores_keys_of_other_commands() {
    assert!(read("into = '/x'\nrate = '1M'", &[], "demo").is_ok());
    let args = read("into = '/x'\nrecursive = true", &[], "recv").expect("recv");
    assert_eq!(args.receive.target, PathBuf::from("/x"));
}

#[test]
fn config_error_names_the_line() {
    for (file, variables, words) in [
        ("\nretry_for = '1h'", &[][..], r#"FILE:2: unknown key "retry_for": did you mean "retry-for"?"#),
        ("qwxyz = 1", &[], "keys are the long options"),
        ("[host.x]\nlimits = '1M'", &[], r#"FILE:2: unknown key "limits": did you mean "limit"?"#),
        ("host = 'x'", &[], r#"FILE:1: unknown key "host""#),
        ("[host]\nrate = '1M'", &[], r#"FILE:2: write [host."PATTERN"]"#),
        ("delete = true", &[], "FILE:1: delete is only allowed on the command line"),
        ("rate = ", &[], "FILE:1: "),
        ("# x\nrate = '12MB'", &[], "FILE:2: invalid value '12MB' for '--rate"),
        ("\nexclude = ['a', '[b']", &[], "FILE:2: invalid value '[b' for '--exclude"),
        ("via = 'tcp'", &[], "[possible values: auto, udp, ssh]"),
        ("rate = ['1M', '2M']", &[], "FILE:1: rate takes one value"),
        ("rate = { a = 1 }", &[], "FILE:1: rate is a text in quotes"),
        ("quiet = 'very'", &[], "FILE:1: quiet is true or false"),
        ("timeout = true", &[], "FILE:1: timeout is a number, or a text in quotes"),
        ("\nlimit = 5", &[], "FILE:2: limit is a text in quotes"),
        ("limit = '5'", &[], "FILE:1: invalid value '5' for '--limit"),
        ("exclude = [1]", &[], "FILE:1: exclude is a text in quotes"),
        ("[host.elsewhere]\nrate = '12MB'", &[], "FILE:2: invalid value '12MB' for '--rate"),
        ("[host.elsewhere]\nquiet = 1", &[], "FILE:2: quiet is true or false"),
        ("listen = 'x'", &[], "FILE:1: invalid value 'x' for '--listen"),
        ("", &[("DOWNPOUR_EXCLUDE", "[b")], "DOWNPOUR_EXCLUDE: invalid value '[b' for '--exclude"),
        ("", &[("DOWNPOUR_QUIET", "very")], "DOWNPOUR_QUIET: quiet is true or false"),
        ("quiet = true\nverbose = true", &[], "exclude each other"),
        ("", &[("DOWNPOUR_TIMEOUT", "soon")], "DOWNPOUR_TIMEOUT: invalid value 'soon'"),
        ("", &[("DOWNPOUR_CONFIG", "/no/such/file")], "cannot read the configuration /no/such/file"),
    ] {
        let error = read(file, variables, "cp a b").expect_err(file);
        assert!(error.contains(words), "{file:?} gave {error:?}, without {words:?}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn config_ignores_invalid_variable_of_a_typed_option() {
    assert!(read("", &[("DOWNPOUR_RATE", "12MB")], "cp --rate 1M a b").is_ok());
}

#[test]
fn config_warns_of_unknown_variables() {
    let names = ["DOWNPOUR_LIMT", "DOWNPOUR_DELETE", "DOWNPOUR_QWXYZ", "DOWNPOUR_TICKET", "DOWNPOUR_RETRY_FOR", "PATH"];
    let variables = names.map(|name| (OsString::from(name), OsString::new())).into();
    assert_eq!(
        (ConfigSources { variables }).unknown(&args::definition()),
        [
            "DOWNPOUR_LIMT has no effect: did you mean DOWNPOUR_LIMIT?",
            "DOWNPOUR_DELETE has no effect: the option is only allowed on the command line",
            "DOWNPOUR_QWXYZ has no effect",
        ]
    );
}
