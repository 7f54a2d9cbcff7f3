//! One host.

use std::io;
use std::net::Ipv4Addr;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// What the thread of a host is asked to do.
type Work = Box<dyn FnOnce() + Send>;

/// A host, and the thread that lives on it. What the thread starts lives there too.
#[derive(Debug)]
pub struct Host {
    name: String,
    address: Ipv4Addr,
    thread: Sender<Work>,
}

impl Host {
    /// This machine itself, as it is: no namespace, and 127.0.0.1.
    ///
    /// # Errors
    /// A system that gives no thread.
    pub fn here(name: &str) -> io::Result<Self> {
        Self::living(name, Ipv4Addr::LOCALHOST, || Ok(()))
    }

    /// A host whose thread begins with `arrive`.
    fn living(
        name: &str,
        address: Ipv4Addr,
        arrive: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let (thread, work) = channel::<Work>();
        let (arrived, arrival) = channel();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let result = arrive();
            let stays = result.is_ok();
            // Nobody waits any more: nothing is to be done either.
            let _ = arrived.send(result);
            if stays {
                work.into_iter().for_each(|work| work());
            }
        })?;
        arrival.recv().map_err(|_| io::Error::other("the thread of a host ended"))??;
        Ok(Self { name: name.to_owned(), address, thread })
    }

    /// Its name, as in `/etc/hosts` over there.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where the others reach it.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `work` on the host: sockets that it opens belong there.
    ///
    /// # Panics
    /// If the `work` of an earlier call did.
    pub fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (done, result) = channel();
        let work = Box::new(move || drop(done.send(work())));
        self.thread.send(work).expect("the thread of a host ends with it");
        result.recv().expect("work on a host does not panic")
    }

    /// Starts a command on the host. It has a process group of its own, and ends with the host at the latest.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        use std::os::unix::process::CommandExt as _;
        self.within(move || command.process_group(0).spawn())
    }
}
