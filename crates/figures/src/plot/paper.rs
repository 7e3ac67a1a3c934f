//! The paper's own numbers, drawn as hollow marks beside ours.

/// Numbers that the paper's text or one of its tables states. What can only be read off a plot is not among them unless `source` says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Paper {
    /// Where the paper states them, and what was made of them so that they compare with ours.
    pub source: &'static str,
    /// The numbers.
    pub marks: Vec<Mark>,
}

/// Where a mark lies on the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum At {
    /// In a group of bars.
    Word(&'static str),
    /// On a scale.
    Number(f64),
    /// Where our line ends: the paper says "at the highest rate".
    End,
}

/// One number.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The panel.
    pub panel: &'static str,
    /// Which of our lines or bars it stands beside.
    pub series: &'static str,
    /// Where.
    pub at: At,
    /// The number, from its smallest to its largest value: one value if both are the same.
    pub range: (f64, f64),
}

impl Mark {
    /// A number beside a bar.
    pub fn bar(panel: &'static str, series: &'static str, word: &'static str, y: f64) -> Mark {
        Mark::new(panel, series, At::Word(word), y)
    }

    /// A number beside a line.
    pub fn point(panel: &'static str, series: &'static str, x: f64, y: f64) -> Mark {
        Mark::new(panel, series, At::Number(x), y)
    }

    /// A number beside the end of a line.
    pub fn end(panel: &'static str, series: &'static str, y: f64) -> Mark {
        Mark::new(panel, series, At::End, y)
    }

    /// The number is a range, of which this is the upper end.
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
