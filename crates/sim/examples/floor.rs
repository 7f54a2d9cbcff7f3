//! Times of the reference cases against the floor: `cargo run --release -p sim --example floor [SEEDS]`.
//!
//! 100 Mbit/s told, a queue of 256 KB, random loss both ways, the sender connects (design section 8).

use sim::Case;

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(40);
    println!("     size    rtt   loss   floor s   median s  x floor   worst x   wire/payload  after  bad");
    let cases = [
        (10_000_000, 25, 0), (10_000_000, 25, 1), (10_000_000, 25, 5), (10_000_000, 25, 10),
        (10_000_000, 300, 2), (1_000_000, 100, 0), (1_000_000, 100, 1), (1_000_000, 100, 5), (1_000_000, 100, 10),
    ];
    for (size, delay, loss) in cases {
        let link = format!("rate=100M,delay={delay}ms,queue=256KB,loss={loss}%");
        let case = Case { size, ..Case::new(link.parse().expect("a link")) };
        let floor = case.floor().as_secs_f64();
        let mut times = Vec::new();
        let (mut until, mut after, mut bad) = (Vec::new(), Vec::new(), 0);
        for seed in 1..=seeds {
            let outcome = case.run(seed);
            bad += u32::from(!outcome.is_identical() || outcome.ending != sim::Ending::Closed);
            times.push(outcome.completed_secs());
            until.push(outcome.bytes_until_complete as f64 / size as f64);
            after.push((outcome.sender.bytes_sent - outcome.bytes_until_complete) as f64 / size as f64);
        }
        let median = |values: &mut Vec<f64>| { values.sort_by(f64::total_cmp); values[values.len() / 2] };
        let worst = times.iter().copied().fold(0.0, f64::max);
        let middle = median(&mut times);
        println!("{size:9} {:4}ms {loss:5}% {floor:9.3} {middle:10.3} {:8.3} {:9.3} {:14.4} {:6.4} {bad:4}",
            2 * delay, middle / floor, worst / floor, median(&mut until), median(&mut after));
    }
}
