//! Pictures of results: the same drawing as SVG and as PNG.
//!
//! They are written as SVG directly rather than by plotters (0.3). It writes no classes, by which the lab's page gives a
//! picture the colours of a light or dark theme, and neither title nor data of a point, by which a reader learns what the
//! point is and the page finds the runs behind it; and its positions and line widths are whole pixels.

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
