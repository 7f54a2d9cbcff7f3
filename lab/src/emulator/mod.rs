//! The emulator: a thread that runs a [`Fabric`] in real time between the cables of hosts.
//!
//! A packet arrives when the kernel took it, not when the thread saw it, and everything after that happens in the
//! model's time. So a stall of the thread shorter than the delay of the link changes nothing; a longer one makes
//! packets late, which [`EmulatorReport::lateness`] shows. Fast cables have no such stamps: [`EmulatorReport::unseen`]
//! bounds the error of arrivals. Large frames that arrive through them are split into the packets of the wire, each of
//! which passes the model by itself ([`segments`]).

mod clock;
mod meter;
mod port;
mod report;
mod run_queue;
pub mod segments;
mod tunnel;
mod wire;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use netsim::{Fabric, LinkConfig, LinkId, LinkStats, NetworkError, NodeId, Time};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::testbed::{Cable, CableEnd};
pub use meter::{HostTraffic, Measuring, SpanTraffic};
use port::Port;
pub use report::{EmulatorReport, Scheduling};
use run_queue::RunQueue;
use tunnel::Tunnel;
use wire::Wire;
use worker::{Order, Worker};

/// An IPv4 packet in flight.
#[derive(Clone, Debug)]
pub struct Packet {
    segment: segments::Segment,
    /// When it was offered to the model.
    offered: Time,
}

/// An emulator that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Emulator {
    control: EmulatorHandle,
    thread: Option<JoinHandle<EmulatorReport>>,
}

/// The counts of an emulator so far.
#[derive(Clone, Debug, Default)]
pub struct EmulatorCounters {
    /// The statistics of each link.
    pub links: Vec<LinkStats>,
    /// IP bytes that have arrived at each host.
    pub arrived: Vec<u64>,
}

/// A handle that sends commands to an emulator, from any thread.
#[derive(Clone, Debug)]
pub struct EmulatorHandle {
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
}

impl EmulatorHandle {
    /// Switches loss, jitter, reordering, duplication, corruption and marks of all links on or off, and waits until
    /// that is done; see [`netsim::Link::set_impaired`].
    pub fn set_impaired(&self, impaired: bool) {
        let (done, is_done) = channel();
        self.order(Order::SetImpaired { impaired, done });
        // An emulator that ended meanwhile impairs nothing.
        let _ = is_done.recv();
    }

    /// Changes a link for packets that reach it from now on, and waits until that is done; see
    /// [`netsim::Link::set_config`]. An emulator that has ended changes nothing.
    ///
    /// # Errors
    /// No such link, or an invalid one.
    pub fn set_link(&self, link: LinkId, config: LinkConfig) -> Result<(), NetworkError> {
        let (done, is_done) = channel();
        self.order(Order::SetLink { link, config: Box::new(config), done });
        is_done.recv().unwrap_or(Ok(()))
    }

    /// Returns the counts so far; `None` if the emulator has ended.
    pub fn counts(&self) -> EmulatorCounters {
        let (answer, answered) = channel();
        self.order(Order::Count { answer });
        answered.recv().unwrap_or_default()
    }

    /// Counts the traffic from and to each host, and the waits of packets at each link, from a time of
    /// `CLOCK_MONOTONIC` on.
    pub fn measure(&self, from: Duration, how: Measuring) {
        self.order(Order::Measure { from, how });
    }

    fn order(&self, order: Order) {
        // The caller of `stop` joins a thread that has ended.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

impl Emulator {
    /// Runs `fabric` between `cables`, the first of which is connected to the first of `hosts`, and so on. The clock of
    /// the model starts now.
    ///
    /// # Errors
    /// A system that provides no thread or event, or, with fast cables, does not report a thread's wait for a
    /// processor.
    pub fn start(fabric: Fabric<Packet>, hosts: Vec<NodeId>, cables: Vec<Cable>) -> io::Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (orders, received) = channel();
        if cables.iter().any(|cable| matches!(cable.end, CableEnd::Tun(_))) {
            RunQueue::open()?;
        }
        let ports = cables.into_iter().map(port_of).collect();
        let worker = Worker::new(fabric, hosts, ports, received, Arc::clone(&wake));
        let thread = thread::Builder::new().name("emulator".to_owned()).spawn(move || worker.run())?;
        Ok(Self { control: EmulatorHandle { orders, wake }, thread: Some(thread) })
    }

    /// Returns a handle that sends commands to it.
    pub fn control(&self) -> EmulatorHandle {
        self.control.clone()
    }

    /// Stops it, and returns its report. Packets in flight are lost.
    ///
    /// # Panics
    /// If its thread panicked.
    pub fn stop(mut self) -> EmulatorReport {
        self.control.order(Order::Stop);
        let thread = self.thread.take().expect("only stopping takes it");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

fn port_of(cable: Cable) -> Box<dyn Port + Send> {
    match cable.end {
        CableEnd::Veth(socket) => Box::new(Wire::new(socket)),
        CableEnd::Tun(device) => Box::new(Tunnel::new(device)),
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.control.order(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
