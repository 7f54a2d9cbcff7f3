//! The lists of chunks that a receiver requests: created by a thread of their own, since files are read in full for
//! them.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use net::Rate;

use super::input::{Input, SideInput};
use super::mailbox::Mailbox;
use crate::error::Error;
use crate::files::TreeObject;
use crate::messages::{Chunks, ListState};

/// Requested files of a batch whose chunks are listed.
struct ChunkListRequest {
    batch: u32,
    object: Arc<dyn TreeObject>,
    entries: Vec<u32>,
    /// The capacity of the path, if it is known.
    line: Option<Rate>,
}

/// The requested lists. The thread starts with the first request and ends when this is dropped.
pub(super) struct Lister {
    mailbox: Mailbox,
    thread: Option<(Sender<ChunkListRequest>, Receiver<Chunks>)>,
    /// Batches and numbers of their lists that are not complete, in order.
    due: VecDeque<(u32, usize)>,
}

impl Lister {
    /// Creates a lister without requests.
    pub(super) const fn new(mailbox: Mailbox) -> Self {
        Self { mailbox, thread: None, due: VecDeque::new() }
    }

    /// Lists the chunks of entries of a batch, of which there is at least one, after earlier requests.
    ///
    /// # Errors
    /// [`Error::OutOfResources`] if the thread cannot be spawned.
    pub(super) fn ask(
        &mut self,
        batch: u32,
        object: Arc<dyn TreeObject>,
        entries: Vec<u32>,
        line: Option<Rate>,
    ) -> Result<(), Error> {
        let (asked, _) = match &mut self.thread {
            Some(thread) => thread,
            none => none.insert(start(&self.mailbox)?),
        };
        self.due.push_back((batch, entries.len()));
        // The thread ends only with the session, which detects a panic by other means.
        let _ = asked.send(ChunkListRequest { batch, object, entries, line });
        Ok(())
    }

    /// Returns whether lists of a batch are incomplete.
    pub(super) fn is_due(&self, batch: u32) -> bool {
        self.due.iter().any(|(due, _)| *due == batch)
    }

    /// Returns whether any list is incomplete.
    pub(super) fn is_busy(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the next chunks, if there are any.
    pub(super) fn next(&mut self) -> Option<Chunks> {
        let (_, listed) = self.thread.as_ref()?;
        let chunks = listed.try_recv().ok()?;
        if chunks.state != ListState::Going
            && let Some((_, left)) = self.due.front_mut()
        {
            *left -= 1;
            if *left == 0 {
                self.due.pop_front();
            }
        }
        Some(chunks)
    }
}

fn start(mailbox: &Mailbox) -> Result<(Sender<ChunkListRequest>, Receiver<Chunks>), Error> {
    let (asked, requests) = channel::<ChunkListRequest>();
    // Enough to stay ahead of a path that is busy with other data.
    let (listed, lists) = sync_channel(8);
    let session = mailbox.clone();
    mailbox.spawn("downpour-list", move || {
        while runtime::recv(&requests).is_ok_and(|asked| list(&asked, &listed, &session)) {}
    })?;
    Ok((asked, lists))
}

/// Lists the requested chunks; returns false when the receiver is closed.
fn list(asked: &ChunkListRequest, listed: &SyncSender<Chunks>, session: &Mailbox) -> bool {
    let line = asked.line.map(|rate| rate.bits_per_second() / 8);
    let mut is_wanted = true;
    for &entry in &asked.entries {
        asked.object.list_chunks(entry, line, &mut |chunks, state| {
            let chunks = Chunks { batch: asked.batch, entry, state, chunks };
            is_wanted &= listed.send(chunks).is_ok() && session.put(Input::Step(SideInput::Ready));
            if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
    }
    is_wanted
}
