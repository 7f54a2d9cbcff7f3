//! The program `downpour-lab`: emulated links that real programs run over, and honest comparisons.

fn main() {}
