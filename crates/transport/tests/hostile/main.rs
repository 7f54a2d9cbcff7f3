//! Hostile peers, who hold the key, and strangers, who do not: what they send is refused, counted and bounded, and a peer
//! that breaks the protocol loses its connection and nothing else.

mod counts;
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
