//! Virtual time, random numbers of a seed, and a limit of threads.

use std::collections::HashMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::Runtime;

/// The time that a waiting thread blocks before it checks again for its event: the sender of the value need not use
/// this runtime.
const STEP: Duration = Duration::from_millis(1);

/// A runtime whose clock stops while any of its threads works, and jumps to the next deadline once all of them wait.
///
/// Its threads are those that entered it, once each, and those started by them. A thread that blocks by other means
/// than this crate's functions counts as working: joining a thread that waits for the clock, the end of a scope, or
/// sending on a full channel never ends. Nothing outside is waited for: processes, sockets, the kernel's clock, tokio.
#[derive(Debug)]
pub struct Virtual {
    began: Instant,
    time_of_day: SystemTime,
    most_threads: usize,
    state: Mutex<State>,
    changed: Condvar,
}

/// The initial state of a [`Virtual`].
#[derive(Debug, Clone, Copy)]
pub struct VirtualBuilder {
    /// The seed of the random numbers.
    pub seed: u64,
    /// The time of day at the beginning.
    pub time_of_day: SystemTime,
    /// Maximum number of threads at once.
    pub most_threads: usize,
}

impl Default for VirtualBuilder {
    fn default() -> Self {
        // Any time at which no file of a test is in the future.
        Self { seed: 1, time_of_day: UNIX_EPOCH + Duration::from_secs(4_000_000_000), most_threads: usize::MAX }
    }
}

#[derive(Debug)]
struct State {
    elapsed: Duration,
    random: fastrand::Rng,
    threads: usize,
    waiting: HashMap<ThreadId, Waiting>,
    /// Increases whenever a thread has done something for which another one may wait.
    changes: u64,
}

#[derive(Debug)]
struct Waiting {
    deadline: Option<Duration>,
    /// The value of `changes` at its last unsuccessful check.
    looked_at: Option<u64>,
}

impl VirtualBuilder {
    /// Creates the runtime.
    #[must_use]
    pub fn build(self) -> Virtual {
        let state = State {
            elapsed: Duration::ZERO,
            random: fastrand::Rng::with_seed(self.seed),
            threads: 0,
            waiting: HashMap::new(),
            changes: 0,
        };
        Virtual {
            began: Instant::now(),
            time_of_day: self.time_of_day,
            most_threads: self.most_threads,
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }
}

impl Virtual {
    /// Returns the virtual time passed so far.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the wait of a thread of this runtime.
    fn resume(&self, mut state: MutexGuard<'_, State>) {
        state.waiting.remove(&thread::current().id());
        state.changes += 1;
        self.changed.notify_all();
    }
}

impl State {
    /// Moves the clock to the next deadline if nothing can happen before it; returns whether it did.
    fn advance(&mut self) -> bool {
        let is_idle = self.waiting.len() == self.threads
            && self.waiting.values().all(|waiting| waiting.looked_at == Some(self.changes));
        let next = self.waiting.values().filter_map(|waiting| waiting.deadline).min();
        let Some(next) = next.filter(|_| is_idle) else { return false };
        self.elapsed = self.elapsed.max(next);
        self.changes += 1;
        true
    }
}

impl Runtime for Virtual {
    fn now(&self) -> Instant {
        self.began + self.elapsed()
    }

    fn system_time(&self) -> SystemTime {
        self.time_of_day + self.elapsed()
    }

    fn fill(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.state().random.fill(bytes);
        Ok(())
    }

    fn wait(&self, deadline: Option<Instant>, attempt: &mut dyn FnMut(Option<Duration>) -> bool) -> bool {
        if attempt(Some(Duration::ZERO)) {
            return true;
        }
        let (id, deadline) = (thread::current().id(), deadline.map(|at| at.saturating_duration_since(self.began)));
        let mut state = self.state();
        state.changes += 1;
        state.waiting.insert(id, Waiting { deadline, looked_at: None });
        self.changed.notify_all();
        loop {
            if deadline.is_some_and(|deadline| deadline <= state.elapsed) {
                self.resume(state);
                return attempt(Some(Duration::ZERO));
            }
            let changes = state.changes;
            drop(state);
            let is_there = attempt(Some(Duration::ZERO));
            state = self.state();
            if is_there {
                self.resume(state);
                return true;
            }
            if let Some(waiting) = state.waiting.get_mut(&id) {
                waiting.looked_at = Some(changes);
            }
            if state.advance() {
                self.changed.notify_all();
            } else {
                state = self.changed.wait_timeout(state, STEP).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn on_spawn(&self) -> io::Result<()> {
        let mut state = self.state();
        if state.threads >= self.most_threads {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "no more threads"));
        }
        state.threads += 1;
        Ok(())
    }

    fn on_end(&self) {
        let mut state = self.state();
        state.threads -= 1;
        state.changes += 1;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;
    use crate::{enter, now, recv, recv_timeout, sleep, spawn, spawn_scoped};

    const HOUR: Duration = Duration::from_secs(3600);

    fn entered() -> (Arc<Virtual>, crate::Entered) {
        let runtime = Arc::new(VirtualBuilder::default().build());
        (Arc::clone(&runtime), enter(runtime))
    }

    #[test]
    fn virtual_hour_passes_at_once() {
        let (runtime, _entered) = entered();
        let (began, real) = (now(), Instant::now());
        sleep(HOUR);
        assert_eq!((now() - began, runtime.elapsed()), (HOUR, HOUR));
        assert!(real.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn sent_value_arrives_before_later_deadline() {
        let (runtime, _entered) = entered();
        let (sender, receiver) = mpsc::channel();
        let sending = spawn("sender", move || {
            for n in 0..100 {
                sleep(HOUR);
                sender.send(n).unwrap();
            }
        });
        for n in 0..100 {
            assert_eq!(recv_timeout(&receiver, HOUR + Duration::from_nanos(1)), Ok(n));
        }
        assert_eq!(recv(&receiver), Err(mpsc::RecvError));
        sending.unwrap().join().unwrap();
        assert_eq!(runtime.elapsed(), 100 * HOUR);
    }

    #[test]
    fn virtual_time_stops_while_thread_works() {
        let (runtime, _entered) = entered();
        let (sender, receiver) = mpsc::channel();
        let done = spawn("worker", move || {
            // Work takes no virtual time, however long it really takes.
            thread::sleep(50 * STEP);
            sender.send(now()).unwrap();
        });
        let began = now();
        assert_eq!(recv_timeout(&receiver, Duration::from_nanos(1)), Ok(began));
        done.unwrap().join().unwrap();
        assert_eq!(runtime.elapsed(), Duration::ZERO);
    }

    #[test]
    fn scoped_threads_sleep_concurrently() {
        let (runtime, _entered) = entered();
        let (sender, receiver) = mpsc::channel::<()>();
        thread::scope(|scope| {
            for n in 1..=5 {
                let sender = sender.clone();
                spawn_scoped(scope, "sleeper", move || {
                    sleep(n * HOUR);
                    drop(sender);
                })
                .unwrap();
            }
            drop(sender);
            assert!(recv(&receiver).is_err());
        });
        assert_eq!(runtime.elapsed(), 5 * HOUR);
    }

    #[test]
    fn spawn_fails_beyond_thread_limit() {
        let runtime = Arc::new(VirtualBuilder { most_threads: 2, ..VirtualBuilder::default() }.build());
        let _entered = enter(runtime);
        let (_sender, receiver) = mpsc::channel::<()>();
        let first = spawn("first", move || recv(&receiver).is_err());
        assert_eq!(spawn("second", || ()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(_sender);
        assert!(first.unwrap().join().unwrap());
    }

    #[test]
    fn random_numbers_follow_from_the_seed() {
        let drawn = |seed| {
            let runtime = Arc::new(VirtualBuilder { seed, ..VirtualBuilder::default() }.build());
            let _entered = enter(runtime);
            let mut bytes = [0; 16];
            crate::fill(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
