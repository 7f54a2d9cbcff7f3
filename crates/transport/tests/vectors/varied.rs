//! Variations of the samples. A test that varies them knows every frame without a list of its own. Needs `wire` in
//! scope, as the samples do.

use super::wire::{Frame, Frames};

/// Draws a number below the one given.
pub(crate) type Draw<'a> = &'a mut dyn FnMut(u64) -> u64;

/// Returns the bytes of a sample of which a few numbers are changed, so that they are still a frame. Those of a careful
/// peer mostly remain small, or its connection would soon end.
pub(crate) fn varied(sample: &Frame<'_>, careful: bool, draw: Draw<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    sample.encode(&mut bytes);
    for _ in 0..if bytes.len() > 1 { draw(12) } else { 0 } {
        let mut changed = bytes.clone();
        match draw(4) {
            0 => stretch(&mut changed, draw),
            _ if careful => shrink(&mut changed, draw),
            _ => overwrite(&mut changed, draw),
        }
        if is_a_frame(&changed) {
            bytes = changed;
        }
    }
    bytes
}

fn is_a_frame(bytes: &[u8]) -> bool {
    let mut frames = Frames::new(bytes);
    matches!(frames.next(), Some(Ok(_))) && frames.next().is_none()
}

/// Replaces a number of any width, at any position, by a small one, one at a limit, or one of any magnitude.
fn overwrite(bytes: &mut [u8], draw: Draw<'_>) {
    let at = 1 + draw(bytes.len() as u64 - 1) as usize;
    let width = (1 << draw(4)).min(bytes.len() - at);
    let value = match draw(4) {
        0 => draw(8),
        1 => u64::MAX - draw(2),
        _ => any_magnitude(8 * width as u64, draw),
    };
    bytes[at..at + width].copy_from_slice(&value.to_be_bytes()[8 - width..]);
}

/// Replaces possible upper bytes of a number, or all of it, by a small one: a byte other than 0 and perhaps the next.
fn shrink(bytes: &mut [u8], draw: Draw<'_>) {
    let at = 1 + draw(bytes.len() as u64 - 1) as usize;
    if bytes[at] != 0 {
        let end = (at + 1 + draw(2) as usize).min(bytes.len());
        bytes[at..end].fill(0);
        bytes[end - 1] = any_magnitude(6, draw) as u8;
    }
}

/// Gives the bytes at the end, if their length goes before them, another length.
fn stretch(bytes: &mut Vec<u8>, draw: Draw<'_>) {
    let is_length = |at: &usize| usize::from(bytes[*at]) << 8 | usize::from(bytes[at + 1]) == bytes.len() - at - 2;
    if let Some(at) = (1..bytes.len() - 1).find(is_length) {
        let length = any_magnitude(11, draw);
        bytes.truncate(at);
        bytes.extend((length as u16).to_be_bytes());
        bytes.extend((0..length).map(|_| draw(256) as u8));
    }
}

/// Draws a number of at most that many bits, as often a short one as a long one.
fn any_magnitude(bits: u64, draw: Draw<'_>) -> u64 {
    draw(u64::MAX) >> (63 - draw(bits))
}
