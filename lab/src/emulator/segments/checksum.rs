//! The Internet checksum (RFC 1071).

/// Returns the ones' complement sum of `bytes`, taken as big-endian 16-bit words, added to `sum`. An odd last byte
/// counts as a high byte.
pub(super) fn sum(bytes: &[u8], sum: u64) -> u64 {
    let (words, odd) = bytes.as_chunks::<4>();
    // 32 bits at once: folding adds the carries between the halves back. 2^32 words fit.
    let sum = words.iter().fold(sum, |sum, word| sum + u64::from(u32::from_be_bytes(*word)));
    let mut last = [0; 4];
    last[..odd.len()].copy_from_slice(odd);
    sum + u64::from(u32::from_be_bytes(last))
}

/// Folds a sum to 16 bits.
pub(super) fn fold(mut sum: u64) -> u16 {
    while let high @ 1.. = sum >> 16 {
        sum = (sum & 0xffff) + high;
    }
    sum as u16
}

/// Writes the checksum of an IPv4 header. The field is at bytes 10 and 11.
pub(super) fn write_ipv4(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = !fold(sum(header, 0));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Completes a checksum that the sender has left to its device: the field holds the sum of the pseudo header, and the
/// device adds everything from `start` on. Zero is written as its equivalent 0xffff, since in UDP zero means no
/// checksum.
pub(super) fn complete(packet: &mut [u8], start: usize, field: usize) {
    let checksum = match !fold(sum(&packet[start..], 0)) {
        0 => 0xffff,
        checksum => checksum,
    };
    packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_rfc_1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(fold(sum(&bytes, 0)), 0xddf2);
        assert_eq!(fold(sum(&bytes[..7], 0)), 0xdcfb, "an odd byte is a high byte");
        assert_eq!(fold(sum(&bytes[4..], sum(&bytes[..4], 0))), 0xddf2, "in two parts");
        assert_eq!(fold(u64::MAX), 0xffff);
    }

    #[test]
    fn zero_checksum_is_written_as_ffff() {
        let mut packet = [0xff, 0xff, 0, 0];
        complete(&mut packet, 0, 2);
        assert_eq!(packet, [0xff, 0xff, 0xff, 0xff]);
        let mut header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 9, 9, 10, 0, 0, 1, 10, 0, 0, 2];
        write_ipv4(&mut header);
        assert_eq!(fold(sum(&header, 0)), 0xffff);
    }
}
