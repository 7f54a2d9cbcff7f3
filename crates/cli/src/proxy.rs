//! `downpour proxy`, a ProxyCommand of ssh.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use downpour::remote::{self, HostOptions, Tunnel};
use downpour::tunnel::control::ControlDirectory;
use downpour::tunnel::{ConnectionEvent, Forward, ForwardAddress, ForwardTarget, Forwarding, TunnelEvent};
use tokio::sync::{mpsc, oneshot};

use crate::args::Args;
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::print;
use crate::{announce, background, escape, options, taken};

/// Time to report the end to the peer.
const CLOSE_TIME: Duration = Duration::from_millis(80);

/// Maximum bytes of one read.
const CHUNK: usize = 64 << 10;

/// The port of an ssh server.
const SSH: u16 = 22;

/// Carries stdin and stdout until the peer closes; returns the exit code.
pub(crate) async fn run(mut args: Args) -> Result<u8, Failure> {
    let mut reach = options::reach_by_tunnel(&mut args)?;
    reach.ssh = options::direct_ssh(&args);
    let failed = |error| Failure::new(Code::Other, format!("cannot create the socket directory: {error}"));
    let directory = ControlDirectory::of_user().map_err(failed)?;
    let port = args.server_port.unwrap_or(SSH);
    let own = |own: Option<u32>| directory.socket(&(&reach.host, port, &reach.ssh, reach.path.via, own));
    match args.tunnel.persist {
        None => carry_once(&own(Some(std::process::id())), reach, port, args.output.quiet).await,
        Some(_) if args.tunnel.in_background => keep(&own(None), reach, port, &args).await,
        Some(_) => match persistent(&own(None))? {
            Ok(socket) => carry(socket).await,
            Err(code) => Ok(code),
        },
    }
}

/// Returns a connection to the process that keeps the tunnel, which is started if necessary; or the exit code of that
/// process, which reports its errors itself.
fn persistent(path: &Path) -> Result<Result<UnixStream, u8>, Failure> {
    if let Ok(socket) = UnixStream::connect(path) {
        return Ok(Ok(socket));
    }
    let code = background::start("proxy")?;
    // If another process was faster, its tunnel serves as well.
    match UnixStream::connect(path) {
        Ok(socket) => Ok(Ok(socket)),
        Err(_) if code != Code::Done as u8 => Ok(Err(code)),
        Err(error) => Err(Failure::new(Code::Other, format!("cannot connect to the background process: {error}"))),
    }
}

/// Keeps the tunnel, in the background.
async fn keep(path: &Path, reach: HostOptions, port: u16, args: &Args) -> Result<u8, Failure> {
    let is_quiet = args.output.quiet;
    let show = move |event| match event {
        TunnelEvent::Open => {
            announce::tunnel(&event);
            background::ready();
        }
        event => print_event(event, is_quiet),
    };
    let mut tunnel = Tunnel { is_detached: true, is_found: true, ..tunnel(path, reach, port) };
    tunnel.forwarding.persist = args.tunnel.persist;
    let mut interrupts = taken(SignalHandlers::without_hang_up())?;
    let mut attention = interrupts.attend();
    remote::tunnel(tunnel, show, async { attention.next_in_background(true).await.into() }).await?;
    Ok(Code::Done as u8)
}

/// Carries one connection through a tunnel of its own.
async fn carry_once(path: &Path, reach: HostOptions, port: u16, is_quiet: bool) -> Result<u8, Failure> {
    let mut interrupts = taken(SignalHandlers::install())?;
    let mut attention = interrupts.attend();
    let (opened, mut is_open) = mpsc::channel(1);
    let show = move |event| match event {
        // The channel has room for this single event.
        TunnelEvent::Open => {
            announce::tunnel(&event);
            let _ = opened.try_send(());
        }
        event => print_event(event, is_quiet),
    };
    let carried = async {
        // If the tunnel does not open, its own end decides.
        if is_open.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        match UnixStream::connect(path) {
            Ok(socket) => carry(socket).await,
            Err(error) => Err(Failure::new(Code::Other, format!("cannot connect to the tunnel: {error}"))),
        }
    };
    let (leave, is_left) = oneshot::channel::<()>();
    let mut ended = None;
    let stop = async {
        ended = Some(tokio::select! {
            result = carried => result,
                        // ssh sends a hang-up when it no longer needs the proxy.
            signal = attention.next_or_hang_up() => match signal {
                Some(stop) => Err(Failure::stopped(stop)),
                None => Ok(Code::Done as u8),
            },
        });
        drop(leave);
        downpour::StopReason::Cancelled
    };
    let in_time = async {
        drop(is_left.await);
        tokio::time::sleep(CLOSE_TIME).await;
    };
    let result = tokio::select! {
        result = remote::tunnel(tunnel(path, reach, port), show, stop) => result,
        () = in_time => Ok(()),
    };
    match (ended, result) {
        (Some(ended), _) => ended,
        (None, Err(error)) => Err(error.into()),
        (None, Ok(())) => Ok(Code::Done as u8),
    }
}

fn print_event(event: TunnelEvent, is_quiet: bool) {
    announce::tunnel(&event);
    match event {
        TunnelEvent::Note(line) if !is_quiet => print::note(&line),
        TunnelEvent::Connection(_, ConnectionEvent::Refused { why }) => {
            print::warn(format_args!("connection failed: {}", escape::text(&why)));
        }
        _ => {}
    }
}

/// Returns the tunnel from a socket at `path` to the ssh server of the remote host.
fn tunnel(path: &Path, reach: HostOptions, port: u16) -> Tunnel {
    let to = ForwardTarget::Place(ForwardAddress::Tcp { host: "localhost".to_owned(), port });
    let forward = Forward { listen: ForwardAddress::Unix(PathBuf::from(path)), to };
    let forwarding = Forwarding { local: vec![forward], ..Forwarding::default() };
    Tunnel { forwarding, is_detached: false, is_found: false, reach }
}

/// Carries stdin to `socket`, and data from there to stdout, until the peer closes.
async fn carry(socket: UnixStream) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::new(Code::Other, format!("connection lost: {error}"));
    // Files, since the standard library would buffer incomplete lines.
    let open = |fd: BorrowedFd<'_>| fd.try_clone_to_owned().map(File::from).map_err(failed);
    let (mut input, mut output) = (open(io::stdin().as_fd())?, open(io::stdout().as_fd())?);
    let mut up = socket.try_clone().map_err(failed)?;
    thread::spawn(move || {
        // A peer that stops reading closes the other direction as well.
        let _ = copy(&mut input, &mut up);
        let _ = up.shutdown(Shutdown::Write);
    });
    let (sender, ended) = oneshot::channel();
    let mut down = socket;
    thread::spawn(move || {
        let copied = copy(&mut down, &mut output);
        // The receiver may have been dropped at the exit of the process.
        let _ = sender.send(copied);
    });
    match ended.await {
        // An ssh server sends a greeting: there is no server, or it is unreachable.
        Ok(Ok(0)) => {
            Err(Failure::new(Code::Other, "no data from the host's port: check that an ssh server listens there"))
        }
        Ok(Ok(_)) => Ok(Code::Done as u8),
        // A closed stdout is a normal end.
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Code::Done as u8),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err(Failure::new(Code::Other, "internal error: the thread that reads the connection has ended")),
    }
}

/// Copies until the end without delay; returns the number of bytes. `io::copy` would splice, and a splice that waits for
/// data locks the pipe, on which ssh would then block.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<u64> {
    let (mut buffer, mut bytes) = (vec![0; CHUNK], 0);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
