//! PNG from SVG, with a font of its own.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree, fontdb};

/// DejaVu Sans; see `fonts/LICENSE`. A machine without fonts draws the same with it.
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSans-subset.ttf");
const FAMILY: &str = "DejaVu Sans";
/// Pixels of the PNG for each unit of the SVG.
const ZOOM: f32 = 1.5;

/// The reason why there is no PNG.
#[derive(Debug, thiserror::Error)]
pub enum PngError {
    /// The text is not a drawing.
    #[error("cannot draw the picture: {0}")]
    Svg(#[from] resvg::usvg::Error),
    /// Too large for the memory, or empty.
    #[error("cannot draw the picture: too large")]
    Size,
    /// Encoding failed.
    #[error("cannot encode the picture: {0}")]
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
