//! Tables for the terminal that can be pasted into documentation.

use std::fmt;

/// A Markdown table with padded columns, so that it is readable on a terminal.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

/// A column of a table of `R`s: its heading, and how it shows one of them.
pub struct Column<'a, R: ?Sized> {
    head: String,
    cell: Box<dyn Fn(&R) -> String + 'a>,
}

impl<'a, R: ?Sized> Column<'a, R> {
    /// A column with this heading, whose cells `cell` writes.
    pub fn new(head: impl Into<String>, cell: impl Fn(&R) -> String + 'a) -> Self {
        Column {
            head: head.into(),
            cell: Box::new(cell),
        }
    }
}

impl Table {
    /// A table of these rows, described by its columns.
    pub fn of<'r, R: ?Sized + 'r>(
        rows: impl IntoIterator<Item = &'r R>,
        columns: impl IntoIterator<Item = Column<'r, R>>,
    ) -> Table {
        let columns: Vec<Column<'_, R>> = columns.into_iter().collect();
        let mut table = Table::new(columns.iter().map(|column| &*column.head));
        for row in rows {
            table.row(columns.iter().map(|column| (column.cell)(row)));
        }
        table
    }

    /// A table with these column headings.
    pub fn new<S: Into<String>>(heads: impl IntoIterator<Item = S>) -> Self {
        Table {
            rows: vec![heads.into_iter().map(Into::into).collect()],
        }
    }

    /// Adds a row. It has one cell per heading.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let cells: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.rows[0].len(), "a cell for every column");
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows[0].len();
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for (index, row) in self.rows.iter().enumerate() {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                // Names are left-aligned, numbers right-aligned.
                match column {
                    0 => write!(out, "| {cell:<width$} ")?,
                    _ => write!(out, "| {cell:>width$} ")?,
                }
            }
            writeln!(out, "|")?;
            if index == 0 {
                for (column, width) in widths.iter().enumerate() {
                    let end = if column == 0 { "-" } else { ":" };
                    write!(out, "|{}{end}", "-".repeat(width + 1))?;
                }
                writeln!(out, "|")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["rule", "hits"]);
        table.row(["FIFO", "9%"]);
        table.row(["S3-FIFO", "12.5%"]);
        let expected =
            "| rule    |  hits |\n|---------|------:|\n| FIFO    |    9% |\n| S3-FIFO | 12.5% |\n";
        assert_eq!(table.to_string(), expected);
        let rules = [("FIFO", 9.0), ("S3-FIFO", 12.5)];
        let of_columns = Table::of(
            &rules,
            [
                Column::new("rule", |(rule, _)| String::from(*rule)),
                Column::new("hits", |(_, hits): &(&str, f64)| format!("{hits}%")),
            ],
        );
        assert_eq!(of_columns.to_string(), expected);
    }
}
