//! The local side of a tunnel, which is independent of the carrier.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use net::{Connection, NetError};
use tokio::task::JoinSet;

use super::events::{Note, Notes, TunnelEvent};
use super::grammar::{Forward, ForwardAddress, ForwardTarget};
use super::http::{Hosts, serve_metrics};
use super::listener::{Listener, raise_descriptor_limit};
use super::session::{Permitted, Session, SocksReplyTime};
use crate::error::{Closing, Error};
use crate::transfer::StopReason;

/// The forwards of a tunnel, and its lifetime.
#[derive(Clone, Debug, Default)]
pub struct Forwarding {
    /// Forwards that listen locally.
    pub local: Vec<Forward>,
    /// Forwards that listen on the remote host.
    pub remote: Vec<Forward>,
    /// Reports connections of a local SOCKS proxy as open at once, so that their first bytes need not wait for the
    /// peer. Refused ones are reset.
    pub is_eager: bool,
    /// The address of the metrics for Prometheus, by HTTP.
    pub metrics: Option<ForwardAddress>,
    /// Ends the tunnel after this time without an open connection.
    pub persist: Option<Duration>,
}

/// A local side that listens, and has no connection to the peer yet.
pub(crate) struct LocalEnd {
    forwarding: Forwarding,
    listeners: Vec<Listener>,
    metrics: Option<Listener>,
    on_event: Arc<dyn Fn(TunnelEvent) + Send + Sync>,
}

impl LocalEnd {
    /// Listens on all local addresses; `on_event` gets the events.
    ///
    /// # Errors
    /// [`Error::Listen`].
    pub(crate) fn listen(
        forwarding: Forwarding,
        on_event: impl Fn(TunnelEvent) + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        raise_descriptor_limit();
        let listen = |place: &ForwardAddress| {
            Listener::bind(place).map_err(|source| Error::Listen { address: place.to_string(), source })
        };
        let listeners = forwarding.local.iter().map(|forward| listen(&forward.listen)).collect::<Result<_, _>>()?;
        let metrics = forwarding.metrics.as_ref().map(listen).transpose()?;
        Ok(Self { forwarding, listeners, metrics, on_event: Arc::new(on_event) })
    }

    /// Returns a receiver of its notes.
    pub(crate) fn notes(&self) -> Notes {
        let on_event = Arc::clone(&self.on_event);
        Notes(Arc::new(move |note| {
            on_event(match note {
                Note::Line(line) => TunnelEvent::Note(line),
                Note::Connection(number, event) => TunnelEvent::Connection(number, event),
            });
        }))
    }

    /// Carries connections until `stop`, until it is `asked` to end, until it was idle for [`Forwarding::persist`], or
    /// until the connection ends; `ended` translates its error.
    ///
    /// # Errors
    /// Why it was stopped, or the end of the connection.
    pub(crate) async fn serve(
        self,
        connection: &Connection,
        asked: impl Future<Output = ()>,
        stop: impl Future<Output = StopReason>,
        ended: impl FnOnce(NetError) -> Error,
    ) -> Result<(), Error> {
        let notes = self.notes();
        let Self { forwarding, listeners, metrics, on_event } = self;
        let destinations: Vec<ForwardTarget> = forwarding.remote.iter().map(|forward| forward.to.clone()).collect();
        let permitted = Permitted::Listeners(destinations);
        let session = Session::new(connection.clone(), permitted, !listeners.is_empty(), notes);
        let mut tasks = JoinSet::new();
        for (listener, forward) in listeners.into_iter().zip(forwarding.local) {
            on_event(TunnelEvent::Listening(forward.clone(), listener.port()));
            let proxied = if forwarding.is_eager { SocksReplyTime::Eagerly } else { SocksReplyTime::Answered };
            tasks.spawn(Arc::clone(&session).listen(listener, forward.to, proxied));
        }
        for forward in forwarding.remote {
            on_event(TunnelEvent::ListeningRemotely(forward));
        }
        if let Some((listener, place)) = metrics.zip(forwarding.metrics) {
            let hosts = Hosts::of(&place, &listener);
            on_event(TunnelEvent::Metrics(place, listener.port()));
            tasks.spawn(serve_metrics(listener, hosts, Arc::clone(&session)));
        }
        on_event(TunnelEvent::Open);
        let unused = async {
            match forwarding.persist {
                Some(span) => session.idle(span).await,
                None => std::future::pending().await,
            }
        };
        let (reason, result) = tokio::select! {
            error = session.run() => return Err(ended(error)),
            () = unused => ("tunnel idle".to_owned(), Ok(())),
            () = asked => (Closing::of(&Error::Terminated, false).reason, Err(Error::Terminated)),
            why = stop => {
                let error = Error::from(why);
                (Closing::of(&error, false).reason, Err(error))
            }
        };
        // Later connections are not accepted any more.
        drop(tasks);
        Closing { reason, ..Closing::done() }.close(connection);
        drop(connection.closed().await);
        result
    }
}
