//! `downpour verify`.

use downpour::files::{Compare, Modes};
use downpour::remote::{self, Location};

use crate::args::VerifyArgs;
use crate::copy::{Common, NamedLinks, scan};
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::notices::Notices;
use crate::output::Output;
use crate::watch::{Conduct, watch};

/// Compares; returns the exit code. A comparison is a copy that is not carried out: what it would do is how the two
/// sides differ.
pub(crate) async fn run(args: VerifyArgs, interrupts: &mut Interrupts) -> Result<u8, Failure> {
    if let Location::Local(path) = &args.b
        && !path.as_os_str().is_empty()
        && path.symlink_metadata().is_err()
    {
        let message = format!("{} does not exist: there is nothing to compare with", path.display());
        return Err(Failure::new(Code::SourceAbsent, message));
    }
    let scan = scan(&args.selection, true, NamedLinks::Follow)?;
    let common = Common { ssh: args.ssh, connection: args.connection, speed: args.speed, trace: args.trace };
    let mut copy = common.copy(vec![args.a], args.b, scan)?;
    copy.options.checksums = args.selection.checksums;
    copy.receive.compare = Compare::Checksum;
    copy.receive.modes = Modes::Exact;
    copy.receive.delete = Some((*copy.scan.filter).clone());
    (copy.receive.dry_run, copy.receive.compared) = (true, true);
    let mut output = Output::new(args.output);
    let transfer = remote::copy(copy)?;
    let mut attention = interrupts.attend();
    output.start("verify", None, None)?;
    let conduct = Conduct { notices: Notices::Differences, ..Conduct::default() };
    let code = watch(transfer, conduct, &mut output, &mut attention).await?;
    Ok(if output.noticed() > 0 { Code::Other as u8 } else { code })
}
