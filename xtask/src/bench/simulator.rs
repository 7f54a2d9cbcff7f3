//! How fast the simulator is, crypto included.

use std::time::Instant;

use sim::Case;

use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

const LINK: &str = "rate=1G,delay=10ms,queue=2MB,loss=1%";
/// Packets a second, at least.
const TARGET: f64 = 200_000.0;

pub(super) fn run(quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let (megabytes, runs) = if quick { (30, 3) } else { (200, 5) };
    heading(format_args!("simulator: {megabytes} MB over {LINK}, {runs} runs, wall clock"));
    let case = Case { size: megabytes * 1_000_000, ..Case::new(LINK.parse().map_err(Failure::at(LINK))?) };
    let mut speeds = Sample::default();
    for seed in 1..=runs {
        let started = Instant::now();
        let outcome = case.run(seed);
        if !outcome.is_identical() {
            return Err(Failure::new(format_args!("seed {seed}: the object did not arrive: {:?}", outcome.ending)));
        }
        speeds.push(outcome.packets as f64 / started.elapsed().as_secs_f64());
    }
    let mark = tally.at_least("simulator, packets a second", speeds.median(), TARGET);
    println!("  {speeds:.0} packets a second, target {TARGET:.0}: {mark}");
    Ok(())
}
