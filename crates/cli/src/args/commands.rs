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

/// What the shell completes on the line of a command, beside options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Completed {
    /// Files, or nothing.
    Files,
    /// Places: files here, and hosts with paths there.
    Places,
    /// A host, as the first word.
    Host,
}

/// What the help says of a command.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) command: Command,
    pub(crate) name: &'static str,
    /// The command that it is a part of.
    pub(crate) within: Option<&'static str>,
    /// One line.
    pub(crate) about: &'static str,
    /// What `--help` says beyond that line.
    pub(crate) more: &'static str,
    /// At the end of `--help`.
    pub(crate) examples: &'static str,
    /// Where it does not follow from the operands.
    pub(crate) usage: Option<&'static str>,
    /// For `-h`, where it has to be shorter.
    pub(crate) brief_usage: Option<&'static str>,
    pub(crate) completed: Completed,
    /// Only programs call it.
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

/// The command that has others.
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
               An interrupted copy resumes when the same command runs again. Without a host it copies locally, and with \
               two from one to the other.\n\nA source that is a symbolic link is followed: what it points to arrives under \
               the name of the link. Links within directories are copied as links. --links sets the same for both.",
        examples: CP_EXAMPLES,
        usage: Some("downpour cp [OPTIONS] SRC... DST"),
        ..ENTRY
    },
    Entry {
        command: Command::Sync,
        name: "sync",
        completed: Completed::Places,
        about: "Make a directory like another; --delete removes the rest",
        more: "Files with matching size and mtime are skipped.",
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
        more: "Asks for the ticket that `downpour send` printed, shows the offered files and the target directory, and asks \
               for confirmation. Answers are read from stdin; at its end the offer is declined unless --yes is given. \
               Existing files are not overwritten unless --existing says so. With --listen, this side prints a ticket and \
               waits for a `downpour send --to`.",
        examples: RECV_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Verify,
        name: "verify",
        completed: Completed::Places,
        about: "Compare two files or directories by content, locally or remotely",
        more: "Changes nothing. Prints every difference; exits with 0 if there is none and 1 otherwise.",
        examples: VERIFY_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Doctor,
        name: "doctor",
        completed: Completed::Host,
        about: "Diagnose the path to another machine and suggest improvements",
        more: "Starts the remote side as `downpour cp` does. Checks whether UDP passes in both directions and at which \
               packet size; measures round-trip time, loss, rate and disks; estimates how long transfers will take.",
        ..ENTRY
    },
    Entry {
        command: Command::Pipe,
        name: "pipe",
        completed: Completed::Host,
        about: "Run a remote command and pipe stdin to it",
        more: "Exits with the exit code of the command. If the connection breaks, the command is killed, so that it never \
               mistakes a part of its input for the whole. If nothing reads its output any more, its next write fails, as \
               in a shell pipeline.",
        examples: PIPE_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Tunnel,
        name: "tunnel",
        completed: Completed::Host,
        about: "Carry TCP connections over a path that loses packets",
        more: "Takes connections on ports of this machine or of the remote host and carries them through one encrypted \
               connection over UDP, as ssh does with -L, -R and -D. It begins with a login by ssh and goes on without it, \
               through outages and changes of address, until it is interrupted.",
        examples: TUNNEL_EXAMPLES,
        brief_usage: Some("downpour tunnel [OPTIONS] HOST\n       downpour tunnel --listen[=ADDR:PORT] --permit PLACE"),
        ..ENTRY
    },
    Entry {
        command: Command::Proxy,
        name: "proxy",
        completed: Completed::Host,
        about: "Carry ssh's own connection to a host, as its ProxyCommand",
        more: "ssh, sftp, git and rsync then reach the host over a path that loses packets as if it were clean. It begins \
               with a login of its own by ssh; with --persist only the first one does. What goes through it is still bound \
               by ssh's own window of about 2 MB a round trip; `downpour cp` is not.",
        examples: PROXY_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Bootstrap,
        name: "bootstrap",
        completed: Completed::Host,
        about: "Copy this program to a host that ssh can reach",
        more: "It goes through ssh, and takes its name there once it has run and found itself whole. The other commands \
               offer this if the remote host has no downpour.",
        examples: BOOTSTRAP_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Clean,
        name: "clean",
        about: "List or remove what interrupted transfers have left",
        more: "A transfer stages files in a directory .downpour-XXXXXXXX within its target. If it is interrupted, the same \
               command goes on from there; if it never runs again, the directory stays. Lists those of this user in each DIR: \
               when they were last used, the space they take, the number of incomplete files.",
        examples: CLEAN_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Status,
        name: "status",
        about: "Show your running transfers and how far they are",
        more: "Lists every cp, sync, verify, send, recv, pipe, tunnel, proxy and demo of this user on this machine, and \
               what others have started here through ssh. A transfer prints its own progress line when it gets SIGUSR1.",
        examples: STATUS_EXAMPLES,
        ..ENTRY
    },
    Entry {
        command: Command::Demo,
        name: "demo",
        about: "Send a file over an emulated lossy link on this machine",
        more: "Two endpoints in this process exchange UDP packets through a relay with the rate, delay and loss of --link. \
               Shows the time of the transfer, the least possible time, and the time of CUBIC with retransmission, as in \
               TCP, over the same link.",
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
        about: "Print what completes a host or a remote path, for the scripts of `downpour completions`",
        hidden: true,
        ..ENTRY
    },
    Entry {
        command: Command::Remote,
        name: "remote",
        about: "The remote side of cp, sync, verify, doctor, pipe, tunnel and proxy, started through ssh",
        more: "Nobody needs to start it by hand. With --only, it is a command for `authorized_keys` that limits a key to \
               one directory, whatever the other side asks for.",
        examples: REMOTE_EXAMPLES,
        hidden: true,
        ..ENTRY
    },
];

const CP_EXAMPLES: &str = "\
Examples:
  downpour cp -r results/ me@far.example:archive   copy the contents of results into archive
  downpour cp -r far.example:archive/2024 .        copy the directory 2024 to the current directory
  downpour cp --limit '08:00,200M 19:00,off' huge.tar far:   with a limit by day
  downpour cp -r far.example:data other.example:   from host to host
  downpour cp -rn --exclude '*.tmp' results far:   show what would be copied";

const SYNC_EXAMPLES: &str = "\
Examples:
  downpour sync results/ far.example:results/            copy new and changed files
  downpour sync --delete -n results/ far.example:results/   show what would be deleted";

const SEND_EXAMPLES: &str = "\
Examples:
  downpour send photos/ notes.txt
  downpour send --rate 100M photos/        at a fixed rate, whatever the loss
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
  downpour pipe --set streams=window far.example ./console    low delay in spite of losses";

const TUNNEL_EXAMPLES: &str = "\
Examples:
  downpour tunnel -L 8080:localhost:80 far.example     http://localhost:8080/ is far.example's port 80
  downpour tunnel -D 1080 far.example                  a SOCKS proxy for browsers, curl -x socks5h://localhost:1080
  downpour tunnel -R 2222:localhost:22 far.example     port 2222 of far.example is this machine's ssh";

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
  kill -USR1 4711        has the transfer itself print how far it is";

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

/// Returns the names of the commands on whose line the shell completes this.
pub(crate) fn completing(completed: Completed) -> impl Iterator<Item = &'static str> {
    COMMANDS.iter().filter(move |entry| entry.completed == completed).map(|entry| entry.name)
}

impl Command {
    /// Returns its entry in the table.
    pub(crate) fn entry(self) -> &'static Entry {
        COMMANDS.iter().find(|entry| entry.command == self).unwrap_or(&PROFILE)
    }

    /// Returns its name, without that of a command that it is a part of.
    pub(crate) fn name(self) -> &'static str {
        self.entry().name
    }
}
