//! `downpour verify`.

use downpour::remote::{self, Location};

use crate::args::Args;
use crate::copy::copy;
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::notices::Notices;
use crate::output::Output;
use crate::watch::{WatchOptions, begin, watch};

/// Compares; returns the exit code.
pub(crate) async fn run(args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    if let Some(Location::Local(path)) = args.places.last()
        && !path.as_os_str().is_empty()
        && path.symlink_metadata().is_err()
    {
        let message = format!("{} does not exist", path.display());
        return Err(Failure::new(Code::SourceAbsent, message));
    }
    let copy = copy(&args)?;
    let mut output = Output::new(args.output);
    let mut attention = interrupts.attend();
    let transfer = begin(&mut attention, || remote::copy(copy)).await?;
    output.start(args.command.name(), None, None)?;
    let conduct = WatchOptions { notices: Notices::Differences, ..WatchOptions::default() };
    let code = watch(transfer, conduct, &mut output, &mut attention).await?;
    Ok(if output.noticed() > 0 { Code::Other as u8 } else { code })
}
