//! Reliable delivery apart from the data: the program's control stream, and frames that are resent until they arrive.

use crate::flow::{BeyondCredit, ControlReceiver, ControlSender};
use crate::recovery::{Content, Report};
use crate::wire::{CONTROL_FRAME_HEADER, FlowId, Frame};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Most frames that one probe repeats: about a packet of them.
const REPEATED_AT_MOST: usize = 32;

/// Packets in flight of which a probe repeats frames. With more, in an outage, frames move from the oldest ones to the
/// probe, so that no more copies of them are kept.
const PACKETS_REPEATED: usize = 64;

/// A frame that has to arrive. It is encoded each time it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReliableFrame {
    /// Only asks for feedback; not resent.
    Ping,
    /// Announces the flow with this id in its packets.
    Announce(FlowId),
    /// A further plan of that flow.
    Plan(FlowId, u8),
    /// Resets a local flow.
    Reset(FlowId),
    /// Stops a stream of the peer, for this reason.
    Stop(FlowId, u32),
    /// How much of a peer's stream has been read.
    StreamRead(FlowId, u64),
    /// A range of the control stream.
    Control(Range<u64>),
}

/// The control stream, in both directions, and the frames that have to arrive.
#[derive(Debug)]
pub(super) struct ControlStream {
    sender: ControlSender,
    receiver: ControlReceiver,
    pending: VecDeque<ReliableFrame>,
    /// Extra copies of announcements: one with each of the next batches, so that a single loss does not leave symbols
    /// without their flow.
    echoes: VecDeque<ReliableFrame>,
    /// The content of each packet in flight, under the packet's key: the frames to resend if it is lost.
    in_flight: BTreeMap<u32, Vec<ReliableFrame>>,
    next_key: u32,
}

impl ControlStream {
    /// Creates the state; the peer may have `room` unread bytes of its control stream outstanding.
    pub(super) fn new(room: u64) -> Self {
        Self {
            sender: ControlSender::default(),
            receiver: ControlReceiver::new(room),
            pending: VecDeque::new(),
            echoes: VecDeque::new(),
            in_flight: BTreeMap::new(),
            next_key: 0,
        }
    }

    /// Handles the peer's credit: it accepts this side's control stream up to this offset.
    pub(super) fn grant(&mut self, limit: u64) {
        self.sender.grant(limit);
    }

    /// Appends to this side's control stream.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.sender.write(bytes);
    }

    /// Returns the bytes of this side's control stream that the peer is not known to have.
    pub(super) fn backlog(&self) -> usize {
        self.sender.backlog()
    }

    /// Handles bytes of the peer's control stream; returns whether more can be read now.
    ///
    /// # Errors
    /// [`BeyondCredit`] when they exceed the granted limit.
    pub(super) fn on_data(&mut self, offset: u64, data: &[u8]) -> Result<bool, BeyondCredit> {
        self.receiver.on_data(offset, data)
    }

    /// Appends received bytes of the peer's control stream to `out`; returns how many.
    pub(super) fn read(&mut self, out: &mut Vec<u8>) -> usize {
        self.receiver.read(out)
    }

    /// Returns the offset up to which the peer may send its control stream.
    pub(super) const fn granted(&self) -> u64 {
        self.receiver.granted()
    }

    /// Queues a frame.
    pub(super) fn push(&mut self, frame: ReliableFrame) {
        self.pending.push_back(frame);
    }

    /// Sends a frame now, and twice more with the data that follows.
    pub(super) fn push_thrice(&mut self, frame: ReliableFrame) {
        self.echoes.extend([frame.clone(), frame.clone()]);
        self.pending.push_back(frame);
    }

    /// Notes that a batch of data was sent: the next echo may follow it.
    pub(super) fn on_batch(&mut self) {
        self.pending.extend(self.echoes.pop_front());
    }

    /// Returns whether something can be sent now.
    pub(super) fn is_ready(&self) -> bool {
        !self.pending.is_empty() || self.sender.is_ready()
    }

    /// Returns whether nothing but PINGs can be sent now.
    pub(super) fn has_only_pings(&self) -> bool {
        !self.sender.is_ready() && self.pending.iter().all(|frame| *frame == ReliableFrame::Ping)
    }

    /// Sends the last bytes a second time, since no data follows that would reveal their loss.
    pub(super) fn double(&mut self) {
        self.sender.double();
    }

    /// Queues everything in flight once more, unless it is queued already, with the oldest `most` bytes of the control
    /// stream, for a probe. A receiver that lacks an announcement or a plan can do nothing with symbols, and drops,
    /// unacknowledged, those beyond its buffer.
    pub(super) fn repeat(&mut self, most: usize) {
        let Self { in_flight, pending, .. } = self;
        let moves = in_flight.len() > PACKETS_REPEATED;
        for frames in in_flight.values_mut().take(PACKETS_REPEATED) {
            frames.retain(|frame| {
                let is_repeated = !matches!(frame, ReliableFrame::Control(_)) && pending.len() < REPEATED_AT_MOST;
                if is_repeated && !pending.contains(frame) {
                    pending.push_back(frame.clone());
                }
                !(is_repeated && moves)
            });
        }
        if moves {
            in_flight.retain(|_, frames| !frames.is_empty());
        }
        self.sender.repeat_oldest(most);
    }

    /// Fills a packet's plaintext with pending frames, at most `most` bytes in all. `flow_frame` makes the frames about
    /// local flows; obsolete ones are dropped. Returns the key of the packet's content; `None` if nothing of it has to
    /// be resent.
    pub(super) fn take_frames(
        &mut self,
        most: usize,
        out: &mut Vec<u8>,
        flow_frame: impl Fn(&ReliableFrame) -> Option<Frame<'static>>,
    ) -> Option<u32> {
        let mut taken = Vec::new();
        while let Some(pending) = self.pending.pop_front() {
            let frame = match pending {
                ReliableFrame::Ping => Some(Frame::Ping),
                ReliableFrame::Stop(flow, code) => Some(Frame::Stop { flow, code }),
                ReliableFrame::StreamRead(flow, symbols) => Some(Frame::StreamRead { flow, symbols }),
                _ => flow_frame(&pending),
            };
            let Some(frame) = frame else { continue };
            if out.len() + frame.encoded_len() > most {
                self.pending.push_front(pending);
                return self.dispatch(taken);
            }
            frame.encode(out);
            if pending != ReliableFrame::Ping {
                taken.push(pending);
            }
        }
        let mut data = Vec::new();
        while let Some(room) = most.checked_sub(out.len() + CONTROL_FRAME_HEADER).filter(|room| *room > 0) {
            data.clear();
            let Some(range) = self.sender.take(room, &mut data) else {
                break;
            };
            Frame::Control { offset: range.start, data: &data }.encode(out);
            taken.push(ReliableFrame::Control(range));
        }
        self.dispatch(taken)
    }

    /// Keeps a packet's content until its outcome is known.
    fn dispatch(&mut self, frames: Vec<ReliableFrame>) -> Option<u32> {
        if frames.is_empty() {
            return None;
        }
        let key = self.next_key;
        self.next_key = key.wrapping_add(1);
        self.in_flight.insert(key, frames);
        Some(key)
    }

    /// Handles the outcome of packets. Passes frames that have arrived to `on_delivered`.
    pub(super) fn on_report(&mut self, report: &Report<'_>, mut on_delivered: impl FnMut(&ReliableFrame)) {
        for sent in report.delivered {
            let Content::Control(key) = sent.content else { continue };
            for frame in self.settle(key) {
                match frame {
                    ReliableFrame::Control(range) => self.sender.on_delivered(range),
                    frame => on_delivered(&frame),
                }
            }
        }
        // Those that arrive late are already in flight again, under another key.
        for sent in report.lost {
            let Content::Control(key) = sent.content else { continue };
            for frame in self.settle(key) {
                match frame {
                    ReliableFrame::Control(range) => self.sender.on_lost(range),
                    // Probes may have sent several copies.
                    frame if self.pending.contains(&frame) => {}
                    frame => self.pending.push_back(frame),
                }
            }
        }
    }

    /// Removes and returns the content of a packet with a known outcome.
    fn settle(&mut self, key: u32) -> Vec<ReliableFrame> {
        self.in_flight.remove(&key).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::SentPacket;
    use crate::time::Time;
    use crate::wire::Frames;

    const PLAN: ReliableFrame = ReliableFrame::Plan(FlowId(1), 7);

    fn control() -> ControlStream {
        let mut control = ControlStream::new(1_000);
        control.grant(1_000);
        control
    }

    /// Returns the frames of the next packet, of at most `most` bytes; those about flow 2 are obsolete.
    fn take(control: &mut ControlStream, most: usize) -> (Option<u32>, Vec<String>) {
        let mut out = Vec::new();
        let key = control.take_frames(most, &mut out, |frame| match frame {
            ReliableFrame::Reset(FlowId(2)) => None,
            ReliableFrame::Reset(flow) => Some(Frame::Reset { flow: *flow, code: 5 }),
            other => panic!("{other:?}"),
        });
        (key, Frames::new(&out).map(|frame| format!("{:?}", frame.expect("it is whole"))).collect())
    }

    fn report(control: &mut ControlStream, delivered: &[u32], lost: &[u32]) -> Vec<ReliableFrame> {
        let sent = |key: &u32| SentPacket { number: 1, time: Time::ZERO, bytes: 100, content: Content::Control(*key) };
        let (delivered, lost): (Vec<SentPacket>, Vec<SentPacket>) =
            (delivered.iter().map(sent).collect(), lost.iter().map(sent).collect());
        let mut heard = Vec::new();
        let report = Report { delivered: &delivered, lost: &lost, ..Report::empty(Time::ZERO) };
        control.on_report(&report, |frame| heard.push(frame.clone()));
        heard
    }

    #[test]
    fn frames_go_out_until_they_arrive() {
        let mut control = control();
        control.push(ReliableFrame::Ping);
        control.push(ReliableFrame::Reset(FlowId(2)));
        control.push(ReliableFrame::Reset(FlowId(1)));
        control.write(b"bytes");
        let (key, frames) = take(&mut control, 1_000);
        assert_eq!(frames.len(), 3, "{frames:?}");
        assert!(!control.is_ready());
        let lost = key.expect("it carries some");
        assert_eq!(report(&mut control, &[], &[lost]), []);
        let (key, again) = take(&mut control, 1_000);
        assert_eq!(again, frames[1..], "a ping is not worth a second one");
        assert_eq!(report(&mut control, &[key.expect("it carries some")], &[]), [ReliableFrame::Reset(FlowId(1))]);
        assert_eq!((control.is_ready(), control.backlog()), (false, 0));
        assert_eq!(take(&mut control, 1_000), (None, vec![]));
    }

    #[test]
    fn frames_that_do_not_fit_wait_in_order() {
        let mut control = control();
        control.push(ReliableFrame::Reset(FlowId(1)));
        control.push(ReliableFrame::Stop(FlowId(3), 9));
        let length = Frame::Reset { flow: FlowId(1), code: 5 }.encoded_len();
        assert_eq!(take(&mut control, length).1.len(), 1);
        assert_eq!(take(&mut control, length - 1).0, None);
        assert_eq!(take(&mut control, 100).1, ["Stop { flow: FlowId(3), code: 9 }"]);
    }

    #[test]
    fn echoes_follow_batches_of_data() {
        let mut control = control();
        control.push_thrice(PLAN);
        let pending = |control: &mut ControlStream| control.pending.drain(..).collect::<Vec<_>>();
        assert_eq!(pending(&mut control), [PLAN]);
        for expected in [vec![PLAN], vec![PLAN], vec![]] {
            control.on_batch();
            assert_eq!(pending(&mut control), expected);
        }
    }

    #[test]
    fn a_probe_repeats_frames_in_flight_once() {
        let mut control = control();
        control.push(ReliableFrame::Ping);
        control.push(ReliableFrame::Reset(FlowId(1)));
        control.write(b"bytes");
        assert_eq!(take(&mut control, 1_000).1.len(), 3);
        control.repeat(2);
        control.repeat(2);
        let (_, frames) = take(&mut control, 1_000);
        assert_eq!(frames, ["Reset { flow: FlowId(1), code: 5 }", "Control { offset: 0, data: [98, 121] }"]);
        (1..=100).for_each(|flow| control.push(ReliableFrame::StreamRead(FlowId(flow), 1)));
        take(&mut control, 10_000);
        control.repeat(0);
        assert_eq!(control.pending.len(), REPEATED_AT_MOST);
    }

    /// In an outage of a day: 100,000 probes, each a PING and the frames in flight when it began.
    #[test]
    fn probe_copies_and_searches_are_bounded() {
        let mut control = control();
        for _ in 0..100_000 {
            control.push(ReliableFrame::Ping);
            assert_eq!(take(&mut control, 1_000), (None, vec!["Ping".to_owned()]));
        }
        assert_eq!(control.in_flight.len(), 0);
        (1..=20).map(|flow| ReliableFrame::Stop(FlowId(flow), 0)).for_each(|frame| control.push(frame));
        let mut keys: Vec<u32> = take(&mut control, 10_000).0.into_iter().collect();
        for _ in 0..1_000 {
            control.repeat(0);
            let (key, frames) = take(&mut control, 10_000);
            assert_eq!(frames.len(), 20);
            keys.extend(key);
        }
        assert!(control.in_flight.len() <= PACKETS_REPEATED + 1, "{}", control.in_flight.len());
        // Then all of them are lost at once.
        assert_eq!(report(&mut control, &[], &keys), []);
        assert_eq!(take(&mut control, 10_000).1.len(), 20, "each is sent once");
    }
}
