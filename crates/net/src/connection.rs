//! A connection as the program holds it: it sends commands to the network thread, and receives events and replies, or
//! reads the shared state.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use tokio::sync::oneshot;
use transport::congestion::SavedPath;
use transport::{FlowError, Priority, Rate};

use crate::buffers::WriteHalf;
use crate::driver::ANSWERS;
use crate::error::NetError;
use crate::messages::{Command, CommandSender, Name, PendingReply};
use crate::object::Source;
use crate::options::StreamOptions;
use crate::shared::Shared;
use crate::stats::Stats;
use crate::stream::{RecvStream, SendStream, Stream};

/// One connection of an [`Endpoint`](crate::Endpoint). Clones are the same connection. It does not keep the endpoint
/// alive: dropping the endpoint closes its connections. Dropping a connection does not close it, since its events and
/// streams may still be in use: call [`Connection::close`] when it is no longer needed.
#[derive(Clone)]
pub struct Connection {
    controls: CommandSender,
    shared: Arc<Shared>,
}

impl Connection {
    pub(crate) const fn new(controls: CommandSender, shared: Arc<Shared>) -> Self {
        Self { controls, shared }
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Whether a stream of the peer is waiting to be accepted.
    pub(crate) fn has_streams(&self) -> bool {
        self.shared.has_streams()
    }

    /// Waits until the peer has proved that it has the key.
    ///
    /// # Errors
    /// The reason of the close: [`NetError::HandshakeTimedOut`] without an answer.
    pub async fn established(&self) -> Result<(), NetError> {
        let established = poll_fn(|context| self.shared.poll(context, |state| state.established.then_some(())));
        established.await.map_err(|(error, _)| error)
    }

    /// Waits for the end of the connection.
    pub async fn closed(&self) -> NetError {
        match poll_fn(|context| self.shared.poll::<NetError>(context, |_| None)).await {
            Ok(error) | Err((error, _)) => error,
        }
    }

    /// Opens a stream in both directions, with tag 0 and [`Priority::Auto`]; the peer gets it from
    /// [`Connection::accept`], and bytes written before that are sent with the packet that opens it. A side may open
    /// at most 65,535 streams, replies and objects in a connection.
    ///
    /// It can be cancelled: a stream opened and not returned is reset.
    ///
    /// # Errors
    /// [`NetError::Flow`] before the connection is established, if the peer accepts no stream, if the profile's symbols
    /// cannot carry one, and after the last of 65,535; how the connection ended.
    pub async fn open(&self) -> Result<Stream, NetError> {
        self.open_with(StreamOptions::default()).await
    }

    /// Opens a stream in both directions with a tag, as in `open_with(7)`, which the peer sees, or with other options.
    /// Interactive streams go first on the path ([`StreamOptions::priority`], for what this side sends); others take
    /// turns with each other and with the objects.
    ///
    /// # Errors
    /// Those of [`Connection::open`], and [`NetError::Tag`].
    pub async fn open_with(&self, options: impl Into<StreamOptions>) -> Result<Stream, NetError> {
        let options = valid(options.into())?;
        let (send, recv) = self.opened(|opened| Command::Open { options, opened }).await?;
        Ok(Stream::new(send, recv))
    }

    /// Waits for the next stream that the peer opens, in both directions or in one: all are in one queue, so a program
    /// calls either this or [`Connection::accept_uni`], as agreed with its peer. Streams opened before the close of the
    /// connection can be accepted after it. [`Stream::abort`] rejects one.
    ///
    /// It can be cancelled: no stream is lost.
    ///
    /// # Errors
    /// How the connection ended.
    pub async fn accept(&self) -> Result<Stream, NetError> {
        let recv = self.accept_uni().await?;
        let send = self.open_reply(&recv, Priority::Auto);
        Ok(Stream::new(send, recv))
    }

    /// Opens the reply direction of a stream that the peer has opened with [`Connection::open`], with this
    /// priority. Errors are returned by writes. If the peer opened the stream with [`Connection::open_uni`], it stops
    /// the reply.
    #[must_use]
    pub fn open_reply(&self, recv: &RecvStream, class: Priority) -> SendStream {
        let (half, number) = (Arc::<WriteHalf>::default(), self.shared.next_answer());
        match recv.name() {
            Name::Flow(to) => {
                let half = PendingReply::new(Arc::clone(&half), Arc::clone(&self.shared));
                self.controls.command(Command::Answer { number, to, class, half });
            }
            // It is an answer itself.
            Name::AnswerTo(_) | Name::Answer(_) => half.end(Err(NetError::StreamClosed)),
        }
        SendStream::new(self.controls.clone(), Name::Answer(number), half)
    }

    /// Opens a stream in the direction of the peer alone, as [`Connection::open`] does for both; the peer gets it from
    /// [`Connection::accept_uni`].
    ///
    /// # Errors
    /// Those of [`Connection::open`].
    pub async fn open_uni(&self) -> Result<SendStream, NetError> {
        self.open_uni_with(StreamOptions::default()).await
    }

    /// Opens a stream in the direction of the peer alone with a tag, or with other options.
    ///
    /// # Errors
    /// Those of [`Connection::open_with`].
    pub async fn open_uni_with(&self, options: impl Into<StreamOptions>) -> Result<SendStream, NetError> {
        let options = valid(options.into())?;
        self.opened(|opened| Command::OpenStream { options, opened }).await
    }

    async fn opened<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<Result<T, NetError>>) -> Command,
    ) -> Result<T, NetError> {
        match self.ask(command).await.map_err(|(error, _)| error)? {
            // It may have ended while the close is still being sent.
            Err(error @ NetError::Flow(FlowError::NotConnected)) => Err(self.shared.end_known().unwrap_or(error)),
            opened => opened,
        }
    }

    /// Waits for the next stream that the peer opens. Streams opened before the close of the connection can be accepted
    /// after it. It can be cancelled: no stream is lost.
    ///
    /// # Errors
    /// How the connection ended.
    pub async fn accept_uni(&self) -> Result<RecvStream, NetError> {
        let accepted = poll_fn(|context| self.shared.poll(context, |state| state.streams.pop_front()));
        let (flow, tag, half) = accepted.await.map_err(|(error, _)| error)?;
        self.controls.command(Command::Read(Name::Flow(flow)));
        Ok(RecvStream::new(self.controls.clone(), Name::Flow(flow), tag, half))
    }

    /// Sends the object `tag` of `length` bytes from `source`, after the objects passed before it.
    /// [`Event::Digest`](crate::Event::Digest) follows for each block read, and
    /// [`Event::ObjectSent`](crate::Event::ObjectSent) when the peer has the whole object.
    pub fn send_object(&self, tag: u64, length: u64, source: Arc<dyn Source>) {
        self.controls.command(Command::SendObject { tag, length, source });
    }

    /// Appends to the control stream: messages of the program that take precedence over everything else. The caller
    /// must bound how much of it has not arrived, using
    /// [`Event::ControlAcknowledged`](crate::Event::ControlAcknowledged).
    pub fn write_control(&self, bytes: Vec<u8>) {
        self.controls.command(Command::WriteControl(bytes));
    }

    /// Releases `bytes` processed bytes of [`Event::Control`](crate::Event::Control), so that more can be received.
    pub fn release_control(&self, bytes: usize) {
        self.controls.command(Command::ControlTaken(bytes));
    }

    /// Returns all counters as they are now, or as they were at the end of the connection.
    pub async fn stats(&self) -> Stats {
        self.ask(Command::Stats).await.unwrap_or_else(|(_, stats)| stats)
    }

    /// Begins with the measurements of an earlier connection between the same networks
    /// ([`CongestionStats::memory`](transport::CongestionStats::memory)), which should be less than a day old and used
    /// by one connection at a time. Call it before sending much: it has no effect once the rate is found.
    pub fn recall(&self, memory: SavedPath) {
        self.controls.command(Command::Recall(memory));
    }

    /// Limits sending to `limit` IP bits per second from now on; `None` removes the profile's limit too.
    pub fn set_limit(&self, limit: Option<Rate>) {
        self.controls.command(Command::SetLimit(limit));
    }

    /// Changes a setting of the profile while the connection is running, as [`transport::Connection::set`] does.
    ///
    /// # Errors
    /// [`NetError::Set`] for an unknown setting or value, or one fixed in the handshake; the reason of the close.
    pub async fn set_profile_key(&self, key: &str, value: &str) -> Result<(), NetError> {
        let (key, value) = (key.to_owned(), value.to_owned());
        let set = self.ask(|done| Command::Set { key, value, done }).await;
        set.map_err(|(error, _)| error)?.map_err(NetError::Set)
    }

    /// Asks the peer for a sign of life: if it is alive, something arrives from it within about a round trip.
    pub fn ping(&self) {
        self.controls.command(Command::Ping);
    }

    /// Notifies the engine that this side has nothing left to send or to receive and that the peer will close. The loss
    /// of a peer whose close was not received is noticed sooner, if its host answers with *port unreachable*.
    pub fn expect_close(&self) {
        self.controls.command(Command::ExpectClose);
    }

    /// Closes the connection and sends the reason to the peer. Unfinished streams and objects are reset. Codes below
    /// 0x100, other than 0 for a normal end, are reserved for the engine.
    pub fn close(&self, code: u32, reason: impl Into<String>) {
        self.controls.command(Command::Close { code, reason: reason.into() });
    }

    /// Closes the connection normally, after the packets that window and pacer allow at once, for a peer that learns by
    /// other means, too, that this side has left, such as one started by a login: dropping the endpoint then waits for
    /// nothing more.
    pub fn leave(&self) {
        self.controls.command(Command::Leave);
    }

    /// Asks the network thread. The error is the end of the connection: later requests are dropped without a reply.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, (NetError, Stats)> {
        let (sender, receiver) = oneshot::channel();
        self.controls.command(command(sender));
        receiver.await.map_err(|_| self.shared.ended())
    }
}

/// Rejects tags that the program may not choose.
const fn valid(options: StreamOptions) -> Result<StreamOptions, NetError> {
    if options.tag & ANSWERS == 0 { Ok(options) } else { Err(NetError::Tag) }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("id", &self.controls).finish_non_exhaustive()
    }
}
