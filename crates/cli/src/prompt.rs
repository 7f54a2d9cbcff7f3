//! Questions to the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use crate::interrupt::{Interrupts, Stop};

/// Longer lines are cut: no ticket and no answer is near it.
const LONGEST_LINE: u64 = 64 * 1024;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Ctrl-C, or SIGTERM.
    Stopped(Stop),
    /// The input ended, or cannot be read.
    Input(io::Error),
}

/// Whether there is a person to ask: one who reads stderr and types on stdin.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Reads a line that is not shown while it is typed. Where stdin is no terminal, it is a plain line of it and nothing is asked.
pub(crate) async fn secret(question: &str, interrupts: &mut Interrupts) -> Result<String, NoAnswer> {
    if !io::stdin().is_terminal() {
        return line(interrupts).await;
    }
    let hidden = NoEcho::start().map_err(NoAnswer::Input)?;
    say(question);
    let answer = line(interrupts).await;
    drop(hidden);
    // The Enter was not echoed either.
    say("\n");
    answer
}

/// Asks a question with the default yes. The end of the input is a no.
pub(crate) async fn yes(question: &str, interrupts: &mut Interrupts) -> Result<bool, NoAnswer> {
    loop {
        say(&format!("{question} [Y/n] "));
        let answer = match line(interrupts).await {
            Ok(answer) => answer,
            Err(NoAnswer::Input(_)) => return Ok(false),
            Err(stopped) => return Err(stopped),
        };
        match answer.trim().to_ascii_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(true),
            "n" | "no" => return Ok(false),
            _ => {}
        }
    }
}

fn say(text: &str) {
    let mut stderr = io::stderr().lock();
    // Where stderr is gone there is nobody to tell.
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// One line of stdin, without its end.
async fn line(interrupts: &mut Interrupts) -> Result<String, NoAnswer> {
    let (answer, answered) = oneshot::channel();
    // A thread of its own that nobody joins: a read of a terminal cannot be called off, and must not hold up the end of the program.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(LONGEST_LINE).read_line(&mut line);
        let _ = answer.send(read.and_then(|bytes| match bytes {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
        }));
    });
    tokio::select! {
        line = answered => line.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())).map_err(NoAnswer::Input),
        stop = interrupts.next() => Err(NoAnswer::Stopped(stop)),
    }
}

/// A terminal that does not show what is typed, until this is dropped.
struct NoEcho {
    before: Termios,
}

impl NoEcho {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Flush: what was typed before the question is no answer to it.
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
