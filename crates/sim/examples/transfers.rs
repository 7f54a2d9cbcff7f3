//! How many packets whole transfers simulate in a second of processor time: `cargo run --release -p downpour-sim --example
//! transfers [REPEATS]`.

use downpour_sim::Case;
use std::time::Duration;
use transport::Profile;

/// Processor time of this thread, whatever else runs on the machine.
fn processor_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().ok_or("an empty schedstat")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let repeats: u64 = std::env::args().nth(1).map_or(Ok(3), |text| text.parse())?;
    let searching = |name: &str, profile: Profile, link: &str| -> Result<_, Box<dyn std::error::Error>> {
        Ok((name.to_owned(), Case { profile, size: 100_000_000, ..Case::new(link.parse()?) }))
    };
    let fixed = |name: &str, link: &str| -> Result<_, Box<dyn std::error::Error>> {
        Ok((name.to_owned(), Case { size: 100_000_000, ..Case::new(link.parse()?) }))
    };
    let cases = [
        fixed("auto, fixed rate, no loss", "rate=1G,delay=25ms,queue=2MB")?,
        fixed("auto, fixed rate, 5 %", "rate=1G,delay=25ms,queue=2MB,loss=5%")?,
        searching("auto, unknown rate, no loss", systems::auto(), "rate=100M,delay=10ms,queue=1bdp")?,
        searching("arq, no loss", systems::arq::profile(), "rate=100M,delay=10ms,queue=1bdp")?,
        searching("arq, 0.01 %", systems::arq::profile(), "rate=100M,delay=10ms,queue=1bdp,loss=0.01%")?,
    ];
    for (name, case) in cases {
        let (mut packets, mut best) = (0, 0.0_f64);
        for seed in 1..=repeats {
            let start = processor_time()?;
            let outcome = case.run(seed);
            best = best.max(outcome.packets as f64 / (processor_time()? - start).as_secs_f64());
            packets = outcome.packets;
            if !outcome.is_identical() {
                return Err(format!("{name}: {:?}", outcome.ending).into());
            }
        }
        println!("{:8.0} packets a second: {name} ({packets} packets, best of {repeats})", best);
    }
    Ok(())
}
