//! Profiles by name and from files, and changes to them.

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::program::{arguments, downpour};
use crate::tree;

/// Runs `profile show` on a file with this text.
fn show(directory: &Path, text: &str) -> crate::program::Ended {
    let file = directory.join("mine.toml");
    fs::write(&file, text).expect("a profile");
    downpour(arguments!["profile", "show", file]).end()
}

#[test]
fn profile_file_accepts_toml_forms() {
    let local = tempdir().expect("a directory");
    for text in [
        "congestion.beta = 0.6",
        "[congestion]\nbeta = 0.6",
        "\"congestion.beta\" = 0.6",
        "\"congestion.beta\" = \"0.6\"",
    ] {
        let shown = show(local.path(), &format!("based-on = 'arq'\n{text}")).expect(0).stdout;
        assert!(shown.contains("\"congestion.beta\" = \"0.6\"") && shown.contains("# set"), "{shown}");
        // All other settings keep the source stated in the base profile.
        assert_eq!(shown.matches("# set").count(), 1, "{shown}");
    }
    let shown =
        show(local.path(), "based-on = 'arq'\nname = 'mine'\nsymbols = [1400, 1344]\n[feedback]\npackets = 'ranges'");
    let shown = shown.expect(0).stdout;
    assert!(shown.starts_with("name = \"mine\"\nbased-on = \"arq\"\nsymbols = \"1400,1344\""), "{shown}");
    assert_eq!(show(local.path(), &shown).expect(0).stdout, shown);
}

#[test]
fn profile_file_error_is_one_line() {
    let local = tempdir().expect("a directory");
    let long = format!("limit = '{}'", "x".repeat(500_000));
    for (text, words) in [
        ("limit = '5M'\n\nlimit = '6M'", "mine.toml:3: invalid profile: duplicate key"),
        ("\nlimit = \"5M", "mine.toml:2: invalid profile: "),
        ("limit = 1979-05-27", "limit: a date is not allowed"),
        ("based-on = './c.toml'", "based-on needs the name of a profile, not a file"),
        ("\"congestion.gamma\" = 1", "congestion.gamma=1: auto has no key 'gamma'"),
        ("based-on = 'lt-tcp'\nblocks.least = 9\nblocks.most = 8", "blocks.least=9 must not exceed blocks.most=8"),
        (&long, "limit has a value of 500000 bytes"),
        (&long.repeat(3), "longer than 1 MB"),
    ] {
        let ended = show(local.path(), text).expect_line(2, words);
        assert!(ended.stderr.len() < 400, "{}", ended.stderr);
    }
    downpour(["profile", "show", "/dev/zero"]).end().expect_line(2, "longer than 1 MB");
    downpour(["send", "--profile", "./none.toml", "/"])
        .end()
        .expect_line(3, "cannot read the profile ./none.toml: No such file");
    downpour(["profile", "show", "/"]).end().expect_line(7, "cannot read the profile /: Is a directory");
}

#[test]
fn profile_options_conflicts_refused() {
    for line in [
        ["--set", "congestion.beta=0.5", "--set", "congestion=cubic"],
        ["--set", "congestion=cubic", "--set", "congestion.beta=0.5"],
    ] {
        let shown = downpour(["profile", "show"].into_iter().chain(line)).end().expect(0).stdout;
        assert!(shown.contains("\"congestion.beta\" = \"0.5\""), "{shown}");
    }
    let local = tempdir().expect("a directory");
    let source = tree::file(&local.path().join("file"), 10);
    for (options, words) in [
        (vec!["--rate", "20M", "--set", "congestion=reno"], "--rate and --set congestion=reno exclude each other"),
        (
            vec!["--rate", "20M", "--set", "congestion.rate=5M"],
            "--rate and --set congestion.rate=5M exclude each other",
        ),
        (
            vec!["--min-rate", "20M", "--set", "congestion=cubic"],
            "--min-rate and --set congestion=cubic exclude each other",
        ),
        (
            vec!["--min-rate", "20M", "--set", "congestion.min-rate=5M"],
            "--min-rate and --set congestion.min-rate=5M exclude each other",
        ),
        (vec!["--policy=low", "--set", "congestion=cubic"], "--policy and --set congestion=cubic exclude each other"),
        (vec!["--limit", "20M", "--set", "limit=5M"], "--limit and --set limit=5M exclude each other"),
        (vec!["--rate=20M", "--policy=low"], "--policy low and --rate exclude each other"),
        (vec!["--profile=ttp", "--min-rate=20M"], "--min-rate needs profile 'auto': omit --profile"),
        (vec!["--profile=ttp", "--policy=low"], "--policy low needs profile 'auto': omit --profile"),
        (vec!["--policy", "fixed"], "--policy fixed needs a rate: add --rate"),
    ] {
        let words_of = arguments!["send", source].into_iter().chain(options.iter().map(std::ffi::OsStr::new));
        downpour(words_of).end().expect_line(2, words);
    }
}

#[test]
fn profile_diff_lists_differences() {
    let local = tempdir().expect("a directory");
    let (changed, strange) = (local.path().join("changed.toml"), local.path().join("strange.toml"));
    fs::write(&changed, "limit = '5M'").expect("a profile");
    fs::write(&strange, "name = \"a\\nb\\u001b[1m\"\nlimit = '5M'").expect("a profile");
    let diff =
        |first: &Path, second: &Path| downpour(arguments!["profile", "diff", first, second]).end().expect(0).stdout;
    let text = diff(Path::new("auto"), &changed);
    let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(words, [vec!["auto", "auto,", "changed"], vec!["limit", "none", "5M"]]);
    let text = diff(Path::new("auto"), &strange);
    assert!(text.lines().count() == 2 && !text.contains('\u{1b}') && text.contains(r"a\nb\u{1b}[1m"), "{text:?}");
    assert_eq!(diff(Path::new("arq"), Path::new("arq")), "no difference between arq and arq\n");
    // A profile named like a built-in one, or based on one, does not get its description.
    let reno = show(local.path(), "name = 'auto'\nbased-on = 'arq'").expect(0).stdout;
    assert!(reno.starts_with("name = \"auto\"\nbased-on = \"arq\"\n"), "{reno}");
}
