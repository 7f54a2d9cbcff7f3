//! Completions of a host, or of a path on one, for the scripts of `downpour completions`.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use downpour::remote::{Location, SshOptions};

use crate::args::{Args, Completed, completing};
use crate::exit::Code;
use crate::print;

/// Maximum time to wait for the names on a host.
const PATIENCE: Duration = Duration::from_secs(5);
/// Most bytes that are read of an answer of a host, and of a file of ssh.
const MAX_ANSWER: u64 = 1 << 20;
/// Maximum depth and number of included files of an ssh configuration.
const MAX_FILES: usize = 64;
/// Begins the answer, after any output of the login. The command does not contain it, since a login may print the command.
const MARKER: &str = "DOWNPOUR-LIST";

/// Prints the completions of a word of a command, one per line. Errors are silent, since the user is typing.
pub(crate) fn run(args: &Args) -> u8 {
    let command = args.words.first().map_or("", String::as_str);
    let takes = |completed| completing(completed).any(|name| name == command);
    let takes_places = takes(Completed::Places);
    let found = match Location::parse(&args.word) {
        Ok(Location::Remote { host, path }) if takes_places => {
            // Otherwise it is a URL, whose path has another form.
            let before = args.word.as_bytes().strip_suffix(&path[..]).filter(|before| before.ends_with(b":"));
            let (before, path) = (before.map(str::from_utf8), str::from_utf8(&path));
            let (Some(Ok(before)), Ok(path)) = (before, path) else { return Code::Done as u8 };
            let names = names_on(&ssh(&args.ssh), &host, path);
            names.into_iter().map(|name| format!("{before}{name}")).collect()
        }
        Ok(Location::Remote { .. }) => Vec::new(),
        _ if takes_places => hosts(&args.word).into_iter().map(|host| format!("{host}:")).collect(),
        _ if takes(Completed::Host) => hosts(&args.word),
        _ => Vec::new(),
    };
    for line in found.iter().filter(|line| !line.chars().any(char::is_control)) {
        print::out(line);
    }
    Code::Done as u8
}

/// Returns the hosts that ssh knows by name and that begin with a word, after the user in the word.
fn hosts(word: &OsStr) -> Vec<String> {
    let Some(word) = word.to_str().filter(|word| !word.contains('/')) else { return Vec::new() };
    let (user, begin) = word.rsplit_once('@').map_or((None, word), |(user, begin)| (Some(user), begin));
    let ssh = env::var_os("HOME").map_or_else(|| PathBuf::from("/nonexistent"), |home| Path::new(&home).join(".ssh"));
    let mut found = BTreeSet::new();
    for config in [ssh.join("config"), PathBuf::from("/etc/ssh/ssh_config")] {
        let mut left = MAX_FILES;
        configured(&config, &mut left, &mut found);
    }
    for file in [ssh.join("known_hosts"), PathBuf::from("/etc/ssh/ssh_known_hosts")] {
        read(&file).lines().for_each(|line| found.extend(known(line)));
    }
    let fits = found.into_iter().filter(|host| host.starts_with(begin));
    fits.map(|host| user.map_or_else(|| host.clone(), |user| format!("{user}@{host}"))).collect()
}

/// Adds the names after `Host` in a configuration and in those that it includes.
fn configured(file: &Path, files: &mut usize, found: &mut BTreeSet<String>) {
    let Some(left) = files.checked_sub(1) else { return };
    *files = left;
    for line in read(file).lines() {
        let mut words = line.split(|c: char| c.is_whitespace() || c == '=').filter(|word| !word.is_empty());
        match words.next().map(str::to_ascii_lowercase).as_deref() {
            Some("host") => {
                found.extend(words.map(|word| word.trim_matches('"')).filter(|word| is_plain(word)).map(Into::into))
            }
            Some("include") => {
                let directory = file.parent().unwrap_or(Path::new("."));
                for path in words.flat_map(|word| included(directory, word.trim_matches('"'))) {
                    configured(&path, files, found);
                }
            }
            _ => {}
        }
    }
}

/// Returns the files that an `Include` names: relative to the directory of the configuration, with `*` in the last
/// component.
fn included(directory: &Path, word: &str) -> Vec<PathBuf> {
    let home = env::var("HOME").unwrap_or_default();
    let path = directory.join(word.strip_prefix("~/").map_or_else(|| word.to_owned(), |rest| format!("{home}/{rest}")));
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let Some((begin, end)) = name.split_once('*') else { return vec![path] };
    let entries = path.parent().map(fs::read_dir).and_then(Result::ok).into_iter().flatten().flatten();
    let fits = |name: &str| name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end);
    let mut found: Vec<PathBuf> =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(fits)).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Returns the names in a line of known hosts, except hashed or revoked ones and those of another port.
fn known(line: &str) -> Vec<String> {
    if line.starts_with(['#', '@', '|']) {
        return Vec::new();
    }
    let names = line.split_whitespace().next().unwrap_or_default().split(',');
    names.filter(|name| is_plain(name)).map(Into::into).collect()
}

/// Returns whether this is a name: neither a pattern nor an address with colons.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('-') && !name.contains(['*', '?', '!', '[', ':', '|', '#', '/', '@'])
}

fn read(file: &Path) -> String {
    let mut text = Vec::new();
    // A missing file names no hosts.
    let _ = fs::File::open(file).and_then(|file| file.take(MAX_ANSWER).read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the ssh command, without prompts and with a short timeout.
fn ssh(args: &SshOptions) -> Vec<OsString> {
    let mut ssh = args.command.clone();
    let mut option = |letter: &str, value: OsString| ssh.extend([letter.into(), value]);
    args.port.into_iter().for_each(|port| option("-p", port.to_string().into()));
    args.identity.iter().for_each(|key| option("-i", key.into()));
    args.jump.iter().for_each(|host| option("-J", host.into()));
    ssh.extend(["-T", "-oBatchMode=yes", "-oConnectTimeout=3", "-oClearAllForwardings=yes"].map(Into::into));
    ssh.extend(["-oRemoteCommand=none", "-oRequestTTY=no", "-oPermitLocalCommand=no"].map(Into::into));
    ssh
}

/// Returns the paths on a host that begin with this one.
fn names_on(ssh: &[OsString], host: &str, path: &str) -> Vec<String> {
    let (directory, begin) = path.rfind('/').map_or(("", path), |at| path.split_at(at + 1));
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let is_name = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let home = directory.strip_prefix('~').and_then(|rest| rest.split_once('/')).filter(|(user, _)| is_name(user));
    let place = match (home, directory) {
        // Without quotes, for the remote shell to expand.
        (Some((user, rest)), _) => format!("~{user}/{}", quoted(rest)),
        (None, "") => ".".to_owned(),
        (None, directory) => quoted(directory),
    };
    // Each name ends with NUL: it may contain a line break.
    let list = r#"for name in * .[!.]* ..?*; do if [ -d "$name" ]; then printf '%s/\0' "$name"; elif [ -e "$name" ] || [ -L "$name" ]; then printf '%s\0' "$name"; fi; done"#;
    let script = format!("cd {place} && printf 'DOWNPOUR-%s\\n' LIST && {list}");
    let Some(output) = ask(ssh, host, &format!("exec sh -c {}", quoted(&script))) else { return Vec::new() };
    let Some((_, list)) = output.split_once(&format!("{MARKER}\n")) else { return Vec::new() };
    let is_meant =
        |name: &&str| !name.is_empty() && name.starts_with(begin) && (begin.starts_with('.') || !name.starts_with('.'));
    list.split('\0').filter(is_meant).map(|name| format!("{directory}{name}")).collect()
}

/// Runs a command on a host; returns its output, `None` if that takes too long.
fn ask(ssh: &[OsString], host: &str, command: &str) -> Option<String> {
    let mut child = Command::new(ssh.first()?);
    child.args(&ssh[1..]).args(["--", host, command]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let output = child.stdout.take()?;
    let (sender, received) = channel();
    let work = move || {
        let mut text = Vec::new();
        let read = output.take(MAX_ANSWER).read_to_end(&mut text);
        drop(sender.send(read.map(|_| text)));
    };
    thread::Builder::new().spawn(work).ok()?;
    let text = received.recv_timeout(PATIENCE);
    end(child);
    Some(String::from_utf8_lossy(&text.ok()?.ok()?).into_owned())
}

fn end(mut child: Child) {
    // It may have ended.
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_hosts_lists_plain_names_only() {
        assert_eq!(known("far.example,192.0.2.1 ssh-ed25519 AAAA"), ["far.example", "192.0.2.1"]);
        for line in [
            "|1|abc|def ssh-rsa AAAA",
            "@revoked far ssh-rsa AAAA",
            "[far]:2222 ssh-rsa AAAA",
            "*.example ssh-rsa AAAA",
            "",
            "# far",
        ] {
            assert!(known(line).is_empty(), "{line}");
        }
    }

    #[test]
    fn configuration_lists_hosts_of_included_files() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("more")).expect("a directory");
        let file = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("a file");
        file(
            "config",
            "Host far other *.wild !not\n  HostName x\nhost=\"quoted\"\nInclude more/*.conf config\nMatch host y\n",
        );
        file("more/a.conf", "Host inner\n");
        file("more/b.txt", "Host unread\n");
        let mut found = BTreeSet::new();
        configured(&directory.path().join("config"), &mut 8, &mut found);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["far", "inner", "other", "quoted"]);
    }
}
