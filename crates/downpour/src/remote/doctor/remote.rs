//! The process of an examination that ssh starts.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use net::Endpoint;
use serde::{Deserialize, Serialize};

use super::machine::{self, Machine};
use super::probe::Answering;
use crate::block_on::block_on;
use crate::error::Error;
use crate::protocol::ssh::{FALL_BACK, MEASURE};
use crate::remote::asked::ticket;
use crate::remote::path_expansion::expand;
use crate::remote::request::{RemoteTask, Request};
use crate::remote::standard_io::{answer_on, refuse_on};
use crate::ticket::{Role, Ticket};

/// The immediate answer to [`MEASURE`]: one line of JSON, like the [`Machine`] that follows.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Arrivals {
    /// Number of connections with the right key.
    pub(super) arrivals: usize,
}

/// Serves the doctor at the other end of `input`, until that closes.
///
/// # Errors
/// No socket, or another system error; written to `output` too.
pub(in crate::remote) fn attend(request: Request, input: File, mut output: File) -> Result<(), Error> {
    match Attending::new(request) {
        Ok((attending, ticket)) => {
            answer_on(&mut output, &ticket.to_text()?);
            attending.run(input, output)
        }
        Err(error) => {
            refuse_on(&mut output, &error);
            Err(error)
        }
    }
}

/// Writes to the doctor. Errors are ignored: they mean that nothing reads.
fn write_text(output: &mut File, text: &str) {
    let _ = output.write_all(text.as_bytes());
}

/// Writes one line of JSON. Plain data can always be encoded.
fn write_json(output: &mut File, value: &impl Serialize) {
    if let Ok(text) = serde_json::to_string(value) {
        write_text(output, &format!("{text}\n"));
    }
}

struct Attending {
    request: Request,
    endpoint: Endpoint,
    key: [u8; 32],
    answering: Answering,
    load: Option<f64>,
    /// The directory to measure.
    directory: PathBuf,
}

impl Attending {
    fn new(request: Request) -> Result<(Self, Ticket), Error> {
        let load = machine::load();
        let directory = match &request.task {
            RemoteTask::Examine { directory: Some(directory) } => expand(&directory.to_path())?,
            _ => expand(Path::new("~"))?,
        };
        let endpoint = Endpoint::builder().options(request.engine().endpoint).bind(request.bind())?;
        let ticket = ticket(Some(&endpoint), Role::Receiver)?;
        let key = ticket.key;
        let answering = Answering::default();
        answering.begin(&endpoint, key, request.engine().profile, ());
        Ok((Self { request, endpoint, key, answering, load, directory }, ticket))
    }

    fn run(self, mut input: File, output: File) -> Result<(), Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut measuring = None;
        let falls_back = loop {
            let mut byte = [0];
            match input.read(&mut byte) {
                Ok(1) if byte == [MEASURE] && measuring.is_none() => {
                    let output = output.try_clone().map_err(Error::OutOfResources)?;
                    measuring = Some(self.measure(output, Arc::clone(&stop))?);
                }
                Ok(1) if byte == [FALL_BACK] => break true,
                Ok(1..) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // ssh has exited: the figures are not needed, and the files written for them are removed first.
                _ => break false,
            }
        };
        stop.store(!falls_back, Ordering::Relaxed);
        // A panic of the thread has been reported already.
        measuring.into_iter().for_each(|thread| drop(thread.join()));
        if falls_back { self.over_ssh(input, output) } else { Ok(()) }
    }

    /// Measures this host and reports on it.
    fn measure(&self, mut output: File, stop: Arc<AtomicBool>) -> Result<JoinHandle<()>, Error> {
        // The network has been examined by now. Where replies are lost, no probe has begun.
        let unanswered = block_on(self.endpoint.half_open()).unwrap_or_default();
        self.endpoint.stop_listening();
        write_json(&mut output, &Arrivals { arrivals: self.answering.arrivals() + unanswered });
        let (socket, load, directory) = (self.endpoint.facts(), self.load, self.directory.clone());
        let work = move || {
            let machine = Machine::measure(&directory, socket, load, &|| stop.load(Ordering::Relaxed));
            write_json(&mut output, &machine);
        };
        runtime::spawn("downpour-measure", work).map_err(Error::OutOfResources)
    }

    /// Answers probes over standard input and output until these end.
    fn over_ssh(self, input: File, output: File) -> Result<(), Error> {
        // UDP is not needed any more.
        drop(self.endpoint);
        let (until_closed, closed) = channel::<()>();
        let endpoint =
            Endpoint::builder().options(self.request.engine().endpoint).over_pipes(input.into(), output.into())?;
        self.answering.begin(&endpoint, self.key, self.request.engine().profile, until_closed);
        // Nothing is ever sent: the sender is dropped when the pipes have ended.
        let _ = runtime::recv(&closed);
        drop(endpoint);
        Ok(())
    }
}
