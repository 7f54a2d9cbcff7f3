//! What was typed. What it means is decided in [`crate::options`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use downpour::{Profile, Rate};
use netsim::Duplex;

use crate::{exit, rates};

/// Moves files fast over networks that lose packets: encrypted, checked end to end, over UDP with erasure codes.
#[derive(Debug, Parser)]
#[command(name = "downpour", version, after_long_help = exit::HELP, after_help = "`downpour --help` explains exit codes, rates and the environment.")]
#[command(disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send files and folders
    ///
    /// Waits for a `downpour recv` and prints the ticket that one asks for. The ticket is good for one complete fetch and for one hour.
    /// With --to it is the other way round: the ticket comes from a `downpour recv --listen`.
    Send(SendArgs),
    /// Receive files and folders
    ///
    /// Asks for the ticket that `downpour send` prints, says what is coming and where it goes, and asks. What exists already is never
    /// overwritten. With --listen it is the other way round: prints a ticket and waits for a `downpour send --to`.
    Recv(RecvArgs),
    /// Send a file through a bad network made up on this machine
    ///
    /// Two endpoints in this process talk real UDP through a relay that has the rate, the delay and the loss of --link. Shows the time the
    /// transfer takes, the least it could take, and what TCP's CUBIC with retransmission does on the same network.
    Demo(DemoArgs),
}

impl Command {
    /// What it shows.
    pub(crate) fn shown(&self) -> OutputArgs {
        match self {
            Self::Send(args) => args.common.output,
            Self::Recv(args) => args.common.output,
            Self::Demo(args) => args.output,
        }
    }
}

/// `downpour send`.
#[derive(Args, Debug)]
pub(crate) struct SendArgs {
    /// Files and folders to send
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Connect to a `downpour recv --listen`; asks for its ticket
    ///
    /// The ticket comes from --ticket-file, from DOWNPOUR_TICKET, or from the prompt. --to=TICKET works too, but everybody on this
    /// machine can read the arguments of a program while it runs.
    #[arg(long, num_args = 0..=1, require_equals = true, value_name = "TICKET", conflicts_with_all = ["listen", "keep"])]
    pub(crate) to: Option<Option<String>>,
    /// Where to wait for the receiver [default: a free port of every address]
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Keep the ticket good for more than one fetch, until Ctrl-C or the end of its hour
    #[arg(long)]
    pub(crate) keep: bool,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// `downpour recv`.
#[derive(Args, Debug)]
pub(crate) struct RecvArgs {
    /// The ticket; better given at the prompt, by --ticket-file or by DOWNPOUR_TICKET
    ///
    /// Everybody on this machine can read the arguments of a program while it runs.
    #[arg(value_name = "TICKET", conflicts_with = "listen")]
    pub(crate) ticket: Option<String>,
    /// The folder that what comes is put into
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) into: PathBuf,
    /// Take what comes without asking
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Wait for a `downpour send --to` and print the ticket it asks for
    #[arg(long, num_args = 0..=1, value_name = "ADDR:PORT", value_parser = listen_address)]
    pub(crate) listen: Option<Option<SocketAddr>>,
    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

/// `downpour demo`.
#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// The file or folder to send [default: a generated file]
    #[arg(value_name = "PATH", conflicts_with = "size")]
    pub(crate) path: Option<PathBuf>,
    /// Size of the generated file
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "50MB")]
    pub(crate) size: u64,
    /// The network: KEY=VALUE,..., or two of them with ` / ` between for the way there and the way back
    ///
    /// Keys: rate, delay, jitter, queue, loss, burst, reorder, duplicate, corrupt, mark, mark-above, seed. The delay is one way.
    #[arg(long, value_name = "LINK", default_value = DEMO_LINK)]
    pub(crate) link: Duplex,
    /// The rate the sender is told [default: the link's]
    #[arg(long, value_parser = rates::parse)]
    pub(crate) rate: Option<Rate>,
    /// Leave out the comparison with CUBIC
    #[arg(long)]
    pub(crate) no_compare: bool,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The network of the demo unless `--link` says another: 100 Mbit/s, 100 ms there and back, one packet in twenty lost each way.
const DEMO_LINK: &str = "rate=100M,delay=50ms,loss=5%,queue=256KB";

/// How fast a sender sends.
#[derive(Args, Debug)]
pub(crate) struct SpeedArgs {
    /// Send at exactly this rate, which you know the path has (100M, 12MB/s): fastest, and unfair if it has less
    ///
    /// Counts whole IP packets. Without it the sender finds out by itself and shares the path.
    #[arg(long, value_name = "RATE", value_parser = rates::parse)]
    pub(crate) rate: Option<Rate>,
    /// Never send faster than this
    #[arg(long, value_name = "RATE", value_parser = rates::parse)]
    pub(crate) limit: Option<Rate>,
    /// How to send: auto, or arq (retransmission only, as TCP does)
    #[arg(long, value_name = "NAME", value_parser = profile, default_value = "auto")]
    pub(crate) profile: Profile,
}

/// What every transfer understands.
#[derive(Args, Debug)]
pub(crate) struct CommonArgs {
    /// Where the listening side writes the ticket (mode 0600), and the connecting side reads it
    #[arg(long, value_name = "FILE")]
    pub(crate) ticket_file: Option<PathBuf>,
    /// How long the connecting side waits for an answer, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = timeout, default_value = "10")]
    pub(crate) connect_timeout: Duration,
    /// Give up when the other side has been silent for so long, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = timeout, default_value = "30")]
    pub(crate) timeout: Duration,
    /// Write a trace of the connection (qlog, JSON-SEQ)
    #[arg(long, value_name = "FILE")]
    pub(crate) qlog: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is shown.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct OutputArgs {
    /// Tell the story on stdout as JSON, one object a line
    ///
    /// Every object has "v":1 and a "type": start, path, progress, file, summary, demo or error.
    #[arg(long)]
    pub(crate) json: bool,
    /// Say nothing but errors (and the ticket)
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Say more: every file, the addresses, the counts of the connection
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

/// `192.0.2.1:4000`, `[2001:db8::1]:4000`, or `:4000` for every address.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let whole = if text.starts_with(':') { format!("[::]{text}") } else { text.to_owned() };
    whole
        .parse()
        .map_err(|_| format!("{text:?} is not an address: write one such as 192.0.2.1:4000, [2001:db8::1]:4000, or :4000 for every address"))
}

fn profile(name: &str) -> Result<Profile, String> {
    Profile::named(name).map_err(|error| error.to_string())
}

/// Seconds, with a fraction or without.
fn timeout(text: &str) -> Result<Duration, String> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{text:?} is not a time: write seconds above 0, such as 10 or 0.5"))
}

/// `10MB`, `1.5 GB`, `64KiB` or bytes.
fn size(text: &str) -> Result<u64, String> {
    let refused = || format!("{text:?} is not a size: write one such as 10MB, 1.5GB or 64KiB");
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..unit_at].parse().map_err(|_| refused())?;
    let scale: u64 = match text[unit_at..].trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(refused()),
    };
    Ok((number * scale as f64) as u64)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(std::iter::once("downpour").chain(line.split_whitespace())).map(|cli| cli.command)
    }

    fn send(line: &str) -> SendArgs {
        match parse(line) {
            Ok(Command::Send(args)) => args,
            other => panic!("{line:?} gave {other:?}"),
        }
    }

    fn recv(line: &str) -> RecvArgs {
        match parse(line) {
            Ok(Command::Recv(args)) => args,
            other => panic!("{line:?} gave {other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn to_takes_no_path_for_a_ticket() {
        let args = send("send a --to b");
        assert_eq!(args.paths, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(args.to, Some(None));
        assert_eq!(send("send a --to=T").to, Some(Some("T".to_owned())));
        assert_eq!(send("send a").to, None);
    }

    #[test]
    fn either_side_listens() {
        assert_eq!(recv("recv --listen").listen, Some(None));
        assert_eq!(recv("recv --listen --into x").listen, Some(None));
        let every = "[::]:4000".parse().expect("an address");
        assert_eq!(recv("recv --listen :4000").listen, Some(Some(every)));
        assert_eq!(send("send a --listen :4000").listen, Some(every));
        let error = parse("recv --listen nonsense").expect_err("nonsense").to_string();
        assert!(error.contains("192.0.2.1:4000"), "{error}");
    }

    #[test]
    fn defaults() {
        let args = recv("recv");
        assert_eq!(args.into, PathBuf::from("."));
        assert_eq!(args.common.connect_timeout, Duration::from_secs(10));
        assert!(!args.yes && args.ticket.is_none() && args.listen.is_none());
        let Ok(Command::Demo(demo)) = parse("demo") else { panic!("demo") };
        assert_eq!(demo.size, 50_000_000);
        assert_eq!(demo.link.forward.delay, Duration::from_millis(50));
        assert!((demo.link.backward.loss.mean() - 0.05).abs() < 1e-9);
    }

    #[test]
    fn numbers_with_units() {
        let args = send("send a --rate 100M --limit 12MB/s --connect-timeout 0.5");
        assert_eq!(args.speed.rate.map(Rate::bits_per_second), Some(100_000_000));
        assert_eq!(args.speed.limit.map(Rate::bits_per_second), Some(96_000_000));
        assert_eq!(args.common.connect_timeout, Duration::from_millis(500));
        for (text, bytes) in [("10MB", 10_000_000), ("1.5 GB", 1_500_000_000), ("64KiB", 65_536), ("7", 7), ("0", 0)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "10M", "10 mb", "-1", "1e9"] {
            assert!(size(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "soon", "nan", "1e300"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_does_not_go_together() {
        for (line, kind) in [
            ("send", ErrorKind::MissingRequiredArgument),
            ("send a --to --listen :1", ErrorKind::ArgumentConflict),
            ("send a --to --keep", ErrorKind::ArgumentConflict),
            ("recv T --listen", ErrorKind::ArgumentConflict),
            ("send a -q -v", ErrorKind::ArgumentConflict),
            ("demo a --size 1MB", ErrorKind::ArgumentConflict),
            ("send a --rate 12MB", ErrorKind::ValueValidation),
            ("send a --profile fast", ErrorKind::ValueValidation),
            ("demo --link rate=fast", ErrorKind::ValueValidation),
            ("recv --rate 100M", ErrorKind::UnknownArgument),
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!(error.kind(), kind, "{line}: {error}");
            assert_eq!(error.exit_code(), 2, "{line}");
        }
    }
}
