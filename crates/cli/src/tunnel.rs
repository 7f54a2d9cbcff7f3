//! `downpour tunnel`.

use downpour::remote::{self, Tunnel, TunnelEvent};
use downpour::tunnel::{Destination, Forward, Place};

use crate::args::TunnelArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::print::err;
use crate::taken;
use crate::{escape, options};

/// Keeps a tunnel open until Ctrl-C, SIGTERM or its end; returns the exit code. A hang-up ends the process, as it ends ssh.
pub(crate) async fn run(args: TunnelArgs) -> Result<u8, Failure> {
    let mut interrupts = taken(Interrupts::without_hang_up())?;
    let mut speed = args.speed;
    // Most of what goes through a tunnel is written a little at a time.
    speed.profile.set.insert(0, ("streams".to_owned(), "window".to_owned()));
    let profile = options::stream_profile(&speed, &args.overhead)?;
    let (host, is_quiet) = (args.host.clone(), args.quiet);
    let tunnel = Tunnel {
        local: args.local.into_iter().chain(args.proxy).collect(),
        remote: args.remote,
        via: options::via(args.via),
        ssh: options::ssh(&args.ssh),
        ports: args.network.port.clone(),
        family: options::family(&args.network),
        profile,
        endpoint: options::endpoint(args.network.timeout, speed.memory),
        host: args.host,
    };
    let show = move |event| {
        if !is_quiet {
            err(escape::text(&line(event, &host)));
        }
    };
    let mut stopped = None;
    let stop = async {
        let stop = interrupts.next().await;
        stopped = Some(stop);
        stop.into()
    };
    let result = remote::tunnel(tunnel, show, stop).await;
    match (result, stopped) {
        (_, Some(stop)) => Err(Failure::stopped(stop)),
        (Err(error), None) => Err(error.into()),
        (Ok(()), None) => Ok(Code::Done as u8),
    }
}

fn line(event: TunnelEvent, host: &str) -> String {
    match event {
        TunnelEvent::Note(line) => line,
        TunnelEvent::Listening(Forward { listen, to }, port) => {
            let listen = match (listen, port) {
                (Place::Tcp { host, port: 0 }, Some(port)) => Place::Tcp { host, port },
                (listen, _) => listen,
            };
            match to {
                Destination::Place(place) => format!("{listen} leads to {place}, seen from {host}"),
                Destination::Socks => format!("{listen} is a SOCKS proxy at {host}"),
            }
        }
        TunnelEvent::ListeningThere(Forward { listen, to }) => match to {
            Destination::Place(place) => format!("{listen} of {host} leads to {place}, seen from here"),
            Destination::Socks => format!("{listen} of {host} is a SOCKS proxy here"),
        },
        TunnelEvent::Open => format!("The tunnel to {host} is open."),
    }
}
