//! A file on one QUIC stream of the crate `quinn`, sent and received by the lab's peer of that name.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::{Guard, start};
use super::stage::{Stage, remove};
use xtask::failure::Failure;
use xtask::tools;

/// The lab's program, which is both ends.
pub(super) struct Quinn {
    lab: PathBuf,
}

impl Quinn {
    pub(super) fn build() -> Result<Self, Failure> {
        if !cfg!(target_os = "linux") {
            return Err(Failure::new("quic-receive is a peer of the lab, which needs Linux"));
        }
        Ok(Self { lab: tools::build(&tools::root().join("lab"), "lab", "downpour-lab")? })
    }

    /// Sends a file over 127.0.0.1; the time from the start of the sender, with the receiver waiting, until the
    /// receiver has written the last byte.
    pub(super) fn copy(&self, stage: &Stage, source: &Path, target: &Path, bytes: u64) -> Result<Duration, Failure> {
        let certificate = stage.path("certificate");
        remove(&certificate)?;
        let mut receive = Command::new(&self.lab);
        receive.args(["peer", "quic-receive", "--listen=127.0.0.1:0", &format!("--size={bytes}"), "--certificate"]);
        receive.arg(&certificate).arg(target).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut receiver = Guard(receive.spawn().map_err(Failure::at("quic-receive"))?);
        let output = receiver.0.stdout.take().ok_or_else(|| Failure::new("quic-receive has no output"))?;
        let mut lines = BufReader::new(output).lines();
        let mut next = |field: &str| {
            let line = lines.next().and_then(Result::ok).unwrap_or_default();
            let said = serde_json::from_str::<Value>(&line).unwrap_or_default();
            said[field].as_u64().ok_or_else(|| Failure::new(format_args!("quic-receive printed no {field:?}: {line}")))
        };
        let port = next("listening")?;
        let mut send = Command::new(&self.lab);
        send.args(["peer", "quic-send", "--congestion=cubic", &format!("--to=127.0.0.1:{port}"), "--certificate"]);
        let started = Instant::now();
        let mut sender = Guard(start(send.arg(&certificate).arg(source))?);
        next("complete")?;
        let took = started.elapsed();
        for (name, process) in [("quic-send", &mut sender), ("quic-receive", &mut receiver)] {
            let status = process.0.wait().map_err(Failure::at(name))?;
            if !status.success() {
                return Err(Failure::new(format_args!("{name}: {status}")));
            }
        }
        Ok(took)
    }
}
