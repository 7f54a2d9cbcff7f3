//! Times of the reference cases against the floor: `cargo run --release -p downpour-sim --example floor [SEEDS] [watched]`.

use downpour_sim::reference::{self, Row};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(40);
    let watched = arguments.iter().any(|text| text == "watched");
    println!("{}", Row::HEADER);
    for reference in if watched { reference::watched() } else { reference::cases() } {
        println!("{}", reference.run(seeds));
    }
}
