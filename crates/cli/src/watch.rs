//! Follows a transfer to its end.

use std::time::Duration;
use std::{io, process, thread};

use downpour::activity::State;
use downpour::{Error, Offer, Rate, Transfer, TransferEvent};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval, sleep_until, timeout};

use crate::announce;
use crate::escape;
use crate::exit::{Code, Failure};
use crate::interrupt::{Attention, SignalEvent};
use crate::notices::Notices;
use crate::output::Output;
use crate::prompt::Question;
use crate::rate::Both;
use crate::rate_timetable::{CHECK_PERIOD, Limit};
use crate::stop_signal::{StopSignal, default_effect, stopping};

/// Time for a transfer to end after a signal to stop: the process must exit within a second. Partial data can be resumed
/// even without an orderly close.
pub(crate) const GRACE: Duration = Duration::from_millis(800);

/// How a transfer is handled.
#[derive(Clone, Debug, Default)]
pub(crate) struct WatchOptions {
    /// How an offer is handled.
    pub(crate) offer: OfferPolicy,
    /// Whether further transfers may follow, however one ends.
    pub(crate) keep: bool,
    /// The meaning of the receiver's notices.
    pub(crate) notices: Notices,
    /// The sender's limit, if it changes over the day.
    pub(crate) limit: Option<Limit>,
    /// Whether the same command resumes after a stop, regardless of partial data on this side.
    pub(crate) resumes: bool,
}

/// How an offer is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OfferPolicy {
    /// Accept: the user has requested it.
    #[default]
    Accept,
    /// Show and accept.
    ShowAndAccept,
    /// Show, and accept after a yes.
    Ask,
}

/// Starts a transfer for [`watch`], which then handles signals received meanwhile, and so ends processes such as ssh too.
/// The start blocks if the trace is a pipe without a reader. A signal to stop or a hang-up has its default effect after
/// [`GRACE`] if the transfer has not started by then.
pub(crate) async fn begin(
    attention: &mut Attention<'_>,
    start: impl FnOnce() -> Result<Transfer, Error> + Send + 'static,
) -> Result<Transfer, Failure> {
    let (sender, mut started) = oneshot::channel();
    let work = move || {
        // Fails if the caller waits no longer.
        if let Err(Ok(transfer)) = sender.send(start()) {
            transfer.abandon();
        }
    };
    thread::Builder::new().name("downpour-start".into()).spawn(work).map_err(Error::OutOfResources)?;
    let ended = |_| Failure::new(Code::Other, "internal error: the start of the transfer ended without a result");
    let stop = tokio::select! {
        biased;
        started = &mut started => return Ok(started.map_err(ended)??),
        stop = attention.next_or_hang_up() => stop,
    };
    match timeout(GRACE, started).await {
        Ok(started) => {
            attention.put_back(stop.map_or(SignalEvent::HangUp, SignalEvent::Stop));
            Ok(started.map_err(ended)??)
        }
        Err(_) => {
            default_effect(stop);
            Err(Failure::stopped(stop.unwrap_or(StopSignal::Terminated)))
        }
    }
}

/// Shows a transfer until it ends, and returns the exit code. Ctrl-C and SIGTERM stop the transfer within [`GRACE`]; a
/// second signal ends the process.
pub(crate) async fn watch(
    transfer: Transfer,
    conduct: WatchOptions,
    output: &mut Output,
    attention: &mut Attention<'_>,
) -> Result<u8, Failure> {
    let changes = conduct.limit.as_ref().is_some_and(Limit::changes);
    let mut check = interval(CHECK_PERIOD);
    let current_limit = conduct.limit.as_ref().and_then(Limit::now);
    let mut watch = Watch {
        transfer,
        conduct,
        output,
        current_limit,
        question: None,
        unanswered: false,
        stop: None,
        deadline: None,
        peers: 0,
        has_met: false,
    };
    let mut result = Err(Failure::new(Code::Other, "internal error: the transfer ended without a result"));
    loop {
        let deadline = watch.deadline;
        tokio::select! {
            event = watch.transfer.next() => match event {
                Some(event) => {
                    if let Some(end) = watch.event(event) {
                        result = end;
                    }
                }
                None => return result,
            },
            signal = attention.next_event() => match signal {
                SignalEvent::HangUp => watch.hang_up(),
                SignalEvent::Stop(stop) => watch.stop(stop),
                SignalEvent::Progress => watch.output.print_progress(),
            },
            answer = answer(&mut watch.question) => watch.answered(answer),
                        _ = check.tick(), if changes => watch.limit(),
            () = at(deadline) => {
                watch.transfer.abandon();
                return Err(watch.timed_out());
            }
        }
    }
}

/// Waits until `deadline`, for ever if there is none.
pub(crate) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn answer(question: &mut Option<Question>) -> io::Result<bool> {
    match question {
        Some(question) => question.answer().await,
        None => std::future::pending().await,
    }
}

/// A transfer being shown.
struct Watch<'a> {
    transfer: Transfer,
    conduct: WatchOptions,
    output: &'a mut Output,
    /// The limit in effect.
    current_limit: Option<Rate>,
    /// The question being asked.
    question: Option<Question>,
    /// Whether a question was not answered.
    unanswered: bool,
    /// The signal that stopped it.
    stop: Option<StopSignal>,
    /// The latest time at which the process exits.
    deadline: Option<Instant>,
    /// Number of receivers being served.
    peers: u64,
    /// Whether a peer has connected.
    has_met: bool,
}

impl Watch<'_> {
    /// Shows an event; returns the result if it ends the transfer.
    fn event(&mut self, event: TransferEvent) -> Option<Result<u8, Failure>> {
        match event {
            TransferEvent::Connected { peer } => {
                self.peers += 1;
                self.has_met = true;
                self.output.connected(peer);
            }
            TransferEvent::Offer(offer) => self.offer(&offer),
            // The progress line would be drawn over the question.
            TransferEvent::Progress(_) if self.question.is_some() => {}
            // The figures of several receivers are indistinguishable.
            TransferEvent::Progress(_) if self.conduct.keep && self.peers > 1 => {
                self.output.show_receiver_count(self.peers)
            }
            TransferEvent::Progress(progress) => self.output.progress(progress),
            TransferEvent::Files(files) => files.iter().for_each(|(path, bytes)| self.output.file(path, *bytes)),
            TransferEvent::Notice { kind, path } => self.output.notice(self.conduct.notices, kind, &path),
            TransferEvent::Skipped(skipped) => self.output.skipped(&skipped),
            TransferEvent::UserNote(note) => self.output.note(&note),
            TransferEvent::UdpClosed { host, port, was_closed } => {
                let again = if was_closed { " (as last time)" } else { "" };
                self.output.note(&format!(
                    "no UDP answer from port {port} of {host}{again}: using ssh, which is slower; to use UDP, open the port (see --port)"
                ));
            }
            TransferEvent::AttemptFailed { message, kind } => {
                announce::update(|activity| (activity.state, activity.progress) = (State::Waiting, None));
                self.output.attempt_failed(&escape::text(&message), Code::from(kind))
            }
            TransferEvent::Done(result) => {
                self.peers = self.peers.saturating_sub(1);
                if self.conduct.keep && self.peers == 0 {
                    // The next receiver starts from zero.
                    announce::update(|activity| (activity.state, activity.progress) = (State::Waiting, None));
                }
                if let Some(question) = self.question.take() {
                    question.withdraw();
                }
                return Some(self.done(result));
            }
        }
        None
    }

    fn done(&self, result: Result<downpour::Summary, Error>) -> Result<u8, Failure> {
        match (result, self.stop.or_else(stopping)) {
            (Ok(summary), _) => {
                self.output.done(self.conduct.notices, &summary);
                Ok(Code::from(&summary) as u8)
            }
            (Err(Error::Cancelled | Error::Terminated), Some(stop)) if self.conduct.resumes => {
                Err(Failure::resumable(stop))
            }
            // A signal to the process group also ends ssh, which may be noticed first.
            (Err(Error::Ssh(_) | Error::NoDownpour { .. } | Error::NothingStarts { .. }), Some(stop))
                if self.conduct.resumes =>
            {
                Err(Failure::resumable(stop))
            }
            (Err(Error::Cancelled), None) if self.unanswered => {
                Err(Failure::new(Code::Usage, "offer declined: no answer on stdin; answer y, or use --yes"))
            }
            (Err(error), None) if self.conduct.keep => {
                let failure = Failure::from(error);
                self.output.one_failed(&failure);
                Ok(failure.code)
            }
            (Err(error @ (Error::ConnectionLost | Error::Stalled(_))), _) if self.is_resumable() => Err(Failure {
                message: escape::text(&format!("{error}; run the same command to resume")),
                ..Failure::from(error)
            }),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Returns whether the same command may resume from partial data.
    fn is_resumable(&self) -> bool {
        self.conduct.resumes && matches!(self.conduct.notices, Notices::Done)
    }

    /// Continues without a terminal, except before a peer has used the ticket that was shown on it.
    fn hang_up(&mut self) {
        self.output.hang_up();
        let waits = self.transfer.ticket().is_some() && !self.has_met && !self.conduct.keep;
        if waits && self.stop.is_none() {
            self.stop(StopSignal::Terminated);
        }
    }

    /// Stops the transfer; the second time without waiting for its end.
    fn stop(&mut self, stop: StopSignal) {
        if self.stop.is_some() {
            self.transfer.abandon();
            announce::end();
            process::exit(i32::from(Code::from(stop) as u8));
        }
        (self.stop, self.deadline) = (Some(stop), Some(Instant::now() + GRACE));
        self.output.stopping();
        self.transfer.stop(stop.into());
    }

    /// Returns the failure of a transfer that has not stopped in time.
    fn timed_out(&self) -> Failure {
        let stop = self.stop.unwrap_or(StopSignal::Terminated);
        if self.conduct.resumes { Failure::resumable(stop) } else { Failure::stopped(stop) }
    }

    /// Applies the current limit of the timetable.
    fn limit(&mut self) {
        let now = self.conduct.limit.as_ref().and_then(Limit::now);
        if now != self.current_limit {
            self.current_limit = now;
            self.transfer.set_limit(now);
            self.output.detail(match now {
                Some(rate) => format!("Rate limit is now {}.", Both(rate)),
                None => "Rate limit is now off.".to_owned(),
            });
        }
    }

    /// Shows an offer, and accepts it or asks.
    fn offer(&mut self, offer: &Offer) {
        match self.conduct.offer {
            OfferPolicy::Accept => self.transfer.accept(),
            OfferPolicy::ShowAndAccept => {
                self.output.offer(offer);
                self.transfer.accept();
            }
            OfferPolicy::Ask => {
                self.output.ask(offer);
                announce::update(|activity| activity.state = State::Asking);
                // The offer of another peer, after the previous one left during the question: the next line is the answer.
                match &self.question {
                    Some(open) => open.repeat(),
                    None => self.question = Some(Question::ask("Accept?")),
                }
            }
        }
    }

    fn answered(&mut self, answer: io::Result<bool>) {
        self.question = None;
        announce::update(|activity| activity.state = State::Connected);
        match answer {
            Ok(true) => self.transfer.accept(),
            Ok(false) => self.transfer.refuse(),
            // The next offer would not be answered either.
            Err(_) => {
                self.unanswered = true;
                self.transfer.stop(downpour::StopReason::Cancelled);
            }
        }
    }
}
