//! Pictures of results: the same drawing as SVG and as PNG.

mod chart;
mod panels;
mod png;
mod ruler;
mod style;
mod svg;

pub(crate) use chart::summaries;
pub use chart::{Chart, Lines, Mark, Series};
pub use panels::{Panel, panels};
pub use png::{PngError, png};
pub(crate) use svg::escaped;
pub use svg::svg;
