//! Interfaces, addresses and routes of the current network namespace, through `rtnetlink(7)`.

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols};

/// The kernel's answers are short: only errors.
const ANSWER_BYTES: usize = 8192;

/// A socket to the kernel.
pub(super) struct Netlink {
    socket: Socket,
}

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(protocols::NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Creates a cable: `name` in this namespace, `peer_name` with the hardware address `peer_mac` in another.
    pub(super) fn add_veth(
        &self,
        name: &str,
        peer_name: &str,
        peer_mac: [u8; 6],
        peer_namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes = vec![
            LinkAttribute::IfName(peer_name.to_owned()),
            LinkAttribute::Address(peer_mac.to_vec()),
            LinkAttribute::NetNsFd(peer_namespace.as_raw_fd()),
        ];
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ];
        self.ask(RouteNetlinkMessage::NewLink(link), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Switches an interface on, with these flags.
    pub(super) fn set_up(&self, interface: u32, flags: LinkFlags) -> io::Result<()> {
        let flags = flags | LinkFlags::Up;
        let mut link = LinkMessage::default();
        link.header.index = interface;
        link.header.flags = flags;
        link.header.change_mask = flags;
        self.ask(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Sets the queue length of an interface in packets. The ioctl for it requires root of the machine.
    pub(super) fn set_queue_length(&self, interface: u32, packets: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = interface;
        link.attributes = vec![LinkAttribute::TxQueueLen(packets)];
        self.ask(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Gives an interface an address, with its network.
    pub(super) fn add_address(&self, interface: u32, address: Ipv4Addr, prefix_length: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix_length;
        message.header.scope = AddressScope::Universe;
        message.header.index = interface;
        message.attributes =
            vec![AddressAttribute::Address(IpAddr::V4(address)), AddressAttribute::Local(IpAddr::V4(address))];
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Makes an interface the default route, with `congestion` as the congestion control of TCP.
    pub(super) fn set_default_route(&self, interface: u32, congestion: Option<&str>) -> io::Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = AddressFamily::Inet;
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = RouteScope::Link;
        route.header.kind = RouteType::Unicast;
        route.attributes = vec![RouteAttribute::Oif(interface)];
        if let Some(name) = congestion {
            route.attributes.push(RouteAttribute::Metrics(vec![RouteMetric::CcAlgo(name.to_owned())]));
        }
        self.ask(RouteNetlinkMessage::NewRoute(route), NLM_F_CREATE | NLM_F_REPLACE)
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    fn ask(&self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut message = NetlinkMessage::from(request);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let mut answer = Vec::with_capacity(ANSWER_BYTES);
        self.socket.recv(&mut answer, 0)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }
}

/// Returns the index of an interface of the current namespace.
pub(super) fn interface_index(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(socket, name)?)
}
