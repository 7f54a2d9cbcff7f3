//! Pictures of results: the same drawing as SVG and as PNG.

mod chart;
mod panels;
mod png;
mod ruler;
mod style;
mod svg;

pub use chart::{Chart, Lines, Mark, Series};
pub(crate) use chart::{runs_at, summaries};
pub use panels::{Panel, panels};
pub use png::{PngError, png};
pub(crate) use svg::escaped;
pub use svg::svg;
