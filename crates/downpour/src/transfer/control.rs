//! Relays the user's decisions to the running sessions.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use transport::Rate;

use super::input::{Input, SideInput};
use super::mailbox::Mailbox;
use super::stop::StopReason;

/// Called when a transfer is stopped, for anything other than its sessions, such as a program that was started for it.
type Watcher = Box<dyn FnMut(StopReason) + Send>;

/// Kills a program that was started for a transfer.
type Terminator = Box<dyn FnMut() + Send>;

#[derive(Default)]
struct ControlState {
    stopped: Option<StopReason>,
    limit: Option<Rate>,
    next: u64,
    sessions: BTreeMap<u64, Mailbox>,
    watchers: BTreeMap<u64, Watcher>,
    /// Kills the program that currently provides the route to the peer.
    terminator: Option<Terminator>,
    abandoned: bool,
}

/// The user's control over everything that runs for one transfer.
#[derive(Default)]
pub(crate) struct TransferControl {
    state: Mutex<ControlState>,
    changed: Condvar,
}

impl fmt::Debug for TransferControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferControl").field("stopped", &self.lock().stopped).finish_non_exhaustive()
    }
}

impl TransferControl {
    pub(super) fn accept(&self) {
        self.broadcast(|| Input::Step(SideInput::Accept));
    }

    pub(super) fn refuse(&self) {
        self.broadcast(|| Input::Step(SideInput::Refuse));
    }

    /// Caps the rate of current and future sessions.
    pub(crate) fn limit(&self, limit: Option<Rate>) {
        self.lock().limit = limit;
        self.broadcast(|| Input::Step(SideInput::Limit(limit)));
    }

    /// Stops everything. The first reason is kept.
    pub(crate) fn stop(&self, why: StopReason) {
        let mut state = self.lock();
        if state.stopped.is_some() {
            return;
        }
        state.stopped = Some(why);
        state.watchers.values_mut().for_each(|watcher| watcher(why));
        drop(state);
        self.changed.notify_all();
        self.broadcast(|| Input::End(why.into()));
    }

    /// Returns the cap on the rate.
    pub(crate) fn limited_to(&self) -> Option<Rate> {
        self.lock().limit
    }

    /// Kills the program that provides the route to the peer, such as ssh, without closing the connection: this process
    /// is about to exit and must not leave it running.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        state.terminator.iter_mut().for_each(|terminate| terminate());
    }

    /// Registers the program that provides the route to the peer, replacing the previous one. `terminate` is called
    /// when the transfer is abandoned.
    pub(crate) fn set_route_process(&self, mut terminate: Terminator) {
        let mut state = self.lock();
        if state.abandoned {
            terminate();
        }
        state.terminator = Some(terminate);
    }

    /// Returns the reason for stopping, if everything must stop.
    pub(crate) fn stopped(&self) -> Option<StopReason> {
        self.lock().stopped
    }

    /// Waits for `time`, or until everything must stop.
    pub(crate) fn wait(&self, time: Duration) {
        runtime::wait(Some(runtime::now() + time), |left| {
            let state = self.lock();
            let wait =
                self.changed.wait_timeout_while(state, left.unwrap_or_default(), |state| state.stopped.is_none());
            wait.unwrap_or_else(PoisonError::into_inner).0.stopped.is_some()
        });
    }

    /// Registers a session; returns a number with which it is removed.
    pub(super) fn add(&self, session: &Mailbox) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.sessions.insert(number, session.clone());
        if let Some(why) = state.stopped {
            session.put(Input::End(why.into()));
        }
        if state.limit.is_some() {
            session.put(Input::Step(SideInput::Limit(state.limit)));
        }
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.lock().sessions.remove(&number);
    }

    /// Calls `watcher` when everything must stop, or at once if it already must, until [`TransferControl::unwatch`] is
    /// called with the returned number.
    pub(crate) fn watch(&self, mut watcher: Watcher) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        match state.stopped {
            Some(why) => watcher(why),
            None => drop(state.watchers.insert(number, watcher)),
        }
        number
    }

    pub(crate) fn unwatch(&self, number: u64) {
        self.lock().watchers.remove(&number);
    }

    fn broadcast(&self, input: impl Fn() -> Input) {
        for session in self.lock().sessions.values() {
            session.put(input());
        }
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
