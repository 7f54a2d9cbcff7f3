//! Tests of handshake, packet protection and replay window.

mod handshake;
mod packets;
mod replay;

use std::sync::Arc;

use super::*;
use crate::wire::{ConnectionId, HEADER, PacketHeader, PacketKind, RejectReason, TAG};

const CONNECTION: ConnectionId = ConnectionId([7; 8]);

/// The header, a plaintext, and room for the tag.
fn packet(number: u64, plaintext: &[u8]) -> Vec<u8> {
    let header = PacketHeader { kind: PacketKind::Control, connection: CONNECTION, number };
    [&header.encode()[..], plaintext, &[0; TAG]].concat()
}
