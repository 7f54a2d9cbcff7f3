//! One run that is to be made.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Everything that one run depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkCase {
    /// Name of the plan.
    pub experiment: String,
    /// The first sweep that asks for it.
    pub sweep: String,
    /// The link, in the text form of [`netsim::Duplex`], with its seed.
    pub link: String,
    /// Where that link lies, if it is not all there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology: Option<PlacedLink>,
    /// Who moves the bytes.
    pub peer: String,
    /// How many.
    pub size: u64,
    /// Seed of the link.
    pub seed: u64,
    /// Which of the runs that are alike in all else, from 0.
    pub repeat: u32,
    /// Bits per second that a peer is told which wants to be told a rate.
    pub told: Option<u64>,
    /// Seconds after which a run that has not ended did not finish.
    pub cap_seconds: f64,
    /// Whether packets pass in the large pieces that the kernels of the hosts make of them.
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
    /// Between which two of its nodes the link of the plan takes the place of the file's.
    pub between: [String; 2],
    /// From which host to which the bytes go.
    pub pair: [String; 2],
}

impl LinkCase {
    /// 16 hexadecimal digits that are the same for the same run, whatever plan or sweep it belongs to, and other ones for any other.
    /// The cap is left out: a run that finished is not made again because more time is given.
    pub fn id(&self) -> String {
        let topology = self.topology.as_ref().map(|topology| (&topology.digest, &topology.between, &topology.pair));
        let content = (&self.link, topology, &self.peer, self.size, self.seed, self.repeat, self.told);
        let content = serde_json::to_vec(&content).expect("plain values have a JSON form");
        // Results from before there were fast cables keep their ids.
        let content = if self.fast { [b"fast ", content.as_slice()].concat() } else { content };
        blake3::hash(&content).to_hex()[..16].to_owned()
    }

    /// One line for lists, and for `--only` to look in.
    pub fn label(&self) -> String {
        let Self { experiment, sweep, peer, size, link, repeat, .. } = self;
        format!("{experiment}/{sweep} {peer} {size} B over {link} #{repeat}")
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
            seed: 1,
            repeat: 0,
            told: Some(9_500_000),
            cap_seconds: 120.0,
            fast: false,
        }
    }

    #[test]
    fn the_id_is_that_of_the_run() {
        let id = case().id();
        assert_eq!(id, "b320fda708ccd69c", "ids of results that lie on disks must not change");
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
            LinkCase { told: None, ..case() },
            LinkCase { topology: Some(topology), ..case() },
        ] {
            assert_ne!(other.id(), id, "{other:?}");
        }
        assert_eq!(case().label(), "e/s scp-cubic 1000000 B over rate=10M,seed=1 #0");
    }
}
