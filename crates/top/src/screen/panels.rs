//! The panels. Each receives an area, draws a frame, and leaves out what does not fit.

use glimmer_notation::memory;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Style, Stylize},
    text::Line,
    widgets::{Block, Gauge, Paragraph, RenderDirection, Row, Sparkline, Table},
};

use super::{ACCENT, HOT_MAX, WIDE_FROM};
use crate::{
    sample::Interval,
    text::{count, cut, fit, latency, percent},
    watch::View,
};

/// Lines of [`now`].
pub const NOW_LINES: u16 = 6;
/// Minimum rows of [`chart`]: a frame, two tick marks, and the times below.
pub const CHART_ROWS_MIN: u16 = 5;
/// Width of the names in [`now`].
const NAME_WIDTH: usize = 13;

/// Width inside a panel's frame.
fn inner(area: Rect) -> usize {
    usize::from(area.width.saturating_sub(2))
}

fn framed(title: String, area: Rect) -> Block<'static> {
    // Two columns are the frame's corners.
    Block::bordered().title(fit(&[title], "", inner(area)))
}

/// Requests per second by kind.
pub fn kinds(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    let kinds = interval.kinds.iter();
    let kinds = kinds.map(|(kind, rate)| Row::new([(*kind).to_owned(), count(*rate)]));
    let widths = [Constraint::Length(12), Constraint::Min(8)];
    let block = framed("per second".to_owned(), area);
    frame.render_widget(Table::new(kinds, widths).block(block), area);
}

/// Single values, one line per subject.
pub fn now(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let interval = &view.interval;
    let [received, sent] = interval.traffic_bytes_per_s.map(memory);
    let (evicted, total) = interval.evictions;
    let cores = interval.cores_busy;
    let lines: [(&str, Vec<String>); NOW_LINES as usize] = [
        ("items", vec![interval.items.to_string()]),
        (
            "evictions",
            vec![format!("{}/s", count(evicted)), format!("{total} in all")],
        ),
        ("connections", vec![interval.connections.to_string()]),
        (
            "traffic",
            vec![format!("{received}/s in"), format!("{sent}/s out")],
        ),
        (
            "cores busy",
            vec![cores.map_or("-".to_owned(), |cores| format!("{cores:.2}"))],
        ),
        ("round trip", latency(view.latency)),
    ];
    let width = inner(area);
    let lines = lines.map(|(name, fields)| {
        let fields = fit(&fields, ", ", width.saturating_sub(NAME_WIDTH));
        match fields.is_empty() {
            true => Line::default(),
            false => Line::from(format!("{name:<NAME_WIDTH$}{fields}")),
        }
    });
    let block = framed("now".to_owned(), area);
    frame.render_widget(Paragraph::new(lines.to_vec()).block(block), area);
}

/// The next number of the form 1, 2, 4, 6 or 8 times a power of ten.
fn round_up(largest: u64) -> u64 {
    let mut power = 1u64;
    loop {
        for step in [1, 2, 4, 6, 8] {
            match power.checked_mul(step) {
                Some(round) if round < largest => {}
                round => return round.unwrap_or(u64::MAX),
            }
        }
        power = power.saturating_mul(10);
    }
}

/// A short form of a duration.
fn ago(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s ago"),
        120.0..7200.0 => format!("{:.0} min ago", seconds / 60.0),
        _ => format!("{:.0} h ago", seconds / 3600.0),
    }
}

/// Requests per second over time, the newest at the right edge: one column per interval, with a
/// scale from zero.
pub fn chart(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let now = count(view.interval.requests_per_s);
    let block = framed(format!("requests per second: {now}"), area);
    let place = block.inner(area);
    frame.render_widget(block, area);
    let [body, times] = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]).areas(place);
    // The scale covers the values shown; its labels have the maximum width.
    let columns = usize::from(body.width);
    let newest = view.history.iter().rev().copied().take(columns);
    let top = round_up(newest.clone().flatten().max().unwrap_or(1));
    let marks = [top, top / 2, 0].map(|mark| count(mark as f64));
    let mark_width = marks
        .iter()
        .map(|mark| mark.chars().count())
        .max()
        .unwrap_or(0)
        + 1;
    let [scale, columns] =
        Layout::horizontal([Constraint::Length(mark_width as u16), Constraint::Fill(1)])
            .areas(body);
    let last = scale.height.saturating_sub(1);
    let has_middle = top >= 2 && last >= 4 && last.is_multiple_of(2);
    for (row, mark) in [(0, &marks[0]), (last / 2, &marks[1]), (last, &marks[2])] {
        let is_middle = row == last / 2 && row != 0;
        if (is_middle && !has_middle) || usize::from(scale.width) < mark.len() {
            continue;
        }
        let line = Rect {
            y: scale.y + row,
            height: 1,
            ..scale
        };
        let text = format!("{mark:>width$} ", width = mark_width - 1);
        frame.render_widget(Line::from(text).dim(), line.intersection(scale));
    }
    let line = Sparkline::default().data(newest).max(top).style(ACCENT);
    let line = line.direction(RenderDirection::RightToLeft);
    frame.render_widget(line, columns);
    let times = Rect {
        x: columns.x,
        width: columns.width,
        ..times
    };
    let oldest = ago(f64::from(columns.width) * view.interval_s);
    let ends = [oldest, "now".to_owned()];
    let used: usize = ends.iter().map(String::len).sum();
    let width = usize::from(times.width);
    if used < width {
        let [oldest, now] = ends;
        let text = format!("{oldest}{now:>rest$}", rest = width - oldest.len());
        frame.render_widget(Line::from(text).dim(), times);
    }
}

/// Hit ratio and memory as bars.
pub fn gauges(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    let [left, right] = match area.width >= WIDE_FROM {
        true => Layout::horizontal([Constraint::Fill(1); 2]).areas(area),
        false => Layout::vertical([Constraint::Length(3); 2]).areas(area),
    };
    let mut gauge = |title: &str, area: Rect, ratio: f64, label: &[String]| {
        let gauge = Gauge::default()
            .block(framed(title.to_owned(), area))
            .gauge_style(Style::new().fg(ACCENT))
            .ratio(ratio.clamp(0.0, 1.0))
            .label(fit(label, ", ", inner(area)));
        frame.render_widget(gauge, area);
    };
    let [now, always] = interval.hit_ratio;
    let label = [
        format!("{} now", percent(now)),
        format!("{} in all", percent(always)),
    ];
    gauge("hit ratio", left, now.or(always).unwrap_or(0.0), &label);
    let used = &interval.memory;
    let [taken, limit] = [used.used, used.limit].map(|bytes| memory(bytes as f64));
    let parts = used.parts.iter();
    let parts = parts.map(|(part, bytes)| format!("{part} {}", memory(*bytes as f64)));
    let label: Vec<String> = std::iter::once(format!("{taken} of {limit}"))
        .chain(parts)
        .collect();
    gauge(
        "memory",
        right,
        used.used as f64 / used.limit.max(1) as f64,
        &label,
    );
}

/// Workers, and the hottest keys next to them.
pub fn lower(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    // Side by side in a wide terminal; otherwise the first that is available, workers first.
    let is_wide = area.width >= WIDE_FROM;
    let has_workers = !interval.workers.is_empty();
    let shown = [
        has_workers,
        !interval.hot.is_empty() && (is_wide || !has_workers),
    ];
    let parts = shown.map(|shown| Constraint::Fill(u16::from(shown)));
    let [left, right] = Layout::horizontal(parts).areas(area);
    if shown[0] {
        workers(frame, left, interval);
    }
    if shown[1] {
        hot(frame, right, interval);
    }
}

fn workers(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    const HEADS: [(&str, u16); 4] = [
        ("worker", 6),
        ("busy", 6),
        ("requests/s", 10),
        ("connections", 11),
    ];
    let mut used = 0;
    let fitting = HEADS.iter().take_while(|(_, width)| {
        used += usize::from(*width) + usize::from(used > 0);
        used <= inner(area)
    });
    let columns = fitting.count();
    let room = usize::from(area.height.saturating_sub(3));
    let (shown, all) = (room.min(interval.workers.len()), interval.workers.len());
    let rows = interval
        .workers
        .iter()
        .take(room)
        .enumerate()
        .map(|(number, worker)| {
            let cells = [
                number.to_string(),
                percent(worker.load),
                count(worker.requests_per_s),
                worker.connections.to_string(),
            ];
            Row::new(cells.into_iter().take(columns))
        });
    let widths = HEADS
        .iter()
        .take(columns)
        .map(|(_, width)| Constraint::Length(*width));
    let head = Row::new(HEADS.iter().take(columns).map(|(head, _)| *head)).bold();
    let title = match shown < all {
        true => format!("workers: {shown} of {all}"),
        false => "workers".to_owned(),
    };
    let table = Table::new(rows, widths)
        .header(head)
        .block(framed(title, area));
    frame.render_widget(table, area);
}

fn hot(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    const TIMES_WIDTH: u16 = 12;
    let width = inner(area).saturating_sub(usize::from(TIMES_WIDTH) + 1);
    let keys = interval.hot.iter().take(HOT_MAX);
    let keys = keys.map(|(key, times)| {
        let times = fit(std::slice::from_ref(times), "", usize::from(TIMES_WIDTH));
        Row::new([cut(key, width), times])
    });
    let table = Table::new(keys, [Constraint::Fill(1), Constraint::Length(TIMES_WIDTH)]);
    let block = framed("hottest keys".to_owned(), area);
    frame.render_widget(table.block(block), area);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        assert_eq!(
            [0, 1, 3, 50, 51, 110_000, u64::MAX].map(round_up),
            [1, 1, 4, 60, 60, 200_000, u64::MAX]
        );
        assert_eq!(
            [59.0, 240.0, 7200.0].map(ago),
            ["59 s ago", "4 min ago", "2 h ago"]
        );
    }
}
