//! Completion of hosts and remote paths, in the shells themselves.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::{TempDir, tempdir};

use crate::man_pages::COMMANDS;
use crate::program::downpour;

/// A user with hosts, and an ssh that runs commands in another directory.
struct User {
    home: TempDir,
}

impl User {
    fn new() -> Self {
        let user = Self { home: tempdir().expect("a directory") };
        for directory in [".ssh/config.d", "bin", "far/data", "far/a b", "far/.hidden"] {
            fs::create_dir_all(user.path(directory)).expect("a directory");
        }
        fs::write(user.path("far/data/one.tar"), "").expect("a file");
        fs::write(user.path("far/data/two"), "").expect("a file");
        fs::write(user.path("far/date"), "").expect("a file");
        for odd in ["far/da\u{1b}[2J", "far/dat\nda", "far/-da"] {
            fs::write(user.path(odd), "").expect("a file");
        }
        // The shells run in this directory.
        fs::create_dir_all(user.path("bin")).expect("a directory");
        fs::write(user.path("bin/data.here"), "").expect("a file");
        fs::write(user.path(".ssh/config"), "Host farther *.wild\nInclude config.d/*\n").expect("a file");
        fs::write(user.path(".ssh/config.d/more"), "Host faraway\n").expect("a file");
        fs::write(user.path(".ssh/known_hosts"), "far.example,192.0.2.1 ssh-ed25519 A\n|1|x|y ssh-rsa A\n")
            .expect("a file");
        // A greeting without the end of its line, as some logins have.
        let ssh = "#!/bin/sh\nfor command; do :; done\ncd \"$HOME/far\" && printf Welcome && HOME=\"$HOME/far\" exec sh -c \"$command\"\n";
        fs::write(user.path("bin/ssh"), ssh).expect("a script");
        fs::set_permissions(user.path("bin/ssh"), Permissions::from_mode(0o700)).expect("a mode");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_downpour"), user.path("bin/downpour")).expect("a link");
        user
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Runs a program of this user; returns the lines that it prints.
    fn lines(&self, program: &str, arguments: &[&str]) -> Vec<String> {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("bin")).env("HOME", self.home.path()).env("PATH", path);
        command
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("XDG_DATA_HOME", self.path(".local"))
            .env_remove("DOWNPOUR_SSH");
        let output = command.output().expect("a program");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{program} {arguments:?}: {errors}");
        String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
    }

    fn completes(&self, command: &str, word: &str) -> Vec<String> {
        self.lines("downpour", &["complete", command, "--", word])
    }

    /// Writes the script for a shell.
    fn script(&self, shell: &str) -> String {
        let file = self.path(shell);
        fs::write(&file, downpour(["completions", shell]).end().expect(0).stdout).expect("a file");
        file.to_str().expect("text").to_owned()
    }
}

/// Whether a shell is installed; prints a line if it is not.
fn has(shell: &str) -> bool {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|directory| Path::new(&directory).join(shell).is_file());
    if !found {
        eprintln!("NOT RUN: there is no {shell} here");
    }
    found
}

#[test]
fn complete_hosts_and_remote_paths() {
    let user = User::new();
    assert_eq!(user.completes("cp", "fa"), ["far.example:", "faraway:", "farther:"]);
    assert_eq!(user.completes("cp", "me@fart"), ["me@farther:"]);
    assert_eq!(user.completes("doctor", "fa"), ["far.example", "faraway", "farther"]);
    assert_eq!(user.completes("sync", "farther:da"), ["farther:data/", "farther:date"]);
    assert_eq!(user.completes("verify", "me@farther:data/"), ["me@farther:data/one.tar", "me@farther:data/two"]);
    assert_eq!(user.completes("cp", "farther:~/da"), ["farther:~/data/", "farther:~/date"]);
    assert!(user.completes("cp", "farther:~root/../etc/passw").contains(&"farther:~root/../etc/passwd".to_owned()));
    assert_eq!(user.completes("cp", "farther:."), ["farther:.hidden/"]);
    assert_eq!(user.completes("cp", "farther:a"), ["farther:a b/"]);
    for (command, word) in [
        ("cp", "./fa"),
        ("cp", "farther:no/such"),
        ("cp", "farther:'$(touch x)'/"),
        ("cp", "farther:~$(touch x)/"),
        ("cp", "scp://farther/a%20b"),
        ("doctor", "far:"),
        ("send", "fa"),
        ("cp", "-r"),
    ] {
        assert!(user.completes(command, word).is_empty(), "{command} {word}");
    }
    assert!(!user.path("far/x").exists() && !user.path("bin/x").exists());
}

/// As for the commands themselves.
#[test]
fn complete_uses_configured_ssh() {
    let user = User::new();
    let ssh = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", user.path("calls").display());
    fs::write(user.path("bin/other-ssh"), ssh).expect("a script");
    fs::set_permissions(user.path("bin/other-ssh"), Permissions::from_mode(0o700)).expect("a mode");
    fs::create_dir_all(user.path(".config/downpour")).expect("a directory");
    let config = "ssh = \"other-ssh -o X=y\"\nssh-port = 2222\nidentity = \"/key\"\njump = \"gate\"\n";
    fs::write(user.path(".config/downpour/config.toml"), config).expect("a file");
    assert!(user.completes("cp", "farther:da").is_empty());
    let calls = fs::read_to_string(user.path("calls")).expect("a call");
    assert!(calls.starts_with("-o X=y -p 2222 -i /key -J gate -T -oBatchMode=yes "), "{calls}");
}

#[test]
fn bash_completes_hosts_and_remote_paths() {
    if !has("bash") {
        return;
    }
    let user = User::new();
    let script = user.script("bash");
    let completed = |words: &str, line: &str| {
        let set = format!(
            "COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}"
        );
        let breaks = r#"COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'"#;
        let run = "compopt() { [[ $1 == -o ]] || echo \"$@\"; }; _downpour_places downpour \"${COMP_WORDS[COMP_CWORD]}\" cp; printf '%s\\n' \"${COMPREPLY[@]}\"";
        user.lines("bash", &["--norc", "-c", &format!("source '{script}'; {breaks}; {set}; {run}")])
    };
    assert_eq!(completed("downpour cp fa", "downpour cp fa"), ["far.example:", "faraway:", "farther:"]);
    // bash has split the word at its colon.
    // No local file is offered instead.
    let far = "+o default +o bashdefault";
    assert_eq!(completed("downpour cp x farther : da", "downpour cp x farther:da"), [far, "data/", "date"]);
    assert_eq!(completed("downpour cp x farther : no", "downpour cp x farther:no"), [far, ""]);
    assert_eq!(completed("downpour cp farther :", "downpour cp farther:"), [far, "-da", "a\\ b/", "data/", "date"]);
    assert_eq!(completed(r"downpour cp farther : a\\\ b", r"downpour cp farther:a\ b"), [far, "a\\ b/"]);
    // Within quotes bash completes the word with its host, and closes the quote.
    assert_eq!(completed("downpour cp '\"farther:a b'", "downpour cp \"farther:a b"), [far, "farther:a b/"]);
    assert_eq!(completed("downpour cp \"'farther:a\"", "downpour cp '\\''farther:a"), [far, "farther:a b/"]);
    let options = completed("downpour cp --recurs", "downpour cp --recurs");
    assert_eq!(options, ["--recursive"]);
    // Files are left to bash, which quotes their names.
    let text = fs::read_to_string(&script).expect("a script");
    assert!(!text.contains("COMPREPLY=($(compgen -f"), "it splits names at spaces");
    let registered = user.lines("bash", &["--norc", "-c", &format!("source '{script}'; complete -p downpour")]);
    assert!(registered[0].contains("-o default") && registered[0].contains("-F _downpour_places"), "{registered:?}");
}

#[test]
fn completions_omit_internal_commands() {
    let script = |shell: &str| downpour(["completions", shell]).end().expect(0).stdout;
    let bash = script("bash");
    let offered = bash.lines().find(|line| line.contains("opts=\"-h -V")).expect("those of the program itself");
    let commands: Vec<&str> = offered.trim_end_matches('"').split(' ').collect();
    for hidden in ["complete", "remote"] {
        assert!(commands.contains(&"cp") && !commands.contains(&hidden), "{offered}");
        for (shell, offer) in [("zsh", format!("'{hidden}:")), ("fish", format!("-a \"{hidden}\""))] {
            assert!(!script(shell).contains(&offer), "{shell}: {hidden}");
        }
    }
}

#[test]
fn zsh_completes_hosts_and_remote_paths() {
    if !has("zsh") {
        return;
    }
    let user = User::new();
    let script = user.script("zsh");
    // Functions of zsh's own completion, which run only in an interactive line.
    let surroundings = "compdef() { }; compadd() { shift 3; print -rl -- \"$@\" }";
    let completed = |word: &str| {
        let run =
            format!("words=(downpour cp {word}); PREFIX='{word}'; _downpour_words() {{ print options }}; _downpour");
        user.lines(
            "zsh",
            &[
                "-f",
                "-c",
                &format!("{surroundings}; source '{script}'; functions _downpour_words >/dev/null || exit 1; {run}"),
            ],
        )
    };
    assert_eq!(completed("fa"), ["far.example:", "faraway:", "farther:", "options"]);
    assert_eq!(completed("farther:da"), ["farther:data/", "farther:date", "options"]);
    assert_eq!(completed("nothing"), ["options"]);
}

#[test]
fn fish_completes_hosts_and_remote_paths() {
    if !has("fish") {
        return;
    }
    let user = User::new();
    let script = user.script("fish");
    let completed = |line: &str| {
        let found = user.lines("fish", &["--no-config", "-c", &format!("source '{script}'; complete -C '{line}'")]);
        found.into_iter().filter(|line| line.contains(':')).collect::<Vec<_>>()
    };
    assert_eq!(completed("downpour cp fa"), ["far.example:", "faraway:", "farther:"]);
    assert_eq!(completed("downpour cp x farther:da"), ["farther:data/", "farther:date"]);
    let all =
        |line: &str| user.lines("fish", &["--no-config", "-c", &format!("source '{script}'; complete -C '{line}'")]);
    assert!(all("downpour cp x farther:no").is_empty(), "nothing of this machine");
    assert!(all("downpour cp data").contains(&"data.here".to_owned()));
}

#[test]
fn complete_silent_host_times_out() {
    let user = User::new();
    fs::write(user.path("bin/ssh"), "#!/bin/sh\nexec sleep 1000\n").expect("a script");
    let asked = Instant::now();
    assert!(user.completes("cp", "farther:da").is_empty());
    assert!(asked.elapsed() < Duration::from_secs(60), "{:?}", asked.elapsed());
}

#[test]
fn short_help_fits_screen_and_names_help() {
    // A terminal has 24 lines.
    for command in COMMANDS {
        let short = downpour([command, "-h"]).end().expect(0).stdout;
        assert!(short.lines().count() <= 24, "{command}: {} lines", short.lines().count());
        assert!(short.contains("--help"), "{short}");
        assert!(downpour([command, "--help"]).end().expect(0).stdout.lines().count() >= short.lines().count());
    }
    let all = downpour(["-h"]).end().expect(0).stdout;
    assert!(all.lines().count() <= 24 && all.contains("`downpour --help`"), "{all}");
    // Among other letters it is rsync's.
    let local = tempdir().expect("a directory");
    fs::write(local.path().join("file"), "bytes").expect("a file");
    let mut command = crate::program::command(["sync", "-avh"]);
    command.arg(local.path().join("file")).arg(local.path().join("copy"));
    crate::program::Program::start(command).end().expect(0);
    assert_eq!(fs::read(local.path().join("copy")).expect("a copy"), b"bytes");
}
