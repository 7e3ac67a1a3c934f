//! Named bars: a row per series with its name before the bar and its number after it, best first,
//! and a column per category of the horizontal axis. For more series than colours can distinguish.

use anyhow::Result;
use plotters::prelude::*;

use super::{
    Panel,
    sheet::{self, Area, Sheet},
    style,
};

/// Height of a row.
const ROW: i32 = 17;
/// Height of a bar within a row.
const BAR: i32 = 12;
/// Space between columns and around names.
const GAP: i32 = 14;
/// Width of a column of bars, including its numbers.
const COLUMN: i32 = 240;

/// The series of a panel, sorted by the first column, largest number first.
fn rows<'a>(panel: &Panel<'a>) -> Vec<&'a str> {
    let first = panel.data.places(panel.name).first().map(|x| (*x).clone());
    let number = |series: &str| {
        let row = panel.data.row(panel.name, series, first.clone()?)?;
        Some(row.spread().median)
    };
    let here = panel.series.iter().copied();
    let here = here.filter(|series| panel.data.line(panel.name, series).next().is_some());
    let mut rows: Vec<(&str, f64)> = here
        .map(|series| (series, number(series).unwrap_or(0.0)))
        .collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    rows.into_iter().map(|(series, _)| series).collect()
}

fn names_width(panel: &Panel<'_>) -> i32 {
    let widths = rows(panel).into_iter().map(style::text_width);
    widths.max().unwrap_or(0) + 2 * GAP
}

/// Minimum width of the panel.
pub fn width(panel: &Panel<'_>) -> i32 {
    names_width(panel) + panel.data.places(panel.name).len() as i32 * (COLUMN + GAP)
}

/// Height of the panel.
pub fn height(panel: &Panel<'_>) -> i32 {
    sheet::ABOVE + rows(panel).len() as i32 * ROW + 24
}

/// Draws one panel. `values` are the values of its scale.
pub fn draw(sheet: &Sheet<'_>, whole: Area, panel: &Panel<'_>, values: &[f64]) -> Result<()> {
    let names = names_width(panel);
    let places = panel.data.places(panel.name);
    let column = (whole.width - names) / places.len().max(1) as i32;
    let top = whole.top + sheet::ABOVE;
    sheet::write(
        sheet,
        panel.name,
        (whole.x(0.5), whole.top + 12),
        style::bold_centred(),
    )?;
    let rows = rows(panel);
    for (number, series) in rows.iter().enumerate() {
        let y = top + number as i32 * ROW + ROW / 2;
        sheet::write(sheet, series, (whole.left + names - GAP, y), style::right())?;
    }
    let largest = values
        .iter()
        .copied()
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    for (at, place) in places.iter().enumerate() {
        let bars = Area {
            left: whole.left + names + at as i32 * column,
            top,
            width: column - GAP,
            height: rows.len() as i32 * ROW,
        };
        let words = format!("{place}, {}", panel.plot.y);
        sheet::write(sheet, &words, (bars.left, top - 12), style::left())?;
        // Space for the number after the longest bar.
        let numbers = values
            .iter()
            .map(|value| style::text_width(&panel.plot.unit.label(*value)));
        let full = bars.width - numbers.max().unwrap_or(0) - 10;
        let x = |value: f64| bars.left + (value / largest * f64::from(full)).round() as i32;
        for (number, series) in rows.iter().enumerate() {
            let Some(row) = panel.data.row(panel.name, series, (*place).clone()) else {
                continue;
            };
            let y = top + number as i32 * ROW + ROW / 2;
            let median = row.spread().median;
            let colour = match panel.plot.is_ours(series) {
                true => style::OURS,
                false => style::OTHERS,
            };
            let corners = [(bars.left, y - BAR / 2), (x(median), y + BAR / 2)];
            sheet.draw(&Rectangle::new(corners, colour.filled()))?;
            let (low, high) = row.whiskers();
            if low < high {
                sheet::line(sheet, (x(low), y), (x(high), y), style::THIN)?;
            }
            let label = panel.plot.unit.label(median);
            sheet::write(sheet, &label, (x(median.max(high)) + 6, y), style::left())?;
        }
        sheet::line(
            sheet,
            (bars.left, top),
            (bars.left, bars.bottom()),
            style::FRAME,
        )?;
    }
    Ok(())
}
