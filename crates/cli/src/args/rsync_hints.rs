//! Words of scp and rsync that are none of this program's: each stands for options of its own, is accepted since it changes
//! nothing here, or is answered with what to use in its place. None is dropped that would change paths, modes, or what is
//! chosen.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use downpour::remote::Location;

use super::command_at;

/// What becomes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It stands for this option.
    As(&'static str),
    /// It is accepted: it changes nothing here.
    Nothing,
    /// The same, and its value with it.
    NothingWithValue,
    /// It is refused with this advice.
    Not(&'static str),
}

use Word::{As, Not, Nothing, NothingWithValue};

/// Words, and what becomes of them: of `cp`, whose users know scp, of `sync`, whose users know rsync, and of both.
type Words = &'static [(&'static [&'static str], Word)];

const LEAVE: &str = "it has no counterpart here; leave it out";
const RATE: &str = "use --limit RATE, in bits per second (--limit 8M) or bytes (--limit 1MB/s)";
const SSH: &str = "use --ssh 'ssh -o OPTION' or --ssh 'ssh -F FILE'";
const REFERENCE: &str = "use --link-dest DIR, or copy the older one first";
const WHOLE: &str = "a file is replaced by a whole new one when that has arrived and is verified; leave the option out";
const SHOWN: &str = "use -v or -n and redirect stdout, or --json for programs";
const OWNERS: &str = "run sync as the user that the files are to belong to";
const DAEMON: &str = "it is for daemons of rsync, which do not speak to downpour; leave it out";
const LINKS: &str = "use --links follow to copy what links point to, or --links skip";
const BATCH: &str = "a transfer cannot be recorded and repeated; copy to each target, or to one and from there";

const FUZZY: &str = "differences are taken from the file of the same name alone; leave it out";
const PER_DIRECTORY: &str = "rules of single directories would have to be read on both sides; use --exclude-from FILE";

const OF_CP: Words = &[
    (&["-C", "-O", "-s"], Nothing),
    (&["--perms"], As("--preserve")),
    (&["-l"], Not(RATE)),
    (&["-o", "-F"], Not(SSH)),
    (&["-c"], Not("use --ssh 'ssh -c CIPHER'; what goes over UDP has one cipher")),
    (&["-B"], Not("use --ssh 'ssh -o BatchMode=yes'")),
    (&["-S"], Not("use --ssh PROGRAM")),
    (&["-D"], Not("use --ssh CMD and --remote-bin PATH")),
    (
        &["-R"],
        Not(
            "for rsync's -R write --relative; scp's is not needed: from host to host the data goes directly if it can, and through this machine with -3",
        ),
    ),
    (&["-T"], Not("use --trust-sender")),
    (&["-g"], Not("use --group")),
];

const OF_SYNC: Words = &[
    (&["--recursive", "--perms", "-S", "--secluded-args", "--protect-args", "-s"], Nothing),
    (&["--block-size", "-B"], NothingWithValue),
    (&["-c"], As("--checksum")),
    (&["-l"], As("--links=copy")),
    (&["--delete-after", "--delete-delay"], As("--delete")),
    (&["-T"], Not("files are staged within the target directory; leave the option out")),
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
        Not("only root can preserve owners; leave them out, or write an archive with `tar` there"),
    ),
    (
        &["--temp-dir", "--partial-dir", "--delay-updates"],
        Not(
            "files are staged within the target directory, and each takes its name when it is whole; leave the option out",
        ),
    ),
    (&["--bwlimit"], Not(RATE)),
    (&["--inplace", "--append", "--append-verify", "--preallocate", "--write-devices", "--copy-devices"], Not(WHOLE)),
    (&["-e", "--rsh"], Not("use --ssh 'CMD', or -P, -i and -J for the port, the key and a jump host")),
    (&["--rsync-path"], Not("use --remote-bin PATH")),
    (&["-L", "--copy-links", "--dereference"], Not("use --links follow")),
    (&["--copy-unsafe-links", "--copy-dirlinks", "-k", "--munge-links", "--insecure-links"], Not(LINKS)),
    (&["--keep-dirlinks", "-K", "--confine-root"], Not("links at the target are not followed; leave it out")),
    (&["-@"], Not("use --modify-window=SECONDS")),
    (&["--fuzzy"], Not(FUZZY)),
    (&["--itemize-changes", "--debug", "--stderr"], Not("use -v, or --json for programs")),
    (&["--8-bit-output", "-8"], Not("names are escaped on a terminal; use --json for programs")),
    (&["--del"], Not("use sync --delete: it deletes after all has arrived")),
    (
        &["--delete-before", "--delete-during"],
        Not("use sync --delete: it deletes after all has arrived; if that takes too much space, make room first"),
    ),
    // Of `cp`: `sync` has them above.
    (&["--delete-after", "--delete-delay"], Not("use sync --delete: it deletes after all has arrived")),
    (&["--delete-excluded"], Not("use sync --delete without --exclude; excluded names at the target are kept")),
    (
        &["--ignore-missing-args", "--delete-missing-args"],
        Not("a source that does not exist is an error; leave it out, or list names with --files-from"),
    ),
    (&["--compare-dest", "--copy-dest"], Not(REFERENCE)),
    (&["--cvs-exclude"], Not("use --include, --exclude, --include-from and --exclude-from")),
    (&["--max-alloc"], Not("use --max-memory SIZE")),
    (&["--log-file", "--log-file-format", "--out-format", "--list-only"], Not(SHOWN)),
    (&["--ignore-errors", "--force"], Not("nothing is deleted where the source could not be read; see sync --delete")),
    (&["--no-implied-dirs"], Not("directories on the way to a name always come with it; leave it out")),
    (&["-m", "--prune-empty-dirs", "-d", "--dirs", "--old-dirs", "--old-d", "--old-args"], Not(LEAVE)),
    (&["--executability"], Not("modes are copied as they are, with cp -p or sync; leave it out")),
    (
        &["--atimes", "-U", "--crtimes", "-N", "--omit-link-times", "--open-noatime"],
        Not("modification times are always copied, and no others; leave it out"),
    ),
    (&["--drop-D"], Not("leave --specials and -a out")),
    (&["--write-batch", "--only-write-batch", "--read-batch"], Not(BATCH)),
    (&["--stop-after", "--stop-at"], Not("use `timeout TIME downpour ...`: the same command continues later")),
    (&["--address", "--contimeout", "--password-file", "--early-input", "--sockopts", "--protocol"], Not(DAEMON)),
    (&["--copy-as"], Not("run downpour as that user")),
    (&["--iconv"], Not("names are copied byte by byte; convert them with `convmv`")),
    (&["--remote-option", "-M"], Not("both sides get the same options; use --remote-bin for the program there")),
];

/// How a word begins that turns an option off.
const OFF: &str = "--no-";
const TURNED_OFF: &str = "nothing can be turned off that an option implies; write those that are wanted one by one";

/// Returns the options that the table names in place of others, with the words that it has them from.
#[cfg(test)]
pub(super) fn named() -> impl Iterator<Item = (String, &'static str)> {
    let all = [OF_CP, OF_SYNC, OF_BOTH].into_iter().flatten();
    let said = all.filter_map(|(_, word)| match word {
        As(said) | Not(said) => Some(*said),
        Nothing | NothingWithValue => None,
    });
    said.flat_map(|said| {
        let words = said.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.filter_map(|word| word.strip_prefix("--")).map(move |name| (name.to_owned(), said))
    })
}

/// What becomes of a word of a command, if it is one of these.
fn fate(command: &str, option: &str) -> Option<Word> {
    let own = if command == "cp" { OF_CP } else { OF_SYNC };
    let found = own.iter().chain(OF_BOTH).find(|(options, _)| options.contains(&option)).map(|(_, word)| *word);
    found.or_else(|| option.starts_with(OFF).then_some(Not(TURNED_OFF)))
}

/// Arguments in this program's words.
#[derive(Debug, Default)]
pub(crate) struct Translated {
    pub(crate) arguments: Vec<OsString>,
    /// Words that change nothing here.
    pub(crate) ignored: Vec<String>,
}

impl Translated {
    /// The one line about the words that change nothing.
    pub(crate) fn note(&self) -> Option<String> {
        let (last, others) = self.ignored.split_last()?;
        Some(match others {
            [] => format!("{last} changes nothing here"),
            others => format!("{} and {last} change nothing here", others.join(", ")),
        })
    }
}

/// Translates the arguments of `cp` and `sync`, whose own options `definition` has; others remain as they are.
///
/// # Errors
/// The first word that is none here, with what to use in its place.
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
            None => match fate(self.command, name) {
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

    /// Whether an option that is a switch for rsync, and takes one of a few words here, has such a word behind it.
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

    /// Reads `--info=FLAGS`: what is shown of progress and at the end.
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

    /// Takes the next word for what it stands for.
    fn apply(&mut self, name: &str, word: Word) -> Result<(), String> {
        match word {
            Not(advice) => return Err(format!("{name}: {advice}")),
            As(option) => self.done.arguments.push(option.into()),
            Nothing | NothingWithValue => self.done.ignored.push(name.to_owned()),
        }
        self.next();
        Ok(())
    }

    /// Reads letters behind one `-`.
    fn short(&mut self) -> Result<(), String> {
        let Some(word) = self.next() else { return Ok(()) };
        let (mut kept, mut more) = (vec![b'-'], Vec::new());
        let letters = &word.as_bytes()[1..];
        // Among others, rsync's letter makes numbers readable, as they are anyway; alone, it asks for help.
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
                None => match fate(self.command, &name) {
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
                    // Unknown: clap refuses it, and lists what there is.
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

    /// Whether `-P` has a port behind it, as for scp; for rsync it asks for progress, and to keep parts.
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

    /// Refuses a path as the value of an option that is a switch for rsync: what it lists with -i, and links with -J.
    fn check_value(&self, name: &str, rest: &[u8], is_behind_others: bool) -> Result<(), String> {
        let next = self.left.first().map(|next| next.as_bytes());
        let value = if rest.is_empty() { next } else { Some(rest) };
        let value = OsStr::from_bytes(value.unwrap_or_default());
        // Only the letter alone is certain to be meant as it is here.
        let is_switch = self.command == "sync" && is_behind_others;
        match name {
            "-i" if is_switch || is_no_key(value) => {
                Err("-i: it names a key of ssh here (-i KEY, by itself); use -v for a list of what changes".to_owned())
            }
            "-J" if is_switch || is_no_host(value) => {
                Err("-J: it names a jump host here (-J HOST, by itself); times of links are always copied".to_owned())
            }
            _ => Ok(()),
        }
    }
}

fn takes_value(option: &Arg) -> bool {
    option.get_num_args().is_some_and(|count| count.takes_values())
}

/// Whether this cannot be the file of a key: it is a directory, on another machine, or holds something else.
fn is_no_key(value: &OsStr) -> bool {
    let path = Path::new(value);
    let Ok(found) = path.metadata() else { return matches!(Location::parse(value), Ok(Location::Remote { .. })) };
    if !found.is_file() {
        return found.is_dir();
    }
    let mut start = [0; 5];
    // What cannot be read is left to ssh.
    let read = File::open(path).and_then(|mut file| file.read(&mut start));
    let begins = |text: &[u8]| start.starts_with(text);
    read.is_ok() && !(begins(b"-----") || begins(b"ssh-") || begins(b"ecdsa") || begins(b"sk-"))
}

/// Whether this cannot be a host.
fn is_no_host(value: &OsStr) -> bool {
    let bytes = value.as_bytes();
    Path::new(value).symlink_metadata().is_ok() || (bytes.contains(&b'/') && !bytes.starts_with(b"ssh://"))
}

/// Returns the answer to an option of ssh that another command does not know.
pub(crate) fn answer(command: &str, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    match (command, typed.split('=').next().filter(|_| is_unknown)?) {
        ("verify" | "doctor" | "pipe" | "tunnel" | "proxy" | "bootstrap", "-p") => {
            Some("-p: the port of the ssh server is -P PORT".to_owned())
        }
        ("verify" | "doctor" | "pipe" | "tunnel" | "proxy" | "bootstrap", option @ ("-o" | "-F")) => {
            Some(format!("{option}: {SSH}"))
        }
        _ => None,
    }
}
