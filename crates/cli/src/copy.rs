//! `downpour cp` and `downpour sync`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use downpour::TransferOptions;
use downpour::files::{self, Compare, Filter, Modes, Outputs, Preserve, ScanOptions};
use downpour::remote::{self, Copy, Location};

use crate::args::{
    ConnectionArgs, CopyArgs, CpArgs, Links, OutputArgs, PathArgs, PreserveToo, SelectionArgs, SpeedArgs, SshArgs,
    SyncArgs, TraceArgs, WhenExisting,
};
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::notices::Notices;
use crate::options;
use crate::output::Output;
use crate::watch::{Conduct, watch};
use crate::web::Picture;

/// Copies; returns the exit code.
pub(crate) async fn cp(args: CpArgs, interrupts: &mut Interrupts) -> Result<u8, Failure> {
    let named = if args.archive { NamedLinks::Copy } else { NamedLinks::Follow };
    let scan = scan(&args.selection, args.recursive || args.archive, named)?;
    // An ACL holds the bits of the mode too.
    let modes = if args.preserve || args.archive || args.preserved.acls { Modes::Exact } else { Modes::Masked };
    check_port(args.preserve, &args.paths)?;
    let (web, stats) = (args.shared.web, args.shared.stats);
    let (mut copy, common, output) = args.shared.copy(args.paths, args.selection.checksums, scan, modes)?;
    copy.receive.existing = existing(args.existing.choice());
    copy.receive.preserve = args.preserved.choice(args.archive, PreserveToo::default());
    let _picture = picture(web, &mut copy).await?;
    run("cp", copy, &common, &mut Output::new(output).with_stats(stats), interrupts).await
}

/// Makes the target identical to the source; returns the exit code.
pub(crate) async fn sync(args: SyncArgs, interrupts: &mut Interrupts) -> Result<u8, Failure> {
    let scan = scan(&args.selection, true, NamedLinks::Copy)?;
    check_port(args.implied.permissions, &args.paths)?;
    let (web, stats) = (args.shared.web, args.shared.stats);
    let (mut copy, common, output) = args.shared.copy(args.paths, args.selection.checksums, scan, Modes::Exact)?;
    copy.keeps_names = true;
    copy.receive.existing = existing(args.existing.choice());
    copy.receive.delete = args.delete.then(|| (*copy.scan.filter).clone());
    copy.receive.max_delete = args.max_delete;
    copy.receive.one_file_system = args.selection.one_file_system;
    copy.receive.force_empty = args.force_empty;
    copy.receive.preserve = args.preserved.choice(args.archive, args.implied.preserved);
    copy.scan.refuse_empty = args.delete && !args.force_empty;
    let _picture = picture(web, &mut copy).await?;
    run("sync", copy, &common, &mut Output::new(output).with_stats(stats), interrupts).await
}

/// Refuses `-p 2222`, which is the port of the ssh server for ssh, and a source called so here.
fn check_port(preserves: bool, paths: &PathArgs) -> Result<(), Failure> {
    let is_port = |source: &Location| match source {
        Location::Local(path) => path.to_str().is_some_and(|path| path.parse::<u16>().is_ok()) && !path.exists(),
        Location::Remote { .. } => false,
    };
    match paths.sources.iter().find(|source| preserves && is_port(source)) {
        Some(source) => {
            let port = source.path();
            let message = format!(
                "{} does not exist: -p preserves modes, and -P PORT is the port of the ssh server",
                port.display()
            );
            Err(Failure::new(Code::Usage, message))
        }
        None => Ok(()),
    }
}

/// Opens the picture of a copy, if it is asked for.
async fn picture(web: bool, copy: &mut Copy) -> Result<Option<Picture>, Failure> {
    if !web {
        return Ok(None);
    }
    if copy.target_host.is_some() && copy.sources.iter().any(|source| matches!(source, Location::Remote { .. })) {
        let message = "--web draws what only an end of the copy knows, and both are elsewhere";
        return Err(Failure::new(Code::Usage, format!("{message}: run the command on one of them")));
    }
    Picture::open(&mut copy.options.qlog).await.map(Some)
}

impl CopyArgs {
    /// Creates the copy described by these options.
    fn copy(
        self,
        paths: PathArgs,
        checksums: Option<PathBuf>,
        scan: ScanOptions,
        modes: Modes,
    ) -> Result<(Copy, Common, OutputArgs), Failure> {
        let common = Common { ssh: self.ssh, connection: self.connection, speed: self.speed, trace: self.trace };
        let mut copy = common.copy(paths.sources, paths.target, scan)?;
        copy.options.checksums = checksums;
        copy.scan.remove_sources = self.remove_source_files;
        copy.receive.compare = compare(self.at_target.checksum);
        copy.receive.modes = modes;
        copy.receive.dry_run = self.at_target.dry_run;
        copy.receive.backup = self.backup.choice()?;
        copy.receive.safe_links = self.at_target.safe_links;
        copy.receive.differences = !self.at_target.whole_file;
        copy.receive.trust_staging = self.at_target.trust_staging;
        copy.trusts_sender = self.at_target.trust_sender;
        copy.through_here = self.through_here;
        Ok((copy, common, self.output))
    }
}

async fn run(
    command: &str,
    copy: Copy,
    common: &Common,
    output: &mut Output,
    interrupts: &mut Interrupts,
) -> Result<u8, Failure> {
    let notices = if copy.receive.dry_run { Notices::Planned } else { Notices::Done };
    output.speed(common.speed.rate, common.speed.limit.as_ref());
    let transfer = remote::copy(copy)?;
    let mut attention = interrupts.attend();
    output.start(command, common.speed.rate, None)?;
    let conduct = Conduct { notices, limit: common.speed.limit.clone(), resumes: true, ..Conduct::default() };
    watch(transfer, conduct, output, &mut attention).await
}

/// Options common to all commands that reach another machine through ssh.
pub(crate) struct Common {
    pub(crate) ssh: SshArgs,
    pub(crate) connection: ConnectionArgs,
    pub(crate) speed: SpeedArgs,
    pub(crate) trace: TraceArgs,
}

impl Common {
    /// Creates a copy that replaces existing files, with defaults for everything else.
    ///
    /// # Errors
    /// An unknown profile.
    pub(crate) fn copy(&self, sources: Vec<Location>, target: Location, scan: ScanOptions) -> Result<Copy, Failure> {
        Ok(Copy {
            scan,
            ssh: options::ssh(&self.ssh),
            path: options::path(self.connection.via, &self.connection.network),
            options: TransferOptions {
                engine: options::engine(&self.speed, self.connection.network.timeout)?,
                retry_for: self.connection.retry_for,
                qlog: self.trace.qlog.clone(),
                paths: options::paths(&self.speed),
                ..TransferOptions::default()
            },
            ..Copy::new(sources, target)
        })
    }
}

/// Converts the option for existing files.
pub(crate) const fn existing(existing: WhenExisting) -> files::Existing {
    match existing {
        WhenExisting::Replace => files::Existing::Replace,
        WhenExisting::Skip => files::Existing::Skip,
        WhenExisting::Refuse => files::Existing::Refuse,
        WhenExisting::KeepNewer => files::Existing::KeepNewer,
        WhenExisting::Only => files::Existing::Only,
    }
}

/// Returns how existing files are recognised.
pub(crate) const fn compare(by_checksum: bool) -> Compare {
    if by_checksum { Compare::Checksum } else { Compare::SizeAndTime }
}

/// How to send a symbolic link named as a source without `--links`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedLinks {
    /// Send its target, as scp does.
    Follow,
    /// Send it as a link, as rsync does.
    Copy,
}

/// Returns the options that select what is sent.
pub(crate) fn scan(args: &SelectionArgs, recursive: bool, named: NamedLinks) -> Result<ScanOptions, Failure> {
    if args.rules.from_stdin && args.files_from.as_deref() == Some(Path::new("-")) {
        return Err(Failure::new(Code::Usage, "stdin can be read once: name - for one list only"));
    }
    let files_from = args.files_from.as_deref().map(|path| names(path, args.from0)).transpose()?;
    Ok(ScanOptions {
        recursive,
        links: match args.links {
            None | Some(Links::Copy) => files::Links::Copy,
            Some(Links::Follow) => files::Links::Follow,
            Some(Links::Skip) => files::Links::Skip,
        },
        follow_items: args.links.is_none() && named == NamedLinks::Follow,
        hard_links: args.hard_links,
        one_file_system: args.one_file_system,
        preserve: Preserve::default(),
        hash: false,
        filter: Arc::new(Filter::new(args.rules.list.clone())),
        files_from,
        follow_ways: true,
        refuse_empty: false,
        // The transfer names them.
        outputs: Outputs::default(),
        remove_sources: false,
    })
}

/// Reads the names in a file, or on stdin.
fn names(path: &Path, end_with_zero: bool) -> Result<Vec<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| {
        Failure::new(Code::SourceAbsent, format!("cannot read the names in {}: {error}", path.display()))
    })?;
    Ok(listed(&bytes, end_with_zero).map(<[u8]>::to_vec).collect())
}

/// Returns the names in a list. As for rsync, a line that begins with `#` or `;` is a comment, and a carriage return
/// belongs to the end of its line. Names that end with NUL are nothing but names: programs write them.
fn listed(list: &[u8], end_with_zero: bool) -> impl Iterator<Item = &[u8]> {
    let lines = list.split(move |byte| *byte == if end_with_zero { 0 } else { b'\n' });
    let names = lines.map(move |line| line.strip_suffix(b"\r").filter(|_| !end_with_zero).unwrap_or(line));
    names.filter(move |name| match name {
        [] => false,
        [b'#' | b';', ..] => end_with_zero,
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn a_list_that_people_write_has_comments_and_any_end_of_line() {
        let list = b"# first\r\na\r\n\r\n;b\n\nc d\n./#e\n f\ng#\n\rh\r\r\nlast";
        let names: [&[u8]; 7] = [b"a", b"c d", b"./#e", b" f", b"g#", b"\rh\r", b"last"];
        assert!(listed(list, false).eq(names));
        let names: [&[u8]; 4] = [b"#a", b";b", b"c\r", b"d\n"];
        assert!(listed(b"#a\0;b\0c\r\0\0d\n\0", true).eq(names));
    }
}
