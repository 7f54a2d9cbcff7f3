//! Peers that hold the key and send repair of impossible windows, or false repair.

use crate::rogue::Rogue;
use crate::streams::{FLOW, beginning, read, rogue, stream};
use downpour_transport::wire::{Frame, RejectReason, StreamAnnouncement, SymbolId};
use erasure::rlc::{Density, Field, WindowEncoder};
use erasure::{AnyCode, BlockCode, WindowCode};

/// The victim gives each stream 20 symbols of its own, so windows of 5.
const WINDOW: u32 = 5;

fn window_stream(flow: u16, symbols: u32) -> StreamAnnouncement {
    let (code, short_code) = (AnyCode::Window(WindowCode::Rlc), BlockCode::Uncoded);
    StreamAnnouncement { k: symbols, code, short_code, ..stream(flow) }
}

fn announced() -> Rogue {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(window_stream(1, WINDOW))]);
    rogue
}

fn id(block: u32, esi: u32) -> SymbolId {
    SymbolId { flow: FLOW, block, esi }
}

/// Returns the id of repair of the window of `symbols` blocks up to `block`.
fn repair_id(block: u32, symbols: u32, key: u32) -> SymbolId {
    id(block, symbols << 12 | key)
}

/// Returns repair from an honest sender whose blocks up to `block` hold one byte each.
fn true_repair(block: u32, key: u16) -> (SymbolId, Vec<u8>) {
    let mut symbol = vec![0; beginning(1, 0).len()];
    let mut encoder = WindowEncoder::new(Field::Gf256, symbol.len(), WINDOW);
    (0..=block).for_each(|_| _ = encoder.push(&beginning(1, 0)));
    let repair = encoder.repair(key, Density::FULL, &mut symbol).expect("not empty");
    (repair_id(block, repair.symbols.into(), repair.key.into()), symbol)
}

fn refused(rogue: &mut Rogue) -> u64 {
    assert!(!rogue.connection().is_closed());
    rogue.connection().refused().get(RejectReason::Unacceptable)
}

#[test]
fn a_lost_symbol_follows_from_repair() {
    let mut rogue = announced();
    [0, 2, 3].into_iter().for_each(|block| rogue.send_symbol(id(block, 0), 0, &beginning(1, 0)));
    assert_eq!(read(&mut rogue), b"x");
    let (repair, symbol) = true_repair(3, 0xabc);
    rogue.send_symbol(repair, 0, &symbol);
    assert_eq!(read(&mut rogue), b"xxx");
    // The same symbol again, and the source symbol that it has repaired.
    rogue.send_symbol(repair, 0, &symbol);
    rogue.send_symbol(id(1, 0), 0, &beginning(1, 0));
    assert_eq!((read(&mut rogue), refused(&mut rogue)), (vec![], 0));
    // Two are lost, one of them the very last, which only repair can restore.
    rogue.send_symbol(id(4, 0), 0, &beginning(1, 0));
    let (first, second) = (true_repair(6, 1), true_repair(6, 2));
    rogue.send_symbol(first.0, 0, &first.1);
    assert_eq!(read(&mut rogue), b"x");
    rogue.send_symbol(second.0, 0, &second.1);
    assert_eq!(read(&mut rogue), b"xx");
}

#[test]
fn windows_that_cannot_be_are_refused_and_counted() {
    let mut rogue = announced();
    let (repair, symbol) = true_repair(4, 1);
    let impossible = [
        (repair_id(10, WINDOW + 1, 1), 0, "larger than was announced"),
        (repair_id(4, 4_095, 1), 0, "of the largest size"),
        (repair_id(2, 4, 1), 0, "begins before the first symbol"),
        (repair, 1, "an unknown plan"),
        (repair, 255, "an unknown plan"),
        // Beyond its own 20 symbols and the 50 shared ones.
        (repair_id(70, 1, 1), 0, "beyond the credit"),
        (repair_id(u32::MAX, 5, 1), 0, "beyond everything"),
        (id(0, 1), 0, "neither source nor repair"),
        (id(0, 0xfff), 0, "neither source nor repair"),
    ];
    for (at, (id, plan, what)) in impossible.into_iter().enumerate() {
        rogue.send_symbol(id, plan, &symbol);
        assert_eq!(refused(&mut rogue), at as u64 + 1, "{what}");
    }
    let before = refused(&mut rogue);
    rogue.send_symbol(repair, 0, &[&symbol[..], &[0]].concat());
    rogue.send_symbol(repair, 0, &[]);
    assert_eq!(refused(&mut rogue), before + 2, "too long, and nothing");
    rogue.send_symbol(repair_id(69, 5, 1), 0, &symbol);
    assert_eq!(refused(&mut rogue), before + 2, "the last that has credit");
    // A done block has no more symbols than before: 4,095 of them would be source far beyond the credit.
    rogue.send_symbol(id(0, 0), 0, &beginning(1, 0));
    for (at, (id, plan)) in [(id(0, 1), 0), (id(0, 0xfff), 0), (id(0, 0), 1)].into_iter().enumerate() {
        rogue.send_symbol(id, plan, &beginning(1, 0));
        assert_eq!(refused(&mut rogue), before + 3 + at as u64, "symbol {} of plan {plan} of a done block", id.esi);
    }
    // Behind the end.
    rogue.send_symbol(id(1, 0), 0, &beginning(1, 1));
    rogue.send_symbol(repair_id(2, 1, 1), 0, &symbol);
    assert_eq!(refused(&mut rogue), before + 6);
    assert_eq!(read(&mut rogue), b"xx");
}

#[test]
fn repair_of_a_stream_without_windows_is_that_of_its_blocks() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(stream(1))]);
    // 10 symbols of RaptorQ have as many repair symbols as ESIs.
    rogue.send_symbol(repair_id(0, 2, 1), 0, &beginning(1, 0));
    assert_eq!((refused(&mut rogue), read(&mut rogue)), (0, vec![]));
}

#[test]
fn larger_windows_than_the_receiver_takes_end_the_connection() {
    let mut rogue = rogue();
    rogue.send(&[Frame::AnnounceStream(window_stream(1, WINDOW + 1))]);
    rogue.assert_violation("invalid stream");
}

/// False repair leads to false blocks.
#[test]
fn repair_that_makes_impossible_blocks_ends_the_connection() {
    let mut rogue = announced();
    rogue.send_symbol(repair_id(0, 1, 1), 0, &[0xff; 100]);
    rogue.assert_violation("invalid block");
}
