//! The bytes of a stream: its name, its chunks, its end with a digest (docs/PROTOCOL.md section 8.3).

use std::io::{self, Read, Write};

use super::error::StreamError;
use super::is_name;
use crate::error::Error;

/// Maximum length of a name in bytes, and of a chunk: sent, and accepted.
pub(super) const MAX_NAME: usize = u8::MAX as usize;
const CHUNK: usize = 128 << 10;
const MAX_CHUNK: usize = 1 << 20;

/// Writes the name.
pub(super) fn write_name(name: &[u8], out: &mut impl Write) -> io::Result<()> {
    let length = u8::try_from(name.len()).map_err(|_| io::ErrorKind::InvalidFilename)?;
    out.write_all(&[&[length], name].concat())
}

/// Reads the name.
///
/// # Errors
/// [`Error::ProtocolViolation`] for an invalid name, [`StreamError::BrokenOff`].
pub(super) fn read_name(input: &mut impl Read) -> Result<Vec<u8>, Error> {
    let mut length = [0];
    input.read_exact(&mut length).map_err(|_| StreamError::BrokenOff(0))?;
    let mut name = vec![0; usize::from(length[0])];
    input.read_exact(&mut name).map_err(|_| StreamError::BrokenOff(0))?;
    if is_name(&name) { Ok(name) } else { Err(Error::ProtocolViolation("invalid stream name".to_owned())) }
}

/// Sends `input` in chunks as they are read, and its digest at its end; returns the number of bytes.
///
/// # Errors
/// [`StreamError::Input`], after which the end must not be sent; [`StreamError::BrokenOff`] if `out` is closed.
pub(super) fn send(input: &mut impl Read, out: &mut impl Write) -> Result<u64, StreamError> {
    let (mut buffer, mut hasher, mut sent) = (vec![0; CHUNK], blake3::Hasher::new(), 0);
    loop {
        let count = match input.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(StreamError::Input(error)),
        };
        let chunk = &buffer[..count];
        hasher.update(chunk);
        let length = u32::try_from(count).map_err(|_| StreamError::BrokenOff(sent))?;
        let rest = if count == 0 { hasher.finalize().as_bytes().to_vec() } else { Vec::new() };
        let written = out
            .write_all(&length.to_be_bytes())
            .and_then(|()| out.write_all(chunk))
            .and_then(|()| out.write_all(&rest));
        written.map_err(|_| StreamError::BrokenOff(sent))?;
        sent += u64::from(length);
        if count == 0 {
            return Ok(sent);
        }
    }
}

/// Passes the bytes of [`send`] to `take`, chunk by chunk; returns the number of bytes once the digest matches.
///
/// # Errors
/// Those of `take`; [`StreamError::TooLong`], [`StreamError::BrokenOff`], [`StreamError::Damaged`], [`Error::ProtocolViolation`].
pub(super) fn receive(
    input: &mut impl Read,
    most: Option<u64>,
    mut take: impl FnMut(&[u8]) -> Result<(), StreamError>,
) -> Result<u64, Error> {
    let (mut hasher, mut received, mut buffer) = (blake3::Hasher::new(), 0, Vec::new());
    loop {
        let mut length = [0; 4];
        input.read_exact(&mut length).map_err(|_| StreamError::BrokenOff(received))?;
        let length = u32::from_be_bytes(length);
        if length as usize > MAX_CHUNK {
            return Err(Error::ProtocolViolation("stream chunk too long".to_owned()));
        }
        if length == 0 {
            break;
        }
        buffer.resize(length as usize, 0);
        input.read_exact(&mut buffer).map_err(|_| StreamError::BrokenOff(received))?;
        received += u64::from(length);
        if let Some(most) = most.filter(|most| received > *most) {
            return Err(StreamError::TooLong(most).into());
        }
        hasher.update(&buffer);
        take(&buffer)?;
    }
    let mut digest = [0; 32];
    input.read_exact(&mut digest).map_err(|_| StreamError::BrokenOff(received))?;
    if hasher.finalize() != digest {
        return Err(StreamError::Damaged.into());
    }
    match input.read(&mut [0]) {
        Ok(0) => Ok(received),
        Ok(_) => Err(Error::ProtocolViolation("stream data after its end".to_owned())),
        Err(_) => Err(StreamError::BrokenOff(received).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(send(&mut &*bytes, &mut out).unwrap(), bytes.len() as u64);
        out
    }

    fn received(mut bytes: &[u8], most: Option<u64>) -> (Result<u64, Error>, Vec<u8>) {
        let mut taken = Vec::new();
        let result = receive(&mut bytes, most, |chunk| {
            taken.extend_from_slice(chunk);
            Ok(())
        });
        (result, taken)
    }

    #[test]
    fn stream_frames_complete_or_error() {
        for length in [0, 1, CHUNK - 1, CHUNK, 3 * CHUNK + 7] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let wire = sent(&bytes);
            let (result, taken) = received(&wire, Some(length as u64));
            assert_eq!((result.unwrap(), taken == bytes), (length as u64, true));
            for cut in
                [0, 3, wire.len() / 2, wire.len() - 33, wire.len() - 1].into_iter().filter(|cut| *cut < wire.len())
            {
                assert!(
                    matches!(received(&wire[..cut], None).0, Err(Error::Stream(StreamError::BrokenOff(_)))),
                    "{length} {cut}"
                );
            }
            let mut damaged = wire.clone();
            *damaged.last_mut().unwrap() ^= 1;
            assert!(matches!(received(&damaged, None).0, Err(Error::Stream(StreamError::Damaged))));
            assert!(matches!(received(&[&wire[..], b"x"].concat(), None).0, Err(Error::ProtocolViolation(_))));
        }
        assert!(matches!(received(&sent(b"four"), Some(3)).0, Err(Error::Stream(StreamError::TooLong(3)))));
        assert!(matches!(received(&[0xff; 64], None).0, Err(Error::ProtocolViolation(_))));
    }

    #[test]
    fn stream_name_is_one_component() {
        for name in [&b"a"[..], b"backup.tar", b"\xff", &[b'x'; MAX_NAME]] {
            let mut out = Vec::new();
            write_name(name, &mut out).unwrap();
            assert_eq!(read_name(&mut &*out).unwrap(), name);
        }
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0"] {
            let wire = [&[name.len() as u8], name].concat();
            assert!(matches!(read_name(&mut &*wire), Err(Error::ProtocolViolation(_))), "{name:?}");
        }
        assert!(matches!(read_name(&mut &b"\x05abc"[..]), Err(Error::Stream(StreamError::BrokenOff(0)))));
    }
}
