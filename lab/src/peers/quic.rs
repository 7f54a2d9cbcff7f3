//! QUIC in the crate `quinn`: a file on one stream.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use quinn::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};

use super::own::{self, PeerMessage, QuicReceive, QuicSend};
use super::peer::{Peer, PeerKind};
use super::run::{TransferRun, Unfinished};

/// QUIC, encrypted.
const QUIC: Peer = Peer {
    name: "",
    needs: &[],
    encrypted: true,
    route_congestion: None,
    ecn: false,
    fixed_rate: false,
    clock: ["the sender is started", "the receiver's own stamp when the last byte is in its file"],
    play: PeerKind::File(|run| transfer(run, Congestion::Cubic)),
};

pub(super) const PEERS: &[Peer] = &[
    Peer { name: "quinn-cubic", ..QUIC },
    Peer { name: "quinn-bbr", play: PeerKind::File(|run| transfer(run, Congestion::Bbr)), ..QUIC },
];

/// A congestion control of the crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Congestion {
    /// CUBIC
    Cubic,
    /// BBR, which the crate calls experimental
    Bbr,
}

/// The most bytes in flight: no path of the lab holds more.
const WINDOW: u32 = 64 << 20;
/// The requested size; the kernel grants as much as it allows.
const SOCKET_BUFFER: usize = 16 << 20;
const CHUNK: usize = 1 << 20;
/// The name in the certificate.
const NAME: &str = "downpour-lab";
/// In the handshake, so that no other program is mistaken for the receiver.
const PROTOCOL: &[u8] = b"downpour-lab-file";

fn transfer(run: &mut TransferRun<'_>, congestion: Congestion) -> Result<Duration, Unfinished> {
    let certificate = format!("--certificate={}", run.stage.own("certificate").display());
    let mut receive = run.own("quic-receive");
    receive.arg(format!("--listen={}", run.at_receiver(0))).arg(&certificate);
    receive.arg(format!("--size={}", run.job.size)).arg(run.stage.target());
    let mut receiver = run.start_read(run.to, receive)?;
    let to = run.at_receiver(own::port(run, &mut receiver)?);
    let name = congestion.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let mut send = run.own("quic-send");
    send.arg(format!("--to={to}")).arg(format!("--congestion={name}")).arg(certificate).arg(run.stage.source());
    run.start_clock();
    let mut sender = run.start(run.from, send)?;
    own::complete(run, &mut receiver, &mut [&mut sender])
}

/// `downpour-lab peer quic-send`.
pub(super) fn send(args: &QuicSend) -> io::Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(fs::read(&args.certificate)?)).map_err(io::Error::other)?;
    let tls = ClientConfig::builder_with_provider(crypto::ring::default_provider().into())
        .with_protocol_versions(&[&quinn::rustls::version::TLS13])
        .map_err(io::Error::other)?;
    let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).map_err(io::Error::other)?));
    config.transport_config(transport(args.congestion).into());
    alone(async {
        let endpoint = endpoint((Ipv4Addr::UNSPECIFIED, 0).into(), None)?;
        let connection = endpoint.connect_with(config, args.to.into(), NAME).map_err(io::Error::other)?.await?;
        let (mut stream, mut answer) = connection.open_bi().await?;
        let mut file = File::open(&args.file)?;
        let mut chunk = vec![0; CHUNK];
        loop {
            match file.read(&mut chunk)? {
                0 => break,
                read => stream.write_all(&chunk[..read]).await?,
            }
        }
        stream.finish().map_err(io::Error::other)?;
        answer.read_to_end(0).await.map_err(io::Error::other)?;
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
        Ok(())
    })
}

/// `downpour-lab peer quic-receive`.
pub(super) fn receive(args: &QuicReceive) -> io::Result<()> {
    let own = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).map_err(io::Error::other)?;
    let certificate = own.cert.der().clone();
    fs::write(&args.certificate, &certificate)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let tls = ServerConfig::builder_with_provider(crypto::ring::default_provider().into())
        .with_protocol_versions(&[&quinn::rustls::version::TLS13])
        .map_err(io::Error::other)?;
    let mut tls = tls.with_no_client_auth().with_single_cert(vec![certificate], key).map_err(io::Error::other)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config =
        quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).map_err(io::Error::other)?));
    config.transport_config(transport(Congestion::Cubic).into());
    alone(async {
        let endpoint = endpoint(args.listen.into(), Some(config))?;
        let mut file = File::create_new(&args.file)?;
        PeerMessage::Listening(endpoint.local_addr()?.port()).print()?;
        let ended = || io::Error::other("no connection within the time limit");
        let connection = endpoint.accept().await.ok_or_else(ended)?.await?;
        let (mut answer, mut stream) = connection.accept_bi().await?;
        let mut left = args.size;
        while let Some(chunk) = stream.read_chunk(CHUNK, true).await? {
            let more = |left| format!("received {left} bytes more than the file's {}", args.size);
            let length = chunk.bytes.len() as u64;
            left = left.checked_sub(length).ok_or_else(|| io::Error::other(more(length - left)))?;
            file.write_all(&chunk.bytes)?;
        }
        if left > 0 {
            return Err(io::Error::other(format!("the file lacks {left} bytes")));
        }
        PeerMessage::complete_now().print()?;
        answer.finish().map_err(io::Error::other)?;
        connection.closed().await;
        Ok(())
    })
}

fn transport(congestion: Congestion) -> TransportConfig {
    let controller: Arc<dyn ControllerFactory + Send + Sync> = match congestion {
        Congestion::Cubic => Arc::new(CubicConfig::default()),
        Congestion::Bbr => Arc::new(BbrConfig::default()),
    };
    let mut config = TransportConfig::default();
    config.congestion_controller_factory(controller);
    config.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into()).send_window(WINDOW.into());
    config
}

fn endpoint(at: SocketAddr, server: Option<quinn::ServerConfig>) -> io::Result<Endpoint> {
    let socket = UdpSocket::bind(at)?;
    set_socket_recv_buffer_size(&socket, SOCKET_BUFFER)?;
    set_socket_send_buffer_size(&socket, SOCKET_BUFFER)?;
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
}

/// Runs `work` on this thread alone, like a program that moves one file.
fn alone(work: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
