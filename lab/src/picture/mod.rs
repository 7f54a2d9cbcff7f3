//! Pictures of results: the same drawing as SVG and as PNG.
//!
//! They are written as SVG directly rather than by plotters (0.3), which writes no classes, by which the lab's page
//! applies a light or dark theme, and neither titles nor data of points, by which readers identify a point and the page
//! finds its runs; and its positions and line widths are whole pixels.

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
pub use series::{Gap, Mark, MarkStyle, Series};
pub(crate) use svg::escaped;
pub use svg::svg;
