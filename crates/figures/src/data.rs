//! The measured data: rows of repetitions, each with a place in the picture.

use std::{collections::BTreeMap, fmt};

use anyhow::Result;
use glimmer_measure::stats::Spread;
use serde::{Deserialize, Serialize};

use crate::Columns;

/// A value on the horizontal axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum X {
    /// A number on a scale.
    Number(f64),
    /// One of several ordered categories.
    Word(String),
}

impl From<f64> for X {
    fn from(number: f64) -> X {
        X::Number(number)
    }
}

impl From<&str> for X {
    fn from(word: &str) -> X {
        X::Word(word.to_owned())
    }
}

impl From<String> for X {
    fn from(word: String) -> X {
        X::Word(word)
    }
}

impl fmt::Display for X {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            X::Number(number) => write!(out, "{number}"),
            X::Word(word) => out.write_str(word),
        }
    }
}

/// One measurement.
#[derive(Clone, Debug)]
pub struct Point {
    panel: String,
    series: String,
    x: X,
    y: f64,
    also: Vec<(&'static str, f64)>,
}

impl Point {
    /// `y` was measured at this place.
    pub fn new(
        panel: impl Into<String>,
        series: impl Into<String>,
        x: impl Into<X>,
        y: f64,
    ) -> Point {
        Point {
            panel: panel.into(),
            series: series.into(),
            x: x.into(),
            y,
            also: Vec::new(),
        }
    }

    /// Adds another measured value, which becomes a column of the data. [`Row::LOW`] and
    /// [`Row::HIGH`] are drawn as the ends of an error bar, [`Row::ACROSS`] as the place on the
    /// horizontal axis. A value that is not finite is left out. The time per operation is such a
    /// value if no operation has ended.
    pub fn also(mut self, name: &'static str, value: f64) -> Point {
        self.also.extend(value.is_finite().then_some((name, value)));
        self
    }

    /// Adds another figure of the same measurement, if it was found.
    pub fn also_if(self, name: &'static str, value: Option<f64>) -> Point {
        match value {
            Some(value) => self.also(name, value),
            None => self,
        }
    }

    /// Why it cannot be added to data: a record holds finite numbers only.
    pub fn lacks_number(&self) -> Option<String> {
        let Point {
            panel, series, x, ..
        } = self;
        (!self.y.is_finite()).then(|| format!("no number was measured of {series} at {panel} {x}"))
    }
}

/// All repetitions at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The panel of the picture.
    pub panel: String,
    /// The line, or the colour of the bars.
    pub series: String,
    /// The value on the horizontal axis.
    pub x: X,
    /// The measured values, in the order of the repetitions.
    pub samples: Vec<f64>,
    /// The repetition of each. A load that a system does not sustain in a repetition has no value
    /// there. Older records do not have it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repetitions: Vec<usize>,
    /// The other measured values by name, in the same order.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub also: BTreeMap<String, Vec<f64>>,
}

impl Row {
    /// Column with the lower end of an error bar that is not the spread of repetitions, for example
    /// a percentile.
    pub const LOW: &'static str = "low";
    /// Column with its upper end.
    pub const HIGH: &'static str = "high";
    /// Column with the place on the horizontal axis, if that was measured too and [`Row::x`] is
    /// only the target.
    pub const ACROSS: &'static str = "across";

    /// Median and range of the repetitions.
    pub fn spread(&self) -> Spread {
        Spread::of(&self.samples)
    }

    /// The median of another measured value.
    pub fn also(&self, name: &str) -> Option<f64> {
        self.also.get(name).map(|values| Spread::of(values).median)
    }

    /// The ends of the error bar.
    pub fn whiskers(&self) -> (f64, f64) {
        let spread = self.spread();
        let low = self.also(Row::LOW).unwrap_or(spread.min);
        let high = self.also(Row::HIGH).unwrap_or(spread.max);
        (low, high)
    }

    /// Which of its values is that of this repetition. A row without numbers of repetitions tells
    /// it only if it has all of them.
    fn place_of(&self, repetition: usize, of: usize) -> Option<usize> {
        match self.repetitions.is_empty() {
            false => self.repetitions.iter().position(|it| *it == repetition),
            true => (self.samples.len() == of && repetition < of).then_some(repetition),
        }
    }

    /// Whether it tells the repetition of each of its values, where there are this many.
    fn tells(&self, of: usize) -> bool {
        !self.repetitions.is_empty() || self.samples.len() == of
    }

    /// The position on a numeric horizontal axis.
    pub fn across(&self) -> Option<f64> {
        self.also(Row::ACROSS).or(match self.x {
            X::Number(number) => Some(number),
            X::Word(_) => None,
        })
    }
}

/// All data of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Data {
    /// In the order of measurement, which determines the order of panels, lines and categories in
    /// the picture.
    pub rows: Vec<Row>,
}

impl Data {
    /// Adds the next repetition to its row.
    pub fn add(&mut self, point: Point) {
        let row = self.row_of(&point);
        let next = row.repetitions.last().map_or(0, |last| last + 1);
        self.add_of(next, point);
    }

    /// Adds a point of this repetition to its row.
    pub fn add_of(&mut self, repetition: usize, point: Point) {
        let row = self.row_of(&point);
        row.samples.push(point.y);
        row.repetitions.push(repetition);
        for (name, value) in point.also {
            row.also.entry(name.to_owned()).or_default().push(value);
        }
    }

    fn row_of(&mut self, point: &Point) -> &mut Row {
        let place = self.rows.iter().position(|row| {
            (&row.panel, &row.series, &row.x) == (&point.panel, &point.series, &point.x)
        });
        let place = place.unwrap_or_else(|| {
            self.rows.push(Row {
                panel: point.panel.clone(),
                series: point.series.clone(),
                x: point.x.clone(),
                samples: Vec::new(),
                repetitions: Vec::new(),
                also: BTreeMap::new(),
            });
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }

    /// The row at a place.
    pub fn row(&self, panel: &str, series: &str, x: impl Into<X>) -> Option<&Row> {
        let x = x.into();
        self.rows
            .iter()
            .find(|row| row.panel == panel && row.series == series && row.x == x)
    }

    /// The median at a place.
    pub fn median(&self, panel: &str, series: &str, x: impl Into<X>) -> Option<f64> {
        Some(self.row(panel, series, x)?.spread().median)
    }

    /// The ratio of two rows, computed from repetitions that ran next to each other, so that a slow
    /// spell affects both. Where the rows do not tell which these are, it is that of the medians,
    /// without a range.
    pub fn ratio(&self, panel: &str, x: impl Into<X>, above: &str, below: &str) -> Option<Spread> {
        let x = x.into();
        let (above, below) = (
            self.row(panel, above, x.clone())?,
            self.row(panel, below, x)?,
        );
        let all = self.repetitions();
        if !above.tells(all) || !below.tells(all) {
            let [above, below] = [above, below].map(|row| row.spread().median);
            return Some(Spread::of(&[above / below]));
        }
        let sample = |row: &Row, which| Some(row.samples[row.place_of(which, all)?]);
        let pair = |which| Some((sample(above, which)?, sample(below, which)?));
        let (above, below): (Vec<f64>, Vec<f64>) = (0..all).filter_map(pair).unzip();
        (!above.is_empty()).then(|| Spread::of_ratios(&above, &below))
    }

    /// The number of repetitions.
    pub fn repetitions(&self) -> usize {
        let of = |row: &Row| {
            let last = row.repetitions.iter().max().map_or(0, |last| last + 1);
            last.max(row.samples.len())
        };
        self.rows.iter().map(of).max().unwrap_or(0)
    }

    /// The data of each repetition, with the rows of which `which` holds; none if one of these rows
    /// does not tell the repetitions of its values. A row that has no value in a repetition is left
    /// out there.
    pub fn each_repetition(&self, which: impl Fn(&Row) -> bool) -> Vec<Data> {
        let all = self.repetitions();
        let rows: Vec<&Row> = self.rows.iter().filter(|row| which(row)).collect();
        if rows.iter().any(|row| !row.tells(all)) {
            return Vec::new();
        }
        let of = |row: &Row, repetition| {
            let place = row.place_of(repetition, all)?;
            let is_whole = |values: &Vec<f64>| values.len() == row.samples.len();
            let also = row.also.iter().filter(|(_, values)| is_whole(values));
            let also = also.map(|(name, values)| (name.clone(), vec![values[place]]));
            Some(Row {
                panel: row.panel.clone(),
                series: row.series.clone(),
                x: row.x.clone(),
                samples: vec![row.samples[place]],
                repetitions: vec![0],
                also: also.collect(),
            })
        };
        let one = |repetition| Data {
            rows: rows.iter().filter_map(|row| of(row, repetition)).collect(),
        };
        (0..all).map(one).collect()
    }

    /// The rows of a line, in order.
    pub fn line<'a>(&'a self, panel: &'a str, series: &'a str) -> impl Iterator<Item = &'a Row> {
        self.rows
            .iter()
            .filter(move |row| row.panel == panel && row.series == series)
    }

    /// All panels, in order.
    pub fn panels(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.panel.as_str()))
    }

    /// All lines of all panels, in order.
    pub fn series(&self) -> Vec<&str> {
        distinct(self.rows.iter().map(|row| row.series.as_str()))
    }

    /// All values on the horizontal axis of a panel, in order.
    pub fn places(&self, panel: &str) -> Vec<&X> {
        distinct(
            self.rows
                .iter()
                .filter(|row| row.panel == panel)
                .map(|row| &row.x),
        )
    }

    /// One line per row: its place, median, minimum, maximum, number of repetitions, and the
    /// medians of the other measured values.
    pub fn to_csv(&self, columns: &Columns) -> Result<Vec<u8>> {
        let also = distinct(
            self.rows
                .iter()
                .flat_map(|row| row.also.keys().map(String::as_str)),
        );
        let mut out = csv::Writer::from_writer(Vec::new());
        let Columns {
            panel,
            series,
            x,
            y,
        } = *columns;
        let (min, max) = (format!("{y}, smallest"), format!("{y}, largest"));
        let heads = [panel, series, x, y, &min, &max, "repetitions"];
        out.write_record(heads.into_iter().chain(also.iter().copied()))?;
        for row in &self.rows {
            let Spread { median, min, max } = row.spread();
            let mut cells = vec![row.panel.clone(), row.series.clone(), row.x.to_string()];
            cells.extend([median, min, max].map(|value| value.to_string()));
            cells.push(row.samples.len().to_string());
            let extra = |name: &&str| row.also(name).map_or(String::new(), |v| v.to_string());
            cells.extend(also.iter().map(extra));
            out.write_record(&cells)?;
        }
        Ok(out.into_inner()?)
    }
}

/// The distinct values, in the order of their first appearance.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: Columns = Columns {
        panel: "dataset",
        series: "system",
        x: "load",
        y: "operations per s",
    };

    fn data() -> Data {
        let mut data = Data::default();
        for (ours, theirs) in [(30.0, 10.0), (20.0, 5.0), (10.0, 1.0)] {
            data.add(Point::new("tiny", "ours", "50% GET", ours).also("busy", 0.5));
            data.add(Point::new("tiny", "theirs", "50% GET", theirs));
        }
        data
    }

    #[test]
    fn repetitions_gather_in_rows() {
        let data = data();
        assert_eq!(data.rows.len(), 2);
        assert_eq!(data.median("tiny", "ours", "50% GET"), Some(20.0));
        assert_eq!(data.median("tiny", "nobody's", "50% GET"), None);
        assert_eq!(data.series(), ["ours", "theirs"]);
        assert_eq!(data.places("tiny"), [&X::from("50% GET")]);
        let ratio = data.ratio("tiny", "50% GET", "ours", "theirs").unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (3.0, 4.0, 10.0));
    }

    #[test]
    fn values_of_one_repetition_belong_together() {
        let mut data = Data::default();
        let x = "800 k/s";
        for (repetition, ours, theirs) in
            [(0, Some(30.0), 10.0), (1, None, 5.0), (2, Some(9.0), 1.0)]
        {
            let ours = ours.map(|ours| Point::new("", "ours", x, ours));
            ours.into_iter()
                .for_each(|point| data.add_of(repetition, point));
            data.add_of(repetition, Point::new("", "theirs", x, theirs));
        }
        let ratio = data.ratio("", x, "ours", "theirs").unwrap();
        assert_eq!((ratio.min, ratio.max), (3.0, 9.0));
        let each = data.each_repetition(|_| true);
        let of = |data: &Data| data.median("", "ours", x);
        assert_eq!(
            each.iter().map(of).collect::<Vec<_>>(),
            [Some(30.0), None, Some(9.0)]
        );
        // An older record has the values alone.
        data.rows.iter_mut().for_each(|row| row.repetitions.clear());
        let ratio = data.ratio("", x, "ours", "theirs").unwrap();
        assert_eq!((ratio.min, ratio.median, ratio.max), (3.9, 3.9, 3.9));
        assert_eq!(data.each_repetition(|_| true), []);
        assert_eq!(data.each_repetition(|row| row.series == "theirs").len(), 3);
    }

    #[test]
    fn a_record_has_finite_numbers() {
        let point = Point::new("tiny", "ours", 1.0, 2.0);
        assert_eq!(point.lacks_number(), None);
        let mut data = Data::default();
        data.add(point.also("ns", f64::NAN).also("busy", 0.5));
        let json = serde_json::to_string(&data).unwrap();
        assert_eq!(serde_json::from_str::<Data>(&json).unwrap(), data);
        assert_eq!(data.rows[0].also("ns"), None);
        for y in [f64::NAN, f64::INFINITY] {
            let lacks = Point::new("tiny", "ours", 1.0, y).lacks_number();
            assert_eq!(lacks.unwrap(), "no number was measured of ours at tiny 1");
        }
    }

    #[test]
    fn csv_is_read_back() {
        let bytes = data().to_csv(&COLUMNS).unwrap();
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let heads = reader.headers().unwrap().clone();
        assert_eq!(heads.iter().nth(3), Some("operations per s"));
        assert_eq!(heads.iter().next_back(), Some("busy"));
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        let first: Vec<&str> = rows[0].iter().collect();
        assert_eq!(
            first,
            ["tiny", "ours", "50% GET", "20", "10", "30", "3", "0.5"]
        );
        assert_eq!(rows[1].iter().next_back(), Some(""));
    }

    #[test]
    fn error_bars_are_the_range_unless_they_are_given() {
        let mut data = data();
        assert_eq!(data.rows[0].whiskers(), (10.0, 30.0));
        data.add(
            Point::new("", "line", 4.0, 7.0)
                .also(Row::LOW, 5.0)
                .also(Row::HIGH, 9.0),
        );
        let row = data.row("", "line", 4.0).unwrap();
        assert_eq!((row.whiskers(), row.across()), ((5.0, 9.0), Some(4.0)));
    }
}
