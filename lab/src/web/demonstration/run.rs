//! A demonstration: its setup, its current conditions, and all events for viewers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::emulated;
use super::play::{Audience, PlaybackState, play};
use super::setup::{Conditions, Setup};
use crate::web::lock;
use crate::web::topic::{Retention, Topic};

/// The most stored bytes of one demonstration: four pictures in Base64, and the numbers of ten minutes.
const KEPT: usize = 64 << 20;

/// A playing or ended demonstration.
#[derive(Debug)]
pub(super) struct DemoRun {
    id: u32,
    setup: Setup,
    picture: Arc<[u8]>,
    topic: Arc<Topic>,
    conditions: Mutex<Conditions>,
    stopped: AtomicBool,
    over: AtomicBool,
}

impl DemoRun {
    pub(super) fn new(id: u32, setup: Setup, picture: Arc<[u8]>) -> Self {
        Self {
            id,
            picture,
            topic: Topic::new(Retention::All(KEPT)),
            conditions: Mutex::new(setup.conditions),
            stopped: AtomicBool::new(false),
            over: AtomicBool::new(false),
            setup,
        }
    }

    /// Sends the setup to viewers.
    pub(super) fn begin(&self) {
        let Setup { systems, width, height, seed, emulated, .. } = &self.setup;
        let start = json!({
            "id": self.id, "width": width, "height": height, "seed": seed, "systems": systems, "emulated": emulated,
        });
        self.publish(&json!({ "start": start }));
    }

    /// Plays it, on a thread of its own; viewers always get the reason of its end.
    pub(super) fn play(&self) {
        let mut end =
            StopOnDrop { run: self, why: "internal error: see the message where downpour-lab was started".to_owned() };
        self.begin();
        let ended = if self.setup.emulated {
            emulated::relay(self)
        } else {
            PlaybackState::simulated(&self.setup, &self.picture)
                .and_then(|mut stage| play(&mut stage, self))
                .map(str::to_owned)
        };
        end.why = ended.unwrap_or_else(|error| format!("failed: {error}"));
    }

    pub(super) const fn id(&self) -> u32 {
        self.id
    }

    pub(super) const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns the bytes that all systems carry: RGB, row by row.
    pub(super) const fn picture(&self) -> &Arc<[u8]> {
        &self.picture
    }

    /// Changes the links of all systems, and the speed of virtual time.
    pub(super) fn set_conditions(&self, conditions: Conditions) {
        *lock(&self.conditions) = conditions.on(self.setup.emulated);
    }

    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn topic(&self) -> Arc<Topic> {
        Arc::clone(&self.topic)
    }

    /// Returns all events sent to viewers, as JSON.
    pub(super) fn events(&self) -> Vec<Arc<str>> {
        self.topic.kept()
    }
}

impl Audience for DemoRun {
    fn publish(&self, event: &Value) -> bool {
        self.topic.publish(event)
    }

    fn conditions(&self) -> Conditions {
        *lock(&self.conditions)
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}

/// Ends a demonstration when dropped.
struct StopOnDrop<'a> {
    run: &'a DemoRun,
    why: String,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.run.publish(&json!({ "over": { "why": self.why } }));
        self.run.topic.end();
        self.run.over.store(true, Ordering::Relaxed);
    }
}
