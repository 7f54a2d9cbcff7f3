//! Law 9: data packets need no allocations. The test has its own process, since it counts all allocations of the
//! process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use transport::{
    AcceptOptions, Batch, ConnectOptions, Connection, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent, Event,
    FlowId, ObjectOptions, Rate, ReceivedEcn, Time, WorkReply, WorkRequest,
};

/// Counts requests to the system's allocator.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[allow(unsafe_code, reason = "an allocator is an unsafe trait; every call goes to the system's")]
// SAFETY: only adds a counter to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const KEY: [u8; 32] = [3; 32];

/// One end of a path without loss, where one read returns a whole batch, as with offload in both directions. Feedback,
/// one per millisecond, does allocate; per packet, that is negligible at 8 Gbit/s.
struct End {
    endpoint: Endpoint,
    connection: Option<ConnectionHandle>,
    address: SocketAddr,
    batch: Batch,
    wire: Vec<u8>,
    received: bool,
    /// Buffer for reads of a stream, and the total number of bytes read.
    read: Vec<u8>,
    read_bytes: u64,
}

impl End {
    fn new(seed: u8) -> Self {
        let mut endpoint = Endpoint::new(EndpointConfig::default(), [seed; 32]);
        let accept = AcceptOptions::default();
        endpoint.add_key(KEY, None, accept);
        let address = SocketAddr::from(([192, 0, 2, seed], 1));
        let (batch, wire, read) = (Batch::new(), Vec::new(), Vec::new());
        Self { endpoint, connection: None, address, batch, wire, received: false, read, read_bytes: 0 }
    }

    /// Sends everything that may be sent now. Returns the number of datagrams.
    fn transmit(&mut self, now: Time, peer: &mut Self) -> usize {
        let mut sent = 0;
        while let Some(answer) = self.endpoint.poll_answer() {
            peer.take(now, self.address, &answer.bytes, answer.bytes.len());
        }
        let Some(handle) = self.connection else { return sent };
        loop {
            self.serve(now);
            let Some(connection) = self.endpoint.connection(handle) else { return sent };
            if !connection.poll_transmit(now, &mut self.batch) {
                return sent;
            }
            self.batch.seal();
            sent += self.batch.segments();
            peer.take(now, self.address, self.batch.bytes(), self.batch.segment_size());
        }
    }

    fn take(&mut self, now: Time, from: SocketAddr, bytes: &[u8], stride: usize) {
        self.wire.clear();
        self.wire.extend_from_slice(bytes);
        self.endpoint.handle_datagrams(now, from, None, ReceivedEcn::NotEct, &mut self.wire, stride);
        while let Some(EndpointEvent::Accepted { handle, .. }) = self.endpoint.poll_event() {
            self.connection = Some(handle);
        }
        self.serve(now);
    }

    fn serve(&mut self, now: Time) {
        let Some(connection) = self.connection.and_then(|handle| self.endpoint.connection(handle)) else { return };
        while let Some(request) = connection.poll_request() {
            let reply = match request {
                WorkRequest::Read { flow, block, length, mut buffer, .. } => {
                    buffer.resize(length, 7);
                    WorkReply::Read { flow, block, buffer }
                }
                WorkRequest::Write { flow, block, .. } => WorkReply::Written { flow, block },
                other => panic!("on a path without loss nothing asks for {other:?}"),
            };
            connection.handle_reply(now, reply);
        }
        while let Some(event) = connection.poll_event() {
            match event {
                Event::ObjectAnnounced { flow, .. } => connection.accept_flow(now, flow, false),
                Event::ObjectReceived { .. } => self.received = true,
                Event::StreamWritable { flow } => write(now, connection, flow),
                Event::StreamReadable { flow } => {
                    self.read.clear();
                    self.read_bytes += connection.read_stream(now, flow, &mut self.read, usize::MAX) as u64;
                }
                _ => {}
            }
        }
    }
}

/// Writes as much as the credit allows.
fn write(now: Time, connection: &mut Connection, flow: FlowId) {
    while connection.write_stream(now, flow, &[7; 65_536]) == Ok(65_536) {}
}

#[test]
fn packets_of_data_cost_no_allocation_each() {
    let (mut sender, mut receiver) = (End::new(1), End::new(2));
    let options = ConnectOptions::new(vec![receiver.address])
        .profile(systems::auto().with_fixed_rate(Rate::from_bits_per_second(8_000_000_000)))
        .handshake_timeout(Duration::from_secs(1));
    sender.connection = sender.endpoint.connect(Time::ZERO, KEY, options).ok();
    let handle = sender.connection.expect("an address to ask");
    let mut now = Time::ZERO;
    run(&mut now, &mut sender, &mut receiver, |_, packets| packets > 2);
    let connection = sender.endpoint.connection(handle).expect("open");
    connection.send_object(now, ObjectOptions { length: 300_000_000, tag: 0, digest: false }).expect("connected");
    // Buffers and rings have reached their size by then.
    run(&mut now, &mut sender, &mut receiver, |_, packets| packets > 50_000);
    let each = run(&mut now, &mut sender, &mut receiver, |receiver, _| receiver.received);
    assert!(each < 0.1, "{each:.3} allocations for each packet of an object");

    let connection = sender.endpoint.connection(handle).expect("open");
    let flow = connection.open_stream(now, 0).expect("connected");
    write(now, connection, flow);
    run(&mut now, &mut sender, &mut receiver, |receiver, _| receiver.read_bytes > 50_000_000);
    let each = run(&mut now, &mut sender, &mut receiver, |receiver, _| receiver.read_bytes > 300_000_000);
    assert!(each < 0.1, "{each:.3} allocations for each packet of a stream");
}

/// Runs until `until` returns true for the receiver and the number of packets since. Returns allocations per packet.
fn run(now: &mut Time, sender: &mut End, receiver: &mut End, until: impl Fn(&End, usize) -> bool) -> f64 {
    let (mut packets, before, start) = (0, ALLOCATIONS.load(Ordering::Relaxed), *now);
    while !until(receiver, packets) {
        *now += Duration::from_micros(500);
        for end in [&mut *sender, &mut *receiver] {
            if let Some(connection) = end.connection.and_then(|handle| end.endpoint.connection(handle)) {
                connection.handle_timeout(*now);
            }
        }
        packets += sender.transmit(*now, receiver);
        packets += receiver.transmit(*now, sender);
        assert!(now.since(start) < Duration::from_secs(5), "{packets} packets and no end");
    }
    (ALLOCATIONS.load(Ordering::Relaxed) - before) as f64 / packets as f64
}
