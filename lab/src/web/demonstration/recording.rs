//! A demonstration as a self-contained page that plays it.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::web::page;

/// The scripts of a recording, in the order of their dependencies.
const SCRIPTS: [&str; 3] = ["/wire.js", "/demonstration_show.js", "/demonstration_playback.js"];

/// Returns the page that plays these events in JSON.
pub(super) fn page(events: &[Arc<str>]) -> String {
    let style = page::text("/style.css");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>downpour demonstration</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{style}</style>\n</head>\n<body>\n\
         <main id=\"demonstration\"></main>\n<script type=\"application/json\" id=\"record\">["
    );
    for (at, event) in events.iter().enumerate() {
        // Within JSON, `<` occurs in strings only. It could otherwise end the script.
        let event = event.replace('<', "\\u003c");
        let comma = if at == 0 { "" } else { ",\n" };
        write!(page, "{comma}{event}").expect("a string takes all");
    }
    page.push_str("]</script>\n<script type=\"module\">\n");
    for script in SCRIPTS {
        // One script, which needs no imports.
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
    fn recording_is_self_contained_and_escaped() {
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
