//! `bootstrap`, `clean`, `status`, `doctor`, `pipe`, `tunnel`, `proxy`, `profile`, `completions`, `man` and `remote`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use clap_complete::Shell;
use downpour::tunnel::{Forward, Permit, Place};

use super::groups::{NetworkArgs, OutputArgs, ReachArgs, SpeedArgs, SshArgs};
use super::values;
use super::values::ProfileChoice;

/// `downpour doctor`.
#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// The remote host: USER@HOST
    #[arg(help = "The remote host: [USER@]HOST", value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    /// Remote target folder, whose disk is measured [default: the home folder]
    #[arg(value_name = "DIR")]
    pub(crate) target: Option<PathBuf>,
    /// Estimate the time of a transfer of this size [default: a few common sizes]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub(crate) size: Option<u64>,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    #[command(flatten)]
    pub(crate) network: NetworkArgs,
    #[command(flatten)]
    pub(crate) speed: SpeedArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `downpour bootstrap`.
#[derive(Args, Debug)]
#[command(mut_arg("bootstrap", |when| when.hide(true)), mut_arg("remote_bin", |program| program.hide(true)))]
pub(crate) struct BootstrapArgs {
    /// The remote host: USER@HOST
    #[arg(help = "The remote host: [USER@]HOST", value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    /// Where to put it on the remote host [default: ~/.local/bin/downpour]
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: Option<String>,
    /// The program to copy, for hosts of another kind [default: this one]
    #[arg(long, value_name = "FILE", value_parser = values::path())]
    pub(crate) from: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
    /// Use IPv4 only
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "The connection")]
    pub(crate) ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long, help_heading = "The connection")]
    pub(crate) ipv6: bool,
    /// Print only errors
    #[arg(short, long, help_heading = "What is shown")]
    pub(crate) quiet: bool,
}

/// `downpour clean`.
#[derive(Args, Debug)]
pub(crate) struct CleanArgs {
    /// Folders to search; without any: the current one, and that for targets which cannot be written themselves
    #[arg(value_name = "DIR", value_parser = values::path())]
    pub(crate) folders: Vec<PathBuf>,
    /// Search all folders below on the same file system, too
    #[arg(short = 'r', long)]
    pub(crate) search_below: bool,
    /// Remove what is listed, unless a transfer uses it
    #[arg(long)]
    pub(crate) remove: bool,
    /// Only what was not used for this long, such as 30d
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    pub(crate) older_than: Option<Duration>,
    /// Print JSON, one object per line
    #[arg(long, help_heading = "What is shown")]
    pub(crate) json: bool,
}

/// `downpour status`.
#[derive(Args, Debug)]
pub(crate) struct StatusArgs {
    /// Only the transfer of this process
    #[arg(value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Print JSON, one object per line
    #[arg(long, help_heading = "What is shown")]
    pub(crate) json: bool,
}

/// `downpour pipe`.
#[derive(Args, Debug)]
pub(crate) struct PipeArgs {
    /// The remote host: USER@HOST
    #[arg(help = "The remote host: [USER@]HOST", value_name = "HOST", value_parser = values::host)]
    pub(crate) host: String,
    /// Command to run on the remote host, as with ssh; all further arguments belong to it
    #[arg(required = true, value_name = "CMD", trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) command: Vec<String>,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// `downpour tunnel`.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("forwards").required(true).multiple(true).args(["local", "remote", "proxy", "control", "listen"]))]
#[command(mut_arg("timeout", |timeout| timeout.default_value("1d")))]
pub(crate) struct TunnelArgs {
    /// The remote host: USER@HOST; without it, the maker of a ticket is connected to
    #[arg(
        help = "The remote host: [USER@]HOST; without it, the other side is found by its ticket",
        value_name = "HOST"
    )]
    #[arg(value_parser = values::host, conflicts_with_all = ["listen", "ticket_file"])]
    pub(crate) host: Option<String>,
    /// Wait for others who connect with a ticket, which is printed, and connect them from here to what is permitted
    #[arg(long, num_args = 0..=1, value_name = "ADDR:PORT", value_parser = values::listen_address, requires = "permit")]
    #[arg(help_heading = "By ticket")]
    #[arg(conflicts_with_all = ["local", "remote", "proxy", "control", "persist", "metrics", "eager", "background"])]
    pub(crate) listen: Option<Option<SocketAddr>>,
    /// Where those with the ticket may connect to: HOST:PORT, HOST:*, the path of a unix socket, or any
    ///
    /// Names are compared as they are asked for: `localhost:80` does not permit `127.0.0.1:80`.
    #[arg(long, value_name = "PLACE", value_parser = values::permit, requires = "listen", help_heading = "By ticket")]
    pub(crate) permit: Vec<Permit>,
    /// How long others can connect with the ticket; who has connected stays
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "1h", help_heading = "By ticket")]
    pub(crate) valid: Duration,
    /// File that the listening side writes the ticket to (mode 0600) and the connecting side reads it from
    #[arg(long, value_name = "FILE", help_heading = "By ticket", value_parser = values::path())]
    pub(crate) ticket_file: Option<PathBuf>,
    /// How long to wait for an answer when connecting with a ticket
    #[arg(long, value_name = "TIME", value_parser = values::time, default_value = "10", help_heading = "By ticket")]
    pub(crate) connect_timeout: Duration,
    /// Listen here, and connect from the remote host: [BIND:]PORT:HOST:PORT, or paths of unix sockets
    #[arg(short = 'L', long, value_name = "SPEC", value_parser = values::local_forward, help_heading = "Forwards")]
    pub(crate) local: Vec<Forward>,
    /// Listen on the remote host, and connect from here; [BIND:]PORT alone is a SOCKS proxy there
    #[arg(short = 'R', long, value_name = "SPEC", value_parser = values::remote_forward, help_heading = "Forwards")]
    pub(crate) remote: Vec<Forward>,
    /// Listen here as a SOCKS proxy, whose names are resolved on the remote host
    #[arg(short = 'D', long, value_name = "[BIND:]PORT", value_parser = values::proxy_forward, help_heading = "Forwards")]
    pub(crate) proxy: Vec<Forward>,
    /// Tell programs of -D that they are connected before they are, which saves a round trip; what the remote host
    /// cannot reach is then reset instead of refused
    #[arg(long, requires = "proxy", help_heading = "Forwards")]
    pub(crate) eager: bool,
    /// Go on in the background once the tunnel is open
    #[arg(short = 'f', long, help_heading = "While it runs")]
    pub(crate) background: bool,
    /// End the tunnel once no connection has been open for this long, such as 10m
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "While it runs")]
    pub(crate) persist: Option<Duration>,
    /// Serve metrics for Prometheus at http://localhost:PORT/metrics, or at another address of this machine
    #[arg(long, value_name = "[BIND:]PORT", value_parser = values::listening, help_heading = "While it runs")]
    pub(crate) metrics: Option<Place>,
    /// Show the tunnels to this host that run, or end them
    #[arg(
        short = 'O', long, value_name = "WHAT", value_enum, help_heading = "While it runs",
        conflicts_with_all = ["local", "remote", "proxy", "eager", "background", "persist", "metrics"],
    )]
    pub(crate) control: Option<Control>,
    /// This is the process in the background
    #[arg(long, hide = true)]
    pub(crate) in_background: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// Print each connection: where to, how long it took to open, its end and its bytes
    #[arg(short, long, conflicts_with = "quiet", help_heading = "What is shown")]
    pub(crate) verbose: bool,
    /// Print events to stdout as JSON, one object per line
    ///
    /// Every object has "v":1 and a "type": tunnel, connection or error.
    #[arg(long, conflicts_with_all = ["background", "control"], help_heading = "What is shown")]
    pub(crate) json: bool,
}

/// What is asked of the tunnels that run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Control {
    /// Print the process of each
    Check,
    /// End them
    Exit,
}

/// `downpour proxy`.
#[derive(Args, Debug)]
#[command(mut_arg("timeout", |timeout| timeout.default_value("1d")))]
pub(crate) struct ProxyArgs {
    /// The remote host: USER@HOST
    #[arg(help = "The remote host: [USER@]HOST", value_name = "HOST", value_parser = values::plain_host)]
    pub(crate) host: String,
    /// Port of its ssh server, for the login and for what is carried [default: 22]
    #[arg(value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) server_port: Option<u16>,
    /// Keep the connection for this long after its last use, such as 10m, so that the next login is fast
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "While it runs")]
    pub(crate) persist: Option<Duration>,
    /// This is the process in the background
    #[arg(long, hide = true, requires = "persist")]
    pub(crate) in_background: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// `downpour profile`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfileCommand {
    /// List all profiles
    List,
    /// Print a profile with the source of every setting
    ///
    /// The output can be saved and passed to --profile. Settings that equal those of the profile named in `based-on`
    /// can be omitted.
    Show(Box<ShowArgs>),
    /// Print the differences between two profiles
    Diff(Box<DiffArgs>),
}

/// `downpour profile show`.
#[derive(Args, Debug)]
pub(crate) struct ShowArgs {
    /// Name or file of a profile
    #[arg(value_name = "NAME|FILE", value_parser = values::profile, default_value = "auto")]
    pub(crate) profile: ProfileChoice,
    /// Change a setting of the profile: congestion=cubic, congestion.beta=0.5
    #[arg(long, value_name = "KEY=VALUE", value_parser = values::setting)]
    pub(crate) set: Vec<(String, String)>,
    /// Also print the allowed range of each setting
    #[arg(long)]
    pub(crate) allowed: bool,
}

/// `downpour profile diff`.
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// Name or file of a profile
    #[arg(value_name = "NAME|FILE", value_parser = values::profile)]
    pub(crate) first: ProfileChoice,
    /// Name or file of a profile
    #[arg(value_name = "NAME|FILE", value_parser = values::profile)]
    pub(crate) second: ProfileChoice,
}

/// `downpour completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// `downpour complete`.
#[derive(Args, Debug)]
pub(crate) struct CompleteArgs {
    /// The command on the line
    pub(crate) command: String,
    /// The word to complete
    #[arg(allow_hyphen_values = true)]
    pub(crate) word: OsString,
    #[command(flatten)]
    pub(crate) ssh: SshArgs,
}

/// `downpour man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The command whose page is shown; without one, that of the program
    #[arg(value_name = "COMMAND", conflicts_with = "write")]
    pub(crate) command: Vec<String>,
    /// Write downpour.1, downpour-cp.1 and so on into this directory
    #[arg(long, value_name = "DIR", value_parser = values::directory())]
    pub(crate) write: Option<PathBuf>,
}

/// `downpour remote`.
#[derive(Args, Debug)]
pub(crate) struct RemoteArgs {
    /// Limit this login to DIR: nothing outside is read or written, and `pipe` is refused
    ///
    /// DIR is the home of this login: relative paths and ~ start there. Absolute paths must begin with DIR. Symbolic
    /// links that lead out of DIR are not followed.
    #[arg(long, value_name = "DIR", value_parser = values::path())]
    pub(crate) only: Option<PathBuf>,
    /// Send from DIR, and change nothing
    #[arg(long, requires = "only", conflicts_with = "write_only")]
    pub(crate) read_only: bool,
    /// Receive into DIR, and send nothing; what exists can be replaced and compared
    #[arg(long, requires = "only")]
    pub(crate) write_only: bool,
    /// Print the BLAKE3 digest of this program, by which a copy shows that it is whole
    #[arg(long, exclusive = true)]
    pub(crate) digest: bool,
}
