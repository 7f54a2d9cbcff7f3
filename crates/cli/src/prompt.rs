//! Questions to the person at the terminal.

use std::io::{self, BufRead, IsTerminal, Read};
use std::thread;

use rustix::termios::{LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr};
use tokio::sync::oneshot;

use crate::interrupt::{Attention, SignalHandlers};
use crate::print;
use crate::stop_signal::StopSignal;

/// Maximum length of a line, which is cut there: far longer than any ticket or answer.
const LONGEST_LINE: u64 = 64 * 1024;

/// Text after which no further line is read.
const MAX_TEXT: usize = 16 * 1024;

/// The reason for a missing answer.
#[derive(Debug)]
pub(crate) enum PromptError {
    /// Ctrl-C, or SIGTERM.
    Stopped(StopSignal),
    /// The input has ended, or cannot be read.
    Input(io::Error),
}

/// Reads a line without echo, and further lines while the text `continues`, such as a wrapped one. If stdin is not a
/// terminal, reads from it without a prompt.
pub(crate) async fn secret(
    question: &str,
    continues: fn(&str) -> bool,
    interrupts: &mut SignalHandlers,
) -> Result<String, PromptError> {
    let mut attention = interrupts.attend();
    if !io::stdin().is_terminal() {
        return lines(continues, &mut attention).await;
    }
    let hidden = NoEcho::start().map_err(PromptError::Input)?;
    print::write_err(question.as_bytes());
    let answer = lines(continues, &mut attention).await;
    drop(hidden);
    // The Enter key was not echoed either.
    print::write_err(b"\n");
    answer
}

/// A question with the default yes, on stderr, with the answer on stdin.
#[derive(Debug)]
pub(crate) struct Question {
    text: &'static str,
    answer: oneshot::Receiver<io::Result<String>>,
}

impl Question {
    /// Asks the question.
    pub(crate) fn ask(text: &'static str) -> Self {
        // Text typed before the question, such as a line break pasted with the ticket, is not an answer to it.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let question = Self { text, answer: read_line() };
        question.repeat();
        question
    }

    /// Repeats it while its answer is awaited.
    pub(crate) fn repeat(&self) {
        print::write_err(format!("{} [Y/n] ", self.text).as_bytes());
    }

    /// Waits for a yes or a no, and asks again after anything else. Can be dropped and called again.
    ///
    /// # Errors
    /// The input has ended, or cannot be read, so there is no answer.
    pub(crate) async fn answer(&mut self) -> io::Result<bool> {
        loop {
            let answer = (&mut self.answer).await.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into()));
            // Only a line typed at a terminal moves the cursor to the next line.
            if answer.is_err() || !io::stdin().is_terminal() {
                print::write_err(b"\n");
            }
            let answer = answer?;
            match answer.trim().to_ascii_lowercase().as_str() {
                // The default is a person's. A script's empty line may be the end of the ticket's.
                "" if !io::stdin().is_terminal() => *self = Self::ask(self.text),
                "" | "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => *self = Self::ask(self.text),
            }
        }
    }

    /// Withdraws the question.
    pub(crate) fn withdraw(self) {
        print::write_err(b"\n");
    }
}

/// Reads lines from stdin while the text continues, up to an empty line or the end of the input.
async fn lines(continues: fn(&str) -> bool, attention: &mut Attention<'_>) -> Result<String, PromptError> {
    let mut text = line(attention).await?;
    while text.len() < MAX_TEXT && continues(&text) {
        match line(attention).await {
            Ok(next) if !next.trim().is_empty() => text = format!("{text}\n{next}"),
            Ok(_) | Err(PromptError::Input(_)) => break,
            Err(stopped) => return Err(stopped),
        }
    }
    Ok(text)
}

/// Reads one line from stdin, without its line break.
async fn line(attention: &mut Attention<'_>) -> Result<String, PromptError> {
    tokio::select! {
        line = read_line() => line.unwrap_or_else(|_| Err(io::ErrorKind::BrokenPipe.into())).map_err(PromptError::Input),
        stop = attention.next() => Err(PromptError::Stopped(stop)),
    }
}

/// Starts to read a line from stdin, without its line break.
fn read_line() -> oneshot::Receiver<io::Result<String>> {
    let (answer, answered) = oneshot::channel();
    // On a detached thread: a read from a terminal cannot be cancelled, and must not delay the exit of the program.
    thread::spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(LONGEST_LINE).read_line(&mut line);
        // Fails if the program is about to exit.
        let _ = answer.send(read.and_then(|bytes| match bytes {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line.trim_end_matches(['\r', '\n']).to_owned()),
        }));
    });
    answered
}

/// A terminal without echo, until this is dropped.
struct NoEcho {
    before: Termios,
}

impl NoEcho {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Flush: text typed before the question is not its answer.
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self { before })
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        // Errors are ignored: the terminal is closed then.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
