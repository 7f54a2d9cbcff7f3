//! `downpour recv`.

use downpour::files::{Permitted, ReceiveSpec};
use downpour::{CommonOptions, Peer, Profile, ReceiveOptions};

use crate::args::RecvArgs;
use crate::copy::{compare, existing};
use crate::exit::Failure;
use crate::interrupt::Interrupts;
use crate::options;
use crate::output::Output;
use crate::ticket::{self, Guest};
use crate::watch::{Conduct, OnOffer, watch};

/// Receives; returns the exit code.
pub(crate) async fn run(args: RecvArgs, interrupts: &mut Interrupts) -> Result<u8, Failure> {
    let peer = match args.listen {
        Some(address) => options::listen(address, false),
        None => {
            Peer::Connect(ticket::read(args.given.as_deref(), args.ticket.ticket_file.as_deref(), interrupts).await?)
        }
    };
    let options = ReceiveOptions {
        profile: Profile::auto(),
        // Without a question nothing has to wait for the answer: the bytes follow the names at once.
        confirm: !args.yes,
        common: CommonOptions {
            handshake_timeout: args.ticket.connect_timeout,
            endpoint: options::endpoint(args.ticket.timeout, args.memory),
            retry_for: None,
            checksums: None,
            qlog: args.trace.qlog,
            paths: None,
        },
    };
    let spec = ReceiveSpec {
        existing: existing(args.existing),
        compare: compare(args.checksum),
        safe_links: args.safe_links,
        trust_staging: args.trust_staging,
        differences: true,
        permitted: Permitted { max_bytes: args.quota, max_entries: args.max_files, ..Permitted::default() },
        ..ReceiveSpec::into_directory(args.into)
    };
    let transfer = downpour::receive(spec, peer, options)?;
    let mut attention = interrupts.attend();
    let mut output = Output::new(args.output);
    let ticket = ticket::publish(transfer.ticket(), args.ticket.ticket_file.as_deref(), Guest::Sender, &output)?;
    output.start("recv", None, ticket.as_deref())?;
    let offer = if args.yes { OnOffer::Tell } else { OnOffer::Ask };
    watch(transfer, Conduct { offer, ..Conduct::default() }, &mut output, &mut attention).await
}
