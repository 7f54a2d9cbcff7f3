//! The bytes of a pipe over ssh, in frames, which distinguish the exit of ssh from the end of the input.
//!
//! A frame is its length in 4 bytes, most significant first, followed by that many bytes. An empty frame is the end of
//! the input.

use std::io::{self, Read, Write};

/// Tag of the only stream.
pub(super) const STREAM: u64 = 0;

/// Maximum length of a frame in bytes.
const MAX_FRAME: usize = 128 << 10;

/// Why sending ended early.
#[derive(Debug)]
pub(super) enum Unsent {
    /// Reading the input failed.
    Unreadable(io::Error),
    /// ssh cannot be written to.
    Unwritable,
}

/// Sends `input` to its end, followed by the empty frame. If reading fails, `ssh` ends without the empty frame, which
/// marks the data as incomplete.
///
/// # Errors
/// Reading `input` or writing to `ssh` failed.
pub(super) fn send(mut input: impl Read, mut ssh: impl Write) -> Result<(), Unsent> {
    let mut buffer = vec![0; MAX_FRAME];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unsent::Unreadable(error)),
        };
        write_frame(&mut ssh, &buffer[..count]).map_err(|_| Unsent::Unwritable)?;
        if count == 0 {
            return Ok(());
        }
    }
}

fn write_frame(ssh: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    ssh.write_all(&length.to_be_bytes())?;
    ssh.write_all(bytes)?;
    ssh.flush()
}

/// Passes the contents of frames to `take`, up to and including the empty one, while `take` returns true.
///
/// # Errors
/// `ssh` ends before the empty frame, or sends an invalid frame.
pub(super) fn receive(mut ssh: impl Read, mut take: impl FnMut(Vec<u8>) -> bool) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        ssh.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_FRAME {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        ssh.read_exact(&mut bytes)?;
        if !take(bytes) || length == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(frames: &[u8]) -> (Vec<u8>, Option<io::ErrorKind>) {
        let mut bytes = Vec::new();
        let result = receive(frames, |frame| {
            bytes.extend(frame);
            true
        });
        (bytes, result.err().map(|error| error.kind()))
    }

    #[test]
    fn pipe_frames_round_trip_truncation_detected() {
        let input: Vec<u8> = (0..300_000_u32).map(|number| number as u8).collect();
        let mut frames = Vec::new();
        send(&input[..], &mut frames).unwrap();
        assert_eq!(received(&frames), (input.clone(), None));
        for end in [0, 1, 4, 5, MAX_FRAME + 4, frames.len() - 4, frames.len() - 1] {
            let (bytes, error) = received(&frames[..end]);
            assert!(input.starts_with(&bytes), "{end}");
            assert_eq!(error, Some(io::ErrorKind::UnexpectedEof), "{end}");
        }
    }

    #[test]
    fn pipe_frames_unreadable_input_incomplete() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let mut frames = Vec::new();
        let error = send((&b"part"[..]).chain(Fails), &mut frames).unwrap_err();
        assert!(matches!(error, Unsent::Unreadable(error) if error.kind() == io::ErrorKind::PermissionDenied));
        assert_eq!(received(&frames), (b"part".to_vec(), Some(io::ErrorKind::UnexpectedEof)));
    }
}
