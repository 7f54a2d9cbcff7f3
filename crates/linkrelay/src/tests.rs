use std::time::Duration;

use super::*;

/// Creates a client and a server with a relay between them.
fn path(link: &str) -> (UdpSocket, UdpSocket, Relay) {
    let open = || {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
        socket
    };
    let (client, server) = (open(), open());
    let relay = Relay::start(server.local_addr().expect("an address"), link.parse().expect(link)).expect("a relay");
    client.connect(relay.address()).expect("a connected socket");
    (client, server, relay)
}

#[test]
fn both_ways_carry_bytes_after_their_delay() {
    let (client, server, relay) = path("delay=30ms / delay=20ms");
    let mut buffer = [0; 2000];
    let start = Instant::now();
    client.send(b"there").expect("a send");
    let (length, from) = server.recv_from(&mut buffer).expect("a datagram");
    let there = start.elapsed();
    assert_eq!(&buffer[..length], b"there");
    server.send_to(b"and back", from).expect("a send");
    let length = client.recv(&mut buffer).expect("an answer");
    let both = start.elapsed();
    assert_eq!(&buffer[..length], b"and back");
    assert!(there >= Duration::from_millis(30), "{there:?}");
    assert!(both >= Duration::from_millis(50), "{both:?}");
    let report = relay.report();
    assert_eq!(report.forward.delivered.bytes, 5 + 28);
    assert_eq!(report.backward.delivered.bytes, 8 + 28);
    assert!(report.lateness.largest() > Duration::ZERO, "nothing leaves at the very moment");
    assert!(report.first.is_some());
}

#[test]
fn the_rate_holds_and_order_is_kept() {
    // 50 packets of 1250 IP bytes at 10 Mbit/s: 1 ms each.
    let (client, server, relay) = path("rate=10M,delay=1ms");
    let start = Instant::now();
    for number in 0..50_u8 {
        client.send(&[number; 1222]).expect("a send");
    }
    let mut buffer = [0; 2000];
    for number in 0..50_u8 {
        assert_eq!(server.recv(&mut buffer).expect("a datagram"), 1222);
        assert_eq!(buffer[0], number);
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(51), "{took:?}");
    assert_eq!(relay.report().forward.delivered.packets, 50);
}

#[test]
fn relay_dropped_not_forwarded() {
    let (client, server, relay) = path("rate=8M,queue=3000B,delay=5ms / perfect");
    for number in 0..10_u8 {
        client.send(&[number; 972]).expect("a send");
    }
    client.send(&[100]).expect("a send");
    let mut buffer = [0; 2000];
    // The first packet is sent while the others arrive. How much of the burst the queue holds depends on when the
    // thread wakes up, but the sum does not.
    let mut arrived = 0;
    while relay.report().forward.offered.packets < 11 || arrived < relay.report().forward.delivered.packets {
        server.recv(&mut buffer).expect("a datagram");
        arrived += 1;
    }
    let forward = relay.report().forward;
    assert_eq!(forward.offered.packets, forward.delivered.packets + forward.dropped_queue_full.packets);
    assert!(forward.dropped_queue_full.packets > 0, "{forward:?}");
    assert_eq!(relay.report().kernel_drops, 0);
}

#[test]
fn a_bundle_is_taken_apart() {
    let (client, server, relay) = path("delay=1ms");
    let state = UdpSocketState::new((&client).into()).expect("a socket state");
    let contents: Vec<u8> = (0..4_u8).flat_map(|number| [number; 500]).collect();
    let transmit = Transmit {
        destination: relay.address(),
        ecn: Some(EcnCodepoint::Ect0),
        contents: &contents,
        segment_size: Some(500),
        src_ip: None,
    };
    state.try_send((&client).into(), &transmit).expect("a send");
    let mut buffer = [0; 4000];
    for number in 0..4_u8 {
        assert_eq!(server.recv(&mut buffer).expect("a datagram"), 500);
        assert_eq!(buffer[0], number);
    }
    assert_eq!(relay.report().forward.offered, netsim::PacketCount { packets: 4, bytes: 4 * 528 });
}
