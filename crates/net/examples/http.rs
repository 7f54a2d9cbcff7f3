//! HTTP/1.1 over a stream: hyper's server and client take a stream as they take a TCP connection.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use downpour_net::{AcceptOptions, Connection, Endpoint};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

/// The secret of both sides. Draw it at random, and exchange it over a channel you trust.
const KEY: [u8; 32] = [7; 32];

async fn greet(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(format!("hello, {}", request.uri().path()).into()))
}

/// Serves each stream of a connection as one of HTTP.
async fn serve(connection: Connection) {
    while let Ok(stream) = connection.accept().await {
        let http = hyper::server::conn::http1::Builder::new();
        tokio::spawn(http.serve_connection(TokioIo::new(stream), service_fn(greet)));
    }
}

/// Asks for a path over a stream of its own.
async fn get(connection: &Connection, path: &str) -> Result<(StatusCode, Bytes), Box<dyn Error>> {
    let stream = connection.open().await?;
    let (mut sender, http) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(http);
    let request = Request::get(path).header("host", "downpour").body(Empty::<Bytes>::new())?;
    let response = sender.send_request(request).await?;
    Ok((response.status(), response.into_body().collect().await?.to_bytes()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Endpoint::bind(loopback)?;
    let an_hour = SystemTime::now() + Duration::from_secs(3600);
    let mut incoming = server.incoming(KEY, an_hour, AcceptOptions::default());
    tokio::spawn(async move {
        while let Some(connection) = incoming.accept().await {
            tokio::spawn(serve(connection));
        }
    });

    let client = Endpoint::bind(loopback)?;
    let connection = client.connect((KEY, server.local_address())).await?;
    // Two requests at once, neither behind the other.
    let (first, second) = tokio::join!(get(&connection, "/first"), get(&connection, "/second"));
    for ((status, body), path) in [(first?, "/first"), (second?, "/second")] {
        println!("{status} {}", String::from_utf8_lossy(&body));
        assert_eq!((status, &body[..]), (StatusCode::OK, format!("hello, {path}").as_bytes()));
    }
    connection.close(0, "done");
    Ok(())
}

#[test]
fn http_requests_are_answered_over_streams() {
    main().unwrap();
}
