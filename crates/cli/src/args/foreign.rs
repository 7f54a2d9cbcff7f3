//! Options of scp and rsync that have no meaning here: each is answered with what to use in its place.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options, and what to use: of `cp`, whose users know scp, of `sync`, whose users know rsync, and of both.
type Answers = &'static [(&'static [&'static str], &'static str)];

const OF_CP: Answers = &[
    (&["-l"], "use --limit RATE, in bits per second (--limit 8M) or bytes (--limit 1MB/s)"),
    (&["-o", "-F"], "use --ssh 'ssh -o OPTION' or --ssh 'ssh -F FILE'"),
    (&["-R"], "from host to host the data goes directly if it can, and through this machine with -3; leave it out"),
    (&["-B", "-O", "-s", "-T", "-D", "-c"], "it has no meaning here; leave it out"),
];

const OF_SYNC: Answers = &[
    (&["--chown", "--usermap", "--groupmap"], "run sync as the user that the files are to belong to"),
    (&["--fake-super"], "only root can preserve owners; leave them out, or write an archive with `tar` there"),
    (&["-c"], "use --checksum"),
    (&["-T", "--temp-dir", "--partial-dir"], "files are staged within the target folder; leave the option out"),
];

const OF_BOTH: Answers = &[
    (
        &["-z", "-C", "--compress"],
        "data is sent as it is; compress files that shrink before they are sent, or leave the option out",
    ),
    (&["--bwlimit"], "use --limit RATE, in bits per second (--limit 8M) or bytes (--limit 1MB/s)"),
    (
        &["--inplace", "--append", "--append-verify"],
        "a file is replaced by a whole new one when that has arrived and is verified; leave the option out",
    ),
    (&["--no-whole-file"], "only the differences of a changed file are sent anyway; leave the option out"),
    (
        &["--partial"],
        "what an interrupted run has received is kept and used by the next run anyway; leave the option out",
    ),
    (&["-S", "--sparse"], "holes and long runs of zeros become holes anyway; leave the option out"),
    (&["-e", "--rsh"], "use --ssh 'CMD', or -P, -i and -J for the port, the key and a jump host"),
    (&["--rsync-path"], "use --remote-bin PATH"),
    (&["-L", "--copy-links", "--dereference"], "use --links follow"),
    (&["--size-only", "--ignore-times", "-I"], "use --checksum to compare contents"),
    (&["--stats", "--human-readable", "--info", "--itemize-changes"], "use -v, or --json for programs"),
    (&["--del", "--delete-after", "--delete-delay"], "use sync --delete: it deletes after all has arrived"),
    (
        &["--delete-before", "--delete-during"],
        "use sync --delete: it deletes after all has arrived; if that takes too much space, make room first",
    ),
    (&["--recursive", "--perms", "--times"], "sync always does that, and cp does with -a; leave it out"),
    (&["--link-dest", "--compare-dest", "--copy-dest"], "there are no reference folders; copy the older one first"),
    (&["--filter", "-f", "--cvs-exclude"], "use --include, --exclude, --include-from and --exclude-from"),
    (&["--max-size", "--min-size"], "use --files-from with `find -size`"),
    (&["--log-file", "--out-format", "--list-only"], "use -v or -n and redirect stdout, or --json for programs"),
    (&["--ignore-errors", "--force"], "nothing is deleted where the source could not be read; see sync --delete"),
    (
        &["--relative", "-m", "--prune-empty-dirs", "-d", "--dirs", "--chmod"],
        "it has no counterpart here; leave it out",
    ),
    (&["--compress-level"], "data is sent as it is; leave the option out"),
    (&["--delete-excluded"], "use sync --delete without --exclude; excluded names at the target are kept"),
];

/// Returns the answer to an unknown option of a command, if it is one of these.
pub(crate) fn answer(command: &str, error: &clap::Error) -> Option<String> {
    let of_command = match command {
        "cp" => OF_CP,
        "sync" => OF_SYNC,
        _ => return None,
    };
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() == ErrorKind::ValueValidation && typed.starts_with("--ssh-port") {
        return Some(
            "-P: takes the port of the ssh server; progress is shown, and parts that have arrived are kept, anyway"
                .into(),
        );
    }
    let option = typed.split('=').next().filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let (_, answer) = of_command.iter().chain(OF_BOTH).find(|(options, _)| options.contains(&option))?;
    Some(format!("{option}: {answer}"))
}
