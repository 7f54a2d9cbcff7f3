//! The demo's relay: real sockets and real time, against the floor.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use xtask::failure::Failure;
use xtask::measuring::Sample;
use xtask::measuring::{Tally, heading};

const LINK: &str = "rate=100M,delay=25ms,queue=256KB,loss=5%";
/// Floors, at most.
const TARGET: f64 = 1.15;

pub(super) fn run(program: &Path, quick: bool, tally: &mut Tally) -> Result<(), Failure> {
    let runs = if quick { 3 } else { 11 };
    heading(format_args!("relay: 10 MB over {LINK}, fixed rate, real sockets, {runs} runs"));
    let (mut ratios, mut seconds) = (Sample::default(), Sample::default());
    let mut late = 0;
    for _ in 0..runs {
        let demo = demo(program)?;
        let number = |value: &Value| value.as_f64().ok_or_else(|| Failure::new("downpour demo --json lacks a number"));
        let took = number(&demo["downpour"]["seconds"])?;
        seconds.push(took);
        ratios.push(took / number(&demo["floor_seconds"])?);
        late += u32::from(demo["downpour"]["relay_on_time"] != Value::Bool(true));
    }
    let mark = tally.at_most("relay, floors", ratios.median(), TARGET);
    println!("  {seconds:.3} s, {ratios:.3} x floor, target <= {TARGET}: {mark}");
    if late > 0 {
        println!(
            "  in {late} of {runs} runs the relay was late or lost packets itself: this machine was too busy to be the link"
        );
    }
    Ok(())
}

/// One run's results.
fn demo(program: &Path) -> Result<Value, Failure> {
    let mut command = Command::new(program);
    command.args(["demo", "--json", "--no-compare", "--size", "10MB", "--link", LINK]);
    let output = command.output().map_err(Failure::at("downpour demo"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format_args!("downpour demo: {}: {}", output.status, said.trim())));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = lines.next_back().filter(|line| line["type"] == "demo");
    last.ok_or_else(|| Failure::new("downpour demo --json printed no results"))
}
