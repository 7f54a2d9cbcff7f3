//! The retransmission timeout, counts in place of names, and changes on a live path.

use super::*;

fn recovery_with(timeout: &str, detection: &str) -> Recovery {
    let mut config = config("cubic");
    config.timeout = timeout.parse().unwrap();
    config.detection = detection.parse().unwrap();
    let mut recovery = Recovery::new(&config, Time::ZERO, OVERHEAD);
    recovery.set_max_packet(PACKET);
    recovery.set_rtt_from_handshake(Time::ZERO, millis(64));
    recovery
}

fn send(recovery: &mut Recovery, number: u64, time: Time) {
    recovery.on_sent(SentPacket { number, time, bytes: PACKET, content: Content::Control(number as u32) }, false);
}

fn send_symbol(recovery: &mut Recovery, number: u64, time: Time) {
    let id = crate::wire::SymbolId { flow: crate::wire::FlowId(1), block: 0, esi: number as u32 };
    recovery.on_sent(SentPacket { number, time, bytes: PACKET, content: Content::Symbols(id.into()) }, false);
}

fn numbers(packets: &[SentPacket]) -> Vec<u64> {
    packets.iter().map(|sent| sent.number).collect()
}

#[test]
fn silence_empties_the_network_and_late_arrivals_only_complete() {
    let mut recovery = recovery_with("rto:max=5s", "threshold");
    (0..3).for_each(|number| send(&mut recovery, number, at(number)));
    // From the first packet on: 64 + 4 x 32 + 2 ms.
    assert_eq!(recovery.next_timeout(), Some(at(194)));
    assert_eq!(recovery.on_timeout(at(193)), Timeout::None);
    assert_eq!(recovery.on_timeout(at(194)), Timeout::Lost);
    assert_eq!((recovery.report().cause, numbers(recovery.report().lost)), (Cause::Timeout, vec![0, 1, 2]));
    assert_eq!((recovery.bytes_in_flight(), recovery.next_timeout(), recovery.stats().timeouts), (0, None, 1));
    send(&mut recovery, 3, at(200));
    assert_eq!(recovery.next_timeout(), Some(at(200 + 388)), "doubled");
    recovery.on_feedback(at(210), AckInfo::Ranges(&ranges(&[(0, 1)])), None).unwrap();
    let report = recovery.report();
    assert_eq!((numbers(report.spurious), report.delivered.len(), report.delivered_bytes), (vec![0, 1], 0, 0));
    assert_eq!(report.rtt, Some(millis(209)), "numbers are never used twice: this is its own");
    assert_eq!(recovery.packets_in_flight(), 1);
    recovery.on_feedback(at(264), AckInfo::Ranges(&ranges(&[(3, 3), (0, 1)])), None).unwrap();
    assert_eq!((numbers(recovery.report().delivered), recovery.next_timeout()), (vec![3], None));
    let stats = recovery.stats();
    assert_eq!((stats.lost_packets, stats.spurious_packets, stats.probe_packets), (3, 2, 0));
}

#[test]
fn an_unanswered_retransmission_timer_doubles_to_its_cap() {
    let mut recovery = recovery_with("rto:max=5s", "threshold");
    let (mut now, mut waits) = (Time::ZERO, Vec::new());
    for number in 0..8 {
        send(&mut recovery, number, now);
        let due = recovery.next_timeout().unwrap();
        waits.push(due.since(now).as_millis());
        assert_eq!(recovery.on_timeout(due), Timeout::Lost);
        now = due;
    }
    assert_eq!(waits, [194, 388, 776, 1552, 3104, 5000, 5000, 5000]);
}

#[test]
fn the_old_detector_calls_everything_below_the_newest_lost_and_takes_it_back() {
    let mut recovery = recovery_with("probe", "threshold:packets=1,adapt=off");
    (0..10).for_each(|number| send(&mut recovery, number, at(number)));
    recovery.on_feedback(at(70), AckInfo::Ranges(&ranges(&[(5, 5), (0, 2)])), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [3, 4]);
    recovery.on_feedback(at(71), AckInfo::Ranges(&ranges(&[(7, 7), (3, 5), (0, 2)])), None).unwrap();
    assert_eq!((numbers(recovery.report().spurious), numbers(recovery.report().lost)), (vec![3, 4], vec![6]));
    recovery.on_feedback(at(72), AckInfo::Ranges(&ranges(&[(6, 7), (3, 5), (0, 2)])), None).unwrap();
    assert_eq!(recovery.report().spurious.len(), 1, "and learns nothing from it");
    recovery.on_feedback(at(73), AckInfo::Ranges(&ranges(&[(9, 9), (0, 7)])), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [8]);
}

#[test]
fn counts_settle_everything_up_to_the_largest() {
    let mut recovery = recovery_with("probe", "threshold");
    let count = |largest, arrived| AckInfo::Count { largest, delay_micros: 4000, arrived };
    (0..10).for_each(|number| send_symbol(&mut recovery, number, at(number)));
    recovery.on_feedback(at(70), count(5, 4), None).unwrap();
    let report = recovery.report();
    assert_eq!((numbers(report.lost), numbers(report.delivered)), (vec![0, 1], vec![2, 3, 4, 5]));
    assert_eq!(report.rtt, Some(millis(65)));
    assert_eq!(recovery.packets_in_flight(), 4);
    recovery.on_feedback(at(71), count(5, 4), None).unwrap();
    assert!(recovery.report().delivered.is_empty() && recovery.report().lost.is_empty(), "the same again");
    recovery.on_feedback(at(72), count(3, 2), None).unwrap();
    assert!(recovery.report().delivered.is_empty(), "overtaken");
    recovery.on_feedback(at(74), count(7, 7), None).unwrap();
    let report = recovery.report();
    assert_eq!((numbers(report.delivered), numbers(report.spurious)), (vec![6, 7], vec![1]), "one was late");
    assert_eq!(recovery.on_feedback(at(75), count(10, 9), None), Err(UnsentAcknowledged { number: 10 }));
    recovery.on_feedback(at(75), count(9, u64::MAX), None).unwrap();
    assert_eq!((recovery.packets_in_flight(), recovery.report().spurious.len()), (0, 1), "a lie of any size");
    recovery.on_feedback(at(76), count(9, 3), None).unwrap();
}

/// It is unknown which packet is missing: content that must arrive is sent again.
#[test]
fn counts_take_no_control_packet_for_granted() {
    let mut recovery = recovery_with("probe", "threshold");
    let count = |largest, arrived| AckInfo::Count { largest, delay_micros: 0, arrived };
    for number in 0..8 {
        if number % 3 == 2 {
            send(&mut recovery, number, at(number));
        } else {
            send_symbol(&mut recovery, number, at(number));
        }
    }
    recovery.on_feedback(at(70), count(7, 7), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [0, 2, 5]);
    assert_eq!(recovery.report().withheld, 2, "five are taken for delivered");
    assert_eq!(recovery.packets_in_flight(), 0);
    (8..12).for_each(|number| send(&mut recovery, number, at(80)));
    recovery.on_feedback(at(144), count(11, 10), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [8, 9, 10], "the largest has arrived");
    assert_eq!(numbers(recovery.report().delivered), [11]);
}

/// A counted arrival may be that of a packet declared lost before.
#[test]
fn counts_take_no_control_packet_for_granted_after_a_loss() {
    let mut recovery = recovery_with("probe", "threshold");
    let count = |largest, arrived| AckInfo::Count { largest, delay_micros: 0, arrived };
    for number in 0..6 {
        if number == 1 || number == 4 {
            send(&mut recovery, number, at(number));
        } else {
            send_symbol(&mut recovery, number, at(number));
        }
    }
    recovery.on_feedback(at(70), count(2, 1), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [0, 1]);
    recovery.on_feedback(at(71), count(2, 2), None).unwrap();
    assert_eq!(numbers(recovery.report().spurious), [0], "not the control packet, which may be the missing one");
    recovery.on_feedback(at(72), count(5, 5), None).unwrap();
    assert_eq!(numbers(recovery.report().lost), [4], "one of the three that arrived may be packet 1");
    assert_eq!(numbers(recovery.report().delivered), [3, 5]);
    recovery.on_feedback(at(73), count(5, 6), None).unwrap();
    assert!(recovery.report().spurious.is_empty(), "it may be that of packet 1 or of packet 4");
}

#[test]
fn a_live_path_takes_other_choices() {
    let mut recovery = recovery_with("probe", "threshold");
    (0..10).for_each(|number| send(&mut recovery, number, at(number)));
    recovery.on_feedback(at(70), AckInfo::Ranges(&ranges(&[(6, 6), (0, 3)])), None).unwrap();
    let (in_flight, rtt) = (recovery.bytes_in_flight(), recovery.rtt().smoothed());
    let stats = *recovery.stats();
    let mut config = config("fixed-rate:5M");
    config.detection = "duplicates".parse().unwrap();
    config.timeout = "rto:min=1s".parse().unwrap();
    config.estimator = "packets:initial=20%".parse().unwrap();
    config.rtt = "ewma:alpha=1".parse().unwrap();
    recovery.reconfigure(&config, at(71));
    assert_eq!((recovery.bytes_in_flight(), *recovery.stats()), (in_flight, stats), "nothing in flight is forgotten");
    assert_eq!((recovery.congestion().name(), recovery.loss().loss()), ("fixed-rate", 0.2));
    assert_eq!((recovery.rtt().smoothed(), recovery.rtt().has_sample()), (rtt, true));
    assert_eq!(recovery.pacing_rate(), Some(Rate::from_bits_per_second(5_000_000)));
    assert_eq!(recovery.next_timeout(), Some(at(1071)));
    recovery.on_feedback(at(80), AckInfo::Ranges(&ranges(&[(9, 9), (6, 6), (0, 3)])), None).unwrap();
    assert_eq!(recovery.rtt().smoothed(), millis(71), "the last sample is all that counts");
    assert_eq!(recovery.on_timeout(recovery.next_timeout().unwrap()), Timeout::Lost);
    assert_eq!(recovery.bytes_in_flight(), 0);
    assert_eq!(recovery.stats().delivered_packets + recovery.stats().lost_packets, 10);

    // Unchanged parts are not rebuilt.
    let window = recovery.window();
    config.estimator = "packets".parse().unwrap();
    recovery.reconfigure(&config, at(2000));
    assert_eq!((recovery.window(), recovery.congestion().name()), (window, "fixed-rate"));
}
