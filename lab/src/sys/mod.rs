//! System calls that no safe library offers. The only module of the lab with unsafe code.

#![allow(
    unsafe_code,
    reason = "raw sockets, device settings, scheduling and bpf(2) have no safe wrapper; each block says why it is sound"
)]

mod call;
pub(crate) mod ethtool;
pub(crate) mod grow_only;
pub(crate) mod namespaces;
pub(crate) mod packet;
pub(crate) mod scheduling;
pub(crate) mod tcp_info;
pub(crate) mod tun;
