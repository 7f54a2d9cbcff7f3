//! Hostile peers, who hold the key, and strangers, who do not: their packets are refused, counted and bounded, and a
//! peer that breaks the protocol only loses its connection.

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
