use super::*;
use crate::recovery::SentPacket;

/// A report of one symbol, among those delivered, spurious, outlived or lost.
fn report(at: usize) -> Option<Time> {
    let id = SymbolId { flow: FlowId(1), block: 0, esi: 0 };
    let sent = [SentPacket { number: 1, time: Time::ZERO, bytes: 1_000, content: Content::Symbols(id.into()) }];
    let of = |nth: usize| if nth == at { &sent[..] } else { &[] };
    let mut outgoing = Outgoing::new();
    outgoing.unanswered = Some(Time::ZERO);
    outgoing.on_report(&Report {
        delivered: of(0),
        spurious: of(1),
        outlived: of(2),
        lost: of(3),
        ..Report::empty(Time::ZERO)
    });
    outgoing.unanswered
}

#[test]
fn a_symbol_acknowledged_late_is_an_answer_too() {
    assert_eq!([0, 1, 2, 3].map(report), [None, None, None, Some(Time::ZERO)]);
}
