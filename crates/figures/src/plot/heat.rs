//! A table of numbers: a row per category, a column per series. The colour of a cell says how far
//! its number is from the bar, the largest number of some of the series in the same row.

use anyhow::Result;
use plotters::prelude::*;

use super::{
    Panel,
    sheet::{self, Area, Sheet},
    style,
};
use crate::data::X;

/// Height of a row.
const ROW: i32 = 17;
/// Width of a column.
const COLUMN: i32 = 72;
/// Space around the names of rows.
const GAP: i32 = 12;
/// From this distance on, cells have the strongest colour.
const FAR: f64 = 20.0;
/// The weakest and the strongest colour that is not white, as parts of the full one.
const SHADES: (f64, f64) = (0.18, 0.65);

fn names_width(panel: &Panel<'_>) -> i32 {
    let places = panel.data.places(panel.name);
    let widths = places
        .iter()
        .map(|place| style::text_width(&place.to_string()));
    widths.max().unwrap_or(0) + 2 * GAP
}

/// Minimum width of the panel.
pub fn width(panel: &Panel<'_>) -> i32 {
    names_width(panel) + panel.series.len() as i32 * COLUMN + GAP
}

/// Height of the panel.
pub fn height(panel: &Panel<'_>) -> i32 {
    sheet::ABOVE + panel.data.places(panel.name).len() as i32 * ROW + 2 * GAP
}

/// How far a number is from the bar, if that is farther than near.
fn distance(panel: &Panel<'_>, place: &X, number: f64) -> Option<f64> {
    let bar = &panel.plot.bar;
    let of = bar.of.iter();
    let of = of.filter_map(|series| panel.data.median(panel.name, series, place.clone()));
    let distance = number - of.reduce(f64::max)?;
    (distance.abs() > bar.near).then_some(distance)
}

fn shade(distance: f64) -> RGBColor {
    let full = match distance > 0.0 {
        true => style::colour(0),
        false => style::colour(3),
    };
    let (weakest, strongest) = SHADES;
    let part = weakest + (strongest - weakest) * (distance.abs() / FAR).min(1.0);
    let mixed = |full: u8| (255.0 + (f64::from(full) - 255.0) * part).round() as u8;
    RGBColor(mixed(full.0), mixed(full.1), mixed(full.2))
}

/// Draws one panel.
pub fn draw(sheet: &Sheet<'_>, whole: Area, panel: &Panel<'_>) -> Result<()> {
    let names = names_width(panel);
    let top = whole.top + sheet::ABOVE;
    sheet::write(
        sheet,
        panel.name,
        (whole.left + width(panel) / 2, whole.top + 12),
        style::bold_centred(),
    )?;
    let left = |column: usize| whole.left + names + column as i32 * COLUMN;
    for (column, series) in panel.series.iter().enumerate() {
        let at = (left(column) + COLUMN / 2, top - 10);
        sheet::write(sheet, series, at, style::centred())?;
    }
    for (row, place) in panel.data.places(panel.name).into_iter().enumerate() {
        let y = top + row as i32 * ROW;
        let middle = y + ROW / 2;
        let name = place.to_string();
        sheet::write(sheet, &name, (left(0) - GAP, middle), style::right())?;
        for (column, series) in panel.series.iter().enumerate() {
            let Some(number) = panel.data.median(panel.name, series, place.clone()) else {
                continue;
            };
            let x = left(column);
            let corners = [(x + 1, y + 1), (x + COLUMN - 1, y + ROW - 1)];
            let distance = distance(panel, place, number);
            if let Some(distance) = distance {
                sheet.draw(&Rectangle::new(corners, shade(distance).filled()))?;
            }
            if panel.plot.is_ours(series) && distance.is_some_and(|distance| distance < 0.0) {
                let frame = style::colour(3).stroke_width(2);
                sheet.draw(&Rectangle::new(corners, frame))?;
            }
            let label = format!("{number:.1}");
            let at = (x + COLUMN / 2, middle);
            sheet::write(sheet, &label, at, style::centred())?;
        }
    }
    Ok(())
}
