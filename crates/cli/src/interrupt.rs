//! The signals that the program handles: Ctrl-C, SIGTERM, a hang-up of the terminal, and those that request the progress.
//!
//! A signal to stop has its default effect, the end of the process, unless a loop attends to it. So no blocking call outside
//! such a loop can swallow one, such as a read of stdin, or an open that waits for a reader.

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
    /// SIGHUP: the terminal was closed, or the user has logged out. Running transfers continue.
    HangUp,
    /// SIGUSR1, or SIGINFO (Ctrl-T) where it exists: a request for the progress.
    Progress,
}

/// The signals, to which a loop may [attend](Self::attend).
#[derive(Debug)]
pub(crate) struct SignalHandlers {
    /// `None` for those that are ignored.
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    /// `None` also if SIGHUP is not handled.
    hang_up: Option<Signal>,
    ask: ProgressSignals,
}

impl SignalHandlers {
    /// Installs handlers of all signals.
    pub(crate) fn install() -> io::Result<Self> {
        Self::with(HANG_UP.take()?)
    }

    /// Installs handlers of the signals to stop. SIGHUP keeps its effect and ends the process, like the one that feeds it,
    /// unless the caller ignores it.
    pub(crate) fn without_hang_up() -> io::Result<Self> {
        Self::with(None)
    }

    fn with(hang_up: Option<Signal>) -> io::Result<Self> {
        Ok(Self {
            interrupt: INTERRUPT.take()?,
            terminate: TERMINATE.take()?,
            hang_up,
            ask: ProgressSignals::install()?,
        })
    }

    /// Attends to the signals while the result exists: they do not end the process by themselves, every wait must also wait
    /// for them, and nothing may block.
    pub(crate) fn attend(&mut self) -> Attention<'_> {
        let attention = Attention { interrupts: self, put_back: None };
        attention.set_default(false);
        attention
    }
}

/// The signals while a loop attends to them.
#[derive(Debug)]
pub(crate) struct Attention<'a> {
    interrupts: &'a mut SignalHandlers,
    /// A signal that one loop leaves to the next.
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
    pub(crate) const fn put_back(&mut self, event: SignalEvent) {
        self.put_back = Some(event);
    }

    /// Waits for the next signal.
    pub(crate) async fn next_event(&mut self) -> SignalEvent {
        if let Some(event) = self.put_back.take() {
            return event;
        }
        let SignalHandlers { interrupt, terminate, hang_up, ask } = &mut *self.interrupts;
        // A stream ends only when the runtime shuts down; no task waits then.
        tokio::select! {
            Some(()) = next(interrupt) => SignalEvent::Stop(StopSignal::Interrupted),
            Some(()) = next(terminate) => SignalEvent::Stop(StopSignal::Terminated),
            Some(()) = next(hang_up) => SignalEvent::HangUp,
            Some(()) = ask.next() => SignalEvent::Progress,
            else => std::future::pending().await,
        }
    }

    /// Same as [`Self::next`]; a background process also stops if its starting process exits before it is ready.
    pub(crate) async fn next_in_background(&mut self, is_in_background: bool) -> StopSignal {
        tokio::select! {
            stop = self.next() => stop,
            () = background::abandoned(), if is_in_background => StopSignal::Terminated,
        }
    }

    /// Waits for the next signal to stop; `None` for a hang-up.
    pub(crate) async fn next_or_hang_up(&mut self) -> Option<StopSignal> {
        loop {
            match self.next_event().await {
                SignalEvent::Stop(stop) => return Some(stop),
                SignalEvent::HangUp => return None,
                SignalEvent::Progress => announce::print_progress(),
            }
        }
    }

    /// Waits for the next signal to stop.
    pub(crate) async fn next(&mut self) -> StopSignal {
        loop {
            match self.next_event().await {
                SignalEvent::Stop(stop) => return stop,
                SignalEvent::HangUp => {}
                SignalEvent::Progress => announce::print_progress(),
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

/// Keeps SIGUSR1, the request for the progress, from ending the process before a loop answers it, such as while a list of
/// names is read from a pipe. SIGINFO is harmless by default. Failure is ignored: no known system refuses the call.
pub(crate) fn ignore_progress_signal() {
    static IS_RECEIVED: AtomicBool = AtomicBool::new(false);
    _ = flag::register(SIGUSR1, &IS_RECEIVED);
}

/// The signals that request the progress.
#[derive(Debug)]
struct ProgressSignals {
    user: Signal,
    #[cfg(any(target_os = "macos", target_os = "freebsd", target_os = "netbsd", target_os = "openbsd"))]
    info: Signal,
}

impl ProgressSignals {
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
