//! A case: one run to be made.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Writes;

/// All inputs of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkCase {
    /// Name of the plan.
    pub experiment: String,
    /// The first sweep that asks for it.
    pub sweep: String,
    /// The link, in the text form of [`netsim::Duplex`], with its seed.
    pub link: String,
    /// The position of that link in a topology, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<PlacedLink>,
    /// The peer that moves the bytes.
    pub peer: String,
    /// The number of bytes, or of bytes in each write.
    pub size: u64,
    /// The writes instead of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Writes>,
    /// Seed of the link.
    pub seed: u64,
    /// The index among otherwise equal runs, from 0.
    pub repeat: u32,
    /// The rate of a peer with a fixed rate, in bits per second.
    #[serde(rename = "told")]
    pub fixed_rate: Option<u64>,
    /// Seconds after which a run counts as not finished.
    pub cap_seconds: f64,
    /// Whether packets pass in the large frames of the hosts' kernels.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fast: bool,
}

/// A network around the link of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacedLink {
    /// The file that describes it.
    pub file: PathBuf,
    /// BLAKE3 of that file, in hexadecimal: another network is another case.
    pub digest: String,
    /// The two nodes between which the plan's link replaces that of the file.
    pub between: [String; 2],
    /// The sending and the receiving host.
    pub pair: [String; 2],
}

impl LinkCase {
    /// Returns 16 hexadecimal digits that identify the run, independent of its plan and sweep. The cap is excluded: a
    /// run that finished is not repeated when more time is given.
    pub fn id(&self) -> String {
        let topology = self.topology.as_ref().map(|topology| (&topology.digest, &topology.between, &topology.pair));
        let content = (&self.link, topology, &self.peer, self.size, self.seed, self.repeat, self.fixed_rate);
        let content = serde_json::to_vec(&content).expect("plain values have a JSON form");
        // Results from before fast cables keep their ids.
        let content = if self.fast { [b"fast ", content.as_slice()].concat() } else { content };
        // Results from before small writes keep their ids too.
        let content = match &self.writes {
            Some(writes) => [serde_json::to_vec(writes).expect("plain values have a JSON form"), content].concat(),
            None => content,
        };
        blake3::hash(&content).to_hex()[..16].to_owned()
    }

    /// Returns one line for lists, in which `--only` searches.
    pub fn label(&self) -> String {
        let Self { experiment, sweep, peer, size, link, repeat, .. } = self;
        match &self.writes {
            Some(writes) => format!("{experiment}/{sweep} {peer} {size} B {writes}, over {link} #{repeat}"),
            None => format!("{experiment}/{sweep} {peer} {size} B over {link} #{repeat}"),
        }
    }

    /// Returns the work of the peer, such as `10 MB`.
    pub(crate) fn work(&self) -> String {
        work(self.size, self.writes.as_ref())
    }
}

/// Returns a size as a file or as writes of it: `10 MB`, `1 B each 20 ms for 60.0 s,`.
pub(crate) fn work(size: u64, writes: Option<&Writes>) -> String {
    let size = units::bytes(size);
    match writes {
        Some(writes) => format!("{size} {writes},"),
        None => size,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case() -> LinkCase {
        LinkCase {
            experiment: "e".into(),
            sweep: "s".into(),
            link: "rate=10M,seed=1".into(),
            topology: None,
            peer: "scp-cubic".into(),
            size: 1_000_000,
            writes: None,
            seed: 1,
            repeat: 0,
            fixed_rate: Some(9_500_000),
            cap_seconds: 120.0,
            fast: false,
        }
    }

    const WRITES: Writes = Writes { every_seconds: 0.02, poisson: false, seconds: 5.0, echo: false, beside: None };

    #[test]
    fn link_case_id_depends_on_the_run_only() {
        let id = case().id();
        assert_eq!(id, "b320fda708ccd69c", "ids of stored results must not change");
        for same in [
            LinkCase { experiment: "f".into(), ..case() },
            LinkCase { sweep: "t".into(), ..case() },
            LinkCase { cap_seconds: 5.0, ..case() },
        ] {
            assert_eq!(same.id(), id);
        }
        let topology = PlacedLink {
            file: "d.toml".into(),
            digest: "00".into(),
            between: ["l".into(), "r".into()],
            pair: ["a".into(), "b".into()],
        };
        for other in [
            LinkCase { link: "rate=10M,seed=2".into(), ..case() },
            LinkCase { peer: "tcp-bbr".into(), ..case() },
            LinkCase { size: 1, ..case() },
            LinkCase { repeat: 1, ..case() },
            LinkCase { fixed_rate: None, ..case() },
            LinkCase { topology: Some(topology), ..case() },
            LinkCase { writes: Some(WRITES), ..case() },
            LinkCase { writes: Some(Writes { echo: true, ..WRITES }), ..case() },
        ] {
            assert_ne!(other.id(), id, "{other:?}");
        }
        let writes = LinkCase { writes: Some(WRITES), size: 1, ..case() };
        assert_eq!(writes.label(), "e/s scp-cubic 1 B each 20 ms for 5.00 s, over rate=10M,seed=1 #0");
        assert_eq!([case().work(), writes.work()], ["1 MB", "1 B each 20 ms for 5.00 s,"]);
        assert_eq!(case().label(), "e/s scp-cubic 1000000 B over rate=10M,seed=1 #0");
    }
}
