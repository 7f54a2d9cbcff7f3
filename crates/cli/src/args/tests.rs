use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use downpour::Rate;
use downpour::files::{Existing, LinkPolicy, Modes, Pattern, Preserve, Rule};
use downpour::remote::{CarrierChoice, Location};

use super::flag::Takes;
use super::*;

/// Parses words with single quotes, as in a shell.
fn parse(line: &str) -> Result<Args, clap::Error> {
    let words = shlex::split(line).expect("words");
    Args::parse(std::iter::once("downpour".to_owned()).chain(words))
}

fn args(line: &str) -> Args {
    parse(line).unwrap_or_else(|error| panic!("{line:?}: {error}"))
}

fn remote(host: &str, path: &str) -> Location {
    Location::Remote { host: host.to_owned(), path: path.into() }
}

#[test]
fn definition_is_valid() {
    definition().debug_assert();
}

/// Returns a value of an option, by its name in the help.
fn example(name: &str) -> &'static str {
    match name {
        "HOW" | "WHAT" | "WHEN" => panic!("one of some words"),
        "N" | "PID" | "PORT" => "7",
        "SIZE" => "64MB",
        "RATE" | "RATE|TIMETABLE" => "3M",
        "TIME" => "77",
        "A[:B]" => "7:9",
        "ADDR:PORT" => "127.0.0.1:7",
        "[BIND:]PORT" => "7",
        "PLACE" => "any",
        "KEY=VALUE" => "congestion=cubic",
        "NAME|FILE" => "arq",
        "LINK" => "rate=7M",
        "SHELL" => "zsh",
        "SHARE" => "7%",
        "RULE" => "- x",
        "CHANGES" => "F600",
        "SECONDS" => "7",
        "SPEC" => "7:x:9",
        "PATTERN" | "FILE" | "DIR" | "PATH" | "NAME" | "SUFFIX" | "TICKET" | "HOST" | "KEY" | "CMD" | "A" | "B"
        | "COMMAND" | "WORD" => "x",
        other => panic!("no example of a {other}"),
    }
}

/// Returns the operands that make the command line of a command valid.
fn operands(command: Command) -> Vec<String> {
    let operands = flags::of(command).flat_map(|flag| match flag.takes {
        Takes::Operand(value) => vec![example(value.name)],
        Takes::Operands(value) | Takes::Rest(value) => vec![example(value.name); 2],
        Takes::OptionalOperand(_)
        | Takes::OptionalOperands(_)
        | Takes::Nothing
        | Takes::Value(_)
        | Takes::Values(_)
        | Takes::OptionalValue(_)
        | Takes::OptionalValueAfterEquals(_) => Vec::new(),
    });
    operands.map(str::to_owned).collect()
}

/// Returns the fields of a request in which two command lines differ.
fn differing(one: &Args, other: &Args) -> BTreeSet<String> {
    let halves = |args: &Args| {
        let scan = serde_json::to_value(&args.scan).expect("JSON");
        [scan, serde_json::to_value(&args.receive).expect("JSON")]
    };
    let mut names = BTreeSet::new();
    for (one, other) in halves(one).iter().zip(halves(other)) {
        let (one, other) = (one.as_object().expect("an object"), other.as_object().expect("an object"));
        names.extend(one.keys().chain(other.keys()).filter(|name| one.get(*name) != other.get(*name)).cloned());
    }
    names
}

/// Fields that are set only when the copy is made of the arguments.
const SET_LATER: [&str; 4] = ["backup", "delete", "files_from", "filter"];

/// Each entry of the table is parsed by each of its commands and changes the arguments: of the request, the fields that
/// it names.
#[test]
fn every_option_has_an_effect() {
    let mut tried = 0;
    for entry in commands::COMMANDS {
        let begin: Vec<String> =
            ["downpour"].into_iter().chain(entry.within).chain([entry.name]).map(str::to_owned).collect();
        let typed = |options: &[String]| {
            let line = [&begin[..], options, &operands(entry.command)].concat();
            definition()
                .try_get_matches_from(&line)
                .and_then(|matches| Args::of(&matches))
                .unwrap_or_else(|error| panic!("{line:?}: {error}"))
        };
        for flag in flags::of(entry.command).filter(|flag| !flag.takes.is_operand()) {
            // A hidden short option for a default.
            if flag.hidden && flag.name != "stats" {
                continue;
            }
            let value = flag.takes.value().map(|value| {
                let words = (value.parser)().possible_values().into_iter().flatten().last();
                words.map_or_else(|| example(value.name).to_owned(), |word| word.get_name().to_owned())
            });
            let needed = |name: &str| {
                let value = flags::of(entry.command).find(|flag| flag.name == name).and_then(|flag| flag.takes.value());
                let value = value.map(|value| format!("={}", example(value.name))).unwrap_or_default();
                format!("--{name}{value}")
            };
            let mut required: Vec<String> = flag.requires.map(needed).into_iter().collect();
            if entry.command == Command::Tunnel && !["local", "listen", "control"].contains(&flag.name) {
                required = match flag.name {
                    "permit" => vec!["--listen=:7".to_owned()],
                    _ => [required, vec!["--local=1:x:1".to_owned()]].concat(),
                };
            }
            // An option that turns something off, or modifies it, needs something that is on.
            if (flag.name.starts_with("no-") || flag.name == "numeric-ids")
                && flags::of(entry.command).any(|other| other.name == "archive")
            {
                required.push("--archive".to_owned());
            }
            let option = value.map_or_else(|| format!("--{}", flag.name), |value| format!("--{}={value}", flag.name));
            // `tunnel` has a host or a listener.
            let line: Vec<String> = [required.clone(), vec![option.clone()]].concat();
            let with = typed(&line);
            let without = match (entry.command, flag.name) {
                (Command::Tunnel, "listen" | "permit" | "local" | "control") => Args::new(Command::Tunnel),
                _ => typed(&required),
            };
            assert_ne!(format!("{with:?}"), format!("{without:?}"), "{} {option}", entry.name);
            if matches!(entry.command, Command::Cp | Command::Sync | Command::Verify) {
                let found = differing(&with, &without);
                let wanted: BTreeSet<String> = flag.request.iter().map(|name| (*name).to_owned()).collect();
                assert!(found.is_subset(&wanted), "{} {option} sets {found:?}", entry.name);
                let is_later = wanted.iter().any(|name| SET_LATER.contains(&name.as_str()));
                assert!(wanted.is_empty() || is_later || !found.is_empty(), "{} {option} sets nothing", entry.name);
            }
            tried += 1;
        }
    }
    assert!(tried > 250, "{tried}");
}

/// Of two entries with one name for a command, one would be lost.
#[test]
fn option_names_are_unique_per_command() {
    for entry in commands::COMMANDS {
        let mut names: Vec<&str> = flags::of(entry.command).map(|flag| flag.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{}", entry.name);
    }
}

#[test]
fn cp_parses_options_of_scp() {
    let found = args("cp -rpn -P 2222 -i key -J gate -4 a b/ me@far:x");
    assert_eq!(found.places, [Location::Local("a".into()), Location::Local("b/".into()), remote("me@far", "x")]);
    assert!(
        found.scan.recursive
            && found.receive.modes == Modes::Exact
            && found.receive.dry_run
            && found.path.family == downpour::Family::V4
    );
    assert_eq!(found.ssh.port, Some(2222));
    assert_eq!(found.ssh.identity, Some(PathBuf::from("key")));
    assert_eq!(found.ssh.jump.as_deref(), Some("gate"));
    assert_eq!(args("cp far:a .").reached(), Some("far"));
    assert_eq!(args("cp a b").reached(), None);
    assert_eq!(args("doctor me@far").reached(), Some("me@far"));
}

#[test]
fn switches_of_rsync_keep_their_meaning() {
    assert!(args("cp -avvuux -nn a b").output.verbose, "as often as one likes");
    let found = args("cp -avux a b");
    assert!(found.receive.preserve.owner && found.output.verbose && found.scan.one_file_system);
    assert_eq!(found.receive.existing, Existing::KeepNewer);
    assert_eq!(args("cp -rt --ignore-existing a b").receive.existing, Existing::Skip);
    assert_eq!(args("cp --existing only a b").receive.existing, Existing::UpdateOnly);
    assert!(parse("cp -u --existing skip a b").is_err() && parse("cp -u --ignore-existing a b").is_err());
    let found = args("sync -avHn -rpt --existing only a b");
    assert!(found.scan.hard_links && found.receive.dry_run);
    assert_eq!(found.receive.existing, Existing::UpdateOnly);
}

#[test]
fn preserve_options_match_rsync() {
    let of_cp = |line: &str| args(line).receive.preserve;
    let of_sync = of_cp;
    let nothing = Preserve::default();
    let archive = Preserve { owner: true, group: true, specials: true, ..nothing };
    assert_eq!((of_cp("cp -rp a b"), of_sync("sync -rpt a b")), (nothing, nothing));
    assert_eq!((of_cp("cp -a a b"), of_sync("sync -a a b")), (archive, archive));
    let all = Preserve { numeric_ids: true, acls: true, xattrs: true, ..archive };
    assert_eq!(of_sync("sync -aAX --numeric-ids a b"), all);
    assert_eq!(of_sync("sync -ogD a b"), archive);
    assert_eq!(of_cp("cp --owner --group --devices a b"), archive);
}

#[test]
fn unsupported_options_of_rsync_name_an_alternative() {
    let mut definition = definition();
    definition.build();
    let translated = |line: &str| {
        let words = shlex::split(line).expect("words");
        let arguments: Vec<OsString> =
            std::iter::once("downpour".to_owned()).chain(words).map(OsString::from).collect();
        translate(&arguments, &definition)
    };
    let answered = |line: &str| translated(line).expect_err(line);
    assert!(answered("sync --bwlimit=1000 a b").starts_with("--bwlimit: use --limit RATE"));
    assert!(answered("cp -l 800 a b").starts_with("-l: use --limit RATE"));
    assert!(answered("sync -e 'ssh -p 22' a b").starts_with("-e: use --ssh"));
    assert!(answered("--no-config sync --inplace a b").starts_with("--inplace: "));
    assert!(answered("cp -o Port=22 a b").starts_with("-o: use --ssh"));
    assert!(answered("cp -r --delete a b").contains("use `downpour sync --delete`"));
    let words = |line: &str| {
        let translated = translated(line).expect(line);
        let words: Vec<_> = translated.arguments[1..].iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (words.join(" "), translated.ignored.join(" "))
    };
    for (line, kept, ignored) in [
        ("sync -avzP a b", "sync -av a b", "-z -P"),
        ("cp -rP 2222 a b", "cp -rP 2222 a b", ""),
        ("cp -P2222 a b", "cp -P2222 a b", ""),
        ("sync -ac --ignore-non-existing a b", "sync -a --checksum --existing=only a b", ""),
        ("sync --links a b", "sync --links=copy a b", ""),
        ("sync --links follow a b", "sync --links follow a b", ""),
        ("sync --progress a b", "sync a b", "--progress"),
        ("sync --no-progress a b", "sync --progress=none a b", ""),
        ("sync -rtl a b", "sync -rt --links=copy a b", ""),
        ("sync -avh a b", "sync -av a b", ""),
        ("cp -rh a b", "cp -r a b", ""),
        ("cp -h", "cp -h", ""),
        ("cp -hh", "cp -hh", ""),
        ("cp -ri/home/h a b", "cp -ri/home/h a b", ""),
        ("sync --delete --exclude -archive a b", "sync --delete --exclude -archive a b", ""),
        ("--no-config sync -avh a b", "--no-config sync -av a b", ""),
        ("--config sync cp -rh a b", "--config sync cp -r a b", ""),
        ("cp -- -avh b", "cp -- -avh b", ""),
        ("pipe far ls -lah", "pipe far ls -lah", ""),
        ("sync --exclude -z a b", "sync --exclude -z a b", ""),
        ("sync -- -z b", "sync -- -z b", ""),
        ("sync --info=stats2,progress2 a b", "sync --stats a b", ""),
        ("sync --block-size 700 a b", "sync a b", "--block-size"),
        ("recv -z", "recv -z", ""),
    ] {
        assert_eq!(words(line), (kept.to_owned(), ignored.to_owned()), "{line}");
    }
}

#[test]
fn alternatives_of_rsync_options_exist() {
    let mut count = 0;
    for (name, text) in rsync_hints::alternatives() {
        assert!(flags::all().any(|flag| flag.name == name && !flag.hidden), "no --{name}: {text}");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn advice_names_existing_options_and_commands() {
    let text = concat!(include_str!("../advice.rs"), include_str!("../doctor/advice.rs"));
    let words = |prefix: &'static str| {
        let ends = |rest: &str| rest.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(rest.len());
        text.match_indices(prefix).map(move |(at, _)| &text[at + prefix.len()..]).map(move |rest| &rest[..ends(rest)])
    };
    let options: Vec<_> = words(" --").chain(words("\"--")).filter(|word| !word.is_empty()).collect();
    let commands: Vec<_> = words("`downpour ").chain(words("\"downpour ")).collect();
    assert!(options.len() > 15 && commands.len() > 7, "{options:?} {commands:?}");
    for option in options {
        assert!(flags::all().any(|flag| flag.name == option && !flag.hidden), "no --{option}");
    }
    for name in commands {
        assert!(definition().find_subcommand(name).is_some(), "no command {name}");
    }
}

#[test]
fn exclude_from_rules_keep_the_position_of_the_option() {
    let here = tempfile::tempdir().expect("a directory");
    let file = here.path().join("rules");
    std::fs::write(&file, "# caches\n\n*.tmp\n; more\n+ keep/\r\n- *~").expect("a file");
    let pattern = |text: &str| Pattern::new(text.as_bytes()).expect("a pattern");
    let (exclude, include) = (|text| Rule::Exclude(pattern(text)), |text| Rule::Include(pattern(text)));
    let list = |line: String| {
        let mut rules = args(&line).rules;
        rules.read_files().map(|()| rules.list).map_err(|failure| failure.message)
    };
    let shown = file.display();
    assert_eq!(
        list(format!("cp --include a --exclude-from {shown} --exclude b x y")),
        Ok(vec![include("a"), exclude("*.tmp"), include("keep/"), exclude("*~"), exclude("b")])
    );
    assert_eq!(
        list(format!("cp --exclude-from {shown} --include z --include-from {shown} x y")).map(|rules| rules.len()),
        Ok(7)
    );
    for (text, said) in [("good\n[", "[: "), ("a\n!\nb", "`!` is not supported")] {
        std::fs::write(&file, text).expect("a file");
        let refused = list(format!("cp --exclude-from {shown} x y")).expect_err("no rules");
        assert!(refused.contains(said), "{refused}");
    }
    assert!(list("cp --exclude-from /nowhere/rules x y".to_owned()).expect_err("no file").contains("No such file"));
}

/// A local directory would be created with a remote name.
#[test]
fn into_and_write_refuse_remote_paths() {
    for line in [
        "recv --into far:incoming",
        "recv --into s3://bucket/x",
        "recv --into far::module",
        "man --write me@far:pages",
        "man --write scp://far/pages",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
    assert_eq!(args("recv --into ./far:incoming").receive.target, PathBuf::from("./far:incoming"));
}

#[test]
fn existing_default_of_cp_and_recv() {
    let found = args("cp a b");
    assert_eq!(found.receive.existing, Existing::Replace);
    assert_eq!((found.path.via, found.scan.links), (CarrierChoice::Auto, LinkPolicy::Copy));
    assert_eq!(args("recv").receive.existing, Existing::Refuse);
    assert_eq!(args("recv --existing skip --checksum").receive.existing, Existing::Skip);
}

#[test]
fn ssh_and_port_options_are_parsed() {
    let found = args(r#"cp --ssh 'ssh -o "User Name=x" -F ~/a\ b' --port 60001:60010 --remote-bin /opt/downpour a b"#);
    let words: Vec<OsString> = ["ssh", "-o", "User Name=x", "-F", "~/a b"].map(OsString::from).to_vec();
    assert_eq!(found.ssh.command, words);
    assert_eq!(found.path.ports, Some(60001..=60010));
    assert_eq!(args("cp --port 60001 a b").path.ports, Some(60001..=60001));
    for line in ["cp --port 0 a b", "cp --port 2:1 a b", "cp --port 70000 a b", "cp --ssh '' a b", "cp --ssh '\"x' a b"]
    {
        assert_eq!(parse(line).expect_err(line).kind(), ErrorKind::ValueValidation, "{line}");
    }
}

#[test]
fn include_and_exclude_keep_their_order() {
    let found = args("cp --include a/b --exclude 'a/*' --include=- a --exclude -x b");
    let pattern = |text: &str| Pattern::new(text.as_bytes()).expect("a pattern");
    let rules = [
        Rule::Include(pattern("a/b")),
        Rule::Exclude(pattern("a/*")),
        Rule::Include(pattern("-")),
        Rule::Exclude(pattern("-x")),
    ];
    assert_eq!(found.rules.list, rules);
    assert_eq!(args("send --exclude '*.o' a").rules.list, [Rule::Exclude(pattern("*.o"))]);
}

#[test]
fn pipe_command_takes_all_further_arguments() {
    let found = args("pipe --via ssh far tar -x -C dir --verbose");
    assert_eq!(found.words, ["tar", "-x", "-C", "dir", "--verbose"]);
    assert!(!found.output.quiet);
}

#[test]
fn to_takes_a_ticket_only_after_equals() {
    let found = args("send a --to b");
    assert_eq!(found.paths, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(found.ticket.to, Some(None));
    assert_eq!(args("send a --to=T").ticket.to, Some(Some("T".to_owned())));
    assert_eq!(args("send a").ticket.to, None);
}

#[test]
fn listen_is_parsed_for_send_and_recv() {
    assert_eq!(args("recv --listen").ticket.listen, Some(None));
    assert_eq!(args("recv --listen --into x").ticket.listen, Some(None));
    let every = "[::]:4000".parse().expect("an address");
    assert_eq!(args("recv --listen :4000").ticket.listen, Some(Some(every)));
    assert_eq!(args("send a --listen :4000").ticket.listen, Some(Some(every)));
    let error = parse("recv --listen nonsense").expect_err("nonsense").to_string();
    assert!(error.contains("192.0.2.1:4000"), "{error}");
}

#[test]
fn defaults_of_recv_and_demo() {
    let found = args("recv");
    assert_eq!(found.receive.target, PathBuf::from("."));
    assert_eq!(found.options.handshake_timeout, Duration::from_secs(10));
    assert!(found.options.confirm && found.words.is_empty() && found.ticket.listen.is_none());
    let demo = args("demo");
    let link = demo.link.expect("a link");
    assert_eq!(demo.size, Some(50_000_000));
    assert_eq!(link.forward.delay, Duration::from_millis(50));
    assert!((link.backward.loss.mean() - 0.05).abs() < 1e-9);
}

#[test]
fn sizes_rates_and_times_parse_their_units() {
    let found = args("send a --rate 100M --limit 12MB/s --connect-timeout 0.5");
    assert_eq!(found.speed.rate.map(Rate::bits_per_second), Some(100_000_000));
    assert_eq!(found.speed.limit.and_then(|limit| limit.now()).map(Rate::bits_per_second), Some(96_000_000));
    assert_eq!(found.options.handshake_timeout, Duration::from_millis(500));
    assert_eq!(args("cp --retry-for 1h --timeout 90s a b").options.retry_for, Some(Duration::from_secs(3600)));
    for (text, bytes) in [
        ("10MB", 10_000_000),
        ("1.5 GB", 1_500_000_000),
        ("64KiB", 65_536),
        ("7", 7),
        ("0", 0),
        ("1TB", 10_u64.pow(12)),
        ("2T", 2 * 10_u64.pow(12)),
        ("10M", 10_000_000),
        ("1TiB", 1 << 40),
    ] {
        assert_eq!(values::read_size(text), Ok(bytes), "{text}");
    }
    for text in ["", "MB", "10 mb", "10BB", "10iB", "10Mb/s", "-1", "1e9"] {
        assert!(values::read_size(text).is_err(), "{text}");
    }
    assert_eq!(args("cp a b --max-memory 32MB").options.engine.endpoint.max_memory, Some(32_000_000));
    assert_eq!(args("recv --max-memory 1GiB").options.engine.endpoint.max_memory, Some(1 << 30));
    let refused = parse("cp a b --max-memory 31MB").expect_err("too little").to_string();
    assert!(refused.contains("31MB is too small: the minimum is 32 MB"), "{refused}");
    let refused = parse("cp a b --max-memory 32").expect_err("too little").to_string();
    assert!(refused.contains("32 means 32 bytes: add a unit, such as 32MB"), "{refused}");
    for (text, seconds) in
        [("10", 10.0), ("0.5", 0.5), ("90s", 90.0), ("1.5 min", 90.0), ("1h", 3600.0), ("2d", 172_800.0)]
    {
        assert_eq!(values::read_time(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["0", "-1", "soon", "nan", "1e300", "5y", "h", ""] {
        assert!(values::read_time(text).is_err(), "{text}");
    }
}

#[test]
fn invalid_arguments_have_the_right_error_kind() {
    for (line, kind) in [
        ("send", ErrorKind::MissingRequiredArgument),
        ("send a --to --listen :1", ErrorKind::ArgumentConflict),
        ("send a --to --keep", ErrorKind::ArgumentConflict),
        ("recv T --listen", ErrorKind::ArgumentConflict),
        ("send a -q -v", ErrorKind::ArgumentConflict),
        ("demo a --size 1MB", ErrorKind::ArgumentConflict),
        ("send a --rate 12MB", ErrorKind::ValueValidation),
        ("send a --profile fast", ErrorKind::ValueValidation),
        ("send a --limit 8:00", ErrorKind::ValueValidation),
        ("demo --link rate=fast", ErrorKind::ValueValidation),
        ("recv --rate 100M", ErrorKind::UnknownArgument),
        ("cp a", ErrorKind::MissingRequiredArgument),
        ("cp :a b", ErrorKind::ValueValidation),
        ("cp --exclude [a a b", ErrorKind::ValueValidation),
        ("cp -4 -6 a b", ErrorKind::ArgumentConflict),
        ("cp -0 a b", ErrorKind::MissingRequiredArgument),
        ("cp --delete a b", ErrorKind::UnknownArgument),
        ("sync -z a b", ErrorKind::UnknownArgument),
        ("cp --existing keep a b", ErrorKind::InvalidValue),
        ("cp --via tcp a b", ErrorKind::InvalidValue),
        ("doctor -oProxyCommand=x", ErrorKind::UnknownArgument),
        ("doctor far:dir", ErrorKind::ValueValidation),
        ("pipe far", ErrorKind::MissingRequiredArgument),
        ("pipe --set streams far cat", ErrorKind::ValueValidation),
        ("profile show fast", ErrorKind::ValueValidation),
        ("profile diff auto", ErrorKind::MissingRequiredArgument),
        ("remote x", ErrorKind::UnknownArgument),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.kind(), kind, "{line}: {error}");
        assert_eq!(error.exit_code(), 2, "{line}");
    }
}

#[test]
fn numbers_are_refused_with_their_range() {
    for (line, reason) in [
        ("proxy far ssh", "not a whole number: write one from 1 to 65535"),
        ("proxy far 0", "out of range: write one from 1 to 65535"),
        ("proxy far 65536", "out of range: write one from 1 to 65535"),
        ("sync --delete --max-delete few a b", "not a whole number: write one such as 10"),
        ("status 99999999999", "out of range: write one such as 10"),
    ] {
        let error = parse(line).expect_err(line).to_string();
        assert!(error.contains(reason), "{line}: {error}");
    }
}

#[test]
fn conflicts_name_existing_options() {
    for flag in flags::all() {
        let have_both = |name: &str| flag.of.iter().any(|command| flags::of(*command).any(|other| other.name == name));
        let needless: Vec<_> = flag.conflicts.iter().filter(|name| !have_both(name)).collect();
        assert!(needless.is_empty(), "no command has --{} and {needless:?}", flag.name);
    }
}
