//! Packet protection: both ciphers, epochs, forgeries.

use super::*;

const EPOCH: u64 = 1 << EPOCH_BITS;

fn pair(cipher: Cipher) -> (Sealer, Opener) {
    let keys = PacketKeys::new(&Secret::new([3; 32]), cipher);
    (Sealer::new(keys.clone()), Opener::new(keys))
}

/// Returns the same keys, advanced by some epochs.
fn at_epoch(cipher: Cipher, epoch: u64) -> Arc<PacketKeys> {
    let first = PacketKeys::new(&Secret::new([3; 32]), cipher);
    (1..=epoch).fold(first, |keys, epoch| keys.advanced_to(epoch).unwrap())
}

fn sealed(sealer: &Sealer, number: u64, plaintext: &[u8]) -> Vec<u8> {
    let mut bytes = packet(number, plaintext);
    sealer.seal(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_sealed_packet_opens() {
    for cipher in Cipher::ALL {
        let (sealer, opener) = pair(cipher);
        for plaintext in [&b""[..], b"x", &[9; 1408], &[1; 65_000]] {
            let mut bytes = sealed(&sealer, 77, plaintext);
            assert_eq!(bytes[..HEADER], packet(77, b"")[..HEADER], "the header stays in the clear");
            assert!(plaintext.len() < 2 || bytes[HEADER..HEADER + plaintext.len()] != *plaintext);
            let opened = opener.open(&mut bytes).unwrap();
            assert_eq!((opened.kind, opened.number), (PacketKind::Control, 77));
            assert_eq!(opened.plaintext, plaintext);
        }
    }
}

#[test]
fn any_changed_bit_is_refused() {
    for cipher in Cipher::ALL {
        let (sealer, opener) = pair(cipher);
        let bytes = sealed(&sealer, 5, b"some plaintext");
        for bit in 0..8 * bytes.len() {
            let mut forged = bytes.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            let refused = opener.open(&mut forged).expect_err("forged");
            let expected = match bit {
                // 0x10 and 0x11 are both known types, which only the tag distinguishes.
                1..8 => RejectReason::UnknownType,
                // The packet number, whose upper 42 bits are the epoch.
                72..136 if epoch_of(u64::from_be_bytes(forged[9..17].try_into().unwrap())) > 1 => {
                    RejectReason::WrongEpoch
                }
                _ => RejectReason::AuthenticationFailed,
            };
            assert_eq!(refused, expected, "bit {bit}");
        }
        for length in 0..bytes.len() {
            let expected =
                if length < HEADER + TAG { RejectReason::TooShort } else { RejectReason::AuthenticationFailed };
            assert_eq!(opener.open(&mut bytes[..length].to_vec()), Err(expected), "{length} bytes");
        }
    }
}

#[test]
fn another_key_cipher_or_direction_is_refused() {
    let bytes = sealed(&pair(Cipher::Aes256Gcm).0, 5, b"plaintext");
    let other = Opener::new(PacketKeys::new(&Secret::new([4; 32]), Cipher::Aes256Gcm));
    assert_eq!(other.open(&mut bytes.clone()), Err(RejectReason::AuthenticationFailed));
    let cipher = pair(Cipher::ChaCha20Poly1305).1;
    assert_eq!(cipher.open(&mut bytes.clone()), Err(RejectReason::AuthenticationFailed));
}

#[test]
fn epochs_follow_the_packet_number() {
    assert_eq!((epoch_of(0), epoch_of(EPOCH - 1), epoch_of(EPOCH), epoch_of(u64::MAX)), (0, 0, 1, (1 << 42) - 1));
    for cipher in Cipher::ALL {
        let (sealer, opener) = pair(cipher);
        // Across the boundary with the keys of epoch 0: the receiver learns of epoch 1 by opening its first packet.
        for number in EPOCH - 2..EPOCH + 2 {
            assert_eq!(opener.open(&mut sealed(&sealer, number, b"over")).unwrap().number, number);
        }
        let mut too_far = packet(2 * EPOCH, b"");
        assert_eq!(sealer.seal(&mut too_far), Err(SealError::Epoch(2 * EPOCH)));
        assert_eq!(too_far, packet(2 * EPOCH, b""), "unchanged");
        assert_eq!(opener.open(&mut too_far), Err(RejectReason::WrongEpoch));

        assert!(opener.keys().advanced_to(0).is_none());
        assert!(opener.keys().advanced_to(2).is_none(), "one epoch at a time");
        let later = Opener::new(opener.keys().advanced_to(1).unwrap());
        assert_eq!(later.keys().epoch(), 1);
        for number in [0, EPOCH - 1, EPOCH, 2 * EPOCH - 1, 2 * EPOCH, 3 * EPOCH - 1] {
            let sealer = Sealer::new(at_epoch(cipher, epoch_of(number)));
            assert!(later.open(&mut sealed(&sealer, number, b"x")).is_ok(), "number {number}");
        }
        let mut third = sealed(&Sealer::new(at_epoch(cipher, 3)), 3 * EPOCH, b"x");
        assert_eq!(later.open(&mut third), Err(RejectReason::WrongEpoch));
        // Epoch 0 is forgotten at epoch 2.
        let forgetful = Opener::new(at_epoch(cipher, 2));
        assert_eq!(forgetful.open(&mut sealed(&sealer, EPOCH - 1, b"x")), Err(RejectReason::WrongEpoch));
        assert!(forgetful.open(&mut sealed(&sealer, EPOCH, b"x")).is_ok());
    }
}

#[test]
fn every_epoch_has_its_own_key() {
    // The same packet, sealed with a key of each of three epochs, moved to another epoch's number.
    let sealer = Sealer::new(at_epoch(Cipher::Aes256Gcm, 1));
    let numbers = [5, EPOCH + 5, 2 * EPOCH + 5];
    for from in numbers {
        for to in numbers.into_iter().filter(|&to| to != from) {
            let mut moved = sealed(&sealer, from, b"moved");
            moved[9..17].copy_from_slice(&to.to_be_bytes());
            let opener = Opener::new(sealer.keys().clone());
            assert_eq!(opener.open(&mut moved), Err(RejectReason::AuthenticationFailed), "{from} as {to}");
        }
    }
}

#[test]
fn an_invalid_packet_is_not_sealed() {
    let sealer = pair(Cipher::Aes256Gcm).0;
    for mut bytes in [vec![], vec![0x10; HEADER + TAG - 1], vec![0x01; 100]] {
        let before = bytes.clone();
        assert_eq!(sealer.seal(&mut bytes), Err(SealError::NotAPacket));
        assert_eq!(bytes, before);
    }
}

#[test]
fn sealers_and_openers_can_be_shared() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    let (sealer, opener) = pair(Cipher::preferred());
    shared(&sealer);
    shared(&opener);
}

#[test]
fn ciphers_are_negotiated() {
    use Cipher::{Aes256Gcm, ChaCha20Poly1305};
    assert_eq!(Aes256Gcm.offer(), [1, 2]);
    assert_eq!(ChaCha20Poly1305.offer(), [2, 1]);
    assert_eq!(Cipher::choose(&[1, 2], Aes256Gcm), Some(Aes256Gcm));
    assert_eq!(Cipher::choose(&[1, 2], ChaCha20Poly1305), Some(ChaCha20Poly1305));
    assert_eq!(Cipher::choose(&[2, 1], Aes256Gcm), Some(ChaCha20Poly1305));
    assert_eq!(Cipher::choose(&[77, 1], ChaCha20Poly1305), Some(Aes256Gcm));
    assert_eq!(Cipher::choose(&[77, 0], Aes256Gcm), None);
    assert_eq!(Cipher::choose(&[], Aes256Gcm), None);
    for cipher in Cipher::ALL {
        assert_eq!(cipher.to_string().parse(), Ok(cipher));
        assert_eq!(Cipher::from_wire(cipher.wire()), Some(cipher));
    }
    assert!("rot13".parse::<Cipher>().is_err());
}

proptest::proptest! {
    #[test]
    fn no_bytes_break_the_handshake_or_the_opener(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..1_400)) {
        super::super::fuzzing::fuzz_handshake(&bytes);
    }
}
