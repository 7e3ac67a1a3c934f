//! Lines over a scale, each point with its bar of error.

use anyhow::Result;
use plotters::{
    coord::{
        Shift,
        ranged1d::{AsRangedCoord, ValueFormatter},
    },
    prelude::*,
};

use super::{Plot, scale, style};
use crate::Data;

/// Marks on the horizontal scale, at most.
const MARKS_MAX: usize = 8;

/// Draws one panel. `shared` is the largest value of all panels if they share their vertical scale.
pub fn draw<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    plot: &Plot,
    data: &Data,
    panel: &str,
    series: &[&str],
    shared: Option<f64>,
) -> Result<()>
where
    DB::ErrorType: 'static,
{
    let rows: Vec<_> = data.rows.iter().filter(|row| row.panel == panel).collect();
    let (left, right) = scale::ends(rows.iter().filter_map(|row| row.across()), plot.log_x);
    let ends = rows.iter().map(|row| row.whiskers());
    let heights = ends
        .flat_map(|(low, high)| [low, high])
        .chain(shared)
        .collect::<Vec<_>>();
    let (bottom, top) = scale::ends(heights.into_iter(), plot.log_y);
    let marks = match plot.whole_x {
        true => (right.floor() as usize + 1).min(MARKS_MAX),
        false => MARKS_MAX,
    };
    let panel = Panel {
        marks,
        area,
        plot,
        data,
        panel,
        series,
    };
    match (plot.log_x, plot.log_y) {
        (false, false) => panel.draw(left..right, bottom..top),
        (true, false) => panel.draw((left..right).log_scale(), bottom..top),
        (false, true) => panel.draw(left..right, (bottom..top).log_scale()),
        (true, true) => panel.draw((left..right).log_scale(), (bottom..top).log_scale()),
    }
}

struct Panel<'a, DB: DrawingBackend> {
    marks: usize,
    area: &'a DrawingArea<DB, Shift>,
    plot: &'a Plot,
    data: &'a Data,
    panel: &'a str,
    series: &'a [&'a str],
}

impl<DB: DrawingBackend> Panel<'_, DB>
where
    DB::ErrorType: 'static,
{
    fn draw<X, Y>(&self, x: X, y: Y) -> Result<()>
    where
        X: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
        Y: AsRangedCoord<Value = f64, CoordDescType: ValueFormatter<f64>>,
    {
        let mut chart = ChartBuilder::on(self.area);
        chart.margin(10).x_label_area_size(40).y_label_area_size(58);
        if !self.panel.is_empty() {
            chart.caption(self.panel, style::text());
        }
        let mut chart = chart.build_cartesian_2d(x, y)?;
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .axis_style(BLACK.mix(0.6))
            .label_style(style::text())
            .axis_desc_style(style::text())
            .x_desc(&self.plot.x)
            .y_desc(&self.plot.y)
            .x_labels(self.marks)
            .y_labels(6)
            .x_label_formatter(&|value| scale::label(*value))
            .y_label_formatter(&|value| scale::label(*value))
            .draw()?;
        for (place, series) in self.series.iter().enumerate() {
            let colour = style::colour(place);
            let rows: Vec<_> = self.data.line(self.panel, series).collect();
            let points = rows
                .iter()
                .filter_map(|row| Some((row.across()?, row.spread().median)));
            let points: Vec<(f64, f64)> = points.collect();
            chart.draw_series(LineSeries::new(
                points.iter().copied(),
                colour.stroke_width(2),
            ))?;
            for row in &rows {
                let Some(x) = row.across() else { continue };
                let (low, high) = row.whiskers();
                if low < high {
                    let bar = ErrorBar::new_vertical(
                        x,
                        low,
                        row.spread().median,
                        high,
                        colour.stroke_width(1),
                        7,
                    );
                    chart.draw_series([bar])?;
                }
            }
            let dots = points
                .iter()
                .map(|&point| Circle::new(point, 3, colour.filled()));
            chart.draw_series(dots)?;
        }
        Ok(())
    }
}
