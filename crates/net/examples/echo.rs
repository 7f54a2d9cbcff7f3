//! An echo over streams: one side returns the bytes of the other, both over loopback.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use downpour_net::{AcceptOptions, Connection, Endpoint, NetError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_buf};

/// The shared secret of both sides. Draw it at random, and exchange it over a channel that you trust.
const KEY: [u8; 32] = [7; 32];

/// Returns the received bytes, on every stream.
async fn serve(connection: Connection) -> io::Result<NetError> {
    loop {
        let Ok(stream) = connection.accept().await else { return Ok(connection.closed().await) };
        let (mut from, mut to) = stream.into_split();
        copy_buf(&mut from, &mut to).await?;
        to.finish();
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Endpoint::bind(loopback)?;
    let an_hour = SystemTime::now() + Duration::from_secs(3600);
    let mut incoming = server.incoming(KEY, an_hour, AcceptOptions::default());
    let serving = tokio::spawn(async move { serve(incoming.accept().await.ok_or(NetError::ConnectionLost)?).await });

    let client = Endpoint::bind(loopback)?;
    let connection = client.connect((KEY, server.local_address())).await?;
    let mut stream = connection.open().await?;
    stream.write_all(b"hello").await?;
    stream.finish();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("{answer}");
    assert_eq!(answer, "hello");

    connection.close(0, "end of stream");
    println!("{}", serving.await??);
    Ok(())
}

#[test]
fn sent_bytes_are_echoed() {
    main().unwrap();
}
