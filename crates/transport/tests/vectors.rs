//! Creates the test vectors of `docs/vectors` and the corpora of `fuzz/corpus` again and compares them, so that no
//! change of the wire format goes unnoticed.
//!
//! `UPDATE_VECTORS=1 cargo test -p downpour-transport --test vectors` updates them after an intended change.

#![cfg(test)]

#[path = "vectors/samples.rs"]
mod samples;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use downpour_transport::secure::{
    Cipher, EPOCH_BITS, Initiator, PacketKeys, Prologue, Psk, Sealer, Secret, epoch_of, respond,
};
use downpour_transport::wire::{
    self, BlockFeedback, ConnectionId, Credit, Datagram, FeedbackConfig, FeedbackTiming, FlowId, Frame, Frames,
    Heartbeat, KeyId, LastPackets, Message1, Message2, PacketCountTiming, PacketFeedback, PacketHeader, PacketKind,
    Parameters, ReceivedConfig, Spacing, StreamAnnouncement, StreamLimits, SymbolHeader, SymbolId, TAG, VersionAnswer,
    WireError,
};
use samples::frames;
use serde_json::{Value, json};

const CONNECTION: ConnectionId = ConnectionId([0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17]);
const RESPONDER: ConnectionId = ConnectionId([0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27]);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns 32 bytes that count up from `first`.
fn counting(first: u8) -> [u8; 32] {
    std::array::from_fn(|index| first + index as u8)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_updating() -> bool {
    std::env::var_os("UPDATE_VECTORS").is_some()
}

/// Compares a file with its expected content, or writes it if requested.
fn compare(path: &str, expected: &[u8]) {
    let file = root().join(path);
    if is_updating() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, expected).unwrap();
        return;
    }
    let found = fs::read(&file).unwrap_or_default();
    assert!(
        found == expected,
        "{path} differs from what the code makes; if the wire is meant to change, run\n    \
         UPDATE_VECTORS=1 cargo test -p downpour-transport --test vectors\nand say so in docs/PROTOCOL.md and CHANGELOG.md"
    );
}

fn compare_json(name: &str, vectors: &Value) {
    let text = serde_json::to_string_pretty(vectors).unwrap() + "\n";
    compare(&format!("docs/vectors/{name}.json"), text.as_bytes());
}

fn frame_bytes(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

fn parameters(connection: ConnectionId, ciphers: Vec<u8>, application: &[u8]) -> Parameters {
    Parameters {
        counts_on: false,
        short_symbols: false,
        connection,
        ciphers,
        credit: Credit { symbols: 65_536, control: 1 << 20 },
        max_k: 8_192,
        max_symbol_size: 8_192,
        max_per_packet: 1,
        feedback: FeedbackConfig::everything(FeedbackTiming::Spaced(Spacing::default())),
        streams: StreamLimits { count: 4, window: 100, shared: 1_000 },
        application: application.to_vec(),
    }
}

#[test]
fn headers() {
    let header = PacketHeader { kind: PacketKind::Symbol, connection: CONNECTION, number: 0x0102_0304_0506_0708 };
    let control = PacketHeader { kind: PacketKind::Control, connection: CONNECTION, number: 0 };
    let symbol = SymbolHeader { id: SymbolId { flow: FlowId(1), block: 0x0203_0405, esi: 0x06_0708 }, plan: 9 };
    let mut versions = Vec::new();
    VersionAnswer::encode(CONNECTION, 0x1234_5678, &mut versions);
    compare_json(
        "headers",
        &json!({
            "symbol_packet": { "connection": hex(&CONNECTION.0), "number": "0x0102030405060708", "bytes": hex(&header.encode()) },
            "control_packet": { "connection": hex(&CONNECTION.0), "number": "0x0", "bytes": hex(&control.encode()) },
            "symbol_header": { "flow": 1, "block": 0x0203_0405, "esi": 0x06_0708, "plan": 9, "bytes": hex(&symbol.encode()) },
            "version_answer": { "destination": hex(&CONNECTION.0), "versions": ["0x1a3a5a7a", "0x1"], "bytes": hex(&versions) },
        }),
    );
}

#[test]
fn every_frame() {
    let vectors: Vec<_> = frames()
        .iter()
        .map(|(says, frame)| {
            let bytes = frame_bytes(frame);
            assert_eq!(Frames::new(&bytes).next().as_ref(), Some(&Ok(frame.clone())), "{says}");
            for end in 1..bytes.len() {
                let cut = Frames::new(&bytes[..end]).next();
                assert_eq!(cut, Some(Err(WireError::Truncated)), "{says}: cut after {end} bytes");
            }
            json!({ "says": says, "bytes": hex(&bytes) })
        })
        .collect();
    compare_json("frames", &json!(vectors));
    if is_updating() {
        let check = root().join("docs/vectors/check.py");
        let status = Command::new("python3").arg("-B").arg(check).arg("--write-limits").status();
        assert!(status.expect("python3 writes limits.json").success(), "limits.json follows from frames.json");
    }
}

/// Source symbols of a stream's blocks, by plan.
#[test]
fn stream_plans() {
    let (code, short_code) = (erasure::BlockCode::RaptorQ.into(), erasure::BlockCode::ReedSolomon);
    let vectors = [10, 200, 256, 1_024, 8_192].map(|k| {
        let stream = StreamAnnouncement { flow: FlowId(1), symbol_size: 1_408, tag: 0, k, code, short_code };
        let layout = downpour_transport::flow::StreamLayout::new(stream);
        let plans = [0, 1, 9, 10, 127, 128, 129, 130, 200, 254, 255];
        let plans: Vec<_> = plans.iter().map(|plan| json!({ "plan": plan, "k": layout.cost(*plan) })).collect();
        json!({ "announced_k": k, "plans": plans })
    });
    compare_json("streams", &json!(vectors));
}

/// Source symbols of a stream with a window code, and their repair symbols: headers and bytes.
#[test]
fn window_repair() {
    use erasure::rlc::{Density, Field, WindowEncoder};
    let source: Vec<Vec<u8>> = (0..10).map(|nth| counting(nth * 23)[..12].to_vec()).collect();
    let mut encoder = WindowEncoder::new(Field::Gf256, 12, 4);
    let mut repairs = Vec::new();
    for (block, symbol) in source.iter().enumerate() {
        encoder.push(symbol);
        for key in if block % 3 == 1 { vec![block as u16, 4_000] } else { vec![] } {
            let mut bytes = [0; 12];
            let repair = encoder.repair(key, Density::FULL, &mut bytes).unwrap();
            let esi = u32::from(repair.symbols) << 12 | u32::from(key);
            let header = SymbolHeader { id: SymbolId { flow: FlowId(1), block: block as u32, esi }, plan: 0 };
            repairs.push(json!({ "header": hex(&header.encode()), "bytes": hex(&bytes) }));
        }
    }
    let source: Vec<String> = source.iter().map(|symbol| hex(symbol)).collect();
    compare_json("windows", &json!([{ "largest_window": 4, "source": source, "repair": repairs }]));
}

#[test]
fn parameter_sets() {
    let offer = parameters(CONNECTION, Cipher::Aes256Gcm.offer(), b"application");
    let every_packet =
        FeedbackConfig { ecn: false, blocks: None, ..FeedbackConfig::everything(FeedbackTiming::EveryPacket) };
    let chosen = Parameters { feedback: every_packet, ..parameters(RESPONDER, vec![2], b"") };
    let feedback = FeedbackConfig {
        packets: PacketFeedback::Last(LastPackets { packets: 1_024 }),
        blocks: Some(BlockFeedback::Received(ReceivedConfig { epsilon: 10_000 })),
        ..FeedbackConfig::everything(FeedbackTiming::Every(PacketCountTiming {
            packets: 1_024,
            threshold: 50_000,
            factor: 2,
        }))
    };
    let of_the_last = Parameters { feedback, ..chosen.clone() };
    let feedback = FeedbackConfig {
        packets: PacketFeedback::InOrder,
        blocks: Some(BlockFeedback::Mask),
        ..FeedbackConfig::everything(FeedbackTiming::OnBlocks(Heartbeat { heartbeat: Duration::from_millis(20) }))
    };
    let masked = Parameters { feedback, ..chosen.clone() };
    let several = Parameters { max_per_packet: 64, ..chosen.clone() };
    let counting = Parameters { counts_on: true, ..chosen.clone() };
    let short = Parameters { short_symbols: true, ..chosen.clone() };
    compare_json(
        "parameters",
        &json!([
            {
                "says": "ciphers 1, 2; credit 65536 symbols, 2^20 bytes; k to 8192; T to 8192; ECN, blocks, 32 per RTT and 1000 us \
                         apart; \"application\"; grease 0x12345678",
                "bytes": hex(&offer.encode(0x1234_5678).unwrap()),
            },
            {
                "says": "cipher 2; the same credit and limits; packets only, for every packet; no application bytes; grease 0",
                "bytes": hex(&chosen.encode(0).unwrap()),
            },
            {
                "says": "cipher 2; ECN, blocks, 32 per RTT and 1000 us apart for who knows no more; the last 1024 packets; received with 10000 \
                         millionths; every 1024 packets, threshold 50000, factor 2; no application bytes; grease 0",
                "bytes": hex(&of_the_last.encode(0).unwrap()),
            },
            {
                "says": "cipher 2; ECN, blocks, 32 per RTT and 1000 us apart for who knows no more; packets in order; mask; heartbeat of 20000 us; \
                         no application bytes; grease 0",
                "bytes": hex(&masked.encode(0).unwrap()),
            },
            {
                "says": "cipher 2; the same credit and limits; 64 symbols per packet; packets only, for every packet; no application bytes; grease 0",
                "bytes": hex(&several.encode(0).unwrap()),
            },
            {
                "says": "cipher 2; the same credit and limits; packets only, for every packet; feedback counts on; no application bytes; grease 0",
                "bytes": hex(&counting.encode(0).unwrap()),
            },
            {
                "says": "cipher 2; the same credit and limits; packets only, for every packet; short symbols; no application bytes; grease 0",
                "bytes": hex(&short.encode(0).unwrap()),
            },
        ]),
    );
}

/// Reads a file of vectors, each of which is some texts by their names.
fn texts(name: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(root().join(format!("docs/vectors/{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Reads parts between spaces: hexadecimal digits, with a count such as `*300` behind repeated ones.
fn unhex(text: &str) -> Vec<u8> {
    let parts = text.split_whitespace().map(|part| {
        let (digits, times) = part.split_once('*').unwrap_or((part, "1"));
        let pairs = digits.as_bytes().chunks(2);
        let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap());
        bytes.collect::<Vec<_>>().repeat(times.parse().unwrap())
    });
    parts.flatten().collect()
}

/// Everything that the document refuses is refused.
#[test]
fn refused() {
    let vectors = texts("refused");
    assert!(vectors.len() > 50, "{} vectors", vectors.len());
    for vector in &vectors {
        let bytes = unhex(&vector["bytes"]);
        let refused = match vector["what"].as_str() {
            "frames" => Frames::check_all(&bytes).is_err(),
            "parameters" => Parameters::decode(&bytes).is_err(),
            "datagram" => Datagram::classify(&bytes).is_err(),
            "symbol header" => SymbolHeader::decode(&bytes).is_err(),
            other => panic!("nothing reads '{other}'"),
        };
        assert!(refused, "{}: {}", vector["because"], vector["bytes"]);
    }
}

/// Each field of each frame is read at its limits, read again after it was written, and refused beyond them, as the
/// second decoder reads and refuses it.
#[test]
fn frames_at_their_limits() {
    if is_updating() {
        // `every_frame` is writing them.
        return;
    }
    let vectors = texts("limits");
    let refused = vectors.iter().filter(|vector| vector.contains_key("refused"));
    assert!(refused.count() > 100, "of {} vectors", vectors.len());
    for vector in &vectors {
        let bytes = unhex(&vector["bytes"]);
        let found = Frames::check_all(&bytes);
        assert_eq!(found.is_err(), vector.contains_key("refused"), "{vector:?}: {found:?}");
        for frame in Frames::new(&bytes).flatten() {
            let mut written = Vec::new();
            frame.encode(&mut written);
            assert_eq!(Frames::new(&written).next(), Some(Ok(frame)), "{vector:?}");
        }
    }
}

/// Returns a packet sealed with the keys of its epoch.
fn sealed(secret: &Secret, cipher: Cipher, kind: PacketKind, number: u64, plaintext: &[u8]) -> Vec<u8> {
    let keys = (1..=epoch_of(number))
        .fold(PacketKeys::new(secret, cipher), |keys, epoch| keys.advanced_to(epoch).expect("the next epoch"));
    let header = PacketHeader { kind, connection: CONNECTION, number };
    let mut packet = [&header.encode()[..], plaintext, &[0; TAG]].concat();
    Sealer::new(keys).seal(&mut packet).unwrap();
    packet
}

#[test]
fn keys_and_sealed_packets() {
    let psk = Psk::new(counting(0));
    let secret = Secret::new(counting(0x40));
    let symbol = SymbolHeader { id: SymbolId { flow: FlowId(1), block: 2, esi: 3 }, plan: 0 };
    let symbols = [&symbol.encode()[..], &counting(0x60)].concat();
    // ESIs 3, 4 and 5 of 16 bytes each.
    let several = [&symbols[..], &counting(0x80)[..16]].concat();
    let mut packets = Vec::new();
    for cipher in Cipher::ALL {
        for (kind, number, plaintext) in [
            (PacketKind::Control, 0, &[1][..]),
            (PacketKind::Symbol, 0x01_0203, &symbols),
            (PacketKind::Symbol, (1 << EPOCH_BITS) - 1, &symbols),
            (PacketKind::Symbol, 1 << EPOCH_BITS, &symbols),
            (PacketKind::Control, 5 << EPOCH_BITS, &[0, 1, 0]),
            (PacketKind::Symbol, (5 << EPOCH_BITS) + 1, &several),
        ] {
            packets.push(json!({
                "cipher": cipher.name(),
                "number": number,
                "epoch": epoch_of(number),
                "plaintext": hex(plaintext),
                "packet": hex(&sealed(&secret, cipher, kind, number, plaintext)),
            }));
        }
    }
    compare_json(
        "packets",
        &json!({
            "psk": hex(psk.as_bytes()),
            "key_id": hex(&psk.id().0),
            "secret_of_epoch_0": hex(secret.as_bytes()),
            "connection": hex(&CONNECTION.0),
            "packets": packets,
        }),
    );
}

/// Returns both datagrams of a handshake with fixed seeds, and its results.
fn handshake() -> (Vec<u8>, Vec<u8>, Value) {
    let psk = Psk::new(counting(0));
    let prologue = Prologue { key: psk.id(), connection: CONNECTION };
    let offer = parameters(CONNECTION, Cipher::Aes256Gcm.offer(), b"from the initiator").encode(1).unwrap();
    let chosen = parameters(RESPONDER, vec![Cipher::Aes256Gcm.wire()], b"from the responder").encode(2).unwrap();
    let (seed1, seed2) = (counting(0x80), counting(0xa0));
    let (mut initiator, noise1) = Initiator::new(&psk, prologue, &offer, seed1).unwrap();
    let answer = |seen: &[u8]| {
        assert_eq!(seen, offer);
        Ok(chosen.clone())
    };
    let (_, noise2) = respond(&psk, prologue, &noise1, seed2, answer).unwrap();
    let established = initiator.finish(&noise2).unwrap();
    assert_eq!(established.payload, chosen);
    let mut message1 = Vec::new();
    Message1 { key: psk.id(), connection: CONNECTION, copy: 1, noise: &noise1 }.encode(1_200, &mut message1).unwrap();
    let mut message2 = Vec::new();
    Message2 { destination: CONNECTION, copy: 1, noise: &noise2 }.encode(1_200, &mut message2).unwrap();
    let unpadded = |message: &[u8], header: usize, noise: &[u8]| hex(&message[..header + noise.len()]);
    let vector = json!({
        "psk": hex(psk.as_bytes()),
        "key_id": hex(&psk.id().0),
        "initiator_connection": hex(&CONNECTION.0),
        "initiator_ephemeral_private": hex(&ephemeral(seed1)),
        "responder_ephemeral_private": hex(&ephemeral(seed2)),
        "payload1": hex(&offer),
        "message1_without_padding": unpadded(&message1, 24, &noise1),
        "payload2": hex(&chosen),
        "message2_without_padding": unpadded(&message2, Message2::HEADER, &noise2),
        "secret_initiator_to_responder": hex(established.secrets.send.as_bytes()),
        "secret_responder_to_initiator": hex(established.secrets.receive.as_bytes()),
    });
    (message1, message2, vector)
}

/// Returns the private key of a seed: the first 32 bytes of ChaCha20 under it.
fn ephemeral(seed: [u8; 32]) -> [u8; 32] {
    use rand_core::{Rng, SeedableRng};
    let mut key = [0; 32];
    rand_chacha::ChaCha20Rng::from_seed(seed).fill_bytes(&mut key);
    key
}

#[test]
fn a_handshake() {
    let (message1, message2, vector) = handshake();
    assert!(matches!(Datagram::classify(&message1), Ok(Datagram::Message1(_))));
    assert!(matches!(Datagram::classify(&message2), Ok(Datagram::Message2(_))));
    compare_json("handshake", &vector);
}

/// Returns the seeds of the fuzz targets: one file for each element of the wire format.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    let mut samples = BTreeMap::new();
    for (says, frame) in frames() {
        let name = says.split(':').next().unwrap_or_default().replace(' ', "_");
        let nth = samples.entry(name.clone()).and_modify(|nth| *nth += 1).or_insert(1);
        seeds.push((format!("wire/frame_{name}_{nth}"), frame_bytes(&frame)));
    }
    let all = frames().iter().flat_map(|(_, frame)| frame_bytes(frame)).collect();
    seeds.push(("wire/frames_all".into(), all));
    let offer = parameters(CONNECTION, vec![1, 2], b"application").encode(7).unwrap();
    let mut versions = Vec::new();
    VersionAnswer::encode(CONNECTION, 0, &mut versions);
    let other_version = {
        let mut bytes = Vec::new();
        let message = Message1 { key: KeyId([9; 8]), connection: CONNECTION, copy: 0, noise: &[] };
        message.encode(1_200, &mut bytes).unwrap();
        bytes[4] = 2;
        bytes
    };
    let packet = sealed(&Secret::new(counting(0x40)), Cipher::Aes256Gcm, PacketKind::Control, 77, &[1, 0, 0]);
    let (message1, message2, _) = handshake();
    for room in ["wire", "handshake"] {
        for (name, bytes) in [
            ("message1", &message1),
            ("message2", &message2),
            ("other_version", &other_version),
            ("versions", &versions),
            ("parameters", &offer),
            ("packet", &packet),
        ] {
            seeds.push((format!("{room}/{name}"), bytes.clone()));
        }
    }
    seeds.push(("handshake/noise1".into(), message1[24..300].to_vec()));
    seeds
}

#[test]
fn corpora_are_complete() {
    for (name, bytes) in seeds() {
        compare(&format!("fuzz/corpus/{name}"), &bytes);
    }
}
