//! The choices of the form for plans.

use std::thread;

use serde::Serialize;
use serde_json::{Value, json};

use super::holder::Locks;
use super::is_running;
use crate::peers::{self, Presence, Programs};
use crate::web::experiment_index::{Experiment, ExperimentIndex};

/// A simulated system: its series in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Simulated {
    name: &'static str,
    about: &'static str,
    /// The values that its series sets, by paths below the flow.
    set: &'static [(&'static str, &'static str)],
    /// Whether it needs a share of the path's rate.
    #[serde(rename = "needsRate")]
    needs_rate: bool,
}

/// The systems in the order of the form. Two have a fixed rate.
const SIMULATED: [Simulated; 8] = [
    Simulated { name: "auto", about: "finds its rate itself", set: &[], needs_rate: false },
    Simulated {
        name: "auto, fixed rate",
        about: "with a fixed rate",
        set: &[("congestion", "told:1M")],
        needs_rate: true,
    },
    Simulated { name: "arq", about: "the selective repeat of arq", set: &[("profile", "arq")], needs_rate: false },
    Simulated {
        name: "lt-tcp",
        about: "LT-TCP; governed by marks: give the link some",
        set: &[("profile", "lt-tcp")],
        needs_rate: false,
    },
    Simulated {
        name: "tornado-transfer",
        about: "Tornado Transfer",
        set: &[("profile", "tornado-transfer")],
        needs_rate: false,
    },
    Simulated { name: "rc-udp", about: "RC-UDP, with a fixed rate", set: &[("profile", "rc-udp")], needs_rate: true },
    Simulated { name: "ttp", about: "TTP", set: &[("profile", "ttp")], needs_rate: false },
    Simulated {
        name: "linux-tcp",
        about: "Linux's TCP with CUBIC, as modelled",
        set: &[("profile", "linux-tcp")],
        needs_rate: false,
    },
];

/// Returns all choices of the form.
pub(super) fn all(experiments: &ExperimentIndex, programs: &Programs) -> Value {
    let peer = |peer: &'static peers::Peer| {
        let (missing, install) = match peer.presence(programs) {
            Presence::Present => (None, None),
            Presence::Absent { missing, install } => (Some(missing), Some(install)),
        };
        let clock = peer.clock();
        json!({
            "name": peer.name(), "missing": missing, "install": install, "needsRate": peer.needs_fixed_rate(),
            "encrypted": peer.is_encrypted(), "starts": clock.starts, "ends": clock.ends,
        })
    };
    let locks = Locks::now();
    let item = |experiment: &Experiment| json!({ "name": experiment.name, "hasResults": experiment.has_results, "isRunning": is_running(&locks, experiment) });
    let list: Vec<Value> = experiments.list().iter().map(item).collect();
    json!({
        "simulated": SIMULATED, "peers": peers::all().map(peer).collect::<Vec<_>>(), "topologies": experiments.topologies(), "experiments": list,
        "cores": thread::available_parallelism().map_or(1, std::num::NonZero::get),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::testing::plans;

    /// The form writes series from this table: each must give a valid plan, also if the rate is varied.
    #[test]
    fn every_simulated_system_makes_a_plan() {
        for Simulated { name, set, needs_rate, .. } in SIMULATED {
            let share = needs_rate.then_some(("told", "97%"));
            let set: Vec<String> =
                set.iter().copied().chain(share).map(|(key, value)| format!("\"file.{key}\" = \"{value}\"")).collect();
            let text = format!(
                "name = \"x\"\ntitle = \"x\"\nlink = \"rate=10M,delay=5ms,queue=1bdp\"\ncap = \"60s\"\n[[flow]]\nname = \"file\"\n\
                 profile = \"auto\"\nsize = \"100KB\"\n[[series]]\nname = \"{name}\"\nset = {{ {} }}\n[[sweep]]\nname = \"rate\"\n\
                 vary = \"link.rate\"\nvalues = [\"5M\", \"20M\"]\n",
                set.join(", ")
            );
            plans::tests::alone(&text).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        }
    }
}
