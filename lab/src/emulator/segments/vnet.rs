//! The header before each packet of a TUN device: the work that the sender left to the device (`struct
//! virtio_net_hdr`).

/// The checksum is left to the device.
const NEEDS_CHECKSUM: u8 = 1;
const NONE: u8 = 0;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
/// Next to a TCP type: CWR is set, and belongs to the first segment only.
const ECN: u8 = 0x80;

/// How a packet must be split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// It is a single packet.
    #[default]
    None,
    /// Into TCP segments.
    Tcp,
    /// Into UDP datagrams.
    Udp,
}

/// The header before a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// If the checksum is left to the device: the start of the summed part, and the offset of the field from it.
    pub checksum: Option<(u16, u16)>,
    /// How to split.
    pub offload: Offload,
    /// The packet sets CWR, which only its first segment keeps.
    pub cwr: bool,
    /// Bytes of all headers. Only a hint.
    pub headers: u16,
    /// Bytes of payload of every segment except the last.
    pub segment: u16,
}

impl VnetHeader {
    /// Its bytes, as given to `TUNSETVNETHDRSZ`.
    pub const BYTES: usize = 10;

    /// Reads a header, in the byte order of this machine; `None` for an unknown way to split.
    pub fn read(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let [flags, kind, numbers @ ..] = *bytes;
        let number = |index: usize| u16::from_ne_bytes([numbers[2 * index], numbers[2 * index + 1]]);
        let offload = match kind & !ECN {
            NONE => Offload::None,
            TCP4 | TCP6 => Offload::Tcp,
            UDP => Offload::Udp,
            _ => return None,
        };
        Some(Self {
            checksum: (flags & NEEDS_CHECKSUM != 0).then(|| (number(2), number(3))),
            offload,
            cwr: kind & ECN != 0,
            headers: number(0),
            segment: number(1),
        })
    }

    /// Writes the header of a packet of IP version `version`.
    pub fn write(&self, version: u8) -> [u8; Self::BYTES] {
        let kind = match self.offload {
            Offload::None => NONE,
            Offload::Tcp if version == 6 => TCP6,
            Offload::Tcp => TCP4,
            Offload::Udp => UDP,
        };
        let (start, offset) = self.checksum.unwrap_or_default();
        let mut bytes = [0; Self::BYTES];
        bytes[0] = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        bytes[1] = if self.cwr { kind | ECN } else { kind };
        for (field, number) in bytes[2..].chunks_exact_mut(2).zip([self.headers, self.segment, start, offset]) {
            field.copy_from_slice(&number.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vnet_header_round_trip() {
        let header =
            VnetHeader { checksum: Some((20, 16)), offload: Offload::Tcp, cwr: true, headers: 52, segment: 1448 };
        let bytes = header.write(4);
        assert_eq!(bytes[..2], [1, 0x81]);
        assert_eq!(bytes[2..], [52_u16, 1448, 20, 16].map(u16::to_ne_bytes).concat());
        assert_eq!(VnetHeader::read(&bytes), Some(header));
        assert_eq!(header.write(6)[1], 0x84);
        assert_eq!(VnetHeader::read(&header.write(6)), Some(header));
        let plain = VnetHeader { offload: Offload::Udp, ..VnetHeader::default() };
        assert_eq!(VnetHeader::read(&plain.write(4)), Some(plain));
    }

    #[test]
    fn vnet_unknown_split_is_none() {
        for kind in [3, 7, 0x21, 0x41] {
            assert_eq!(VnetHeader::read(&[0, kind, 0, 0, 0, 0, 0, 0, 0, 0]), None, "{kind}");
        }
    }
}
