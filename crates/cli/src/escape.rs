//! Escaping of names and messages for terminals: received ones are hostile, and local ones may contain control characters.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes a name: control characters, bidirectional and invisible marks, bytes that are not UTF-8 and the backslash. The
/// result can neither move the cursor nor look like another name.
pub(crate) fn name(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                c => push(&mut out, c),
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail");
        }
    }
    out
}

/// Escapes a message of one line, without the numbers of system errors. It may quote names and texts of the peer, so
/// nothing in it may look like a second message; backslashes are kept.
pub(crate) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    without_error_numbers(text.trim()).chars().for_each(|c| push(&mut out, c));
    out
}

/// Removes ` (os error N)`, which `std::io::Error` appends to the text of an error of the system.
pub(crate) fn without_error_numbers(text: &str) -> Cow<'_, str> {
    const BEFORE: &str = " (os error ";
    let mut text = Cow::Borrowed(text);
    let mut from = 0;
    while let Some(found) = text[from..].find(BEFORE) {
        let (start, number) = (from + found, from + found + BEFORE.len());
        let digits = text[number..].bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && text[number + digits..].starts_with(')') {
            text.to_mut().replace_range(start..=number + digits, "");
            from = start;
        } else {
            from = number;
        }
    }
    text
}

/// Escapes a line of any bytes, those that are not UTF-8 by their numbers.
pub(crate) fn line(line: &[u8]) -> String {
    let mut out = String::with_capacity(line.len());
    for chunk in line.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push(&mut out, c));
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("writing to a String cannot fail");
        }
    }
    out
}

/// Escapes a text whose line breaks come from the program itself.
pub(crate) fn lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| if c == '\n' { out.push(c) } else { push(&mut out, c) });
    out
}

/// Escapes the same characters in JSON text, as JSON escapes them. They can only occur within its strings.
pub(crate) fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || is_invisible_mark(c) {
            write!(out, "\\u{:04x}", u32::from(c)).expect("writing to a String cannot fail");
        } else {
            out.push(c);
        }
    }
    out
}

fn push(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_control() || is_invisible_mark(c) => {
            write!(out, "\\u{{{:x}}}", u32::from(c)).expect("writing to a String cannot fail");
        }
        c => out.push(c),
    }
}

/// Returns whether a character is a zero-width or bidirectional mark, or a line or paragraph separator (Unicode general
/// punctuation, and the BOM).
fn is_invisible_mark(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_escapes_control_characters_and_marks() {
        assert_eq!(name("gr\u{fc}n".as_bytes()), "gr\u{fc}n");
        assert_eq!(name(b"a\x1b[2Jb\nc\\"), "a\\u{1b}[2Jb\\nc\\\\");
        assert_eq!(name(b"\xff\xfeok"), "\\xff\\xfeok");
        assert_eq!(name("exe.\u{202e}gpj".as_bytes()), "exe.\\u{202e}gpj");
    }

    #[test]
    fn json_escapes_control_characters_and_keeps_its_value() {
        let value = "gr\u{fc}n \u{1b}[2J \u{7f} \u{9b}31m exe.\u{202e}gpj \u{feff}";
        let text = json(&serde_json::to_string(value).expect("JSON"));
        assert_eq!(text, r#""gr\u{fc}n \u001b[2J \u007f \u009b31m exe.\u202egpj \ufeff""#.replace("\\u{fc}", "\u{fc}"));
        assert_eq!(serde_json::from_str::<String>(&text).expect("JSON"), value);
    }

    #[test]
    fn error_numbers_are_removed() {
        for (error, shown) in [
            ("cannot read x: No such file or directory (os error 2)", "cannot read x: No such file or directory"),
            ("a (os error 13); b (os error 2), c", "a; b, c"),
            ("a (os error x) (os error ", "a (os error x) (os error"),
        ] {
            assert_eq!(text(error), shown);
        }
    }

    #[test]
    fn text_stays_one_line_and_keeps_backslashes() {
        assert_eq!(text("write \\[ for a [\n"), "write \\[ for a [");
        assert_eq!(lines("  a\nb\r\u{1b}"), "  a\nb\\r\\u{1b}");
        assert_eq!(
            line(b"\xff\x9b\x1b]0;\x7f\\ \xc2\x9b \xe2\x80\xae"),
            "\\xff\\x9b\\u{1b}]0;\\u{7f}\\ \\u{9b} \\u{202e}"
        );
        assert_eq!(text("a\ndownpour: done\u{1b}[2J\u{202e}"), "a\\ndownpour: done\\u{1b}[2J\\u{202e}");
    }
}
