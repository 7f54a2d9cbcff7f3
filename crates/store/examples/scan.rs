//! Measures the sender's half alone: `cargo run --release --example scan -- [--read] [--hard-links] [--hash] PATH...`
//! walks the paths, reads every file with `--read`, and prints rates and the peak of memory (Linux).

use std::sync::Arc;
use std::time::Instant;

use downpour_store::{BatchSource, FilesError, Scanner, SourceItem, SourceOptions, Wanted};

/// Bytes read at once, as a worker reads a block.
const BLOCK: usize = 1 << 20;

fn main() -> Result<(), FilesError> {
    let (mut read, mut roots, mut options) = (false, Vec::new(), SourceOptions::default());
    for argument in std::env::args_os().skip(1) {
        match argument.to_str() {
            Some("--read") => read = true,
            Some("--hard-links") => options.hard_links = true,
            Some("--hash") => options.hash = true,
            _ => roots.push(SourceItem::typed(&argument)),
        }
    }
    let started = Instant::now();
    let scanner = Scanner::new(roots, options)?;
    let roots = scanner.roots();
    let (mut entries, mut skipped, mut bytes, mut voided) = (0, 0, 0, 0);
    let mut first = None;
    let mut block = vec![0; BLOCK];
    for batch in scanner {
        first.get_or_insert_with(|| started.elapsed());
        entries += batch.entries.len();
        skipped += batch.skipped.len();
        bytes += batch.length;
        if read {
            let source = BatchSource::new(Arc::new(batch), Arc::clone(&roots), Wanted::all());
            (0..source.length()).step_by(BLOCK).for_each(|offset| source.read(offset, &mut block));
            voided += source.take_voided().len();
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{entries} entries, {bytes} bytes, {skipped} skipped, {voided} voided");
    println!("{seconds:.3} s, {:.0} entries/s, first batch after {first:?}", entries as f64 / seconds);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
    Ok(())
}
