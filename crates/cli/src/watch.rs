//! Follows a transfer to its end.

use std::process;
use std::time::Duration;

use downpour::{Error, Rate, Transfer, TransferEvent};
use tokio::time::{Instant, interval, sleep_until};

use crate::exit::{Code, Failure};
use crate::interrupt::{Heard, Interrupts, Stop};
use crate::limit::{LOOK_AGAIN, Limit};
use crate::output::{Notices, Output};
use crate::prompt::{self, NoAnswer};
use crate::rates::Both;

/// How long a transfer may take to end after SIGTERM: the process is to be gone within two seconds.
const GRACE: Duration = Duration::from_millis(1500);

/// What to do about a transfer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conduct {
    /// Ask before anything is taken.
    pub(crate) ask: bool,
    /// Others may come after a transfer, whatever became of it.
    pub(crate) keep: bool,
    /// What the notices of the receiver mean.
    pub(crate) notices: Notices,
    /// The sender's limit, where it changes with the time.
    pub(crate) limit: Option<Limit>,
    /// The same command goes on where it was stopped, whatever this side has kept.
    pub(crate) resumes: bool,
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
    let mut watch = Watch { transfer, conduct, output, held, stop: None, deadline: None, peers: 0 };
    let mut result = Err(Failure::new(Code::Other, "the transfer ended without a word"));
    loop {
        let deadline = watch.deadline;
        tokio::select! {
            event = watch.transfer.next() => match event {
                Some(event) => {
                    if let Some(end) = watch.event(event, interrupts).await {
                        result = end;
                    }
                }
                None => return result,
            },
            heard = interrupts.heard() => match heard {
                Heard::HangUp => watch.output.hang_up(),
                Heard::Stop(stop) => watch.stop(stop),
            },
            _ = look.tick(), if changes => watch.limit(),
            () = at(deadline) => {
                return Err(Failure::stopped(Stop::Terminated));
            }
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
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
    /// Why it is being cancelled.
    stop: Option<Stop>,
    /// When the process ends whatever the transfer does.
    deadline: Option<Instant>,
    /// Receivers that are being served, where there may be several.
    peers: u64,
}

impl Watch<'_> {
    /// Shows an event; gives the end that it brings.
    async fn event(&mut self, event: TransferEvent, interrupts: &mut Interrupts) -> Option<Result<u8, Failure>> {
        match event {
            TransferEvent::Connected { peer } => {
                self.peers += 1;
                self.output.connected(peer);
            }
            TransferEvent::Offer(offer) => {
                self.output.offer(&offer);
                self.answer(interrupts).await;
            }
            // Figures of several receivers cannot be told apart.
            TransferEvent::Progress(_) if self.conduct.keep && self.peers > 1 => self.output.crowd(self.peers),
            TransferEvent::Progress(progress) => self.output.progress(progress),
            TransferEvent::Files(files) => files.iter().for_each(|(path, bytes)| self.output.file(path, *bytes)),
            TransferEvent::Notice { kind, path } => self.output.notice(self.conduct.notices, kind, &path),
            TransferEvent::Note(note) => self.output.say(note),
            TransferEvent::Done(result) => {
                self.peers = self.peers.saturating_sub(1);
                return Some(self.done(result));
            }
        }
        None
    }

    fn done(&self, result: Result<downpour::Summary, Error>) -> Result<u8, Failure> {
        match (result, self.stop) {
            (Ok(summary), _) => {
                self.output.done(self.conduct.notices, &summary);
                Ok(summary.exit_code())
            }
            (Err(Error::Cancelled | Error::Terminated), Some(stop)) if self.conduct.resumes => {
                Err(Failure::goes_on(stop))
            }
            (Err(error), None) if self.conduct.keep => {
                let failure = Failure::from(error);
                self.output.one_failed(&failure);
                Ok(failure.code)
            }
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Cancels; the second time there is no waiting for it.
    fn stop(&mut self, stop: Stop) {
        if self.stop.is_some() {
            process::exit(i32::from(stop.code() as u8));
        }
        self.stop = Some(stop);
        if stop == Stop::Terminated {
            self.deadline = Some(Instant::now() + GRACE);
        }
        self.output.stopping();
        self.transfer.stop(match stop {
            Stop::Interrupted => downpour::Stop::Cancelled,
            Stop::Terminated => downpour::Stop::Terminated,
        });
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

    /// Asks where that is wanted, and answers the other side.
    async fn answer(&mut self, interrupts: &mut Interrupts) {
        let answer = if self.conduct.ask { prompt::yes("Take it?", interrupts).await } else { Ok(true) };
        match answer {
            Ok(true) => self.transfer.accept(),
            Ok(false) | Err(NoAnswer::Input(_)) => self.transfer.refuse(),
            Err(NoAnswer::Stopped(stop)) => self.stop(stop),
        }
    }
}
