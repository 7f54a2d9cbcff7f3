//! The end of a receiver: the removal of sources, the confirmation to the sender, or the partial data for a later run.

use super::Receiving;
use crate::error::{Context, Error};
use crate::files::{Compare, FailReason, Failed, ReceiveOutcome};
use crate::messages::{Complete, Message, UnverifiedFiles};
use crate::transfer::events::TransferEvent;
use crate::transfer::input::SideInput;
use crate::transfer::summary::DisplayBytes;
use crate::transfer::totals::Totals;

impl Receiving {
    /// Waits until the sender has removed its sources, which it reports one by one.
    pub(super) fn await_removal(&mut self) -> Result<(), Error> {
        self.send(&Message::AllStored)?;
        loop {
            match self.session.next()? {
                SideInput::Message(Message::Notice(notice)) => self.removed(notice)?,
                // Its reports have reached its own user, too.
                SideInput::Message(Message::Removed(_)) => return Ok(()),
                SideInput::Message(_) => return Err(Error::ProtocolViolation("message sent after the end".to_owned())),
                SideInput::Tick => self.report(),
                _ => {}
            }
        }
    }

    /// Confirms to the sender that everything is published.
    pub(super) fn confirm(&mut self, outcome: &ReceiveOutcome) -> Result<Totals, Error> {
        self.session.complete();
        // Files compared by content and found equal do not count as unchanged, since their content was compared.
        let by_time = self.target.files().spec().compare != Compare::Checksum;
        let untouched = UnverifiedFiles { unchanged: if by_time { outcome.unchanged } else { 0 }, kept: outcome.kept };
        let is_recent = self.session.peer.hears_untouched();
        if is_recent {
            self.send(&Message::Untouched(untouched))?;
        }
        self.send(&Message::Complete(Complete {
            files: outcome.files,
            bytes: outcome.bytes,
            present: outcome.present,
            failed: outcome.failed_count,
            // An older sender does not know this field, and would end a complete transfer with an error.
            unchecked: if is_recent { outcome.unchecked } else { 0 },
        }))?;
        if let Some(checksums) = &mut self.checksums {
            checksums.save()?;
        }
        let mut done = std::mem::take(&mut self.done);
        done.into = Some(self.target.files().destination().directory.clone());
        (done.names.files, done.bytes.total) = (outcome.files, outcome.bytes);
        (done.names.directories, done.names.symlinks) = (outcome.directories, outcome.symlinks);
        (done.bytes.present, done.bytes.unverified) = (outcome.present, outcome.unchecked);
        if outcome.altered > 0 {
            let note = format!("{} of partial data had changed, and was received again", DisplayBytes(outcome.altered));
            self.session.events.emit(TransferEvent::UserNote(note));
        }
        (done.names.unchanged, done.names.kept, done.names.deleted) =
            (untouched.unchanged, untouched.kept, outcome.deleted);
        let links_left_out = outcome.links_left_out + outcome.unsafe_links;
        (done.bytes.altered, done.names.links_skipped) = (Some(outcome.altered), links_left_out);
        self.session.events.report_skipped_links(outcome.links_left_out);
        if let Some(left) = &outcome.staging_left {
            self.session.events.emit(TransferEvent::UserNote(left.to_string()));
        }
        // Rejected names have been reported already.
        for Failed { path, reason } in outcome.listed.iter().filter(|f| !matches!(f.reason, FailReason::Refused(_))) {
            done.failures.add(path, *reason);
        }
        // More names may have failed than are listed.
        (done.failures.count, done.failures.vanished) = (outcome.failed_count + self.unremoved, outcome.vanished_count);
        Ok(done)
    }

    /// Keeps the received data for a later run, unless the user declined it.
    pub(super) fn abandon(&self, error: Error) -> Error {
        let files = self.target.files();
        let remove = matches!(error, Error::Declined);
        if !remove {
            // Data that cannot be synced now is sent again.
            let _ = files.flush();
        }
        match files.abandon(remove) {
            Ok(Some(staging)) => error.within(Context::Kept { staging, by_ticket: self.session.config.by_ticket() }),
            Ok(None) => error,
            Err(left) => {
                self.session.events.emit(TransferEvent::UserNote(left.to_string()));
                error
            }
        }
    }
}
