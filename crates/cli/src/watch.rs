//! Follows a transfer to its end.

use std::time::Duration;
use std::{io, process};

use downpour::{Error, Offer, Rate, Transfer, TransferEvent};
use tokio::time::{Instant, interval, sleep_until};

use crate::escape;
use crate::exit::{Code, Failure};
use crate::interrupt::{Heard, Interrupts, StopSignal};
use crate::limit::{LOOK_AGAIN, Limit};
use crate::output::{Notices, Output};
use crate::prompt::Question;
use crate::rates::Both;

/// How long a transfer may take to end after SIGTERM: the process is to be gone within two seconds.
pub(crate) const GRACE: Duration = Duration::from_millis(1500);

/// What to do about a transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conduct {
    /// What to do about an offer.
    pub(crate) offer: OnOffer,
    /// Others may come after a transfer, whatever became of it.
    pub(crate) keep: bool,
    /// What the notices of the receiver mean.
    pub(crate) notices: Notices,
    /// The sender's limit, where it changes with the time.
    pub(crate) limit: Option<Limit>,
    /// The same command goes on where it was stopped, whatever this side has kept.
    pub(crate) resumes: bool,
}

/// What is done when the sender says what it wants to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OnOffer {
    /// It was asked for by name: it is taken.
    #[default]
    Take,
    /// It is told, and taken.
    Tell,
    /// It is told, and taken after a yes.
    Ask,
}

/// Shows what happens until all is over, and gives the exit code. Ctrl-C and SIGTERM stop the transfer, SIGTERM within [`GRACE`]; a
/// second one ends the process.
pub(crate) async fn watch(
    transfer: Transfer,
    conduct: Conduct,
    output: &mut Output,
    interrupts: &mut Interrupts,
) -> Result<u8, Failure> {
    let changes = conduct.limit.as_ref().is_some_and(Limit::changes);
    let mut look = interval(LOOK_AGAIN);
    let held = conduct.limit.as_ref().and_then(Limit::now);
    let mut watch = Watch {
        transfer,
        conduct,
        output,
        held,
        question: None,
        unanswered: false,
        stop: None,
        deadline: None,
        peers: 0,
    };
    let mut result = Err(Failure::new(Code::Other, "the transfer ended without a word"));
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
            heard = interrupts.heard() => match heard {
                Heard::HangUp => watch.output.hang_up(),
                Heard::Stop(stop) => watch.stop(stop),
            },
            answer = answer(&mut watch.question) => watch.answered(answer),
            _ = look.tick(), if changes => watch.limit(),
            () = at(deadline) => {
                watch.transfer.abandon();
                return Err(Failure::stopped(StopSignal::Terminated));
            }
        }
    }
}

/// Waits until then, if there is such a time.
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

/// A transfer that is followed.
struct Watch<'a> {
    transfer: Transfer,
    conduct: Conduct,
    output: &'a mut Output,
    /// The limit that it has.
    held: Option<Rate>,
    /// What the user is being asked.
    question: Option<Question>,
    /// Nobody was there to be asked.
    unanswered: bool,
    /// Why it is being cancelled.
    stop: Option<StopSignal>,
    /// When the process ends whatever the transfer does.
    deadline: Option<Instant>,
    /// Receivers that are being served, where there may be several.
    peers: u64,
}

impl Watch<'_> {
    /// Shows an event; gives the end that it brings.
    fn event(&mut self, event: TransferEvent) -> Option<Result<u8, Failure>> {
        match event {
            TransferEvent::Connected { peer } => {
                self.peers += 1;
                self.output.connected(peer);
            }
            TransferEvent::Offer(offer) => self.offer(&offer),
            // Nothing moves, and the line would be drawn over the question.
            TransferEvent::Progress(_) if self.question.is_some() => {}
            // Figures of several receivers cannot be told apart.
            TransferEvent::Progress(_) if self.conduct.keep && self.peers > 1 => self.output.crowd(self.peers),
            TransferEvent::Progress(progress) => self.output.progress(progress),
            TransferEvent::Files(files) => {
                files.iter().for_each(|(path, bytes)| self.output.file(&escape::name(path), *bytes))
            }
            TransferEvent::Notice { kind, path } => {
                self.output.notice(self.conduct.notices, kind, &escape::name(&path))
            }
            TransferEvent::LeftOut(left) => {
                self.output.say(format_args!("left out: {} {}", escape::name(&left.path), left.reason));
            }
            TransferEvent::Note(note) => self.output.say(escape::text(&note)),
            TransferEvent::Attempt { message, kind } => {
                self.output.attempt_failed(&escape::text(&message), Code::from(kind))
            }
            TransferEvent::Done(result) => {
                self.peers = self.peers.saturating_sub(1);
                if let Some(question) = self.question.take() {
                    question.withdraw();
                }
                return Some(self.done(result));
            }
        }
        None
    }

    fn done(&self, result: Result<downpour::Summary, Error>) -> Result<u8, Failure> {
        match (result, self.stop) {
            (Ok(summary), _) => {
                self.output.done(self.conduct.notices, &summary);
                Ok(Code::from(&summary) as u8)
            }
            (Err(Error::Cancelled | Error::Terminated), Some(stop)) if self.conduct.resumes => {
                Err(Failure::goes_on(stop))
            }
            (Err(Error::Cancelled), None) if self.unanswered => Err(Failure::new(
                Code::Usage,
                "nobody answered, and nothing was taken: answer y on stdin, or give --yes to take what comes",
            )),
            (Err(error), None) if self.conduct.keep => {
                let failure = Failure::from(error);
                self.output.one_failed(&failure);
                Ok(failure.code)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Cancels; the second time there is no waiting for it.
    fn stop(&mut self, stop: StopSignal) {
        if self.stop.is_some() {
            self.transfer.abandon();
            process::exit(i32::from(Code::from(stop) as u8));
        }
        self.stop = Some(stop);
        if stop == StopSignal::Terminated {
            self.deadline = Some(Instant::now() + GRACE);
        }
        self.output.stopping();
        self.transfer.stop(stop.into());
    }

    /// Applies what the timetable says now.
    fn limit(&mut self) {
        let now = self.conduct.limit.as_ref().and_then(Limit::now);
        if now != self.held {
            self.held = now;
            self.transfer.set_limit(now);
            self.output.detail(match now {
                Some(rate) => format!("From now on at most {}.", Both(rate)),
                None => "From now on without a limit.".to_owned(),
            });
        }
    }

    /// Tells what is offered, and takes it or asks.
    fn offer(&mut self, offer: &Offer) {
        match self.conduct.offer {
            OnOffer::Take => self.transfer.accept(),
            OnOffer::Tell => {
                self.output.offer(offer);
                self.transfer.accept();
            }
            OnOffer::Ask => {
                self.output.ask(offer);
                // Another peer's, where the one before has left during the question: the next line typed is the answer.
                match &self.question {
                    Some(open) => open.repeat(),
                    None => self.question = Some(Question::ask("Take it?")),
                }
            }
        }
    }

    fn answered(&mut self, answer: io::Result<bool>) {
        self.question = None;
        match answer {
            Ok(true) => self.transfer.accept(),
            Ok(false) => self.transfer.refuse(),
            // Nor will the next peer's offer be answered.
            Err(_) => {
                self.unanswered = true;
                self.transfer.stop(downpour::Stop::Cancelled);
            }
        }
    }
}
