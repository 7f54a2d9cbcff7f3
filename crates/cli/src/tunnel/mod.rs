//! `downpour tunnel`.

mod listen;
mod show;

use downpour::remote::{self, Tunnel};
use downpour::tunnel::control::ControlDirectory;
use downpour::tunnel::{Forwarding, TunnelEvent};

use crate::args::{Args, TunnelControl};
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::print::out;
use crate::stop_signal::StopSignal;
use crate::{announce, background, options, taken, ticket};
use show::Verbosity;

/// Keeps a tunnel open until Ctrl-C, SIGTERM or its end, or controls open tunnels; returns the exit code. A hang-up ends the
/// process, as it ends ssh.
pub(crate) async fn run(args: Args) -> Result<u8, Failure> {
    let no_host =
        |option| Failure::new(Code::Usage, format!("{option} needs a host: downpour tunnel {option} ... HOST"));
    match (args.tunnel.control, &args.host) {
        (Some(request), Some(host)) => control(request, host),
        (Some(_), None) => Err(no_host("-O")),
        (None, None) if !args.tunnel.remote.is_empty() => Err(no_host("-R")),
        (None, None) if args.ticket.listen.is_none() && args.path.via == remote::CarrierChoice::Ssh => {
            Err(no_host("--via ssh"))
        }
        // clap does not check a required option that another option excludes.
        (None, _) if args.ticket.listen.is_none() && !args.tunnel.permit.is_empty() => {
            Err(Failure::new(Code::Usage, "--permit needs --listen"))
        }
        (None, _) if args.ticket.listen.is_some() => listen::run(args).await,
        (None, None) if args.tunnel.background && args.ticket.file.is_none() && !ticket::is_in_environment() => {
            Err(Failure::new(Code::Usage, "-f cannot prompt for a ticket: use --ticket-file"))
        }
        (None, _) if args.tunnel.background && !args.tunnel.in_background => background::start("tunnel"),
        (None, _) => open(args).await,
    }
}

async fn open(mut args: Args) -> Result<u8, Failure> {
    let mut interrupts = taken(SignalHandlers::without_hang_up())?;
    let shown = Verbosity::of(&args);
    let in_background = args.tunnel.in_background;
    let named = args.host.clone().unwrap_or_else(|| "the peer".to_owned());
    let show = move |event| {
        let is_open = matches!(event, TunnelEvent::Open);
        announce::tunnel(&event);
        shown.show(event, &named);
        if is_open && in_background {
            background::ready();
        }
    };
    let reach = options::reach_by_tunnel(&mut args)?;
    let forwarding = Forwarding {
        local: args.tunnel.local.into_iter().chain(args.tunnel.proxy).collect(),
        remote: args.tunnel.remote,
        is_eager: args.tunnel.eager,
        metrics: args.tunnel.metrics,
        persist: args.tunnel.persist,
    };
    let by_ticket = match &args.host {
        Some(_) => None,
        None => Some(ticket::read(None, args.ticket.file.as_deref(), &mut interrupts).await?),
    };
    let (mut attention, mut stopped) = (interrupts.attend(), None);
    let stop = async {
        let stop = attention.next_in_background(in_background).await;
        stopped = Some(stop);
        stop.into()
    };
    let result = match by_ticket {
        Some(ticket) => {
            downpour::tunnel::connect(ticket, forwarding, reach.engine, args.options.handshake_timeout, show, stop)
                .await
        }
        None => {
            let tunnel = Tunnel { forwarding, is_detached: in_background, is_found: true, reach };
            remote::tunnel(tunnel, show, stop).await
        }
    };
    ended(result, stopped)
}

/// Returns the exit code of a tunnel that has ended, or was stopped.
fn ended(result: Result<(), downpour::Error>, stopped: Option<StopSignal>) -> Result<u8, Failure> {
    match (result, stopped) {
        (_, Some(stop)) => Err(Failure::stopped(stop)),
        (Err(error), None) => Err(error.into()),
        (Ok(()), None) => Ok(Code::Done as u8),
    }
}

/// Lists or stops the running tunnels to `host`.
fn control(request: TunnelControl, host: &str) -> Result<u8, Failure> {
    let failed = |error| Failure::new(Code::Other, format!("cannot list tunnels: {error}"));
    let running = ControlDirectory::of_user().and_then(|directory| directory.tunnels_to(host)).map_err(failed)?;
    if running.is_empty() {
        return Err(Failure::new(Code::Other, format!("no running tunnel to {host}")));
    }
    let mut unstopped = Vec::new();
    for tunnel in running {
        let pid = tunnel.pid();
        match request {
            TunnelControl::Check => out(format_args!("tunnel to {host}: running, process {pid}")),
            TunnelControl::Exit => match tunnel.end() {
                Ok(()) => out(format_args!("tunnel to {host}: stopped, process {pid}")),
                Err(_) => unstopped.push(pid.to_string()),
            },
        }
    }
    match unstopped.as_slice() {
        [] => Ok(Code::Done as u8),
        pids => Err(Failure::new(Code::Other, format!("cannot stop these processes: {}", pids.join(", ")))),
    }
}
