//! The names of all series below the picture, each with its colour.

use anyhow::Result;
use plotters::{coord::Shift, prelude::*};

use super::{Form, style};

const ROW_HEIGHT: u32 = 20;
const MARGIN: u32 = 8;
const MARK_WIDTH: i32 = 18;
const GAP: i32 = 22;

/// Places of all entries, and the number of rows they take.
fn places(series: &[&str], width: u32) -> (Vec<(i32, i32)>, u32) {
    let (mut places, mut x, mut row) = (Vec::new(), GAP, 0);
    for name in series {
        let wide = text_width(name) + MARK_WIDTH + GAP;
        if x + wide > width as i32 && x > GAP {
            (x, row) = (GAP, row + 1);
        }
        places.push((x, (row * ROW_HEIGHT + ROW_HEIGHT / 2) as i32));
        x += wide;
    }
    (places, row + 1)
}

fn text_width(text: &str) -> i32 {
    let size = style::text().font.box_size(text);
    // Without metrics, an average width serves.
    size.map_or(text.chars().count() as i32 * 7, |(width, _)| width as i32)
}

/// Height of the legend in pixels. One series alone needs none.
pub fn height(series: &[&str], width: u32) -> u32 {
    if series.len() < 2 {
        return MARGIN;
    }
    places(series, width).1 * ROW_HEIGHT + MARGIN
}

/// Draws it.
pub fn draw<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    form: Form,
    series: &[&str],
) -> Result<()>
where
    DB::ErrorType: 'static,
{
    if series.len() < 2 {
        return Ok(());
    }
    let (places, _) = places(series, area.dim_in_pixel().0);
    for (place, (name, (x, y))) in series.iter().zip(places).enumerate() {
        let colour = style::colour(place);
        match form {
            Form::Bars => area.draw(&Rectangle::new(
                [(x, y - 6), (x + 12, y + 6)],
                colour.filled(),
            ))?,
            Form::Lines => {
                area.draw(&PathElement::new(
                    [(x - 2, y), (x + 14, y)],
                    colour.stroke_width(2),
                ))?;
                area.draw(&Circle::new((x + 6, y), 3, colour.filled()))?;
            }
        }
        area.draw(&Text::new(
            (*name).to_owned(),
            (x + MARK_WIDTH, y - 6),
            style::text(),
        ))?;
    }
    Ok(())
}
