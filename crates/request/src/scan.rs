//! Options of the sent items.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base64;
use crate::filter::Filter;
use crate::links::LinkPolicy;
use crate::outputs::Outputs;
use crate::preserve::Preserve;

/// Options of the sent items. A request to another host carries them unchanged; a field added by a release has a
/// default that is not written, so that earlier releases accept the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceOptions {
    /// Send directories with their contents; otherwise an item that is a directory is refused.
    pub recursive: bool,
    /// Treatment of symbolic links.
    pub links: LinkPolicy,
    /// Whether to follow an item that is a symbolic link and send its target under the link's name. Links inside
    /// directories are handled according to `links`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follow_items: bool,
    /// Whether a file found again under another name is sent as a hard link to the first one. Takes memory for each
    /// file with more names still to come; beyond 96 MiB, such names are sent as separate files.
    pub hard_links: bool,
    /// Whether a directory on another file system than its item is sent without its contents
    /// (`SkipReason::OtherFileSystem`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub one_file_system: bool,
    /// Attributes sent beyond contents, modes and times.
    #[serde(default, skip_serializing_if = "Preserve::is_nothing")]
    pub preserve: Preserve,
    /// Read and hash every file during the scan.
    pub hash: bool,
    /// Selects names by the path of the entry. Directories that it excludes are not entered.
    pub filter: Arc<Filter>,
    /// Names to send from the only item, a directory: paths relative to it, in any order. The directories above a name
    /// that the filter includes are sent too, even if it excludes them; a listed directory is sent with its contents if
    /// `recursive`, and otherwise without them, which is reported. Names that do not exist are skipped and reported.
    #[serde(with = "base64::names")]
    pub files_from: Option<Vec<Vec<u8>>>,
    /// Whether a symbolic link to a directory in the path of a listed name is sent as a directory, as by rsync. It has
    /// to belong to the user or to root: otherwise any user with write access to the source could make this user send
    /// files that only they may read. Set only by the scanning host, never by a request.
    #[serde(skip, default = "follow_ways")]
    pub follow_parent_links: bool,
    /// Refuse an empty directory if the contents of several are sent: the receiver, which deletes names that are not
    /// sent, could not know that the disk of one is not mounted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuse_empty: bool,
    /// The output files of this host.
    #[serde(skip)]
    pub outputs: Outputs,
    /// Whether names are removed once the receiver has stored them, which its request has to make it report
    /// ([`ReceiveRequest::report_stored`](crate::ReceiveRequest::report_stored)). An item that is a link to a file is then
    /// not followed, but refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove_sources: bool,
}

/// The default of [`SourceOptions::follow_parent_links`] in a request.
const fn follow_ways() -> bool {
    true
}

impl Default for SourceOptions {
    /// Directories with their contents, also of other file systems, links as links, no hard links, no hashes.
    fn default() -> Self {
        Self {
            recursive: true,
            links: LinkPolicy::default(),
            follow_items: false,
            hard_links: false,
            one_file_system: false,
            preserve: Preserve::default(),
            hash: false,
            filter: Arc::default(),
            files_from: None,
            follow_parent_links: follow_ways(),
            refuse_empty: false,
            outputs: Outputs::default(),
            remove_sources: false,
        }
    }
}
