//! The paper's own numbers, drawn as hollow marks next to ours.

/// Numbers that the paper states in its text or in a table. Numbers read off a plot are not
/// included unless `source` says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// Where the paper states the numbers, and how they were converted for comparison with ours.
    pub source: &'static str,
    /// The numbers.
    pub marks: Vec<Mark>,
}

/// The position of a mark on the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// In a group of bars.
    Word(&'static str),
    /// On a numeric scale.
    Number(f64),
    /// At the end of our line: the paper says "at the highest rate".
    End,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The panel.
    pub panel: &'static str,
    /// The line or bar next to which it is drawn.
    pub series: &'static str,
    /// Its position on the horizontal axis.
    pub at: At,
    /// The number as a range; both ends are equal if the paper states one value.
    pub range: (f64, f64),
}

impl Mark {
    /// A number next to a bar.
    pub fn bar(panel: &'static str, series: &'static str, word: &'static str, y: f64) -> Mark {
        Mark::new(panel, series, At::Word(word), y)
    }

    /// A number next to a line.
    pub fn point(panel: &'static str, series: &'static str, x: f64, y: f64) -> Mark {
        Mark::new(panel, series, At::Number(x), y)
    }

    /// A number next to the end of a line.
    pub fn end(panel: &'static str, series: &'static str, y: f64) -> Mark {
        Mark::new(panel, series, At::End, y)
    }

    /// Turns the number into a range with this upper end.
    pub fn to(mut self, high: f64) -> Mark {
        self.range.1 = high;
        self
    }

    fn new(panel: &'static str, series: &'static str, at: At, y: f64) -> Mark {
        Mark {
            panel,
            series,
            at,
            range: (y, y),
        }
    }
}
