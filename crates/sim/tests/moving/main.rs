//! Hosts that change their addresses, and an attacker that sends copies of observed packets.

#![cfg(test)]

mod scenes;

use downpour_sim::addresses::Roaming;
use downpour_sim::property::migration;
use scenes::{Scene, millis};
use transport::ConnectionError;

/// Number of seeds in every run of the tests.
const SEEDS: u64 = 1_000;

#[test]
fn seeds() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    if let Some(seed) = number("SEED") {
        println!("{:?}", migration::check(seed).expect("as it should be"));
        return;
    }
    let seeds = number("SEEDS").unwrap_or(SEEDS);
    let failures: Vec<String> = (0..seeds).filter_map(|seed| migration::check(seed).err()).collect();
    let shown = failures.iter().take(5).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} of {seeds} seeds fail:\n{shown}", failures.len());
}

/// A closing connection that answered late packets at a stranger's address; challenges that ended while packets of the
/// peer arrived from the challenged address alone, on paths that lose half of the packets (four); copies made by the
/// network (two); challenges in step with probes, which filled a queue of two packets just before each response.
#[test]
fn seeds_that_found_something() {
    for seed in [418_211, 49_284, 173_609, 222_078, 485_449, 344_233, 464_079, 624_375] {
        migration::check(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// A change costs the round trip of the challenge, half a round trip until it begins, and the same again until the path
/// is full. The sender's window is reset; CUBIC needs some ten round trips to recover.
#[test]
fn one_change_costs_a_few_round_trips() {
    for (fixed, most) in [(true, 5), (false, 20)] {
        let base = Scene::new(fixed).run();
        for side in [0, 1] {
            let mut scene = Scene::new(fixed);
            scene.until(millis(400));
            scene.roaming.move_to(side, 1, false);
            let time = scene.run();
            let round_trips = time.saturating_sub(base).as_millis() / 50;
            println!("fixed {fixed}, host {side} moves: {round_trips} round trips more than {base:?}");
            assert!(round_trips <= most, "fixed {fixed}, host {side}: {time:?} against {base:?}");
            let changes = [0, 1].map(|side| scene.tally(side).last_stats.path.changes);
            assert_eq!(changes, [side as u64, 1 - side as u64], "only the other host has a new address to prove");
        }
    }
}

#[test]
fn a_host_that_flaps_gets_everything() {
    for side in [0, 1] {
        let mut scene = Scene::new(true);
        for nth in 0..20 {
            scene.until(millis(200 + 30 * nth));
            scene.roaming.move_to(side, nth as usize % 2, true);
        }
        let time = scene.run();
        assert!(time < millis(3_000), "host {side}: {time:?}");
    }
}

#[test]
fn both_may_move_at_once_if_the_old_addresses_go_on_for_a_while() {
    let mut scene = Scene::new(true);
    scene.until(millis(400));
    scene.roaming.move_to(0, 1, true);
    scene.roaming.move_to(1, 1, true);
    scene.until(millis(700));
    assert!(scene.roaming.is_settled());
    scene.roaming.move_to(0, 1, false);
    scene.roaming.move_to(1, 1, false);
    let time = scene.run();
    assert!(time < millis(2_000), "{time:?}");
    assert_eq!([0, 1].map(|side| scene.tally(side).last_stats.path.changes), [1, 1]);
}

#[test]
fn two_that_leave_at_once_for_good_find_the_connection_dead() {
    let mut scene = Scene::new(true);
    scene.until(millis(400));
    scene.roaming.move_to(0, 1, false);
    scene.roaming.move_to(1, 1, false);
    scene.until(millis(40_000));
    for side in [0, 1] {
        assert_eq!(scene.tally(side).closed, Some(ConnectionError::TimedOut), "host {side}");
        assert_eq!(scene.tally(side).last_stats.congestion.in_flight, 0, "host {side}");
    }
}

/// The other network may only carry smaller packets: two discoveries, one after the other.
#[test]
fn a_host_may_move_to_a_path_of_smaller_packets() {
    for fixed in [true, false] {
        for side in [0, 1] {
            let mut scene = Scene::new(fixed);
            scene.until(millis(400));
            scene.roaming.move_to(side, 1, false);
            scene.roaming.change_links(|config| netsim::LinkConfig { mtu: Some(1_350), ..config }).expect("a link");
            let time = scene.run();
            println!("fixed {fixed}, host {side}: {time:?}");
            assert!(time < millis(if fixed { 2_000 } else { 4_000 }), "fixed {fixed}, host {side}: {time:?}");
            assert_eq!(scene.tally(0).last_stats.path.symbol_size, 1_152);
        }
    }
}

/// Nothing is sent, so the change is only noticed at the next keep-alive.
#[test]
fn a_change_while_idle_is_noticed_at_the_next_keep_alive() {
    for side in [0, 1] {
        let mut scene = Scene::idle();
        scene.until(millis(3_000));
        scene.roaming.move_to(side, 1, false);
        scene.until(millis(3_000 + 15_000 + 300));
        assert!(scene.roaming.is_settled(), "host {side}");
        scene.until(millis(100_000));
        assert_eq!(scene.tally(side).closed, None, "host {side}: it lives on");
    }
}

/// A receiver without data to send has moved during an outage. The sender finds it by its probes.
#[test]
fn a_receiver_that_moves_in_an_outage_is_found() {
    let mut scene = Scene::new(true);
    scene.until(millis(400));
    scene.cut(true);
    scene.until(millis(1_400));
    scene.roaming.move_to(1, 1, false);
    scene.until(millis(5_000));
    scene.cut(false);
    let time = scene.run();
    assert!(time < millis(5_000 + 1_000 + 1_500), "{time:?}");
}

#[test]
fn an_attacker_that_copies_packets_moves_no_path() {
    for (of, passes_on) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut scene = Scene::new(true);
        scene.until(millis(300));
        scene.roaming.host(of).copy_packets(Roaming::ATTACKER, 4);
        // The attacker relays received packets to the host that it copies, with the peer's source address.
        scene.roaming.pass_on(passes_on.then_some(of), true).expect("a link");
        let time = scene.run();
        let what = format!("host {of} is copied, passed on: {passes_on}");
        assert!(time < millis(1_300), "{what}: {time:?}");
        if passes_on {
            // An attacker that relays the challenge and delivers the response first becomes the path, until the next
            // packet.
            continue;
        }
        assert_eq!(scene.tally(1 - of).last_stats.path.changes, 0, "{what}");
        let (sent, got) = (scene.roaming.host(of).copied_bytes(), scene.roaming.stranger_bytes());
        assert!(got <= 3 * sent, "{what}: the attacker got {got} bytes for {sent}");
    }
}

/// Copies that overtake their originals make the receiver challenge the attacker, which relays each challenge to the
/// sender. If that restarted congestion control, the sender would stay in slow start.
#[test]
fn a_relayed_challenge_does_not_restart_the_sender() {
    let [base, time] = [None, Some(0)].map(|relays_to| {
        let mut scene = Scene::long();
        scene.until(millis(300));
        scene.roaming.host(0).copy_packets(Roaming::ATTACKER, 4);
        scene.roaming.pass_on(relays_to, false).expect("a link");
        scene.run()
    });
    println!("{time:?} against {base:?}");
    assert!(time < base.mul_f64(1.05), "{time:?} against {base:?}");
}
