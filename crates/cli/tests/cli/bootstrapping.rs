//! `bootstrap` to a machine without the program.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::far::Far;

fn is_the_program(path: &Path) -> bool {
    let mode = fs::metadata(path).expect("a file").permissions().mode();
    mode & 0o777 == 0o755
        && fs::read(path).expect("a file") == fs::read(env!("CARGO_BIN_EXE_downpour")).expect("a file")
}

#[test]
fn the_program_is_copied_and_said_so() {
    let far = Far::new();
    let said = far.run("bootstrap", ["far"]).expect(0).stderr;
    let path = far.there(".local/bin/downpour");
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("Copying downpour (") && lines[0].ends_with(") to ~/.local/bin/downpour on far"),
        "{said}"
    );
    assert_eq!(lines[1..], [format!("Installed {} on far", path.display())]);
    assert!(is_the_program(&path));
    // Another one takes its place, and nothing else is left.
    fs::write(&path, "older").expect("a file");
    assert_eq!(far.run("bootstrap", ["-q", "far"]).expect(0).stderr, "");
    assert!(is_the_program(&path));
    assert_eq!(fs::read_dir(far.there(".local/bin")).expect("a folder").count(), 1);
    let odd = "a b/$(id) 'x'";
    far.run("bootstrap", ["--to", odd, "far"]).expect(0);
    assert!(is_the_program(&far.there(odd)));
}

#[test]
fn what_does_not_run_there_gets_no_name() {
    let far = Far::new();
    let file = far.there("text");
    fs::write(&file, "not a program").expect("a file");
    let ended = far.run("bootstrap", ["--from", file.to_str().expect("text"), "far"]);
    ended.expect_line(1, "downpour was not copied to far: it does not run there");
    assert_eq!(fs::read_dir(far.there(".local/bin")).expect("a folder").count(), 0);
    far.run("bootstrap", ["--to", ".local/bin", "far"]).expect_line(1, ".local/bin is a folder: name a file in it");
    assert_eq!(fs::read_dir(far.there(".local/bin")).expect("a folder").count(), 0);
    far.run("bootstrap", ["--to", "new/", "far"]).expect_line(1, "new/ is a folder: name a file in it");
    far.run("bootstrap", ["--to", "", "far"]).expect(2);
    far.run("bootstrap", ["--from", "/dev/zero", "far"]).expect_line(1, "/dev/zero: it is no file");
    far.run("bootstrap", ["--from", "/bin/true", "far"]).expect_line(1, "it is no downpour, or has not arrived whole");
    assert_eq!(fs::read_dir(far.there(".local/bin")).expect("a folder").count(), 0);
    far.run("bootstrap", ["--to", "text/downpour", "far"]).expect_line(1, "downpour was not copied to far");
    far.run("bootstrap", ["--from", "/nonexistent", "far"]).expect_line(1, "/nonexistent: No such file");
}
