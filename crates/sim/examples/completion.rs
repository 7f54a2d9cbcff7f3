//! Completion times of one transfer: `cargo run --release -p downpour-sim --example completion LINK BYTES SEEDS CONTROLLER...`
//!
//! For each controller: the seconds of each seed, their median with the floor, and the IP bytes sent for each byte of
//! the object.

use downpour_sim::Case;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [link, bytes, seeds, controllers @ ..] = &arguments[..] else {
        return Err("LINK BYTES SEEDS CONTROLLER...".into());
    };
    let (size, seeds): (u64, u64) = (bytes.parse()?, seeds.parse()?);
    for controller in controllers {
        let mut profile = systems::auto();
        profile.set("congestion", controller)?;
        let case = Case { profile, size, ..Case::new(link.parse()?) };
        let outcomes: Vec<_> = (1..=seeds).map(|seed| case.run(seed)).collect();
        let mut seconds: Vec<f64> = outcomes.iter().map(downpour_sim::Outcome::completed_secs).collect();
        let listed: Vec<String> = seconds.iter().map(|seconds| format!("{seconds:.3}")).collect();
        seconds.sort_by(f64::total_cmp);
        let wire = outcomes.iter().map(|outcome| outcome.bytes_until_complete).sum::<u64>() as f64;
        println!(
            "{controller}: {} s, median {:.3}, floor {:.3}, wire {:.3}",
            listed.join(" "),
            seconds[seconds.len() / 2],
            case.floor().as_secs_f64(),
            wire / (size * seeds) as f64,
        );
    }
    Ok(())
}
