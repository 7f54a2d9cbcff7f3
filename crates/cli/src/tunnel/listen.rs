//! `downpour tunnel --listen`: the side that makes a ticket.

use downpour::tunnel::TicketListener;

use super::show::Shown;
use crate::args::{OutputArgs, TunnelArgs};
use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::output::Output;
use crate::taken;
use crate::ticket::{self, Guest};
use crate::{announce, options};

/// Serves those who have the ticket until Ctrl-C or SIGTERM, or until it has expired and the last of them has left.
pub(super) async fn run(mut args: TunnelArgs) -> Result<u8, Failure> {
    let mut interrupts = taken(Interrupts::without_hang_up())?;
    let shown = Shown::of(&args);
    let options = options::reach_by_tunnel(&mut args.reach, "")?.engine;
    let listener = TicketListener::listen(args.listen.flatten(), args.valid, args.permit, options)?;
    let mut attention = interrupts.attend();
    let output =
        Output::new(OutputArgs { json: args.json, quiet: args.reach.quiet, verbose: args.verbose, progress: None });
    let text = ticket::publish(
        Some(listener.ticket()),
        args.ticket_file.as_deref(),
        Guest::Tunnel { valid: args.valid },
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
