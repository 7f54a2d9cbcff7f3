//! A remote side that sends invalid messages.

use net::{RecvStream, SendStream, Stream};

use super::*;
use crate::tunnel::counts::Origin;

/// Opens a stream with this beginning, which is not finished yet.
async fn open_with(far: &Connection, beginning: &[u8]) -> Stream {
    let mut stream = far.open_with(0).await.unwrap();
    stream.write_all(beginning).await.unwrap();
    stream
}

/// Waits until the local side reads no more of a stream.
async fn stopped(mut send: SendStream) {
    while send.write_all(&[0; 1_000]).await.is_ok() {}
}

/// Reads the local side's reply.
async fn answered(stream: Stream) -> (ConnectReply, RecvStream, SendStream) {
    let (mut recv, send) = stream.into_split();
    (ConnectReply::read(&mut recv).await.unwrap(), recv, send)
}

/// Returns a connection of a local program, and the request for it as the peer receives it.
async fn wanted(port: u16, far: &Connection) -> (TcpStream, Stream) {
    let client = dial(port).await;
    let mut requested = far.accept().await.unwrap();
    ConnectRequest::read(&mut requested).await.unwrap();
    (client, requested)
}

#[tokio::test]
async fn tunnel_unrequested_counted_tunnel_continues() {
    let server = serve(echo).await;
    let mut ends = Ends::new(vec![ForwardTarget::Place(tcp("127.0.0.1", server))]).await;
    let far = ends.only_local().await;
    let place = ConnectRequest::Place(tcp("127.0.0.1", server)).encode().unwrap();
    let listener = |number| ConnectRequest::Listener(number).encode().unwrap();
    let refusals = [
        (place, Refusal::Forbidden),
        (listener(1), Refusal::Forbidden),
        (vec![9, 0, 80, 0, 0], Refusal::Failed),
        (vec![1, 0, 80, 0xff, 0xff], Refusal::Failed),
    ];
    for (beginning, expected) in refusals {
        let (answer, _, send) = answered(open_with(&far, &beginning).await).await;
        assert!(
            matches!(answer, ConnectReply::Refused(refusal, _) if refusal == expected),
            "{beginning:?}: {answer:?}"
        );
        stopped(send).await;
    }
    // Streams that are finished or reset in the middle of a request.
    let mut ended = open_with(&far, &[1, 0]).await;
    ended.finish();
    assert!(matches!(answered(ended).await.0, ConnectReply::Refused(Refusal::Failed, _)));
    let (mut recv, mut send) = open_with(&far, &[1, 0]).await.into_split();
    send.reset(7);
    assert!(matches!(ConnectReply::read(&mut recv).await.unwrap(), ConnectReply::Refused(Refusal::Failed, _)));
    let of_remote = || ends.local.counts.connections().map(|(_, figures)| figures)[Origin::Remote as usize];
    assert_eq!((of_remote().refused, of_remote().total()), (6, 6));
    let mut granted = open_with(&far, &[&listener(0)[..], b"hello"].concat()).await;
    granted.finish();
    let (answer, mut recv, _) = answered(granted).await;
    let mut echoed = String::new();
    recv.read_to_string(&mut echoed).await.unwrap();
    assert_eq!((answer, echoed.as_str()), (ConnectReply::Connected, "hello"));
    assert_eq!((of_remote().refused, of_remote().opened), (6, 1));
}

#[tokio::test]
async fn tunnel_invalid_reply_resets_one_connection() {
    let mut ends = Ends::new(vec![]).await;
    let far = ends.only_local().await;
    let port = ends.listen(ForwardTarget::Place(tcp("far.example", 80)));
    let (mut other, mut other_requested) = wanted(port, &far).await;
    for beginning in [&[][..], &[3, 0], &[3, 0xff, 0xff]] {
        let (mut client, mut requested) = wanted(port, &far).await;
        requested.write_all(beginning).await.unwrap();
        requested.finish();
        assert_eq!(broken(&mut client).await, io::ErrorKind::ConnectionReset, "{beginning:?}");
    }
    other_requested.write_all(&ConnectReply::Connected.encode()).await.unwrap();
    other_requested.finish();
    other.read_to_end(&mut Vec::new()).await.unwrap();
    let [local, _] = ends.local.counts.connections();
    assert_eq!((local.1.cut, local.1.opened), (3, 1));
}

#[tokio::test]
async fn tunnel_requests_beyond_limit_refused() {
    let mut ends = Ends::new(vec![ForwardTarget::Socks]).await;
    let far = ends.only_local().await;
    let port = ends.listen(ForwardTarget::Place(tcp("far.example", 80)));
    // They are incomplete: each waits for the rest.
    let mut begun = Vec::new();
    for _ in 0..480 {
        begun.push(open_with(&far, &[3]).await);
    }
    for _ in 0..20 {
        let (answer, ..) = answered(open_with(&far, &[3]).await).await;
        assert!(
            matches!(&answer, ConnectReply::Refused(Refusal::Failed, why) if why.contains("limit reached")),
            "{answer:?}"
        );
    }
    let (mut client, mut requested) = wanted(port, &far).await;
    requested.write_all(&[&ConnectReply::Connected.encode()[..], b"hello"].concat()).await.unwrap();
    requested.finish();
    let mut read = String::new();
    client.read_to_string(&mut read).await.unwrap();
    assert_eq!(read, "hello");
}
