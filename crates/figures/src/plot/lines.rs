//! Lines over a numeric axis, with an error bar for each point.

use anyhow::Result;
use plotters::prelude::*;

use super::{
    Panel,
    axis::{Axis, Unit},
    paper::At,
    sheet::{self, Area, Sheet},
    style,
};

/// A scale with at most this many distinct values has a tick mark at each of them, if it is
/// logarithmic or of whole numbers.
const VALUES_MARKED_MAX: usize = 16;
/// Half the width of an error bar's ends in pixels.
const END_HALF: i32 = 4;

/// The horizontal scale.
pub fn across(panel: &Panel<'_>) -> Axis {
    let rows = || panel.data.rows.iter().filter(|row| row.panel == panel.name);
    let mut values: Vec<f64> = rows().filter_map(crate::Row::across).collect();
    let aimed = rows().all(|row| row.also(crate::Row::ACROSS).is_none());
    let papers = panel.plot.paper.iter().flat_map(|paper| &paper.marks);
    let papers = papers.filter(|mark| mark.panel == panel.name);
    values.extend(papers.filter_map(|mark| match mark.at {
        At::Number(number) => Some(number),
        At::Word(_) | At::End => None,
    }));
    let mut distinct = values.clone();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    let is_few = aimed && distinct.len() <= VALUES_MARKED_MAX;
    match (panel.plot.log_x, panel.plot.whole_x && is_few) {
        (true, _) => Axis::log(&values, Unit::Count, is_few.then_some(distinct)),
        (false, true) => Axis::whole(&values),
        (false, false) => Axis::linear(&values, Unit::Count),
    }
}

/// The vertical scale, which contains these values.
pub fn up(panel: &Panel<'_>, values: &[f64]) -> Axis {
    match panel.plot.log_y {
        true => Axis::log(values, panel.plot.unit, None),
        false => Axis::linear(values, panel.plot.unit),
    }
}

/// Draws one panel, whose vertical scale contains these values.
pub fn draw(sheet: &Sheet<'_>, whole: Area, panel: &Panel<'_>, values: &[f64]) -> Result<()> {
    let across = across(panel);
    let up = up(panel, values);
    let plot = whole.within([
        sheet::room_for(&up),
        sheet::ABOVE,
        sheet::RIGHT,
        sheet::BELOW,
    ]);
    sheet::heads(sheet, whole, plot, panel.name, &panel.plot.y)?;
    sheet::vertical(sheet, plot, &up)?;
    sheet::horizontal(sheet, plot, &across, &panel.plot.x)?;
    let (x, y) = (
        |value| plot.x(across.part(value)),
        |value| plot.y(up.part(value)),
    );
    for (place, series) in panel.series.iter().enumerate() {
        let colour = style::colour(place);
        let rows: Vec<_> = panel.data.line(panel.name, series).collect();
        let points = rows
            .iter()
            .filter_map(|row| Some((x(row.across()?), y(row.spread().median))));
        let points: Vec<(i32, i32)> = points.collect();
        sheet.draw(&PathElement::new(points.clone(), colour.stroke_width(2)))?;
        for (row, &(x, _)) in rows
            .iter()
            .filter(|row| row.across().is_some())
            .zip(&points)
        {
            let (low, high) = row.whiskers();
            if low < high {
                let (low, high) = (y(low), y(high));
                sheet::line(sheet, (x, low), (x, high), colour)?;
                for end in [low, high] {
                    sheet::line(sheet, (x - END_HALF, end), (x + END_HALF, end), colour)?;
                }
            }
        }
        for &point in &points {
            draw_point(sheet, place, point)?;
        }
        for mark in panel.marks(series) {
            let x = match mark.at {
                At::Number(number) => x(number),
                At::End => points.last().map_or(plot.right(), |point| point.0),
                At::Word(_) => continue,
            };
            sheet::hollow(sheet, x, (y(mark.range.0), y(mark.range.1)), colour, false)?;
        }
    }
    Ok(())
}

/// Draws a point of a series.
pub fn draw_point(sheet: &Sheet<'_>, place: usize, point: (i32, i32)) -> Result<()> {
    let filled = style::colour(place).filled();
    match style::point(place, point) {
        None => sheet.draw(&Circle::new(point, 4, filled))?,
        Some(corners) => sheet.draw(&Polygon::new(corners, filled))?,
    }
    Ok(())
}
