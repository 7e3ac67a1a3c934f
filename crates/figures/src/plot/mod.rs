//! Pictures: panels side by side with lines or bars, and a legend below them.

mod axis;
mod bars;
mod heat;
mod legend;
mod lines;
mod paper;
mod png;
mod ranks;
mod sheet;
mod style;
#[cfg(test)]
mod tests;

use anyhow::Result;
use plotters::prelude::*;

use crate::{Data, Spec};
use legend::Legend;
use sheet::Area;

pub use axis::Unit;
pub use paper::{At, Mark, Paper};
pub use png::png;

/// How a figure is drawn.
#[derive(Clone, Debug)]
pub struct Plot {
    form: Form,
    x: String,
    y: String,
    unit: Unit,
    log_x: bool,
    log_y: bool,
    whole_x: bool,
    columns: usize,
    shared_y: bool,
    ours: &'static str,
    paper: Option<Paper>,
    /// What numbers of a heat map are compared with.
    bar: Bar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Lines,
    Bars,
    Ranks,
    Heat,
}

/// What the numbers of a row are compared with.
#[derive(Clone, Debug)]
struct Bar {
    /// The series whose largest number is the bar.
    of: &'static [&'static str],
    /// A number this far from the bar has no colour.
    near: f64,
}

impl Bar {
    /// The meaning of the colours.
    fn told(&self, ours: &str) -> String {
        let (of, near) = (self.of.join(" and "), self.near);
        format!(
            "blue: more than {near} point above the better of {of}; orange: more than {near} point \
             below it; framed: {ours} is below it"
        )
    }
}

impl Plot {
    fn new(form: Form, x: &str, y: &str) -> Plot {
        Plot {
            form,
            x: x.to_owned(),
            y: y.to_owned(),
            unit: Unit::Count,
            log_x: false,
            log_y: false,
            whole_x: false,
            columns: 2,
            shared_y: false,
            ours: "glimmer",
            paper: None,
            bar: Bar { of: &[], near: 0.0 },
        }
    }

    /// Lines over a numeric axis, with these axis labels.
    pub fn lines(x: &str, y: &str) -> Plot {
        Plot::new(Form::Lines, x, y)
    }

    /// Groups of bars, with these axis labels. For at most as many series as there are colours.
    pub fn bars(x: &str, y: &str) -> Plot {
        Plot::new(Form::Bars, x, y)
    }

    /// A row per series with its name and number, best first. For any number of series. Ours are
    /// highlighted.
    pub fn ranks(y: &str) -> Plot {
        Plot::new(Form::Ranks, "", y)
    }

    /// A table of numbers, with a row per category and a column per series. The colour of a cell
    /// says how far its number is above or below the largest of these series, if that is more than
    /// `near`. `ours` is the series that should not be below.
    pub fn heat(ours: &'static str, of: &'static [&'static str], near: f64) -> Plot {
        Plot {
            ours,
            bar: Bar { of, near },
            ..Plot::new(Form::Heat, "", "")
        }
    }

    /// The unit of the vertical scale.
    pub fn unit(mut self, unit: Unit) -> Plot {
        self.unit = unit;
        self
    }

    /// A logarithmic horizontal scale, for lines.
    pub fn log_x(mut self) -> Plot {
        self.log_x = true;
        self
    }

    /// A logarithmic vertical scale, for lines.
    pub fn log_y(mut self) -> Plot {
        self.log_y = true;
        self
    }

    /// Tick marks on the horizontal scale only at measured values, for lines over cores or threads.
    pub fn whole_x(mut self) -> Plot {
        self.whole_x = true;
        self
    }

    /// At most this many panels side by side.
    pub fn columns(mut self, columns: usize) -> Plot {
        self.columns = columns.max(1);
        self
    }

    /// One vertical scale for all panels, so that they can be compared visually.
    pub fn shared_y(mut self) -> Plot {
        self.shared_y = true;
        self
    }

    /// The paper's own numbers, drawn as hollow marks.
    pub fn paper(mut self, source: &'static str, marks: Vec<Mark>) -> Plot {
        self.paper = Some(Paper { source, marks });
        self
    }

    fn is_ours(&self, series: &str) -> bool {
        series.starts_with(self.ours)
    }
}

/// One panel of a picture.
struct Panel<'a> {
    plot: &'a Plot,
    data: &'a Data,
    name: &'a str,
    series: &'a [&'a str],
}

impl Panel<'_> {
    /// The paper's numbers for a series.
    fn marks<'b>(&'b self, series: &'b str) -> impl Iterator<Item = &'b Mark> {
        let all = self.plot.paper.iter().flat_map(|paper| &paper.marks);
        all.filter(move |mark| mark.panel == self.name && mark.series == series)
    }

    /// All values on the vertical scale: points, error bars and the paper's numbers.
    fn values(&self) -> Vec<f64> {
        let rows = self.data.rows.iter().filter(|row| row.panel == self.name);
        let ends = rows.map(|row| (row.whiskers(), row.spread().median));
        let mut values: Vec<f64> = ends
            .flat_map(|((low, high), median)| [low, high, median])
            .collect();
        for series in self.series {
            values.extend(
                self.marks(series)
                    .flat_map(|mark| [mark.range.0, mark.range.1]),
            );
        }
        values
    }

    fn width(&self) -> i32 {
        let least = match self.plot.form {
            Form::Lines => 0,
            Form::Bars => bars::width(self),
            Form::Ranks => ranks::width(self),
            Form::Heat => heat::width(self),
        };
        least.max(style::PANEL_WIDTH)
    }

    fn height(&self) -> i32 {
        match self.plot.form {
            Form::Lines | Form::Bars => style::PANEL_HEIGHT,
            Form::Ranks => ranks::height(self),
            Form::Heat => heat::height(self),
        }
    }
}

/// Draws a figure as SVG.
pub fn svg(spec: &Spec, data: &Data) -> Result<String> {
    style::register_font()?;
    let (plot, names, series) = (&spec.plot, data.panels(), data.series());
    let panels: Vec<Panel<'_>> = names
        .iter()
        .map(|name| Panel {
            plot,
            data,
            name,
            series: &series,
        })
        .collect();
    let columns = plot.columns.min(panels.len()).max(1);
    let widest = panels.iter().map(Panel::width).max();
    let widest = widest.unwrap_or(style::PANEL_WIDTH);
    let width = (widest * columns as i32).max(style::title_width(spec.title) + 2 * sheet::RIGHT);
    let heights = panels
        .chunks(columns)
        .map(|row| row.iter().map(Panel::height).max());
    let heights: Vec<i32> = heights.map(Option::unwrap_or_default).collect();
    let body: i32 = heights.iter().sum();
    let legend = Legend::new(plot, data, &series, width);
    let height = style::TITLE_HEIGHT + body + legend.height;

    let all: Vec<f64> = panels.iter().flat_map(Panel::values).collect();
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width as u32, height as u32));
        let root = root.into_drawing_area();
        root.fill(&WHITE)?;
        let middle = (width / 2, style::TITLE_HEIGHT / 2);
        sheet::write(&root, spec.title, middle, style::title())?;
        let mut top = style::TITLE_HEIGHT;
        for (row, &height) in panels.chunks(columns).zip(&heights) {
            let width = width / columns as i32;
            for (column, panel) in row.iter().enumerate() {
                let place = Area {
                    left: column as i32 * width,
                    top,
                    width,
                    height,
                };
                let values = match plot.shared_y {
                    true => all.clone(),
                    false => panel.values(),
                };
                match plot.form {
                    Form::Lines => lines::draw(&root, place, panel, &values)?,
                    Form::Bars => bars::draw(&root, place, panel, &values)?,
                    Form::Ranks => ranks::draw(&root, place, panel, &values)?,
                    Form::Heat => heat::draw(&root, place, panel)?,
                }
            }
            top += height;
        }
        legend.draw(
            &root,
            Area {
                left: 0,
                top,
                width,
                height: legend.height,
            },
        )?;
        root.present()?;
    }
    Ok(svg)
}
