//! Pictures: one panel beside another, lines or bars in each, one legend below.

mod bars;
mod legend;
mod lines;
mod png;
mod scale;
mod style;

use anyhow::Result;
use plotters::prelude::*;

use crate::{Data, Spec};
use style::{PANEL_HEIGHT, PANEL_WIDTH};

pub use png::png;

/// How a figure is drawn.
#[derive(Clone, Debug)]
pub struct Plot {
    form: Form,
    x: String,
    y: String,
    log_x: bool,
    log_y: bool,
    whole_x: bool,
    columns: usize,
    shared_y: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Lines,
    Bars,
}

impl Plot {
    fn new(form: Form, x: &str, y: &str) -> Plot {
        Plot {
            form,
            x: x.to_owned(),
            y: y.to_owned(),
            log_x: false,
            log_y: false,
            whole_x: false,
            columns: 2,
            shared_y: false,
        }
    }

    /// Lines over a scale, with these words at the axes.
    pub fn lines(x: &str, y: &str) -> Plot {
        Plot::new(Form::Lines, x, y)
    }

    /// Groups of bars, with these words at the axes.
    pub fn bars(x: &str, y: &str) -> Plot {
        Plot::new(Form::Bars, x, y)
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

    /// Marks at whole numbers only on the horizontal scale, for lines over cores or threads.
    pub fn whole_x(mut self) -> Plot {
        self.whole_x = true;
        self
    }

    /// So many panels side by side, unless there are fewer.
    pub fn columns(mut self, columns: usize) -> Plot {
        self.columns = columns.max(1);
        self
    }

    /// One vertical scale for all panels, so that they can be compared by eye.
    pub fn shared_y(mut self) -> Plot {
        self.shared_y = true;
        self
    }
}

/// Draws a figure as SVG.
pub fn svg(spec: &Spec, data: &Data) -> Result<String> {
    style::register_font()?;
    let (plot, panels, series) = (&spec.plot, data.panels(), data.series());
    let columns = plot.columns.min(panels.len()).max(1);
    let lines = panels.len().div_ceil(columns).max(1);
    let width = PANEL_WIDTH * columns as u32;
    let legend_height = legend::height(&series, width);
    let height = style::TITLE_HEIGHT + PANEL_HEIGHT * lines as u32 + legend_height;

    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let (title, rest) = root.split_vertically(style::TITLE_HEIGHT);
        let middle = (width as i32 / 2, style::TITLE_HEIGHT as i32 / 2);
        title.draw(&Text::new(spec.title, middle, style::title()))?;
        let (body, foot) = rest.split_vertically(PANEL_HEIGHT * lines as u32);
        let shared = data.rows.iter().map(|row| row.whiskers().1);
        let shared = plot.shared_y.then(|| shared.fold(0.0, f64::max));
        for (area, panel) in body.split_evenly((lines, columns)).iter().zip(&panels) {
            match plot.form {
                Form::Lines => lines::draw(area, plot, data, panel, &series, shared)?,
                Form::Bars => bars::draw(area, plot, data, panel, &series, shared)?,
            }
        }
        legend::draw(&foot, plot.form, &series)?;
        root.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Columns, Kind, Needs, Point};

    fn spec(plot: Plot) -> Spec {
        Spec {
            name: "test",
            title: "A title & more",
            source: "",
            claim: "",
            here: "",
            kind: Kind::Exact,
            needs: Needs {
                cores: 1,
                cores_of_paper: 1,
                memory_mib: 0,
                peers: &[],
            },
            columns: Columns {
                panel: "panel",
                series: "series",
                x: "x",
                y: "y",
            },
            plot,
        }
    }

    /// Every text in the picture.
    fn texts(svg: &str) -> Vec<String> {
        let tree = resvg::usvg::roxmltree::Document::parse(svg).unwrap();
        let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
        texts
            .filter_map(|node| Some(node.text()?.trim().to_owned()))
            .collect()
    }

    #[test]
    fn bars_show_every_group_and_every_series() {
        let mut data = Data::default();
        for panel in ["tiny", "large"] {
            for (series, y) in [("ours", 3e6), ("theirs", 5e5)] {
                for x in ["50% GET", "95% GET"] {
                    data.add(Point::new(panel, series, x, y));
                    data.add(Point::new(panel, series, x, y * 1.1));
                }
            }
        }
        let svg = svg(&spec(Plot::bars("load", "operations/s")), &data).unwrap();
        let texts = texts(&svg);
        for text in [
            "A title & more",
            "tiny",
            "large",
            "ours",
            "theirs",
            "50% GET",
            "3 M",
        ] {
            assert!(
                texts.iter().any(|other| other == text),
                "{text} in {texts:?}"
            );
        }
        let bars = svg.matches("<rect").count();
        assert!(bars >= 8 + 2, "{bars} rectangles");
    }

    #[test]
    fn lines_bend_on_either_kind_of_scale() {
        let mut data = Data::default();
        for x in [1.0, 10.0, 100.0, 1000.0] {
            data.add(Point::new("", "line", x, x * x));
        }
        for plot in [
            Plot::lines("x", "y"),
            Plot::lines("x", "y").log_x(),
            Plot::lines("x", "y").log_x().log_y(),
            Plot::lines("x", "y").log_y(),
        ] {
            let svg = svg(&spec(plot), &data).unwrap();
            assert_eq!(svg.matches("<circle").count(), 4, "points");
        }
    }

    #[test]
    fn the_png_has_the_pictures_size_twice_and_is_not_blank() {
        let mut data = Data::default();
        data.add(Point::new("", "line", "word", 1.0));
        let svg = svg(&spec(Plot::bars("x", "y")), &data).unwrap();
        let png = png(&svg).unwrap();
        let picture = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
        assert_eq!(picture.width(), 2 * PANEL_WIDTH);
        // The title is text: without a font the upper rows would be white.
        let title_rows = 2 * style::TITLE_HEIGHT * picture.width();
        let inked = picture.pixels()[..title_rows as usize]
            .iter()
            .filter(|pixel| pixel.red() < 128)
            .count();
        assert!(inked > 100, "{inked} dark pixels in the title");
    }

    #[test]
    fn a_figure_without_data_is_drawn_empty() {
        let picture = svg(&spec(Plot::lines("x", "y")), &Data::default()).unwrap();
        assert!(picture.starts_with("<svg"));
    }
}
