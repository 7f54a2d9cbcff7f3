//! `downpour clean`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{io, iter};

use downpour::files::{StaleStaging, leftovers, outside_staging_directory};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::json::{self, Staging};
use crate::{escape, print};

/// Lists the staging directories of interrupted transfers, and deletes them on request; returns the exit code.
pub(crate) fn run(args: &Args) -> Result<u8, Failure> {
    let (mut listed, mut failed) = (Totals::default(), 0_u64);
    let now = SystemTime::now();
    for directory in &directories(args) {
        let take = |leftover: StaleStaging| listed.take(args, &leftover, now);
        let unread = |path: &Path, error: &io::Error| {
            failed += 1;
            print::warn(format_args!("cannot search {}: {error}", escape::name(path.as_os_str().as_bytes())));
        };
        leftovers(directory, args.clean.search_below, take, unread).map_err(|error| {
            let code = if error.kind() == io::ErrorKind::NotFound { Code::SourceAbsent } else { Code::Disk };
            Failure::new(code, format!("cannot search {}: {error}", escape::name(directory.as_os_str().as_bytes())))
        })?;
    }
    if !args.output.json {
        print::err(listed.summary(args.clean.remove));
    }
    Ok(if failed + listed.failed > 0 { Code::Partial as u8 } else { Code::Done as u8 })
}

/// Returns the directories to search.
fn directories(args: &Args) -> Vec<PathBuf> {
    match args.paths.is_empty() {
        true => iter::once(PathBuf::from(".")).chain(outside_staging_directory()).collect(),
        false => args.paths.clone(),
    }
}

/// Totals of the directories found so far.
#[derive(Default)]
struct Totals {
    directories: u64,
    bytes: u64,
    in_use: u64,
    failed: u64,
    /// Directories not listed because of `--older-than`.
    younger: u64,
}

impl Totals {
    fn take(&mut self, args: &Args, leftover: &StaleStaging, now: SystemTime) {
        // The clock of a file server may be ahead.
        let age = now.duration_since(leftover.used).unwrap_or_default();
        if args.clean.older_than.is_some_and(|least| age < least) {
            self.younger += 1;
            return;
        }
        let removed = args.clean.remove && !leftover.is_in_use && self.remove(leftover);
        self.directories += 1;
        self.bytes += leftover.bytes;
        self.in_use += u64::from(leftover.is_in_use);
        let path = leftover.path.as_os_str().as_bytes();
        let StaleStaging { files, bytes, is_in_use, .. } = *leftover;
        if args.output.json {
            let (path, unused_seconds) = (path.into(), age.as_secs());
            let found = Staging { path, unused_seconds, files, bytes, in_use: is_in_use, removed };
            json::print(&json::JsonRecord::Staging(found));
            return;
        }
        let state = match (is_in_use, removed) {
            (true, _) => "  in use",
            (_, true) => "  removed",
            _ => "",
        };
        let (age, bytes) = (units::seconds(age.as_secs_f64()), units::bytes(bytes));
        let files = units::count(files, "file", "files");
        print::out(format_args!("{age:>12}  {bytes:>8}  {files:>12}  {}{state}", escape::name(path)));
    }

    fn remove(&mut self, leftover: &StaleStaging) -> bool {
        let result = leftover.remove();
        if let Err(error) = &result {
            self.failed += 1;
            print::warn(escape::text(&error.to_string()));
        }
        result.is_ok()
    }

    fn summary(&self, removed: bool) -> String {
        let Self { directories, bytes, in_use, failed, younger } = *self;
        if directories == 0 && younger > 0 {
            return format!(
                "{} newer than --older-than.",
                units::count(younger, "staging directory is", "staging directories are")
            );
        }
        if directories == 0 {
            return "No staging directories found.".to_owned();
        }
        let total = format!(
            "{}, {}",
            units::count(directories, "staging directory", "staging directories"),
            units::bytes(bytes)
        );
        match removed {
            true => format!("{total}: {} removed.", directories - in_use - failed),
            false => format!("{total}. Run the interrupted command again to resume, or use --remove to discard."),
        }
    }
}
