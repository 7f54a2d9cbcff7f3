//! Signals to stop: which was received, and whether it has its default effect.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopSignal {
    /// Ctrl-C: SIGINT.
    Interrupted,
    /// SIGTERM: another process, perhaps the system, requests an exit soon.
    Terminated,
}

impl From<StopSignal> for downpour::StopReason {
    fn from(stop: StopSignal) -> Self {
        match stop {
            StopSignal::Interrupted => Self::Cancelled,
            StopSignal::Terminated => Self::Terminated,
        }
    }
}

/// One of the signals, for the whole process.
pub(crate) struct Handled {
    number: i32,
    /// Whether it has its default effect.
    pub(crate) is_default: AtomicBool,
    /// Whether it was received.
    is_received: AtomicBool,
    /// Whether it was ignored when this program started; unknown until the first query.
    is_ignored: Mutex<Option<bool>>,
}

pub(crate) static INTERRUPT: Handled = Handled::new(SIGINT);
pub(crate) static TERMINATE: Handled = Handled::new(SIGTERM);
pub(crate) static HANG_UP: Handled = Handled::new(SIGHUP);

/// Returns the signal to stop that was received, if any. Calls that block the loop, such as a write to an output without a
/// reader, must return then.
pub(crate) fn stopping() -> Option<StopSignal> {
    let is_received = |handled: &Handled| handled.is_received.load(Ordering::SeqCst);
    match (is_received(&INTERRUPT), is_received(&TERMINATE)) {
        (true, _) => Some(StopSignal::Interrupted),
        (false, true) => Some(StopSignal::Terminated),
        (false, false) => None,
    }
}

/// Ends the process as the signal to stop does by default, `None` for a hang-up. Returns only if the system refuses.
pub(crate) fn default_effect(stop: Option<StopSignal>) {
    let number = match stop {
        Some(StopSignal::Interrupted) => SIGINT,
        Some(StopSignal::Terminated) => SIGTERM,
        None => SIGHUP,
    };
    _ = emulate_default_handler(number);
}

impl Handled {
    const fn new(number: i32) -> Self {
        let (is_default, is_received) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { number, is_default, is_received, is_ignored: Mutex::new(None) }
    }

    /// Handles the signal; `None` if it was ignored when this program started, as SIGHUP is under `nohup`, and SIGINT in a
    /// background process of a shell without job control. It remains ignored then, as in ssh.
    pub(crate) fn take(&'static self) -> io::Result<Option<Signal>> {
        let mut known = self.is_ignored.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ignored = match *known {
            Some(is_ignored) => is_ignored,
            None => {
                // If the system does not report it, a hang-up is not handled.
                let is_ignored = is_ignored(self.number).unwrap_or(self.number == SIGHUP);
                if !is_ignored {
                    self.watch()?;
                }
                *known = Some(is_ignored);
                is_ignored
            }
        };
        if is_ignored { Ok(None) } else { signal(SignalKind::from_raw(self.number)).map(Some) }
    }

    /// Keeps its default effect until a loop attends to it, regardless of further handlers.
    fn watch(&'static self) -> io::Result<()> {
        flag::register_conditional_default(self.number, &self.is_default)?;
        flag::register(self.number, &self.is_received).map(drop)
    }
}

/// Returns whether this process ignores a signal; `None` if unknown.
fn is_ignored(number: i32) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    // Bit 0 is signal 1.
    Some(u64::from_str_radix(ignored.trim(), 16).ok()? >> (number - 1) & 1 == 1)
}
