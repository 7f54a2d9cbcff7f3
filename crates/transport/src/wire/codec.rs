//! Encoding and decoding of frames. `docs/PROTOCOL.md` shows every layout.

use erasure::{AnyCode, BlockCode, WindowCode};

use super::bytes::{Put, Reader, length_u16};
use super::error::WireError;
use super::frame::{Announcement, Feedback, Frame, Plan, StreamAnnouncement, StreamSuccessor, Successor};
use super::ids::FlowId;
use super::limits::{MAX_CONTROL_DATA, MAX_FRAMES, MAX_REASON, MAX_STREAM_WINDOW, SHORT_K, STREAM_HEADER};

/// Frame types. 0x0c is reserved for ranges wanted.
pub(super) mod kind {
    pub(in super::super) const PADDING: u8 = 0x00;
    pub(in super::super) const PING: u8 = 0x01;
    pub(in super::super) const FEEDBACK: u8 = 0x02;
    pub(in super::super) const FEEDBACK_SEEN: u8 = 0x03;
    pub(in super::super) const CONTROL: u8 = 0x04;
    pub(in super::super) const ANNOUNCE: u8 = 0x05;
    pub(in super::super) const PLAN: u8 = 0x06;
    pub(in super::super) const RESET: u8 = 0x07;
    pub(in super::super) const STOP: u8 = 0x08;
    pub(in super::super) const CLOSE: u8 = 0x09;
    pub(in super::super) const PATH_CHALLENGE: u8 = 0x0a;
    pub(in super::super) const PATH_RESPONSE: u8 = 0x0b;
    pub(in super::super) const STREAM_READ: u8 = 0x0d;
    pub(in super::super) const ANNOUNCE_STREAM: u8 = 0x0e;
    pub(in super::super) const SUCCESSOR: u8 = 0x0f;
    pub(in super::super) const STREAM_SUCCESSOR: u8 = 0x10;
}

/// Bytes of a control frame without its data: a packet's room must exceed this to carry any.
pub const CONTROL_FRAME_HEADER: usize = 11;

impl Frame<'_> {
    /// Appends the frame. Control data above [`MAX_CONTROL_DATA`] and a reason above [`MAX_REASON`] are truncated;
    /// feedback is written whole, so where room is short use [`Feedback::encode_within`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ping => out.put_u8(kind::PING),
            Self::Feedback(feedback) => {
                feedback.encode_within(usize::MAX, out);
            }
            Self::FeedbackSeen { number, rtt_micros } => {
                out.put_u8(kind::FEEDBACK_SEEN);
                out.put_u32(*number);
                out.put_u32(*rtt_micros);
            }
            Self::Control { offset, data } => {
                debug_assert!(data.len() <= MAX_CONTROL_DATA);
                out.put_u8(kind::CONTROL);
                out.put_u64(*offset);
                put_string(data, MAX_CONTROL_DATA, out);
            }
            Self::Announce(announcement) => put_announcement(announcement, out),
            Self::Plan(plan) => put_plan(plan, out),
            Self::AnnounceStream(announcement) => {
                out.put_u8(kind::ANNOUNCE_STREAM);
                put_stream(announcement, out);
            }
            Self::StreamRead { flow, symbols } => {
                out.put_u8(kind::STREAM_READ);
                out.put_u16(flow.0);
                out.put_u64(*symbols);
            }
            Self::Reset { flow, code } => put_ending(kind::RESET, *flow, *code, out),
            Self::Stop { flow, code } => put_ending(kind::STOP, *flow, *code, out),
            Self::Successor(Successor { flow, symbol_size, object }) => {
                out.put_u8(kind::SUCCESSOR);
                out.put_u16(flow.0);
                out.put_u16(*symbol_size);
                put_object(object, out);
            }
            Self::StreamSuccessor(StreamSuccessor { flow, symbol_size, stream }) => {
                out.put_u8(kind::STREAM_SUCCESSOR);
                out.put_u16(flow.0);
                out.put_u16(*symbol_size);
                put_stream(stream, out);
            }
            Self::PathChallenge { data } => {
                out.put_u8(kind::PATH_CHALLENGE);
                out.put(data);
            }
            Self::PathResponse { data } => {
                out.put_u8(kind::PATH_RESPONSE);
                out.put(data);
            }
            Self::Close { code, reason } => {
                out.put_u8(kind::CLOSE);
                out.put_u32(*code);
                put_string(reason, MAX_REASON, out);
            }
        }
    }

    /// Returns the bytes that [`encode`](Self::encode) appends.
    pub fn encoded_len(&self) -> usize {
        match self {
            Self::Ping => 1,
            Self::Feedback(feedback) => feedback.len(),
            Self::FeedbackSeen { .. } | Self::PathChallenge { .. } | Self::PathResponse { .. } => 9,
            Self::Control { data, .. } => CONTROL_FRAME_HEADER + data.len().min(MAX_CONTROL_DATA),
            Self::Announce(_) => 28,
            Self::Plan(_) => 22,
            Self::AnnounceStream(_) => 20,
            Self::StreamRead { .. } => 11,
            Self::Reset { .. } | Self::Stop { .. } => 7,
            Self::Successor(_) => 32,
            Self::StreamSuccessor(_) => 24,
            Self::Close { reason, .. } => 7 + reason.len().min(MAX_REASON),
        }
    }

    fn decode<'a>(kind: u8, reader: &mut Reader<'a>) -> Result<Frame<'a>, WireError> {
        Ok(match kind {
            kind::PING => Frame::Ping,
            kind::FEEDBACK => Frame::Feedback(Feedback::decode(reader)?),
            kind::FEEDBACK_SEEN => Frame::FeedbackSeen { number: reader.u32()?, rtt_micros: reader.u32()? },
            kind::CONTROL => {
                let (offset, data) = (reader.u64()?, string(reader, MAX_CONTROL_DATA, "control data")?);
                if offset.checked_add(data.len() as u64).is_none() {
                    return Err(WireError::Malformed("offset of control data"));
                }
                Frame::Control { offset, data }
            }
            kind::ANNOUNCE => Frame::Announce(announcement(reader)?),
            kind::PLAN => Frame::Plan(plan(reader)?),
            kind::ANNOUNCE_STREAM => Frame::AnnounceStream(stream_announcement(reader)?),
            kind::STREAM_READ => Frame::StreamRead { flow: flow(reader)?, symbols: reader.u64()? },
            kind::RESET => Frame::Reset { flow: flow(reader)?, code: reader.u32()? },
            kind::STOP => Frame::Stop { flow: flow(reader)?, code: reader.u32()? },
            kind::SUCCESSOR => Frame::Successor(successor(reader)?),
            kind::STREAM_SUCCESSOR => Frame::StreamSuccessor(stream_successor(reader)?),
            kind::PATH_CHALLENGE => Frame::PathChallenge { data: reader.array()? },
            kind::PATH_RESPONSE => Frame::PathResponse { data: reader.array()? },
            kind::CLOSE => Frame::Close { code: reader.u32()?, reason: string(reader, MAX_REASON, "reason")? },
            unknown => return Err(WireError::UnknownFrame(unknown)),
        })
    }
}

/// The frames of a control packet, in order; padding is skipped. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
    read: usize,
}

impl<'a> Frames<'a> {
    /// Iterates over the frames of this plaintext.
    pub const fn new(plaintext: &'a [u8]) -> Self {
        Self { reader: Reader::new(plaintext), read: 0 }
    }

    /// Checks that every frame parses. A packet is rejected as a whole, so all frames are checked before the first one
    /// is handled.
    ///
    /// # Errors
    ///
    /// The first error that reading the frames would meet.
    pub fn check_all(plaintext: &'a [u8]) -> Result<(), WireError> {
        Self::new(plaintext).try_for_each(|frame| frame.map(drop))
    }

    fn read_one(&mut self, kind: u8) -> Result<Frame<'a>, WireError> {
        self.read += 1;
        if self.read > MAX_FRAMES {
            return Err(WireError::Limit("frames"));
        }
        Frame::decode(kind, &mut self.reader)
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        let kind = loop {
            match self.reader.u8() {
                Ok(kind::PADDING) => {}
                Ok(kind) => break kind,
                Err(_) => return None,
            }
        };
        let frame = self.read_one(kind);
        if frame.is_err() {
            self.reader = Reader::new(&[]);
        }
        Some(frame)
    }
}

/// Writes a 16-bit length and that many bytes, at most `limit`.
fn put_string(bytes: &[u8], limit: usize, out: &mut Vec<u8>) {
    let bytes = &bytes[..bytes.len().min(limit)];
    out.put_u16(length_u16(bytes.len()));
    out.put(bytes);
}

fn string<'a>(reader: &mut Reader<'a>, limit: usize, name: &'static str) -> Result<&'a [u8], WireError> {
    let length = usize::from(reader.u16()?);
    if length > limit {
        return Err(WireError::Limit(name));
    }
    reader.bytes(length)
}

/// Reads a flow other than the control stream.
fn flow(reader: &mut Reader<'_>) -> Result<FlowId, WireError> {
    match reader.u16()? {
        0 => Err(WireError::Malformed("flow 0")),
        flow => Ok(FlowId(flow)),
    }
}

/// Writes `k`, the code's number, and the length of its parameters: no code of this version has any.
fn put_coding(k: u32, code: AnyCode, out: &mut Vec<u8>) {
    out.put_u32(k);
    out.put_u8(code.wire());
    out.put_u8(0);
}

fn coding(reader: &mut Reader<'_>) -> Result<(u32, AnyCode), WireError> {
    let k = reader.u32()?;
    let code = AnyCode::from_wire(reader.u8()?).ok_or(WireError::Malformed("code"))?;
    if reader.u8()? != 0 {
        return Err(WireError::Malformed("parameters of the code"));
    }
    let limit = match code {
        AnyCode::Block(code) => code.max_source_symbols(),
        AnyCode::Window(WindowCode::Rlc) => MAX_STREAM_WINDOW,
    };
    if k == 0 || k > limit {
        return Err(WireError::Malformed("k"));
    }
    Ok((k, code))
}

/// Reads the coding of an object, which has blocks.
fn block_coding(reader: &mut Reader<'_>) -> Result<(u32, BlockCode), WireError> {
    match coding(reader)? {
        (k, AnyCode::Block(code)) => Ok((k, code)),
        (_, AnyCode::Window(_)) => Err(WireError::Malformed("code")),
    }
}

fn put_announcement(announcement: &Announcement, out: &mut Vec<u8>) {
    out.put_u8(kind::ANNOUNCE);
    put_object(announcement, out);
}

fn put_object(announcement: &Announcement, out: &mut Vec<u8>) {
    let Announcement { flow, length, symbol_size, symbols_per_packet, tag, plan } = *announcement;
    debug_assert!((plan.flow, plan.number, plan.first_block, plan.first_symbol) == (flow, 0, 0, 0), "plan 0");
    out.put_u16(flow.0);
    out.put_u64(length);
    out.put_u16(symbol_size);
    out.put_u8(symbols_per_packet);
    out.put_u64(tag);
    put_coding(plan.k, plan.code.into(), out);
}

fn announcement(reader: &mut Reader<'_>) -> Result<Announcement, WireError> {
    let flow = flow(reader)?;
    let (length, symbol_size, symbols_per_packet, tag) = (reader.u64()?, reader.u16()?, reader.u8()?, reader.u64()?);
    let (k, code) = block_coding(reader)?;
    if symbols_per_packet == 0 {
        return Err(WireError::Malformed("symbols per packet"));
    }
    code.check(k, usize::from(symbol_size)).map_err(|_| WireError::Malformed("symbol size"))?;
    let plan = Plan { flow, number: 0, first_block: 0, first_symbol: 0, k, code };
    Ok(Announcement { flow, length, symbol_size, symbols_per_packet, tag, plan })
}

fn put_ending(kind: u8, flow: FlowId, code: u32, out: &mut Vec<u8>) {
    out.put_u8(kind);
    out.put_u16(flow.0);
    out.put_u32(code);
}

fn put_stream(announcement: &StreamAnnouncement, out: &mut Vec<u8>) {
    let StreamAnnouncement { flow, symbol_size, tag, k, code, short_code } = *announcement;
    out.put_u16(flow.0);
    out.put_u16(symbol_size);
    out.put_u64(tag);
    put_coding(k, code, out);
    out.put_u8(short_code.wire());
}

fn stream_announcement(reader: &mut Reader<'_>) -> Result<StreamAnnouncement, WireError> {
    let (flow, symbol_size, tag) = (flow(reader)?, reader.u16()?, reader.u64()?);
    let (k, code) = coding(reader)?;
    let short_code = BlockCode::from_wire(reader.u8()?).ok_or(WireError::Malformed("code of short blocks"))?;
    let size = usize::from(symbol_size);
    let coded = code.check(k, size).and(short_code.check(k.min(SHORT_K), size));
    if matches!(code, AnyCode::Window(_)) && short_code != BlockCode::Uncoded {
        return Err(WireError::Malformed("code of short blocks"));
    }
    if size < STREAM_HEADER || coded.is_err() {
        return Err(WireError::Malformed("symbol size"));
    }
    Ok(StreamAnnouncement { flow, symbol_size, tag, k, code, short_code })
}

fn successor(reader: &mut Reader<'_>) -> Result<Successor, WireError> {
    let (flow, symbol_size, object) = (flow(reader)?, reader.u16()?, announcement(reader)?);
    check_succession(flow, symbol_size, object.flow, object.symbol_size)?;
    Ok(Successor { flow, symbol_size, object })
}

fn stream_successor(reader: &mut Reader<'_>) -> Result<StreamSuccessor, WireError> {
    let (flow, symbol_size, stream) = (flow(reader)?, reader.u16()?, stream_announcement(reader)?);
    check_succession(flow, symbol_size, stream.flow, stream.symbol_size)?;
    Ok(StreamSuccessor { flow, symbol_size, stream })
}

/// Checks that a flow may succeed the `first`, which began the same object or stream, with symbols of `symbol_size` bytes
/// after those of `first_size`.
fn check_succession(flow: FlowId, symbol_size: u16, first: FlowId, first_size: u16) -> Result<(), WireError> {
    if flow == first {
        return Err(WireError::Malformed("flow that succeeds itself"));
    }
    if symbol_size >= first_size {
        return Err(WireError::Malformed("symbol size of a successor"));
    }
    Ok(())
}

fn put_plan(plan: &Plan, out: &mut Vec<u8>) {
    out.put_u8(kind::PLAN);
    out.put_u16(plan.flow.0);
    out.put_u8(plan.number);
    out.put_u32(plan.first_block);
    out.put_u64(plan.first_symbol);
    put_coding(plan.k, plan.code.into(), out);
}

fn plan(reader: &mut Reader<'_>) -> Result<Plan, WireError> {
    let (flow, number) = (flow(reader)?, reader.u8()?);
    let (first_block, first_symbol) = (reader.u32()?, reader.u64()?);
    let (k, code) = block_coding(reader)?;
    if number == 0 {
        return Err(WireError::Malformed("plan 0 outside its announcement"));
    }
    Ok(Plan { flow, number, first_block, first_symbol, k, code })
}
