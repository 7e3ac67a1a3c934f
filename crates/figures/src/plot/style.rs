//! Sizes, colours and marks, and the font, which is included in the executable so that no system
//! font is needed.

use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use plotters::{
    prelude::*,
    style::{
        register_font as register,
        text_anchor::{HPos, Pos, VPos},
    },
};

/// Minimum width of a panel in pixels.
pub const PANEL_WIDTH: i32 = 460;
/// Height of a panel of lines or bars in pixels.
pub const PANEL_HEIGHT: i32 = 310;
/// Height of the title's line in pixels.
pub const TITLE_HEIGHT: i32 = 36;
/// Font name in SVG pictures: the reader's own sans-serif font.
pub const FONT: &str = "sans-serif";
/// Height of a text in pixels.
pub const FONT_PIXELS: i32 = 12;
const TITLE_PIXELS: i32 = 16;
const INK: RGBColor = RGBColor(40, 40, 40);
/// Grid lines.
pub const GRID: RGBColor = RGBColor(228, 228, 228);
/// Lines of the scales.
pub const FRAME: RGBColor = RGBColor(110, 110, 110);
/// Error bars of bars.
pub const THIN: RGBColor = RGBColor(60, 60, 60);
/// The paper's numbers next to bars, which have colours of their own.
pub const PAPER: RGBColor = RGBColor(0, 0, 0);
/// Bars of our systems, if there are others, and bars of the others.
pub const OURS: RGBColor = RGBColor(0, 114, 178);
/// See [`OURS`].
pub const OTHERS: RGBColor = RGBColor(175, 175, 175);

/// Colours that people with any kind of colour vision can distinguish (Okabe and Ito).
const COLOURS: [RGBColor; SERIES_MAX] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(110, 110, 110),
    RGBColor(240, 228, 66),
];

/// Number of series that colours can distinguish. A picture with more names each bar.
pub const SERIES_MAX: usize = 8;

/// The colour of a series by its index in the legend.
pub fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

/// The shape of a point by its index in the legend: `None` for a circle, or a polygon.
pub fn point(place: usize, (x, y): (i32, i32)) -> Option<Vec<(i32, i32)>> {
    let corners: &[(i32, i32)] = match place % 4 {
        0 => return None,
        1 => &[(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2 => &[(0, -5), (5, 4), (-5, 4)],
        _ => &[(0, 5), (5, -4), (-5, -4)],
    };
    Some(corners.iter().map(|(dx, dy)| (x + dx, y + dy)).collect())
}

fn at(horizontal: HPos) -> TextStyle<'static> {
    TextStyle::from((FONT, FONT_PIXELS))
        .color(&INK)
        .pos(Pos::new(horizontal, VPos::Center))
}

/// Plain text, aligned left.
pub fn left() -> TextStyle<'static> {
    at(HPos::Left)
}

/// Plain text, aligned right.
pub fn right() -> TextStyle<'static> {
    at(HPos::Right)
}

/// Plain text, centred.
pub fn centred() -> TextStyle<'static> {
    at(HPos::Center)
}

/// The name of a panel.
pub fn bold_centred() -> TextStyle<'static> {
    let font = (FONT, FONT_PIXELS).into_font().style(FontStyle::Bold);
    TextStyle::from(font)
        .color(&INK)
        .pos(Pos::new(HPos::Center, VPos::Center))
}

/// The title.
pub fn title() -> TextStyle<'static> {
    TextStyle::from((FONT, TITLE_PIXELS))
        .color(&INK)
        .pos(Pos::new(HPos::Center, VPos::Center))
}

/// Width of a plain text in pixels.
pub fn text_width(text: &str) -> i32 {
    width(&left(), text)
}

/// Width of a title in pixels.
pub fn title_width(text: &str) -> i32 {
    width(&title(), text)
}

fn width(style: &TextStyle<'_>, text: &str) -> i32 {
    let size = style.font.box_size(text);
    // Without font metrics, use an average width.
    size.map_or(text.chars().count() as i32 * 7, |(width, _)| width as i32)
}

/// Registers the font for measuring text, once.
pub fn register_font() -> Result<()> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let font = || {
        let plain = register(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok();
        plain && register(FONT, FontStyle::Bold, dejavu::sans::bold()).is_ok()
    };
    DONE.get_or_init(font)
        .then_some(())
        .ok_or_else(|| anyhow!("the font of the figures cannot be read"))
}
