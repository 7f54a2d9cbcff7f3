//! The playback of a demonstration: frame by frame, in real time, or in virtual time paced to the clock.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use data_encoding::BASE64;
use serde_json::{Value, json};
use sim::{MovingFloor, ObservedTransfer, OpenBlock};

use super::setup::{Conditions, Setup};
use super::systems::DemoSystem;
use super::transfer::{Kind, Transfer, TransferProgress};

/// Time between two frames.
const FRAME: Duration = Duration::from_millis(60);
/// The most virtual time between two frames if the machine does not keep up.
const MOST: Duration = Duration::from_millis(250);
/// The longest demonstration, in its own time.
const LIMIT: Duration = Duration::from_secs(180);
/// The longest demonstration, by the clock.
const LIMIT_BY_CLOCK: Duration = Duration::from_secs(600);
/// The time over which a rate is taken.
const RATE_SPAN: Duration = Duration::from_millis(500);
/// The most open blocks in a frame.
const MOST_OPEN: usize = 32;

/// The viewers of a demonstration, who can change it while it plays.
pub(super) trait Audience {
    /// Sends an event; returns false if there is no room for it, or no viewer.
    fn publish(&self, event: &Value) -> bool;
    /// Returns the requested conditions of the links.
    fn conditions(&self) -> Conditions;
    /// Returns whether a stop was requested.
    fn is_stopped(&self) -> bool;
}

/// Plays a demonstration to its end. Returns the reason of the end.
pub(super) fn play(stage: &mut PlaybackState, audience: &impl Audience) -> Result<&'static str, String> {
    let began = Instant::now();
    let mut last = began;
    loop {
        let is_kept = audience.publish(&stage.frame());
        if stage.is_over() {
            return Ok("every system has ended");
        }
        if audience.is_stopped() {
            return Ok("stopped");
        }
        if !is_kept {
            return Ok("the recording is full");
        }
        if stage.now >= LIMIT || began.elapsed() >= LIMIT_BY_CLOCK {
            return Ok("the time limit is reached");
        }
        thread::sleep(FRAME.saturating_sub(last.elapsed()));
        let passed = last.elapsed().min(MOST);
        last = Instant::now();
        stage.advance(passed, audience.conditions())?;
    }
}

/// The systems at one moment.
pub(super) struct PlaybackState {
    /// When they started, in real time; `None` in virtual time.
    began: Option<Instant>,
    now: Duration,
    conditions: Conditions,
    floor: MovingFloor,
    systems: Vec<PlaybackSystem>,
}

/// A shown system.
struct PlaybackSystem {
    transfer: Box<dyn Transfer>,
    rate: RateMeter,
    /// Bytes by their kind of delivery.
    bytes: [u64; Kind::COUNT],
    is_over: bool,
    /// The floor at its completion, in seconds.
    floor: Option<f64>,
}

impl PlaybackState {
    /// Prepares simulated transfers.
    ///
    /// # Errors
    /// An invalid system or link.
    pub(super) fn simulated(setup: &Setup, picture: &Arc<[u8]>) -> Result<Self, String> {
        let Setup { conditions, seed, .. } = setup;
        let transfer = |system: &DemoSystem| {
            let profile = system.profile(conditions.rate())?;
            let watched = ObservedTransfer::new(picture, &conditions.link(), &profile, *seed);
            Ok(Box::new(watched.map_err(|error| error.to_string())?) as Box<dyn Transfer>)
        };
        let transfers = setup.systems.iter().map(transfer).collect::<Result<_, String>>()?;
        Ok(Self::new(setup, picture.len(), transfers, None))
    }

    /// Creates the state of these transfers, which began at that time or run in virtual time.
    pub(super) fn new(setup: &Setup, length: usize, transfers: Vec<Box<dyn Transfer>>, began: Option<Instant>) -> Self {
        let show = |transfer| PlaybackSystem {
            transfer,
            rate: RateMeter::default(),
            bytes: [0; Kind::COUNT],
            is_over: false,
            floor: None,
        };
        let conditions = setup.conditions;
        Self {
            began,
            now: Duration::ZERO,
            floor: MovingFloor::new(length as u64, &conditions.link()),
            conditions,
            systems: transfers.into_iter().map(show).collect(),
        }
    }

    fn is_over(&self) -> bool {
        self.systems.iter().all(|shown| shown.is_over)
    }

    /// Advances time.
    fn advance(&mut self, passed: Duration, conditions: Conditions) -> Result<(), String> {
        if let Some(began) = self.began {
            // Links change at the time of the change, not at that of the last frame.
            self.now = began.elapsed();
        }
        let link = conditions.link();
        if link != self.conditions.link() {
            self.floor.change(self.now, &link);
            for shown in &mut self.systems {
                shown.transfer.set_link(&link)?;
            }
        }
        self.conditions = conditions;
        if self.began.is_none() {
            self.now += passed.mul_f64(conditions.speed);
        }
        self.now = self.now.min(LIMIT);
        for shown in &mut self.systems {
            shown.transfer.run_until(self.now)?;
        }
        Ok(())
    }

    /// Returns the changes since the last frame.
    fn frame(&mut self) -> Value {
        let now = self.now;
        let floor = Some(self.floor.time()).filter(|floor| *floor < Duration::MAX).map(seconds);
        let systems: Vec<Value> = self.systems.iter_mut().map(|shown| shown.frame(now, floor)).collect();
        json!({ "frame": {
            "t": seconds(now),
            "link": self.conditions,
            "floor": floor,
            "systems": systems,
        } })
    }
}

impl PlaybackSystem {
    fn frame(&mut self, now: Duration, floor: Option<f64>) -> Value {
        let TransferProgress { pieces, open, state, is_over } = self.transfer.take_progress();
        self.is_over = is_over;
        if state.completed.is_some() && self.floor.is_none() {
            self.floor = floor;
        }
        for (_, kind, bytes) in &pieces {
            self.bytes[*kind as usize] += bytes.len() as u64;
        }
        let rate = if is_over { 0.0 } else { self.rate.at(now, state.arrived) };
        let piece = |(offset, kind, bytes): &(u64, Kind, Vec<u8>)| json!([offset, *kind as u8, BASE64.encode(bytes)]);
        json!({
            "pieces": pieces.iter().map(piece).collect::<Vec<_>>(),
            "open": open.iter().filter(|block| has_hidden_symbols(block)).take(MOST_OPEN).map(open_value).collect::<Vec<_>>(),
            "bytes": self.bytes,
            "rate": (rate / 1e3).round() / 1e3,
            "lost": state.lost,
            "flight": if is_over { 0 } else { state.in_flight },
            "resent": state.resent,
            "done": state.completed.map(seconds),
            "floor": self.floor,
            "gaveUp": state.gave_up,
        })
    }
}

/// Returns whether a block has symbols that are not pixels yet: source symbols are drawn on arrival.
const fn has_hidden_symbols(block: &OpenBlock) -> bool {
    block.repairs > 0
}

/// Returns the offset, the length, and the percentage of the symbols needed for decoding.
fn open_value(block: &OpenBlock) -> Value {
    let filled = (block.source + block.repairs) * 100 / block.k.max(1);
    json!([block.offset, block.length, filled.min(100)])
}

/// Rounds to milliseconds.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

/// The rate of arriving bytes.
#[derive(Debug, Default)]
struct RateMeter(VecDeque<(Duration, u64)>);

impl RateMeter {
    /// Returns the bits per second of the last [`RATE_SPAN`], with this number of bytes arrived by `now`.
    fn at(&mut self, now: Duration, bytes: u64) -> f64 {
        self.0.push_back((now, bytes));
        while self.0.len() > 2 && self.0[1].0 + RATE_SPAN <= now {
            self.0.pop_front();
        }
        let (since, before) = self.0[0];
        let span = now.saturating_sub(since).as_secs_f64();
        if span > 0.0 { (bytes - before) as f64 * 8.0 / span } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::super::setup::tests::asked;
    use super::*;

    #[test]
    fn rate_is_of_the_last_half_second() {
        let mut meter = RateMeter::default();
        let rates: Vec<f64> = (0..=20_u64)
            .map(|tenth| meter.at(Duration::from_millis(100 * tenth), if tenth <= 10 { tenth * 1_000 } else { 10_000 }))
            .collect();
        assert_eq!((rates[0], rates[5], rates[10], rates[15], rates[20]), (0.0, 80_000.0, 80_000.0, 0.0, 0.0));
    }

    /// Returns a picture without two equal rows.
    fn picture(width: u32, height: u32) -> Arc<[u8]> {
        let mut random = fastrand::Rng::with_seed(5);
        (0..width * height * 3).map(|_| random.u8(..)).collect()
    }

    /// Returns a viewer's bytes and kinds of one system after all frames.
    fn painted(events: &[Value], system: usize, length: usize) -> (Vec<u8>, Vec<Option<u64>>) {
        let (mut bytes, mut kinds) = (vec![0; length], vec![None; length]);
        for event in events {
            for piece in event["frame"]["systems"][system]["pieces"].as_array().into_iter().flatten() {
                let offset = piece[0].as_u64().expect("an offset") as usize;
                let data = BASE64.decode(piece[2].as_str().expect("text").as_bytes()).expect("Base64");
                let range = offset..offset + data.len();
                assert!(kinds[range.clone()].iter().all(Option::is_none), "{range:?} arrives twice");
                kinds[range.clone()].fill(piece[1].as_u64());
                bytes[range].copy_from_slice(&data);
            }
        }
        (bytes, kinds)
    }

    #[test]
    fn simulated_systems_deliver_the_picture() {
        let picture = picture(200, 150);
        for (loss, systems) in [(0.0, "auto,linux-tcp,rc-udp"), (10.0, "auto,linux-tcp,rc-udp,tornado-transfer")] {
            let setup = asked(systems, (200, 150), loss).check(picture.len()).expect("a demonstration");
            let conditions = setup.conditions;
            let mut stage = PlaybackState::simulated(&setup, &picture).expect("links that make sense");
            let mut events = vec![stage.frame()];
            while !stage.is_over() && stage.now < LIMIT {
                // 20 ms of the simulation.
                stage.advance(Duration::from_micros(2_500), conditions).expect("it runs");
                events.push(stage.frame());
            }
            let times: Vec<f64> = events.iter().filter_map(|event| event["frame"]["t"].as_f64()).collect();
            assert!(times.is_sorted() && times[0] == 0.0 && times.len() == events.len(), "{times:?}");
            for (at, name) in setup.systems.iter().map(|system| system.id).enumerate() {
                let (bytes, kinds) = painted(&events, at, picture.len());
                assert!(bytes == *picture && kinds.iter().all(Option::is_some), "{name} at {loss} %");
                let last = &events.last().expect("frames")["frame"]["systems"][at];
                let counted: Vec<u64> =
                    [0, 1, 2, 3].map(|kind| kinds.iter().filter(|k| **k == Some(kind)).count() as u64).to_vec();
                assert_eq!(last["bytes"], json!(counted), "{name}");
                let floor = events.last().expect("frames")["frame"]["floor"].as_f64().expect("a floor");
                assert!(last["done"].as_f64().is_some_and(|done| done > floor * 0.95), "{name}: {last}, floor {floor}");
                assert!(loss == 0.0 || last["lost"].as_u64() > Some(0), "{name}: {last}");
                // Bytes are drawn on arrival: several frames have a part each.
                let parts = events.iter().filter(|event| event["frame"]["systems"][at]["pieces"] != json!([]));
                assert!(name == "rc-udp" || parts.count() >= 2, "{name}");
            }
        }
    }

    #[test]
    fn link_change_takes_effect_during_playback() {
        let picture = picture(400, 300);
        let setup = asked("auto,linux-tcp", (400, 300), 0.0).check(picture.len()).expect("a demonstration");
        let mut stage = PlaybackState::simulated(&setup, &picture).expect("links that make sense");
        let calm = setup.conditions;
        stage.advance(Duration::from_millis(12), calm).expect("it runs");
        let before = stage.frame();
        let rough = Conditions { loss: 20.0, speed: 0.5, ..calm };
        stage.advance(Duration::from_millis(200), rough).expect("it runs");
        let after = stage.frame();
        assert_eq!((&before["frame"]["link"], &after["frame"]["link"]), (&json!(calm), &json!(rough)));
        assert!(after["frame"]["floor"].as_f64() > before["frame"]["floor"].as_f64(), "{after}");
        assert_eq!((&before["frame"]["t"], &after["frame"]["t"]), (&json!(0.096), &json!(0.196)));
        for at in 0..2 {
            let lost = |frame: &Value| frame["frame"]["systems"][at]["lost"].as_u64();
            assert!(lost(&before) == Some(0) && lost(&after) > Some(0), "{after}");
        }
    }
}
