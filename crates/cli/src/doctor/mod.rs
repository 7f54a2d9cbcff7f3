//! `downpour doctor`.

mod advice;

use downpour::remote;
use downpour::remote::doctor::{DoctorEvent, DoctorOptions, Udp};

use crate::args::Args;
use crate::escape;
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::json::{self, JsonRecord};
use crate::options;
use crate::print::{err, out};
pub(crate) use advice::Advice;
use advice::{Requested, advise};

/// Items of advice that are shown; `--json` has all.
const MAX_ADVICE: usize = 5;

/// Examines a host; returns the exit code, which is 5 if UDP is blocked.
pub(crate) async fn run(mut args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    let ssh = options::ssh(&args);
    let host = args.host.take().unwrap_or_default();
    let mut doctor =
        DoctorOptions { ssh, target: args.paths.pop(), size: args.size, ..DoctorOptions::new(host.as_str()) };
    doctor.engine.profile = options::profile(&args.speed)?;
    doctor.engine.endpoint.max_memory = args.options.engine.endpoint.max_memory;
    doctor.path = args.path;
    let requested = Requested { ports: doctor.path.ports.clone(), size: doctor.size };
    let mut attention = interrupts.attend();
    let mut examination = remote::doctor(doctor)?;
    if !args.output.quiet && !args.output.json {
        err(format_args!("Examining {}. This takes about 10 s.", host));
    }
    let mut stopped = None;
    loop {
        let event = tokio::select! {
            event = examination.next() => event,
            stop = attention.next(), if stopped.is_none() => {
                stopped = Some(stop);
                                // The test files on the disks are removed first.
                examination.stop(stop.into());
                continue;
            }
        };
        match event {
            Some(DoctorEvent::Finding(finding)) if args.output.json => json::print(&JsonRecord::Finding(&finding)),
            Some(DoctorEvent::Finding(finding)) if args.output.verbose => err(escape::lines(&finding.to_string())),
            Some(DoctorEvent::Finding(_)) => {}
            Some(DoctorEvent::Done(result)) => {
                let checkup = match (result, stopped) {
                    (_, Some(stop)) => return Err(Failure::stopped(stop)),
                    (result, None) => result?,
                };
                let advice = advise(&checkup, &requested);
                if args.output.json {
                    json::print(&JsonRecord::Checkup { checkup: &checkup, advice: &advice });
                } else {
                    out(escape::lines(&format!("{checkup}{}", lines(&advice))));
                }
                return Ok(if matches!(checkup.udp, Udp::Open { .. }) { 0 } else { Code::Unreachable as u8 });
            }
            None => return Err(Failure::new(Code::Other, "internal error: the examination ended without a result")),
        }
    }
}

/// Returns a line for each of the first items.
fn lines(advice: &[Advice]) -> String {
    let line = |advice: &Advice| format!("\n{:<7} {}; run: {}", advice.side, advice.why, advice.command);
    let mut text: String = advice.iter().take(MAX_ADVICE).map(line).collect();
    if let Some(more @ 1..) = advice.len().checked_sub(MAX_ADVICE) {
        text += &format!("\n        and {more} more: see --json");
    }
    text
}
