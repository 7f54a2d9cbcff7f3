//! Receives into the directory named as argument, with the ticket on standard input: `cargo run --example receive
//! DIRECTORY`.

use downpour::{Ticket, TransferOptions, receive};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let into: std::path::PathBuf = std::env::args_os().nth(1).ok_or("name a directory")?.into();
    let ticket = Ticket::parse(&std::io::read_to_string(std::io::stdin())?)?;
    let transfer = receive(into, ticket, TransferOptions::default())?;
    println!("{}", transfer.finish().await?);
    Ok(())
}
