//! Trees for the tests.

use std::collections::BTreeMap;

use downpour_store::{Content, Mtime, Node};

use crate::driver::BLOCK;

/// Everything beneath a directory, by path.
pub(crate) type Tree = BTreeMap<Vec<u8>, Node>;

/// Returns a time of 2001, distinguished by its number.
pub(crate) fn time(number: u32) -> Mtime {
    Mtime { seconds: 1_000_000_000 + i64::from(number), nanoseconds: number % 1000 }
}

/// Returns non-repeating bytes that differ for each seed.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn file(length: usize, seed: u64, mode: u32, number: u32) -> Node {
    Node::file(noise(length, seed), mode, time(number))
}

/// Returns a tree with one of everything: empty files and long ones, odd names, nested directories, links.
pub(crate) fn sample() -> Tree {
    let nodes: [(&[u8], Node); 16] = [
        (b"empty", file(0, 0, 0o644, 1)),
        (b"one byte", file(1, 1, 0o600, 2)),
        (b"a block", file(BLOCK, 2, 0o755, 3)),
        (b"blocks", file(7 * BLOCK + 13, 3, 0o640, 4)),
        (b"zeros", Node::file(vec![0; 3 * BLOCK], 0o444, time(5))),
        (b"a", Node::directory(0o755, time(6))),
        (b"a-b", file(10, 4, 0o644, 7)),
        (b"a/b", Node::directory(0o700, time(8))),
        (b"a/b/c", Node::directory(0o1777, time(9))),
        (b"a/b/c/deep", file(2 * BLOCK, 5, 0o644, 10)),
        (b"bare", Node::directory(0o750, time(11))),
        (b"link", Node::symlink("a/b/c/deep", time(12))),
        (b"a/dangling", Node::symlink("/nowhere/\u{e9}", time(13))),
        (b"\xff\xfe no text", file(100, 6, 0o644, 14)),
        (b"a/new\nline", file(5, 7, 0o644, 15)),
        (b" ", Node::directory(0o755, time(16))),
    ];
    let mut tree: Tree = nodes.into_iter().map(|(path, node)| (path.to_vec(), node)).collect();
    // More than one batch of any store.
    tree.insert(b"many".to_vec(), Node::directory(0o755, time(17)));
    for number in 0..300_u32 {
        tree.insert(format!("many/{number}").into_bytes(), file(number as usize % 7, number.into(), 0o644, number));
    }
    tree
}

/// Returns a few names, for tests that state the outcome of each.
pub(crate) fn small() -> Tree {
    let nodes = [
        ("dir", Node::directory(0o755, time(1))),
        ("dir/file", file(3000, 1, 0o644, 2)),
        ("other", file(500, 2, 0o600, 3)),
    ];
    nodes.into_iter().map(|(path, node)| (path.as_bytes().to_vec(), node)).collect()
}

/// Returns the number of bytes in all files of a tree.
pub(crate) fn bytes(tree: &Tree) -> u64 {
    tree.values().map(|node| if let Content::File(bytes) = &node.content { bytes.len() as u64 } else { 0 }).sum()
}

/// Returns the number of files in a tree.
pub(crate) fn files(tree: &Tree) -> u64 {
    tree.values().filter(|node| matches!(node.content, Content::File(_))).count() as u64
}
