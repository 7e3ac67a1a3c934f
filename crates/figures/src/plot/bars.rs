//! Groups of bars, one group for each word of the horizontal axis, one colour for each series.

use anyhow::Result;
use plotters::{coord::Shift, prelude::*};

use super::{Plot, scale, style};
use crate::Data;

/// Part of a group's place that its bars fill.
const FILLED: f64 = 0.8;

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
    let places = data.places(panel);
    let rows = data.rows.iter().filter(|row| row.panel == panel);
    let largest = rows.map(|row| row.whiskers().1).fold(0.0, f64::max);
    let top = scale::top(shared.unwrap_or(largest));

    let mut chart = ChartBuilder::on(area);
    chart.margin(10).x_label_area_size(40).y_label_area_size(58);
    if !panel.is_empty() {
        chart.caption(panel, style::text());
    }
    let mut chart = chart.build_cartesian_2d(0.0..places.len().max(1) as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .light_line_style(WHITE)
        .bold_line_style(BLACK.mix(0.12))
        .axis_style(BLACK.mix(0.6))
        .label_style(style::text())
        .axis_desc_style(style::text())
        .x_desc(&plot.x)
        .y_desc(&plot.y)
        .y_labels(6)
        .y_label_formatter(&|value| scale::label(*value))
        .draw()?;

    // A series that this panel lacks leaves no gap in its groups.
    let here: Vec<(usize, &str)> = series
        .iter()
        .enumerate()
        .filter(|(_, series)| data.line(panel, series).next().is_some())
        .map(|(place, series)| (place, *series))
        .collect();
    let width = FILLED / here.len().max(1) as f64;
    for (group, place) in places.iter().enumerate() {
        let start = group as f64 + (1.0 - FILLED) / 2.0;
        for (bar, (colour, series)) in here.iter().enumerate() {
            let Some(row) = data.row(panel, series, (*place).clone()) else {
                continue;
            };
            let (left, right) = (
                start + bar as f64 * width,
                start + (bar as f64 + 0.9) * width,
            );
            let median = row.spread().median;
            let colour = style::colour(*colour).filled();
            chart.draw_series([Rectangle::new([(left, 0.0), (right, median)], colour)])?;
            let (low, high) = row.whiskers();
            if low < high {
                let middle = (left + right) / 2.0;
                let thin = BLACK.mix(0.7).stroke_width(1);
                chart.draw_series([PathElement::new([(middle, low), (middle, high)], thin)])?;
            }
        }
        let (x, y) = chart.backend_coord(&(group as f64 + 0.5, 0.0));
        let (left, upper) = area.get_base_pixel();
        area.draw(&Text::new(
            place.to_string(),
            (x - left, y - upper + 11),
            style::centred(),
        ))?;
    }
    Ok(())
}
