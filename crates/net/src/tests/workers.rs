//! A failure of a worker ends one transfer and nothing else.

use super::*;

/// A source that panics.
struct Faulty;

impl Source for Faulty {
    fn read(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        panic!("on purpose");
    }
}

#[test]
fn a_panic_is_reported_to_its_connection_and_the_workers_continue() {
    let (local, remote) = pipes();
    let (connecting, listening) = (start(local), start(remote));
    let arrivals = listen(&listening);
    let faulty = connect(&connecting);
    faulty.connected();
    let _receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    // More panics than workers.
    for tag in 0..8 {
        faulty.connection.send_object(tag, 1000, Arc::new(Faulty));
        faulty.wait(|event| match event {
            Event::ObjectFailed(NetError::Panicked("a worker")) => Some(()),
            Event::Closed(error) => panic!("closed: {error}"),
            _ => None,
        });
    }
    let sound = connect(&connecting);
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    transfer_pattern(&sound, &receiving, 1_000_000);
}

#[test]
fn an_event_handler_that_panics_loses_its_connection_and_no_other() {
    let (a, b) = pipes();
    let (local, remote) = (start(a), start(b));
    let arrivals = listen(&remote);
    let sound = connect(&local);
    let peer = arrivals.recv_timeout(PATIENCE).unwrap();
    let options = ConnectOptions::new(vec![PIPE_PEER]);
    let faulty = local.connect((KEY, options)).events(|event| panic!("on purpose: {event:?}")).start();
    let left = arrivals.recv_timeout(PATIENCE).unwrap();
    let end = block_on(faulty.closed());
    assert!(matches!(end, NetError::Panicked("an event handler")), "{end}");
    let (end, _) = left.closed();
    assert!(matches!(end, NetError::ClosedByPeer { code: 0x108, .. }), "{end}");
    transfer_pattern(&sound, &peer, 100_000);
    // An event handler that only ever gets the end.
    let refused = local.connect((KEY, ConnectOptions::new(Vec::new()))).events(|_| panic!("on purpose")).start();
    assert!(matches!(block_on(refused.closed()), NetError::Connect(_)));
    transfer_pattern(&connect(&local), &arrivals.recv_timeout(PATIENCE).unwrap(), 100_000);
}

#[test]
fn a_panic_on_the_network_thread_ends_every_connection() {
    let (a, b) = pipes();
    let (local, remote) = (start(a), start(b));
    let (sender, accepted) = channel();
    let mut peers = 0;
    let acceptor = Box::new(move |_| {
        peers += 1;
        assert!(peers < 2, "on purpose");
        handler(sender.clone())
    });
    remote.listen(KEY, in_ten_minutes(), accept_options(), acceptor);
    let first = connect(&local);
    first.connected();
    let _second = connect(&local);
    let closed = |event| if let Event::Closed(error) = event { Some(error) } else { None };
    let ended = std::iter::from_fn(|| accepted.recv_timeout(PATIENCE).ok()).find_map(closed);
    assert!(matches!(ended, Some(NetError::Panicked("the network thread"))), "{ended:?}");
    // New peers can no longer connect, and no caller waits forever.
    let late = connect(&remote);
    assert!(matches!(block_on(late.connection.closed()), NetError::Panicked("the network thread")));
    assert!(block_on(remote.refused()).is_err());
}
