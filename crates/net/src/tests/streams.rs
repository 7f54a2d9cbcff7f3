//! Streams over pipes and over loopback: complete or visibly broken, bounded in both directions, and kept apart
//! whatever tags the peer uses.

use std::future::poll_fn;
use std::pin::Pin;

use tokio::io::{AsyncBufRead as _, AsyncRead as _, AsyncWrite as _, ReadBuf};

use super::*;
use crate::buffers::MAX_BUFFERED;
use crate::messages::NOT_ACCEPTED;

fn write(stream: &mut SendStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = block_on(poll_fn(|context| Pin::new(&mut *stream).poll_write(context, bytes)))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Writes as much as is taken without waiting.
fn write_some(stream: &mut SendStream, bytes: &[u8]) -> usize {
    let mut context = Context::from_waker(Waker::noop());
    match Pin::new(stream).poll_write(&mut context, bytes) {
        Poll::Ready(count) => count.unwrap(),
        Poll::Pending => 0,
    }
}

fn read(stream: &mut RecvStream, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let mut buffer = ReadBuf::new(&mut bytes);
    block_on(poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut buffer)))?;
    let count = buffer.filled().len();
    bytes.truncate(count);
    Ok(bytes)
}

/// Reads to the end, or to an error.
fn read_all(stream: &mut RecvStream) -> (Vec<u8>, Option<NetError>) {
    let mut all = Vec::new();
    loop {
        match read(stream, 100_000) {
            Ok(bytes) if bytes.is_empty() => return (all, None),
            Ok(bytes) => all.extend(bytes),
            Err(error) => return (all, Some(error.downcast().unwrap())),
        }
    }
}

fn connections() -> (Endpoint, End, Endpoint, End) {
    let joined = joined(sockets());
    block_on(joined.1.connection.established()).unwrap();
    joined
}

fn open(sending: &End, receiving: &End, tag: u64) -> (SendStream, RecvStream) {
    let send = block_on(sending.connection.open_uni_with(tag)).unwrap();
    let receive = block_on(receiving.connection.accept_uni()).unwrap();
    assert_eq!(receive.tag(), tag);
    (send, receive)
}

fn broken(result: io::Result<()>) -> NetError {
    result.unwrap_err().downcast().unwrap()
}

#[test]
fn written_bytes_are_read_to_the_end_in_both_directions() {
    let (_local, a, _remote, b) = connections();
    for (from, to) in [(&a, &b), (&b, &a)] {
        let bytes = pattern(12_000_001);
        let (mut send, mut receive) = open(from, to, 1);
        let expected = bytes.clone();
        let reader = thread::spawn(move || read_all(&mut receive));
        write(&mut send, &bytes).unwrap();
        send.finish();
        block_on(send.sent()).unwrap();
        assert!(matches!(broken(write(&mut send, b"more")), NetError::StreamClosed));
        let (read, end) = reader.join().unwrap();
        assert!(end.is_none() && read == expected, "{} bytes, {end:?}", read.len());
    }
}

#[test]
fn a_repeated_tag_is_another_stream() {
    let (_local, a, _remote, b) = connections();
    let (mut first, mut first_read) = open(&a, &b, 7);
    write(&mut first, b"one, ").unwrap();
    assert_eq!(read(&mut first_read, 100).unwrap(), b"one, ");
    let (mut second, mut second_read) = open(&a, &b, 7);
    write(&mut second, b"two").unwrap();
    write(&mut first, b"still one").unwrap();
    first.finish();
    second.finish();
    assert_eq!(read_all(&mut second_read).0, b"two");
    assert_eq!(read_all(&mut first_read).0, b"still one");
}

#[test]
fn a_stream_that_breaks_does_not_end() {
    let (_local, a, _remote, b) = connections();
    // Reset by its writer, on purpose or by dropping it.
    for code in [Some(9), None] {
        let (mut send, mut receive) = open(&a, &b, 1);
        write(&mut send, b"a part").unwrap();
        assert_eq!(read(&mut receive, 100).unwrap(), b"a part");
        if let Some(code) = code {
            send.reset(code);
        }
        drop(send);
        let expected = code.unwrap_or_default();
        assert!(
            matches!(read_all(&mut receive), (rest, Some(NetError::StreamReset { code })) if code == expected && rest.is_empty())
        );
    }
    // Stopped by its reader, on purpose or by dropping it.
    for code in [Some(9), None] {
        let (mut send, receive) = open(&a, &b, 1);
        match code {
            Some(code) => receive.stop(code),
            None => drop(receive),
        }
        let expected = code.unwrap_or_default();
        let stopped = block_on(send.sent()).unwrap_err();
        assert!(matches!(stopped, NetError::StreamStopped { code } if code == expected), "{stopped}");
        assert!(matches!(broken(write(&mut send, b"more")), NetError::StreamStopped { .. }));
    }
    // The connection ends.
    let (mut send, mut receive) = open(&a, &b, 1);
    write(&mut send, b"a part").unwrap();
    assert_eq!(read(&mut receive, 2).unwrap(), b"a ");
    a.connection.close(5, "enough");
    let (rest, end) = read_all(&mut receive);
    assert_eq!(rest, b"part");
    assert!(matches!(end, Some(NetError::ClosedByPeer { code: 5, .. })), "{end:?}");
    assert!(matches!(block_on(send.sent()), Err(NetError::ClosedLocally)));
    let opened = block_on(a.connection.open_uni_with(1)).err();
    assert!(matches!(opened, Some(NetError::ClosedLocally)), "{opened:?}");
    assert!(matches!(block_on(b.connection.accept_uni()), Err(NetError::ClosedByPeer { code: 5, .. })));
}

/// The writer knows that everything has arrived, so the connection is no longer needed; a slow reader still gets
/// everything.
#[test]
fn received_bytes_are_readable_after_the_close() {
    let (_local, a, _remote, b) = connections();
    let bytes = pattern(3_000_000);
    let (mut whole, mut whole_read) = open(&a, &b, 1);
    let (mut part, mut part_read) = open(&a, &b, 2);
    write(&mut part, b"a part").unwrap();
    write(&mut whole, &bytes).unwrap();
    whole.finish();
    block_on(whole.sent()).unwrap();
    a.connection.close(0, "");
    block_on(b.connection.closed());
    let (read, end) = read_all(&mut whole_read);
    assert!(read == bytes && end.is_none(), "{} bytes, {end:?}", read.len());
    assert!(matches!(read_all(&mut part_read), (_, Some(NetError::ClosedByPeer { .. }))));
}

#[test]
fn neither_side_buffers_without_bound() {
    let (_local, a, _remote, b) = connections();
    let (mut send, mut receive) = open(&a, &b, 1);
    let chunk = pattern(1 << 16);
    let (mut written, mut idle) = (0, Instant::now());
    // Until nothing more is taken: the receiver's credit is used up, and every buffer is full.
    while idle.elapsed() < Duration::from_millis(500) {
        let count = write_some(&mut send, &chunk);
        if count > 0 {
            (written, idle) = (written + count, Instant::now());
        }
        assert!(written < 256 << 20, "a writer feels nothing of a reader that does not read");
        thread::yield_now();
    }
    // The receiver's credit and the buffers of both: 256 symbols of its own and half of 16,000 shared ones.
    assert!((MAX_BUFFERED..16 << 20).contains(&written), "{written} bytes");
    let held = block_on(poll_fn(|context| Pin::new(&mut receive).poll_fill_buf(context).map_ok(<[u8]>::len))).unwrap();
    assert!(held <= MAX_BUFFERED, "{held} bytes");
    // It continues when the reader does, without losing bytes at the edges.
    send.finish();
    let (read, end) = read_all(&mut receive);
    assert!(end.is_none());
    assert_eq!(read.len(), written);
}

/// A read or a write dropped while it waits loses and repeats nothing.
#[test]
fn reads_that_are_cancelled_lose_nothing() {
    let (_local, a, _remote, b) = connections();
    let (mut send, mut receive) = open(&a, &b, 1);
    let bytes = pattern(3_000_000);
    let expected = bytes.clone();
    let writer = thread::spawn(move || {
        write(&mut send, &bytes).unwrap();
        send.finish();
        block_on(send.sent()).unwrap();
    });
    let mut all = Vec::new();
    let mut some = [0; 1000];
    while all.len() < expected.len() {
        let mut buffer = ReadBuf::new(&mut some);
        // Like a branch of a `select!` that loses.
        if Pin::new(&mut receive).poll_read(&mut Context::from_waker(Waker::noop()), &mut buffer).is_ready() {
            all.extend_from_slice(buffer.filled());
        }
    }
    writer.join().unwrap();
    assert!(all == expected);
    assert!(read_all(&mut receive).0.is_empty());
}

#[test]
fn an_endpoint_serves_many_connections_through_its_queue() {
    let bind = Bind::Address("127.0.0.1:0".parse().unwrap());
    let server = Endpoint::bind(&bind).unwrap();
    let client = Endpoint::bind(&bind).unwrap();
    let mut incoming = server.incoming(KEY, in_ten_minutes(), accept_options());
    let mut streams = Vec::new();
    for tag in 0..3 {
        let local = connect_to(&client, server.local_address());
        block_on(local.connection.established()).unwrap();
        let remote = block_on(incoming.accept()).unwrap();
        let mut send = block_on(local.connection.open_uni_with(tag)).unwrap();
        write(&mut send, &tag.to_be_bytes()).unwrap();
        send.finish();
        streams.push((local, send, block_on(remote.accept_uni()).unwrap(), remote));
    }
    for (tag, (_, _, stream, _)) in (0_u64..).zip(&mut streams) {
        assert_eq!((stream.tag(), read_all(stream).0), (tag, tag.to_be_bytes().to_vec()));
    }
    assert_eq!(block_on(server.refused()).unwrap().total(), 0);
    server.stop_listening();
    assert!(block_on(incoming.accept()).is_none());
    drop(server);
    let (local, ..) = streams.remove(0);
    let end = block_on(local.connection.closed());
    assert!(matches!(end, NetError::ClosedByPeer { .. }), "{end}");
}

#[test]
fn settings_change_while_a_connection_runs() {
    let (_local, a, _remote, _b) = connections();
    block_on(a.connection.set_profile_key("congestion", "reno")).unwrap();
    assert!(matches!(block_on(a.connection.set_profile_key("congestion", "none-such")), Err(NetError::Set(_))));
}

#[test]
fn unaccepted_peers_are_rejected() {
    let (a, b) = sockets();
    let (client, server) = (start(a), start(b));
    let incoming = server.incoming(KEY, in_ten_minutes(), accept_options());
    let early = connect(&client);
    block_on(early.connection.established()).unwrap();
    drop(incoming);
    let late = connect(&client);
    for end in [early, late] {
        let error = block_on(end.connection.closed());
        assert!(matches!(error, NetError::ClosedByPeer { code: 0x100, .. }), "{error}");
    }
}

/// Like a timeout that expires at once.
#[test]
fn a_stream_whose_opening_is_cancelled_takes_no_place() {
    let (_local, a, _remote, b) = connections();
    for tag in 0..200 {
        drop(pin!(a.connection.open_uni_with(tag)).poll(&mut Context::from_waker(Waker::noop())));
    }
    let mut send = block_on(a.connection.open_uni_with(1_000)).unwrap();
    write(&mut send, b"bytes").unwrap();
    send.finish();
    // The peer keeps the other streams, which therefore leave no room for another.
    let mut others = Vec::new();
    let mut receive = loop {
        let stream = block_on(b.connection.accept_uni()).unwrap();
        if stream.tag() == 1_000 {
            break stream;
        }
        others.push(stream);
    };
    assert_eq!(read_all(&mut receive).0, b"bytes");
}

#[test]
fn a_task_with_its_answer_is_released() {
    let (_local, a, _remote, _b) = connections();
    let (task, started) = (Arc::new(Unpark(thread::current())), Instant::now());
    for _ in 0..10 {
        let waker = Waker::from(Arc::clone(&task));
        let mut stats = pin!(a.connection.stats());
        while stats.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
            thread::park_timeout(PATIENCE);
        }
    }
    // The network thread may be about to drop the last one.
    while Arc::strong_count(&task) > 1 {
        assert!(started.elapsed() < PATIENCE, "{} wakers are left", Arc::strong_count(&task) - 1);
        thread::yield_now();
    }
}

#[test]
fn a_closed_peer_is_accepted_only_with_streams() {
    let (a, b) = sockets();
    let (client, server) = (start(a), start(b));
    let mut incoming = server.incoming(KEY, in_ten_minutes(), accept_options());
    let gone = connect(&client);
    block_on(gone.connection.established()).unwrap();
    gone.connection.close(0, "");
    let brief = connect(&client);
    block_on(brief.connection.established()).unwrap();
    let mut send = block_on(brief.connection.open_uni_with(1)).unwrap();
    write(&mut send, b"bytes").unwrap();
    send.finish();
    block_on(send.sent()).unwrap();
    brief.connection.close(0, "");
    let stays = connect(&client);
    block_on(stays.connection.established()).unwrap();
    let first = block_on(incoming.accept()).unwrap();
    assert_eq!(read_all(&mut block_on(first.accept_uni()).unwrap()).0, b"bytes");
    let second = block_on(incoming.accept()).unwrap();
    let _open = block_on(stays.connection.open_uni_with(2)).unwrap();
    assert_eq!(block_on(second.accept_uni()).unwrap().tag(), 2);
}

/// Opens a stream in both directions; returns both ends of it.
fn open_both(opening: &End, accepting: &End, tag: u64) -> (Stream, Stream) {
    let opened = block_on(opening.connection.open_with(tag)).unwrap();
    let accepted = block_on(accepting.connection.accept()).unwrap();
    assert_eq!((opened.tag(), accepted.tag()), (tag, tag));
    (opened, accepted)
}

#[test]
fn both_directions_carry_bytes_and_end_by_themselves() {
    let (_local, a, _remote, b) = connections();
    for (from, to) in [(&a, &b), (&b, &a)] {
        // Bytes written before it is accepted arrive, and tags may be the same.
        for text in [&b"first"[..], b"second"] {
            let (mut recv, mut send) = block_on(from.connection.open_with(7)).unwrap().into_split();
            write(&mut send, text).unwrap();
            send.finish();
            let (mut remote, mut back) = block_on(to.connection.accept()).unwrap().into_split();
            assert_eq!(read_all(&mut remote).0, text);
            write(&mut back, &pattern(300_000)).unwrap();
            back.finish();
            let (bytes, end) = read_all(&mut recv);
            assert!(bytes == pattern(300_000) && end.is_none(), "{} bytes, {end:?}", bytes.len());
            block_on(back.sent()).unwrap();
        }
    }
}

#[test]
fn a_rejected_or_aborted_stream_is_reported_in_both_directions() {
    let (_local, a, _remote, b) = connections();
    let (opened, accepted) = open_both(&a, &b, 1);
    accepted.abort(9);
    let (mut recv, mut send) = opened.into_split();
    assert!(matches!(read_all(&mut recv).1, Some(NetError::StreamReset { code: 9 })));
    assert!(matches!(block_on(send.sent()), Err(NetError::StreamStopped { code: 9 })));
    // An opener that reads no answer stops it when it arrives.
    let (recv, _send) = block_on(a.connection.open_with(2)).unwrap().into_split();
    recv.stop(8);
    let (_, mut back) = block_on(b.connection.accept()).unwrap().into_split();
    let stopped = block_on(back.sent()).unwrap_err();
    assert!(matches!(stopped, NetError::StreamStopped { .. }), "{stopped}");
    // No such stream was opened in both directions.
    let (_one_way, recv) = open(&a, &b, 3);
    let mut unasked = b.connection.open_reply(&recv, Priority::Auto);
    assert!(matches!(block_on(unasked.sent()), Err(NetError::StreamStopped { code: NOT_ACCEPTED })));
    // One answer is enough, and the second is no harm to the first.
    let opened = block_on(a.connection.open_with(4)).unwrap();
    let asked = block_on(b.connection.accept_uni()).unwrap();
    let [mut first, mut second] = [0, 1].map(|_| b.connection.open_reply(&asked, Priority::Auto));
    assert!(matches!(block_on(second.sent()), Err(NetError::StreamStopped { code: NOT_ACCEPTED })));
    drop(second);
    write(&mut first, b"one").unwrap();
    let (mut recv, _send) = opened.into_split();
    assert_eq!(read(&mut recv, 10).unwrap(), b"one");
    assert_eq!(a.stats().unexpected_answers, 3);
    // An answer has none.
    let mut no_answer = a.connection.open_reply(&recv, Priority::Auto);
    assert!(matches!(block_on(no_answer.sent()), Err(NetError::StreamClosed)));
    assert!(matches!(block_on(a.connection.open_with(1 << 63)), Err(NetError::Tag)));
    assert!(matches!(block_on(a.connection.open_uni_with(u64::MAX)), Err(NetError::Tag)));
    // The connection ends before the answer.
    let (mut recv, _send) = block_on(a.connection.open_with(4)).unwrap().into_split();
    let (waiting, _) = block_on(b.connection.accept()).unwrap().into_split();
    a.connection.close(5, "enough");
    assert!(matches!(read_all(&mut recv).1, Some(NetError::ClosedLocally)));
    drop(block_on(b.connection.closed()));
    let mut late = b.connection.open_reply(&waiting, Priority::Auto);
    assert!(matches!(block_on(late.sent()), Err(NetError::ClosedByPeer { code: 5, .. })));
}

/// A future dropped at any point loses no stream of the peer, and leaves none of its own behind.
#[test]
fn opening_and_accepting_can_be_cancelled() {
    let (_local, a, _remote, b) = connections();
    for tag in 0..200 {
        drop(pin!(b.connection.accept()).poll(&mut Context::from_waker(Waker::noop())));
        drop(pin!(a.connection.open_with(1_000 + tag)).poll(&mut Context::from_waker(Waker::noop())));
        let opened = block_on(a.connection.open_with(tag)).unwrap();
        // Cancelled ones are reset, before or after they are accepted.
        let accepted = loop {
            let accepted = block_on(b.connection.accept()).unwrap();
            if accepted.tag() < 1_000 {
                break accepted;
            }
        };
        assert_eq!((opened.tag(), accepted.tag()), (tag, tag));
        drop((opened, accepted));
    }
}

/// Whatever part of the request has arrived and been read, its answer is reset for the opener.
#[test]
fn an_opener_does_not_wait_for_an_answer_that_will_not_come() {
    let (_local, a, _remote, b) = connections();
    for (tag, is_read, is_dropped) in [(1, false, false), (2, true, false), (3, false, true), (4, true, true)] {
        let (mut recv, mut send) = block_on(a.connection.open_with(tag)).unwrap().into_split();
        write(&mut send, b"a question").unwrap();
        send.finish();
        block_on(send.sent()).unwrap();
        let (mut asked, back) = block_on(b.connection.accept()).unwrap().into_split();
        if is_read {
            assert_eq!(read_all(&mut asked).0, b"a question");
        }
        let code = if is_dropped { 0 } else { 9 };
        let mut back = back;
        if is_dropped {
            drop(asked);
        } else {
            back.reset(code);
            asked.stop(code);
        }
        drop(back);
        assert!(matches!(read_all(&mut recv).1, Some(NetError::StreamReset { code: seen }) if seen == code), "{tag}");
    }
}

#[test]
fn a_descriptor_is_a_socket() {
    use std::io::{Read as _, Write as _};
    use std::net::Shutdown;
    let (_local, a, _remote, b) = connections();
    let (opened, accepted) = open_both(&a, &b, 1);
    let [(mut near, near_end), (mut far, far_end)] = [opened, accepted].map(|stream| {
        let (fd, ended) = stream.into_fd().unwrap();
        (UnixStream::from(fd), ended)
    });
    let sent = pattern(3_000_000);
    let writer = {
        let (mut near, sent) = (near.try_clone().unwrap(), sent.clone());
        thread::spawn(move || {
            near.write_all(&sent).unwrap();
            near.shutdown(Shutdown::Write).unwrap();
        })
    };
    let mut received = Vec::new();
    far.read_to_end(&mut received).unwrap();
    assert!(received == sent, "{} bytes", received.len());
    writer.join().unwrap();
    // The other direction is open still; closing ends it.
    far.write_all(b"end of stream").unwrap();
    drop(far);
    let mut text = String::new();
    near.read_to_string(&mut text).unwrap();
    assert_eq!(text, "end of stream");
    assert!(matches!((block_on(near_end), block_on(far_end)), (Ok(()), Ok(()))));
    // Also where something was not read.
    let (opened, accepted) = open_both(&a, &b, 3);
    let (mut recv, mut send) = opened.into_split();
    write(&mut send, b"unread").unwrap();
    let (far, _) = accepted.into_fd().unwrap();
    let mut far = UnixStream::from(far);
    rustix::event::poll(&mut [rustix::event::PollFd::new(&far, rustix::event::PollFlags::IN)], None).unwrap();
    far.write_all(b"whole").unwrap();
    drop(far);
    assert!(matches!(read_all(&mut recv), (text, None) if text == b"whole"));
    // An aborted stream ends for a socket; the result has its error.
    let (opened, accepted) = open_both(&a, &b, 2);
    let (fd, mut ended) = opened.into_fd().unwrap();
    assert!(ended.try_get().is_none());
    accepted.abort(9);
    assert_eq!(UnixStream::from(fd).read(&mut [0; 10]).unwrap(), 0);
    let end = block_on(ended).unwrap_err();
    assert!(matches!(end, NetError::StreamReset { code: 9 } | NetError::StreamStopped { code: 9 }), "{end}");
}
