//! The options of rsync(1) and scp(1): each works, is accepted because it changes nothing here, or is refused before
//! anything has changed. None that would change paths, modes or the selection of files is ignored silently.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use tempfile::{TempDir, tempdir};

use crate::program::{Program, command};
use crate::terminal::Terminal;
use crate::tree;

/// All options of rsync 3.5 in the order of its help, with values where needed: those that `sync` has.
const RSYNC_WORKS: &str = "--verbose -v --quiet -q --checksum -c --archive -a -r --backup -b --backup,--suffix=.old \
    --backup-dir=.old --update -u --links -l --safe-links --hard-links -H -p --acls -A --xattrs -X --owner -o --group -g \
    --devices --specials -D -t --dry-run -n --whole-file -W --one-file-system -x --existing --ignore-non-existing \
    --ignore-existing --remove-source-files --delete --delete-delay --delete-after --delete,--max-delete=5 --numeric-ids \
    --max-size=1 --min-size=1 --ignore-times -I --size-only --modify-window=1 \
    --filter=-_x -f,-_x --chmod=u+x --link-dest=../x --mkpath --relative -R --omit-dir-times -O --no-perms --no-p --no-owner --no-o --no-group \
    --no-g --no-D --timeout=30 --exclude=x --include=x --files-from=list --files-from=list0,--from0 --files-from=list0,-0 --exclude-from=list \
    --include-from=list --trust-sender --port=60001 --stats --ipv4 -4 --ipv6 -6 --info=stats2";

/// Those that change nothing here.
const RSYNC_NOTHING: &str = "--recursive --inc-recursive --i-r --no-inc-recursive --no-i-r --perms --times --sparse -S --no-motd \
    --no-whole-file --no-W --checksum-choice=md5 --cc=md5 --block-size=700 -B,700 -B700 --partial --compress -z \
    --compress-choice=zstd --zc=zstd --compress-level=3 --zl=3 --compress-threads=2 --zt=2 --skip-compress=gz \
    --secluded-args -s --blocking-io --outbuf=L --human-readable --progress -P --fsync --checksum-seed=7 --info=progress2 \
    --info=name0,progress";

/// Those that are refused.
const RSYNC_REFUSED: &str = "--debug=ALL --stderr=all --fuzzy -y --no-implied-dirs --inplace \
    --append --append-verify --dirs -d --old-dirs --old-d --copy-links -L --copy-unsafe-links --insecure-links \
    --confine-root=. --munge-links --copy-dirlinks -k --keep-dirlinks -K --executability -E --copy-devices \
    --write-devices --drop-D --atimes -U --open-noatime --crtimes -N --omit-link-times --super --fake-super \
    --preallocate --rsh=ssh -e,ssh --rsync-path=x --del --delete-before --delete-during --delete-excluded \
    --ignore-missing-args --delete-missing-args --ignore-errors --force --max-alloc=1 \
    --partial-dir=x --delay-updates --prune-empty-dirs -m --usermap=a:b --groupmap=a:b --chown=a:b --contimeout=1 \
    -@,1 --temp-dir=x -T,x --compare-dest=x --copy-dest=x \
    --cvs-exclude -C -F --old-args --copy-as=a --address=a --sockopts=a --8-bit-output -8 --itemize-changes \
    --remote-option=a -M,a --out-format=a --log-file=a --log-file-format=a --password-file=a --early-input=a --list-only \
    --bwlimit=1 --stop-after=1 --stop-at=1 --write-batch=a --only-write-batch=a --read-batch=a --protocol=30 --iconv=a \
    --info=del -ai -aJ -avi -i,tree -J,tree";

/// All of OpenSSH's scp, of which `cp` has some.
const SCP_WORKS: &str = "-3 -4 -6 -A -p -q -r -v -P,2222 -i,key -J,gate";
const SCP_NOTHING: &str = "-C -O -s -rC -z --compress --partial --times --progress -P -rP";
const SCP_REFUSED: &str = "-B -R -T -c,aes128-ctr -D,x -F,x -l,800 -o,Port=22 -S,x -l800";

/// Returns a directory with a tree, lists and a file that looks like a key.
fn directory_with_tree() -> TempDir {
    let local = tempdir().expect("a directory");
    fs::create_dir_all(local.path().join("tree/sub")).expect("directories");
    for name in ["tree/a", "tree/sub/b"] {
        tree::file(&local.path().join(name), 1000);
    }
    symlink("a", local.path().join("tree/link")).expect("a link");
    fs::write(local.path().join("list"), "a\n").expect("a list");
    fs::write(local.path().join("list0"), "a\0").expect("a list");
    fs::write(local.path().join("key"), "-----BEGIN OPENSSH PRIVATE KEY-----\n").expect("a key");
    local
}

/// Runs a command with these options, separated by commas, for `tree/` and `new`.
fn run(name: &str, options: &str, local: &Path) -> (Option<i32>, String) {
    let mut line = command([name]);
    let mut options: Vec<&str> = options.split(',').collect();
    if options.len() == 2 && options[0].starts_with("--info=") {
        options = vec!["--info=name0,progress"];
    }
    line.args(options).args(["tree/", "new"]).current_dir(local);
    if name == "cp" {
        line.arg("--recursive");
    }
    let ended = Program::start(line).end();
    (ended.status.code(), ended.stderr)
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split_ascii_whitespace().filter(|word| *word != "\\")
}

#[test]
fn rsync_and_scp_options_classified() {
    for (name, works, nothing, refused) in
        [("sync", RSYNC_WORKS, RSYNC_NOTHING, RSYNC_REFUSED), ("cp", SCP_WORKS, SCP_NOTHING, SCP_REFUSED)]
    {
        for word in words(works) {
            let local = directory_with_tree();
            fs::create_dir(local.path().join("new")).expect("a directory");
            let (code, stderr) = run(name, word, local.path());
            assert_eq!(code, Some(0), "{name} {word}: {stderr}");
        }
        for word in words(nothing) {
            let local = directory_with_tree();
            let (code, stderr) = run(name, word, local.path());
            assert_eq!(code, Some(0), "{name} {word}: {stderr}");
            assert!(!stderr.contains("effect"), "a script is told nothing: {stderr}");
            tree::assert_same(&local.path().join("tree"), &local.path().join("new"));
        }
        for word in words(refused) {
            let local = directory_with_tree();
            let (code, stderr) = run(name, word, local.path());
            assert_eq!(code, Some(2), "{name} {word}: {stderr}");
            let option = word.split(['=', ',']).next().expect("an option");
            let letter = option.trim_start_matches(['-', 'a', 'v']);
            let option = if option.starts_with("--") {
                option.to_owned()
            } else {
                format!("-{}", &letter[..letter.len().min(1)])
            };
            assert!(
                stderr.starts_with(&format!("downpour: {option}: ")) && stderr.lines().count() == 1,
                "{word}: {stderr}"
            );
            assert!(!local.path().join("new").exists(), "{name} {word} has changed something");
        }
    }
}

#[test]
fn ignored_options_noted_on_terminal() {
    let local = directory_with_tree();
    let (mut terminal, stdin, stderr) = Terminal::open();
    let mut line = command(["sync", "-avzP", "--partial", "tree/", "new"]);
    line.current_dir(local.path()).stdin(stdin).stderr(Stdio::from(stderr));
    let program = Program::start(line);
    terminal.wait_for("downpour: warning: -z, -P and --partial have no effect");
    program.end().expect(0);
    tree::assert_same(&local.path().join("tree"), &local.path().join("new"));
}

/// If an option of rsync takes no value and the same option takes one here, a path is never taken for the value.
#[test]
fn path_not_taken_for_option_value() {
    let local = directory_with_tree();
    for name in ["bar", "copy", "skip", "2222"] {
        tree::file(&local.path().join(name), 10);
    }
    for (option, path) in
        [("--progress", "bar"), ("--links", "copy"), ("--existing", "skip"), ("-P", "2222"), ("-aP", "2222")]
    {
        let mut line = command(["sync", option, path, "tree", "new"]);
        line.current_dir(local.path());
        let ended = Program::start(line).end().expect_line(2, &format!("./{path} for the file of this name"));
        assert!(!local.path().join("new").exists(), "{option}: {}", ended.stderr);
    }
    for (option, path) in [("--progress", "tree"), ("--links", "tree"), ("-P", "tree")] {
        let mut line = command(["sync", option, path, "new"]);
        line.current_dir(local.path());
        Program::start(line).end().expect(0);
        tree::assert_same(&local.path().join("tree"), &local.path().join("new/tree"));
    }
}

#[test]
fn stats_print_numbers_of_rsync() {
    let local = directory_with_tree();
    let run = || {
        let mut line = command(["sync", "--stats", "tree/", "new"]);
        line.current_dir(local.path());
        Program::start(line).end().expect(0).stdout
    };
    let first = run();
    for line in [
        "Number of files: 4 (reg: 2, dir: 1, link: 1)",
        "Number of deleted files: 0",
        "Number of regular files transferred: 2",
        "Total file size: 2,000 bytes",
        "Literal data: 2,000 bytes",
    ] {
        assert!(first.lines().any(|found| found == line), "no {line:?} in {first}");
    }
    let again = run();
    for line in ["Number of regular files transferred: 0", "Total file size: 2,000 bytes", "Literal data: 0 bytes"] {
        assert!(again.lines().any(|found| found == line), "no {line:?} in {again}");
    }
}
