//! All help texts in one snapshot, so that a changed option shows up as a readable diff. `INSTA_UPDATE=always cargo
//! test -p downpour-cli surface` updates it.

use crate::man_pages::COMMANDS;
use crate::program::{Program, command};

fn help(arguments: &[&str]) -> String {
    let mut command = command(arguments);
    command.env("COLUMNS", "100");
    Program::start(command).end().expect(0).stdout
}

#[test]
fn help_of_every_command() {
    let mut all = help(&["--help"]);
    for command in COMMANDS.into_iter().chain(["profile show", "profile diff"]) {
        let arguments: Vec<&str> = command.split(' ').chain(["--help"]).collect();
        all += &format!("\n=== downpour {command} --help\n{}", help(&arguments));
    }
    insta::assert_snapshot!(all);
}
