//! What one machine can do: its kernel, its ciphers, its disk.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use net::SocketFacts;
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use transport::secure::Cipher;

use super::disk::{self, Disk};

/// For how long each cipher, and the hash, runs.
const SPELL: Duration = Duration::from_millis(50);

/// What is sealed at once: the symbol of a full packet.
const SYMBOL: usize = 1408;

/// What is hashed at once: a full block.
const BLOCK: usize = 1024 * SYMBOL;

/// A load average beyond which the other machine jests.
const MAX_LOAD: f64 = 1e6;

/// Longest text that is taken from the other machine, in characters.
const MAX_TEXT: usize = 120;

/// A machine, as the downpour on it finds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Of downpour there.
    pub version: String,
    /// Kernel, its release, and the processor's architecture.
    pub system: String,
    /// Cores that the program may use.
    pub cores: u32,
    /// Tasks that wanted a core in the last minute, on average (`/proc/loadavg`), before any of this was measured.
    pub load: Option<f64>,
    /// What the kernel gives a UDP socket.
    pub socket: Option<SocketFacts>,
    /// What one core can do.
    pub core: Core,
    /// The disk below the folder that files come from or go to.
    pub disk: Disk,
}

/// What one core can do, in bytes per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// The cipher that this processor is faster with, and prefers.
    pub cipher: String,
    /// Sealing packets with AES-256-GCM.
    pub aes_256_gcm: u64,
    /// Sealing packets with ChaCha20-Poly1305.
    pub chacha20_poly1305: u64,
    /// Hashing blocks with BLAKE3.
    pub blake3: u64,
}

impl Machine {
    /// Measures this machine and the disk below `folder`, for two seconds or so; ends early when `stopped` says so.
    pub(super) fn measure(
        folder: &Path,
        socket: Option<SocketFacts>,
        load: Option<f64>,
        stopped: &dyn Fn() -> bool,
    ) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            system: system(),
            cores: thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
            load,
            socket,
            core: Core::measure(),
            disk: disk::measure(folder, stopped),
        }
    }

    /// The same, fit for a terminal whatever the other machine says.
    pub(super) fn cleaned(mut self) -> Self {
        let texts = [&mut self.version, &mut self.system, &mut self.core.cipher, &mut self.disk.folder];
        for text in texts.into_iter().chain(&mut self.disk.trouble).chain(&mut self.disk.absent) {
            *text = cleaned(text);
        }
        self.load = self.load.map(|load| load.clamp(0.0, MAX_LOAD));
        self
    }
}

/// A text of the other machine, short and without control characters.
pub(super) fn cleaned(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| {
        let is_plain = !c.is_control();
        let plain = is_plain.then_some(c);
        plain.into_iter().chain((!is_plain).then(|| c.escape_default()).into_iter().flatten())
    });
    escaped.take(MAX_TEXT).collect()
}

impl Core {
    fn measure() -> Self {
        let block = vec![0x5a; BLOCK];
        Self {
            cipher: Cipher::preferred().name().to_owned(),
            aes_256_gcm: seal_rate(&AES_256_GCM),
            chacha20_poly1305: seal_rate(&CHACHA20_POLY1305),
            blake3: rate(BLOCK, || _ = std::hint::black_box(blake3::hash(&block))),
        }
    }
}

/// Bytes per second that a core seals.
fn seal_rate(algorithm: &'static Algorithm) -> u64 {
    let Ok(key) = UnboundKey::new(algorithm, &vec![7; algorithm.key_len()]) else { return 0 };
    let key = LessSafeKey::new(key);
    let mut symbol = vec![0x5a; SYMBOL];
    let mut number = 0_u64;
    rate(SYMBOL, || {
        number += 1;
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        // A symbol is far below the longest text that these ciphers seal.
        let _ = key.seal_in_place_separate_tag(nonce, Aad::empty(), std::hint::black_box(&mut symbol[..]));
    })
}

/// Bytes per second of `work`, which does `bytes` at once.
fn rate(bytes: usize, mut work: impl FnMut()) -> u64 {
    let started = Instant::now();
    let mut rounds = 0_u64;
    loop {
        // The clock costs about as much as a small packet.
        (0..8).for_each(|_| work());
        rounds += 8;
        let elapsed = started.elapsed();
        if elapsed >= SPELL {
            return (rounds as f64 * bytes as f64 / elapsed.as_secs_f64()) as u64;
        }
    }
}

/// Such as `Linux 6.18.2 x86_64`.
fn system() -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let words = [read("ostype"), read("osrelease")].map(|word| word.unwrap_or_else(|| "unknown".to_owned()));
    format!("{} {} {}", words[0].trim(), words[1].trim(), std::env::consts::ARCH)
}

/// The load average of the last minute.
pub(super) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
