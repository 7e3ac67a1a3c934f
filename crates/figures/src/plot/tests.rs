//! Checks the contents of pictures, and that they are legible.

use std::path::Path;

use resvg::usvg::roxmltree::{Document, Node};

use super::*;
use crate::{Columns, Kind, Needs, Point, catalogue, output};

fn spec(plot: Plot) -> Spec {
    Spec {
        name: "test",
        title: "A title & more",
        source: "",
        claim: "",
        here: "",
        kind: Kind::Exact,
        needs: Needs::one_core(0),
        columns: Columns {
            panel: "panel",
            series: "series",
            x: "x",
            y: "y",
        },
        plot,
    }
}

/// A text in a picture with its bounding box: left, top, right, bottom.
#[derive(Debug)]
struct Written {
    text: String,
    edges: [f64; 4],
}

impl Written {
    fn of(node: Node<'_, '_>) -> Option<Written> {
        let text = node.text()?.trim().to_owned();
        let number = |name| node.attribute(name)?.parse::<f64>().ok();
        let (x, y) = (number("x")?, number("y")?);
        let is_title = number("font-size")? > 12.0;
        let width = f64::from(match is_title {
            true => style::title_width(&text),
            false => style::text_width(&text),
        });
        let left = match node.attribute("text-anchor")? {
            "middle" => x - width / 2.0,
            "end" => x - width,
            _ => x,
        };
        // Text is centred vertically at its position; capitals are 9 pixels high.
        Some(Written {
            text,
            edges: [left, y - 5.0, left + width, y + 5.0],
        })
    }

    fn touches(&self, other: &Written) -> bool {
        let ([a, b, c, d], [e, f, g, h]) = (self.edges, other.edges);
        a < g && e < c && b < h && f < d
    }
}

fn written(svg: &str) -> Vec<Written> {
    let tree = Document::parse(svg).unwrap();
    let texts = tree.descendants().filter(|node| node.has_tag_name("text"));
    texts
        .filter_map(Written::of)
        .filter(|written| !written.text.is_empty())
        .collect()
}

fn texts(svg: &str) -> Vec<String> {
    written(svg)
        .into_iter()
        .map(|written| written.text)
        .collect()
}

/// Every committed figure, drawn from its data.
fn committed() -> Vec<(Spec, Data, String)> {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/figures"));
    let draw = |figure: &'static dyn crate::Figure| {
        let spec = figure.spec();
        let record = output::read(spec.name, docs).unwrap()?;
        let picture = svg(&spec, &record.data).unwrap();
        Some((spec, record.data, picture))
    };
    let all: Vec<_> = catalogue::all().into_iter().filter_map(draw).collect();
    assert!(all.len() > 15, "the data of {} figures", all.len());
    all
}

#[test]
fn no_text_of_a_committed_picture_touches_another_or_leaves_the_picture() {
    for (spec, _, picture) in committed() {
        let tree = Document::parse(&picture).unwrap();
        let side = |name| {
            tree.root_element()
                .attribute(name)
                .unwrap()
                .parse::<f64>()
                .unwrap()
        };
        let texts = written(&picture);
        for (at, text) in texts.iter().enumerate() {
            let [left, top, right, bottom] = text.edges;
            let is_inside =
                left >= 0.0 && top >= 0.0 && right <= side("width") && bottom <= side("height");
            assert!(is_inside, "{}: {text:?} leaves the picture", spec.name);
            for other in &texts[at + 1..] {
                assert!(
                    !text.touches(other),
                    "{}: {text:?} touches {other:?}",
                    spec.name
                );
            }
        }
    }
}

#[test]
fn every_series_of_a_committed_picture_can_be_told_apart() {
    for (spec, data, picture) in committed() {
        let series = data.series();
        if spec.plot.form != Form::Ranks {
            assert!(
                series.len() <= style::SERIES_MAX,
                "{}: {series:?}",
                spec.name
            );
            let all: Vec<_> = (0..series.len()).map(style::colour).collect();
            for (at, colour) in all.iter().enumerate() {
                assert!(!all[..at].contains(colour), "two series in one colour");
            }
        }
        let texts = texts(&picture);
        for name in series.iter().filter(|_| series.len() > 1) {
            assert!(
                texts.iter().any(|text| text == name),
                "{}: {name} is not named",
                spec.name
            );
        }
    }
}

#[test]
fn scales_of_cores_mark_what_was_measured_and_others_have_marks_enough() {
    for (spec, data, _) in committed() {
        let (names, series) = (data.panels(), data.series());
        for name in names.iter().filter(|_| spec.plot.form == Form::Lines) {
            let panel = Panel {
                plot: &spec.plot,
                data: &data,
                name,
                series: &series,
            };
            let across = lines::across(&panel).marks;
            let rows = data.rows.iter().filter(|row| row.panel == *name);
            let measured: Vec<f64> = rows.filter_map(crate::Row::across).collect();
            if spec.plot.whole_x {
                let is_measured = |(mark, _): &(f64, String)| measured.contains(mark);
                assert!(across.iter().all(is_measured), "{}: {across:?}", spec.name);
            } else {
                assert!(across.len() >= 3, "{}: {across:?}", spec.name);
            }
            let up = lines::up(&panel, &panel.values()).marks;
            assert!(up.len() >= 3, "{}: {up:?}", spec.name);
        }
    }
}

#[test]
fn no_committed_picture_has_a_letter_before_a_unit_of_time() {
    for (spec, _, picture) in committed() {
        for text in texts(&picture) {
            let is_time = ["s", "µs", "ms", "ns"]
                .iter()
                .any(|unit| spec.plot.y.ends_with(&format!(", {unit}")));
            assert!(
                !is_time,
                "{}: {:?} belongs to the numbers",
                spec.name, spec.plot.y
            );
            assert!(
                !text.ends_with(" us") && !text.contains("k µs"),
                "{}: {text}",
                spec.name
            );
        }
    }
}

#[test]
fn every_picture_says_what_its_error_bars_and_hollow_marks_are() {
    for (spec, data, picture) in committed() {
        let all = texts(&picture).join(" ");
        let has_bars = legend::error_bars(&spec.plot, &data).is_some();
        assert_eq!(all.contains("thin lines: "), has_bars, "{}", spec.name);
        let source = spec
            .plot
            .paper
            .as_ref()
            .map_or("thin", |paper| paper.source);
        let begin = source.split(' ').next().unwrap();
        assert!(!has_bars || all.contains(begin), "{}", spec.name);
        assert_eq!(
            all.contains("hollow: "),
            spec.plot.paper.is_some(),
            "{}",
            spec.name
        );
    }
}

#[test]
fn every_number_of_a_paper_stands_beside_one_of_ours() {
    for (spec, data, _) in committed() {
        for mark in spec.plot.paper.iter().flat_map(|paper| &paper.marks) {
            let line: Vec<_> = data.line(mark.panel, mark.series).collect();
            assert!(!line.is_empty(), "{}: {mark:?}", spec.name);
            assert!(mark.range.0 <= mark.range.1, "{}: {mark:?}", spec.name);
            if let At::Word(word) = mark.at {
                let places = data.places(mark.panel);
                let is_there = places.iter().any(|place| place.to_string() == word);
                assert!(
                    is_there,
                    "{}: {mark:?} is not at one of {places:?}",
                    spec.name
                );
            }
        }
    }
}

#[test]
fn the_papers_numbers_are_hollow_and_inside_the_scale() {
    let mut data = Data::default();
    data.add(Point::new("", "ours", "x", 3.0));
    let marks = vec![Mark::bar("", "ours", "x", 30.0).to(40.0)];
    let bare = svg(&spec(Plot::bars("", "y")), &data).unwrap();
    let plot = Plot::bars("", "y").paper("the text, §1", marks);
    let picture = svg(&spec(plot), &data).unwrap();
    // Two ends of a range, and the mark in the legend.
    assert_eq!(bare.matches("<polygon").count(), 0);
    assert_eq!(picture.matches("<polygon").count(), 3);
    let texts = texts(&picture);
    assert!(
        texts.contains(&"40".to_owned()),
        "the scale ends below: {texts:?}"
    );
    assert!(
        texts.contains(&"hollow: the text, §1".to_owned()),
        "{texts:?}"
    );
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
        "bars: medians of 2 repetitions; thin lines: their range",
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
fn named_bars_show_every_name_and_every_number() {
    let mut data = Data::default();
    for (at, series) in ["glimmer", "one", "two", "three"].into_iter().enumerate() {
        for x in ["reads", "writes"] {
            data.add(Point::new("", series, x, 1e6 * (at + 1) as f64));
        }
    }
    let svg = svg(&spec(Plot::ranks("per second")), &data).unwrap();
    let written = written(&svg);
    let row = |name: &str| {
        written
            .iter()
            .find(|other| other.text == name)
            .unwrap()
            .edges[1]
    };
    assert!(
        row("three") < row("two") && row("one") < row("glimmer"),
        "best first"
    );
    let numbers = written.iter().filter(|other| other.text == "3 M").count();
    assert_eq!(numbers, 2, "{written:?}");
}

#[test]
fn a_heat_map_frames_where_ours_is_below_the_bar() {
    let mut data = Data::default();
    for (x, ours, one, two) in [("a", 99.5, 100.0, 50.0), ("b", 97.0, 50.0, 100.0)] {
        data.add(Point::new("", "glimmer", x, ours));
        data.add(Point::new("", "one", x, one));
        data.add(Point::new("", "two", x, two));
    }
    let heat = |near| svg(&spec(Plot::heat("glimmer", &["one", "two"], near)), &data).unwrap();
    // A number that is as good as the bar has no colour, and a frame is drawn beside one.
    let coloured = |svg: &str| svg.matches("<rect").count() - 1;
    assert_eq!(coloured(&heat(1.0)), 2 + 1 + 1);
    assert_eq!(coloured(&heat(0.1)), 2 + 2 + 2);
    assert_eq!(coloured(&heat(60.0)), 0);
    let texts = texts(&heat(1.0));
    for text in ["a", "b", "glimmer", "one", "two", "99.5", "97.0"] {
        assert!(
            texts.iter().any(|other| other == text),
            "{text} in {texts:?}"
        );
    }
    assert!(
        texts
            .iter()
            .any(|text| text.starts_with("blue: more than 1"))
    );
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
    assert_eq!(picture.width(), 2 * style::PANEL_WIDTH as u32);
    // The title is text: without a font, the upper rows would be white.
    let title_rows = 2 * style::TITLE_HEIGHT as u32 * picture.width();
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
