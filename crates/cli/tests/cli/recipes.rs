//! The commands of docs/RECIPES.md, run as they are written.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::Signal;

use crate::examples::Example::{NotRun, Run};
use crate::examples::{Example, Machines, commands, run_all};
use crate::program::wait_until;

const RECIPES: &str = include_str!("../../../../docs/RECIPES.md");

const NEEDS_TMUX: Example = NotRun("tmux needs a terminal; its windows run ordinary shells");
const SSH_SETTING: Example = NotRun("a setting of ssh, for which the test has a script");
const NEEDS_ROOT: Example = NotRun("it changes the firewall of this machine");

/// The commands, then the indented lines.
const EXAMPLES: &[(&str, Example)] = &[
    (
        "downpour sync -n --delete --ssh 'ssh -o BatchMode=yes' data/ far:backup/",
        Run(|machines, line| {
            let planned = machines.run(line, "").stdout;
            assert!(planned.lines().any(|line| line == "create old"), "{planned}");
            assert!(!machines.path("far/backup").exists());
        }),
    ),
    ("downpour sync -q --delete --retry-for 1h data/ far:backup/", Run(sync_quietly)),
    (
        "downpour pipe far downpour clean backup </dev/null",
        Run(|machines, line| {
            let mut copy = machines.start("downpour cp --json --rate 8M huge.tar far:backup/");
            copy.wait_for("progress", |line| line.contains("\"progress\"") && !line.contains("\"bytes\":0,"));
            copy.signal(Signal::TERM);
            copy.end().expect(75);
            let listed = machines.run(line, "").stdout;
            assert!(listed.contains("backup/.downpour-"), "{listed}");
            machines.run("downpour pipe far downpour clean --remove backup </dev/null", "");
        }),
    ),
    ("tmux new-session -s copy", NEEDS_TMUX),
    ("downpour cp --retry-for 12h huge.tar far:", Run(Machines::copy_huge)),
    (
        "downpour status",
        Run(|machines, line| {
            fs::remove_file(machines.path("far/huge.tar")).expect("the last copy");
            let copy = machines.start("downpour cp --rate 8M --retry-for 12h huge.tar far:");
            let id = format!("{}  ", copy.id());
            // Before that, a signal has its default effect.
            let is_staging = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with(".downpour-");
            let far = machines.path("far");
            wait_until("the copy has begun", || fs::read_dir(&far).expect("a directory").flatten().any(is_staging));
            wait_until("the copy is shown", || machines.run(line, "").stdout.lines().any(|line| line.starts_with(&id)));
            copy.signal(Signal::TERM);
            copy.end().expect(75);
            machines.copy_huge("downpour cp --retry-for 12h huge.tar far:");
        }),
    ),
    ("tmux attach -t copy", NEEDS_TMUX),
    ("downpour cp -r photos far:incoming/", Run(Machines::copy_photos)),
    ("downpour cp -J bastion -r photos far:incoming/", Run(Machines::copy_photos)),
    ("downpour cp --via ssh -r photos far:incoming/", Run(Machines::copy_photos)),
    ("downpour cp huge.tar bastion:", Run(Machines::copy_huge)),
    (
        "downpour cp bastion:huge.tar far:incoming/",
        Run(|machines, line| {
            machines.run(line, "");
            machines.assert_same("far/incoming/huge.tar", "home/huge.tar");
        }),
    ),
    ("downpour doctor --port 44000:44009 far", Run(Machines::diagnose)),
    ("downpour cp --port 44000:44009 -r photos far:incoming/", Run(Machines::copy_photos)),
    (
        "downpour demo --size 5MB --link rate=20M,delay=300ms,loss=2%",
        Run(|machines, line| {
            let shown = machines.run(line, "").stdout;
            assert!(shown.contains("floor") && shown.contains("TCP, simulated"), "{shown}");
        }),
    ),
    ("downpour doctor --rate 18M far", Run(Machines::diagnose)),
    ("downpour cp --rate 18M --timeout 2m --retry-for 6h huge.tar far:", Run(Machines::copy_huge)),
    ("downpour cp --limit 18M --timeout 2m --retry-for 6h huge.tar far:", Run(Machines::copy_huge)),
    (
        "downpour bootstrap far",
        Run(|machines, line| {
            machines.run(line, "");
            machines.assert_same("far/.local/bin/downpour", "bin/downpour");
        }),
    ),
    ("downpour cp -r --retry-for 1h photos far:incoming/", Run(Machines::copy_photos)),
    ("downpour cp -r --retry-for 1h --ssh 'ssh -o BatchMode=yes' photos far:incoming/", Run(Machines::copy_photos)),
    (
        "downpour pipe far rm .local/bin/downpour </dev/null",
        Run(|machines, line| {
            machines.run(line, "");
            assert!(!machines.path("far/.local/bin/downpour").exists());
        }),
    ),
    (
        "30 2 * * *  flock -n .backup.lock .local/bin/downpour sync -q --delete --retry-for 1h data/ far:backup/",
        Run(|machines, line| {
            fs::create_dir_all(machines.path("home/.local/bin")).expect("a directory");
            symlink(machines.path("bin/downpour"), machines.path("home/.local/bin/downpour")).expect("a link");
            sync_quietly(machines, line.strip_prefix("30 2 * * *").expect("five fields before the command"));
        }),
    ),
    ("Host far", SSH_SETTING),
    ("HostName far.example", SSH_SETTING),
    ("ProxyJump bastion", SSH_SETTING),
    ("ControlMaster auto", SSH_SETTING),
    ("ControlPath ~/.ssh/%C", SSH_SETTING),
    ("ControlPersist 10m", SSH_SETTING),
    ("sudo ufw allow 44000:44009/udp", NEEDS_ROOT),
    ("sudo nft insert rule inet filter input udp dport 44000-44009 accept", NEEDS_ROOT),
    ("[host.far]", NotRun("it runs with the setting below it")),
    (
        "port = \"44000:44009\"",
        Run(|machines, line| {
            let config = machines.path("home/.config/downpour/config.toml");
            fs::create_dir_all(config.parent().expect("a directory")).expect("a directory");
            fs::write(&config, format!("[host.far]\n{line}\n")).expect("a configuration");
            machines.copy_photos("downpour cp -r photos far:incoming/");
            fs::remove_file(config).expect("the configuration");
        }),
    ),
];

/// Runs a command that makes `far:backup/` the same as `data/` and prints nothing.
fn sync_quietly(machines: &Machines, line: &str) {
    let stray = machines.path("far/backup/stray");
    fs::create_dir_all(machines.path("far/backup")).expect("a directory");
    fs::write(&stray, "").expect("a file");
    let ended = machines.run(line, "");
    assert_eq!(ended.stdout + &ended.stderr, "", "{line}");
    assert!(!stray.exists(), "{line}");
    machines.assert_same("far/backup/old", "home/data/old");
}

#[test]
fn recipes_work_as_written() {
    let mut lines = commands(RECIPES);
    let mut indented: Vec<&str> = RECIPES.lines().filter_map(|line| line.strip_prefix("    ")).map(str::trim).collect();
    lines.append(&mut indented);
    run_all(&lines, EXAMPLES);
}
