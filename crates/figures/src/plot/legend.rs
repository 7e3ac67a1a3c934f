//! The legend below the picture: names of all series with their colours and shapes, and the meaning
//! of error bars and hollow marks.

use anyhow::Result;
use plotters::prelude::*;

use super::{
    Form, Plot, lines,
    sheet::{self, Area, Sheet},
    style,
};
use crate::Data;

const ROW: i32 = 20;
const MARGIN: i32 = 8;
const MARK_WIDTH: i32 = 22;
const GAP: i32 = 22;

/// Everything below a picture.
pub struct Legend<'a> {
    plot: &'a Plot,
    series: &'a [&'a str],
    /// Positions of the series' names, from the upper left corner.
    places: Vec<(i32, i32)>,
    /// Explanations of marks, broken into lines. The flag marks the first line about hollow marks.
    notes: Vec<(bool, String)>,
    /// Total height.
    pub height: i32,
}

impl<'a> Legend<'a> {
    /// The legend of a picture of this width.
    pub fn new(plot: &'a Plot, data: &Data, series: &'a [&'a str], width: i32) -> Legend<'a> {
        let (mut places, mut x, mut row) = (Vec::new(), GAP, 0);
        // A single series needs no name, and named bars and columns show theirs.
        let is_named = !matches!(plot.form, Form::Ranks | Form::Heat) && series.len() > 1;
        for name in series.iter().filter(|_| is_named) {
            let wide = style::text_width(name) + MARK_WIDTH + GAP;
            if x + wide > width && x > GAP {
                (x, row) = (GAP, row + 1);
            }
            places.push((x, row * ROW + ROW / 2));
            x += wide;
        }
        let rows = if is_named { row + 1 } else { 0 };
        let room = width - 2 * GAP - MARK_WIDTH;
        let mut notes = Vec::new();
        for (is_paper, text) in [
            (false, error_bars(plot, data)),
            (
                false,
                (plot.form == Form::Heat).then(|| plot.bar.told(plot.ours)),
            ),
            (
                true,
                plot.paper
                    .as_ref()
                    .map(|paper| format!("hollow: {}", paper.source)),
            ),
        ] {
            let lines = text.iter().flat_map(|text| sheet::broken(text, room));
            notes.extend(
                lines
                    .enumerate()
                    .map(|(at, line)| (is_paper && at == 0, line)),
            );
        }
        Legend {
            plot,
            series,
            places,
            height: (rows + notes.len() as i32) * ROW + MARGIN,
            notes,
        }
    }

    /// Draws the legend.
    pub fn draw(&self, sheet: &Sheet<'_>, at: Area) -> Result<()> {
        let mut below = at.top;
        for (place, (name, &(x, y))) in self.series.iter().zip(&self.places).enumerate() {
            let (x, y) = (at.left + x, at.top + y);
            let colour = style::colour(place);
            match self.plot.form {
                Form::Lines => {
                    sheet::line(sheet, (x - 2, y), (x + 16, y), colour.stroke_width(2))?;
                    lines::draw_point(sheet, place, (x + 7, y))?;
                }
                Form::Bars | Form::Ranks | Form::Heat => {
                    let corners = [(x, y - 6), (x + 12, y + 6)];
                    sheet.draw(&Rectangle::new(corners, colour.filled()))?;
                }
            }
            sheet::write(sheet, name, (x + MARK_WIDTH, y), style::left())?;
            below = y + ROW / 2;
        }
        for (row, (is_hollow, text)) in self.notes.iter().enumerate() {
            let y = below + row as i32 * ROW + ROW / 2;
            if *is_hollow {
                sheet::hollow(sheet, at.left + GAP + 7, (y, y), style::PAPER, true)?;
            }
            sheet::write(sheet, text, (at.left + GAP + MARK_WIDTH, y), style::left())?;
        }
        Ok(())
    }
}

/// The meaning of the picture's error bars, if it has any.
pub fn error_bars(plot: &Plot, data: &Data) -> Option<String> {
    let of = match plot.form {
        Form::Lines => "points",
        Form::Bars | Form::Ranks => "bars",
        Form::Heat => "numbers",
    };
    let drawn = data.rows.iter().filter(|row| {
        let (low, high) = row.whiskers();
        low < high
    });
    let repetitions: Vec<usize> = drawn.map(|row| row.samples.len()).collect();
    let (least, most) = (repetitions.iter().min()?, repetitions.iter().max()?);
    let given = data
        .rows
        .iter()
        .any(|row| row.also(crate::Row::LOW).is_some());
    let count = match least == most {
        true => most.to_string(),
        false => format!("{least} to {most}"),
    };
    Some(match given {
        true => format!("{of}: medians; thin lines: from the 5th to the 95th percentile"),
        false => format!("{of}: medians of {count} repetitions; thin lines: their range"),
    })
}
