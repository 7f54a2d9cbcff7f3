//! The loop of `examples/bare_engine.rs` over real sockets.

#[path = "../examples/bare_engine.rs"]
mod bare_engine;

use downpour_transport::{ConnectionError, Profile, Rate};

#[test]
fn an_object_crosses_between_two_sockets() {
    let object: Vec<u8> = (0..3_000_000_u32).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect();
    let mut fixed = Profile::auto().with_fixed_rate(Rate::from_bits_per_second(100_000_000));
    fixed.set("symbols.per-packet", "fit").expect("a number");
    for profile in [Profile::auto(), fixed] {
        let (received, [sender, receiver]) =
            bare_engine::transfer(object.clone(), &profile).expect("sockets and a thread");
        assert!(received == object, "{}: {} bytes", profile.name, received.len());
        assert_eq!(
            sender,
            Some(ConnectionError::ClosedByPeer { code: 0, reason: "complete".into() }),
            "{}",
            profile.name
        );
        assert_eq!(receiver, Some(ConnectionError::LocallyClosed), "{}", profile.name);
    }
}

#[test]
fn an_empty_object_crosses_too() {
    let (received, closed) = bare_engine::transfer(Vec::new(), &Profile::auto()).expect("sockets and a thread");
    assert_eq!((received.len(), &closed[1]), (0, &Some(ConnectionError::LocallyClosed)));
}
