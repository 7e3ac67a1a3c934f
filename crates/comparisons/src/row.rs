//! The rows of comparisons: what was compared, such as a server, and the figures of it; and the
//! columns that show them.

use std::fmt;

use glimmer_loadgen::load::Tally;
use glimmer_measure::{
    report,
    stats::{Spread, number},
};
use serde::{Serialize, Serializer, ser::SerializeMap};

/// What is measured of every row of a table: its name in JSON, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure(&'static str, Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Repeated,
    Part(u8),
    Sum,
    Count,
}

impl Figure {
    /// One with a value for each repetition.
    pub const fn repeated(name: &'static str) -> Figure {
        Figure(name, Kind::Repeated)
    }

    /// The same, as one of several figures of this name that follow one another.
    pub const fn part(name: &'static str, part: u8) -> Figure {
        Figure(name, Kind::Part(part))
    }

    /// One with a single value: the sum of what is added.
    pub const fn sum(name: &'static str) -> Figure {
        Figure(name, Kind::Sum)
    }

    /// A count over all repetitions.
    pub const fn count(name: &'static str) -> Figure {
        Figure(name, Kind::Count)
    }
}

/// Operations per second.
pub const RATE: Figure = Figure::repeated("operations_per_s");
/// The share of its time that the client used.
pub const BUSY: Figure = Figure::repeated("client_busy");
/// CPU time of the server per operation in nanoseconds.
pub const SERVER_NS: Figure = Figure::repeated("server_ns_per_operation");
/// Reads that found their key.
pub const HITS: Figure = Figure::count("hits");
/// Reads that did not.
pub const MISSES: Figure = Figure::count("misses");
/// Requests that were never answered.
pub const LOST: Figure = Figure::count("lost");

/// See the module's text. To ask it for a figure that it does not have is an error of the program.
#[derive(Clone, Debug)]
pub struct Row {
    /// What a name is the name of, in JSON.
    what: &'static str,
    /// The name of what was compared.
    pub name: String,
    values: Vec<(Figure, Value)>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Value {
    Repeated(Vec<f64>),
    Sum(f64),
    Count(u64),
}

impl Row {
    /// The row of a server, with these figures.
    pub fn of_server(name: impl Into<String>, figures: &[Figure]) -> Row {
        Row::new("server", name, figures)
    }

    /// A row of something else. `what` says in JSON what it is.
    pub fn new(what: &'static str, name: impl Into<String>, figures: &[Figure]) -> Row {
        let empty = |&figure: &Figure| match figure.1 {
            Kind::Repeated | Kind::Part(_) => (figure, Value::Repeated(Vec::new())),
            Kind::Sum => (figure, Value::Sum(0.0)),
            Kind::Count => (figure, Value::Count(0)),
        };
        Row {
            what,
            name: name.into(),
            values: figures.iter().map(empty).collect(),
        }
    }

    /// Adds the value of a repetition, or to a sum.
    pub fn add(&mut self, figure: Figure, value: f64) {
        match self.value_mut(figure) {
            Value::Repeated(values) => values.push(value),
            Value::Sum(sum) => *sum += value,
            Value::Count(_) => panic!("{figure:?} is a count"),
        }
    }

    /// Adds the value of a repetition that may have none, such as a percentile of few requests.
    /// Tables show a dash then, and JSON has a null.
    pub fn add_told(&mut self, figure: Figure, value: Option<f64>) {
        self.add(figure, value.unwrap_or(f64::NAN));
    }

    /// Adds what became of the keys of one repetition.
    pub fn count_reads(&mut self, tally: &Tally) {
        self.count(HITS, tally.hits);
        self.count(MISSES, tally.misses);
        self.count(LOST, tally.lost);
    }

    /// Adds to a count.
    pub fn count(&mut self, figure: Figure, more: u64) {
        match self.value_mut(figure) {
            Value::Count(count) => *count += more,
            _ => panic!("{figure:?} is no count"),
        }
    }

    /// The values of a figure's repetitions.
    pub fn each(&self, figure: Figure) -> &[f64] {
        match self.value(figure) {
            Value::Repeated(values) => values,
            _ => panic!("{figure:?} is not repeated"),
        }
    }

    /// Their median and spread.
    pub fn spread(&self, figure: Figure) -> Spread {
        Spread::of(self.each(figure))
    }

    /// A sum.
    pub fn sum(&self, figure: Figure) -> f64 {
        match self.value(figure) {
            Value::Sum(sum) => *sum,
            _ => panic!("{figure:?} is no sum"),
        }
    }

    /// A count.
    pub fn counted(&self, figure: Figure) -> u64 {
        match self.value(figure) {
            Value::Count(count) => *count,
            _ => panic!("{figure:?} is no count"),
        }
    }

    /// Whether it has a figure.
    pub fn has(&self, figure: Figure) -> bool {
        self.values.iter().any(|(known, _)| *known == figure)
    }

    fn value(&self, figure: Figure) -> &Value {
        let found = self.values.iter().find(|(known, _)| *known == figure);
        &found.unwrap_or_else(|| panic!("{figure:?} of {self:?}")).1
    }

    fn value_mut(&mut self, figure: Figure) -> &mut Value {
        let found = self.values.iter_mut().find(|(known, _)| *known == figure);
        &mut found.expect("a figure of the row").1
    }
}

/// As a structure with a field for the name and one for each figure. Parts of one name are a list.
impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(self.what, &self.name)?;
        for values in self.values.chunk_by(|(one, _), (next, _)| one.0 == next.0) {
            match &values[0] {
                (Figure(name, Kind::Part(_)), _) => {
                    let parts: Vec<&Value> = values.iter().map(|(_, value)| value).collect();
                    map.serialize_entry(name, &parts)?;
                }
                (Figure(name, _), value) => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// A column of a table of rows.
pub type Column<'a> = report::Column<'a, Row>;

/// What was compared. The heading says of what the table is.
pub fn name<'a>(head: impl Into<String>) -> Column<'a> {
    Column::new(head, |row: &Row| row.name.clone())
}

/// The median of a figure with its spread.
pub fn spread<'a>(head: impl Into<String>, figure: Figure, decimals: usize) -> Column<'a> {
    Column::new(head, move |row: &Row| row.spread(figure).text(decimals))
}

/// The same in units of `unit`.
pub fn scaled<'a>(
    head: impl Into<String>,
    figure: Figure,
    unit: f64,
    decimals: usize,
) -> Column<'a> {
    Column::new(head, move |row: &Row| {
        let scaled = row.each(figure).iter().map(|value| value / unit);
        Spread::of(&scaled.collect::<Vec<_>>()).text(decimals)
    })
}

/// A figure of `over` over that of the row, repetition by repetition.
pub fn ratio<'a>(head: impl Into<String>, figure: Figure, over: &'a Row) -> Column<'a> {
    Column::new(head, move |row: &Row| {
        Spread::of_ratios(over.each(figure), row.each(figure)).text(2)
    })
}

/// A figure of the row over that of `whole`, repetition by repetition.
pub fn part<'a>(head: impl Into<String>, figure: Figure, whole: &'a Row) -> Column<'a> {
    Column::new(head, move |row: &Row| {
        Spread::of_ratios(row.each(figure), whole.each(figure)).text(2)
    })
}

/// What a row reaches of the bare echo's rate, and its CPU time over the echo's.
pub fn beside_echo(echo: &Row) -> [Column<'_>; 2] {
    [
        part("of the echo's rate", RATE, echo),
        part("CPU over the echo's", SERVER_NS, echo),
    ]
}

/// How many times as fast as the row `over` was.
pub fn speedup<'a>(figure: Figure, over: &'a Row) -> Column<'a> {
    ratio(format!("speedup of {} over this", over.name), figure, over)
}

/// A sum.
pub fn sum<'a>(head: impl Into<String>, figure: Figure, decimals: usize) -> Column<'a> {
    Column::new(head, move |row: &Row| number(row.sum(figure), decimals))
}

/// Which share of all reads a figure is: of [`HITS`], [`MISSES`] and [`LOST`].
pub fn of_reads<'a>(head: impl Into<String>, figure: Figure) -> Column<'a> {
    Column::new(head, move |row: &Row| {
        let reads = [HITS, MISSES, LOST].map(|figure| row.counted(figure));
        let reads = reads.iter().sum::<u64>().max(1) as f64;
        format!("{:.3}%", row.counted(figure) as f64 / reads * 100.0)
    })
}

/// The share of its time that the client used.
pub fn busy<'a>() -> Column<'a> {
    Column::new("client busy", |row: &Row| {
        format!("{:.0}%", row.spread(BUSY).median * 100.0)
    })
}

/// Writes several tables, with an empty line between any two.
pub fn apart(
    tables: impl IntoIterator<Item = impl fmt::Display>,
    out: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    for (number, table) in tables.into_iter().enumerate() {
        let line = if number > 0 { "\n" } else { "" };
        write!(out, "{line}{table}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glimmer_measure::report::Table;

    const P50: Figure = Figure::part("latency_us", 0);
    const P99: Figure = Figure::part("latency_us", 1);
    const ALL: Figure = Figure::sum("all_us");

    fn row(name: &str, times: f64) -> Row {
        let mut row = Row::of_server(name, &[RATE, P50, P99, ALL, MISSES]);
        for repetition in [1.0, 2.0] {
            row.add(RATE, 1e3 * times * repetition);
            row.add(P50, times);
            row.add(P99, 2.0 * times);
        }
        row.add(ALL, 7.0);
        row.count(MISSES, 3);
        row
    }

    #[test]
    fn a_row_reads_as_a_structure() {
        let json = serde_json::to_string(&row("ours", 1.0)).unwrap();
        assert_eq!(
            json,
            "{\"server\":\"ours\",\"operations_per_s\":[1000.0,2000.0],\
             \"latency_us\":[[1.0,1.0],[2.0,2.0]],\"all_us\":7.0,\"misses\":3}"
        );
        let mut empty = Row::new("what", "nothing", &[RATE, P50, P99]);
        empty.add(P99, 1.0);
        let json = serde_json::to_string(&empty).unwrap();
        let expected = "{\"what\":\"nothing\",\"operations_per_s\":[],\"latency_us\":[[],[1.0]]}";
        assert_eq!(json, expected);
    }

    #[test]
    fn what_is_not_told_is_a_dash_and_a_null() {
        let mut row = Row::of_server("ours", &[P99, ALL]);
        row.add_told(P99, None);
        row.add_told(ALL, None);
        let json = serde_json::to_string(&row).unwrap();
        let expected = "{\"server\":\"ours\",\"latency_us\":[[null]],\"all_us\":null}";
        assert_eq!(json, expected);
        let columns = [spread("p99", P99, 0), sum("all", ALL, 0)];
        let table = Table::of([&row], columns).to_string();
        assert!(table.ends_with("| – (–..–) |   – |\n"), "{table}");
    }

    #[test]
    fn a_table_is_described_by_its_columns() {
        let rows = [row("ours", 4.0), row("theirs", 1.0)];
        let columns = [
            name("a load"),
            scaled("k/s", RATE, 1e3, 1),
            speedup(RATE, &rows[0]),
            part("part", RATE, &rows[0]),
            spread("p99", P99, 0),
            sum("all", ALL, 0),
        ];
        let table = Table::of(&rows, columns).to_string();
        let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = table.lines().map(cells).collect();
        assert_eq!(
            [&*lines[0], &*lines[2], &*lines[3]],
            [
                "| a load | k/s | speedup of ours over this | part | p99 | all |",
                "| ours | 6.0 (4.0..8.0) | 1.00 (1.00..1.00) | 1.00 (1.00..1.00) | 8 (8..8) | 7 |",
                "| theirs | 1.5 (1.0..2.0) | 4.00 (4.00..4.00) | 0.25 (0.25..0.25) | 2 (2..2) | \
                 7 |",
            ]
        );
    }
}
