//! `downpour pipe`.

use downpour::remote::{self, Pipe};

use crate::args::PipeArgs;
use crate::exit::{Code, Failure};
use crate::limit::Limit;
use crate::{options, output};

/// Pipes; gives the exit code of the command.
pub(crate) fn run(args: PipeArgs) -> Result<u8, Failure> {
    if args.speed.limit.as_ref().is_some_and(Limit::changes) {
        return Err(Failure::new(Code::Usage, "a pipe has one limit, not a timetable: write --limit RATE"));
    }
    let pipe = Pipe {
        host: args.host,
        // As ssh joins them.
        command: args.command.join(" "),
        via: options::via(args.via),
        ssh: options::ssh(&args.ssh),
        ports: args.network.port.clone(),
        family: options::family(&args.network),
        profile: options::profile(&args.speed),
        dead_after: args.network.timeout,
    };
    let told = |line: &str| {
        if !args.quiet {
            output::err(line);
        }
    };
    Ok(remote::pipe(&pipe, told)?)
}
