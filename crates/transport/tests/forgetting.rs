//! The memory of a process does not reveal the keys of earlier connections (docs/THREATS.md). The test has its own
//! process, since it searches all memory of the process. It keeps the secrets to search for masked, so that the search
//! does not find the test's copies.

#![cfg(target_os = "linux")]

use downpour_transport::secure::{Cipher, Prologue, Psk, respond, with_clean_stack};
use downpour_transport::wire::{Datagram, Message1};
use downpour_transport::{
    AcceptOptions, Batch, ConnectOptions, ConnectionHandle, Endpoint, EndpointConfig, EndpointEvent, Event, KeyHandle,
    ReceivedEcn, Time,
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::time::Duration;

const MASK: u8 = 0x5a;

/// Never frees memory, so that leftovers are not overwritten by chance.
struct Hoarding;

#[allow(unsafe_code, reason = "an allocator is an unsafe trait; every call goes to the system's")]
// SAFETY: allocations are the system's, and are never freed.
unsafe impl GlobalAlloc for Hoarding {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Hoarding = Hoarding;

/// A secret to search for: its name, and its bytes XORed with [`MASK`].
struct Needle {
    name: String,
    masked: Vec<u8>,
}

impl Needle {
    fn new(name: impl Into<String>, bytes: &[u8]) -> Self {
        Self { name: name.into(), masked: bytes.iter().map(|byte| byte ^ MASK).collect() }
    }
}

/// Returns unique bytes derived from `name`.
fn bytes(name: &str) -> [u8; 32] {
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    digest.as_ref().try_into().expect("32 bytes")
}

fn address(side: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, side as u8 + 1], 4_000))
}

/// Two endpoints; the first connects to the second.
struct Pair {
    ends: [Endpoint; 2],
    now: Time,
    /// The latest handshake message of the first endpoint.
    message1: Vec<u8>,
    /// The key that the second accepts.
    key: Option<KeyHandle>,
}

impl Pair {
    fn new(cipher: Cipher) -> Self {
        let config = EndpointConfig { cipher, ..EndpointConfig::default() };
        let end = |side: &str| with_clean_stack(|| Endpoint::new(config.clone(), bytes(&seed_of(cipher, side))));
        Self { ends: [end("initiator"), end("responder")], now: Time::ZERO, message1: Vec::new(), key: None }
    }

    /// Connects with the key derived from this name. Returns both ends of the connection.
    fn connect(&mut self, key: &str) -> [ConnectionHandle; 2] {
        let Self { ends: [first, second], now, key: accepted, .. } = self;
        // The computation of the key must not leave it in stack frames of the endpoint, which would move it to the
        // heap.
        let mut secret = with_clean_stack(|| Box::new(bytes(key)));
        let first = with_clean_stack(|| {
            *accepted = Some(second.add_key(*secret, None, AcceptOptions::default()));
            first.connect(*now, *secret, ConnectOptions::new(vec![address(1)])).expect("it can")
        });
        secret.fill(0);
        std::hint::black_box(&mut secret);
        let mut connected = false;
        for side in [0, 1].into_iter().cycle().take(20) {
            connected |= self.turn(side).contains(&Event::Connected);
        }
        assert!(connected);
        let Some(EndpointEvent::Accepted { handle, .. }) = self.ends[1].poll_event() else { panic!("not accepted") };
        [first, handle]
    }

    /// Closes a connection, and removes it and its key from both endpoints.
    fn end(&mut self, handles: [ConnectionHandle; 2]) {
        self.ends[0].connection(handles[0]).expect("open").close(self.now, 0, "");
        for side in [0, 1].into_iter().cycle().take(200) {
            self.turn(side);
        }
        for (end, handle) in self.ends.iter_mut().zip(handles) {
            assert!(end.connection(handle).expect("not removed").is_drained());
            end.remove(handle);
        }
        self.ends[1].remove_key(self.key.take().expect("one was added"));
    }

    /// Advances time by 5 ms and runs one side. Returns its events.
    fn turn(&mut self, side: usize) -> Vec<Event> {
        self.now += Duration::from_millis(5);
        let (now, mut batch, mut datagrams, mut events) = (self.now, Batch::new(), Vec::new(), Vec::new());
        for handle in self.ends[side].handles().collect::<Vec<_>>() {
            let Some(connection) = self.ends[side].connection(handle) else { continue };
            if connection.poll_timeout().is_some_and(|at| at <= now) {
                connection.handle_timeout(now);
            }
            events.extend(std::iter::from_fn(|| connection.poll_event()));
            while connection.poll_transmit(now, &mut batch) {
                batch.seal();
                datagrams.push((batch.bytes().to_vec(), batch.segment_size()));
            }
        }
        while let Some(answer) = self.ends[side].poll_answer() {
            let length = answer.bytes.len();
            datagrams.push((answer.bytes, length));
        }
        for (mut bytes, size) in datagrams {
            if bytes[0] == 1 {
                self.message1.clone_from(&bytes);
            }
            self.ends[1 - side].handle_datagrams(now, address(side), None, ReceivedEcn::NotEct, &mut bytes, size);
        }
        events
    }
}

/// Returns the name from which the seed of an endpoint is derived.
fn seed_of(cipher: Cipher, side: &str) -> String {
    format!("seed of the {side}, {cipher}")
}

/// Derives again every secret of the first connection of a pair. Returns the packet keys separately, as the second
/// part.
fn secrets(cipher: Cipher, key: &str, message1: &[u8]) -> (Vec<Needle>, Vec<Needle>) {
    let psk = Psk::new(bytes(key));
    let mut needles = vec![Needle::new("pre-shared key", psk.as_bytes())];
    let mut noise_key = [0; 32];
    let prk = Salt::new(HKDF_SHA256, b"downpour v1").extract(psk.as_bytes());
    prk.expand(&[b"noise psk"], Bytes32).and_then(|material| material.fill(&mut noise_key)).expect("32 bytes");
    needles.push(Needle::new("pre-shared key of Noise", &noise_key));
    let mut seed = [0; 32];
    for side in ["initiator", "responder"] {
        // Each draw of the generator replaces its key: a connection id, grease, and the seed of the handshake.
        let mut key = bytes(&seed_of(cipher, side));
        for (draw, length) in [8, 4, 32].into_iter().enumerate() {
            needles.push(Needle::new(format!("generator of the {side} before draw {draw}"), &key));
            let mut stream = ChaCha20Rng::from_seed(key);
            stream.fill_bytes(&mut key);
            stream.fill_bytes(&mut seed[..length]);
        }
        needles.push(Needle::new(format!("handshake seed of the {side}"), &seed));
        let mut ephemeral = [0; 32];
        ChaCha20Rng::from_seed(seed).fill_bytes(&mut ephemeral);
        needles.push(Needle::new(format!("ephemeral key of the {side}"), &ephemeral));
    }
    let Ok(Datagram::Message1(Message1 { connection, noise, .. })) = Datagram::classify(message1) else {
        panic!("no first message")
    };
    let prologue = Prologue { key: psk.id(), connection };
    // Keys do not depend on payloads.
    let answered = respond(&psk, prologue, noise, seed, |_| Ok(Vec::new()));
    let (established, _) = answered.expect("the key and the seed are those of the responder");
    let mut packets = Vec::new();
    for (to, secret) in [("responder", &established.secrets.receive), ("initiator", &established.secrets.send)] {
        needles.push(Needle::new(format!("secret of the packets to the {to}"), secret.as_bytes()));
        let info: [&[u8]; 2] = [b"downpour key", &[cipher.wire()]];
        let mut key = [0; 32];
        let prk = Prk::new_less_safe(HKDF_SHA256, secret.as_bytes());
        prk.expand(&info, Bytes32).and_then(|material| material.fill(&mut key)).expect("32 bytes");
        packets.push(Needle::new(format!("key of the packets to the {to}"), &key));
    }
    (needles, packets)
}

struct Bytes32;

impl KeyType for Bytes32 {
    fn len(&self) -> usize {
        32
    }
}

/// Returns the names of the needles found in the writable memory of this process.
fn found<'a>(needles: &[&'a Needle]) -> Vec<&'a str> {
    const CHUNK: usize = 1 << 20;
    const OVERLAP: usize = 31;
    let memory = File::open("/proc/self/mem").expect("Linux");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux");
    let mut buffer = vec![0; CHUNK + OVERLAP];
    let mut found = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, end) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let parse = |text| u64::from_str_radix(text, 16).expect("an address");
        let (start, end) = (parse(start), parse(end));
        for at in (start..end).step_by(CHUNK) {
            let length = ((end - at) as usize).min(buffer.len());
            // The page may have been unmapped since.
            if memory.read_exact_at(&mut buffer[..length], at).is_err() {
                continue;
            }
            found.extend(needles.iter().filter(|needle| holds(&buffer[..length], needle)).map(|needle| &*needle.name));
        }
    }
    buffer.fill(0);
    std::hint::black_box(&mut buffer);
    found.sort_unstable();
    found.dedup();
    found
}

fn holds(memory: &[u8], needle: &Needle) -> bool {
    let masked = &needle.masked;
    let first = masked[0] ^ MASK;
    let mut rest = memory;
    while let Some(at) = rest.iter().position(|byte| *byte == first) {
        let Some(window) = rest[at..].get(..masked.len()) else { return false };
        if window.iter().zip(masked).all(|(byte, masked)| byte ^ MASK == *masked) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[test]
fn nothing_of_an_earlier_connection_is_left_in_memory() {
    for cipher in Cipher::ALL {
        let mut pair = Pair::new(cipher);
        let key = format!("first key, {cipher}");
        let first = pair.connect(&key);
        let (needles, packets) = with_clean_stack(|| secrets(cipher, &key, &pair.message1));
        let names = |needles: &[Needle]| needles.iter().map(|needle| needle.name.clone()).collect::<Vec<_>>();
        // The search must find the keys in use.
        let in_use: Vec<&Needle> = packets.iter().chain(&needles[..1]).collect();
        let mut expected = [names(&packets), names(&needles[..1])].concat();
        expected.sort();
        assert_eq!(found(&in_use), expected, "{cipher}");
        // The secrets from which they were derived must be erased already.
        let passed: Vec<&Needle> = needles[1..].iter().collect();
        assert_eq!(found(&passed), [""; 0], "{cipher}, while the connection is open");

        pair.end(first);
        let all: Vec<&Needle> = needles.iter().chain(&packets).collect();
        assert_eq!(found(&all), [""; 0], "{cipher}, after its end");
        pair.connect(&format!("second key, {cipher}"));
        assert_eq!(found(&all), [""; 0], "{cipher}, during the next");
    }
}
