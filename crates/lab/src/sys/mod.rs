//! System calls that no safe library offers. The only module of the lab with unsafe code.

#![allow(
    unsafe_code,
    reason = "raw sockets, device settings and scheduling have no safe wrapper; each block says why it is sound"
)]

mod call;
pub(crate) mod ethtool;
pub(crate) mod namespaces;
pub(crate) mod packet;
pub(crate) mod scheduling;
pub(crate) mod tun;
