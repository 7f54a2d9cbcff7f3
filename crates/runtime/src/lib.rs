//! Time, threads and random numbers: those of the system or, in tests, virtual ones.
//!
//! Code that asks for the time, waits, starts a thread or draws random bytes uses the functions of this crate. They go
//! to the [`Runtime`] of the calling thread: [`System`] unless a test has [entered](enter) another one. A thread
//! started by [`spawn`] or [`spawn_scoped`] has the runtime of its parent.
//!
//! Asynchronous code is on tokio's clock, which tests can pause, and needs none of this.
//!
//! ```
//! use std::time::Duration;
//!
//! let before = downpour_runtime::now();
//! downpour_runtime::sleep(Duration::from_millis(2));
//! assert!(downpour_runtime::now() - before >= Duration::from_millis(2));
//! ```

mod system;
#[cfg(feature = "virtual")]
mod virtual_time;

use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvError, RecvTimeoutError, TryRecvError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant, SystemTime};

pub use system::System;
#[cfg(feature = "virtual")]
pub use virtual_time::{Virtual, VirtualBuilder};

/// A source of time, threads and random numbers.
pub trait Runtime: Send + Sync {
    /// Returns the time of a monotonic clock.
    fn now(&self) -> Instant;

    /// Returns the time of day.
    fn system_time(&self) -> SystemTime;

    /// Fills `bytes` with random numbers, fit for keys if they are the system's.
    ///
    /// # Errors
    /// The system has no random numbers.
    fn fill(&self, bytes: &mut [u8]) -> io::Result<()>;

    /// Calls `attempt` until it returns `true` or the clock has reached `deadline`, and returns its last result.
    /// `attempt` gets the time that it may block.
    fn wait(&self, deadline: Option<Instant>, attempt: &mut dyn FnMut(Option<Duration>) -> bool) -> bool;

    /// Counts a thread that is about to be started.
    ///
    /// # Errors
    /// No further thread is permitted.
    fn on_spawn(&self) -> io::Result<()>;

    /// Counts a thread of this runtime that has ended or left it.
    fn on_end(&self);
}

thread_local! {
    static CURRENT: RefCell<Arc<dyn Runtime>> = RefCell::new(Arc::new(System));
}

/// Returns the runtime of this thread.
fn current() -> Arc<dyn Runtime> {
    CURRENT.with_borrow(Arc::clone)
}

/// Makes `runtime` that of this thread until the returned value is dropped.
///
/// # Panics
/// The runtime permits no further thread.
pub fn enter(runtime: Arc<dyn Runtime>) -> Entered {
    if let Err(error) = runtime.on_spawn() {
        panic!("this thread cannot enter: {error}");
    }
    Entered::new(runtime)
}

/// Leaves a runtime when dropped.
#[must_use]
pub struct Entered(Option<Arc<dyn Runtime>>, PhantomData<*const ()>);

impl Entered {
    fn new(runtime: Arc<dyn Runtime>) -> Self {
        // Not `Send`: another thread has a runtime of its own.
        Self(Some(CURRENT.replace(runtime)), PhantomData)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.0.take() {
            CURRENT.replace(before).on_end();
        }
    }
}

/// Returns the time of a monotonic clock.
#[must_use]
pub fn now() -> Instant {
    CURRENT.with_borrow(|runtime| runtime.now())
}

/// Returns the time since `time`; zero if it is in the future.
#[must_use]
pub fn since(time: Instant) -> Duration {
    now().saturating_duration_since(time)
}

/// Returns the time of day.
#[must_use]
pub fn system_time() -> SystemTime {
    current().system_time()
}

/// Fills `bytes` with random numbers, fit for keys.
///
/// # Errors
/// The system has none.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    current().fill(bytes)
}

/// Blocks this thread for `duration`.
pub fn sleep(duration: Duration) {
    wait(Some(now() + duration), |left| {
        if let Some(left) = left {
            std::thread::sleep(left);
        }
        false
    });
}

/// Blocks this thread for `duration` of the system's time, whatever the runtime: for the kernel's clock or another
/// process, which do not use virtual time.
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

/// Calls `attempt` until it returns `true` or the clock has reached `deadline`, and returns its last result: at least
/// one attempt is made. `attempt` blocks for its event, and no longer than the given time.
pub fn wait(deadline: Option<Instant>, mut attempt: impl FnMut(Option<Duration>) -> bool) -> bool {
    current().wait(deadline, &mut attempt)
}

/// Takes the next value of a channel.
///
/// # Errors
/// All senders were dropped.
pub fn recv<T>(receiver: &Receiver<T>) -> Result<T, RecvError> {
    recv_until(receiver, None).map_err(|_| RecvError)
}

/// Takes the next value of a channel, if it arrives within `timeout`.
///
/// # Errors
/// No value arrived in time, or all senders were dropped.
pub fn recv_timeout<T>(receiver: &Receiver<T>, timeout: Duration) -> Result<T, RecvTimeoutError> {
    recv_until(receiver, now().checked_add(timeout))
}

fn recv_until<T>(receiver: &Receiver<T>, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
    let mut received = Err(RecvTimeoutError::Timeout);
    wait(deadline, |left| {
        received = match left {
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(Duration::ZERO) => receiver.try_recv().map_err(|error| match error {
                TryRecvError::Empty => RecvTimeoutError::Timeout,
                TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
            }),
            Some(left) => receiver.recv_timeout(left),
        };
        !matches!(received, Err(RecvTimeoutError::Timeout))
    });
    received
}

/// Starts a thread with this thread's runtime.
///
/// # Errors
/// The system has no room for another one.
pub fn spawn<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let inherited = inherit()?;
    Builder::new().name(name.into()).spawn(move || inherited.run(work))
}

/// Starts a thread with this thread's runtime, which ends before its scope does.
///
/// # Errors
/// The system has no room for another one.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let inherited = inherit()?;
    Builder::new().name(name.into()).spawn_scoped(scope, move || inherited.run(work))
}

/// The runtime of a thread that is about to start and is already counted.
struct Inherited(Option<Arc<dyn Runtime>>);

fn inherit() -> io::Result<Inherited> {
    let runtime = current();
    runtime.on_spawn()?;
    Ok(Inherited(Some(runtime)))
}

impl Inherited {
    fn run<T>(mut self, work: impl FnOnce() -> T) -> T {
        let _entered = self.0.take().map(Entered::new);
        work()
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        // The thread was not started.
        if let Some(runtime) = self.0.take() {
            runtime.on_end();
        }
    }
}
