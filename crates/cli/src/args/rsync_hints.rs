//! Options of scp and rsync that this program does not have. Each is translated into options of this program, ignored
//! if it has no effect, or answered with an alternative. None that would change paths, modes or the selection is ignored.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use downpour::remote::Location;

use super::command_at;

/// The treatment of such an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is translated into this option.
    As(&'static str),
    /// It is ignored: it has no effect.
    Nothing,
    /// It is ignored with its value.
    NothingWithValue,
    /// It is an error with this advice.
    Not(&'static str),
}

use Word::{As, Not, Nothing, NothingWithValue};

/// Options and their treatment: of `cp`, whose users know scp, of `sync`, whose users know rsync, and of both.
type Words = &'static [(&'static [&'static str], Word)];

const LEAVE: &str = "not supported; omit it";
const RATE: &str = "use --limit RATE, in bits per second (--limit 8M) or bytes (--limit 1MB/s)";
const SSH: &str = "use --ssh 'ssh -o OPTION' or --ssh 'ssh -F FILE'";
const REFERENCE: &str = "use --link-dest DIR, or copy the older one first";
const WHOLE: &str =
    "not supported: an existing file is replaced when the new one is complete and verified; omit the option";
const SHOWN: &str = "use -v or -n and redirect stdout, or --json for programs";
const OWNERS: &str = "run sync as the user who is to own the files";
const DAEMON: &str = "not supported: downpour does not connect to rsync daemons; omit it";
const LINKS: &str = "use --links follow to copy the targets of links, or --links skip";
const BATCH: &str = "not supported; copy to each destination, or copy on from the first one";

const FUZZY: &str = "not supported: differences are computed against the file of the same name only; omit it";
const PER_DIRECTORY: &str = "rules per directory are not supported; use --exclude-from FILE";

const OF_CP: Words = &[
    (&["-C", "-O", "-s"], Nothing),
    (&["--perms"], As("--preserve")),
    (&["-l"], Not(RATE)),
    (&["-o", "-F"], Not(SSH)),
    (&["-c"], Not("use --ssh 'ssh -c CIPHER'; data over UDP always has the same cipher")),
    (&["-B"], Not("use --ssh 'ssh -o BatchMode=yes'")),
    (&["-S"], Not("use --ssh PROGRAM")),
    (&["-D"], Not("use --ssh CMD and --remote-bin PATH")),
    (
        &["-R"],
        Not(
            "use --relative for rsync's -R; scp's -R is not needed: between two hosts the data goes directly if possible, and with -3 through this host",
        ),
    ),
    (&["-T"], Not("use --trust-sender")),
    (&["-g"], Not("use --group")),
    (&["--delete", "--max-delete", "--force-empty"], Not("cp deletes nothing; use `downpour sync --delete`")),
];

const OF_SYNC: Words = &[
    (&["--recursive", "--perms", "-S", "--secluded-args", "--protect-args", "-s"], Nothing),
    (&["--block-size", "-B"], NothingWithValue),
    (&["-c"], As("--checksum")),
    (&["-l"], As("--links=copy")),
    (&["--delete-after", "--delete-delay"], As("--delete")),
    (&["-T"], Not("not supported: files are staged in the destination directory; omit the option")),
    (&["-C"], Not("use --include, --exclude, --include-from and --exclude-from")),
    (&["-F"], Not(PER_DIRECTORY)),
    (&["-y"], Not(FUZZY)),
    (&["-E"], Not(LEAVE)),
];

const OF_BOTH: Words = &[
    (
        &["-z", "--compress", "--partial", "--times", "--human-readable", "--no-whole-file", "--no-W", "--fsync"],
        Nothing,
    ),
    (&["--inc-recursive", "--i-r", "--no-inc-recursive", "--no-i-r", "--no-motd", "--no-compress", "--no-z"], Nothing),
    (&["--blocking-io", "--no-blocking-io", "--no-human-readable", "--no-h"], Nothing),
    (&["--no-progress"], As("--progress=none")),
    (
        &["--compress-level", "--zl", "--compress-choice", "--zc", "--compress-threads", "--zt", "--skip-compress"],
        NothingWithValue,
    ),
    (&["--checksum-choice", "--cc", "--checksum-seed", "--outbuf"], NothingWithValue),
    (&["--ignore-non-existing"], As("--existing=only")),
    (&["--sparse"], Nothing),
    (&["--chown", "--usermap", "--groupmap"], Not(OWNERS)),
    (
        &["--fake-super", "--super"],
        Not("only root can preserve owners; omit the option, or write an archive with `tar` on the remote host"),
    ),
    (
        &["--temp-dir", "--partial-dir", "--delay-updates"],
        Not(
            "not supported: files are staged in the destination directory and get their names when complete; omit the option",
        ),
    ),
    (&["--bwlimit"], Not(RATE)),
    (&["--inplace", "--append", "--append-verify", "--preallocate", "--write-devices", "--copy-devices"], Not(WHOLE)),
    (&["-e", "--rsh"], Not("use --ssh 'CMD', or -P, -i and -J for the port, the key and a jump host")),
    (&["--rsync-path"], Not("use --remote-bin PATH")),
    (&["-L", "--copy-links", "--dereference"], Not("use --links follow")),
    (&["--copy-unsafe-links", "--copy-dirlinks", "-k", "--munge-links", "--insecure-links"], Not(LINKS)),
    (
        &["--keep-dirlinks", "-K", "--confine-root"],
        Not("not supported: links at the destination are not followed; omit it"),
    ),
    (&["-@"], Not("use --modify-window=SECONDS")),
    (&["--fuzzy"], Not(FUZZY)),
    (&["--itemize-changes", "--debug", "--stderr"], Not("use -v, or --json for programs")),
    (&["--8-bit-output", "-8"], Not("names are escaped on a terminal; use --json for programs")),
    (&["--del"], Not("use `downpour sync --delete`, which deletes after the transfer")),
    (
        &["--delete-before", "--delete-during"],
        Not(
            "use `downpour sync --delete`, which deletes after the transfer; if the disk is too full for that, free space first",
        ),
    ),
    // Of `cp`: `sync` has them above.
    (&["--delete-after", "--delete-delay"], Not("use `downpour sync --delete`, which deletes after the transfer")),
    (&["--delete-excluded"], Not("use sync --delete without --exclude; excluded files at the destination are kept")),
    (
        &["--ignore-missing-args", "--delete-missing-args"],
        Not("a missing source is an error; omit it, or list names with --files-from"),
    ),
    (&["--compare-dest", "--copy-dest"], Not(REFERENCE)),
    (&["--cvs-exclude"], Not("use --include, --exclude, --include-from and --exclude-from")),
    (&["--max-alloc"], Not("use --max-memory SIZE")),
    (&["--log-file", "--log-file-format", "--out-format", "--list-only"], Not(SHOWN)),
    (
        &["--ignore-errors", "--force"],
        Not("not supported: sync --delete deletes nothing if the source could not be read completely"),
    ),
    (&["--no-implied-dirs"], Not("the parent directories of a name are always copied; omit it")),
    (&["-m", "--prune-empty-dirs", "-d", "--dirs", "--old-dirs", "--old-d", "--old-args"], Not(LEAVE)),
    (&["--executability"], Not("cp -p and sync preserve modes; omit it")),
    (
        &["--atimes", "-U", "--crtimes", "-N", "--omit-link-times", "--open-noatime"],
        Not("only modification times are preserved, and always; omit it"),
    ),
    (&["--drop-D"], Not("omit --specials and -a")),
    (&["--write-batch", "--only-write-batch", "--read-batch"], Not(BATCH)),
    (&["--stop-after", "--stop-at"], Not("use `timeout TIME downpour ...`; run the same command to resume")),
    (&["--address", "--contimeout", "--password-file", "--early-input", "--sockopts", "--protocol"], Not(DAEMON)),
    (&["--copy-as"], Not("run downpour as that user")),
    (&["--iconv"], Not("names are copied byte by byte; convert them with `convmv`")),
    (&["--remote-option", "-M"], Not("both sides get the same options; use --remote-bin for the remote program")),
];

/// The prefix of options that turn another one off.
const OFF: &str = "--no-";
const TURNED_OFF: &str = "an implied option cannot be turned off; give the wanted options one by one";

/// Returns the options that the table names as alternatives, each with the text that names it.
#[cfg(test)]
pub(super) fn alternatives() -> impl Iterator<Item = (String, &'static str)> {
    let all = [OF_CP, OF_SYNC, OF_BOTH].into_iter().flatten();
    let texts = all.filter_map(|(_, word)| match word {
        As(text) | Not(text) => Some(*text),
        Nothing | NothingWithValue => None,
    });
    texts.flat_map(|text| {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.filter_map(|word| word.strip_prefix("--")).map(move |name| (name.to_owned(), text))
    })
}

/// Returns the treatment of an option of a command, if the table has it.
fn treatment(command: &str, option: &str) -> Option<Word> {
    let own = if command == "cp" { OF_CP } else { OF_SYNC };
    let found = own.iter().chain(OF_BOTH).find(|(options, _)| options.contains(&option)).map(|(_, word)| *word);
    found.or_else(|| option.starts_with(OFF).then_some(Not(TURNED_OFF)))
}

/// Arguments translated into this program's options.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    pub(crate) arguments: Vec<OsString>,
    /// Ignored options.
    pub(crate) ignored: Vec<String>,
}

impl Translated {
    /// Returns a line about the ignored options.
    pub(crate) fn note(&self) -> Option<String> {
        let (last, others) = self.ignored.split_last()?;
        Some(match others {
            [] => format!("{last} has no effect"),
            others => format!("{} and {last} have no effect", others.join(", ")),
        })
    }
}

/// Translates the arguments of `cp` and `sync`, whose own options are in `definition`; others remain as they are.
///
/// # Errors
/// The first unsupported option, with an alternative.
pub(crate) fn translate(arguments: &[OsString], definition: &Command) -> Result<Translated, String> {
    let mut words = Reader { left: arguments, command: "", options: Vec::new(), done: Translated::default() };
    let command = command_at(arguments).map(|at| (at, arguments[at].to_str()));
    if let Some((at, Some(command @ ("cp" | "sync")))) = command {
        (0..=at).for_each(|_| words.keep());
        let own = definition.find_subcommand(command);
        words.options = own.into_iter().flat_map(Command::get_arguments).collect();
        words.command = command;
        words.options()?;
    }
    words.done.arguments.extend_from_slice(words.left);
    Ok(words.done)
}

/// Reads arguments one by one.
struct Reader<'a> {
    left: &'a [OsString],
    command: &'a str,
    options: Vec<&'a Arg>,
    done: Translated,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<&'a OsString> {
        let (first, rest) = self.left.split_first()?;
        self.left = rest;
        Some(first)
    }

    fn keep(&mut self) {
        let word = self.next().cloned();
        self.done.arguments.extend(word);
    }

    fn options(&mut self) -> Result<(), String> {
        while let Some(word) = self.left.first() {
            match word.as_bytes() {
                b"--" => return Ok(()),
                [b'-', b'-', ..] => self.long()?,
                [b'-', _, ..] => self.short()?,
                _ => self.keep(),
            }
        }
        Ok(())
    }

    /// Reads `--name` or `--name=value`.
    fn long(&mut self) -> Result<(), String> {
        let Some(word) = self.left.first().and_then(|word| word.to_str()) else {
            self.keep();
            return Ok(());
        };
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("--progress", None) if !self.has_value("progress")? => return self.apply(name, Nothing),
            ("--links", None) if !self.has_value("links")? => return self.apply(name, As("--links=copy")),
            ("--existing", None) if !self.has_value("existing")? => return self.apply(name, As("--existing=only")),
            ("--info", value) => return self.info(value),
            _ => {}
        }
        let own = self.options.iter().find(|option| {
            let aliases = option.get_all_aliases().unwrap_or_default();
            option.get_long() == Some(&name[2..]) || aliases.contains(&&name[2..])
        });
        match own {
            Some(option) => {
                let takes = takes_value(option) && value.is_none() && !option.is_require_equals_set();
                self.keep();
                if takes {
                    self.keep();
                }
                Ok(())
            }
            None => match treatment(self.command, name) {
                Some(NothingWithValue) if value.is_none() => {
                    self.apply(name, NothingWithValue)?;
                    self.next();
                    Ok(())
                }
                Some(word) => self.apply(name, word),
                None => {
                    self.keep();
                    Ok(())
                }
            },
        }
    }

    /// Returns whether one of its few values follows an option that is a switch in rsync.
    fn has_value(&self, option: &str) -> Result<bool, String> {
        let Some(next) = self.left.get(1) else { return Ok(false) };
        let own = self.options.iter().find(|own| own.get_long() == Some(option));
        let words = own.map(|own| own.get_possible_values()).unwrap_or_default();
        let is_value = next.to_str().is_some_and(|next| words.iter().any(|word| word.matches(next, false)));
        let next = next.display();
        if is_value && Path::new(&self.left[1]).symlink_metadata().is_ok() {
            return Err(format!("--{option} {next}: write --{option}={next}, or ./{next} for the file of this name"));
        }
        Ok(is_value)
    }

    /// Reads `--info=FLAGS`: the output of progress and statistics.
    fn info(&mut self, value: Option<&str>) -> Result<(), String> {
        let flags = value.map(str::to_owned).or_else(|| self.left.get(1)?.to_str().map(str::to_owned));
        let flags = flags.unwrap_or_default().to_ascii_lowercase();
        let is = |flag: &str, known: &[&str]| known.contains(&flag.trim_end_matches(|c: char| c.is_ascii_digit()));
        if !flags.split(',').all(|flag| is(flag, &["progress", "stats", "name", "flist", "none"])) {
            return Err("--info: use -v, or --json for programs".to_owned());
        }
        let stats = flags.split(',').any(|flag| is(flag, &["stats"]) && !flag.ends_with('0'));
        self.apply("--info", if stats { As("--stats") } else { Nothing })?;
        if value.is_none() {
            self.next();
        }
        Ok(())
    }

    /// Treats the next word.
    fn apply(&mut self, name: &str, word: Word) -> Result<(), String> {
        match word {
            Not(advice) => return Err(format!("{name}: {advice}")),
            As(option) => self.done.arguments.push(option.into()),
            Nothing | NothingWithValue => self.done.ignored.push(name.to_owned()),
        }
        self.next();
        Ok(())
    }

    /// Reads letters after one `-`.
    fn short(&mut self) -> Result<(), String> {
        let Some(word) = self.next() else { return Ok(()) };
        let (mut kept, mut more) = (vec![b'-'], Vec::new());
        let letters = &word.as_bytes()[1..];
        // Among other letters, rsync's -h makes numbers readable, which they always are; alone, it requests help.
        let is_readable = |letter: u8| letter == b'h' && letters.iter().any(|other| *other != b'h');
        for (at, letter) in letters.iter().enumerate() {
            let (name, rest) = (format!("-{}", char::from(*letter)), &letters[at + 1..]);
            if name == "-P" && !self.is_port(rest)? {
                self.done.ignored.push(name);
                continue;
            }
            if is_readable(*letter) {
                continue;
            }
            let own = self.options.iter().find(|option| option.get_short() == Some(char::from(*letter)));
            match own.map(|option| takes_value(option)) {
                Some(false) => kept.push(*letter),
                Some(true) => {
                    self.check_value(&name, rest, at > 0)?;
                    kept.extend_from_slice(&letters[at..]);
                    self.done.arguments.push(OsString::from_vec(kept));
                    if rest.is_empty() {
                        self.keep();
                    }
                    self.done.arguments.extend(more);
                    return Ok(());
                }
                None => match treatment(self.command, &name) {
                    Some(Not(advice)) => return Err(format!("{name}: {advice}")),
                    Some(As(option)) => more.push(OsString::from(option)),
                    Some(Nothing) => self.done.ignored.push(name),
                    Some(NothingWithValue) => {
                        self.done.ignored.push(name);
                        if rest.is_empty() {
                            self.next();
                        }
                        break;
                    }
                    // Unknown: clap refuses it.
                    None => kept.push(*letter),
                },
            }
        }
        if kept.len() > 1 {
            self.done.arguments.push(OsString::from_vec(kept));
        }
        self.done.arguments.extend(more);
        Ok(())
    }

    /// Returns whether a port follows `-P`, as in scp; in rsync it means `--partial --progress`.
    fn is_port(&self, rest: &[u8]) -> Result<bool, String> {
        let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        if !rest.is_empty() {
            return Ok(is_number(rest));
        }
        let Some(next) = self.left.first().filter(|next| is_number(next.as_bytes())) else { return Ok(false) };
        if Path::new(next).symlink_metadata().is_ok() {
            let next = next.display();
            return Err(format!("-P {next}: write --ssh-port {next}, or ./{next} for the file of this name"));
        }
        Ok(true)
    }

    /// Refuses a path as the value of an option that is a switch in rsync: -i itemizes, -J omits the times of links.
    fn check_value(&self, name: &str, rest: &[u8], is_behind_others: bool) -> Result<(), String> {
        let next = self.left.first().map(|next| next.as_bytes());
        let value = if rest.is_empty() { next } else { Some(rest) };
        let value = OsStr::from_bytes(value.unwrap_or_default());
        // Only a letter by itself certainly has this program's meaning.
        let is_switch = self.command == "sync" && is_behind_others;
        match name {
            "-i" if is_switch || is_no_key(value) => {
                Err("-i: names an ssh key (-i KEY, by itself); use -v to list changes".to_owned())
            }
            "-J" if is_switch || is_no_host(value) => {
                Err("-J: names a jump host (-J HOST, by itself); times of links are always preserved".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn takes_value(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|count| count.takes_values())
}

/// Returns whether this cannot be the file of a key: a directory, a remote path, or a file of another kind.
fn is_no_key(value: &OsStr) -> bool {
    let path = Path::new(value);
    let Ok(found) = path.metadata() else { return matches!(Location::parse(value), Ok(Location::Remote { .. })) };
    if !found.is_file() {
        return found.is_dir();
    }
    let mut start = [0; 5];
    // ssh reports unreadable files.
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    let begins = |text: &[u8]| start.starts_with(text);
    read.is_ok() && !(begins(b"-----") || begins(b"ssh-") || begins(b"ecdsa") || begins(b"sk-"))
}

/// Returns whether this cannot be a host.
fn is_no_host(value: &OsStr) -> bool {
    let bytes = value.as_bytes();
    Path::new(value).symlink_metadata().is_ok() || (bytes.contains(&b'/') && !bytes.starts_with(b"ssh://"))
}

/// Returns the advice for an option of ssh that another command does not have.
pub(crate) fn answer(command: &str, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    match (command, typed.split('=').next().filter(|_| is_unknown)?) {
        ("verify" | "doctor" | "pipe" | "tunnel" | "proxy" | "bootstrap", "-p") => {
            Some("-p: use -P PORT for the port of the ssh server".to_owned())
        }
        ("verify" | "doctor" | "pipe" | "tunnel" | "proxy" | "bootstrap", option @ ("-o" | "-F")) => {
            Some(format!("{option}: {SSH}"))
        }
        _ => None,
    }
}
