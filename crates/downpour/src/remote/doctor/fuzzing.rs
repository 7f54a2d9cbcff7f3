//! Fuzz target of the remote host's reports to a doctor.

use serde::de::DeserializeOwned;
use transport::Profile;

use super::checkup::DoctorVerdict;
use super::checkup::{Checkup, Udp};
use super::machine::Machine;
use super::meter::{ProbeCounters, Traffic};
use super::remote::Arrivals;
use super::show::MAX_LINES;
use super::verdict;

/// Bytes that IPv6 and UDP add to a datagram.
const HEADERS: usize = 48;

/// Reads the lines of `text` as reports to a doctor: any figures give a verdict, and a terminal can show it.
pub(in crate::remote) fn check_report(text: &[u8]) {
    let lines: Vec<_> = text.split(|byte| *byte == b'\n').collect();
    let arrived = read::<Arrivals>(&lines).first().is_some_and(|found| found.arrivals > 0);
    let counts = read::<ProbeCounters>(&lines);
    let congestion = Profile::auto().recovery.congestion;
    let traffic = |at: usize, to: usize| Some(Traffic::of(&congestion, counts.get(at)?, counts.get(to)?, HEADERS));
    for machine in read::<Machine>(&lines) {
        let there = machine.cleaned();
        let mut checkup = Checkup {
            host: "far".to_owned(),
            udp: Udp::Closed { port: 1, waited: 4.0, arrived, hint: None },
            over_ssh: arrived,
            min_rtt: traffic(0, 1).and_then(|traffic| traffic.loaded_rtt),
            up: traffic(0, 1),
            down: traffic(1, 0),
            local: there.clone(),
            remote: there,
            troubles: Vec::new(),
            verdict: DoctorVerdict::default(),
        };
        checkup.verdict = verdict::judge(&checkup, false, None);
        let shown = checkup.to_string();
        assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
        assert!(shown.lines().count() <= MAX_LINES, "{shown}");
        serde_json::to_string(&checkup).expect("figures are plain data");
    }
}

fn read<T: DeserializeOwned>(lines: &[&[u8]]) -> Vec<T> {
    lines.iter().filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
