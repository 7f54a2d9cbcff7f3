//! Pictures of results: the same drawing as SVG and as PNG.

mod canvas;
mod chart;
mod labels;
mod panels;
mod plot;
mod png;
mod ruler;
mod series;
mod style;
mod svg;

pub use chart::{Chart, Lines};
pub(crate) use chart::{runs_at, summaries};
pub use panels::{Panel, panels};
pub use png::{PngError, png};
pub use series::{Form, Gap, Mark, Series};
pub(crate) use svg::escaped;
pub use svg::svg;
