//! Both sides of a tunnel in one process, over UDP on loopback, between real sockets.

mod hostile;
mod metrics;

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use net::{AcceptOptions, Bind, ConnectOptions, Connection, Endpoint, EndpointOptions};
use rustix::net::sockopt::set_socket_linger;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinSet;

use super::*;
use crate::tunnel::messages::{ConnectReply, ConnectRequest, Refusal};
use crate::tunnel::session::SocksReplyTime;

const KEY: [u8; 32] = [7; 32];

/// A tunnel. Its tasks end when it is dropped.
struct Ends {
    local: Arc<Session>,
    remote: Arc<Session>,
    connections: [Connection; 2],
    /// Taken to kill that side.
    endpoints: [Option<Endpoint>; 2],
    tasks: JoinSet<()>,
}

impl Ends {
    async fn new(listeners: Vec<ForwardTarget>) -> Self {
        let loopback = Bind::Address("127.0.0.1:0".parse().unwrap());
        let bind =
            || Endpoint::builder().options(EndpointOptions::new(Duration::from_secs(10))).bind(&loopback).unwrap();
        let (a, b) = (bind(), bind());
        let expires = SystemTime::now() + Duration::from_secs(60);
        let mut incoming = b.incoming(KEY, expires, AcceptOptions::default());
        let near = a.connect((KEY, ConnectOptions::new(vec![b.local_address()]))).start();
        near.established().await.unwrap();
        let far = incoming.accept().await.unwrap();
        let notes = || Notes(Arc::new(drop));
        let local = Session::new(near.clone(), Permitted::Listeners(listeners), true, notes());
        let remote = Session::new(far.clone(), Permitted::Places, false, notes());
        let mut tasks = JoinSet::new();
        for session in [&local, &remote] {
            let session = Arc::clone(session);
            tasks.spawn(async move { drop(session.run().await) });
        }
        Self { local, remote, connections: [near, far], endpoints: [Some(a), Some(b)], tasks }
    }

    /// Listens at the local side; returns the port.
    fn listen(&mut self, to: ForwardTarget) -> u16 {
        self.listen_as(to, SocksReplyTime::Answered)
    }

    fn listen_as(&mut self, to: ForwardTarget, proxied: SocksReplyTime) -> u16 {
        let listener = Listener::bind(&tcp("localhost", 0)).unwrap();
        let port = listener.port().unwrap();
        self.tasks.spawn(Arc::clone(&self.local).listen(listener, to, proxied));
        port
    }

    /// Runs only the local side; the peer's connection becomes the test's.
    async fn only_local(&mut self) -> Connection {
        self.tasks.shutdown().await;
        let local = Arc::clone(&self.local);
        self.tasks.spawn(async move { drop(local.run().await) });
        self.connections[1].clone()
    }

    async fn kill(&mut self, end: usize) {
        drop(self.endpoints[end].take());
        let _ = self.connections[end].closed().await;
    }
}

fn tcp(host: &str, port: u16) -> ForwardAddress {
    ForwardAddress::Tcp { host: host.into(), port }
}

async fn dial(port: u16) -> TcpStream {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap()
}

/// A server that treats each connection like this; returns its port.
async fn serve<F: Future<Output = ()> + Send + 'static>(with: impl Fn(TcpStream) -> F + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(with(socket));
        }
    });
    port
}

/// Sends everything back only once it has all arrived.
async fn echo(mut socket: TcpStream) {
    let mut bytes = Vec::new();
    if socket.read_to_end(&mut bytes).await.is_ok() {
        let _ = socket.write_all(&bytes).await;
    }
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 997) as u8).collect()
}

/// Writes, ends, and reads to the end.
async fn exchange(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<Vec<u8>> {
    socket.write_all(bytes).await?;
    socket.shutdown().await?;
    let mut read = Vec::new();
    socket.read_to_end(&mut read).await?;
    Ok(read)
}

/// Returns the result of reading until the reset.
async fn broken(socket: &mut TcpStream) -> io::ErrorKind {
    let mut read = Vec::new();
    socket.read_to_end(&mut read).await.expect_err("no end").kind()
}

#[tokio::test]
async fn bytes_go_both_ways_and_either_may_end_first() {
    let mut ends = Ends::new(vec![]).await;
    let server = serve(echo).await;
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", server)));
    for length in [0, 1, 100, 3_000_000] {
        let bytes = pattern(length);
        assert!(exchange(&mut dial(port).await, &bytes).await.unwrap() == bytes, "{length}");
    }
    // A server that sends first, and finishes, while its client continues.
    let server = serve(async |mut socket: TcpStream| {
        socket.write_all(b"hello").await.unwrap();
        socket.shutdown().await.unwrap();
        let mut rest = String::new();
        socket.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "goodbye");
    });
    let port = ends.listen(ForwardTarget::Place(tcp("localhost", server.await)));
    let mut client = dial(port).await;
    let mut greeting = String::new();
    client.read_to_string(&mut greeting).await.unwrap();
    assert_eq!(greeting, "hello");
    client.write_all(b"goodbye").await.unwrap();
}

#[tokio::test]
async fn tunnel_refused_or_reset_is_no_clean_end() {
    let mut ends = Ends::new(vec![]).await;
    // A port that was just released has no listener.
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", closed)));
    assert_eq!(broken(&mut dial(port).await).await, io::ErrorKind::ConnectionReset);
    let server = serve(async |mut socket: TcpStream| {
        socket.write_all(b"some").await.unwrap();
        let mut one = [0];
        socket.read_exact(&mut one).await.unwrap();
        set_socket_linger(&socket, Some(Duration::ZERO)).unwrap();
    });
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", server.await)));
    let mut client = dial(port).await;
    let mut some = [0; 4];
    client.read_exact(&mut some).await.unwrap();
    client.write_all(b"x").await.unwrap();
    assert_eq!(broken(&mut client).await, io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn tunnel_killed_side_resets_connections() {
    for end in [0, 1] {
        let mut ends = Ends::new(vec![]).await;
        let (sender, mut results) = tokio::sync::mpsc::unbounded_channel();
        let server = serve(move |mut socket: TcpStream| {
            let sender = sender.clone();
            async move {
                socket.write_all(b"some").await.unwrap();
                let mut bytes = Vec::new();
                sender.send(socket.read_to_end(&mut bytes).await.map_err(|error| error.kind())).unwrap();
            }
        });
        let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", server.await)));
        let mut client = dial(port).await;
        let mut some = [0; 4];
        client.read_exact(&mut some).await.unwrap();
        ends.kill(end).await;
        assert_eq!(broken(&mut client).await, io::ErrorKind::ConnectionReset, "{end}");
        assert_eq!(results.recv().await, Some(Err(io::ErrorKind::ConnectionReset)), "{end}");
    }
}

/// Requests an address from a SOCKS server; returns its reply and the socket.
async fn by_socks(port: u16, name: &str, to: u16) -> (u8, TcpStream) {
    command_by_socks(port, 1, name, to).await
}

async fn command_by_socks(port: u16, command: u8, name: &str, to: u16) -> (u8, TcpStream) {
    let mut client = dial(port).await;
    let [high, low] = to.to_be_bytes();
    let asked = [&[5, 1, 0, 5, command, 0, 3, name.len() as u8][..], name.as_bytes(), &[high, low]].concat();
    client.write_all(&asked).await.unwrap();
    let mut answer = [0; 12];
    client.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..3], [5, 0, 5]);
    (answer[3], client)
}

#[tokio::test]
async fn socks_proxy_connects_requested_address() {
    let remote_proxy = vec![ForwardTarget::Socks];
    let mut ends = Ends::new(remote_proxy).await;
    let server = serve(echo).await;
    let local = ends.listen(ForwardTarget::Socks);
    let listener = Listener::bind(&tcp("localhost", 0)).unwrap();
    let remote = listener.port().unwrap();
    ends.tasks.spawn(Arc::clone(&ends.remote).listen_for(listener, 0));
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
    for proxy in [local, remote] {
        let (answer, mut client) = by_socks(proxy, "localhost", server).await;
        assert_eq!((answer, exchange(&mut client, b"hello").await.unwrap()), (0, b"hello".to_vec()));
        let (answer, mut client) = by_socks(proxy, "127.0.0.1", closed).await;
        assert_eq!((answer, exchange(&mut client, b"").await.unwrap()), (5, vec![]), "refused");
        let (answer, _) = by_socks(proxy, "no-such-name.invalid", 80).await;
        assert_eq!(answer, 4, "unknown");
        // Unsupported requests are answered too, and nothing follows.
        let (answer, mut client) = command_by_socks(proxy, 2, "localhost", server).await;
        assert_eq!((answer, exchange(&mut client, b"").await.unwrap()), (7, vec![]), "BIND");
    }
}

#[tokio::test]
async fn eager_proxy_sends_bytes_with_request() {
    let mut ends = Ends::new(vec![]).await;
    let far = ends.only_local().await;
    let proxy = ends.listen_as(ForwardTarget::Socks, SocksReplyTime::Eagerly);
    let (reply, mut client) = by_socks(proxy, "far.example", 80).await;
    client.write_all(b"hello").await.unwrap();
    // Nothing has been answered yet.
    let mut requested = far.accept().await.unwrap();
    assert_eq!(
        (reply, ConnectRequest::read(&mut requested).await.unwrap()),
        (0, ConnectRequest::Place(tcp("far.example", 80)))
    );
    let mut first = [0; 5];
    requested.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"hello");
    requested.write_all(&[&ConnectReply::Connected.encode()[..], b"goodbye"].concat()).await.unwrap();
    requested.finish();
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "goodbye");
}

#[tokio::test]
async fn eager_proxy_refusal_resets() {
    let mut ends = Ends::new(vec![]).await;
    let proxy = ends.listen_as(ForwardTarget::Socks, SocksReplyTime::Eagerly);
    let server = serve(echo).await;
    let (reply, mut client) = by_socks(proxy, "localhost", server).await;
    assert_eq!((reply, exchange(&mut client, b"hello").await.unwrap()), (0, b"hello".to_vec()));
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap().local_addr().unwrap().port();
    let (reply, mut client) = by_socks(proxy, "127.0.0.1", closed).await;
    assert_eq!((reply, broken(&mut client).await), (0, io::ErrorKind::ConnectionReset));
    // An invalid request is answered as by any proxy.
    let (reply, _) = command_by_socks(proxy, 2, "localhost", server).await;
    assert_eq!(reply, 7);
}

#[tokio::test]
async fn unix_sockets_are_listened_on_and_connected_to() {
    let directory = tempfile::tempdir().unwrap();
    let (own, far) = (directory.path().join("own"), directory.path().join("far"));
    let mut ends = Ends::new(vec![]).await;
    let server = tokio::net::UnixListener::bind(&far).unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = server.accept().await {
            socket.write_all(b"from a unix socket").await.unwrap();
        }
    });
    // A stale one is replaced, and one in use is not.
    drop(std::os::unix::net::UnixListener::bind(&own).unwrap());
    let listener = Listener::bind(&ForwardAddress::Unix(own.clone())).unwrap();
    assert_eq!(Listener::bind(&ForwardAddress::Unix(own.clone())).unwrap_err().kind(), io::ErrorKind::AddrInUse);
    ends.tasks.spawn(Arc::clone(&ends.local).listen(
        listener,
        ForwardTarget::Place(ForwardAddress::Unix(far)),
        SocksReplyTime::Answered,
    ));
    let mut read = String::new();
    UnixStream::connect(&own).await.unwrap().read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "from a unix socket");
    ends.tasks.shutdown().await;
    assert!(!own.exists(), "it is removed");
}

/// Sends a request to the peer; returns the reply.
async fn request(from: &Connection, asked: &ConnectRequest) -> ConnectReply {
    let mut stream = from.open_with(99).await.unwrap();
    stream.write_all(&asked.encode().unwrap()).await.unwrap();
    ConnectReply::read(&mut stream).await.unwrap()
}

#[tokio::test]
async fn tunnel_unrequested_forbidden() {
    let mut ends = Ends::new(vec![ForwardTarget::Place(tcp("127.0.0.1", 9))]).await;
    // The replies go to the test and not to the sessions.
    ends.tasks.shutdown().await;
    let [near, far] = ends.connections.clone();
    let forbidden = |answer| matches!(answer, ConnectReply::Refused(Refusal::Forbidden, _));
    let serving = Arc::clone(&ends.local);
    ends.tasks.spawn(async move { drop(serving.run().await) });
    assert!(forbidden(request(&far, &ConnectRequest::Place(tcp("127.0.0.1", 22))).await));
    assert!(forbidden(request(&far, &ConnectRequest::Listener(1)).await));
    ends.tasks.shutdown().await;
    let serving = Arc::clone(&ends.remote);
    ends.tasks.spawn(async move { drop(serving.run().await) });
    assert!(forbidden(request(&near, &ConnectRequest::Listener(0)).await));
}

#[tokio::test]
async fn a_thousand_connections_at_once_and_many_in_a_row() {
    // Each takes four descriptors of this process.
    raise_descriptor_limit();
    let mut ends = Ends::new(vec![]).await;
    let server = serve(echo).await;
    let port = ends.listen(ForwardTarget::Place(tcp("127.0.0.1", server)));
    let mut clients = JoinSet::new();
    // Idle ones prevent no others.
    let mut idle = Vec::new();
    for _ in 0..900 {
        idle.push(dial(port).await);
    }
    for number in 0..100 {
        clients.spawn(async move {
            let bytes = pattern(number * 37);
            assert!(exchange(&mut dial(port).await, &bytes).await.unwrap() == bytes, "{number}");
        });
    }
    let done = clients.join_all().await.len();
    assert_eq!(done, 100);
    for number in 0..500 {
        let bytes = pattern(number);
        assert!(exchange(&mut dial(port).await, &bytes).await.unwrap() == bytes, "{number}");
    }
}
