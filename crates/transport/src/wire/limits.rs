//! Limits of the wire. Values beyond them are refused when read and never written.

use std::time::Duration;

/// Bytes of UDP payload that one datagram can carry over IPv4 (65,535 less the IP and UDP headers).
pub const MAX_DATAGRAM: usize = 65_507;

/// Smallest first message, padding included, in bytes: every path is expected to carry it (RFC 9000, section 14.1), and
/// it bounds the answer to an unvalidated address.
pub const MIN_MESSAGE1: usize = 1_200;

/// Bytes that Noise adds to the payload of each handshake message: an ephemeral key 32, a tag 16.
pub const NOISE_OVERHEAD: usize = 48;

/// Bytes of Noise payload that fit in a first message of [`MIN_MESSAGE1`] bytes.
pub const MAX_HANDSHAKE_PAYLOAD: usize = MIN_MESSAGE1 - super::datagram::MESSAGE1_HEADER - NOISE_OVERHEAD;

/// TLV entries in a set of parameters.
pub const MAX_PARAMETERS: usize = 64;

/// Bytes of the program in a set of parameters: with every other parameter present they still fit
/// [`MAX_HANDSHAKE_PAYLOAD`].
pub const MAX_APPLICATION: usize = 990;

/// Ciphers in one offer.
pub const MAX_CIPHERS: usize = 8;

/// Versions in a version answer.
pub const MAX_VERSIONS: usize = 16;

/// Highest packet number: one less than the largest 64-bit number, so that "the number after it" exists.
pub const MAX_PACKET_NUMBER: u64 = u64::MAX - 1;

/// Encoding symbol ids are below this (24 bits).
pub const ESI_LIMIT: u32 = 1 << 24;

/// Frames in one control packet, padding not counted.
pub const MAX_FRAMES: usize = 256;

/// Bytes of the control stream in one frame.
pub const MAX_CONTROL_DATA: usize = 16_384;

/// Bytes of the reason in a close frame.
pub const MAX_REASON: usize = 256;

/// Bytes of run lengths or bitmap in one feedback: 2,048 runs, or the last 32,768 packets. No feedback names more than
/// 16,384 ranges.
pub const MAX_RANGES_BODY: usize = 4_096;

/// Flows in one feedback.
pub const MAX_FLOW_STATUSES: usize = 255;

/// Complete flows reported in one feedback: as the first flows, they all fit.
pub const MAX_COMPLETE_REPORTED: usize = 32;

/// Blocks of one flow in one feedback.
pub const MAX_BLOCK_STATUSES: usize = 65_535;

/// Announced and incomplete flows of one direction. A sender holds further ones back.
pub const MAX_OPEN_FLOWS: usize = 64;

/// Largest short block of a stream with its `k` as plan number, and the last with the code of short blocks.
pub const SHORT_K: u32 = 128;

/// Bytes at the beginning of a stream's block that give the number of its stream bytes: length 4, flags 1.
pub const STREAM_HEADER: usize = 5;

/// Symbols in the largest window of a stream: twice as many, the number once the stream continues in smaller symbols,
/// still fit in 12 bits.
pub const MAX_STREAM_WINDOW: u32 = 2_047;

/// The first esi of repair symbols over a window: the upper 12 bits give its number of source symbols, at least one.
pub const WINDOW_REPAIR: u32 = 1 << 12;

/// Packets of [`PacketFeedback::Last`](super::PacketFeedback::Last) and
/// [`FeedbackTiming::Every`](super::FeedbackTiming::Every): the bits of one packets section.
pub const MAX_LAST_PACKETS: u16 = 8 * MAX_RANGES_BODY as u16;

/// Largest epsilon, in millionths: the share of its k symbols that a block may exceed before decoding is attempted.
pub const MAX_EPSILON: u32 = 250_000;

/// Longest [`Spacing`](super::Spacing). Probes are answered at once regardless, but anything else would reach the
/// sender late.
pub const MAX_SPACING: Duration = Duration::from_secs(10);

/// Shortest [`Heartbeat`](super::Heartbeat): a shorter one would let the sender request a flood.
pub const MIN_HEARTBEAT: Duration = Duration::from_millis(1);

/// Longest [`Heartbeat`](super::Heartbeat): a longer one would outlive the connection.
pub const MAX_HEARTBEAT: Duration = Duration::from_secs(10);

/// Largest factor by which [`PacketCountTiming`](super::PacketCountTiming) stretches its interval.
pub const MAX_COUNTING_FACTOR: u8 = 16;
