//! The trace of a connection: one enum of events, written as qlog.
//!
//! Records form a JSON text sequence (RFC 7464) in the shape of qlog 0.4 (draft-ietf-quic-qlog-main-schema); events
//! carry the `recovery:` names of qlog where it has them and `downpour:` names for symbols, blocks and flows.

use crate::flow::SymbolKind;
use crate::recovery::{ControllerState, Recovery, Report};
use crate::time::Time;
use crate::wire::{FlowId, RejectReason, SymbolRun};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// A recorded event.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TraceEvent {
    PacketSent {
        number: u64,
        bytes: u32,
        kind: &'static str,
    },
    PacketReceived {
        number: u64,
        bytes: u32,
        kind: &'static str,
    },
    /// `kind` is that of the first symbol.
    SymbolsSent {
        number: u64,
        bytes: u32,
        symbols: SymbolRun,
        kind: SymbolKind,
    },
    SymbolsReceived {
        number: u64,
        bytes: u32,
        symbols: SymbolRun,
    },
    Refused {
        reason: RejectReason,
    },
    TimerExpired {
        timer: &'static str,
    },
    UnreachableHint,
    SymbolSizeChanged {
        size: u16,
    },
    PerPacketChanged {
        count: u8,
    },
    PathChanged {
        remote: SocketAddr,
    },
    FlowOpened {
        flow: FlowId,
        length: u64,
    },
    FlowAnnounced {
        flow: FlowId,
        length: u64,
    },
    /// The peer has acknowledged all of a block.
    BlockAcknowledged {
        flow: FlowId,
        block: u32,
    },
    /// A block of an object is complete and its bytes are written.
    BlockStored {
        flow: FlowId,
        block: u32,
    },
    FlowSent {
        flow: FlowId,
    },
    FlowReceived {
        flow: FlowId,
    },
    StreamOpened {
        flow: FlowId,
    },
    StreamAnnounced {
        flow: FlowId,
    },
    StreamReset {
        flow: FlowId,
        code: u32,
    },
    StreamStopped {
        flow: FlowId,
        code: u32,
    },
    Closed,
}

/// The bytes that a connection has sent so far, and its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) symbols: Symbols,
    pub(crate) limited_by: &'static str,
}

/// Symbols of the flows sent so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbols {
    /// Source symbols sent for the first time.
    pub(crate) source: u64,
    /// Source symbols sent again, and repair symbols.
    pub(crate) beyond: u64,
    /// Blocks begun that have not been acknowledged.
    pub(crate) open_blocks: usize,
}

/// Records events, if tracing is on.
#[derive(Debug)]
pub(crate) struct Trace(Option<Box<Qlog>>);

#[derive(Debug)]
struct Qlog {
    records: Vec<u8>,
    origin: Time,
    /// Mode and phase of the controller, as recorded last.
    state: Option<(&'static str, &'static str)>,
}

impl Trace {
    pub(crate) const fn off() -> Self {
        Self(None)
    }

    pub(crate) fn qlog(now: Time) -> Self {
        let mut log = Qlog { records: Vec::new(), origin: now, state: None };
        log.push(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": "downpour",
            "trace": {
                "common_fields": { "time_format": "relative_to_epoch", "reference_time": { "clock_type": "monotonic", "epoch": "unknown" } },
                "vantage_point": { "type": "unknown" },
                "event_schemas": ["urn:ietf:params:qlog:events:recovery", "urn:downpour:qlog:events"],
            },
        }));
        Self(Some(Box::new(log)))
    }

    pub(crate) fn record(&mut self, now: Time, event: TraceEvent) {
        if let Some(log) = &mut self.0 {
            let (name, data) = describe(event);
            log.event(now, name, data);
        }
    }

    /// Records the result of feedback or a timeout, and the state of the path after it.
    pub(crate) fn report(&mut self, report: &Report<'_>, recovery: &Recovery, sending: Sending) {
        let Some(log) = &mut self.0 else { return };
        for sent in report.lost {
            log.event(report.now, "recovery:packet_lost", json!({ "header": { "packet_number": sent.number } }));
        }
        for sent in report.spurious {
            log.event(report.now, "recovery:spurious_loss", json!({ "header": { "packet_number": sent.number } }));
        }
        let rtt = recovery.rtt();
        let Sending { symbols, limited_by } = sending;
        log.event(
            report.now,
            "recovery:metrics_updated",
            json!({
                "smoothed_rtt": rtt.smoothed().as_secs_f64() * 1e3,
                "min_rtt": rtt.min().as_secs_f64() * 1e3,
                "latest_rtt": rtt.latest().as_secs_f64() * 1e3,
                "congestion_control": recovery.congestion().name(),
                "congestion_window": recovery.window(),
                "bytes_in_flight": recovery.bytes_in_flight(),
                "pacing_rate": recovery.pacing_rate().map(|rate| rate.bits_per_second()),
                "loss": recovery.loss().loss(),
                "delivered": report.delivered_bytes,
                "queue_delay": rtt.latest().saturating_sub(rtt.min()).as_secs_f64() * 1e3,
                "redundancy": symbols.beyond as f64 / symbols.source.max(1) as f64,
                "open_blocks": symbols.open_blocks,
                "limited_by": limited_by,
            }),
        );
        if let Some(state) = recovery.congestion().state() {
            log.controller(report.now, &ControllerState { constraint: recovery.constraint(), ..state });
        }
    }

    /// Moves the records made so far to the end of `out`.
    pub(crate) fn take(&mut self, out: &mut Vec<u8>) {
        if let Some(log) = &mut self.0 {
            out.append(&mut log.records);
        }
    }
}

impl Qlog {
    fn event(&mut self, now: Time, name: &str, data: Value) {
        let time = now.since(self.origin).as_secs_f64() * 1e3;
        self.push(&json!({ "time": time, "name": name, "data": data }));
    }

    /// Records a change of the controller's mode or phase, with its estimates of the path.
    fn controller(&mut self, now: Time, state: &ControllerState) {
        let name = |(mode, phase): (&str, &str)| format!("{mode} {phase}");
        let new = (state.mode, state.phase);
        if self.state == Some(new) {
            return;
        }
        let data = json!({
            "old": self.state.map(name),
            "new": name(new),
            "constraint": state.constraint.name(),
            "rate": state.rate.bits_per_second(),
            "base_rtt": state.base.as_secs_f64() * 1e3,
            "queue_delay": state.queue.as_secs_f64() * 1e3,
            "baseline_loss": state.baseline,
        });
        self.state = Some(new);
        self.event(now, "recovery:congestion_state_updated", data);
    }

    fn push(&mut self, record: &Value) {
        self.records.push(0x1e);
        self.records.extend_from_slice(record.to_string().as_bytes());
        self.records.push(b'\n');
    }
}

fn describe(event: TraceEvent) -> (&'static str, Value) {
    let packet = |number: u64, bytes: u32, kind: &str| json!({ "header": { "packet_type": kind, "packet_number": number }, "raw": { "length": bytes } });
    let symbols = |number: u64, bytes: u32, SymbolRun { first: id, count }: SymbolRun| {
        let mut data = packet(number, bytes, "symbol");
        data["symbol"] = json!({ "flow": id.flow.0, "block": id.block, "esi": id.esi, "count": count });
        data
    };
    match event {
        TraceEvent::PacketSent { number, bytes, kind } => ("downpour:packet_sent", packet(number, bytes, kind)),
        TraceEvent::PacketReceived { number, bytes, kind } => ("downpour:packet_received", packet(number, bytes, kind)),
        TraceEvent::SymbolsSent { number, bytes, symbols: run, kind } => {
            let mut data = symbols(number, bytes, run);
            data["symbol"]["kind"] = json!(kind.name());
            ("downpour:packet_sent", data)
        }
        TraceEvent::SymbolsReceived { number, bytes, symbols: run } => {
            ("downpour:packet_received", symbols(number, bytes, run))
        }
        TraceEvent::Refused { reason } => ("downpour:datagram_refused", json!({ "reason": reason.name() })),
        TraceEvent::TimerExpired { timer } => {
            ("recovery:timer_updated", json!({ "event_type": "expired", "timer_type": timer }))
        }
        TraceEvent::UnreachableHint => ("downpour:unreachable_hint", json!({})),
        TraceEvent::SymbolSizeChanged { size } => ("downpour:symbol_size_changed", json!({ "symbol_size": size })),
        TraceEvent::PerPacketChanged { count } => ("downpour:symbols_per_packet_changed", json!({ "count": count })),
        TraceEvent::PathChanged { remote } => ("downpour:path_changed", json!({ "remote": remote.to_string() })),
        TraceEvent::FlowOpened { flow, length } => {
            ("downpour:flow_opened", json!({ "flow": flow.0, "length": length }))
        }
        TraceEvent::FlowAnnounced { flow, length } => {
            ("downpour:flow_announced", json!({ "flow": flow.0, "length": length }))
        }
        TraceEvent::BlockAcknowledged { flow, block } => {
            ("downpour:block_acknowledged", json!({ "flow": flow.0, "block": block }))
        }
        TraceEvent::BlockStored { flow, block } => ("downpour:block_stored", json!({ "flow": flow.0, "block": block })),
        TraceEvent::FlowSent { flow } => ("downpour:flow_sent", json!({ "flow": flow.0 })),
        TraceEvent::FlowReceived { flow } => ("downpour:flow_received", json!({ "flow": flow.0 })),
        TraceEvent::StreamOpened { flow } => ("downpour:stream_opened", json!({ "flow": flow.0 })),
        TraceEvent::StreamAnnounced { flow } => ("downpour:stream_announced", json!({ "flow": flow.0 })),
        TraceEvent::StreamReset { flow, code } => ("downpour:stream_reset", json!({ "flow": flow.0, "code": code })),
        TraceEvent::StreamStopped { flow, code } => {
            ("downpour:stream_stopped", json!({ "flow": flow.0, "code": code }))
        }
        TraceEvent::Closed => ("downpour:connection_closed", json!({})),
    }
}
