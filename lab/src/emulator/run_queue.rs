//! The time that a thread waited for a processor.

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::io::pread;

const TABLE: &str = "/proc/thread-self/schedstat";

/// The kernel's count for the thread that opened it (`Documentation/scheduler/sched-stats.rst`).
#[derive(Debug)]
pub(super) struct RunQueue {
    table: File,
}

impl RunQueue {
    /// Opens the count of the calling thread.
    ///
    /// # Errors
    /// A kernel that does not count.
    pub(super) fn open() -> io::Result<Self> {
        let missing = |why: String| {
            io::Error::other(format!("this kernel does not report how long threads wait for a processor ({why})"))
        };
        let table = File::open(TABLE).map_err(|error| missing(format!("{TABLE}: {error}")))?;
        let queue = Self { table };
        // If counting is switched off, the kernel shows zeroes.
        if queue.numbers().is_none_or(|[_, _, turns]| turns == 0) {
            return Err(missing(format!("{TABLE} has only zeroes")));
        }
        Ok(queue)
    }

    /// Returns the time between being runnable and running, summed over the thread's life.
    pub(super) fn waited(&self) -> Duration {
        Duration::from_nanos(self.numbers().map_or(0, |[_, waited, _]| waited))
    }

    /// Returns nanoseconds on a processor, nanoseconds of waiting for one, and how often it got one.
    fn numbers(&self) -> Option<[u64; 3]> {
        let mut buffer = [0; 64];
        let length = pread(&self.table, &mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..length]).ok()?;
        let mut numbers = text.split_ascii_whitespace().map_while(|number| number.parse().ok());
        Some([numbers.next()?, numbers.next()?, numbers.next()?])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn waited_is_within_elapsed_time() {
        let start = Instant::now();
        let queue = RunQueue::open().unwrap();
        let before = queue.waited();
        for _ in 0..100 {
            std::thread::yield_now();
        }
        let waited = queue.waited() - before;
        assert!(waited <= start.elapsed(), "{waited:?}");
        assert!(queue.numbers().unwrap()[2] > 0);
    }
}
