//! An observed transfer: every byte is shown once, is the object's, and has one kind.

use downpour_sim::{DeliveredBy, ObservedTransfer, linux_tcp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use transport::Profile;

const SIZE: usize = 300_000;

/// The bytes of a transfer shown to a viewer.
struct Shown {
    bytes: Vec<u8>,
    kinds: Vec<Option<DeliveredBy>>,
    /// Looks that showed something.
    steps: usize,
}

impl Shown {
    fn count(&self, came: DeliveredBy) -> usize {
        self.kinds.iter().filter(|kind| **kind == Some(came)).count()
    }
}

fn object() -> Arc<[u8]> {
    let mut random = fastrand::Rng::with_seed(9);
    (0..SIZE).map(|_| random.u8(..)).collect()
}

/// Watches a transfer to its end, looking every 20 ms.
fn watch(watched: &mut ObservedTransfer, object: &[u8]) -> Shown {
    let mut shown = Shown { bytes: vec![0; SIZE], kinds: vec![None; SIZE], steps: 0 };
    for tick in 1..5_000 {
        watched.run_until(Duration::from_millis(20 * tick)).expect("time passes");
        let (pieces, open) = watched.look();
        shown.steps += usize::from(!pieces.is_empty());
        for piece in pieces {
            let range = piece.offset as usize..piece.offset as usize + piece.bytes.len();
            assert_eq!(piece.bytes, object[range.clone()], "{range:?}");
            assert!(shown.kinds[range.clone()].iter().all(Option::is_none), "{range:?} is shown twice");
            shown.bytes[range.clone()].copy_from_slice(&piece.bytes);
            shown.kinds[range].fill(Some(piece.came));
        }
        assert!(open.iter().all(|block| block.offset + block.length <= SIZE as u64 && block.k > 0), "{open:?}");
        if watched.is_over() {
            break;
        }
    }
    shown
}

fn profiles() -> BTreeMap<&'static str, Profile> {
    let named = |name| (name, systems::profile(name).expect("built in"));
    systems::registry().profile_names().map(named).chain([("linux-tcp", linux_tcp())]).collect()
}

#[test]
fn every_byte_is_shown_once_and_has_one_kind() {
    let object = object();
    for (name, profile) in profiles() {
        for (link, loses) in
            [("rate=20M,delay=10ms,queue=100KB", false), ("rate=20M,delay=10ms,queue=100KB,loss=8%", true)]
        {
            let link = link.parse().expect("a link");
            let profile = match name {
                "rc-udp" => profile.clone().with_fixed_rate(transport::Rate::from_bits_per_second(20_000_000)),
                _ => profile.clone(),
            };
            let mut watched = ObservedTransfer::new(&object, &link, &profile, 3).expect("a link that makes sense");
            let shown = watch(&mut watched, &object);
            let state = watched.state();
            if state.gave_up && name == "ttp" {
                // Its chunks may be beyond repair (ttp I).
                continue;
            }
            assert!(state.completed.is_some() && watched.is_identical(), "{name}: {state:?}");
            assert_eq!(shown.bytes, *object, "{name}");
            let [first, again, repaired] =
                [DeliveredBy::Source, DeliveredBy::Retransmission, DeliveredBy::Decoding].map(|came| shown.count(came));
            assert_eq!(first + again + repaired, SIZE, "{name}");
            println!("{name}, {loses}: {first} {again} {repaired} in {} steps, {state:?}", shown.steps);
            match name {
                "rc-udp" => assert_eq!(repaired, SIZE, "coded symbols only"),
                "arq" | "linux-tcp" => assert!(repaired == 0 && (again > 0) == (state.lost > 0), "{name}: {again}"),
                _ => assert!(
                    first > SIZE / 2 && (loses || state.lost > 0 || first == SIZE),
                    "{name}: {first} {again} {repaired}"
                ),
            }
            if name != "rc-udp" {
                assert!(shown.steps > 3, "{name}: shown as it arrives, {} steps", shown.steps);
            }
        }
    }
}

#[test]
fn a_link_changes_under_way() {
    let object = object();
    let calm = "rate=20M,delay=10ms,queue=100KB".parse().expect("a link");
    let mut watched = ObservedTransfer::new(&object, &calm, &systems::auto(), 1).expect("a link that makes sense");
    watched.run_until(Duration::from_millis(60)).expect("time passes");
    assert_eq!(watched.state().lost, 0);
    watched.set_link(&"rate=20M,delay=10ms,queue=100KB,loss=20%".parse().expect("a link")).expect("a link");
    let shown = watch(&mut watched, &object);
    assert!(shown.bytes == *object && watched.state().lost > 10, "{:?}", watched.state());
}
