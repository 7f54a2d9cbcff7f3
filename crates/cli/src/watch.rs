//! Follows a transfer to its end.

use std::process;

use downpour::{Transfer, TransferEvent};

use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::output::Output;
use crate::prompt::{self, NoAnswer};

/// What to do about a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conduct {
    /// Ask before anything is taken.
    pub(crate) ask: bool,
    /// Others may come after a transfer, whatever became of it.
    pub(crate) keep: bool,
}

/// Shows what happens until all is over, and gives the exit code. Ctrl-C cancels the transfer, which takes the staging folder away; a second
/// one ends the process.
pub(crate) async fn watch(
    mut transfer: Transfer,
    conduct: Conduct,
    output: &mut Output,
    interrupts: &mut Interrupts,
) -> Result<u8, Failure> {
    let mut cancelled = false;
    let mut result = Err(Failure::new(Code::Other, "the transfer ended without a word"));
    loop {
        let event = tokio::select! {
            event = transfer.next() => event,
            () = interrupts.next() => {
                if cancelled {
                    process::exit(i32::from(Code::Interrupted as u8));
                }
                cancelled = true;
                output.cancelling();
                transfer.cancel();
                continue;
            }
        };
        match event {
            Some(TransferEvent::Connected { peer }) => output.connected(peer),
            Some(TransferEvent::Offer(offer)) => {
                output.offer(&offer);
                cancelled |= answer(&transfer, conduct, interrupts).await;
            }
            Some(TransferEvent::Progress(progress)) => output.progress(progress),
            Some(TransferEvent::File { path, bytes }) => output.file(&path, bytes),
            Some(TransferEvent::Note(note)) => output.say(note),
            Some(TransferEvent::Done(Ok(summary))) => {
                output.done(&summary);
                result = Ok(summary.exit_code());
            }
            Some(TransferEvent::Done(Err(error))) if conduct.keep && !cancelled => {
                let failure = Failure::from(error);
                output.one_failed(&failure);
                result = Ok(failure.code);
            }
            Some(TransferEvent::Done(Err(error))) => result = Err(error.into()),
            None => return result,
        }
    }
}

/// Asks where that is wanted, and answers the other side. True when the answer was Ctrl-C.
async fn answer(transfer: &Transfer, conduct: Conduct, interrupts: &mut Interrupts) -> bool {
    let answer = if conduct.ask { prompt::yes("Take it?", interrupts).await } else { Ok(true) };
    match answer {
        Ok(true) => transfer.accept(),
        Ok(false) => transfer.refuse(),
        Err(NoAnswer::Interrupted | NoAnswer::Input(_)) => {
            transfer.cancel();
            return true;
        }
    }
    false
}
