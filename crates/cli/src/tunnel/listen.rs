//! `downpour tunnel --listen`: the side that makes a ticket.

use downpour::tunnel::TicketListener;

use super::show::Verbosity;
use crate::args::Args;
use crate::exit::Failure;
use crate::interrupt::SignalHandlers;
use crate::output::Output;
use crate::taken;
use crate::ticket::{self, Guest};
use crate::{announce, options};

/// Serves those who have the ticket until Ctrl-C or SIGTERM, or until it has expired and the last of them has left.
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
        Guest::Tunnel { valid: args.tunnel.valid },
        &output,
    )?;
    output.start("tunnel", None, text.as_deref())?;
    let show = move |event| {
        announce::guest(&event);
        shown.show_guest(event);
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
