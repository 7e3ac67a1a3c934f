//! The panels of the hottest keys and of the hot-key accelerator.

use ratatui::{
    Frame,
    layout::{Constraint, Rect},
    style::Stylize,
    text::Line,
    widgets::{Paragraph, Row, Table},
};

use super::HOT_MAX;
use super::parts::{NAME_WIDTH, framed, inner};
use crate::{sample::Interval, text::cut, text::fit};

/// The hottest keys with their rates and sizes.
pub fn keys(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    const RATE_WIDTH: u16 = 7;
    const SIZE_WIDTH: u16 = 8;
    let others = usize::from(RATE_WIDTH + SIZE_WIDTH) + 2;
    let width = inner(area).saturating_sub(others);
    let keys = interval.hot.iter().take(HOT_MAX);
    let keys = keys.map(|hot| {
        let [rate, size] = hot.cells();
        Row::new([cut(&hot.key, width), rate, size])
    });
    let widths = [
        Constraint::Length(width as u16),
        Constraint::Length(RATE_WIDTH),
        Constraint::Length(SIZE_WIDTH),
    ];
    let table = Table::new(keys, widths)
        .header(Row::new(["key", "reads/s", "value"]).bold())
        .block(framed("hottest keys".to_owned(), area));
    frame.render_widget(table, area);
}

/// What the accelerator does.
pub fn accelerator(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    let Some(accelerator) = &interval.accelerator else {
        return;
    };
    let width = inner(area).saturating_sub(NAME_WIDTH);
    let lines = accelerator.lines().into_iter().map(|(name, fields)| {
        let fields = fit(&fields, ", ", width);
        match fields.is_empty() {
            true => Line::default(),
            false => Line::from(format!("{name:<NAME_WIDTH$}{fields}")),
        }
    });
    let block = framed(format!("accelerator: {}", accelerator.body), area);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}
