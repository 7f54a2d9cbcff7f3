//! Threads for work requested by connections: coding, hashing, and reading and writing objects.

use std::collections::VecDeque;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use transport::{ConnectionHandle, FlowKey, WorkReply, WorkRequest};

use crate::error::NetError;
use crate::object::{BlockDigest, Sink, Source};

/// The source or destination of an object's bytes.
#[derive(Clone)]
pub(crate) enum Data {
    Source(Arc<dyn Source>),
    Sink(Arc<dyn Sink>),
}

/// A request and the data that it needs.
pub(crate) struct Job {
    pub(crate) connection: ConnectionHandle,
    pub(crate) request: WorkRequest,
    /// The object's tag and data; coding needs none.
    pub(crate) object: Option<(u64, Data)>,
}

/// The result of a job.
pub(crate) struct Finished {
    pub(crate) connection: ConnectionHandle,
    pub(crate) result: Result<WorkReply, NetError>,
    /// The digest of a block, if the job computed one.
    pub(crate) digest: Option<(FlowKey, BlockDigest)>,
}

impl Job {
    /// Runs the job. A panic in it ends this connection's transfer, but neither the thread nor other connections.
    fn run_guarded(self) -> Finished {
        let connection = self.connection;
        let panicked = |_| Finished { connection, result: Err(NetError::Panicked("a worker")), digest: None };
        panic::catch_unwind(AssertUnwindSafe(|| self.run())).unwrap_or_else(panicked)
    }

    fn run(self) -> Finished {
        let Self { connection, request, object } = self;
        let mut computed = None;
        let result = match (request.run_pure(), object) {
            (Ok(reply), _) => Ok(reply),
            (Err(WorkRequest::Read { flow, block, offset, length, mut buffer }), Some((_, Data::Source(source)))) => {
                if buffer.len() < length {
                    buffer.resize(length, 0);
                }
                let result = source.read(offset, &mut buffer[..length]);
                result.map(|()| WorkReply::Read { flow, block, buffer }).map_err(storage)
            }
            (Err(WorkRequest::Write { flow, block, offset, length, data }), Some((_, Data::Sink(sink)))) => {
                let result = sink.write(offset, &data.bytes()[..length]);
                result.map(|()| WorkReply::Written { flow, block }).map_err(storage)
            }
            (Err(WorkRequest::Digest { key, block, offset, length, data }), Some((tag, _))) => {
                let digest = *blake3::hash(&data.bytes()[..length]).as_bytes();
                let range = offset..offset.saturating_add(length as u64);
                computed = Some((key, BlockDigest { tag, block, range, digest }));
                Ok(WorkReply::Digested { key, block })
            }
            (Err(_), _) => Err(storage(io::Error::other("work for an unknown object"))),
        };
        Finished { connection, result, digest: computed }
    }
}

fn storage(error: io::Error) -> NetError {
    NetError::Storage(Arc::new(error))
}

struct JobQueue {
    jobs: VecDeque<Job>,
    closed: bool,
}

/// A fixed set of threads that end when this is dropped and the jobs are done.
pub(crate) struct Workers {
    shared: Arc<(Mutex<JobQueue>, Condvar)>,
}

impl Workers {
    /// Starts the threads; each passes its results to `deliver`.
    ///
    /// # Errors
    /// No thread can be spawned.
    pub(crate) fn start(deliver: impl Fn(Finished) + Clone + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new((Mutex::new(JobQueue { jobs: VecDeque::new(), closed: false }), Condvar::new()));
        let workers = Self { shared };
        // One core is left for the network thread.
        let count = thread::available_parallelism().map_or(1, |cores| (cores.get() - 1).clamp(1, 4));
        for number in 0..count {
            let (shared, deliver) = (Arc::clone(&workers.shared), deliver.clone());
            thread::Builder::new().name(format!("downpour-work-{number}")).spawn(move || {
                while let Some(job) = next(&shared) {
                    deliver(job.run_guarded());
                }
            })?;
        }
        Ok(workers)
    }

    /// Queues `jobs`, leaving the vector empty.
    pub(crate) fn submit(&self, jobs: &mut Vec<Job>) {
        let (queue, added) = &*self.shared;
        let count = jobs.len();
        queue.lock().unwrap_or_else(PoisonError::into_inner).jobs.extend(jobs.drain(..));
        match count {
            0 => {}
            1 => added.notify_one(),
            _ => added.notify_all(),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let (queue, added) = &*self.shared;
        queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        added.notify_all();
    }
}

fn next(shared: &(Mutex<JobQueue>, Condvar)) -> Option<Job> {
    let (queue, added) = shared;
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(job) = queue.jobs.pop_front() {
            return Some(job);
        }
        if queue.closed {
            return None;
        }
        queue = added.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
}
