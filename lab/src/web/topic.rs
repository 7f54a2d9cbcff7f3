//! Topics: events that each viewer requests at its own pace.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

use super::lock;

/// The header with the number of the last event that a viewer has.
const LAST_SEEN: HeaderName = HeaderName::from_static("last-event-id");
/// Bytes of events in an answer; a longer event is sent alone.
const MOST_AT_ONCE: usize = 1 << 20;
/// The time for which a request counts as a view: a background tab may ask once per second.
const VIEWS: Duration = Duration::from_secs(5);

/// The stored events of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retention {
    /// All, up to this number of bytes: a late or returning viewer gets all.
    All(usize),
    /// The last one, which has the full state.
    Last,
}

/// A sequence of events in JSON that any number of viewers read, each from its own position.
///
/// A viewer polls for new events, and is answered at once: a browser has six connections to a server for all its tabs,
/// so none is held open. A slow viewer delays no others and costs no memory beyond one answer, since events are not
/// queued for it.
#[derive(Debug)]
pub(super) struct Topic {
    keep: Retention,
    events: Mutex<Events>,
}

#[derive(Debug, Default)]
struct Events {
    /// The number of the first stored event.
    first: usize,
    kept: Vec<Arc<str>>,
    bytes: usize,
    is_over: bool,
    /// The time of the last request.
    asked: Option<Instant>,
}

impl Topic {
    pub(super) fn new(keep: Retention) -> Arc<Self> {
        Arc::new(Self { keep, events: Mutex::default() })
    }

    /// Adds an event for all viewers. Returns false if there is no room for it, and drops it.
    pub(super) fn publish(&self, event: &serde_json::Value) -> bool {
        let text: Arc<str> = event.to_string().into();
        let mut events = self.events();
        match self.keep {
            Retention::All(most) if events.bytes + text.len() > most => return false,
            Retention::All(_) => {}
            Retention::Last => {
                events.first += events.kept.len();
                events.bytes = 0;
                events.kept.clear();
            }
        }
        events.bytes += text.len();
        events.kept.push(text);
        true
    }

    /// Ends the topic: the stored events are the last ones.
    pub(super) fn end(&self) {
        self.events().is_over = true;
    }

    /// Returns whether it has viewers.
    pub(super) fn is_viewed(&self) -> bool {
        self.events().asked.is_some_and(|asked| asked.elapsed() < VIEWS)
    }

    /// Returns the stored events.
    pub(super) fn kept(&self) -> Vec<Arc<str>> {
        self.events().kept.clone()
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        lock(&self.events)
    }

    /// Answers a viewer with a bounded number of bytes of the events after its last one, and with the number of the
    /// last one in the answer. Once the topic has ended and the viewer has all, there is no content.
    pub(super) fn watch(&self, headers: &HeaderMap) -> Response {
        let seen = headers.get(LAST_SEEN).and_then(|id| id.to_str().ok()?.parse::<usize>().ok());
        let (from, sent, is_over) = {
            let mut events = self.events();
            events.asked = Some(Instant::now());
            // A viewer with an unknown last event comes from an earlier topic of this name.
            let next = seen.map_or(0, |seen| seen.saturating_add(1));
            let at = next.saturating_sub(events.first);
            let at = if at > events.kept.len() { 0 } else { at };
            (events.first + at, some_of(&events.kept[at..]).to_vec(), events.is_over)
        };
        if sent.is_empty() && is_over {
            return StatusCode::NO_CONTENT.into_response();
        }
        let last = (from + sent.len()).checked_sub(1).filter(|_| !sent.is_empty()).or(seen);
        let last = last.map_or_else(|| "null".to_owned(), |last| last.to_string());
        let text = format!("{{\"last\":{last},\"events\":[{}]}}", sent.join(","));
        ([(CONTENT_TYPE, "application/json")], text).into_response()
    }
}

/// Returns the first events, as many as fit into one answer.
fn some_of(events: &[Arc<str>]) -> &[Arc<str>] {
    let mut bytes = 0;
    let fits = |event: &&Arc<str>| {
        bytes += event.len();
        bytes <= MOST_AT_ONCE
    };
    let count = events.iter().take_while(fits).count();
    &events[..count.max(1).min(events.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::to_bytes;
    use serde_json::json;

    /// Returns the answer to a viewer with this last event; `None` at the end.
    async fn asked(topic: &Topic, seen: Option<usize>) -> String {
        let mut headers = HeaderMap::new();
        if let Some(seen) = seen {
            headers.insert(LAST_SEEN, seen.to_string().parse().expect("a value"));
        }
        let answer = topic.watch(&headers);
        assert_eq!(answer.headers().contains_key(CONTENT_TYPE), answer.status() == StatusCode::OK);
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[tokio::test]
    async fn viewer_reads_all_and_continues() {
        let topic = Topic::new(Retention::All(10));
        assert!(!topic.is_viewed());
        assert_eq!(asked(&topic, None).await, r#"{"last":null,"events":[]}"#);
        assert!(topic.is_viewed());
        assert!(topic.publish(&json!("one")) && topic.publish(&json!("two")));
        assert!(!topic.publish(&json!("x")), "10 bytes are kept");
        assert_eq!(asked(&topic, None).await, r#"{"last":1,"events":["one","two"]}"#);
        assert_eq!(asked(&topic, Some(0)).await, r#"{"last":1,"events":["two"]}"#);
        assert_eq!(asked(&topic, Some(1)).await, r#"{"last":1,"events":[]}"#);
        topic.end();
        assert_eq!(asked(&topic, Some(0)).await, r#"{"last":1,"events":["two"]}"#);
        assert_eq!(asked(&topic, Some(1)).await, "");
        let all = r#"{"last":1,"events":["one","two"]}"#;
        assert_eq!(asked(&topic, Some(2)).await, all, "seen in an earlier topic");
        assert_eq!(asked(&topic, Some(usize::MAX)).await, all);
    }

    #[tokio::test]
    async fn slow_viewer_gets_the_last_state() {
        let topic = Topic::new(Retention::Last);
        for number in 0..1000 {
            assert!(topic.publish(&json!(number)));
        }
        assert_eq!(topic.kept().len(), 1);
        assert_eq!(asked(&topic, None).await, r#"{"last":999,"events":[999]}"#);
        assert_eq!(asked(&topic, Some(999)).await, r#"{"last":999,"events":[]}"#);
        topic.publish(&json!("more"));
        assert_eq!(asked(&topic, Some(7)).await, r#"{"last":1000,"events":["more"]}"#);
    }

    #[tokio::test]
    async fn answers_are_bounded_and_continue() {
        let topic = Topic::new(Retention::All(usize::MAX));
        let long = "x".repeat(MOST_AT_ONCE);
        for event in [json!(1), json!(2), json!(long), json!(3)] {
            topic.publish(&event);
        }
        assert_eq!(asked(&topic, None).await, r#"{"last":1,"events":[1,2]}"#);
        assert_eq!(asked(&topic, Some(1)).await, format!(r#"{{"last":2,"events":["{long}"]}}"#), "alone");
        assert_eq!(asked(&topic, Some(2)).await, r#"{"last":3,"events":[3]}"#);
    }
}
