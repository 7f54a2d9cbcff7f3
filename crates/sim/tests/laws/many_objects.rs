//! Laws 3 and 4 with many objects at once: transfers complete even if they exceed one feedback or the peer's limit on
//! flows.

use crate::support::{Plan, at_seconds, is_done, is_over};
use transport::{ConnectionError, Profile, Rate};

fn all_arrive(plan: &Plan) {
    let mut network = plan.network([Vec::new(), Vec::new()]);
    let done = network.run_while(|nodes| !is_done(nodes, plan) && !is_over(nodes), at_seconds(120));
    let tally = network.nodes()[1].host.tallies().next().expect("they met");
    let whole = tally.received.values().filter(|received| received.is_identical()).count();
    assert_eq!(whole, plan.objects.len(), "objects after {:?}: {done:?}, {:?}", network.now(), tally.closed);
    network.run_while(|nodes| !is_over(nodes), at_seconds(200)).expect("time passes");
    let closed = network.nodes()[1].host.tallies().next().and_then(|tally| tally.closed.clone());
    assert!(matches!(closed, Some(ConnectionError::ClosedByPeer { code: 0, .. })), "{closed:?}");
}

fn fixed() -> Profile {
    systems::auto().with_fixed_rate(Rate::from_bits_per_second(100_000_000))
}

#[test]
fn a_thousand_objects_at_once() {
    all_arrive(&Plan::new("rate=100M,delay=10ms,queue=256KB", fixed(), vec![10; 1_000]));
}

#[test]
fn a_thousand_objects_at_once_on_a_lossy_path() {
    all_arrive(&Plan::new("rate=100M,delay=10ms,queue=256KB,loss=10%,reorder=10%:5ms", fixed(), vec![1_000; 1_000]));
}

/// A small block has fewer repair symbols than such a path requires: lost source symbols are sent again.
#[test]
fn a_block_whose_repair_symbols_are_spent() {
    all_arrive(&Plan::new("rate=100M,delay=100ms,queue=2MB,loss=70%", fixed(), vec![140_000]));
}

/// The block statuses of the first flows fill the feedback while the last, tiny flows are complete.
#[test]
fn more_statuses_than_fit_one_feedback() {
    let mut profile = fixed();
    profile.set("blocks.k", "10").expect("blocks of one size");
    let objects = [vec![100_000; 54], vec![100; 9]].concat();
    all_arrive(&Plan::new("rate=100M,delay=300ms,queue=2MB,loss=30%", profile, objects));
}
