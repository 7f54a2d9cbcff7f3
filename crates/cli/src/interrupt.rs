//! The signals that the program handles: Ctrl-C, SIGTERM, a hang-up of the terminal, and those that ask how far it is.
//!
//! A signal to stop has its default effect, the end of the process, unless a loop attends to it. So nothing that blocks before a
//! loop or after it can swallow one: not a read of stdin or of a pipe, not an open that waits for its other side.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::SIGUSR1;
use signal_hook::flag;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::stop_signal::{HANG_UP, INTERRUPT, StopSignal, TERMINATE};
use crate::{announce, background};

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalEvent {
    /// A signal to stop.
    Stop(StopSignal),
    /// SIGHUP: the terminal is gone, or the user has logged out. Transfers that have begun continue.
    HangUp,
    /// SIGUSR1, or SIGINFO (Ctrl-T) where there is one: the user asks how far it is.
    Ask,
}

/// The signals, to which a loop may [attend](Self::attend).
#[derive(Debug)]
pub(crate) struct SignalHandlers {
    /// `None` for those that are ignored.
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    /// `None` also if SIGHUP is not handled.
    hang_up: Option<Signal>,
    ask: Questions,
}

impl SignalHandlers {
    /// Takes all signals.
    pub(crate) fn install() -> io::Result<Self> {
        Self::with(HANG_UP.take()?)
    }

    /// Takes the signals to stop. SIGHUP keeps its effect, ending the process as well as the one that feeds it, unless
    /// the caller has set it to be ignored.
    pub(crate) fn without_hang_up() -> io::Result<Self> {
        Self::with(None)
    }

    fn with(hang_up: Option<Signal>) -> io::Result<Self> {
        Ok(Self { interrupt: INTERRUPT.take()?, terminate: TERMINATE.take()?, hang_up, ask: Questions::install()? })
    }

    /// Attends to the signals, as long as the result exists: they do not end the process by themselves, and every wait
    /// must also wait for them. Nothing must block meanwhile.
    pub(crate) fn attend(&mut self) -> Attention<'_> {
        let attention = Attention { interrupts: self, put_back: None };
        attention.set_default(false);
        attention
    }
}

/// The signals, which are attended to.
#[derive(Debug)]
pub(crate) struct Attention<'a> {
    interrupts: &'a mut SignalHandlers,
    /// Heard by one loop and left to the next.
    put_back: Option<SignalEvent>,
}

impl Attention<'_> {
    fn set_default(&self, is_default: bool) {
        INTERRUPT.is_default.store(is_default, Ordering::SeqCst);
        TERMINATE.is_default.store(is_default, Ordering::SeqCst);
        if self.interrupts.hang_up.is_some() {
            HANG_UP.is_default.store(is_default, Ordering::SeqCst);
        }
    }

    /// Leaves a signal to the loop that waits next.
    pub(crate) const fn put_back(&mut self, heard: SignalEvent) {
        self.put_back = Some(heard);
    }

    /// Waits for the next signal.
    pub(crate) async fn heard(&mut self) -> SignalEvent {
        if let Some(heard) = self.put_back.take() {
            return heard;
        }
        let SignalHandlers { interrupt, terminate, hang_up, ask } = &mut *self.interrupts;
        // A stream ends only when the runtime shuts down; no task waits then.
        tokio::select! {
            Some(()) = next(interrupt) => SignalEvent::Stop(StopSignal::Interrupted),
            Some(()) = next(terminate) => SignalEvent::Stop(StopSignal::Terminated),
            Some(()) = next(hang_up) => SignalEvent::HangUp,
            Some(()) = ask.next() => SignalEvent::Ask,
            else => std::future::pending().await,
        }
    }

    /// Same as [`Self::next`]; in a background process that nobody waits for any more, that stops it as well.
    pub(crate) async fn next_in_background(&mut self, is_in_background: bool) -> StopSignal {
        tokio::select! {
            stop = self.next() => stop,
            () = background::abandoned(), if is_in_background => StopSignal::Terminated,
        }
    }

    /// Waits for the next signal to stop; `None` for a hang-up.
    pub(crate) async fn next_or_hang_up(&mut self) -> Option<StopSignal> {
        loop {
            match self.heard().await {
                SignalEvent::Stop(stop) => return Some(stop),
                SignalEvent::HangUp => return None,
                SignalEvent::Ask => announce::print_progress(),
            }
        }
    }

    /// Waits for the next signal to stop.
    pub(crate) async fn next(&mut self) -> StopSignal {
        loop {
            match self.heard().await {
                SignalEvent::Stop(stop) => return stop,
                SignalEvent::HangUp => {}
                SignalEvent::Ask => announce::print_progress(),
            }
        }
    }
}

impl Drop for Attention<'_> {
    fn drop(&mut self) {
        self.set_default(true);
    }
}

async fn next(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

/// Keeps SIGUSR1, which asks how far a transfer is, from ending the process before a loop answers it, as while a list of names
/// is read from a pipe; SIGINFO ends nothing by default. Failure is ignored: no known system refuses the call.
pub(crate) fn ignore_progress_signal() {
    static HAS_COME: AtomicBool = AtomicBool::new(false);
    _ = flag::register(SIGUSR1, &HAS_COME);
}

/// The signals that ask how far a transfer is. Their default effect would end the process.
#[derive(Debug)]
struct Questions {
    user: Signal,
    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    info: Signal,
}

impl Questions {
    fn install() -> io::Result<Self> {
        Ok(Self {
            user: signal(SignalKind::user_defined1())?,
            #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
            info: signal(SignalKind::info())?,
        })
    }

    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    async fn next(&mut self) -> Option<()> {
        tokio::select! {
            asked = self.user.recv() => asked,
            asked = self.info.recv() => asked,
        }
    }

    #[cfg(not(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd")))]
    async fn next(&mut self) -> Option<()> {
        self.user.recv().await
    }
}
