//! The output of a login before the started program: greetings of start-up files, warnings, refusals.

use std::io::{self, Read};

/// Maximum number of bytes before a marker, and of the line that it begins.
const MAX_NOISE: usize = 1 << 20;
const MAX_LINE: usize = 16 << 10;

/// The output of a login up to a marker, which may be at any position: a greeting need not end its last line.
#[derive(Debug, Default)]
pub(super) struct Greeting {
    /// The end of the output before the marker.
    received: Vec<u8>,
    count: usize,
}

impl Greeting {
    /// Maximum number of bytes and lines that are kept for display.
    const KEPT: usize = 1024;
    const SHOWN: usize = 3;

    /// Reads up to the first of these markers and to the end of its line; returns both. `None` at the end of the
    /// output. Nothing is read beyond that line, since it belongs to the protocol.
    ///
    /// # Errors
    /// Those of `output`, and one for endless output without a marker.
    pub(super) fn read_to(
        &mut self,
        output: &mut impl Read,
        markers: &[&'static str],
    ) -> io::Result<Option<(&'static str, String)>> {
        while let Some(byte) = next(output)? {
            self.keep(byte)?;
            let found = markers.iter().find(|marker| self.received.ends_with(marker.as_bytes()));
            if let Some(marker) = found {
                self.received.truncate(self.received.len() - marker.len());
                return Ok(Some((marker, rest_of_line(output)?)));
            }
        }
        Ok(None)
    }

    fn keep(&mut self, byte: u8) -> io::Result<()> {
        self.count += 1;
        if self.count > MAX_NOISE {
            return Err(endless());
        }
        if self.received.len() == 2 * Self::KEPT {
            self.received.drain(..Self::KEPT);
        }
        self.received.push(byte);
        Ok(())
    }

    /// Returns the last lines before the marker as one, not escaped; `None` if there are none.
    pub(super) fn words(&self) -> Option<String> {
        let kept = &self.received[self.received.len().saturating_sub(Self::KEPT)..];
        let text = String::from_utf8_lossy(kept);
        let lines: Vec<&str> = text.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(Self::SHOWN)..];
        (!last.is_empty()).then(|| last.join(" / "))
    }
}

fn rest_of_line(output: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    while let Some(byte) = next(output)?.filter(|byte| *byte != b'\n') {
        if line.len() == MAX_LINE {
            return Err(endless());
        }
        line.push(byte);
    }
    Ok(String::from_utf8_lossy(&line).trim().to_owned())
}

fn next(output: &mut impl Read) -> io::Result<Option<u8>> {
    let mut byte = [0];
    loop {
        match output.read(&mut byte) {
            Ok(count) => return Ok((count == 1).then_some(byte[0])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn endless() -> io::Error {
    io::Error::other("endless login output without a reply of downpour")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKERS: [&str; 2] = ["MARKER ", "MARKED "];

    fn read(output: &[u8]) -> (Option<(&'static str, String)>, Option<String>, usize) {
        let (mut greeting, mut rest) = (Greeting::default(), output);
        let found = greeting.read_to(&mut rest, &MARKERS).unwrap();
        (found, greeting.words(), rest.len())
    }

    #[test]
    fn greeting_marker_found_anywhere() {
        let long = "x".repeat(20_000);
        for greeting in
            ["", "\n", "Hello\n", "Hello", "MARK", "MARKER\n", "MARKMARKED\r", "\u{fffd}", &long, "\0\u{1b}[31m"]
        {
            for marker in MARKERS {
                let (found, _, rest) = read(format!("{greeting}{marker}a b \r\nrest").as_bytes());
                assert_eq!(found, Some((marker, "a b".to_owned())), "{greeting:?}");
                assert_eq!(rest, 4, "the following bytes are not consumed");
            }
        }
        assert_eq!(read(b"MARKER end").0, Some(("MARKER ", "end".to_owned())), "a line without an end");
        assert_eq!(read(b"\xff\xfeMARKED \xff").0, Some(("MARKED ", "\u{fffd}".to_owned())));
    }

    #[test]
    fn greeting_last_lines_shown() {
        assert_eq!(read(b"\n \r\nMARKER x").1, None);
        assert_eq!(
            read(b"This account is currently not available.\n").1.unwrap(),
            "This account is currently not available."
        );
        assert_eq!(read(b"one\n\ntwo\r\n three \nfourMARKED x\n").1.unwrap(), "two / three / four");
        let words = read(&b"spam ".repeat(100_000)).1.unwrap();
        assert!(words.len() <= Greeting::KEPT && words.ends_with("spam"), "{words}");
    }

    #[test]
    fn greeting_noise_and_line_bounded() {
        let mut greeting = Greeting::default();
        for output in [b"MARKER ".to_vec(), Vec::new()] {
            let error = greeting.read_to(&mut (&*output).chain(io::repeat(b'x')), &MARKERS).unwrap_err();
            assert_eq!(error.to_string(), endless().to_string());
        }
        let exactly = [&b"x".repeat(MAX_NOISE - 7)[..], b"MARKER y"].concat();
        assert!(read(&exactly).0.is_some());
    }
}
