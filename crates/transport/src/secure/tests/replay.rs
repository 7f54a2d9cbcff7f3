//! The replay window against a set that forgets nothing.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const WINDOW: u64 = 65_536;

#[derive(Default)]
struct Model {
    highest: u64,
    seen: BTreeSet<u64>,
}

impl Model {
    fn check_and_set(&mut self, number: u64) -> bool {
        if self.highest.saturating_sub(number) >= WINDOW {
            return false;
        }
        self.highest = self.highest.max(number);
        self.seen.insert(number)
    }
}

#[test]
fn the_window_reaches_back_65536_numbers() {
    let mut window = ReplayWindow::default();
    assert!(window.check_and_set(0));
    assert!(!window.check_and_set(0));
    assert!(window.check_and_set(WINDOW));
    assert!(!window.check_and_set(0), "too old");
    assert!(window.check_and_set(1), "the oldest remembered number");
    assert!(!window.check_and_set(1));
    assert!(window.check_and_set(WINDOW - 1));
}

#[test]
fn a_jump_of_any_size_is_one_pass() {
    let mut window = ReplayWindow::default();
    for number in [0, 1, 1 << 40, u64::MAX - 1, u64::MAX] {
        assert!(window.check_and_set(number), "{number}");
        assert!(!window.check_and_set(number), "{number}");
    }
    assert!(window.check_and_set(u64::MAX - WINDOW + 1));
    assert!(!window.check_and_set(u64::MAX - WINDOW));
    // If every number between two of these were visited, this would never end.
    let mut window = ReplayWindow::default();
    assert!((1..10_000).all(|jump| window.check_and_set(jump * (1 << 40))));
}

#[test]
fn a_jump_forgets_neither_too_much_nor_too_little() {
    let mut filled = ReplayWindow::default();
    assert!((0..WINDOW).all(|number| filled.check_and_set(number)));
    for start in WINDOW..WINDOW + 64 {
        assert!(filled.check_and_set(start));
        for jump in 2..200 {
            let (mut window, highest) = (filled.clone(), start + jump);
            assert!(window.check_and_set(highest));
            assert!(!window.check_and_set(highest - WINDOW + 1), "the oldest, after {start} + {jump}");
            assert!(
                (start + 1..highest).all(|number| window.check_and_set(number)),
                "those between, after {start} + {jump}"
            );
        }
    }
}

proptest! {
    #[test]
    fn replay_window_agrees_with_the_model(
        start in prop_oneof![Just(0), 0..1_u64 << 50],
        steps in proptest::collection::vec((prop_oneof![
            6 => -200..300_i64,
            2 => -70_000..70_000_i64,
            1 => -66_000..-65_000_i64,
            1 => 60_000..200_000_i64,
        ], 1..80_u64), 1..60),
    ) {
        let (mut window, mut model) = (ReplayWindow::default(), Model::default());
        for (offset, run) in steps {
            let from = model.highest.max(start).saturating_add_signed(offset);
            for number in from..from + run {
                prop_assert_eq!(window.check_and_set(number), model.check_and_set(number), "number {}", number);
            }
        }
    }
}
