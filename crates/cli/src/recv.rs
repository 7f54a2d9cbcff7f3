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
    let common = args.common;
    let peer = match args.listen {
        Some(address) => options::listen(address, false),
        None => Peer::Connect(ticket::read(args.ticket.as_deref(), common.ticket_file.as_deref(), interrupts).await?),
    };
    let options = ReceiveOptions {
        profile: Profile::auto(),
        confirm: true,
        handshake_timeout: common.connect_timeout,
        dead_after: common.timeout,
        qlog: common.qlog,
    };
    let transfer = downpour::receive(args.into, peer, options)?;
    let mut output = Output::new(common.output);
    let ticket = ticket::publish(transfer.ticket(), common.ticket_file.as_deref(), Guest::Sender, &output)?;
    output.start("recv", None, ticket.as_deref());
    let ask = !args.yes && prompt::is_possible();
    watch(transfer, Conduct { ask, keep: false }, &mut output, interrupts).await
}
