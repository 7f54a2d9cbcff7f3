//! What a worker cannot handle ends one transfer and nothing else.

use super::*;

/// Where reading is a fault of the program.
struct Faulty;

impl Storage for Faulty {
    fn read(&self, tag: u64, _: u64, _: &mut [u8]) -> io::Result<()> {
        panic!("object {tag} cannot be read");
    }

    fn write(&self, _: u64, _: u64, _: &[u8]) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_is_told_to_its_connection_and_the_workers_go_on() {
    let (here, there) = pipes();
    let (connecting, listening) = (start(here), start(there));
    let memory = Arc::new(Memory::default());
    let arrivals = listen(&listening, Arc::clone(&memory) as _);
    let faulty = connect(&connecting, Arc::new(Faulty));
    faulty.wait(|event| matches!(event, LinkEvent::Connected { .. }).then_some(()));
    let _receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    // More faults than there are workers.
    for tag in 0..8 {
        faulty.link.send_object(tag, 1000);
        faulty.wait(|event| match event {
            LinkEvent::Failed(NetError::Internal(_)) => Some(()),
            LinkEvent::Closed { why, .. } => panic!("closed: {why:?}"),
            _ => None,
        });
    }
    let sound = connect(&connecting, Arc::new(Memory::default()));
    let receiving = arrivals.recv_timeout(PATIENCE).unwrap();
    transfer(&sound, &receiving, 1_000_000);
    assert!(*memory.received.lock().unwrap() == pattern(1_000_000), "the bytes differ");
}

#[test]
fn a_panic_on_the_drivers_thread_ends_every_connection() {
    let (a, b) = pipes();
    let (here, there) = (start(a), start(b));
    let (sender, accepted) = channel();
    let options = AcceptOptions { profile: Profile::auto(), application: Vec::new(), qlog: false };
    let mut peers = 0;
    let acceptor = Box::new(move |_| {
        peers += 1;
        assert!(peers < 2, "on purpose");
        Accepted { events: sink(sender.clone()), storage: Arc::<Memory>::default() }
    });
    there.listen(KEY, SystemTime::now() + Duration::from_secs(600), options, acceptor);
    let first = connect(&here, Arc::<Memory>::default());
    first.wait(|event| matches!(event, LinkEvent::Connected { .. }).then_some(()));
    let _second = connect(&here, Arc::<Memory>::default());
    let failed = |event| if let LinkEvent::Failed(error) = event { Some(error) } else { None };
    let ended = std::iter::from_fn(|| accepted.recv_timeout(PATIENCE).ok()).find_map(failed);
    assert!(matches!(ended, Some(NetError::Internal(_))), "{ended:?}");
    // Nobody comes any more, and nobody waits for ever.
    let late = connect(&there, Arc::<Memory>::default()).wait(failed);
    assert!(matches!(late, NetError::Internal(_)), "{late}");
}
