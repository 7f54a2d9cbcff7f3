//! The wire's fuzz target, a plain function that takes any bytes and panics only if a rule is broken.

use super::{Datagram, Feedback, Frame, Frames, Message1, Message2, PacketHeader, Parameters, SymbolHeader};

/// Parses `data` as each of the wire's types. A parsed value is encoded again, and must read back the same.
pub fn fuzz_wire(data: &[u8]) {
    datagram(data);
    if let Ok((header, _)) = SymbolHeader::decode(data) {
        assert_eq!(header.encode(), data[..header.encode().len()], "symbol header");
    }
    if let Ok(parameters) = Parameters::decode(data) {
        let bytes = parameters.encode(0).expect("decoded values are within their limits");
        assert_eq!(Parameters::decode(&bytes), Ok(parameters), "parameters");
    }
    let parsed: Vec<_> = Frames::new(data).collect();
    assert_eq!(Frames::check_all(data).is_ok(), parsed.iter().all(Result::is_ok), "check_all agrees with reading");
    for read in parsed.into_iter().flatten() {
        frame(&read);
    }
}

fn datagram(data: &[u8]) {
    let mut bytes = Vec::new();
    match Datagram::classify(data) {
        Ok(Datagram::Message1(Message1 { noise, .. })) | Ok(Datagram::Message2(Message2 { noise, .. })) => {
            assert!(noise.len() < data.len(), "a part is shorter than the whole");
        }
        Ok(Datagram::Packet(header)) => {
            assert_eq!(PacketHeader::decode(&header.encode()), Ok(header), "packet header");
        }
        Ok(Datagram::Versions(answer)) => {
            assert!(answer.versions().count() <= super::limits::MAX_VERSIONS)
        }
        Ok(Datagram::OtherVersion { version, .. }) => assert_ne!(version, super::VERSION),
        Err(_) => return,
    }
    // Padded to the datagram's own size, it reads back as it was.
    match Datagram::classify(data) {
        Ok(Datagram::Message1(message)) => message.encode(data.len(), &mut bytes).expect("it fitted before"),
        Ok(Datagram::Message2(message)) => message.encode(data.len(), &mut bytes).expect("it fitted before"),
        _ => return,
    }
    assert_eq!(Datagram::classify(&bytes), Datagram::classify(data), "handshake message");
}

fn frame(read: &Frame<'_>) {
    let mut bytes = Vec::new();
    read.encode(&mut bytes);
    assert_eq!(bytes.len(), read.encoded_len(), "length of {read:?}");
    let mut again = Frames::new(&bytes);
    assert_eq!(again.next().as_ref(), Some(&Ok(read.clone())), "frame");
    assert_eq!(again.next(), None, "one frame");
    if let Frame::Feedback(feedback) = read {
        for budget in [0, 21, 22, 40, 64, 100, 333, 1_400] {
            feedback_within(feedback, budget);
        }
    }
}

/// Checks that after truncation to the budget, the rest is true and as new as possible.
fn feedback_within(feedback: &Feedback, budget: usize) {
    let mut bytes = Vec::new();
    let written = feedback.encode_within(budget, &mut bytes);
    assert_eq!(written, bytes.len());
    assert!(written <= budget, "{written} bytes in a budget of {budget}");
    let Some(Ok(Frame::Feedback(cut))) = Frames::new(&bytes).next() else {
        assert_eq!(written, 0, "encoded bytes can be decoded");
        return;
    };
    assert_eq!((cut.number, cut.credit), (feedback.number, feedback.credit));
    if let (Some(cut), Some(whole)) = (&cut.packets, &feedback.packets) {
        let (last, before) = cut.ranges.split_last().expect("never empty");
        let (same, rest) = whole.ranges.split_at(before.len());
        assert_eq!(before, same, "the newest ranges are whole");
        let &(low, high) = rest.first().expect("no more ranges than before");
        assert!(last.1 == high && last.0 >= low, "the oldest range may only be shorter");
    }
    for (cut, whole) in cut.flows.iter().zip(&feedback.flows) {
        assert_eq!((cut.flow, cut.done_below), (whole.flow, whole.done_below));
        assert!(whole.blocks.starts_with(&cut.blocks), "statuses are cut from the end");
    }
}
