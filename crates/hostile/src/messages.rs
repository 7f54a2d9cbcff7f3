//! The fuzz target of the message reader.

use store::messages::{MAX_MESSAGE, MessageReader};

/// Reads `data` as a control stream, in chunks whose size is its first byte, and checks the invariants for arbitrary
/// bytes: no panic, a message encodes to the bytes from which it was read, and at most one message is buffered.
///
/// # Panics
/// If an invariant is violated.
pub fn fuzz_messages(data: &[u8]) {
    let Some((&first, stream)) = data.split_first() else { return };
    let mut reader = MessageReader::new();
    let mut encoded = Vec::new();
    for chunk in stream.chunks(usize::from(first) + 1) {
        let mut input = chunk;
        loop {
            match reader.next(&mut input) {
                Ok(Some(message)) => message.encode(&mut encoded).expect("what was read can be written"),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.next(&mut input), Err(error), "an error stays");
                    assert!(stream.starts_with(&encoded), "messages before the error differ from their bytes");
                    return;
                }
            }
        }
        assert!(input.is_empty(), "a reader that wants more takes all");
        assert!(reader.pending() <= MAX_MESSAGE + 4);
    }
    assert!(stream.starts_with(&encoded), "messages differ from their bytes");
    assert_eq!(encoded.len() + reader.pending(), stream.len());
}
