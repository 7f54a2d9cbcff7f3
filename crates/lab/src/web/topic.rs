//! What viewers watch: events that each of them reads at its own pace.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::watch;

use super::lock;

/// So that a viewer notices a server that is gone.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Which events a topic keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// All, up to so many bytes: a viewer that comes late, or again, sees everything.
    All(usize),
    /// The last one, which says everything.
    Last,
}

/// A sequence of events in JSON that any number of viewers read, each from its own position. A slow viewer holds up nobody
/// and costs no memory: nothing is queued for it.
#[derive(Debug)]
pub(super) struct Topic {
    keep: Keep,
    events: Mutex<Events>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Events {
    /// The number of the first one kept.
    first: usize,
    kept: Vec<Arc<str>>,
    bytes: usize,
    is_over: bool,
}

impl Topic {
    pub(super) fn new(keep: Keep) -> Arc<Self> {
        Arc::new(Self { keep, events: Mutex::default(), changed: watch::Sender::new(()) })
    }

    /// Tells all viewers. Returns false if there is no room to keep it: it is dropped then.
    pub(super) fn tell(&self, event: &serde_json::Value) -> bool {
        let text: Arc<str> = event.to_string().into();
        let mut events = self.events();
        match self.keep {
            Keep::All(most) if events.bytes + text.len() > most => return false,
            Keep::All(_) => {}
            Keep::Last => {
                events.first += events.kept.len();
                events.bytes = 0;
                events.kept.clear();
            }
        }
        events.bytes += text.len();
        events.kept.push(text);
        drop(events);
        self.changed.send_replace(());
        true
    }

    /// Ends the topic: viewers have seen everything once they have read what is kept.
    pub(super) fn end(&self) {
        self.events().is_over = true;
        self.changed.send_replace(());
    }

    /// Returns how many viewers there are now.
    pub(super) fn viewers(&self) -> usize {
        self.changed.receiver_count()
    }

    /// Returns the events kept.
    pub(super) fn kept(&self) -> Vec<Arc<str>> {
        self.events().kept.clone()
    }

    fn events(&self) -> MutexGuard<'_, Events> {
        lock(&self.events)
    }

    /// Returns the first event from number `from` on, with its number; `Err` with whether there will be more.
    fn next(&self, from: usize) -> Result<(usize, Arc<str>), bool> {
        let events = self.events();
        let at = from.max(events.first);
        events.kept.get(at - events.first).map(|event| (at, Arc::clone(event))).ok_or(!events.is_over)
    }

    /// Answers a viewer with server-sent events: from the beginning, or after the last one that it has seen, as it says when
    /// it comes again.
    pub(super) fn watch(self: Arc<Self>, headers: &HeaderMap) -> Response {
        const LAST_SEEN: HeaderName = HeaderName::from_static("last-event-id");
        let seen = headers.get(LAST_SEEN).and_then(|id| id.to_str().ok()?.parse::<usize>().ok());
        let from = seen.map_or(0, |seen| seen.saturating_add(1));
        let receiver = self.changed.subscribe();
        let events = stream::unfold((self, receiver, from), |(topic, mut receiver, from)| async move {
            loop {
                receiver.mark_unchanged();
                match topic.next(from) {
                    Ok((number, event)) => {
                        let event = Event::default().id(number.to_string()).data(&*event);
                        return Some((Ok::<_, Infallible>(event), (topic, receiver, number + 1)));
                    }
                    Err(false) => return None,
                    Err(true) => receiver.changed().await.ok()?,
                }
            }
        });
        Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use futures_util::StreamExt as _;
    use serde_json::json;

    fn watch(topic: &Arc<Topic>, seen: Option<&str>) -> Body {
        let mut headers = HeaderMap::new();
        if let Some(seen) = seen {
            headers.insert("last-event-id", seen.parse().expect("a value"));
        }
        Arc::clone(topic).watch(&headers).into_body()
    }

    async fn next(body: &mut axum::body::BodyDataStream) -> String {
        String::from_utf8(body.next().await.expect("more").expect("no error").to_vec()).expect("text")
    }

    #[tokio::test]
    async fn a_viewer_reads_everything_and_goes_on_where_it_was() {
        let topic = Topic::new(Keep::All(10));
        assert!(topic.tell(&json!("one")) && topic.tell(&json!("two")));
        assert!(!topic.tell(&json!("x")), "10 bytes are kept");
        let mut first = watch(&topic, None).into_data_stream();
        assert_eq!(next(&mut first).await, "id: 0\ndata: \"one\"\n\n");
        assert_eq!(next(&mut first).await, "id: 1\ndata: \"two\"\n\n");
        topic.end();
        assert!(first.next().await.is_none());
        let mut again = watch(&topic, Some("0")).into_data_stream();
        assert_eq!(next(&mut again).await, "id: 1\ndata: \"two\"\n\n");
        assert!(again.next().await.is_none());
        let mut hostile = watch(&topic, Some(&usize::MAX.to_string())).into_data_stream();
        assert!(hostile.next().await.is_none());
    }

    #[tokio::test]
    async fn of_a_state_a_slow_viewer_sees_the_last() {
        let topic = Topic::new(Keep::Last);
        let mut slow = watch(&topic, None).into_data_stream();
        for number in 0..1000 {
            assert!(topic.tell(&json!(number)));
        }
        assert_eq!(next(&mut slow).await, "id: 999\ndata: 999\n\n");
        assert_eq!((topic.kept().len(), topic.viewers()), (1, 1));
        let told = async {
            topic.tell(&json!("more"));
        };
        let (event, ()) = tokio::join!(next(&mut slow), told);
        assert_eq!(event, "id: 1000\ndata: \"more\"\n\n");
    }
}
