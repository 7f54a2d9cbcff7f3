use std::sync::Arc;

use super::*;
use crate::field;
use crate::kernel::program::Inputs;
use crate::splitmix::SplitMix64;

struct Dice(SplitMix64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn symbol(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| self.below(256) as u8).collect()
    }

    /// Returns `degree` different unknowns.
    fn terms(&mut self, unknowns: usize, degree: usize) -> Vec<u32> {
        let mut terms = Vec::new();
        while terms.len() < degree.min(unknowns) {
            let term = self.below(unknowns) as u32;
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
        terms
    }
}

/// Adds up symbols.
fn sum(symbols: &[Vec<u8>], terms: &[u32], size: usize) -> Vec<u8> {
    let mut sum = vec![0; size];
    for &term in terms {
        sum.iter_mut().zip(&symbols[term as usize]).for_each(|(sum, octet)| *sum ^= octet);
    }
    sum
}

/// Returns the rank of equations over GF(2), by plain elimination.
fn rank(unknowns: usize, equations: &[Vec<u32>]) -> usize {
    let mut rows: Vec<Vec<bool>> = equations
        .iter()
        .map(|terms| {
            let mut row = vec![false; unknowns];
            terms.iter().for_each(|&term| row[term as usize] = true);
            row
        })
        .collect();
    let mut rank = 0;
    for column in 0..unknowns {
        let Some(pivot) = (rank..rows.len()).find(|&row| rows[row][column]) else { continue };
        rows.swap(rank, pivot);
        let pivot = rows[rank].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            if index != rank && row[column] {
                row.iter_mut().zip(&pivot).for_each(|(bit, other)| *bit ^= other);
            }
        }
        rank += 1;
    }
    rank
}

/// Random equations of random unknowns, of degrees from 1 on, added in two parts: the reported lack is the lack of
/// rank, and the solution is right, in one run and kept, before and after the peeled unknowns are completed.
#[test]
fn random_systems_are_solved_when_their_rank_is_full() {
    let (mut solved, mut lacked) = (0, 0);
    for seed in 1..400 {
        let mut dice = Dice(SplitMix64::new(seed));
        let unknowns = 1 + dice.below(90);
        let size = 1 + dice.below(200);
        let symbols: Vec<Vec<u8>> = (0..unknowns).map(|_| dice.symbol(size)).collect();
        let mut equations = Equations::new(unknowns as u32);
        if dice.below(2) == 0 {
            equations = equations.inactive_from((unknowns - dice.below(1 + unknowns / 4)) as u32);
        }
        let mut known: Vec<Vec<u32>> = Vec::new();
        let mut inputs: Vec<Vec<u8>> = Vec::new();
        let mut next = |dice: &mut Dice, known: &mut Vec<Vec<u32>>| {
            let most = if dice.below(10) == 0 { 20 } else { 4 };
            let degree = 1 + dice.below(most);
            let terms = dice.terms(unknowns, degree);
            inputs.push(sum(&symbols, &terms, size));
            known.push(terms.clone());
            (terms, Some(inputs.len() as u32 - 1))
        };
        for _ in 0..unknowns {
            let (terms, input) = next(&mut dice, &mut known);
            equations.push(&terms, input);
        }
        let mut elimination = Elimination::new(equations, None);
        loop {
            let missing = unknowns - rank(unknowns, &known);
            assert_eq!(elimination.lacking() as usize, missing, "seed {seed}");
            if missing == 0 {
                break;
            }
            lacked += 1;
            let (terms, input) = next(&mut dice, &mut known);
            let is_new = elimination.push_with(input, |list| list.extend_from_slice(&terms));
            assert_eq!(is_new, rank(unknowns, &known) == unknowns - missing + 1, "seed {seed}");
        }
        let plan = Arc::new(elimination.into_plan());
        let inputs = || Inputs::new(size, inputs.iter().map(|input| Some(&input[..])));
        let lists: Vec<Vec<u32>> = (0..1 + dice.below(30)).map(|_| dice.terms(unknowns, 1 + unknowns / 9)).collect();
        let mut wanted = Equations::new(unknowns as u32);
        lists.iter().for_each(|list| wanted.push(list, None));
        let expected: Vec<Vec<u8>> = lists.iter().map(|list| sum(&symbols, list, size)).collect();
        let check = |what: &str, make: &mut dyn FnMut(&mut [&mut [u8]])| {
            let mut outputs = vec![vec![0xaa; size]; lists.len()];
            make(&mut outputs.iter_mut().map(|output| &mut output[..]).collect::<Vec<_>>());
            assert_eq!(outputs, expected, "seed {seed}: {what}");
        };
        check("in one run", &mut |outputs| plan.solve(&inputs(), &wanted, outputs));
        let mut kept = Solved::new(Arc::clone(&plan), &inputs());
        check("kept", &mut |outputs| kept.output(&wanted, outputs));
        kept.expect(1_000_000, inputs);
        check("completed", &mut |outputs| kept.output(&wanted, outputs));
        solved += 1;
    }
    assert!(solved == 399 && lacked > 400, "{solved} solved, {lacked} lacked");
}

/// The chain of heavy equations, against the matrix product by which RFC 6330 defines it: MT times GAMMA.
#[test]
fn heavy_equations_are_the_product_of_their_matrices() {
    for seed in 1..60 {
        let mut dice = Dice(SplitMix64::new(seed));
        let (rows, span, size) = (1 + dice.below(12), 2 + dice.below(40), 1 + dice.below(70));
        let taps: Vec<[u8; 2]> = (1..span).map(|_| [0, 1].map(|_| dice.below(rows) as u8)).collect();
        let mut symbols: Vec<Vec<u8>> = (0..span).map(|_| dice.symbol(size)).collect();
        let power = |exponent: usize| (0..exponent).fold(1, |power, _| field::multiply(power, 2));
        for row in 0..rows {
            let mut sum = vec![0; size];
            for (column, symbol) in symbols[..span].iter().enumerate() {
                // Row `row` of MT times column `column` of GAMMA.
                let mut coefficient = field::multiply(power(row), power(span - 1 - column));
                for (step, taps) in taps.iter().enumerate().skip(column) {
                    for _ in taps.iter().filter(|&&tap| usize::from(tap) == row) {
                        coefficient ^= power(step - column);
                    }
                }
                sum.iter_mut().zip(symbol).for_each(|(sum, &octet)| *sum ^= field::multiply(coefficient, octet));
            }
            symbols.push(sum);
        }
        // All unknowns, except as many as heavy equations, have an equation of their own.
        let unknowns = span + rows;
        let free = dice.below(rows.min(span) + 1);
        let mut equations = Equations::new(unknowns as u32).inactive_from(span as u32);
        (free..unknowns - (rows - free)).for_each(|unknown| equations.push(&[unknown as u32], Some(unknown as u32)));
        let heavy = Heavy { rows: rows as u32, span: span as u32, taps };
        let elimination = Elimination::new(equations, Some(heavy));
        if elimination.lacking() > 0 {
            // The system may be singular if several unknowns of the span are free: their columns need not be
            // independent.
            assert!(free > 1, "seed {seed}: {free} of the span free, {rows} rows");
            continue;
        }
        let mut wanted = Equations::new(unknowns as u32);
        (0..unknowns).for_each(|unknown| wanted.push(&[unknown as u32], None));
        let mut outputs = vec![vec![0; size]; unknowns];
        let inputs = Inputs::new(size, symbols.iter().map(|symbol| Some(&symbol[..])));
        let mut places: Vec<_> = outputs.iter_mut().map(|output| &mut output[..]).collect();
        elimination.into_plan().solve(&inputs, &wanted, &mut places);
        assert_eq!(outputs, symbols, "seed {seed}");
    }
}
