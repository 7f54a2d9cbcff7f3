//! `bootstrap`: copies this program through ssh to a host that lacks it.

use std::fs::File;
use std::future::Future;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use net::Family;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::SshOptions;
use super::answer::ANSWER;
use super::login::{Login, LoginTimeouts};
use super::process::TO_END;
use crate::error::{Error, or_nothing};
use crate::transfer::{StopReason, TransferControl};

/// The default path of the program, in the home of the remote user: one of the directories in which downpour is
/// searched.
const USUAL: &str = "~/.local/bin/downpour";

/// The running program, even if its file has been replaced.
const MYSELF: &str = "/proc/self/exe";

/// Prefixes of the output lines of the script. The script itself does not contain them, since a login may print its
/// command.
const SYSTEM: &str = "DOWNPOUR-SYSTEM ";
const FAILED: &str = "DOWNPOUR-FAILED ";
const INSTALLED: &str = "DOWNPOUR-INSTALLED ";

/// A line before the digest, which is no request.
const PROBE: &str = "DOWNPOUR-PROBE";

/// Installs the bytes that follow the line with their digest as `$to`, if the program runs there and verifies its own
/// digest. Nothing has the final name before.
const SCRIPT: [&str; 16] = [
    "set -e",
    r#"say() { printf "DOWNPOUR-%s %s\n" "$@"; }"#,
    r#"say SYSTEM "$(uname -s) $(uname -m)""#,
    // A start-up file that reads stdin may have consumed the first line.
    "read -r digest; if [ \"$digest\" = DOWNPOUR-PROBE ]; then read -r digest; fi",
    r#"case $to in "~"*) say FAILED "cannot expand $to: no such user"; exit 1;; esac"#,
    r#"if [ -d "$to" ] || [ "${to%/}" != "$to" ]; then say FAILED "$to is a directory: name a file in it"; exit 1; fi"#,
    r#"mkdir -p "$(dirname "$to")""#,
    r#"new="$to.$$.new""#,
    // Neither through a link, nor over a file of another user.
    r#"(umask 077; set -C; : >"$new")"#,
    r#"trap 'rm -f "$new"' EXIT"#,
    "trap 'exit 1' HUP INT PIPE TERM",
    r#"cat >"$new""#,
    r#"chmod 755 "$new""#,
    r#"said=$("$new" remote --digest 2>&1) || { say FAILED "new binary does not run: $said"; exit 1; }"#,
    r#"[ "$said" = "$digest" ] || { say FAILED "digest mismatch: not downpour, or copied incompletely"; exit 1; }"#,
    r#"mv -f "$new" "$to"; say INSTALLED "$to""#,
];

/// A program to copy, and its destination.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Argument for ssh: `[user@]host`.
    pub host: String,
    /// How to call ssh.
    pub ssh: SshOptions,
    /// IP versions that may be used.
    pub family: Family,
    /// The remote path; by default `~/.local/bin/downpour`.
    pub to: Option<String>,
    /// The program; by default the running one.
    pub from: Option<PathBuf>,
}

/// An event of a bootstrap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootstrapEvent {
    /// The copy begins.
    Copying {
        /// The size of the program.
        bytes: u64,
        /// The destination.
        to: String,
    },
    /// The program is installed at this path, as the remote host writes it.
    Installed(String),
    /// A line for the user, who may have to answer ssh.
    Note(String),
}

/// Copies the program until it is installed, or until `stop`.
///
/// # Errors
/// [`Error::NoFittingProgram`] if the remote host is of another kind and no program is given,
/// [`Error::BootstrapFailed`] and those of ssh; why it was stopped.
pub async fn bootstrap(
    bootstrap: Bootstrap,
    on_event: impl Fn(BootstrapEvent) + Send + 'static,
    stop: impl Future<Output = StopReason>,
) -> Result<(), Error> {
    let switch = Arc::<TransferControl>::default();
    let mut copied = {
        let switch = Arc::clone(&switch);
        spawn_blocking(move || bootstrap.run(&switch, &on_event))
    };
    tokio::select! {
        copied = &mut copied => copied.map_err(|_| Error::Internal("the copy of the program panicked"))?,
        why = stop => {
            switch.stop(why);
            switch.abandon();
            // This ends ssh, unless that takes too long.
            drop(timeout(TO_END, copied).await);
            Err(why.into())
        }
    }
}

/// Returns the digest by which a copy of the running program verifies itself.
///
/// # Errors
/// It cannot be read.
pub fn own_digest() -> io::Result<String> {
    digest(&mut File::open(MYSELF)?)
}

fn digest(program: &mut File) -> io::Result<String> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(program)?;
    Ok(hasher.finalize().to_hex().to_string())
}

impl Bootstrap {
    fn run(&self, switch: &TransferControl, on_event: &dyn Fn(BootstrapEvent)) -> Result<(), Error> {
        let unreadable = |source: io::Error| Error::BootstrapFailed {
            host: self.host.clone(),
            why: format!("{}: {source}", self.program().display()),
        };
        if !std::fs::metadata(self.program()).map_err(unreadable)?.is_file() {
            return Err(unreadable(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let mut program = File::open(self.program()).map_err(unreadable)?;
        let (digest, bytes) =
            (digest(&mut program).map_err(unreadable)?, program.metadata().map_err(unreadable)?.len());
        // On one line, since csh takes no quotes over several.
        let to = self.to.as_deref().unwrap_or(USUAL);
        // A plain name would be searched in PATH.
        let to = if to.contains('/') || to.starts_with('~') { to.to_owned() } else { format!("./{to}") };
        let script = format!("to={}; {}", quoted(&to), SCRIPT.join("; "));
        let script = format!("exec sh -c '{}'", script.replace('\'', r"'\''"));
        let (login, stopper) = Login::start((&self.ssh, &self.host, self.family), script)?;
        switch.set_route_process(Box::new(login.process.terminator()));
        let mut stopper = Some(stopper);
        let watch = switch.watch(Box::new(move |_| drop(stopper.take())));
        program = File::open(self.program()).map_err(unreadable)?;
        let result = self.copy(login, (program, bytes, &digest), on_event);
        switch.unwatch(watch);
        result.map_err(|error| switch.stopped().map_or(error, Error::from))
    }

    /// Copies the program once the remote script has reported its system.
    fn copy(
        &self,
        mut login: Login,
        (mut program, bytes, digest): (File, u64, &str),
        on_event: &dyn Fn(BootstrapEvent),
    ) -> Result<(), Error> {
        let mut stdin = login.take_input()?;
        let (patience, note) = (LoginTimeouts::of(&self.ssh), &mut |line| on_event(BootstrapEvent::Note(line)));
        // If this fails, the remote host or ssh reports the reason. A login that runs `downpour remote` in place of the
        // script waits for a line, and answers this one.
        let begun = writeln!(stdin, "{PROBE}");
        let system = match login.wait_for(&[SYSTEM, ANSWER], patience, &|| true, note)? {
            Some((SYSTEM, system)) => system,
            Some(_) => {
                return Err(Error::RunsDownpour { host: self.host.clone() });
            }
            None => {
                drop(stdin);
                return Err(login.ended(patience, "sh"));
            }
        };
        if self.from.is_none() && system != this_system() {
            return Err(Error::NoFittingProgram { host: self.host.clone(), system, this: this_system() });
        }
        let to = self.to.clone().unwrap_or_else(|| USUAL.to_owned());
        on_event(BootstrapEvent::Copying { bytes, to });
        drop(begun.and_then(|()| writeln!(stdin, "{digest}")).and_then(|()| io::copy(&mut program, &mut stdin)));
        drop(stdin);
        let not_copied = |why| Error::BootstrapFailed { host: self.host.clone(), why };
        // The last bytes may still be in flight, and ssh prompts for nothing any more.
        match login.wait_for(&[INSTALLED, FAILED], LoginTimeouts { hint: Duration::MAX, ..patience }, &|| true, note)? {
            Some((INSTALLED, path)) => {
                on_event(BootstrapEvent::Installed(path));
                Ok(())
            }
            Some((_, why)) => Err(not_copied(or_nothing(why))),
            None => Err(not_copied("copy interrupted: see the message above".to_owned())),
        }
    }

    fn program(&self) -> PathBuf {
        self.from.clone().unwrap_or_else(|| MYSELF.into())
    }
}

/// Returns the system of this host as `uname -s` and `uname -m` print it.
fn this_system() -> String {
    let system = rustix::system::uname();
    format!("{} {}", system.sysname().to_string_lossy(), system.machine().to_string_lossy())
}

/// Quotes a path for a shell; `~` at its beginning is the home, and `~name` that of another user.
fn quoted(path: &str) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let (first, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    let home = match first.strip_prefix('~') {
        Some("") => "\"$HOME\"",
        Some(name) if name.chars().all(is_plain) => first,
        _ => return quote(path),
    };
    match rest.strip_prefix('/') {
        Some(rest) => format!("{home}/{}", quote(rest)),
        None => home.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::sync::Mutex;
    use tempfile::tempdir;

    /// Installs on a host whose `uname -m` is `machine` a program that prints `digest` as its own.
    fn copied(directory: &Path, machine: &str, digest: &str) -> (Result<(), Error>, Vec<BootstrapEvent>) {
        let (home, ssh, program) = (directory.join("home"), directory.join("ssh"), directory.join("program"));
        fs::create_dir_all(&home).unwrap();
        let (commands, uname) = (directory.join("bin"), directory.join("bin/uname"));
        fs::create_dir_all(&commands).unwrap();
        fs::write(&uname, format!("#!/bin/sh\ncase $1 in -s) echo Linux;; *) echo {machine};; esac\n")).unwrap();
        let paths = format!("HOME='{}' PATH='{}':\"$PATH\"", home.display(), commands.display());
        let login = "for command; do :; done\ncd \"$HOME\" && echo Welcome! && exec sh -c \"$command\"";
        fs::write(&ssh, format!("#!/bin/sh\nexport {paths}\n{login}\n")).unwrap();
        fs::write(&program, format!("#!/bin/sh\necho {digest}\n")).unwrap();
        for file in [&ssh, &program, &uname] {
            fs::set_permissions(file, Permissions::from_mode(0o700)).unwrap();
        }
        let from = (digest != "own").then(|| program.clone());
        let options = SshOptions { command: vec![ssh.into()], ..SshOptions::default() };
        let bootstrap = Bootstrap { host: "far".into(), ssh: options, family: Family::Any, to: None, from };
        let events = Mutex::new(Vec::new());
        let result = bootstrap.run(&TransferControl::default(), &|event| events.lock().unwrap().push(event));
        (result, events.into_inner().unwrap())
    }

    #[test]
    fn bootstrap_wrong_digest_not_installed() {
        let directory = tempdir().unwrap();
        let (result, _) = copied(directory.path(), "sparc", "something");
        let error = result.expect_err("another digest").to_string();
        assert_eq!(error, "cannot install downpour on far: digest mismatch: not downpour, or copied incompletely");
        assert_eq!(fs::read_dir(directory.path().join("home/.local/bin")).unwrap().count(), 0);
    }

    #[test]
    fn bootstrap_other_system_refused() {
        let directory = tempdir().unwrap();
        let (result, events) = copied(directory.path(), "sparc", "own");
        let error = result.expect_err("another host").to_string();
        assert!(error.contains("cannot install on far (Linux sparc): this binary is for Linux "), "{error}");
        assert_eq!((events, directory.path().join("home/.local").exists()), (vec![], false));
    }

    #[test]
    fn bootstrap_path_quoted_for_shell() {
        for (path, word) in [
            ("~/bin/x", r#""$HOME"/'bin/x'"#),
            ("/opt/a b", "'/opt/a b'"),
            ("$(id)'", r"'$(id)'\'''"),
            ("~", r#""$HOME""#),
        ] {
            assert_eq!(quoted(path), word);
        }
        for (path, word) in [("~who/a b", "~who/'a b'"), ("~who", "~who"), ("~$(id)/x", "'~$(id)/x'")] {
            assert_eq!(quoted(path), word);
        }
    }

    #[test]
    fn a_digest_is_that_of_the_bytes() {
        let directory = tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "abc").unwrap();
        let found = digest(&mut File::open(&path).unwrap()).unwrap();
        assert_eq!(found, blake3::hash(b"abc").to_hex().to_string());
        assert_eq!(own_digest().unwrap(), blake3::hash(&fs::read(MYSELF).unwrap()).to_hex().to_string());
    }
}
