//! The lab: emulated links that real programs run over, and honest comparisons between them.
//!
//! [`space`] makes hosts out of network namespaces and runs commands on them.

pub mod space;
