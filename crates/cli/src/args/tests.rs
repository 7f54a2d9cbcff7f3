use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use downpour::Rate;

use super::groups::Via;
use super::groups::WhenExisting;
use super::*;
use downpour::files::{Pattern, Preserve, Rule};
use downpour::remote::Location;

/// Parses words with single quotes, as in a shell.
fn parse(line: &str) -> Result<Command, clap::Error> {
    let words = shlex::split(line).expect("words");
    Cli::try_parse_from(std::iter::once("downpour".to_owned()).chain(words)).map(|cli| cli.command)
}

fn send(line: &str) -> SendArgs {
    match parse(line) {
        Ok(Command::Send(args)) => *args,
        other => panic!("{line:?} gave {other:?}"),
    }
}

fn recv(line: &str) -> RecvArgs {
    match parse(line) {
        Ok(Command::Recv(args)) => *args,
        other => panic!("{line:?} gave {other:?}"),
    }
}

fn cp(line: &str) -> CpArgs {
    match parse(line) {
        Ok(Command::Cp(args)) => *args,
        other => panic!("{line:?} gave {other:?}"),
    }
}

fn remote(host: &str, path: &str) -> Location {
    Location::Remote { host: host.to_owned(), path: path.into() }
}

#[test]
fn the_definition_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn cp_has_the_habits_of_scp() {
    let args = cp("cp -rpn -P 2222 -i key -J gate -4 a b/ me@far:x");
    assert_eq!(args.paths.sources, [Location::Local("a".into()), Location::Local("b/".into())]);
    assert_eq!(args.paths.target, remote("me@far", "x"));
    assert!(args.recursive && args.preserve && args.shared.at_target.dry_run && args.shared.connection.network.ipv4);
    assert_eq!(args.shared.ssh.ssh_port, Some(2222));
    assert_eq!(args.shared.ssh.identity, Some(PathBuf::from("key")));
    assert_eq!(args.shared.ssh.jump.as_deref(), Some("gate"));
    assert_eq!(parse("cp far:a .").expect("a command").host(), Some("far"));
    assert_eq!(parse("cp a b").expect("a command").host(), None);
    assert_eq!(parse("doctor me@far").expect("a command").host(), Some("me@far"));
}

#[test]
fn the_switches_of_rsync_mean_what_they_mean_there() {
    assert!(cp("cp -avvuux -nn a b").shared.output.verbose, "as often as one likes");
    let args = cp("cp -avux a b");
    assert!(args.archive && args.shared.output.verbose && args.selection.one_file_system);
    assert_eq!(args.existing.choice(), WhenExisting::KeepNewer);
    assert_eq!(cp("cp -rt --ignore-existing a b").existing.choice(), WhenExisting::Skip);
    assert_eq!(cp("cp --existing only a b").existing.choice(), WhenExisting::Only);
    assert!(parse("cp -u --existing skip a b").is_err() && parse("cp -u --ignore-existing a b").is_err());
    let Ok(Command::Sync(args)) = parse("sync -avHn -rpt --existing only a b") else { panic!("a command") };
    assert!(args.selection.hard_links && args.shared.at_target.dry_run);
    assert_eq!(args.existing.choice(), WhenExisting::Only);
}

#[test]
fn what_is_preserved_is_what_rsync_preserves() {
    let of_cp = |line: &str| {
        let args = cp(line);
        args.preserved.choice(args.archive, PreserveToo::default())
    };
    let of_sync = |line: &str| match parse(line) {
        Ok(Command::Sync(args)) => args.preserved.choice(args.archive, args.implied.preserved),
        other => panic!("{other:?}"),
    };
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
fn an_option_without_a_meaning_here_is_answered_with_what_to_use() {
    let mut definition = Cli::command();
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
fn rules_from_a_file_stand_where_it_is_named() {
    let here = tempfile::tempdir().expect("a folder");
    let file = here.path().join("rules");
    std::fs::write(&file, "# caches\n\n*.tmp\n; more\n+ keep/\r\n- *~").expect("a file");
    let pattern = |text: &str| Pattern::new(text.as_bytes()).expect("a pattern");
    let (exclude, include) = (|text| Rule::Exclude(pattern(text)), |text| Rule::Include(pattern(text)));
    let list = |line: String| {
        let mut rules = cp(&line).selection.rules;
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
    for (text, said) in [("good\n[", "[: "), ("a\n!\nb", "! clears the list")] {
        std::fs::write(&file, text).expect("a file");
        let refused = list(format!("cp --exclude-from {shown} x y")).expect_err("no rules");
        assert!(refused.contains(said), "{refused}");
    }
    assert!(list("cp --exclude-from /nowhere/rules x y".to_owned()).expect_err("no file").contains("No such file"));
}

/// It would be made, under the name of what was meant.
#[test]
fn a_directory_that_is_made_is_on_this_machine() {
    for line in [
        "recv --into far:incoming",
        "recv --into s3://bucket/x",
        "recv --into far::module",
        "man --write me@far:pages",
        "man --write scp://far/pages",
    ] {
        assert!(parse(line).is_err(), "{line}");
    }
    assert_eq!(recv("recv --into ./far:incoming").into, PathBuf::from("./far:incoming"));
}

#[test]
fn cp_replaces_and_recv_refuses() {
    let args = cp("cp a b");
    assert_eq!(args.existing.existing, WhenExisting::Replace);
    assert_eq!((args.shared.connection.via, args.selection.links), (Via::Auto, None));
    assert_eq!(recv("recv").existing, WhenExisting::Refuse);
    assert_eq!(recv("recv --existing skip --checksum").existing, WhenExisting::Skip);
}

#[test]
fn ssh_and_ports() {
    let args = cp(r#"cp --ssh 'ssh -o "User Name=x" -F ~/a\ b' --port 60001:60010 --remote-bin /opt/downpour a b"#);
    let words: Vec<OsString> = ["ssh", "-o", "User Name=x", "-F", "~/a b"].map(OsString::from).to_vec();
    assert_eq!(args.shared.ssh.ssh.map(|command| command.0), Some(words));
    assert_eq!(args.shared.connection.network.port, Some(60001..=60010));
    assert_eq!(cp("cp --port 60001 a b").shared.connection.network.port, Some(60001..=60001));
    for line in ["cp --port 0 a b", "cp --port 2:1 a b", "cp --port 70000 a b", "cp --ssh '' a b", "cp --ssh '\"x' a b"]
    {
        assert_eq!(parse(line).expect_err(line).kind(), ErrorKind::ValueValidation, "{line}");
    }
}

#[test]
fn rules_stay_in_the_order_typed() {
    let args = cp("cp --include a/b --exclude 'a/*' --include=- a --exclude -x b");
    let pattern = |text: &str| Pattern::new(text.as_bytes()).expect("a pattern");
    let rules = [
        Rule::Include(pattern("a/b")),
        Rule::Exclude(pattern("a/*")),
        Rule::Include(pattern("-")),
        Rule::Exclude(pattern("-x")),
    ];
    assert_eq!(args.selection.rules.list, rules);
    assert_eq!(send("send --exclude '*.o' a").selection.rules.list, [Rule::Exclude(pattern("*.o"))]);
}

#[test]
fn everything_after_the_host_is_the_command_of_a_pipe() {
    let Ok(Command::Pipe(args)) = parse("pipe --via ssh far tar -x -C dir --verbose") else { panic!("pipe") };
    assert_eq!(args.command, ["tar", "-x", "-C", "dir", "--verbose"]);
    assert!(!args.reach.quiet);
}

#[test]
fn to_takes_no_path_for_a_ticket() {
    let args = send("send a --to b");
    assert_eq!(args.paths, [PathBuf::from("a"), PathBuf::from("b")]);
    assert_eq!(args.to, Some(None));
    assert_eq!(send("send a --to=T").to, Some(Some("T".to_owned())));
    assert_eq!(send("send a").to, None);
}

#[test]
fn either_side_listens() {
    assert_eq!(recv("recv --listen").listen, Some(None));
    assert_eq!(recv("recv --listen --into x").listen, Some(None));
    let every = "[::]:4000".parse().expect("an address");
    assert_eq!(recv("recv --listen :4000").listen, Some(Some(every)));
    assert_eq!(send("send a --listen :4000").listen, Some(every));
    let error = parse("recv --listen nonsense").expect_err("nonsense").to_string();
    assert!(error.contains("192.0.2.1:4000"), "{error}");
}

#[test]
fn defaults() {
    let args = recv("recv");
    assert_eq!(args.into, PathBuf::from("."));
    assert_eq!(args.ticket.connect_timeout, Duration::from_secs(10));
    assert!(!args.yes && args.given.is_empty() && args.listen.is_none());
    let Ok(Command::Demo(demo)) = parse("demo") else { panic!("demo") };
    assert_eq!(demo.size, 50_000_000);
    assert_eq!(demo.link.forward.delay, Duration::from_millis(50));
    assert!((demo.link.backward.loss.mean() - 0.05).abs() < 1e-9);
}

#[test]
fn numbers_with_units() {
    let args = send("send a --rate 100M --limit 12MB/s --connect-timeout 0.5");
    assert_eq!(args.speed.rate.map(Rate::bits_per_second), Some(100_000_000));
    assert_eq!(args.speed.limit.and_then(|limit| limit.now()).map(Rate::bits_per_second), Some(96_000_000));
    assert_eq!(args.ticket.connect_timeout, Duration::from_millis(500));
    assert_eq!(cp("cp --retry-for 1h --timeout 90s a b").shared.connection.retry_for, Some(Duration::from_secs(3600)));
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
        assert_eq!(values::size(text), Ok(bytes), "{text}");
    }
    for text in ["", "MB", "10 mb", "10BB", "10iB", "10Mb/s", "-1", "1e9"] {
        assert!(values::size(text).is_err(), "{text}");
    }
    assert_eq!(cp("cp a b --max-memory 32MB").shared.speed.memory.max_memory, Some(32_000_000));
    assert_eq!(recv("recv --max-memory 1GiB").memory.max_memory, Some(1 << 30));
    let refused = parse("cp a b --max-memory 31MB").expect_err("too little").to_string();
    assert!(refused.contains("31MB is too little: the largest blocks need 32 MB"), "{refused}");
    let refused = parse("cp a b --max-memory 32").expect_err("too little").to_string();
    assert!(refused.contains("32 is a size in bytes, for want of a unit: write one, such as 32MB"), "{refused}");
    for (text, seconds) in
        [("10", 10.0), ("0.5", 0.5), ("90s", 90.0), ("1.5 min", 90.0), ("1h", 3600.0), ("2d", 172_800.0)]
    {
        assert_eq!(values::time(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["0", "-1", "soon", "nan", "1e300", "5y", "h", ""] {
        assert!(values::time(text).is_err(), "{text}");
    }
}

#[test]
fn what_does_not_go_together() {
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
