//! The corpora of the fuzz targets; that of the messages is replayed beside their tests.

use std::path::Path;

use downpour::files::fuzzing::{fuzz_filter, fuzz_journal, fuzz_sink};
use downpour::remote::fuzzing::fuzz_remote;
use downpour::ticket::fuzzing::fuzz_ticket;
use downpour::tunnel::fuzzing::fuzz_tunnel;

fn replay(corpus: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut files = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        target(&std::fs::read(file.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 3, "{files} files in {}", folder.display());
}

#[test]
fn sink() {
    replay("sink", fuzz_sink);
}

#[test]
fn journal() {
    replay("journal", fuzz_journal);
}

#[test]
fn filter() {
    replay("filter", fuzz_filter);
}

#[test]
fn ticket() {
    replay("ticket", fuzz_ticket);
}

#[test]
fn remote() {
    replay("remote", fuzz_remote);
}

#[test]
fn tunnel() {
    replay("tunnel", fuzz_tunnel);
}
