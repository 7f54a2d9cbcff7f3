//! Options of scp and rsync that have no meaning here: each is answered with what to use in its place.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options as they are typed, and the answer.
const ANSWERS: &[(&[&str], &str)] = &[
    (
        &["-z", "-C", "--compress"],
        "data is sent as it is; compress files that shrink before they are sent, or leave the option out",
    ),
    (&["-l", "--bwlimit"], "use --limit RATE, in bits per second (--limit 8M) or bytes (--limit 1MB/s)"),
    (
        &["--inplace", "--append", "--append-verify", "--no-whole-file", "--whole-file", "-W"],
        "a file is replaced by a whole new one when that has arrived and is verified; leave the option out",
    ),
    (
        &["--partial", "--partial-dir", "--delay-updates", "--temp-dir"],
        "what an interrupted run has received is kept and used by the next run anyway; leave the option out",
    ),
    (&["--backup", "-b", "--backup-dir", "--suffix"], "there are no backups of replaced files; copy the target before"),
    (
        &["-o", "-g", "--owner", "--group", "--numeric-ids", "--chown", "--fake-super"],
        "owners and groups are not copied: files belong to whoever receives them",
    ),
    (
        &["-A", "--acls", "-X", "--xattrs"],
        "ACLs and extended attributes are not copied; `tar --acls --xattrs` keeps them",
    ),
    (&["-D", "--devices", "--specials"], "devices, sockets and pipes are not copied; they are listed as skipped"),
    (&["-S", "--sparse"], "holes and long runs of zeros stay holes anyway; leave the option out"),
    (&["-c"], "use --checksum"),
    (&["-e", "--rsh"], "use --ssh 'CMD', or -P, -i and -J for the port, the key and a jump host"),
    (&["--rsync-path"], "use --remote-bin PATH"),
    (&["-L", "--copy-links", "--dereference"], "use --links follow"),
    (&["-T"], "use --trust-sender to accept names that were not requested"),
    (&["-B", "-O", "-s", "-3"], "scp's option has no meaning here; leave it out"),
    (&["-F"], "use --ssh 'ssh -F FILE'"),
    (&["--remove-source-files"], "files are never removed from a source; remove them after `downpour verify`"),
    (&["--size-only", "--ignore-times", "-I"], "use --checksum to compare contents"),
    (&["--stats", "-h", "--human-readable", "--info", "--itemize-changes"], "use -v, or --json for programs"),
    (&["--delete-after", "--delete-delay", "--del"], "use --delete: nothing is deleted before all has arrived"),
    (
        &["--delete-before", "--delete-during"],
        "use --delete: it deletes after all has arrived; make room by hand before",
    ),
    (&["--delete-excluded"], "use --delete without --exclude; excluded names at the target are kept"),
];

/// Returns the answer to an unknown option, if it is one of these.
pub(crate) fn answer(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let option = typed.split('=').next().filter(|_| error.kind() == ErrorKind::UnknownArgument)?;
    let (_, answer) = ANSWERS.iter().find(|(options, _)| options.contains(&option))?;
    Some(format!("{option}: {answer}"))
}
