//! Random command lines that should mean the same to both programs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fastrand::Rng;

use crate::tree::{NAMES, Node, Object, Scope, Tree, aged, default_acl, random};

/// One comparison.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) source: Tree,
    /// The target before; `None` if it does not exist.
    pub(crate) target: Option<Tree>,
    /// The same for both programs: sources, then the target, relative to a directory beside that of the source.
    pub(crate) paths: Vec<OsString>,
    pub(crate) rsync: Vec<OsString>,
    pub(crate) downpour: Vec<OsString>,
    pub(crate) compared: Compared,
    /// Names in a list, relative to the source.
    pub(crate) list: Option<Vec<u8>>,
    /// Links are followed.
    follows: bool,
    /// Links are not copied as links.
    special_links: bool,
    /// Pipes are copied.
    specials: bool,
    /// Files are removed from the source.
    pub(crate) removes: bool,
    /// Directory of backups.
    pub(crate) backups: Option<&'static str>,
    /// The default ACL of the target, which new names inherit.
    pub(crate) inherited: Option<Vec<u8>>,
}

/// Which attributes have to be the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compared {
    pub(crate) owners: bool,
    pub(crate) xattrs: bool,
    pub(crate) acls: bool,
    /// ACLs are copied, rather than left as they are at the target.
    pub(crate) acls_copied: bool,
    pub(crate) hard_links: bool,
    /// Existing files are kept; downpour also keeps the attributes of directories.
    pub(crate) kept: bool,
    /// Seconds by which times may differ: rsync sets some of them where other attributes differ.
    pub(crate) window: u64,
    /// Modes are not preserved: downpour sets the sticky bit, as cp does, and not the group bits that were the mask of
    /// a removed ACL.
    pub(crate) unpreserved: bool,
    /// The times of directories do not count: rsync does not always set them where it makes backups.
    pub(crate) untimed: bool,
}

/// Name of the file with the list.
pub(crate) const LIST: &str = "list";

impl Case {
    /// Draws a case.
    pub(crate) fn random(rng: &mut Rng, scope: Scope) -> Self {
        let source = random(rng, scope);
        let target = (rng.u8(..5) > 0).then(|| aged(&source, rng, scope));
        let mut case = Self {
            paths: Vec::new(),
            rsync: vec!["-rlpt".into()],
            downpour: Vec::new(),
            compared: Compared::default(),
            list: None,
            follows: false,
            special_links: false,
            specials: false,
            removes: false,
            backups: None,
            inherited: (scope.has_acls && target.is_some() && rng.u8(..4) == 0).then(|| default_acl(rng)),
            source,
            target,
        };
        // Inherited ACLs are compared too.
        case.compared.acls = scope.has_acls;
        case.attributes(rng, scope);
        case.choices(rng);
        case.filters(rng);
        case.keeping(rng);
        case.selecting(rng);
        case.changing(rng);
        if case.follows {
            // A link to a directory that it is in: rsync goes round until the path is too long.
            let leads_up =
                |node: &Node| matches!(&node.object, Object::Link(to) if to.to_string_lossy().contains(".."));
            case.source.retain(|_, node| !leads_up(node));
        }
        case.paths(rng);
        // rsync links names to others with the same inode at the target.
        for (path, node) in case.target.iter_mut().flatten() {
            let in_source = |path: &Path| case.source.contains_key(path);
            // As root, downpour replaces another user's file with several names rather than change its attributes.
            let is_trusted = !scope.is_root || node.owner.0 == 0;
            node.same_as = node.same_as.take().filter(|first| is_trusted && in_source(path) && in_source(first));
        }
        if !case.specials {
            // Without --specials, downpour replaces no FIFO: programs may be communicating through it.
            case.target.iter_mut().for_each(|target| target.retain(|_, node| node.object != Object::Pipe));
        }
        case
    }

    /// Whether names at the target are deleted.
    pub(crate) fn deletes(&self) -> bool {
        self.rsync.iter().any(|option| option == "--delete")
    }

    /// Whether a second run repeats the work of the first.
    pub(crate) fn repeats(&self) -> bool {
        self.downpour.iter().any(|option| option == "-I")
    }

    /// Adds options of the two programs.
    fn add(&mut self, rsync: &str, downpour: &str) {
        self.rsync.push(rsync.into());
        self.downpour.extend(downpour.split_whitespace().map(OsString::from));
    }

    fn attributes(&mut self, rng: &mut Rng, scope: Scope) {
        if rng.u8(..3) == 0 {
            self.add("-a", "-a");
            (self.compared.owners, self.specials) = (true, true);
        } else if rng.u8(..4) == 0 {
            self.add("-og", "-og");
            self.compared.owners = true;
        }
        if rng.u8(..6) == 0 {
            self.add("--specials", "--specials");
            self.specials = true;
        }
        if scope.has_xattrs && rng.u8(..4) == 0 {
            self.add("-X", "-X");
            self.compared.xattrs = true;
        }
        if scope.has_acls && rng.u8(..4) == 0 {
            self.add("-A", "-A");
            self.compared.acls_copied = true;
        }
        if rng.u8(..4) == 0 {
            self.add("-H", "-H");
            self.compared.hard_links = true;
        }
    }

    fn choices(&mut self, rng: &mut Rng) {
        // Not with hard links: rsync copies a file whose first name is kept, which downpour does not send; and rsync
        // removes an existing link in favour of a hard link that it then does not make.
        match rng.u8(..12) {
            _ if self.compared.hard_links => {}
            0 => self.add("-u", "-u"),
            1 => {
                self.add("--ignore-existing", "--ignore-existing");
                self.compared.kept = true;
            }
            2 if self.target.is_some() => self.add("--existing", "--existing only"),
            _ => {}
        }
        match rng.u8(..10) {
            0 => self.add("-c", "--checksum"),
            1 => self.add("--safe-links", "--safe-links"),
            2 => {
                self.add("--no-l", "--links skip");
                self.special_links = true;
            }
            // rsync reads the extended attributes of a link, not those of its target.
            3 if !self.compared.hard_links && !self.compared.xattrs && !self.compared.acls => {
                self.add("-L", "--links follow");
                (self.follows, self.special_links) = (true, true);
            }
            _ => {}
        }
    }

    /// Backups at the target, and removal from the source.
    fn keeping(&mut self, rng: &mut Rng) {
        // rsync makes no backups of links to paths outside, makes some of files that it then keeps, and with hard links
        // others, since it uses the content of another name.
        let is_usual =
            !self.compared.hard_links && !self.compared.kept && self.rsync.iter().all(|o| o != "--safe-links");
        let choice = if is_usual { rng.u8(..8) } else { 8 };
        match choice {
            0 => self.add("--backup", "--backup"),
            1 => {
                // Not a suffix of the names: rsync makes no backup of such a name if a directory replaces it.
                self.add("--backup", "--backup");
                self.add("--suffix=.bak", "--suffix=.bak");
            }
            2 => {
                self.add("--backup-dir=old", "--backup-dir=old");
                self.backups = Some("old");
            }
            3 => {
                self.add("--backup-dir=very/old", "--backup-dir=very/old");
                self.add("--suffix=.tmp", "--suffix=.tmp");
                self.backups = Some("very");
            }
            _ => {}
        }
        self.compared.untimed = choice < 4;
        // rsync also removes the source of a file that it keeps because the target is newer, nothing below a linked
        // directory, and some files before it has read their attributes.
        let is_usual = !self.follows && !self.compared.xattrs && self.rsync.iter().all(|option| option != "-u");
        if rng.u8(..4) == 0 && is_usual {
            self.add("--remove-source-files", "--remove-source-files");
            self.removes = true;
        }
    }

    /// Which files take part, and which count as unchanged.
    fn selecting(&mut self, rng: &mut Rng) {
        // rsync decides for each name of a file, downpour for all names by the first one.
        let sizes = if self.compared.hard_links { 16 } else { rng.u8(..16) };
        let bound = [0_u32, 1, 3, 5, 100, 1024][rng.usize(..6)];
        match sizes {
            0 => self.both(&format!("--max-size={bound}")),
            1 => self.both(&format!("--min-size={bound}")),
            2 => {
                self.both("--min-size=1b");
                self.both(["--max-size=1k", "--max-size=0.5kb", "--max-size=1KiB-1"][rng.usize(..3)]);
            }
            _ => {}
        }
        let is_usual = self.rsync.iter().all(|option| option != "-c");
        match rng.u8(..16) {
            0 if is_usual => self.both("--size-only"),
            // rsync copies another content under the first name that it meets, and its mode.
            1 if is_usual && !self.compared.hard_links => self.both("-I"),
            2 => {
                self.compared.window = [1, 100_000][rng.usize(..2)];
                self.both(&format!("--modify-window={}", self.compared.window));
            }
            _ => {}
        }
    }

    /// Changes of attributes.
    fn changing(&mut self, rng: &mut Rng) {
        const CHANGES: [&str; 7] = ["D755,F644", "ug+rwX", "go-rwx", "F400", "a+r", "Du+w,Fo=", "+x"];
        // An ACL contains the bits of the mode: downpour refuses both options together.
        if self.compared.acls_copied {
            return;
        }
        if rng.u8(..6) == 0 {
            self.both(&format!("--chmod={}", CHANGES[rng.usize(..CHANGES.len())]));
        }
        match rng.u8(..12) {
            0 => self.both("-O"),
            // After a backup, rsync makes a new file.
            1 if !self.compared.hard_links && !self.compared.untimed => {
                self.both("--no-perms");
                self.compared.unpreserved = true;
            }
            2 => self.both("--no-owner"),
            3 => self.both("--no-g"),
            _ => {}
        }
    }

    /// Adds an option that both have.
    fn both(&mut self, option: &str) {
        self.add(option, option);
    }

    fn filters(&mut self, rng: &mut Rng) {
        let patterns = if rng.bool() { 0 } else { rng.usize(1..4) };
        for _ in 0..patterns {
            let mut option = OsString::from(if rng.u8(..3) == 0 { "--include=" } else { "--exclude=" });
            let pattern = pattern(rng);
            // rsync reports no dangling link if a pattern for directories excludes it.
            if self.follows && pattern.as_bytes().ends_with(b"/") {
                continue;
            }
            option.push(pattern);
            self.rsync.push(option.clone());
            self.downpour.push(option);
        }
        if rng.u8(..6) == 0 {
            self.rsync.push("--exclude=*".into());
            self.downpour.push("--exclude=*".into());
        }
    }

    fn paths(&mut self, rng: &mut Rng) {
        // An argument that cannot be sent is an error of downpour.
        let is_item = |path: &Path, node: &Node| {
            path.components().count() == 1
                && (self.specials || node.object != Object::Pipe)
                && (!self.special_links || !matches!(node.object, Object::Link(_)))
        };
        let tops: Vec<_> =
            self.source.iter().filter(|(path, node)| is_item(path, node)).map(|(path, _)| path.clone()).collect();
        let in_source = |name: &OsStr| {
            let mut path = OsString::from("../source/");
            path.push(name);
            path
        };
        let target = if rng.bool() { "target/" } else { "target" };
        match rng.u8(..12) {
            0 => self.paths = vec!["../source".into()],
            1 => self.paths = vec!["../source/.".into()],
            2 if !tops.is_empty() => {
                let chosen = tops.iter().filter(|_| rng.bool());
                self.paths = chosen.map(|name| in_source(name.as_os_str())).collect();
            }
            3 => {
                self.list = Some(list(&self.source, rng));
                self.add("--files-from=../list", "--files-from ../list");
                self.paths = vec![["../source/", "../source"][rng.usize(..2)].into()];
            }
            _ => {}
        }
        if self.paths.is_empty() {
            self.paths = vec!["../source/".into()];
        }
        // rsync deletes even if there are dangling links.
        if self.list.is_none() && !self.follows && rng.u8(..2) == 0 {
            self.add("--delete", "--delete --force-empty");
        }
        // One file gets the name of an absent target, and a directory without a slash is copied into it.
        let target = if self.paths.len() > 1 || self.target.is_none() { "target/" } else { target };
        self.paths.push(target.into());
    }
}

/// Draws names of a tree, and a few that it does not have.
fn list(source: &Tree, rng: &mut Rng) -> Vec<u8> {
    let mut list = Vec::new();
    let has_newline = |path: &Path| path.as_os_str().as_bytes().contains(&b'\n');
    let mut walked: Option<&Path> = None;
    for (path, node) in source.iter().filter(|(path, _)| !has_newline(path)) {
        // A listed directory includes the names below it, unless a filter excludes a directory between them; rsync then
        // copies them.
        let is_beneath = walked.is_some_and(|directory| path.starts_with(directory));
        if !is_beneath && rng.u8(..3) == 0 {
            walked = Some(path);
            list.extend(path.as_os_str().as_bytes());
            if node.object == Object::Directory && rng.bool() {
                list.push(b'/');
            }
            list.extend([&b"\n"[..], b"\r\n", b"\n\n"][rng.usize(..3)]);
        }
        if rng.u8(..8) == 0 {
            list.extend([&b"# a\n"[..], b";a\r\n", b"#\n"][rng.usize(..3)]);
        }
    }
    list
}

/// Draws a pattern.
fn pattern(rng: &mut Rng) -> OsString {
    let mut name = || NAMES[rng.usize(..NAMES.len() - 5)];
    let (one, other) = (name(), name());
    let text: Vec<u8> = match rng.u8(..14) {
        0 | 1 => one.to_vec(),
        2 => b"*.tmp".to_vec(),
        3 => [b"/", one].concat(),
        4 => [one, b"/"].concat(),
        5 => [one, b"/", other].concat(),
        6 => [b"**/", one].concat(),
        7 => b"[a-c]*".to_vec(),
        8 => b"?".to_vec(),
        9 => [b"/", one, b"/**"].concat(),
        10 => [one, b"/***"].concat(),
        11 => b"*/".to_vec(),
        12 => [b"*/", one].concat(),
        _ => b"*.t?t".to_vec(),
    };
    OsStr::from_bytes(&text).to_owned()
}
