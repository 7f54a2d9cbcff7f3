//! The transport engine over simulated links: the harness of the tests, the benchmarks and the lab.
//!
//! Two endpoints, joined by [`netsim`] links, run in virtual time with everything that a real transfer has except
//! sockets and disks: handshake, encryption, feedback, coding. The same seed gives the same run.
//!
//! ```
//! let case = downpour_sim::Case { size: 100_000, ..downpour_sim::Case::new("rate=100M,delay=25ms,queue=256KB,loss=5%".parse()?) };
//! let outcome = case.run(1);
//! assert!(outcome.is_identical());
//! println!("{:.3} s of a floor of {:.3} s", outcome.completed_secs(), case.floor().as_secs_f64());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod addresses;
mod bursts;
mod case;
mod coding;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod host;
mod linux_tcp;
mod mean;
mod moving_floor;
mod observer;
pub mod property;
pub mod reference;
mod shared;
mod storage;
mod streams;

pub use bursts::OnOff;
pub use case::{Case, Ending, Outcome};
pub use coding::{Coding, CodingTime};
pub use host::{Host, HostConfig, Moment, SymbolEvent, Tally};
pub use linux_tcp::{LINUX_TCP, linux_tcp};
pub use mean::TimeMean;
pub use moving_floor::MovingFloor;
pub use observer::{
    DeliveredBy, ObservedTransfer, OpenBlock, ReceivedRange, Simulated, TransferPair, WatchedState, watched_hosts,
};
pub use shared::{Background, Flow, FlowOutcome, Handshake, SharedCase, SharedError, SharedOutcome, Traffic, jain};
pub use storage::{Content, Pattern, Received};
pub use streams::{ReadScript, StreamEnd, StreamReader, StreamScript, StreamWriter, Streams};
