//! The drawing area: text and shapes in pixels, and the frame of a panel.

use anyhow::Result;
use plotters::{coord::Shift, prelude::*};

use super::{axis::Axis, style};

/// The picture.
pub type Sheet<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A rectangle of the picture, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    pub left: i32,
    pub top: i32,
    pub width: i32,
    pub height: i32,
}

impl Area {
    pub fn right(self) -> i32 {
        self.left + self.width
    }

    pub fn bottom(self) -> i32 {
        self.top + self.height
    }

    /// The rectangle reduced by these margins in pixels: left, top, right, bottom.
    pub fn within(self, [left, top, right, bottom]: [i32; 4]) -> Area {
        Area {
            left: self.left + left,
            top: self.top + top,
            width: self.width - left - right,
            height: self.height - top - bottom,
        }
    }

    /// The pixel column at a fraction of its width.
    pub fn x(self, part: f64) -> i32 {
        self.left + (part * f64::from(self.width)).round() as i32
    }

    /// The pixel row at a fraction of its height, measured from the bottom.
    pub fn y(self, part: f64) -> i32 {
        self.bottom() - (part * f64::from(self.height)).round() as i32
    }
}

/// Height of the horizontal scale's labels and of the text below them.
pub const BELOW: i32 = 42;
/// Height of the panel's name and of the vertical scale's label.
pub const ABOVE: i32 = 44;
/// Margin at the right.
pub const RIGHT: i32 = 16;
/// Space between a label and its scale.
const GAP: i32 = 7;

/// Width of the labels of a vertical scale.
pub fn room_for(axis: &Axis) -> i32 {
    let widths = axis.marks.iter().map(|(_, label)| style::text_width(label));
    widths.max().unwrap_or(0) + 2 * GAP + 4
}

/// Draws a text. `x` is its left end, middle or right end, depending on the style; `y` is its
/// middle.
pub fn write(
    sheet: &Sheet<'_>,
    text: &str,
    (x, y): (i32, i32),
    style: TextStyle<'static>,
) -> Result<()> {
    Ok(sheet.draw(&Text::new(text.to_owned(), (x, y), style))?)
}

/// Draws a straight line.
pub fn line(
    sheet: &Sheet<'_>,
    from: (i32, i32),
    to: (i32, i32),
    style: impl Into<ShapeStyle>,
) -> Result<()> {
    Ok(sheet.draw(&PathElement::new([from, to], style))?)
}

/// Draws the panel's name and the label of its vertical scale.
pub fn heads(sheet: &Sheet<'_>, whole: Area, plot: Area, name: &str, y_words: &str) -> Result<()> {
    write(
        sheet,
        name,
        (whole.x(0.5), whole.top + 12),
        style::bold_centred(),
    )?;
    let left = whole.left + 8;
    write(sheet, y_words, (left, plot.top - 14), style::left())
}

/// Draws the vertical scale.
pub fn vertical(sheet: &Sheet<'_>, plot: Area, axis: &Axis) -> Result<()> {
    for (value, label) in &axis.marks {
        let y = plot.y(axis.part(*value));
        line(sheet, (plot.left, y), (plot.right(), y), style::GRID)?;
        write(sheet, label, (plot.left - GAP, y), style::right())?;
    }
    line(
        sheet,
        (plot.left, plot.top),
        (plot.left, plot.bottom()),
        style::FRAME,
    )
}

/// Draws the horizontal scale and the text below it. A label that would touch the previous one is
/// left out.
pub fn horizontal(sheet: &Sheet<'_>, plot: Area, axis: &Axis, words: &str) -> Result<()> {
    let mut end = i32::MIN;
    for (value, label) in &axis.marks {
        let x = plot.x(axis.part(*value));
        let half = style::text_width(label) / 2 + 3;
        line(
            sheet,
            (x, plot.bottom()),
            (x, plot.bottom() + 4),
            style::FRAME,
        )?;
        if x - half <= end {
            continue;
        }
        end = x + half;
        line(sheet, (x, plot.top), (x, plot.bottom()), style::GRID)?;
        write(sheet, label, (x, plot.bottom() + 13), style::centred())?;
    }
    line(
        sheet,
        (plot.left, plot.bottom()),
        (plot.right(), plot.bottom()),
        style::FRAME,
    )?;
    write(
        sheet,
        words,
        (plot.x(0.5), plot.bottom() + 32),
        style::centred(),
    )
}

/// Breaks a text at its spaces so that no line is wider than `width` pixels, except for single
/// words.
pub fn broken(text: &str, width: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if style::text_width(&format!("{line} {word}")) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Draws a number of the paper: a hollow diamond, or two connected ones for a range. On a bar it is
/// filled with white.
pub fn hollow(
    sheet: &Sheet<'_>,
    x: i32,
    ys: (i32, i32),
    colour: RGBColor,
    is_on_bar: bool,
) -> Result<()> {
    const HALF: i32 = 7;
    if ys.0 != ys.1 {
        line(sheet, (x, ys.0), (x, ys.1), colour.stroke_width(2))?;
    }
    for y in [ys.0, ys.1] {
        let corners = vec![(x, y - HALF), (x + HALF, y), (x, y + HALF), (x - HALF, y)];
        if is_on_bar {
            sheet.draw(&Polygon::new(corners.clone(), WHITE.filled()))?;
        }
        let around = corners.iter().chain(&corners[..2]).copied();
        let around = around.collect::<Vec<_>>();
        sheet.draw(&PathElement::new(around, colour.stroke_width(2)))?;
        if ys.0 == ys.1 {
            break;
        }
    }
    Ok(())
}
