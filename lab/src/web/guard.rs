//! Access control: requests need the secret in the address, and come from a page of this server.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// No content of other hosts, and no inline scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Headers of all answers.
const HEADERS: [(HeaderName, &str); 4] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (CACHE_CONTROL, "no-store"),
    // The address contains the secret.
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// The address of the server, and its secret.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    address: SocketAddr,
    secret: Arc<str>,
}

impl Guard {
    /// Creates a guard with a random secret.
    pub(super) fn new(address: SocketAddr) -> io::Result<Self> {
        let mut drawn = [0; 16];
        getrandom::fill(&mut drawn).map_err(io::Error::other)?;
        let secret = drawn.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into();
        Ok(Self { address, secret })
    }

    /// Returns the address of the page.
    pub(super) fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                IpAddr::V6(std::net::Ipv6Addr::LOCALHOST)
            });
        }
        format!("http://{address}/{}/", self.secret)
    }

    /// Returns whether a path begins with the secret, in a time independent of the position of a difference.
    fn has_secret(&self, path: &str) -> bool {
        let first = path.strip_prefix('/').and_then(|path| path.split('/').next()).unwrap_or_default();
        blake3::hash(first.as_bytes()) == blake3::hash(self.secret.as_bytes())
    }

    /// Returns whether the request was sent to this server by number or as `localhost`: otherwise a foreign DNS name
    /// that resolves to this server would make foreign pages ones of this server. The text must be exactly a browser's,
    /// without a user.
    fn is_host(&self, said: &str) -> bool {
        let port = self.address.port();
        // Browsers omit port 80.
        let with_port = format!("{said}:80");
        [Some(said), (port == 80).then_some(&*with_port)].into_iter().flatten().any(|said| {
            let is_number = said.parse::<SocketAddr>().is_ok_and(|asked| {
                let is_own = asked.ip() == self.address.ip() || self.address.ip().is_unspecified();
                is_own && asked.port() == port && asked.to_string() == said
            });
            is_number || said.eq_ignore_ascii_case(&format!("localhost:{port}"))
        })
    }

    /// Returns whether the request is from a page of this server at the same address, or from no page.
    fn is_own(headers: &HeaderMap, host: &str) -> bool {
        let mut origins = headers.get_all(ORIGIN).iter();
        origins.all(|origin| {
            let origin = origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://"));
            origin.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
        })
    }

    fn check(&self, request: &Request) -> Result<(), (StatusCode, &'static str)> {
        let mut hosts = request.headers().get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|_| hosts.next().is_none());
        // The host in the target, as proxies write it, takes precedence over the header.
        let is_meant = request.uri().authority().is_none_or(|authority| self.is_host(authority.as_str()));
        let Some(host) = host.filter(|host| self.is_host(host) && is_meant) else {
            return Err((
                StatusCode::MISDIRECTED_REQUEST,
                "wrong host: open the address that downpour-lab has printed\n",
            ));
        };
        if !Self::is_own(request.headers(), host) {
            return Err((StatusCode::FORBIDDEN, "request from another site's page\n"));
        }
        if !self.has_secret(request.uri().path()) {
            return Err((StatusCode::FORBIDDEN, "missing secret: open the address that downpour-lab has printed\n"));
        }
        Ok(())
    }
}

/// Returns the address without the first part of its path; `None` without a second part.
fn beyond_secret(uri: &Uri) -> Option<Uri> {
    let (_, rest) = uri.path().strip_prefix('/')?.split_once('/')?;
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    format!("/{rest}{query}").parse().ok()
}

/// Passes on a request without the secret, or rejects it.
pub(super) async fn check(State(guard): State<Guard>, mut request: Request, next: Next) -> Response {
    let mut answer = match guard.check(&request) {
        Ok(()) => match beyond_secret(request.uri()) {
            Some(uri) => {
                *request.uri_mut() = uri;
                next.run(request).await
            }
            None => StatusCode::NOT_FOUND.into_response(),
        },
        Err(refused) => refused.into_response(),
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn guard(address: &str) -> Guard {
        Guard { address: address.parse().expect("an address"), secret: "5ecret".into() }
    }

    fn answer(guard: &Guard, path: &str, headers: &[(HeaderName, &str)]) -> u16 {
        let builder =
            headers.iter().fold(Request::builder().uri(path), |builder, (name, value)| builder.header(name, *value));
        let request = builder.body(Body::empty()).expect("a request");
        guard.check(&request).map_or_else(|(status, _)| status.as_u16(), |_| 200)
    }

    #[test]
    fn guard_needs_secret_and_host() {
        let guard = guard("127.0.0.1:7000");
        for (path, host, expected) in [
            ("/5ecret/", "127.0.0.1:7000", 200),
            ("/5ecret/demo/events", "localhost:7000", 200),
            ("/", "127.0.0.1:7000", 403),
            ("/5ecre/", "127.0.0.1:7000", 403),
            ("/5ecretx/", "127.0.0.1:7000", 403),
            ("//5ecret/", "127.0.0.1:7000", 403),
            ("/5ecret/", "127.0.0.1:7001", 421),
            ("/5ecret/", "127.0.0.1", 421),
            ("/5ecret/", "evil.example:7000", 421),
            ("/5ecret/", "127.0.0.2:7000", 421),
            ("/5ecret/", "localhost.evil.example:7000", 421),
            ("/5ecret/", "", 421),
            ("/5ecret/", "evil@127.0.0.1:7000", 421),
            ("/5ecret/", "evil:pass@127.0.0.1:7000", 421),
            ("/5ecret/", "@127.0.0.1:7000", 421),
            ("/5ecret/", "evil@localhost:7000", 421),
            ("/5ecret/", "[127.0.0.1]:7000", 421),
            ("/5ecret/", "127.0.0.1:07000", 421),
            ("/5ecret/", "127.0.0.1:+7000", 421),
            ("/5ecret/", "127.0.0.1:7000:7000", 421),
            ("/5ecret/", "localhost.:7000", 421),
            ("/5ecret/", "LOCALHOST:7000", 200),
        ] {
            assert_eq!(answer(&guard, path, &host_of(host)), expected, "{path} at {host}");
        }
        for (target, expected) in [
            ("http://127.0.0.1:7000/5ecret/", 200),
            ("http://evil.example:7000/5ecret/", 421),
            ("http://x@127.0.0.1:7000/5ecret/", 421),
        ] {
            assert_eq!(answer(&guard, target, &host_of("127.0.0.1:7000")), expected, "{target}");
        }
        assert_eq!(answer(&guard, "/5ecret/", &[]), 421, "no host");
        assert_eq!(answer(&guard, "/5ecret/", &[(HOST, "localhost:7000"), (HOST, "evil.example")]), 421, "two");
    }

    #[test]
    fn guard_accepts_omitted_port_80() {
        for (address, hosts) in [
            ("127.0.0.1:80", ["127.0.0.1", "127.0.0.1:80", "localhost"]),
            ("[::1]:80", ["[::1]", "[::1]:80", "localhost:80"]),
        ] {
            for host in hosts {
                assert_eq!(answer(&guard(address), "/5ecret/", &host_of(host)), 200, "{host}");
            }
            for host in ["evil@127.0.0.1", "::1", "127.0.0.1:", "localhost:", "evil.example"] {
                assert_eq!(answer(&guard(address), "/5ecret/", &host_of(host)), 421, "{host}");
            }
        }
    }

    fn host_of(host: &str) -> [(HeaderName, &str); 1] {
        [(HOST, host)]
    }

    #[test]
    fn guard_rejects_other_origins() {
        let guard = guard("[::1]:7000");
        for (origin, expected) in [
            ("http://[::1]:7000", 200),
            ("http://localhost:7000", 403),
            ("http://[::1]:7001", 403),
            ("http://[::1]", 403),
            ("http://evil.example", 403),
            ("https://[::1]:7000", 403),
            ("null", 403),
        ] {
            assert_eq!(answer(&guard, "/5ecret/", &[(HOST, "[::1]:7000"), (ORIGIN, origin)]), expected, "{origin}");
        }
    }

    #[test]
    fn guard_unspecified_address_accepts_any_number() {
        let guard = guard("0.0.0.0:7000");
        assert_eq!(answer(&guard, "/5ecret/", &host_of("192.0.2.7:7000")), 200);
        assert_eq!(answer(&guard, "/5ecret/", &host_of("lab.example:7000")), 421);
        for (origin, expected) in [("http://192.0.2.7:7000", 200), ("http://198.51.100.7:7000", 403)] {
            assert_eq!(answer(&guard, "/5ecret/", &[(HOST, "192.0.2.7:7000"), (ORIGIN, origin)]), expected, "{origin}");
        }
        assert_eq!(guard.url(), "http://127.0.0.1:7000/5ecret/");
    }
}
