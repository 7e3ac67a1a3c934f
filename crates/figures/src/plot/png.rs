//! Renders the picture as pixels.

use std::sync::Arc;

use anyhow::{Context, Result};
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{Options, Tree, fontdb::Database},
};

/// Pixels per unit of the SVG, so that the picture is sharp on high-resolution screens.
const SCALE: u32 = 2;

/// Renders an SVG. Text uses the font included in the executable, whatever fonts the machine has.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    let mut fonts = Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = Options {
        fontdb: Arc::new(fonts),
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).context("the picture is no SVG")?;
    let size = tree.size().to_int_size();
    let mut pixels = Pixmap::new(size.width() * SCALE, size.height() * SCALE)
        .context("the picture is too large")?;
    let scale = SCALE as f32;
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().context("encoding the picture")
}
