//! Waits on a plain thread for a future.

use std::future::poll_fn;
use std::io::{self, BufRead, Read, Write};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use tokio::io::{AsyncBufRead, AsyncWrite};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs `future` to completion on this thread, which sleeps meanwhile.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

/// A stream to read from or write to on a plain thread.
#[derive(Debug)]
pub(crate) struct Blocking<T>(pub(crate) T);

impl<T: AsyncBufRead + Unpin> BufRead for Blocking<T> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        block_on(poll_fn(|context| Pin::new(&mut self.0).poll_fill_buf(context).map_ok(drop)))?;
        // Bytes that were not consumed are returned again.
        match Pin::new(&mut self.0).poll_fill_buf(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => found,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn consume(&mut self, count: usize) {
        Pin::new(&mut self.0).consume(count);
    }
}

impl<T: AsyncBufRead + Unpin> Read for Blocking<T> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl<T: AsyncWrite + Unpin> Write for Blocking<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        block_on(poll_fn(|context| Pin::new(&mut self.0).poll_write(context, bytes)))
    }

    fn flush(&mut self) -> io::Result<()> {
        block_on(poll_fn(|context| Pin::new(&mut self.0).poll_flush(context)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_on_waits_for_other_thread() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || sender.send(7).unwrap());
        assert_eq!(block_on(receiver).unwrap(), 7);
        other.join().unwrap();
    }
}
