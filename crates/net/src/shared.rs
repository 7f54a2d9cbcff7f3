//! The state of a connection shared by the program and the network thread.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use transport::FlowId;

use crate::buffers::ReadHalf;
use crate::error::NetError;
use crate::stats::Stats;

/// Maximum number of the peer's streams waiting to be accepted: nearly as many as it has at once.
pub(crate) const MAX_WAITING_STREAMS: usize = 1_000;

/// State visible to the network thread and the program.
#[derive(Debug, Default)]
pub(crate) struct Shared(Mutex<SharedState>);

#[derive(Debug, Default)]
pub(crate) struct SharedState {
    pub(crate) established: bool,
    end: Option<(NetError, Stats)>,
    /// Streams of the peer waiting to be accepted.
    pub(crate) streams: VecDeque<(FlowId, u64, Arc<ReadHalf>)>,
    /// How many streams of the peer have been answered.
    answers: u64,
    /// Tasks waiting for a change of this state.
    waiting: Vec<Waker>,
}

impl Shared {
    pub(crate) fn establish(&self) {
        self.change(|state| state.established = true);
    }

    /// Queues a stream of the peer to be accepted. Returns false, without queueing it, if too many are waiting.
    pub(crate) fn add_stream(&self, flow: FlowId, tag: u64, half: Arc<ReadHalf>) -> bool {
        if self.lock().streams.len() >= MAX_WAITING_STREAMS {
            return false;
        }
        self.change(|state| state.streams.push_back((flow, tag, half)));
        true
    }

    /// Returns a number for another answer.
    pub(crate) fn next_answer(&self) -> u64 {
        let mut state = self.lock();
        state.answers += 1;
        state.answers
    }

    pub(crate) fn has_streams(&self) -> bool {
        !self.lock().streams.is_empty()
    }

    /// Records the end of the connection; only the first call has an effect.
    pub(crate) fn end(&self, error: NetError, stats: Stats) {
        self.change(|state| {
            state.end.get_or_insert((error, stats));
        });
    }

    /// Returns how the connection ended, for a caller that gets no reply from the network thread. A thread that unwinds
    /// may drop a request before it ends the connection.
    pub(crate) fn ended(&self) -> (NetError, Stats) {
        let end = self.lock().end.clone();
        end.unwrap_or_else(|| (NetError::Panicked("the network thread"), Stats::default()))
    }

    /// Returns how the connection ended, if it has.
    pub(crate) fn end_known(&self) -> Option<NetError> {
        self.lock().end.as_ref().map(|(error, _)| error.clone())
    }

    fn change(&self, change: impl FnOnce(&mut SharedState)) {
        let mut state = self.lock();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Returns the result of `find`, or the error of the closed connection; otherwise the task is woken at the next
    /// change.
    pub(crate) fn poll<T>(
        &self,
        context: &Context<'_>,
        find: impl FnOnce(&mut SharedState) -> Option<T>,
    ) -> Poll<Result<T, (NetError, Stats)>> {
        let mut state = self.lock();
        if let Some(found) = find(&mut state) {
            return Poll::Ready(Ok(found));
        }
        if let Some(end) = &state.end {
            return Poll::Ready(Err(end.clone()));
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn every_waiter_is_woken_once_and_only_the_first_end_counts() {
        let (shared, counts) = (Shared::default(), [Arc::<Count>::default(), Arc::default()]);
        let established = |count: &Arc<Count>| {
            let waker = Waker::from(Arc::clone(count));
            shared.poll(&Context::from_waker(&waker), |state| state.established.then_some(()))
        };
        for count in &counts {
            assert!(established(count).is_pending());
            // Polled twice, as by a `select!`. In Miri no two wakers are known to be the same.
            assert!(cfg!(miri) || established(count).is_pending());
        }
        shared.end(NetError::ConnectionLost, Stats::default());
        shared.end(NetError::ClosedLocally, Stats::default());
        for count in &counts {
            assert_eq!(count.0.load(Ordering::Relaxed), 1);
            assert!(matches!(established(count), Poll::Ready(Err((NetError::ConnectionLost, _)))));
        }
        // Streams opened before the close can still be accepted.
        shared.establish();
        assert!(matches!(established(&counts[0]), Poll::Ready(Ok(()))));
    }
}
