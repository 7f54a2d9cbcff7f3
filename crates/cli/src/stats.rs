//! `--stats`: rsync's statistics at the end, except those that downpour does not have.

use std::fmt;

use downpour::{NameCounts, Role, Summary};
use units::grouped;

/// The numbers of a transfer.
pub(crate) struct Stats<'a>(pub(crate) &'a Summary);

impl fmt::Display for Stats<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { names, bytes, wire_bytes, .. } = self.0;
        let NameCounts { files, kept, directories, symlinks, unchanged, deleted, .. } = names;
        let kinds = [("reg", files + kept), ("dir", *directories), ("link", *symlinks)];
        let all = kinds.iter().map(|(_, count)| count).sum::<u64>();
        let named = kinds.iter().filter(|(_, count)| *count > 0);
        let named: Vec<String> = named.map(|(kind, count)| format!("{kind}: {}", grouped(count))).collect();
        let way = match self.0.role {
            Role::Sender => "sent",
            Role::Receiver | Role::Tunnel | Role::Streams => "received",
        };
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        writeln!(f, "Number of files: {}{named}", grouped(all))?;
        writeln!(f, "Number of deleted files: {}", grouped(deleted))?;
        writeln!(f, "Number of regular files transferred: {}", grouped(files.saturating_sub(*unchanged)))?;
        writeln!(f, "Total file size: {} bytes", grouped(bytes.total))?;
        writeln!(f, "Literal data: {} bytes", grouped(bytes.total.saturating_sub(bytes.present)))?;
        write!(f, "Total bytes {way}: {}", grouped(wire_bytes))
    }
}
