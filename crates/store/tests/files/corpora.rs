//! The corpora of the fuzz targets; that of the messages is replayed beside their tests.

use std::path::Path;

use store::fuzzing::{fuzz_filter, fuzz_journal, fuzz_sink};

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
