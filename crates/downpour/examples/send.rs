//! Sends the paths named as arguments to the holder of the printed ticket: `cargo run --example send PATH...`.

use downpour::{ListenOptions, TransferOptions, send};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<std::path::PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let transfer = send(paths, ListenOptions::default(), TransferOptions::default())?;
    if let Some(ticket) = transfer.ticket() {
        println!("{}", ticket.to_text()?);
    }
    println!("{}", transfer.finish().await?);
    Ok(())
}
