//! `downpour tunnel --listen`: the side that creates a ticket.

use downpour::tunnel::TicketListener;

use super::show::Verbosity;
use crate::args::Args;
use crate::exit::Failure;
use crate::interrupt::SignalHandlers;
use crate::output::Output;
use crate::taken;
use crate::ticket::{self, ExpectedPeer};
use crate::{announce, options};

/// Serves the holders of the ticket until Ctrl-C or SIGTERM, or until it has expired and the last one has left.
pub(super) async fn run(mut args: Args) -> Result<u8, Failure> {
    let mut interrupts = taken(SignalHandlers::without_hang_up())?;
    let shown = Verbosity::of(&args);
    let options = options::reach_by_tunnel(&mut args)?.engine;
    let listener =
        TicketListener::listen(args.ticket.listen.flatten(), args.tunnel.valid, args.tunnel.permit, options)?;
    let mut attention = interrupts.attend();
    let output = Output::new(args.output);
    let text = ticket::publish(
        Some(listener.ticket()),
        args.ticket.file.as_deref(),
        ExpectedPeer::Tunnel { valid: args.tunnel.valid },
        &output,
    )?;
    output.start("tunnel", None, text.as_deref())?;
    let show = move |event| {
        announce::peer(&event);
        shown.show_peer(event);
    };
    let mut stopped = None;
    let stop = async {
        let stop = attention.next().await;
        stopped = Some(stop);
        stop.into()
    };
    let result = listener.serve(show, stop).await;
    super::ended(result, stopped)
}
