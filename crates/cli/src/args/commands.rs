//! The table of commands.

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Cp,
    Sync,
    Send,
    Recv,
    Verify,
    Doctor,
    Pipe,
    Tunnel,
    Proxy,
    Bootstrap,
    Clean,
    Status,
    Demo,
    ProfileList,
    ProfileShow,
    ProfileDiff,
    Completions,
    Man,
    Complete,
    Remote,
}

/// The words that the shell completes for a command, beside options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// Files.
    Files,
    /// Local files, and hosts with remote paths.
    Places,
    /// A host, as the first word.
    Host,
}

/// The help of a command.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) command: Command,
    pub(crate) name: &'static str,
    /// The command of which it is a subcommand.
    pub(crate) within: Option<&'static str>,
    /// One line.
    pub(crate) about: &'static str,
    /// Further text of `--help`.
    pub(crate) more: &'static str,
    /// At the end of `--help`.
    pub(crate) examples: &'static str,
    /// The usage line, if it does not follow from the operands.
    pub(crate) usage: Option<&'static str>,
    /// A shorter usage line for `-h`.
    pub(crate) brief_usage: Option<&'static str>,
    pub(crate) completed: Completed,
    /// Whether only programs call it.
    pub(crate) hidden: bool,
}

const ENTRY: Entry = Entry {
    command: Command::Cp,
    name: "",
    within: None,
    about: "",
    more: "",
    examples: "",
    usage: None,
    brief_usage: None,
    completed: Completed::Files,
    hidden: false,
};

/// The command with subcommands.
pub(crate) const PROFILE: Entry = Entry {
    name: "profile",
    about: "Show profiles and all their settings",
    more: "A profile determines how data is sent: code and blocks, schedule, congestion control, loss detection, feedback. \
           --profile selects one, --set changes a setting.",
    examples: PROFILE_EXAMPLES,
    ..ENTRY
};

/// All commands, in the order of the help.
pub(crate) static COMMANDS: &[Entry] = &[
    Entry {
        command: Command::Cp,
        name: "cp",
        completed: Completed::Places,
        about: "Copy files and directories to or from a host that ssh can reach",
        more: "Like scp, it starts the remote side through your ssh. The data goes over UDP, or over ssh if UDP is blocked. \
               To resume an interrupted copy, run the same command again. With no host it copies locally; with two, \
               from the first to the second.\n\nA symbolic link given as a source is followed: its target is copied \
               under the name of the link. Links within directories are copied as links. --links sets both.",
        examples: CP_EXAMPLES,
        usage: Some("downpour cp [OPTIONS] SRC... DST"),
        ..ENTRY
    },
    Entry {
        command: Command::Sync,
        name: "sync",
        completed: Completed::Places,
        about: "Make a directory like another; --delete deletes extra files",
        more: "Copies like `cp -r -p`. Files with matching size and mtime are skipped.",
        examples: SYNC_EXAMPLES,
        usage: Some("downpour sync [OPTIONS] SRC... DST"),
        ..ENTRY
    },
    Entry {
        command: Command::Send,
        name: "send",
        about: "Send files and directories to the holder of a ticket",
        more: "Prints a ticket and waits for a `downpour recv` with it. The ticket is valid for one complete transfer and \
               for one hour. With --to, this side connects instead, with a ticket from `downpour recv --listen`.",
        examples: SEND_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Recv,
        name: "recv",
        about: "Receive files and directories with a ticket",
        more: "Asks for the ticket that `downpour send` printed, shows the offered files and the destination, and asks for \
               confirmation. Answers are read from stdin; at end of file the offer is declined, unless --yes is \
               given. Existing files are replaced only with --existing. With --listen, this side prints a ticket \
               and waits for a `downpour send --to`.",
        examples: RECV_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Verify,
        name: "verify",
        completed: Completed::Places,
        about: "Compare two files or directories by content, locally or remotely",
        more: "Changes nothing. Prints every difference. Exits with 0 if there is none, otherwise with 1.",
        examples: VERIFY_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Doctor,
        name: "doctor",
        completed: Completed::Host,
        about: "Diagnose the path to a host and suggest improvements",
        more: "Starts the remote side as `downpour cp` does. Checks whether UDP passes in both directions and at which \
               packet size; measures round-trip time, loss, rate and disks; estimates the duration of transfers.",
        ..ENTRY
    },
    Entry {
        command: Command::Pipe,
        name: "pipe",
        completed: Completed::Host,
        about: "Run a remote command and pipe stdin to it",
        more: "Exits with the exit code of the command. If the connection is lost, the command is killed, so it never takes \
               truncated input as complete. If its output is closed, its next write fails, as in a shell pipeline.",
        examples: PIPE_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Tunnel,
        name: "tunnel",
        completed: Completed::Host,
        about: "Carry TCP connections over a path that loses packets",
        more: "Accepts connections on ports of this host or of the remote host and carries them through one encrypted \
               connection over UDP, as ssh does with -L, -R and -D. It logs in with ssh, then runs without it, \
               across outages and address changes, until interrupted.",
        examples: TUNNEL_EXAMPLES,
        brief_usage: Some("downpour tunnel [OPTIONS] HOST\n       downpour tunnel --listen[=ADDR:PORT] --permit PLACE"),
        ..ENTRY
    },
    Entry {
        command: Command::Proxy,
        name: "proxy",
        completed: Completed::Host,
        about: "Carry ssh's own connection to a host, as its ProxyCommand",
        more: "ssh, sftp, git and rsync then reach the host over a path that loses packets as if it were clean. Each proxy \
               logs in with ssh; with --persist only the first. ssh's own window still limits the connection to \
               about 2 MB per round trip; it does not limit `downpour cp`.",
        examples: PROXY_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Bootstrap,
        name: "bootstrap",
        completed: Completed::Host,
        about: "Copy this program to a host that ssh can reach",
        more: "Copies through ssh; the file is installed after it has run there and verified its own digest. The other \
               commands offer this if the remote host has no downpour.",
        examples: BOOTSTRAP_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Clean,
        name: "clean",
        about: "List or delete partial data of interrupted transfers",
        more: "A transfer stages files in a directory .downpour-XXXXXXXX in its destination. If it is interrupted, the same \
               command resumes from this directory, which remains until then. Lists the staging directories of this \
               user in each DIR: time since the last use, size, number of incomplete files.",
        examples: CLEAN_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Status,
        name: "status",
        about: "Show your running transfers and their progress",
        more: "Lists every cp, sync, verify, send, recv, pipe, tunnel, proxy and demo of this user on this host, and those \
               started on it through ssh. On SIGUSR1, a transfer itself prints its progress.",
        examples: STATUS_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Demo,
        name: "demo",
        about: "Send a file over an emulated lossy link on this host",
        more: "Two endpoints in this process exchange UDP packets through a relay with the rate, delay and loss of --link. \
               Shows the time of the transfer, the lower bound for any protocol, and the time of CUBIC with \
               retransmission, as in TCP, over the same link.",
        ..ENTRY
    },
    Entry {
        command: Command::ProfileList,
        name: "list",
        within: Some(PROFILE.name),
        about: "List all profiles",
        ..ENTRY
    },
    Entry {
        command: Command::ProfileShow,
        name: "show",
        within: Some(PROFILE.name),
        about: "Print a profile with the source of every setting",
        more: "The output can be saved and passed to --profile. Settings that equal those of the profile named in \
               `based-on` can be omitted.",
        ..ENTRY
    },
    Entry {
        command: Command::ProfileDiff,
        name: "diff",
        within: Some(PROFILE.name),
        about: "Print the differences between two profiles",
        ..ENTRY
    },
    Entry {
        command: Command::Completions,
        name: "completions",
        about: "Print shell completions",
        examples: COMPLETIONS_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Man,
        name: "man",
        about: "Show a manual page, or write all of them",
        examples: MAN_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Complete,
        name: "complete",
        about: "Print completions of a host or a remote path, for the scripts of `downpour completions`",
        hidden: true,
        ..ENTRY
    },
    Entry {
        command: Command::Remote,
        name: "remote",
        about: "The remote side of cp, sync, verify, doctor, pipe, tunnel and proxy, started through ssh",
        more: "Not started by hand. With --only, a forced command for `authorized_keys` that restricts a key to one \
               directory.",
        examples: REMOTE_EXAMPLES,
        hidden: true,
        ..ENTRY
    },
];

const CP_EXAMPLES: &str = "\
Examples:
  downpour cp -r results/ me@far.example:archive   copy the contents of results into archive
  downpour cp -r far.example:archive/2024 .        copy the directory 2024 to the current directory
  downpour cp --limit '08:00,200M 19:00,off' huge.tar far:   with a rate limit by day
  downpour cp -r far.example:data other.example:   from host to host
  downpour cp -rn --exclude '*.tmp' results far:   show what would be copied";

const SYNC_EXAMPLES: &str = "\
Examples:
  downpour sync results/ far.example:results/            copy new and changed files
  downpour sync --delete -n results/ far.example:results/   show what would be deleted";

const SEND_EXAMPLES: &str = "\
Examples:
  downpour send photos/ notes.txt
  downpour send --rate 100M photos/        at a fixed rate, regardless of loss
  tar c photos | downpour send - --name photos.tar   to `downpour recv`, or to `downpour recv - | tar x`
  downpour send photos/ --to --ticket-file t   to a `downpour recv --listen --ticket-file t`";

const RECV_EXAMPLES: &str = "\
Examples:
  downpour recv --into ~/incoming
  downpour recv - --ticket-file t | tar x
  downpour recv -y --listen :4000 --ticket-file t";

const VERIFY_EXAMPLES: &str = "\
Example:
  downpour verify results/ far.example:archive/results/";

const PIPE_EXAMPLES: &str = "\
Examples:
  tar c results | downpour pipe far.example tar x -C archive
  downpour pipe --set streams=window far.example ./console    low delay despite loss";

const TUNNEL_EXAMPLES: &str = "\
Examples:
  downpour tunnel -L 8080:localhost:80 far.example     http://localhost:8080/ is far.example's port 80
  downpour tunnel -D 1080 far.example                  a SOCKS proxy for browsers, curl -x socks5h://localhost:1080
  downpour tunnel -R 2222:localhost:22 far.example     port 2222 of far.example is this host's ssh";

const PROXY_EXAMPLES: &str = "\
Examples:
  ssh -o ProxyCommand='downpour proxy --persist 10m %r@%n %p' far.example
  In ~/.ssh/config:
      Host far.example
          ProxyCommand downpour proxy --persist 10m %r@%n %p";

const BOOTSTRAP_EXAMPLES: &str = "\
Examples:
  downpour bootstrap far.example
  downpour bootstrap --to /opt/bin/downpour root@far.example
  downpour bootstrap --from ./downpour-aarch64 pi.example";

const CLEAN_EXAMPLES: &str = "\
Examples:
  downpour clean incoming
  downpour clean -r --older-than 30d --remove ~";

const STATUS_EXAMPLES: &str = "\
Examples:
  downpour status
  downpour status --json 4711
  kill -USR1 4711        makes the transfer print its progress";

const PROFILE_EXAMPLES: &str = "\
Examples:
  downpour profile show arq > mine.toml      save a profile, for --profile ./mine.toml
  downpour profile diff auto ./mine.toml
  downpour cp --set congestion.beta=0.5 huge.tar far:";

const REMOTE_EXAMPLES: &str = "\
Examples, each one line of ~/.ssh/authorized_keys:
  command=\"downpour remote --only /srv/in --write-only\",restrict ssh-ed25519 AAAA... uploads
  command=\"downpour remote --only /srv/out --read-only\",restrict ssh-ed25519 AAAA... downloads";

const MAN_EXAMPLES: &str = "\
Examples:
  downpour man cp
  downpour man --write ~/.local/share/man/man1";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  downpour completions bash > ~/.local/share/bash-completion/completions/downpour
  downpour completions zsh  > \"${fpath[1]}/_downpour\"
  downpour completions fish > ~/.config/fish/completions/downpour.fish";

/// Returns the names of the commands for which the shell completes such words.
pub(crate) fn completing(completed: Completed) -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter(move |entry| entry.completed == completed).map(|entry| entry.name)
}

impl Command {
    /// Returns its entry in the table.
    pub(crate) fn entry(self) -> &'static Entry {
        COMMANDS.iter().find(|entry| entry.command == self).unwrap_or(&PROFILE)
    }

    /// Returns its name, without that of its parent command.
    pub(crate) fn name(self) -> &'static str {
        self.entry().name
    }
}
