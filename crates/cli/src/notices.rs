//! What notices of a receiver mean.

/// The meaning of a receiver's notices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Notices {
    /// What it has done.
    #[default]
    Done,
    /// What it would do, in a dry run.
    Planned,
    /// How the two sides differ.
    Differences,
}
