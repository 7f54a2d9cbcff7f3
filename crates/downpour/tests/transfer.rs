//! Complete transfers between two local endpoints over real sockets.

#[cfg(test)]
#[path = "transfer/broken.rs"]
mod broken;
#[cfg(test)]
#[path = "transfer/listening.rs"]
mod listening;
#[cfg(test)]
#[path = "transfer/refused.rs"]
mod refused;
#[cfg(test)]
#[path = "transfer/support.rs"]
mod support;
#[cfg(test)]
#[path = "transfer/whole.rs"]
mod whole;
