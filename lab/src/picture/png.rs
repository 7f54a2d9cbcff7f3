//! PNG from SVG, with a font of its own.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// DejaVu Sans; see `fonts/LICENSE`. With it a machine without fonts draws the same.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Pixels of the PNG for each unit of the SVG.
const ZOOM: f32 = 1.5;

/// The reason why there is no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The text is no drawing.
    #[error("the picture cannot be drawn: {0}")]
    Svg(#[from] resvg::usvg::Error),
    /// Too large for the memory, or empty.
    #[error("the picture is too large to be drawn")]
    Size,
    /// Encoding failed.
    #[error("the picture cannot be packed: {0}")]
    Pack(String),
}

/// Renders an SVG of [`super::svg`] as the bytes of a PNG.
///
/// # Errors
/// See [`PngError`].
pub fn png(svg: &str) -> Result<Vec<u8>, PngError> {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(FONT.to_vec());
    let options = Options { fontdb: Arc::new(fonts), font_family: FAMILY.to_owned(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let size = tree.size();
    let (width, height) = ((size.width() * ZOOM).ceil() as u32, (size.height() * ZOOM).ceil() as u32);
    let mut pixels = Pixmap::new(width, height).ok_or(PngError::Size)?;
    resvg::render(&tree, Transform::from_scale(ZOOM, ZOOM), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| PngError::Pack(error.to_string()))
}
