//! `downpour cp` and `downpour sync`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use downpour::files::{Filter, SourceOptions};
use downpour::remote::{self, HostCopy, Location};

use crate::args::{Args, Command};
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::notices::Notices;
use crate::options;
use crate::output::Output;
use crate::relative::{Relative, relative};
use crate::watch::{WatchOptions, begin, watch};
use crate::web::WebViewer;

/// Copies, or makes the destination like the source; returns the exit code.
pub(crate) async fn run(args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    check_port(&args)?;
    let mut copy = copy(&args)?;
    copy.keeps_names = args.command == Command::Sync;
    copy.scan.refuse_empty = args.delete && !copy.receive.force_empty;
    let _viewer = open_viewer(args.web, &mut copy).await?;
    let mut output = Output::new(args.output).with_stats(args.stats);
    let notices = if copy.receive.dry_run { Notices::Planned } else { Notices::Done };
    output.speed(args.speed.rate, args.speed.limit.as_ref());
    let mut attention = interrupts.attend();
    let transfer = begin(&mut attention, || remote::copy(copy)).await?;
    output.start(args.command.name(), args.speed.rate, None)?;
    let conduct = WatchOptions { notices, limit: args.speed.limit, resumes: true, ..WatchOptions::default() };
    watch(transfer, conduct, &mut output, &mut attention).await
}

/// Refuses `-p 2222`, which in ssh is the port of the server, and here a source.
fn check_port(args: &Args) -> Result<(), Failure> {
    let is_port = |source: &Location| match source {
        Location::Local(path) => path.to_str().is_some_and(|path| path.parse::<u16>().is_ok()) && !path.exists(),
        Location::Remote { .. } => false,
    };
    let sources = args.sources_and_target().map_or(&[][..], |(sources, _)| sources);
    match sources.iter().find(|source| args.preserves_modes && is_port(source)) {
        Some(source) => {
            let port = source.path();
            let message = format!(
                "{} does not exist; -p preserves modes: use -P PORT for the port of the ssh server",
                port.display()
            );
            Err(Failure::new(Code::Usage, message))
        }
        None => Ok(()),
    }
}

/// Opens the live charts of a copy, if requested.
async fn open_viewer(web: bool, copy: &mut HostCopy) -> Result<Option<WebViewer>, Failure> {
    if !web {
        return Ok(None);
    }
    if copy.target_host.is_some() && copy.sources.iter().any(|source| matches!(source, Location::Remote { .. })) {
        let message = "--web does not work between two remote hosts: run the command on one of them";
        return Err(Failure::new(Code::Usage, message));
    }
    WebViewer::open(&mut copy.options.qlog).await.map(Some)
}

/// Returns the copy of the arguments.
///
/// # Errors
/// A list that cannot be read, options that contradict each other.
pub(crate) fn copy(args: &Args) -> Result<HostCopy, Failure> {
    let Some((sources, target)) = args.sources_and_target() else {
        return Err(Failure::new(Code::Usage, "no destination: write SRC... DST"));
    };
    let (mut scan, mut sources) = (scan(args)?, sources.to_vec());
    if args.relative {
        let Relative { base, names } = relative(&sources)?;
        (sources, scan.files_from) = (vec![base], names);
    }
    let copy = HostCopy::new(sources, target.clone());
    let mut receive = args.receive.clone();
    receive.target = copy.receive.target;
    receive.delete = args.delete.then(|| (*scan.filter).clone());
    receive.backup = args.backup.choice()?;
    Ok(HostCopy {
        scan,
        receive,
        relay_locally: args.relay_locally,
        trusts_sender: args.trusts_sender,
        ssh: options::ssh(args),
        path: args.path.clone(),
        options: options::sender(args)?,
        ..copy
    })
}

/// Returns the options of the sender's scan.
///
/// # Errors
/// A list that cannot be read.
pub(crate) fn scan(args: &Args) -> Result<SourceOptions, Failure> {
    if args.rules.from_stdin && args.files_from.as_deref() == Some(Path::new("-")) {
        return Err(Failure::new(Code::Usage, "stdin can be read only once: use - for one list"));
    }
    Ok(SourceOptions {
        filter: Arc::new(Filter::new(args.rules.list.clone())),
        files_from: args.files_from.as_deref().map(|path| names(path, args.nul_separated)).transpose()?,
        ..args.scan.clone()
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
        Failure::new(Code::SourceAbsent, format!("cannot read the list {}: {error}", path.display()))
    })?;
    Ok(listed(&bytes, end_with_zero).map(<[u8]>::to_vec).collect())
}

/// Returns the names in a list. As in rsync, a line that begins with `#` or `;` is a comment, and a carriage return
/// belongs to the end of its line. A list with NUL has no comments: programs write it.
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
    fn files_from_skips_comments_and_carriage_returns() {
        let list = b"# first\r\na\r\n\r\n;b\n\nc d\n./#e\n f\ng#\n\rh\r\r\nlast";
        let names: [&[u8]; 7] = [b"a", b"c d", b"./#e", b" f", b"g#", b"\rh\r", b"last"];
        assert!(listed(list, false).eq(names));
        let names: [&[u8]; 4] = [b"#a", b";b", b"c\r", b"d\n"];
        assert!(listed(b"#a\0;b\0c\r\0\0d\n\0", true).eq(names));
    }
}
