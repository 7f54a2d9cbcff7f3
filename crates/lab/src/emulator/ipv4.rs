//! The few fields of an IPv4 header (RFC 791) that a link reads or writes.

use std::net::Ipv4Addr;

use netsim::Ecn;

const LEAST_HEADER: usize = 20;
const TYPE_OF_SERVICE: usize = 1;
const CHECKSUM: std::ops::Range<usize> = 10..12;

/// What is to be known of a packet to carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) destination: Ipv4Addr,
    pub(super) ecn: Ecn,
    /// Bytes of the packet, header included.
    pub(super) bytes: usize,
    /// Bytes of the header.
    pub(super) header_bytes: usize,
}

impl Header {
    /// Reads the header at the start of `packet`, which may have padding at its end; `None` if it is none or the packet is cut short.
    pub(super) fn read(packet: &[u8]) -> Option<Self> {
        let header = packet.first_chunk::<LEAST_HEADER>()?;
        let header_bytes = usize::from(header[0] & 0xf) * 4;
        let bytes = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if header[0] >> 4 != 4 || header_bytes < LEAST_HEADER || bytes < header_bytes || bytes > packet.len() {
            return None;
        }
        let ecn = match header[TYPE_OF_SERVICE] & 3 {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        };
        let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
        Some(Self { destination, ecn, bytes, header_bytes })
    }
}

/// Marks a packet CE (RFC 3168), and makes the checksum of its header right again (RFC 1624).
pub(super) fn mark(packet: &mut [u8]) {
    if packet.len() < LEAST_HEADER {
        return;
    }
    let word = |packet: &[u8]| u16::from_be_bytes([packet[0], packet[TYPE_OF_SERVICE]]);
    let before = word(packet);
    packet[TYPE_OF_SERVICE] |= 3;
    let after = word(packet);
    let checksum = u16::from_be_bytes([packet[CHECKSUM.start], packet[CHECKSUM.start + 1]]);
    // RFC 1624, equation 3.
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap_or_default();
    packet[CHECKSUM].copy_from_slice(&(!sum).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 1071's rule: the sum of all words of a header with a right checksum is all ones.
    fn is_right(header: &[u8]) -> bool {
        let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    fn header(type_of_service: u8) -> [u8; 20] {
        let mut header =
            [0x45, type_of_service, 0, 20, 0x1c, 0x46, 0x40, 0, 0x40, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2];
        let sum: u32 = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = !u16::try_from((sum & 0xffff) + (sum >> 16)).unwrap();
        header[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        header
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for type_of_service in 0..=255 {
            let mut packet = header(type_of_service);
            assert!(is_right(&packet));
            mark(&mut packet);
            assert_eq!(packet[1], type_of_service | 3);
            assert!(is_right(&packet), "{type_of_service:#x}");
            assert_eq!(Header::read(&packet).unwrap().ecn, Ecn::Ce);
        }
    }

    #[test]
    fn only_whole_packets_are_read() {
        let packet = header(2);
        let read = Header::read(&packet).unwrap();
        let destination = Ipv4Addr::new(10, 77, 0, 2);
        assert_eq!(read, Header { destination, ecn: Ecn::Ect0, bytes: 20, header_bytes: 20 });
        assert_eq!(Header::read(&[packet.as_slice(), &[0; 26]].concat()).unwrap().bytes, 20, "padding");
        assert_eq!(Header::read(&packet[..19]), None);
        let mut longer = packet;
        longer[3] = 21;
        assert_eq!(Header::read(&longer), None, "cut short");
        let mut headless = packet;
        headless[0] = 0x44;
        assert_eq!(Header::read(&headless), None);
        headless[0] = 0x65;
        assert_eq!(Header::read(&headless), None);
    }
}
