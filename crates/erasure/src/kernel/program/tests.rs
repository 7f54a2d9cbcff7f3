//! The bounds of programs, and their runs at every level of this machine against sums of single bytes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Inputs, LINE, Lines, Part, Program, Slots};
use crate::field;
use crate::kernel::Level;
use crate::testing::noise;

/// Widths of slots, in lines: with registers of every size, slots of one of them, of some, and of no power of two.
const WIDTHS: [usize; 5] = [1, 2, 3, 4, 8];

/// A sum: its target, input, first and last sources.
type Sum = (u32, u32, &'static [u32], &'static [u32]);

fn program(sums: &[Sum]) -> Program {
    let mut program = Program::default();
    for &(target, input, first, last) in sums {
        program.push_parts(target, input, first.iter().copied(), last.iter().copied());
    }
    program
}

/// Returns slots of noise, `bytes` each.
fn noisy(seed: usize, count: usize, bytes: usize) -> Vec<Vec<u8>> {
    noise(seed, count * bytes).chunks(bytes).map(<[u8]>::to_vec).collect()
}

/// Returns the lines of such slots.
fn lines_of(slots: &[Vec<u8>]) -> Lines {
    let bytes = slots.concat();
    let mut lines = Lines::new(bytes.len() / LINE);
    lines.slots(0, bytes.len() / LINE, 1).bytes.copy_from_slice(&bytes);
    lines
}

/// Adds `factor` times `from`, for the length of `to`.
fn add(to: &mut [u8], from: &[u8], factor: u8) {
    for (to, from) in to.iter_mut().zip(from) {
        *to ^= field::multiply(factor, *from);
    }
}

/// Runs `work` on `count` slots at every level and width, and `expected` on the same as rows of bytes. The slots before
/// and after must not change.
fn check(count: usize, work: impl Fn(Level, &mut Slots<'_>), expected: impl Fn(&mut [Vec<u8>])) {
    for (level, width) in Level::available().flat_map(|level| WIDTHS.map(|width| (level, width))) {
        let mut rows = noisy(1, count + 2, width * LINE);
        let mut lines = lines_of(&rows);
        work(level, &mut lines.slots_at(level, width, count * width, width));
        expected(&mut rows[1..=count]);
        let after = lines.slots(0, (count + 2) * width, width).bytes;
        for (slot, (after, row)) in after.chunks(width * LINE).zip(&rows).enumerate() {
            assert!(after == row, "{level:?}, {width} lines: slot {slot}, counted from 1");
        }
    }
}

/// Sums of sums before them and of their own targets, without sources, and without an input.
#[test]
fn sums_of_slots_and_inputs() {
    const SUMS: [Sum; 7] = [
        (2, 0, &[0, 1], &[]),
        (3, 1, &[2], &[4]),
        (4, 2, &[], &[]),
        (5, 3, &[5, 0, 1, 2, 3], &[4, 6]),
        (0, 0, &[], &[7]),
        (6, 2, &[0, 1, 2, 3, 4, 5], &[7, 2]),
        (1, 3, &[], &[1]),
    ];
    const OFFSET: usize = 5;
    let symbols = noisy(2, 3, OFFSET + 8 * LINE);
    let inputs = Inputs::new(symbols[0].len(), symbols.iter().map(|symbol| Some(&symbol[..])));
    for part in [Part::First, Part::All] {
        check(
            8,
            |_, slots| slots.run(&program(&SUMS), part, &inputs, OFFSET),
            |rows| {
                for (target, input, first, last) in SUMS {
                    let mut sum = vec![0; rows[0].len()];
                    add(&mut sum, &inputs.symbols()[input as usize][OFFSET..], 1);
                    let last = if part == Part::All { last } else { &[] };
                    first.iter().chain(last).for_each(|&source| add(&mut sum, &rows[source as usize], 1));
                    rows[target as usize] = sum;
                }
            },
        );
    }
}

/// First sources among one kind of slots, last sources among the other.
const OF_BOTH: [Sum; 4] = [(0, 0, &[0, 1], &[]), (1, 0, &[2], &[0]), (2, 0, &[], &[0, 1, 3]), (3, 0, &[3, 1], &[2])];

fn sum_of_both((_, _, first, last): Sum, slots: &[Vec<u8>], tables: &[Vec<u8>]) -> Vec<u8> {
    let mut sum = vec![0; slots[0].len()];
    first.iter().for_each(|&source| add(&mut sum, &slots[source as usize], 1));
    last.iter().for_each(|&source| add(&mut sum, &tables[source as usize], 1));
    sum
}

#[test]
fn tables_are_filled() {
    check(
        4,
        |level, tables| {
            let width = tables.bytes.len() / 4 / LINE;
            let mut lines = lines_of(&noisy(2, 4, width * LINE));
            lines.slots_at(level, 0, 4 * width, width).fill(&program(&OF_BOTH), tables);
        },
        |tables| {
            let slots = noisy(2, 4, tables[0].len());
            for sum in OF_BOTH {
                tables[sum.0 as usize] = sum_of_both(sum, &slots, tables);
            }
        },
    );
}

/// Into the middle of outputs, whose other bytes do not change.
#[test]
fn outputs_are_sums_of_slots_and_tables() {
    const BEFORE: usize = 7;
    const AFTER: usize = 3;
    for (level, width) in Level::available().flat_map(|level| WIDTHS.map(|width| (level, width))) {
        let (slots, tables) = (noisy(1, 4, width * LINE), noisy(2, 4, width * LINE));
        let mut outputs = noisy(3, 4, BEFORE + width * LINE + AFTER);
        let mut expected = outputs.clone();
        for sum in OF_BOTH {
            expected[sum.0 as usize][BEFORE..][..width * LINE].copy_from_slice(&sum_of_both(sum, &slots, &tables));
        }
        let (mut slots, mut tables) = (lines_of(&slots), lines_of(&tables));
        let tables = tables.slots_at(level, 0, 4 * width, width);
        let mut rows: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        slots.slots_at(level, 0, 4 * width, width).output(&program(&OF_BOTH), &tables, &mut rows, BEFORE);
        assert!(outputs == expected, "{level:?}, {width} lines");
    }
}

/// Against the chain as it is defined; the last tap names a slot twice, so that it does not change. Slot 6 is in
/// neither part.
#[test]
fn a_chain_is_added() {
    const TAPS: [[u8; 2]; 5] = [[0, 1], [3, 0], [1, 2], [0, 3], [2, 2]];
    const FIRST: usize = 7;
    check(
        FIRST + 4,
        |_, slots| slots.chain(&TAPS, FIRST as u32, 4),
        |rows| {
            let mut y = vec![0; rows[0].len()];
            for step in 0..=TAPS.len() {
                y.iter_mut().for_each(|y| *y = field::multiply(2, *y));
                add(&mut y, &rows[step], 1);
                for &tap in TAPS.get(step).into_iter().flatten() {
                    add(&mut rows[FIRST + usize::from(tap)], &y, 1);
                }
            }
            for (row, factor) in rows[FIRST..].iter_mut().zip([1, 2, 4, 8]) {
                add(row, &y, factor);
            }
        },
    );
}

/// One of the targets is a source too.
#[test]
fn a_matrix_times_slots_is_added() {
    const TARGETS: [u32; 3] = [0, 3, 5];
    const SOURCES: [u32; 4] = [1, 2, 4, 3];
    const COEFFICIENTS: [u8; 12] = [0, 1, 2, 142, 255, 29, 128, 3, 1, 1, 0, 77];
    check(
        6,
        |_, slots| slots.combine(&TARGETS, &SOURCES, &COEFFICIENTS),
        |rows| {
            for (target, coefficients) in TARGETS.iter().zip(COEFFICIENTS.chunks(SOURCES.len())) {
                let mut sum = rows[*target as usize].clone();
                for (&source, &coefficient) in SOURCES.iter().zip(coefficients) {
                    add(&mut sum, &rows[source as usize], coefficient);
                }
                rows[*target as usize] = sum;
            }
        },
    );
}

/// Runs a program of one sum, in 4 slots, with one input and the zeros.
fn run(target: u32, input: u32, first: u32, last: u32) {
    let mut program = Program::default();
    program.push_parts(target, input, [first], [last]);
    let inputs = Inputs::new(LINE, [None].into_iter());
    Lines::new(4).slots(0, 4, 1).run(&program, Part::All, &inputs, 0);
}

/// Numbers at the bounds, and the largest, whose bound does not fit its type.
#[test]
fn kernel_program_out_of_range_rejected() {
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

/// No partial sum counts, and the sums before and after it stay whole.
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
    assert_eq!((program.additions(Part::First), program.additions(Part::All)), (1 + 1 + 1 + 3, 1 + 1 + 1 + 3));
    let ones = [1; LINE];
    let mut lines = Lines::new(4);
    let mut slots = lines.slots(0, 4, 1);
    slots.run(&program, Part::All, &Inputs::new(LINE, [Some(&ones[..])].into_iter()), 0);
    assert_eq!([0, 1, 2, 3].map(|slot| slots.bytes[slot * LINE]), [0, 1, 0, 1]);
}

#[test]
#[should_panic(expected = "before the last ones")]
fn first_sources_are_first() {
    let mut program = Program::default();
    program.push_parts(0, 0, [], [1]);
    program.add_first([2]);
}

#[test]
#[should_panic(expected = "a sum was begun")]
fn sources_belong_to_a_sum() {
    Program::default().add_last([9; 5]);
}
