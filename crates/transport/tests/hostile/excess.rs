//! Peers that hold the key and try to make this side store or compute more than it allowed.

use crate::rogue::{Rogue, address, announcement, deliver};
use downpour_transport::wire::{Announcement, Datagram, FlowId, Frame, Frames, Plan, RejectReason, SymbolId};
use downpour_transport::{
    Batch, ConnectOptions, ConnectionError, Endpoint, EndpointConfig, Event, Time, WorkReply, WorkRequest,
};
use erasure::BlockCode;
use std::time::Duration;

const FLOW: FlowId = FlowId(1);

/// A late plan must not change a block that has begun: its requests would refer to missing bytes.
#[test]
fn a_plan_for_a_block_that_has_begun_ends_the_connection() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Announce(announcement(1, 5_000_000))]);
    let now = rogue.now;
    rogue.connection().accept_flow(now, FLOW, true);
    for esi in 1..=10 {
        rogue.send_symbol(SymbolId { flow: FLOW, block: 1, esi }, 0, &[1; 100]);
    }
    let code = BlockCode::ReedSolomon;
    let late = Plan { flow: FLOW, number: 1, first_block: 1, first_symbol: 10, k: 8_000, code };
    rogue.send(&[Frame::Plan(late)]);
    let closed = Event::Closed(ConnectionError::Violation("sent an invalid plan"));
    assert!(rogue.events().contains(&closed), "the connection continued");
    assert!(rogue.connection().poll_request().is_none(), "work for a closed connection");
}

#[test]
fn blocks_done_out_of_order_are_bounded() {
    const AHEAD: u32 = 4_096;
    let mut rogue = Rogue::new();
    let plan = Plan { flow: FLOW, number: 0, first_block: 0, first_symbol: 0, k: 1, code: BlockCode::Uncoded };
    let (length, symbol_size, symbols_per_packet, tag) = (1 << 31, 1, 1, 0);
    rogue.send(&[Frame::Announce(Announcement { flow: FLOW, length, symbol_size, symbols_per_packet, tag, plan })]);
    let now = rogue.now;
    rogue.connection().accept_flow(now, FLOW, false);
    let mut written = 0;
    for nth in 0..20_000 {
        rogue.send_symbol(SymbolId { flow: FLOW, block: 1 + 2 * nth, esi: 0 }, 0, &[1]);
        while let Some(WorkRequest::Write { flow, block, .. }) = rogue.connection().poll_request() {
            written += 1;
            let now = rogue.now;
            rogue.connection().handle_reply(now, WorkReply::Written { flow, block });
        }
    }
    assert_eq!(written, AHEAD / 2, "every second block up to {AHEAD}");
    assert_eq!(rogue.connection().refused().get(RejectReason::Unacceptable), 20_000 - u64::from(AHEAD / 2));
}

#[test]
fn a_peer_that_only_provokes_feedback_is_given_up() {
    let mut rogue = Rogue::new();
    rogue.connection().write_control(b"never acknowledged");
    let closed = |events: Vec<Event>| {
        events.into_iter().any(
            |event| matches!(event, Event::Closed(ConnectionError::Violation(why)) if why.contains("acknowledged none")),
        )
    };
    let ended = (0..300_000).find(|_| {
        rogue.send(&[Frame::Ping]);
        rogue.listen();
        rogue.numbers.clear();
        rogue.plaintexts.clear();
        closed(rogue.events())
    });
    assert!(ended.is_some_and(|pings| pings > 250_000), "{ended:?}");
}

#[test]
fn a_forged_version_answer_ends_no_handshake() {
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    let options = ConnectOptions::new(vec![address(1)]);
    let handle = endpoint.connect(Time::ZERO, [5; 32], options).expect("an address");
    let mut batch = Batch::new();
    let connection = endpoint.connection(handle).expect("just made");
    assert!(connection.poll_transmit(Time::ZERO, &mut batch));
    let Ok(Datagram::Message1(message)) = Datagram::classify(batch.bytes()) else { panic!("no first message") };
    let forged = [&[3][..], &message.connection.0, &[1], &2u32.to_be_bytes()].concat();
    deliver(&mut endpoint, Time::ZERO, address(99), forged);
    let connection = endpoint.connection(handle).expect("still exists");
    assert_eq!(connection.poll_event(), None, "a stranger ended the handshake");
    connection.handle_timeout(Time::ZERO + Duration::from_secs(10));
    let explained = Event::Closed(ConnectionError::VersionMismatch { offered: vec![2] });
    assert_eq!(connection.poll_event(), Some(explained), "the hint explains the failure once it is one");
}

/// Feedback to a peer stays within its share, however often the peer asks. The frames are parsed to verify that they
/// are feedback.
#[test]
fn answers_to_pings_are_feedback_and_nothing_else() {
    let mut rogue = Rogue::new();
    rogue.listen();
    rogue.plaintexts.clear();
    rogue.send(&[Frame::Ping]);
    rogue.listen();
    let frames: Vec<Frame<'_>> =
        rogue.plaintexts.iter().flat_map(|plaintext| Frames::new(plaintext)).flatten().collect();
    assert!(!frames.is_empty() && frames.iter().all(|frame| matches!(frame, Frame::Feedback(_))), "{frames:?}");
}
