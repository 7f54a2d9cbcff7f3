//! The engine's requests: computed, read and written, at once or after a modelled delay.

use super::Host;
use transport::{ConnectionHandle, Time, WorkReply, WorkRequest};

impl Host {
    /// Runs a request now, or when the modelled workers complete it.
    pub(super) fn dispatch(&mut self, now: Time, handle: ConnectionHandle, request: WorkRequest) {
        let sequential = match &request {
            WorkRequest::Read { length, .. } => self.config.read_rate.map(|rate| (rate, *length)),
            WorkRequest::Write { length, .. } => self.config.write_rate.map(|rate| (rate, *length)),
            _ => None,
        };
        let delay = match sequential {
            Some((rate, length)) => {
                self.disk_free = self.disk_free.max(now) + rate.time_for(length as u64);
                self.disk_free.since(now) + self.config.storage_delay
            }
            None => self.workers.take(now, handle, &request).unwrap_or(self.config.storage_delay),
        };
        match (&request, self.tallies.get_mut(&handle)) {
            (WorkRequest::Write { length, .. }, Some(tally)) => {
                tally.storing += *length as u64;
                tally.storing_peak = tally.storing_peak.max(tally.storing);
            }
            (WorkRequest::Encode(_), Some(tally)) => tally.encodes += 1,
            (WorkRequest::Decode(_), Some(tally)) => tally.decodes += 1,
            _ => {}
        }
        if delay.is_zero() {
            return self.answer(now, handle, request);
        }
        self.requests += 1;
        self.working.insert((now + delay, self.requests), (handle, request));
    }

    fn answer(&mut self, now: Time, handle: ConnectionHandle, request: WorkRequest) {
        let reply = match request.run_pure() {
            Ok(reply) => reply,
            Err(WorkRequest::Read { flow, block, offset, length, mut buffer }) => {
                buffer.resize(length, 0);
                self.object(flow).fill(offset, &mut buffer);
                if let Some(tally) = self.tallies.get_mut(&handle) {
                    tally.repeated += u64::from(tally.read.insert((flow, block), offset).is_some());
                }
                WorkReply::Read { flow, block, buffer }
            }
            Err(WorkRequest::Write { flow, block, offset, length, data }) => {
                let (object, bytes) = (self.object(flow), &data.bytes()[..length]);
                self.see_written(block, offset, data.symbol_size(), bytes);
                if let Some(tally) = self.tallies.get_mut(&handle) {
                    tally.storing -= length as u64;
                    tally.repeated += u64::from(tally.written.insert((flow, block), offset).is_some());
                    let received = tally.received.entry(flow).or_default();
                    received.write(&object, offset, bytes);
                }
                WorkReply::Written { flow, block }
            }
            Err(WorkRequest::Digest { key, block, .. }) => WorkReply::Digested { key, block },
            Err(WorkRequest::Encode(_) | WorkRequest::Decode(_)) => return,
        };
        if let Some(connection) = self.endpoint.connection(handle) {
            connection.handle_reply(now, reply);
        }
    }

    /// Replies to the requests that the modelled workers and disks have completed by now.
    pub(super) fn work(&mut self, now: Time) {
        while let Some(first) = self.working.first_entry().filter(|entry| entry.key().0 <= now) {
            let (handle, request) = first.remove();
            self.answer(now, handle, request);
        }
        for (handle, tally) in &mut self.tallies {
            if let Some(connection) = self.endpoint.connection(*handle) {
                tally.streams.work(now, connection);
            }
        }
    }
}
