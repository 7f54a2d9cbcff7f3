//! A demonstration as a file that plays by itself: one page with everything in it.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::web::page;

/// The scripts of the page that a recording has, in the order in which they use each other.
const SCRIPTS: [&str; 3] = ["/wire.js", "/demonstration_show.js", "/demonstration_playback.js"];

/// Returns the page that plays these events, each of them JSON.
pub(super) fn page(events: &[Arc<str>]) -> String {
    let style = page::text("/style.css");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>downpour demonstration</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{style}</style>\n</head>\n<body>\n\
         <main id=\"demonstration\"></main>\n<script type=\"application/json\" id=\"record\">["
    );
    for (at, event) in events.iter().enumerate() {
        // Within JSON it stands in strings only. The end of a script does not.
        let event = event.replace('<', "\\u003c");
        let comma = if at == 0 { "" } else { ",\n" };
        write!(page, "{comma}{event}").expect("a string takes all");
    }
    page.push_str("]</script>\n<script type=\"module\">\n");
    for script in SCRIPTS {
        // One script, in which they know each other without importing anything.
        let lines = page::text(script).lines().filter(|line| !line.starts_with("import "));
        for line in lines {
            page.push_str(line);
            page.push('\n');
        }
    }
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_needs_nothing_else_and_cannot_be_broken_out_of() {
        let events = [r#"{"start":{"systems":["</script><script>"]}}"#, r#"{"over":{}}"#].map(Arc::from);
        let page = page(&events);
        for outside in ["src=", "import ", "http:", "https:", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert_eq!(page.matches("</script>").count(), 2);
        let record = page.split_once("id=\"record\">").and_then(|(_, rest)| rest.split_once("</script>"));
        let record: serde_json::Value = serde_json::from_str(record.expect("a record").0).expect("JSON");
        assert_eq!(record[0]["start"]["systems"][0], "</script><script>");
        assert_eq!(record.as_array().map(Vec::len), Some(2));
    }
}
