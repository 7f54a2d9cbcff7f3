//! Law 4: memory follows from our own limits, never from a peer's claims. The test has its own process, since it reads
//! the peak memory of the process.

#![cfg(target_os = "linux")]

#[allow(dead_code, reason = "shared with the tests of hostile peers, which use all of it")]
#[path = "hostile/rogue.rs"]
mod rogue;

use downpour_transport::wire::{
    Announcement, BlockStatus, ConnectionId, Credit, Feedback, FeedbackConfig, FeedbackTiming, FlowId, FlowStatus,
    Frame, PacketFeedback, Parameters, Plan, StreamAnnouncement, StreamLimits, SymbolId,
};
use downpour_transport::{EndpointConfig, ObjectOptions, WorkReply, WorkRequest};
use erasure::{AnyCode, BlockCode, WindowCode};
use rogue::{Rogue, announcement};
use std::time::Duration;

/// Memory limit of a connection: its first credit of 48,000 symbols of 1408 bytes, and the same again for everything
/// else.
const MOST: u64 = 2 * 48_000 * 1_408;

/// Returns the peak memory of this process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of proc(5)");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("kilobytes") * 1_024
}

#[test]
fn memory_follows_from_our_limits_not_from_claims() {
    let before = peak();
    let mut most = 0;
    let claims: [(&str, fn()); 8] = [
        ("a petabyte in large blocks", petabyte),
        ("as many flows as numbers", many_flows),
        ("control data with holes", holes),
        ("a need of more than everything", need),
        ("symbols of one block each", scattered),
        ("unread streams", unread_streams),
        ("windows with as many holes as possible", holed_windows),
        ("names that wait for a gap to close", withheld_names),
    ];
    for (what, claim) in claims {
        claim();
        most = most.max(peak() - before);
        assert!(most <= MOST, "{what}: {most} bytes, more than {MOST}");
    }
}

/// Sends a symbol behind a gap, again and again in separate packets.
fn withheld_names() {
    let choice =
        FeedbackConfig { packets: PacketFeedback::InOrder, ..FeedbackConfig::everything(FeedbackTiming::EveryPacket) };
    let offer = Parameters { feedback: choice, ..rogue::parameters(ConnectionId([0xee; 8])) };
    let mut rogue = Rogue::with(EndpointConfig::default(), offer);
    rogue.send(&[Frame::Announce(announcement(1, 5_000))]);
    for _ in 0..100_000 {
        rogue.send_symbol(SymbolId { flow: FlowId(1), block: 0, esi: 5 }, 0, &[1; 100]);
    }
    rogue.listen();
    assert!(!rogue.connection().is_closed());
}

fn petabyte() {
    let mut rogue = Rogue::new();
    let flow = FlowId(1);
    let plan = Plan { flow, number: 0, first_block: 0, first_symbol: 0, k: 8_192, code: BlockCode::RaptorQ };
    let length = 1 << 50;
    rogue.send(&[Frame::Announce(Announcement {
        flow,
        length,
        symbol_size: 1_408,
        symbols_per_packet: 1,
        tag: 0,
        plan,
    })]);
    for block in 0..1_000 {
        rogue.send_symbol(SymbolId { flow, block: block * 90_000, esi: 8_191 }, 0, &[1; 1_408]);
    }
    rogue.listen();
}

fn many_flows() {
    let mut rogue = Rogue::new();
    for flow in 1..=u16::MAX {
        rogue.send(&[Frame::Announce(announcement(flow, 0))]);
        rogue.listen();
    }
    let mut rogue = Rogue::new();
    for flow in 1..=u16::MAX {
        rogue.send(&[Frame::Announce(announcement(flow, 1 << 40))]);
    }
}

fn holes() {
    let mut rogue = Rogue::new();
    for offset in (1..1_000_000u32).step_by(3).rev() {
        rogue.send(&[Frame::Control { offset: offset.into(), data: &[1] }]);
    }
    rogue.listen();
}

fn need() {
    let mut rogue = Rogue::new();
    let now = rogue.now;
    let flow = rogue.connection().send_object(now, ObjectOptions { length: 1_000_000, tag: 0, digest: false });
    let flow = flow.expect("connected");
    for number in 1..50 {
        serve(&mut rogue);
        rogue.now += Duration::from_millis(20);
        rogue.listen();
        let blocks = vec![BlockStatus { block: 0, need: 65_535 }];
        let flows = vec![FlowStatus { flow, done_below: 0, blocks }];
        let credit = Credit { symbols: u64::MAX, control: u64::MAX };
        rogue.send(&[Frame::Feedback(Feedback { number, flows, credit, ..Feedback::default() })]);
    }
}

fn scattered() {
    let mut rogue = Rogue::new();
    rogue.send(&[Frame::Announce(announcement(1, 1 << 40))]);
    for nth in 0..100_000u32 {
        rogue.send_symbol(
            SymbolId { flow: FlowId(1), block: nth.wrapping_mul(40_503), esi: nth % 65_000 },
            0,
            &[1; 100],
        );
    }
}

/// A side that accepts few streams, so that the test needs no more memory than the others.
fn with_few_streams() -> Rogue {
    let mut config = EndpointConfig::default();
    config.limits.streams = StreamLimits { count: 64, window: 256, shared: 16_000 };
    Rogue::with(config, rogue::parameters(ConnectionId([0xee; 8])))
}

fn unread_streams() {
    let mut rogue = with_few_streams();
    for flow in (1..=64).map(FlowId) {
        let (code, short_code) = (BlockCode::RaptorQ.into(), BlockCode::ReedSolomon);
        let stream = StreamAnnouncement { flow, symbol_size: 1_408, tag: 0, k: 256, code, short_code };
        rogue.send(&[Frame::AnnounceStream(stream)]);
        for block in 0..500 {
            rogue.send_symbol(SymbolId { flow, block, esi: 255 }, 0, &[1; 1_408]);
        }
    }
    rogue.listen();
}

/// Fills every stream with everything that a window code may keep: symbols of two windows, and equations of half of
/// one.
fn holed_windows() {
    let mut rogue = with_few_streams();
    for flow in (1..=64).map(FlowId) {
        let (code, short_code) = (AnyCode::Window(WindowCode::Rlc), BlockCode::Uncoded);
        let stream = StreamAnnouncement { flow, symbol_size: 1_408, tag: 0, k: 64, code, short_code };
        rogue.send(&[Frame::AnnounceStream(stream)]);
        let mut symbol = vec![1; 1_408];
        symbol[..5].copy_from_slice(&[0, 0, 5, 0, 0]);
        // Every other block is missing, with half as many equations, so none can be solved.
        for block in (1..250).step_by(2) {
            rogue.send_symbol(SymbolId { flow, block, esi: 0 }, 0, &symbol);
            if block % 4 == 3 {
                rogue.send_symbol(SymbolId { flow, block, esi: (block.min(63) + 1) << 12 | block }, 0, &symbol);
            }
        }
    }
    assert!(!rogue.connection().is_closed());
    rogue.listen();
}

fn serve(rogue: &mut Rogue) {
    let now = rogue.now;
    while let Some(request) = rogue.connection().poll_request() {
        let reply = match request.run_pure() {
            Ok(reply) => reply,
            Err(WorkRequest::Read { flow, block, length, mut buffer, .. }) => {
                buffer.resize(length, 0);
                WorkReply::Read { flow, block, buffer }
            }
            Err(other) => panic!("{other:?}"),
        };
        rogue.connection().handle_reply(now, reply);
    }
}
