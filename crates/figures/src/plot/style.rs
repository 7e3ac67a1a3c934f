//! Sizes, colours, and the font, which comes with the executable so that no system font is needed.

use std::sync::OnceLock;

use anyhow::{Result, anyhow};
use plotters::{
    prelude::*,
    style::{
        register_font as register,
        text_anchor::{HPos, Pos, VPos},
    },
};

/// Width of a panel in pixels.
pub const PANEL_WIDTH: u32 = 460;
/// Height of a panel in pixels.
pub const PANEL_HEIGHT: u32 = 300;
/// Height of the line with the title in pixels.
pub const TITLE_HEIGHT: u32 = 36;
/// Name of the font in the pictures: what a reader's own machine calls its plain one.
pub const FONT: &str = "sans-serif";
const FONT_PIXELS: u32 = 12;
const TITLE_PIXELS: u32 = 16;
const INK: RGBColor = RGBColor(40, 40, 40);

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito).
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(110, 110, 110),
    RGBColor(240, 228, 66),
];

/// The colour of a line by its place in the legend.
pub fn colour(place: usize) -> RGBColor {
    COLOURS[place % COLOURS.len()]
}

/// Plain text, grown from its upper left corner.
pub fn text() -> TextStyle<'static> {
    TextStyle::from((FONT, FONT_PIXELS)).color(&INK)
}

/// Plain text around a middle.
pub fn centred() -> TextStyle<'static> {
    text().pos(Pos::new(HPos::Center, VPos::Center))
}

/// The title, around a middle.
pub fn title() -> TextStyle<'static> {
    TextStyle::from((FONT, TITLE_PIXELS))
        .color(&INK)
        .pos(Pos::new(HPos::Center, VPos::Center))
}

/// Makes the font known to the measuring of text, once.
pub fn register_font() -> Result<()> {
    static DONE: OnceLock<bool> = OnceLock::new();
    let font = || register(FONT, FontStyle::Normal, dejavu::sans::regular()).is_ok();
    DONE.get_or_init(font)
        .then_some(())
        .ok_or_else(|| anyhow!("the font of the figures cannot be read"))
}
