//! The corpora of the fuzz targets of this crate.

use std::fs;
use std::path::Path;

use crate::remote::fuzzing::fuzz_remote;
use crate::ticket::fuzzing::fuzz_ticket;
use crate::tunnel::fuzzing::fuzz_tunnel;

fn replay(corpus: &str, target: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(corpus);
    let mut files = 0;
    for file in fs::read_dir(&folder).expect("a corpus") {
        target(&fs::read(file.expect("an input").path()).expect("an input"));
        files += 1;
    }
    assert!(files >= 3, "{files} files in {}", folder.display());
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
