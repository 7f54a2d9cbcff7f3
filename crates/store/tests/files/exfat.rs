//! A target on exFAT in user space, which reports invalid names like names that do not exist, and differs from other
//! file systems in the letters that it treats as equal.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use downpour_store::{Existing, Filter, NoticeKind, ReceiveRequest};
use tempfile::{TempDir, tempdir};

use crate::common::{names, transfer_as};

/// A mounted image.
struct Mounted {
    here: TempDir,
    device: String,
}

impl Mounted {
    /// Mounts one; the error is the missing prerequisite.
    fn new() -> Result<Self, String> {
        let here = tempdir().expect("a directory");
        let image = here.path().join("image");
        fs::create_dir(here.path().join("on")).expect("a directory");
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("an image");
        let image = image.to_str().expect("text");
        run("mkfs.exfat", &[image])?;
        let device = run("losetup", &["-f", "--show", image])?.trim().to_owned();
        let mounted = Self { here, device };
        run("mount.exfat-fuse", &[&mounted.device, mounted.path().to_str().expect("text")])?;
        Ok(mounted)
    }

    fn path(&self) -> PathBuf {
        self.here.path().join("on")
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Only a mounted image is unmounted.
        drop(run("umount", &[self.path().to_str().expect("text")]));
        drop(run("losetup", &["-d", &self.device]));
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(said(&output.stdout)) } else { Err(format!("{program}: {}", said(&output.stderr))) }
}

#[test]
fn exfat_refuses_each_name_with_its_reason() {
    let mounted = match Mounted::new() {
        Ok(mounted) => mounted,
        Err(why) => {
            eprintln!("NOT RUN: exFAT cannot be mounted: {why}");
            return;
        }
    };
    let from = tempdir().expect("a directory");
    let tree = from.path().join("tree");
    fs::create_dir_all(tree.join("d:e")).expect("directories");
    // exFAT distinguishes the Kelvin sign from k and an i without a dot from i; both sigmas are equal.
    let held = ["k", "\u{212a}", "i", "\u{131}", "\u{df}", "ss", "plain"];
    let refused = [
        ("K", NoticeKind::NameCollision),
        ("a:b", NoticeKind::BadCharacters),
        ("d:e", NoticeKind::BadCharacters),
        ("d:e/f", NoticeKind::NoDirectory),
        ("what?", NoticeKind::BadCharacters),
        ("\u{3c3}", NoticeKind::NameCollision),
        ("link", NoticeKind::NoLinks),
    ];
    for name in held.iter().chain(refused.iter().map(|(name, _)| name)).filter(|name| !["d:e", "link"].contains(name)) {
        fs::write(tree.join(name), name).expect("a file");
    }
    fs::write(tree.join("\u{3c2}"), "final").expect("a file");
    symlink("plain", tree.join("link")).expect("a link");

    let spec = ReceiveRequest { existing: Existing::Replace, ..ReceiveRequest::into_directory(mounted.path()) };
    for run in 0..2 {
        let done = transfer_as(std::slice::from_ref(&tree), spec.clone(), 1, &mut |_| {}).expect("a transfer");
        let shown = |path: &[u8]| String::from_utf8_lossy(path).trim_start_matches("tree/").to_owned();
        let mut notices: Vec<_> =
            done.notices.iter().filter(|notice| notice.kind.is_failure()).map(|n| (shown(&n.path), n.kind)).collect();
        let mut expected: Vec<_> = refused.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect();
        let key = |(name, _): &(String, NoticeKind)| name.clone();
        // Of k and K the first one sent stays, which is K.
        expected[0].0 = "k".to_owned();
        notices.sort_by_key(key);
        expected.sort_by_key(key);
        assert_eq!(notices, expected, "run {run}");
    }
    let found = names(&mounted.path().join("tree"));
    let mut wanted: Vec<String> =
        held.iter().map(|name| if *name == "k" { "K" } else { name }).chain(["\u{3c2}"]).map(str::to_owned).collect();
    wanted.sort();
    assert_eq!(sorted(found), wanted);
    let content = |name: &str| fs::read_to_string(mounted.path().join("tree").join(name)).expect("a file");
    assert_eq!(
        (content("\u{212a}"), content("\u{131}"), content("i")),
        ("\u{212a}".into(), "\u{131}".into(), "i".into())
    );
    assert!(mounted.path().join("tree/plain").is_file());

    // A name that is no longer sent is deleted, although a sent name is equal to it on other file systems.
    for name in ["k", "K", "\u{131}", "\u{3c3}"] {
        fs::remove_file(tree.join(name)).expect("a file");
    }
    let spec = ReceiveRequest { delete: Some(Filter::default()), ..spec };
    transfer_as(std::slice::from_ref(&tree), spec, 1, &mut |_| {}).expect("a transfer");
    let wanted = ["i", "plain", "ss", "\u{df}", "\u{3c2}", "\u{212a}"];
    assert_eq!(sorted(names(&mounted.path().join("tree"))), wanted);
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}
