use super::*;
use crate::recovery::{Cause, Content};

const RTT: Duration = Duration::from_millis(50);
const TIMES: ProbeTimes =
    ProbeTimes { rtt: RTT, pto: Duration::from_millis(100), max_spacing: Duration::from_secs(1), in_flight: true };
const IPV4: u32 = 28;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// A path whose handshake passed in datagrams of `payload` bytes, to a peer that accepts symbols of 1408 bytes and 64
/// in a packet.
fn mtu(symbols: &str, payload: usize) -> PathMtu {
    let mut mtu = PathMtu::new(symbols.parse().expect("symbol sizes"), IPV4);
    (mtu.max_symbol_size, mtu.max_per_packet) = (1_408, 64);
    mtu.on_handshake(payload, IPV4);
    mtu
}

/// Challenges that carry 1, 2, 3, ...
fn counting() -> impl FnMut() -> [u8; 8] {
    let mut count = 0u64;
    move || {
        count += 1;
        count.to_be_bytes()
    }
}

fn sent(number: u64, bytes: u32) -> SentPacket {
    SentPacket { number, time: at(number), bytes, content: Content::Nothing }
}

/// Drops large packets and delivers small ones, until a downward search begins.
fn drop_large(mtu: &mut PathMtu) {
    let large = mtu.full_packet();
    let lost: Vec<SentPacket> = (0..6).map(|nth| sent(nth * 50, large)).collect();
    let delivered = [sent(260, 61), sent(270, 61)];
    assert_eq!(mtu.on_report(&Report { lost: &lost, ..Report::empty(at(300)) }, TIMES.pto), None);
    assert!(!mtu.holds_data());
    assert_eq!(mtu.on_report(&Report { delivered: &delivered, ..Report::empty(at(310)) }, TIMES.pto), None);
    assert!(mtu.holds_data());
}

/// Sends all probes of a downward search as packets from `first` on; returns their numbers and UDP payloads.
fn search_downward(mtu: &mut PathMtu, first: u64) -> Vec<(u64, usize)> {
    let mut probes = Vec::new();
    for number in first.. {
        match mtu.poll_probe(at(1_000), ProbeTimes { in_flight: false, ..TIMES }, || unreachable!("pings only")) {
            Some(MtuProbe::Ping { payload }) => {
                mtu.on_probe_sent(number, payload);
                probes.push((number, payload));
            }
            Some(MtuProbe::Challenge { .. }) => panic!("pings only"),
            None => break,
        }
    }
    probes
}

/// Reports probes of up to `passes` bytes as arrived, and the others as lost for this cause.
fn report(mtu: &mut PathMtu, probes: &[(u64, usize)], passes: usize, cause: Cause) -> Option<Shrunk> {
    let packet = |(number, payload): &(u64, usize)| sent(*number, *payload as u32 + IPV4);
    let (delivered, lost): (Vec<_>, Vec<_>) = probes.iter().partition(|(_, payload)| *payload <= passes);
    let [delivered, lost] = [delivered, lost].map(|of| of.iter().map(packet).collect::<Vec<_>>());
    mtu.on_report(&Report { cause, delivered: &delivered, lost: &lost, ..Report::empty(at(2_000)) }, TIMES.pto)
}

#[test]
fn the_largest_symbol_that_the_handshake_and_the_peer_allow_is_used() {
    assert_eq!(mtu("1408,1152", 1_451).symbol_size(), 1_408);
    assert_eq!(mtu("1408,1152", 1_450).symbol_size(), 1_152);
    assert_eq!(mtu("1408,1152", 100).max_datagram(), BASE_PLPMTU, "first messages are no smaller");
    let mut small = mtu("1408,1152", 1_451);
    small.max_symbol_size = 1_400;
    assert_eq!(small.symbol_size(), 1_152);
}

#[test]
fn control_packets_are_as_large_as_symbols_and_feedback_as_small_as_the_smallest() {
    let mtu = mtu("1408,1152", 1_451);
    assert_eq!(mtu.full_packet(), 1_408 + 43 + IPV4);
    assert_eq!(mtu.frame_room() + HEADER + TAG, 1_451);
    assert_eq!(mtu.safe_frame_room() + HEADER + TAG, 1_195);
}

#[test]
fn the_wanted_number_of_symbols_is_tried_first_and_then_halved_to() {
    let mut mtu = mtu("1408:per-packet=6", 1_451);
    let mut data = counting();
    mtu.begin_search(&mut data);
    let (mut now, mut asked) = (at(0), Vec::new());
    // Packets of up to four symbols pass.
    while let Some(due) = mtu.search_deadline(TIMES) {
        now = now.max(due);
        let Some(MtuProbe::Challenge { payload, data: challenge }) = mtu.poll_probe(now, TIMES, &mut data) else {
            continue;
        };
        let symbols = ((payload - SYMBOL_OVERHEAD) / 1_408) as u8;
        asked.push(symbols);
        if symbols <= 4 {
            assert_eq!(mtu.on_response(challenge, true, &mut data), ProbeResponse::Raised(symbols));
        }
    }
    assert_eq!(asked, [6, 6, 6, 3, 4, 5, 5, 5], "MAX_PROBES of a size that does not pass");
    assert_eq!(mtu.per_packet(), 4);
    assert_eq!(mtu.max_datagram(), mtu.payload_of(4));
    assert_eq!(mtu.probes_sent(), asked.len() as u64);
    mtu.begin_search(|| unreachable!("once for each path"));
    assert_eq!(mtu.search_deadline(TIMES), None);
}

#[test]
fn a_probe_of_the_search_waits_two_round_trips_and_25_ms_for_its_response() {
    let mut mtu = mtu("1408:per-packet=2", 1_451);
    mtu.begin_search(counting());
    assert_eq!(mtu.search_deadline(TIMES), Some(Time::ZERO), "the first at once");
    assert!(mtu.poll_probe(at(10), TIMES, counting()).is_some());
    assert_eq!(mtu.search_deadline(TIMES), Some(at(135)));
    assert_eq!(mtu.poll_probe(at(134), TIMES, counting()), None);
}

#[test]
fn a_response_from_another_address_raises_nothing() {
    let mut mtu = mtu("1408:per-packet=2", 1_451);
    mtu.begin_search(counting());
    assert!(mtu.poll_probe(at(0), TIMES, counting()).is_some());
    assert_eq!(mtu.on_response([9; 8], true, counting()), ProbeResponse::Unknown);
    assert_eq!(mtu.on_response(1u64.to_be_bytes(), false, counting()), ProbeResponse::Ignored);
    assert_eq!(mtu.per_packet(), 1);
}

#[test]
fn after_a_black_hole_all_sizes_are_tried_thrice_the_large_ones_first() {
    let mut mtu = mtu("1408,1280,1152", 1_451);
    drop_large(&mut mtu);
    let probes = search_downward(&mut mtu, 500);
    let payloads: Vec<usize> = probes.iter().map(|(_, payload)| *payload).collect();
    assert_eq!(payloads, [1_451, 1_451, 1_451, 1_323, 1_323, 1_323, 1_195, 1_195, 1_195]);
    let shrunk = Shrunk::Symbols { symbol_size: 1_280, payload: 1_323 };
    assert_eq!(report(&mut mtu, &probes, 1_400, Cause::Feedback), Some(shrunk));
    assert!(!mtu.holds_data());
}

#[test]
fn fewer_symbols_are_enough_where_packets_of_one_still_pass() {
    let mut mtu = mtu("1408:per-packet=4", 1_451);
    mtu.set_per_packet(4);
    drop_large(&mut mtu);
    let probes = search_downward(&mut mtu, 500);
    let passes = mtu.payload_of(2);
    assert_eq!(report(&mut mtu, &probes, passes, Cause::Feedback), Some(Shrunk::PerPacket(2)));
}

#[test]
fn losses_that_were_chance_change_nothing() {
    let mut mtu = mtu("1408,1152", 1_451);
    drop_large(&mut mtu);
    let probes = search_downward(&mut mtu, 500);
    assert_eq!(report(&mut mtu, &probes, 1_451, Cause::Feedback), None);
    assert!(!mtu.holds_data());
    assert_eq!(mtu.on_report(&Report::empty(at(3_000)), TIMES.pto), None);
    assert!(!mtu.holds_data(), "detection has restarted");
}

#[test]
fn a_search_whose_probes_are_all_called_lost_by_a_timeout_is_made_again_and_late_ones_count() {
    let mut mtu = mtu("1408,1152", 1_451);
    drop_large(&mut mtu);
    let first = search_downward(&mut mtu, 500);
    assert_eq!(report(&mut mtu, &first, 0, Cause::Timeout), None);
    let second = search_downward(&mut mtu, 600);
    assert_eq!(second.len(), first.len());
    // One of the first round was only late.
    let late = [sent(first[5].0, 1_195 + IPV4)];
    assert_eq!(mtu.on_report(&Report { spurious: &late, ..Report::empty(at(1_900)) }, TIMES.pto), None);
    let shrunk = Shrunk::Symbols { symbol_size: 1_152, payload: 1_195 };
    assert_eq!(report(&mut mtu, &second, 0, Cause::Feedback), Some(shrunk));
}

/// All three probes of each size, or their reports, are lost once in three times where half is lost each way.
#[test]
fn a_search_without_news_probes_every_size_again() {
    let mut mtu = mtu("1408,1280,1152", 1_451);
    drop_large(&mut mtu);
    assert_eq!(search_downward(&mut mtu, 500).len(), 9);
    let repeat = at(1_000) + TIMES.pto * 2;
    assert_eq!(mtu.search_deadline(TIMES), Some(repeat));
    let behind_a_queue = ProbeTimes { rtt: Duration::from_secs(3), pto: Duration::from_secs(9), ..TIMES };
    assert_eq!(mtu.search_deadline(behind_a_queue), Some(at(4_000)), "a round trip");
    assert_eq!(mtu.on_timer(repeat, TIMES), None);
    let again = search_downward(&mut mtu, 600);
    assert_eq!(again.iter().map(|(_, payload)| *payload).collect::<Vec<_>>(), [1_451, 1_323, 1_195]);
    // One is known to pass. A detector that waits for a gap to be closed never declares the others lost.
    assert_eq!(report(&mut mtu, &again[2..], 1_195, Cause::Feedback), None);
    assert_eq!(mtu.on_timer(at(1_199), TIMES), None);
    let shrunk = Shrunk::Symbols { symbol_size: 1_152, payload: 1_195 };
    assert_eq!(mtu.on_timer(at(1_200), TIMES), Some(shrunk));
    assert!(!mtu.holds_data());
}

#[test]
fn a_small_packet_measures_a_new_path_once() {
    let mut mtu = mtu("1408,1152", 1_451);
    mtu.measure_at_once();
    let mut poll = || mtu.poll_probe(at(0), ProbeTimes { in_flight: false, ..TIMES }, counting());
    assert_eq!([poll(), poll()], [Some(MtuProbe::Ping { payload: 0 }), None]);
}

#[test]
fn silence_after_a_large_packet_is_probed_with_a_small_one() {
    let mut mtu = mtu("1408,1152", 1_451);
    mtu.on_packet_sent(&sent(10, mtu.full_packet()));
    assert_eq!(mtu.black_hole_deadline(TIMES), Some(at(210)), "two probe timeouts");
    assert_eq!(mtu.black_hole_deadline(ProbeTimes { in_flight: false, ..TIMES }), None);
    assert_eq!(mtu.poll_probe(at(210), TIMES, counting()), Some(MtuProbe::Ping { payload: 0 }));
}

#[test]
fn another_path_is_searched_anew_and_has_its_own_headers() {
    let mut mtu = mtu("1408:per-packet=4", 1_451);
    mtu.begin_search(counting());
    assert!(mtu.poll_probe(at(0), TIMES, counting()).is_some());
    assert_eq!(mtu.on_response(1u64.to_be_bytes(), true, counting()), ProbeResponse::Raised(4));
    mtu.on_migration(48);
    assert_eq!((mtu.per_packet(), mtu.full_packet()), (1, 1_451 + 48));
    mtu.begin_search(counting());
    assert_eq!(mtu.search_deadline(TIMES), Some(Time::ZERO));
    mtu.on_restart();
    assert_eq!(mtu.search_deadline(TIMES), None);
}
