//! `downpour recv`.

use downpour::{Peer, Profile, ReceiveOptions};

use crate::args::RecvArgs;
use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::options;
use crate::output::Output;
use crate::prompt;
use crate::ticket::{self, Guest};
use crate::watch::{Conduct, watch};

/// Receives; gives the exit code.
pub(crate) async fn run(args: RecvArgs, interrupts: &mut Interrupts) -> Result<u8, Failure> {
    let peer = match args.listen {
        Some(address) => options::listen(address, false),
        None => {
            Peer::Connect(ticket::read(args.given.as_deref(), args.ticket.ticket_file.as_deref(), interrupts).await?)
        }
    };
    let options = ReceiveOptions {
        profile: Profile::auto(),
        confirm: true,
        handshake_timeout: args.ticket.connect_timeout,
        dead_after: args.ticket.timeout,
        qlog: args.trace.qlog,
    };
    let transfer = downpour::receive(args.into, peer, options)?;
    let mut output = Output::new(args.output);
    let ticket = ticket::publish(transfer.ticket(), args.ticket.ticket_file.as_deref(), Guest::Sender, &output)?;
    output.start("recv", None, ticket.as_deref());
    let ask = !args.yes && prompt::is_possible();
    watch(transfer, Conduct { ask, keep: false }, &mut output, interrupts).await
}
