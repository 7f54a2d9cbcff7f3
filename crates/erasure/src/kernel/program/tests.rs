//! What a program may name, and its runs at every level of this machine against sums of single bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Inputs, LINE, Lines, Part, Program};

/// Runs a program of one sum, in 4 slots, with one input beside the zeros.
fn run(target: u32, input: u32, first: u32, last: u32) {
    let mut program = Program::default();
    program.push_parts(target, input, [first], [last]);
    let inputs = Inputs::new(LINE, [None].into_iter());
    Lines::new(4).slots(0, 4, 1).run(&program, Part::All, &inputs, 0);
}

/// Numbers at the bounds, and the largest, whose bound does not fit its type.
#[test]
fn what_does_not_exist_is_refused() {
    run(3, 1, 3, 3);
    for beyond in [4, u32::MAX] {
        for (target, input, first, last) in
            [(beyond, 1, 3, 3), (3, beyond, 3, 3), (3, 1, beyond, 3), (3, 1, 3, beyond), (3, 2, 3, 3)]
        {
            let refused = catch_unwind(|| run(target, input, first, last)).expect_err("a refusal");
            let text = refused.downcast_ref::<&str>().copied().unwrap_or("no text");
            assert!(["slots", "inputs"].contains(&text), "{target} {input} {first} {last}: {text}");
        }
    }
}

/// The sums before it and after it stay whole.
#[test]
fn a_panic_among_the_sources_leaves_whole_sums() {
    let mut program = Program::default();
    program.push(3, 1, []);
    for part in [Part::First, Part::All] {
        let sources = || [3, 9].into_iter().inspect(|&source| assert_ne!(source, 9, "the second source"));
        catch_unwind(AssertUnwindSafe(|| {
            program.begin(0, 0);
            if part == Part::First { program.add_first(sources()) } else { program.add_last(sources()) }
        }))
        .expect_err("a panic");
    }
    program.push(1, 0, [0, 3]);
    assert_eq!((program.additions(Part::First), program.additions(Part::All)), (1 + 2 + 1 + 3, 1 + 2 + 2 + 3));
    let ones = [1; LINE];
    let mut lines = Lines::new(4);
    let mut slots = lines.slots(0, 4, 1);
    slots.run(&program, Part::All, &Inputs::new(LINE, [Some(&ones[..])].into_iter()), 0);
    assert_eq!([0, 1, 2, 3].map(|slot| slots.bytes[slot * LINE]), [1, 0, 0, 1]);
}

#[test]
#[should_panic(expected = "before the last ones")]
fn first_sources_come_first() {
    let mut program = Program::default();
    program.push_parts(0, 0, [], [1]);
    program.add_first([2]);
}
