//! Hosts: network namespaces in which real programs run.

mod host;

pub use host::Host;
