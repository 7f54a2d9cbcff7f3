//! `downpour bootstrap`, and its offer by other commands if the remote host has no downpour.

use std::io::{self, IsTerminal as _};

use downpour::Family;
use downpour::remote::{self, Bootstrap, BootstrapEvent, SshOptions};

use crate::args::{Args, Command, WhenMissing};
use crate::exit::{Code, Failure};
use crate::interrupt::SignalHandlers;
use crate::print::{self, err};
use crate::prompt::Question;
use crate::{escape, options};

/// Copies the program; returns the exit code.
pub(crate) async fn run(args: Args, interrupts: &mut SignalHandlers) -> Result<u8, Failure> {
    let (ssh, family) = (options::ssh(&args), args.path.family);
    let host = args.host.unwrap_or_default();
    let bootstrap = Bootstrap { host, ssh, family, to: args.bootstrap.to, from: args.bootstrap.from };
    copy(bootstrap, args.output.quiet, interrupts).await?;
    Ok(Code::Done as u8)
}

async fn copy(bootstrap: Bootstrap, is_quiet: bool, interrupts: &mut SignalHandlers) -> Result<(), Failure> {
    let host = bootstrap.host.clone();
    let show = move |event| {
        let line = match event {
            BootstrapEvent::Note(line) if !is_quiet => return print::note(&line),
            BootstrapEvent::Note(_) => return,
            BootstrapEvent::Copying { bytes, to } => {
                format!("Copying downpour ({}) to {to} on {host}", units::bytes(bytes))
            }
            BootstrapEvent::Installed(path) => format!("Installed {path} on {host}"),
        };
        if !is_quiet {
            err(escape::text(&line));
        }
    };
    let (mut attention, mut stopped) = (interrupts.attend(), None);
    let stop = async {
        let stop = attention.next().await;
        stopped = Some(stop);
        stop.into()
    };
    let result = remote::bootstrap(bootstrap, show, stop).await;
    match stopped {
        Some(stop) => Err(Failure::stopped(stop)),
        None => Ok(result?),
    }
}

/// The offer of a command to install downpour if the remote host lacks it.
#[derive(Debug)]
pub(crate) struct Offer {
    ssh: SshOptions,
    family: Family,
    must_ask: bool,
}

impl Offer {
    /// Returns the offer of a command; `None` if it makes none, or could not run again.
    pub(crate) fn of(args: &Args) -> Option<Self> {
        let (ssh, may_ask) = match args.command {
            // The list on stdin has been read.
            Command::Cp | Command::Sync | Command::Verify if args.reads_stdin() => return None,
            Command::Cp | Command::Sync | Command::Verify | Command::Doctor => (options::ssh(args), !args.output.json),
            Command::Tunnel => (options::ssh(args), !args.output.json && !args.tunnel.in_background),
            // Their stdin is data.
            Command::Pipe => (options::ssh(args), false),
            Command::Proxy => (options::direct_ssh(args), false),
            Command::Send
            | Command::Recv
            | Command::Bootstrap
            | Command::Clean
            | Command::Status
            | Command::Demo
            | Command::ProfileList
            | Command::ProfileShow
            | Command::ProfileDiff
            | Command::Completions
            | Command::Man
            | Command::Complete
            | Command::Remote => return None,
        };
        let can_ask = || may_ask && io::stdin().is_terminal() && io::stderr().is_terminal();
        let must_ask = match args.when_missing {
            WhenMissing::Never => return None,
            WhenMissing::Ask if !can_ask() => return None,
            when => when == WhenMissing::Ask,
        };
        // The offer is only for the default path.
        let ssh = Some(ssh).filter(|ssh| ssh.remote_program.is_none())?;
        Some(Self { ssh, family: args.path.family, must_ask })
    }

    /// Copies the program to `host` if the user agrees; returns whether it was copied.
    pub(crate) async fn make(self, host: &str, interrupts: &mut SignalHandlers) -> Result<bool, Failure> {
        let Self { ssh, family, must_ask } = self;
        err(escape::text(&format!("downpour not found on {host}. It can be installed in ~/.local/bin.")));
        if must_ask {
            let mut attention = interrupts.attend();
            let mut question = Question::ask("Install it?");
            let is_wanted = tokio::select! {
                answer = question.answer() => answer.unwrap_or(false),
                stop = attention.next() => {
                    question.withdraw();
                    return Err(Failure::stopped(stop));
                }
            };
            if !is_wanted {
                return Ok(false);
            }
        }
        copy(Bootstrap { host: host.to_owned(), ssh, family, to: None, from: None }, false, interrupts).await?;
        Ok(true)
    }
}
