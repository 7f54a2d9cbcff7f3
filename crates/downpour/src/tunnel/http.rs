//! A minimal subset of HTTP/1.1 (RFC 9112) for `GET /metrics`: one request on each connection, of bounded size and
//! time.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::grammar::ForwardAddress;
use super::listener::Listener;
use super::metrics::MEDIA_TYPE;
use super::session::Session;

/// The path of the metrics.
const PATH: &str = "/metrics";

/// Maximum number of clients at once. Others wait to be accepted.
const MOST: usize = 8;

/// Maximum length of the request line with its header fields, in bytes.
const LONGEST: usize = 8 << 10;

/// Maximum number of bytes after a request that are read and dropped.
const MOST_CONTENT: u64 = 64 << 10;

/// Time for a request to arrive, and for its response to be sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// The response to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HttpResponse {
    status: Status,
    /// Whether the content is omitted.
    is_head: bool,
}

/// RFC 9110 section 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ok = 200,
    BadRequest = 400,
    NotFound = 404,
    MethodNotAllowed = 405,
    RequestTimeout = 408,
    Misdirected = 421,
    FieldsTooLarge = 431,
    VersionNotSupported = 505,
}

/// The hosts that a request may name. A page of another site whose name resolves to this host names that site, and must
/// not read the response.
#[derive(Clone, Debug)]
pub(super) enum Hosts {
    /// Any host: on a unix socket, which browsers do not reach.
    Any,
    /// The name given by the user, `localhost`, and the numeric forms of these addresses, all with their port.
    Of { name: String, addresses: Vec<SocketAddr> },
}

impl Hosts {
    /// Returns the hosts of a listener at this address.
    pub(super) fn of(place: &ForwardAddress, listener: &Listener) -> Self {
        match place {
            ForwardAddress::Unix(_) => Self::Any,
            ForwardAddress::Tcp { host, .. } => Self::Of { name: host.clone(), addresses: listener.addresses() },
        }
    }

    /// Returns whether the value of a `Host` field is one of them, exactly: no user and no other port.
    fn have(&self, value: &str) -> bool {
        let Self::Of { name, addresses } = self else { return true };
        let port = addresses.first().map_or(0, SocketAddr::port);
        let with_port = value.rsplit_once(':').filter(|(_, asked)| *asked == port.to_string());
        // Port 80 is omitted.
        let Some(host) = with_port.map(|(host, _)| host).or_else(|| (port == 80).then_some(value)) else {
            return false;
        };
        let number: Option<IpAddr> = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => host.parse::<Ipv6Addr>().ok().map(IpAddr::from),
            None => host.parse::<Ipv4Addr>().ok().map(IpAddr::from),
        };
        match number {
            Some(number) => addresses.iter().any(|own| own.ip() == number || own.ip().is_unspecified()),
            None => host.eq_ignore_ascii_case("localhost") || (name != "*" && host.eq_ignore_ascii_case(name)),
        }
    }
}

/// Serves the metrics of `session` to requests for one of these hosts.
pub(crate) async fn serve_metrics(listener: Listener, hosts: Hosts, session: Arc<Session>) {
    let hosts = Arc::new(hosts);
    let mut clients = JoinSet::new();
    loop {
        while clients.len() >= MOST {
            drop(clients.join_next().await);
        }
        let mut socket = listener.accept().await;
        let (session, hosts) = (Arc::clone(&session), Arc::clone(&hosts));
        clients.spawn(async move {
            // A slower client is reset.
            let answered = answer(&mut socket, &hosts, PATIENCE, async || session.metrics().await);
            if timeout(2 * PATIENCE, answered).await.is_ok() {
                socket.finish().await;
            }
        });
    }
}

/// Reads one request within `patience`, and answers it; `page` creates the content.
async fn answer<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut S,
    hosts: &Hosts,
    patience: Duration,
    page: impl AsyncFnOnce() -> String,
) {
    let verdict = match timeout(patience, read_head(socket)).await {
        Ok(Some(Ok(head))) => judge(&head, hosts),
        Ok(Some(Err(status))) => status.into(),
        // It has closed without a request.
        Ok(None) => return,
        Err(_) => Status::RequestTimeout.into(),
    };
    let content = if verdict.status == Status::Ok { page().await } else { verdict.status.words() };
    // It may have closed.
    if socket.write_all(verdict.response(&content).as_bytes()).await.is_err() || socket.shutdown().await.is_err() {
        return;
    }
    // The system would reset the connection if unread bytes remained, such as the content of a request.
    let _ = tokio::io::copy(&mut socket.take(MOST_CONTENT), &mut tokio::io::sink()).await;
}

/// Reads the request line and the header fields, to the empty line after them; `None` if nothing arrives.
async fn read_head(from: &mut (impl AsyncRead + Unpin)) -> Option<Result<Vec<u8>, Status>> {
    let mut head = Vec::new();
    let mut more = [0; 1 << 10];
    loop {
        let seen = head.len();
        match from.read(&mut more[..(1 << 10).min(LONGEST - seen)]).await {
            Ok(count @ 1..) => head.extend_from_slice(&more[..count]),
            _ if head.is_empty() => return None,
            _ => return Some(Err(Status::BadRequest)),
        }
        if let Some(end) = end_of(&head, seen) {
            head.truncate(end);
            return Some(Ok(head));
        }
        if head.len() == LONGEST {
            return Some(Err(Status::FieldsTooLarge));
        }
    }
}

/// Returns where the empty line begins, if there is one that ends after `seen`.
fn end_of(head: &[u8], seen: usize) -> Option<usize> {
    let from = seen.saturating_sub(2);
    (from..head.len()).find(|&at| {
        let is_line = at == 0 || head[at - 1] == b'\n';
        is_line && matches!(head[at..], [b'\n', ..] | [b'\r', b'\n', ..])
    })
}

/// Judges a request line with its header fields, for one of these hosts.
pub(super) fn judge(head: &[u8], hosts: &Hosts) -> HttpResponse {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.lines();
    let request: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = request[..] else { return Status::BadRequest.into() };
    let is_head = method == "HEAD";
    let (authority, path) = split(target);
    let named = fields(lines);
    let status = match (version.strip_prefix("HTTP/"), named.as_deref()) {
        (Some("1.1" | "1.0"), Some([host])) if !hosts.have(host) => Status::Misdirected,
        (Some("1.1"), Some([_])) | (Some("1.0"), Some([] | [_])) if authority.is_some_and(|host| !hosts.have(host)) => {
            Status::Misdirected
        }
        (Some("1.1"), Some([_])) | (Some("1.0"), Some([] | [_])) => status_of(method, path),
        (Some("1.0" | "1.1") | None, _) => Status::BadRequest,
        (Some(_), _) => Status::VersionNotSupported,
    };
    HttpResponse { status, is_head }
}

/// Returns the hosts in the fields, if all lines are fields (RFC 9112 section 5).
fn fields<'a>(mut lines: impl Iterator<Item = &'a str>) -> Option<Vec<&'a str>> {
    lines.try_fold(Vec::new(), |mut hosts, line| {
        let (name, value) = line.split_once(':')?;
        hosts.extend(name.eq_ignore_ascii_case("host").then(|| value.trim_matches([' ', '\t'])));
        is_token(name).then_some(hosts)
    })
}

/// Returns the host in a target, if there is one, as in requests to proxies, and the path.
fn split(target: &str) -> (Option<&str>, &str) {
    let (host, path) = match target.split_once("://") {
        Some(("http", rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            (Some(host), if path.is_empty() { "/" } else { path })
        }
        _ => (None, target),
    };
    (host, path.split_once('?').map_or(path, |(path, _)| path))
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn status_of(method: &str, path: &str) -> Status {
    match method {
        _ if !is_token(method) => Status::BadRequest,
        _ if path != PATH => Status::NotFound,
        "GET" | "HEAD" => Status::Ok,
        _ => Status::MethodNotAllowed,
    }
}

impl HttpResponse {
    /// Returns the response with this content.
    pub(super) fn response(self, content: &str) -> String {
        let Self { status, is_head } = self;
        let media_type = if status == Status::Ok { MEDIA_TYPE } else { "text/plain; charset=utf-8" };
        let allow = if status == Status::MethodNotAllowed { "Allow: GET, HEAD\r\n" } else { "" };
        format!(
            "HTTP/1.1 {} {}\r\n{allow}Content-Type: {media_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
            status as u16,
            status.reason(),
            content.len(),
            if is_head { "" } else { content },
        )
    }
}

impl From<Status> for HttpResponse {
    fn from(status: Status) -> Self {
        Self { status, is_head: false }
    }
}

impl Status {
    const fn reason(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::BadRequest => "Bad Request",
            Self::NotFound => "Not Found",
            Self::MethodNotAllowed => "Method Not Allowed",
            Self::RequestTimeout => "Request Timeout",
            Self::Misdirected => "Misdirected Request",
            Self::FieldsTooLarge => "Request Header Fields Too Large",
            Self::VersionNotSupported => "HTTP Version Not Supported",
        }
    }

    /// Returns the content of a response without metrics.
    fn words(self) -> String {
        match self {
            Self::Misdirected => {
                format!("{}: use localhost, or the listening address of the metrics\n", self.reason())
            }
            _ => format!("{}: the metrics are at {PATH}\n", self.reason()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tokio::io::duplex;

    fn hosts(name: &str, addresses: &[&str]) -> Hosts {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Hosts::Of { name: name.to_owned(), addresses }
    }

    /// Sends this request; returns the response of `web:9100`, which is at 192.0.2.7.
    async fn ask(request: &[u8]) -> String {
        let (mut client, mut server) = duplex(1 << 16);
        client.write_all(request).await.unwrap();
        client.shutdown().await.unwrap();
        answer(&mut server, &hosts("web", &["192.0.2.7:9100"]), PATIENCE, async || "page\n".to_owned()).await;
        drop(server);
        let mut response = String::new();
        client.read_to_string(&mut response).await.unwrap();
        response
    }

    #[tokio::test]
    async fn the_metrics_are_at_their_path_for_get_and_head() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 5\r\n\
            Connection: close\r\n\r\n";
        for request in [
            "GET /metrics HTTP/1.1\r\nHost: localhost:9100\r\n\r\n",
            "GET /metrics?name=x HTTP/1.1\r\nAccept: */*\r\nhost:192.0.2.7:9100 \r\n\r\nsome content",
            "GET http://localhost:9100/metrics HTTP/1.1\r\nHost: localhost:9100\r\n\r\n",
            "GET /metrics HTTP/1.0\n\n",
        ] {
            assert_eq!(ask(request.as_bytes()).await, format!("{head}page\n"), "{request}");
        }
        assert_eq!(ask(b"HEAD /metrics HTTP/1.1\r\nHost: web:9100\r\n\r\n").await, head);
    }

    #[tokio::test]
    async fn every_other_request_is_refused_with_its_reason() {
        for (request, expected) in [
            ("GET / HTTP/1.1\r\nHost: web:9100\r\n\r\n", "404 Not Found"),
            ("GET /metrics/ HTTP/1.1\r\nHost: web:9100\r\n\r\n", "404 Not Found"),
            ("GET http://web:9100 HTTP/1.1\r\nHost: web:9100\r\n\r\n", "404 Not Found"),
            ("POST /metrics HTTP/1.1\r\nHost: web:9100\r\n\r\nx=1", "405 Method Not Allowed\r\nAllow: GET, HEAD"),
            ("GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/1.1\r\nHost: web:9100\r\nHost: b\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", "400 Bad Request"),
            ("GET /metrics\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/1.1\r\nHost: web:9100\r\n", "400 Bad Request"),
            ("\r\n\r\n", "400 Bad Request"),
            ("GET /metrics HTTP/2.0\r\n\r\n", "505 HTTP Version Not Supported"),
        ] {
            let response = ask(request.as_bytes()).await;
            assert!(response.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{request:?}: {response}");
        }
        let endless = [b"GET /metrics HTTP/1.1\r\n", &[b'a'; LONGEST][..]].concat();
        assert!(ask(&endless).await.starts_with("HTTP/1.1 431 "));
        assert_eq!(ask(b"").await, "", "no request");
    }

    #[tokio::test]
    async fn metrics_other_host_misdirected() {
        let is_misdirected = async |request: &str| {
            let response = ask(request.as_bytes()).await;
            let refused = response.starts_with("HTTP/1.1 421 Misdirected Request\r\n");
            assert_eq!(refused, !response.contains("page\n"), "{request}: {response}");
            refused
        };
        assert!(is_misdirected("GET /metrics HTTP/1.1\r\nHost: evil.example:9100\r\n\r\n").await);
        assert!(is_misdirected("GET /metrics HTTP/1.0\r\nHost: evil.example:9100\r\n\r\n").await);
        // The name in the target counts, independent of the field.
        assert!(is_misdirected("GET http://evil.example:9100/metrics HTTP/1.1\r\nHost: web:9100\r\n\r\n").await);
        assert!(is_misdirected("GET http://x@web:9100/metrics HTTP/1.0\r\n\r\n").await);
        assert!(is_misdirected("GET http://web:9100/metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").await);
        assert!(!is_misdirected("GET http://web:9100/metrics HTTP/1.1\r\nHost: web:9100\r\n\r\n").await);
    }

    #[test]
    fn metrics_host_is_given_name_or_listening_address() {
        let web = hosts("web", &["192.0.2.7:9100", "[2001:db8::7]:9100"]);
        for value in ["web:9100", "WEB:9100", "localhost:9100", "192.0.2.7:9100", "[2001:db8::7]:9100"] {
            assert!(web.have(value), "{value}");
        }
        for value in [
            "",
            "web",
            ":9100",
            "web:",
            "web:80",
            "web:09100",
            "web:+9100",
            "web:9100:9100",
            "evil@web:9100",
            "evil@192.0.2.7:9100",
            "evil:x@192.0.2.7:9100",
            "web.evil.example:9100",
            "web.:9100",
            "*:9100",
            "192.0.2.8:9100",
            "[192.0.2.7]:9100",
            "2001:db8::7:9100",
            "[2001:db8::8]:9100",
            "127.0.0.1:9100",
            "web:9100/",
            "web:9100 evil",
        ] {
            assert!(!web.have(value), "{value}");
        }
        let all = hosts("*", &["0.0.0.0:80", "[::]:80"]);
        for value in ["192.0.2.7", "192.0.2.7:80", "[::1]", "localhost", "localhost:80"] {
            assert!(all.have(value), "{value}");
        }
        for value in ["evil.example", "evil@192.0.2.7", "*", "192.0.2.7:81", "::1"] {
            assert!(!all.have(value), "{value}");
        }
        assert!(Hosts::Any.have("whatever"));
    }

    #[tokio::test]
    async fn metrics_endless_request_times_out() {
        let (mut client, mut server) = duplex(1 << 10);
        client.write_all(b"GET /metrics HTTP/1.1\r\n").await.unwrap();
        let read = async {
            let mut status = [0; 12];
            client.read_exact(&mut status).await.unwrap();
            drop(client);
            assert_eq!(&status, b"HTTP/1.1 408");
        };
        let served =
            async move { answer(&mut server, &Hosts::Any, Duration::from_millis(1), async || String::new()).await };
        tokio::join!(served, read);
    }

    proptest! {
        #[test]
        fn metrics_head_ends_at_first_empty_line(text in "[a\\r\\n]{0,12}", pieces in 1_usize..5) {
            let (mut head, mut found) = (Vec::new(), None);
            for piece in text.as_bytes().chunks(pieces) {
                let seen = head.len();
                head.extend_from_slice(piece);
                found = found.or_else(|| end_of(&head, seen));
            }
            let lines = text.split_inclusive('\n').scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)));
            let expected = lines.filter(|(_, line)| matches!(*line, "\n" | "\r\n")).map(|(at, _)| at).next();
            prop_assert_eq!(found, expected);
        }
    }
}
