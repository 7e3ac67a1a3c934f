//! Groups of bars: one group per category of the horizontal axis, one colour per series.

use anyhow::Result;
use plotters::prelude::*;

use super::{
    Panel,
    axis::Axis,
    paper::At,
    sheet::{self, Area, Sheet},
    style,
};
use crate::data::X;

/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.8;
/// Maximum number of lines of the label below a group.
const WORD_LINES: i32 = 3;
/// Height of such a line.
const WORD_LINE: i32 = 14;

/// Minimum width of the panel at which no label touches the next and none must be broken within a
/// word.
pub fn width(panel: &Panel<'_>) -> i32 {
    let places = panel.data.places(panel.name);
    let longest = |place: &&X| {
        let text = place.to_string();
        let words = text.split(' ').map(style::text_width);
        // A label of three or more words is broken into up to three lines.
        words
            .max()
            .unwrap_or(0)
            .max(style::text_width(&text) / WORD_LINES)
    };
    let word = places.iter().map(longest).max().unwrap_or(0) + 8;
    word * places.len() as i32 + 80
}

/// Draws one panel. `values` are the values of its scale.
pub fn draw(sheet: &Sheet<'_>, whole: Area, panel: &Panel<'_>, values: &[f64]) -> Result<()> {
    let data = panel.data;
    let places = data.places(panel.name);
    let axis = Axis::linear(values, panel.plot.unit);
    let plot = whole.within([
        sheet::room_for(&axis),
        sheet::ABOVE,
        sheet::RIGHT,
        sheet::BELOW + 8,
    ]);
    sheet::heads(sheet, whole, plot, panel.name, &panel.plot.y)?;
    sheet::vertical(sheet, plot, &axis)?;
    sheet::line(
        sheet,
        (plot.left, plot.bottom()),
        (plot.right(), plot.bottom()),
        style::FRAME,
    )?;
    sheet::write(
        sheet,
        &panel.plot.x,
        (plot.x(0.5), whole.bottom() - 8),
        style::centred(),
    )?;

    // A series that is missing in this panel leaves no gap in its groups.
    let here: Vec<(usize, &str)> = panel
        .series
        .iter()
        .enumerate()
        .filter(|(_, series)| data.line(panel.name, series).next().is_some())
        .map(|(place, series)| (place, *series))
        .collect();
    let group_width = 1.0 / places.len().max(1) as f64;
    let width = FILLED * group_width / here.len().max(1) as f64;
    let y = |value: f64| plot.y(axis.part(value));
    for (group, place) in places.iter().enumerate() {
        let start = (group as f64 + (1.0 - FILLED) / 2.0) * group_width;
        for (bar, (colour, series)) in here.iter().enumerate() {
            let (left, right) = (
                start + bar as f64 * width,
                start + (bar as f64 + 0.9) * width,
            );
            let (left, right) = (plot.x(left), plot.x(right));
            let middle = (left + right) / 2;
            if let Some(row) = data.row(panel.name, series, (*place).clone()) {
                let corners = [(left, y(row.spread().median)), (right, plot.bottom())];
                sheet.draw(&Rectangle::new(corners, style::colour(*colour).filled()))?;
                let (low, high) = row.whiskers();
                if low < high {
                    sheet::line(sheet, (middle, y(low)), (middle, y(high)), style::THIN)?;
                }
            }
            for mark in panel.marks(series) {
                let is_here =
                    matches!((mark.at, place), (At::Word(word), X::Word(here)) if word == here);
                if is_here {
                    let ys = (y(mark.range.0), y(mark.range.1));
                    sheet::hollow(sheet, middle, ys, style::PAPER, true)?;
                }
            }
        }
        let room = (f64::from(plot.width) * group_width) as i32 - 6;
        let middle = plot.x((group as f64 + 0.5) * group_width);
        let lines = sheet::broken(&place.to_string(), room);
        for (row, text) in lines.iter().enumerate() {
            let below = plot.bottom() + 12 + row as i32 * WORD_LINE;
            sheet::write(sheet, text, (middle, below), style::centred())?;
        }
    }
    Ok(())
}
