//! Hostile peers, which hold the key, and strangers, which do not: their packets are rejected, counted and bounded, and
//! a peer that breaks the protocol only loses its connection.

mod counts;
mod crowds;
mod excess;
mod feedback;
mod packets;
mod paths;
mod peers;
mod rogue;
mod strangers;
mod stream_successors;
mod streams;
mod successors;
mod windows;
