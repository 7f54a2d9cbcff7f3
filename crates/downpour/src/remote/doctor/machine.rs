//! The properties of one host: its kernel, its ciphers, its disk.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use net::SocketInfo;
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use transport::secure::Cipher;

use super::disk::{self, Disk};

/// How long each cipher, and the hash, is run.
const SPELL: Duration = Duration::from_millis(50);

/// Bytes sealed at once: the symbol of a full packet.
const SYMBOL: usize = 1408;

/// Bytes hashed at once: a full block.
const BLOCK: usize = 1024 * SYMBOL;

/// Load average beyond which a remote value is not believed.
const MAX_LOAD: f64 = 1e6;

/// Maximum length of texts accepted from the remote host, in characters.
const MAX_TEXT: usize = 120;

/// A host, as the downpour on it reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Version of its downpour.
    pub version: String,
    /// Kernel name and release, and processor architecture.
    pub system: String,
    /// Cores that the program may use.
    pub cores: u32,
    /// Average number of tasks that requested a core in the last minute (`/proc/loadavg`), before the measurements.
    pub load: Option<f64>,
    /// Properties of a UDP socket on this kernel.
    pub socket: Option<SocketInfo>,
    /// Speed of one core.
    pub core: Core,
    /// The disk of the source or target directory.
    pub disk: Disk,
}

/// Speed of one core, in bytes per second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Core {
    /// The cipher that is faster on this processor, and preferred.
    pub cipher: String,
    /// Sealing packets with AES-256-GCM.
    pub aes_256_gcm: u64,
    /// Sealing packets with ChaCha20-Poly1305.
    pub chacha20_poly1305: u64,
    /// Hashing blocks with BLAKE3.
    pub blake3: u64,
}

impl Machine {
    /// Measures this host and the disk of `directory`, which takes about two seconds; ends early once `stopped` returns
    /// true.
    pub(super) fn measure(
        directory: &Path,
        socket: Option<SocketInfo>,
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
            disk: disk::measure(directory, stopped),
        }
    }

    /// Returns the same with texts that are safe for a terminal, independent of the remote host.
    pub(super) fn cleaned(mut self) -> Self {
        let texts = [&mut self.version, &mut self.system, &mut self.core.cipher, &mut self.disk.directory];
        for text in texts.into_iter().chain(&mut self.disk.trouble).chain(&mut self.disk.absent) {
            *text = cleaned(text);
        }
        self.load = self.load.map(|load| load.clamp(0.0, MAX_LOAD));
        self
    }
}

/// Shortens a text of the remote host and removes control characters.
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

/// Returns the bytes per second that a core seals.
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
        // A symbol is far shorter than the longest message that these ciphers seal.
        let _ = key.seal_in_place_separate_tag(nonce, Aad::empty(), std::hint::black_box(&mut symbol[..]));
    })
}

/// Returns the bytes per second of `work`, which processes `bytes` per call.
fn rate(bytes: usize, mut work: impl FnMut()) -> u64 {
    let started = runtime::now();
    let mut rounds = 0_u64;
    loop {
        // Reading the clock costs about as much as a small packet.
        (0..8).for_each(|_| work());
        rounds += 8;
        let elapsed = runtime::since(started);
        if elapsed >= SPELL {
            return (rounds as f64 * bytes as f64 / elapsed.as_secs_f64()) as u64;
        }
    }
}

/// Returns a description such as `Linux 6.18.2 x86_64`.
fn system() -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let words = [read("ostype"), read("osrelease")].map(|word| word.unwrap_or_else(|| "unknown".to_owned()));
    format!("{} {} {}", words[0].trim(), words[1].trim(), std::env::consts::ARCH)
}

/// Returns the load average of the last minute.
pub(super) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}
