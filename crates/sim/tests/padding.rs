//! How fast ttp's padding follows the loss of its path (ttp §III-D, figure 21).

use downpour_sim::{Host, HostConfig};
use netsim::{Duplex, Loss, NodeId, topology};
use std::time::Duration;

/// Returns the check symbols per source symbol in each hundredth of a transfer of 20 MB over the short-slim path with
/// 10 % packet loss.
fn padding(initial: &str, seed: u64) -> Vec<f64> {
    let mut profile = systems::ttp::profile();
    profile.set("estimator.initial", initial).expect("a share");
    let [sender, receiver] = [0, 1].map(NodeId::from_index);
    let sends = HostConfig {
        connect_to: vec![receiver],
        objects: vec![20_000_000],
        closes: true,
        ..HostConfig::idle(profile.clone(), seed)
    };
    let receives = HostConfig { expects: 1, ..HostConfig::idle(profile, seed) };
    let link = format!("rate=10M,delay=29ms,queue=1MB,loss=10%,seed={seed}");
    let mut link: Duplex = link.parse().expect("a link");
    // The document's losses are those of data packets; a lost bitmap would add 512 losses.
    link.backward.loss = Loss::None;
    let (mut network, _) = topology::pair(Host::new(sender, sends), Host::new(receiver, receives), &link)
        .expect("a link that makes sense");
    let all = 20_000_000_u64.div_ceil(1_408);
    let (mut shares, mut before, mut now) = (Vec::new(), (0, 0), netsim::Time::ZERO);
    while shares.len() < 99 {
        now = now + Duration::from_millis(10);
        network.run_until(now).expect("time passes");
        let Some(stats) = network.node_mut(sender).and_then(|host| host.stats().pop()) else { continue };
        if stats.symbols.source >= all * (shares.len() as u64 + 1) / 100 {
            let (source, repair) = (stats.symbols.source - before.0, stats.symbols.repair - before.1);
            shares.push(repair as f64 / source as f64);
            before = (stats.symbols.source, stats.symbols.repair);
        }
    }
    shares
}

/// The document: settled after about the first 15 % of the transfer, with minor transients.
#[test]
fn padding_settles_within_the_first_part_of_a_transfer() {
    for seed in 1..=3 {
        let shares = padding("20%", seed);
        let settled = shares[15..].iter().sum::<f64>() / shares[15..].len() as f64;
        println!("seed {seed}, from 20 %: {shares:.3?}, on average {settled:.3}");
        let first = (shares[0] + shares[1]) / 2.0;
        assert!(first > 1.4 * settled, "seed {seed}: it begins with {first:.3}");
        // Each hundredth is 1.6 chunks.
        for (at, chunks) in shares[15..].chunks(12).enumerate() {
            let mean = chunks.iter().sum::<f64>() / chunks.len() as f64;
            assert!(
                (0.8..1.2).contains(&(mean / settled)),
                "seed {seed}: {mean:.3} in part {at} after 15 %: {shares:.3?}"
            );
        }
        // 10 % of all packets are 11 % of those that arrive; the rest is margin for random variation.
        assert!((0.15..0.35).contains(&settled), "seed {seed}: {settled}");
    }
}
