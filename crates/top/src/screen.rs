//! Output on a terminal: panels that are redrawn every interval. Every field is shown completely or
//! not at all.

mod hot;
mod panels;
mod parts;
#[cfg(test)]
mod tests;

use std::{sync::mpsc, time::Duration};

use anyhow::Result;
use ratatui::{
    Frame,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout, Rect},
    style::{Color, Stylize},
    text::Line,
};

use super::{
    sample::Interval,
    text::{cut, fit},
    watch::{View, Watch},
};

const ACCENT: Color = Color::Cyan;
/// Maximum delay before a key press is handled.
const KEY_WAITS: Duration = Duration::from_millis(50);
/// In narrower terminals, panels are stacked.
const WIDE_FROM: u16 = 64;
/// In lower terminals, tables come before the chart.
const HIGH_FROM: u16 = 30;
/// Maximum number of hot keys.
const HOT_MAX: usize = 10;

/// Shows the server until the user types `q`, Escape or Ctrl-C. A separate thread queries the
/// server, so that a silent server does not delay key presses.
pub fn live(mut watch: Watch) -> Result<()> {
    let (sender, views) = mpsc::channel();
    let ask = move || while sender.send(watch.view()).is_ok() {};
    std::thread::Builder::new()
        .name("watch".to_owned())
        .spawn(ask)?;
    let mut terminal = ratatui::try_init()?;
    let result = (|| {
        let mut view = View::default();
        let mut is_stale = true;
        loop {
            for seen in views.try_iter() {
                (view, is_stale) = (seen, true);
            }
            if is_stale {
                terminal.draw(|frame| draw(frame, &view))?;
            }
            is_stale = false;
            if event::poll(KEY_WAITS)? {
                let event = event::read()?;
                if ends(&event) {
                    return Ok(());
                }
                is_stale = matches!(event, Event::Resize(..));
            }
        }
    })();
    ratatui::restore();
    result
}

fn ends(event: &Event) -> bool {
    let Event::Key(key) = event else {
        return false;
    };
    let control_c = key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    let quits = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
    key.kind == KeyEventKind::Press && (quits || control_c)
}

/// Rows of each panel. A panel has none if the terminal has no room for it or the server reports
/// nothing for it.
#[derive(Debug, Default)]
struct Rows {
    now: u16,
    kinds: u16,
    chart: u16,
    gauges: u16,
    lower: u16,
}

impl Rows {
    /// Assigns rows to panels, the more important ones first.
    fn of(interval: &Interval, area: Rect) -> Rows {
        let is_wide = area.width >= WIDE_FROM;
        let mut left = area.height.saturating_sub(2);
        let mut take = |least: u16, wanted: u16| {
            let rows = if least <= left { wanted.min(left) } else { 0 };
            left -= rows;
            rows
        };
        let kinds = interval.kinds.len() as u16 + 2;
        let now = panels::now_lines(interval) + 2;
        let now = if is_wide { now.max(kinds) } else { now };
        let now = take(now, now);
        let gauges = if is_wide { 3 } else { 6 };
        let gauges = take(gauges, gauges);
        let (least, wanted) = panels::lower_rows(interval, is_wide);
        // In a few rows, tables side by side tell more than the chart does.
        let is_low = is_wide && area.height < HIGH_FROM;
        let first = if is_low {
            take(panels::TABLE_ROWS_MIN, least)
        } else {
            0
        };
        let chart = take(panels::CHART_ROWS_MIN, panels::CHART_ROWS_MIN);
        let kinds = if is_wide { 0 } else { take(kinds, kinds) };
        let lower = match first {
            0 if wanted > 0 => take(panels::TABLE_ROWS_MIN, wanted),
            first => first + take(0, wanted - first),
        };
        Rows {
            now,
            kinds,
            chart: if chart > 0 { chart + left } else { 0 },
            gauges,
            lower,
        }
    }
}

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let interval = &view.interval;
    let rows = Rows::of(interval, frame.area());
    let [head, now, kinds, chart, gauges, lower, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(rows.now),
        Constraint::Length(rows.kinds),
        Constraint::Length(rows.chart),
        Constraint::Length(rows.gauges),
        Constraint::Length(rows.lower),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let width = usize::from(head.width);
    let title = match &view.gone {
        None => {
            let mut fields = vec![cut(&view.server, width)];
            fields.extend(interval.about.iter().cloned());
            Line::from(fit(&fields, "  ", width)).bold()
        }
        Some(why) => {
            let text = format!("{why}; trying again every {} s", view.interval_s);
            Line::from(cut(&text, width)).bold().red()
        }
    };
    frame.render_widget(title, head);
    if rows.now > 0 && frame.area().width >= WIDE_FROM {
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(35), Constraint::Fill(1)]).areas(now);
        panels::kinds(frame, left, interval, rows.chart > 0);
        panels::now(frame, right, view);
    } else if rows.now > 0 {
        panels::now(frame, now, view);
    }
    if rows.kinds > 0 {
        panels::kinds(frame, kinds, interval, rows.chart > 0);
    }
    if rows.chart > 0 {
        panels::chart(frame, chart, view);
    }
    if rows.gauges > 0 {
        panels::gauges(frame, gauges, interval);
    }
    if rows.lower > 0 {
        panels::lower(frame, lower, interval);
    }
    frame.render_widget(Line::from("q: quit").dim(), foot);
}
