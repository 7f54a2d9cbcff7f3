//! The JSON of a request whose options were omitted: only the fields of the first releases, since these refuse an
//! unknown field.

use downpour_request::{Preserve, ReceiveRequest, SourceOptions};
use serde::Serialize;

fn keys(value: &impl Serialize) -> Vec<String> {
    let value = serde_json::to_value(value).expect("JSON");
    value.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn request_omits_default_fields() {
    assert_eq!(keys(&SourceOptions::default()), ["files_from", "filter", "hard_links", "hash", "links", "recursive"]);
    let spec = ReceiveRequest::to_target("x");
    assert_eq!(keys(&spec), ["compare", "compared", "delete", "dry_run", "existing", "modes", "shape", "target"]);
    assert_eq!(keys(&spec.requested), ["contents", "items", "many"]);
    let preserved = Preserve { owner: true, ..Preserve::default() };
    assert_eq!(keys(&preserved), ["acls", "group", "numeric_ids", "owner", "specials", "xattrs"]);
}
