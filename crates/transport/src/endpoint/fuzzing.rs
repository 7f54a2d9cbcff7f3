//! Fuzz target of an endpoint before authentication, for strangers that have seen datagrams and hold no key.

use super::{AcceptOptions, ConnectOptions, Endpoint, EndpointConfig};
use crate::connection::ReceivedEcn;
use crate::profile::Profile;
use crate::secure::{Cipher, Initiator, Prologue, Psk};
use crate::time::Time;
use crate::wire::limits::{MAX_DATAGRAM, MIN_MESSAGE1};
use crate::wire::{ConnectionId, Datagram, KeyId, Message1, PacketHeader, PacketKind, TAG, VERSION, VersionAnswer};
use std::net::SocketAddr;

const KEY: [u8; 32] = [9; 32];
const NOW: Time = Time::from_nanos(1_000_000_000);
/// The positions of the authenticated parts of a first message: version, key id and connection id, then the Noise
/// message behind the copy's number and a length.
const IDS: usize = 13;
const COPY: usize = 21;
const NOISE: usize = 24;
/// Bounds the cost of an input.
const MAX_DATAGRAMS: usize = 64;

/// Delivers datagrams made from `data` to an endpoint that accepts a key and is connecting with it. No datagram of a
/// stranger may open or complete a connection, or be answered with more bytes than the stranger has sent; every
/// rejected datagram is counted.
///
/// Layout: for each datagram its kind (1 byte), its length (2 bytes, big-endian) and that many bytes. The kinds are: as
/// it is; a first message with the key; one of another version; a true first message with one byte changed; a sealed
/// packet, an answer, or a list of versions, for the connection being opened.
///
/// # Panics
/// If a stranger achieves something.
pub fn fuzz_strangers(data: &[u8]) {
    let mut endpoint = Endpoint::new(EndpointConfig::default(), [1; 32]);
    endpoint.add_key(KEY, None, AcceptOptions::default());
    let key = Psk::new(KEY).id();
    let peer = SocketAddr::from(([192, 0, 2, 1], 4_000));
    endpoint.connect(NOW, KEY, ConnectOptions::new(vec![peer])).expect("one connection");
    let own = *endpoint.by_id.keys().next().expect("the one being opened");
    let from = [peer, SocketAddr::from(([192, 0, 2, 2], 4_000))];

    let (mut rest, mut sent, mut lists) = (data, 0, 0);
    while let Some((&[kind, high, low], after)) = rest.split_first_chunk()
        && sent < MAX_DATAGRAMS
    {
        let length = usize::from(u16::from_be_bytes([high, low])).min(after.len());
        let (bytes, after) = after.split_at(length);
        rest = after;
        let mut datagram = datagram(&endpoint, kind, bytes, (key, own));
        if datagram.is_empty() {
            // The kernel may deliver an empty datagram.
            continue;
        }
        lists += u64::from(matches!(Datagram::classify(&datagram), Ok(Datagram::Versions(_))));
        let stride = datagram.len();
        let source = from[usize::from(kind >> 7)];
        endpoint.handle_datagrams(NOW, source, None, ReceivedEcn::NotEct, &mut datagram, stride);
        sent += 1;
        while let Some(answer) = endpoint.poll_answer() {
            assert!(
                answer.bytes.len() <= stride && answer.destination == source,
                "amplified, or sent to another address"
            );
            assert!(matches!(Datagram::classify(&answer.bytes), Ok(Datagram::Versions(_))), "a stranger was answered");
        }
    }
    assert_eq!((endpoint.poll_event(), endpoint.half_open()), (None, 0), "a stranger was accepted");
    let handles: Vec<_> = endpoint.handles().collect();
    let connection = endpoint.connection(handles[0]).expect("the one being opened");
    assert_eq!(connection.poll_event(), None, "a stranger has completed or ended a handshake");
    let refused = connection.refused().total() + endpoint.refused().total();
    let sent = sent as u64;
    // A list of versions may be kept as a hint.
    assert!((sent - lists..=sent).contains(&refused), "{sent} sent, {refused} refused");
    assert_eq!(handles.len(), 1);
}

/// Makes the datagram of this kind.
fn datagram(endpoint: &Endpoint, kind: u8, bytes: &[u8], (key, own): (KeyId, ConnectionId)) -> Vec<u8> {
    let connection = ConnectionId([bytes.first().copied().unwrap_or_default(); 8]);
    let noise = &bytes[..bytes.len().min(MIN_MESSAGE1 - NOISE)];
    let first = |noise: &[u8]| {
        let mut datagram = Vec::new();
        let message = Message1 { key, connection, copy: 0, noise };
        message.encode(MIN_MESSAGE1, &mut datagram).expect("it fits");
        datagram
    };
    let mut datagram = match kind & 7 {
        1 => first(noise),
        2 => {
            let mut datagram = first(noise);
            datagram[1..5].copy_from_slice(&(VERSION + 1 + u32::from(kind)).to_be_bytes());
            datagram
        }
        3 => {
            let prologue = Prologue { key, connection };
            let offer = endpoint.parameters(connection, Cipher::preferred().offer(), &Profile::auto(), Vec::new());
            let payload = offer.encode(7).expect("it fits");
            let (_, noise) = Initiator::new(&Psk::new(KEY), prologue, &payload, [3; 32]).expect("it fits");
            let mut datagram = first(&noise);
            let place = usize::from(u16::from_be_bytes([byte(bytes, 1), byte(bytes, 2)]));
            let places: Vec<_> = (IDS..COPY).chain(NOISE..NOISE + noise.len()).collect();
            datagram[places[place % places.len()]] ^= byte(bytes, 3).max(1);
            datagram
        }
        4 => {
            let kind = if kind & 8 == 0 { PacketKind::Control } else { PacketKind::Symbol };
            let number = u64::from(byte(bytes, 0));
            [&PacketHeader { kind, connection: own, number }.encode(), bytes, &[0; TAG]].concat()
        }
        5 => [&[2][..], &own.0, bytes].concat(),
        6 => {
            let mut datagram = Vec::new();
            VersionAnswer::encode(own, u32::from(kind), &mut datagram);
            datagram.extend(bytes);
            datagram
        }
        _ => bytes.to_vec(),
    };
    datagram.truncate(MAX_DATAGRAM);
    datagram
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}
