//! The setup of a demonstration, checked from a request of the page.

use std::time::Duration;

use netsim::{Duplex, LinkConfig, Loss};
use serde::{Deserialize, Serialize};
use transport::Rate;

use super::systems::{DemoSystem, KERNEL_TCP, SYSTEMS};

/// Bytes of a pixel: red, green, blue.
const PIXEL: usize = 3;
/// The largest picture, in bytes.
pub(super) const LARGEST_PICTURE: usize = 4 << 20;
/// The most pixels on a side.
const LONGEST_SIDE: u32 = 4_096;
/// The fewest and the most systems at once.
const SYSTEMS_AT_ONCE: std::ops::RangeInclusive<usize> = 2..=4;
/// The smallest queue of a link, in bytes: room for bursts on paths that hold little.
const SMALLEST_QUEUE: u64 = 60_000;
/// Bytes of the largest packet.
const MTU: u32 = 1_500;

/// The link of each system, and the speed of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Conditions {
    /// Percentage of packets lost at random, in each direction.
    pub(super) loss: f64,
    /// One-way delay in milliseconds.
    pub(super) delay: f64,
    /// Mbit/s.
    pub(super) rate: f64,
    /// Seconds of the simulation per second of the clock.
    pub(super) speed: f64,
}

impl Conditions {
    /// # Errors
    /// A number out of its range.
    pub(super) fn check(&self) -> Result<(), String> {
        let ranges = [
            ("the loss", self.loss, 0.0, 50.0, "%"),
            ("the delay", self.delay, 0.0, 1_000.0, " ms"),
            ("the rate", self.rate, 0.1, 100.0, " Mbit/s"),
            ("the speed", self.speed, 0.05, 8.0, ""),
        ];
        match ranges.into_iter().find(|(_, value, least, most, _)| !(*least..=*most).contains(value)) {
            Some((name, value, least, most, unit)) => {
                Err(format!("{name} is {value}{unit}: choose from {least} to {most}{unit}"))
            }
            None => Ok(()),
        }
    }

    /// Returns them for emulated or simulated links: on emulated ones time is real.
    pub(super) fn on(self, emulated: bool) -> Self {
        if emulated { Self { speed: 1.0, ..self } } else { self }
    }

    /// Returns the rate of the link, in IP bits per second.
    pub(super) fn rate(&self) -> Rate {
        Rate::from_bits_per_second((self.rate * 1e6) as u64)
    }

    /// Returns the one-way delay.
    pub(super) fn delay(&self) -> Duration {
        Duration::from_secs_f64(self.delay / 1e3)
    }

    /// Returns the link: its queue has the size of the bandwidth-delay product.
    pub(super) fn link(&self) -> Duplex {
        let delay = self.delay();
        let carried = self.rate().bytes_per_second() * 2.0 * delay.as_secs_f64();
        let direction = LinkConfig {
            rate: Some(netsim::Rate::from_bits_per_second(self.rate().bits_per_second())),
            delay,
            loss: Loss::Bernoulli(self.loss / 100.0),
            queue_bytes: Some(SMALLEST_QUEUE.max(carried as u64)),
            mtu: Some(MTU),
            ..LinkConfig::default()
        };
        Duplex::new(direction.clone(), direction)
    }
}

/// The request of the page, without the picture.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SetupRequest {
    /// Names of systems, separated by commas.
    systems: String,
    width: u32,
    height: u32,
    seed: u64,
    // Not a flattened `Conditions`: numbers of a query would not be parsed.
    loss: f64,
    delay: f64,
    rate: f64,
    speed: f64,
    /// Whether the links are emulated.
    emulated: bool,
}

/// The setup of a demonstration.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) systems: Vec<DemoSystem>,
    /// Pixels.
    pub(super) width: u32,
    /// Pixels.
    pub(super) height: u32,
    /// The seed of all links.
    pub(super) seed: u64,
    /// The conditions at the start.
    pub(super) conditions: Conditions,
    /// Whether the links are emulated, and time is real.
    pub(super) emulated: bool,
    /// The request.
    pub(super) asked: SetupRequest,
}

impl SetupRequest {
    /// Returns the requested links and speed.
    const fn conditions(&self) -> Conditions {
        let Self { loss, delay, rate, speed, .. } = *self;
        Conditions { loss, delay, rate, speed }
    }

    /// Returns the bytes of its picture, if its size is allowed.
    pub(super) fn picture_bytes(&self) -> Option<usize> {
        let sides = [self.width, self.height];
        let bytes = sides.iter().map(|side| *side as usize).product::<usize>() * PIXEL;
        (sides.iter().all(|side| (1..=LONGEST_SIDE).contains(side)) && bytes <= LARGEST_PICTURE).then_some(bytes)
    }

    /// Checks it for a picture of this number of bytes.
    ///
    /// # Errors
    /// The first invalid value.
    pub(super) fn check(&self, bytes: usize) -> Result<Setup, String> {
        let Self { width, height, seed, emulated, .. } = *self;
        if ![width, height].iter().all(|side| (1..=LONGEST_SIDE).contains(side)) {
            return Err(format!(
                "the picture has {width} x {height} pixels: choose from 1 to {LONGEST_SIDE} on a side"
            ));
        }
        if bytes != width as usize * height as usize * PIXEL {
            return Err(format!("{bytes} bytes for a picture of {width} x {height} pixels: send 3 for each pixel"));
        }
        let conditions = self.conditions();
        conditions.check()?;
        let known = |name: &str| {
            let system = SYSTEMS.into_iter().find(|system| system.id == name);
            let system = system.map(|system| if emulated && system.id == KERNEL_TCP.id { KERNEL_TCP } else { system });
            system.ok_or_else(|| format!("unknown system {name:?}: choose from the list"))
        };
        let systems = self.systems.split(',').map(known).collect::<Result<Vec<DemoSystem>, String>>()?;
        if !SYSTEMS_AT_ONCE.contains(&systems.len()) {
            return Err("choose two to four systems".to_owned());
        }
        let (conditions, asked) = (conditions.on(emulated), self.clone());
        Ok(Setup { systems, width, height, seed, conditions, emulated, asked })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a request for these systems, a picture of this size, and this loss in percent.
    pub(in crate::web::demonstration) fn asked(systems: &str, (width, height): (u32, u32), loss: f64) -> SetupRequest {
        let systems = systems.to_owned();
        SetupRequest { systems, width, height, seed: 1, loss, delay: 20.0, rate: 20.0, speed: 8.0, emulated: false }
    }

    #[test]
    fn setup_check_refuses_invalid_values() {
        let fine = asked("auto,linux-tcp", (4, 2), 5.0);
        let setup = fine.check(24).expect("a demonstration");
        assert_eq!(setup.systems.iter().map(|system| system.id).collect::<Vec<_>>(), ["auto", "linux-tcp"]);
        for (wrong, bytes, says) in [
            (fine.clone(), 23, "23 bytes for a picture of 4 x 2 pixels"),
            (asked("auto,linux-tcp", (0, 2), 5.0), 0, "choose from 1 to 4096"),
            (asked("auto,linux-tcp", (u32::MAX, u32::MAX), 5.0), 3, "choose from 1 to 4096"),
            (asked("auto", (4, 2), 5.0), 24, "choose two to four systems"),
            (asked("auto,auto,auto,auto,auto", (4, 2), 5.0), 24, "choose two to four systems"),
            (asked("auto,sctp", (4, 2), 5.0), 24, "unknown system \"sctp\""),
            (asked("auto,linux-tcp", (4, 2), 51.0), 24, "the loss is 51%: choose from 0 to 50%"),
            (asked("auto,linux-tcp", (4, 2), f64::NAN), 24, "the loss is NaN%"),
            (SetupRequest { rate: f64::INFINITY, ..fine.clone() }, 24, "the rate is inf"),
            (SetupRequest { speed: 0.0, ..fine }, 24, "the speed is 0"),
        ] {
            let error = wrong.check(bytes).expect_err(says);
            assert!(error.starts_with(says) || error.contains(says), "{error}");
        }
    }

    #[test]
    fn queue_is_one_bdp() {
        let conditions = Conditions { loss: 5.0, delay: 100.0, rate: 40.0, speed: 1.0 };
        let link = conditions.link();
        assert_eq!(link.forward.queue_bytes, Some(1_000_000));
        assert_eq!(Conditions { delay: 0.0, ..conditions }.link().backward.queue_bytes, Some(SMALLEST_QUEUE));
        assert_eq!(link.forward.loss.mean(), 0.05);
        link.forward.check().expect("a link that makes sense");
    }
}
