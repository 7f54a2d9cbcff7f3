//! The connections of browsers, a bounded number of them.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tower_service::Service as _;

use super::lock;

/// The most open connections; far below the limit of open files.
const MOST: usize = 128;
/// The time limit for the head of a request, and for the wait for the next one.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// The longest head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;
/// The pause after a failed accept, such as with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// An open connection.
#[derive(Debug)]
struct HttpConnection {
    task: AbortHandle,
    rank: Arc<Mutex<Rank>>,
}

/// The order in which connections are closed at the limit: those without the secret first, then those with the oldest
/// last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    was_let_in: bool,
    at: Instant,
}

impl Rank {
    fn now(was_let_in: bool) -> Self {
        Self { was_let_in, at: Instant::now() }
    }
}

/// Answers all clients, forever. Connections without the secret cannot block clients that know it.
pub(super) async fn serve(listener: TcpListener, rooms: Router) -> Infallible {
    let mut tasks = JoinSet::new();
    let mut open: Vec<HttpConnection> = Vec::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        while tasks.try_join_next().is_some() {}
        open.retain(|connection| !connection.task.is_finished());
        if open.len() >= MOST
            && let Some((first, _)) = open.iter().enumerate().min_by_key(|(_, connection)| *lock(&connection.rank))
        {
            open.swap_remove(first).task.abort();
        }
        let rank = Arc::new(Mutex::new(Rank::now(false)));
        let task = tasks.spawn(answer(stream, rooms.clone(), Arc::clone(&rank)));
        open.push(HttpConnection { task, rank });
    }
}

/// Answers the requests of one connection.
async fn answer(stream: TcpStream, rooms: Router, rank: Arc<Mutex<Rank>>) {
    let service = service_fn(|request: Request<Incoming>| {
        let (mut rooms, rank) = (rooms.clone(), Arc::clone(&rank));
        async move {
            let answer = rooms.call(request.map(Body::new)).await?;
            if ![StatusCode::FORBIDDEN, StatusCode::MISDIRECTED_REQUEST].contains(&answer.status()) {
                *lock(&rank) = Rank::now(true);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN).max_buf_size(LONGEST_HEAD);
    // An error ends the connection; the client notices or is gone.
    let _ = http.serve_connection(TokioIo::new(stream), service).await;
}
