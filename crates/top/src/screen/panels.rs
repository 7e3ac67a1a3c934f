//! The panels. Each receives an area, draws a frame, and leaves out what does not fit.

use glimmer_notation::memory;
use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Style, Stylize},
    text::Line,
    widgets::{Gauge, Paragraph, RenderDirection, Row, Sparkline, Table},
};

use super::parts::{NAME_WIDTH, framed, inner};
use super::{ACCENT, HOT_MAX, WIDE_FROM, hot};
use crate::{
    sample::Interval,
    sizes::{SizeRow, most_telling},
    text::{count, fit, inside, latency, percent},
    watch::View,
};

/// Minimum rows of [`chart`]: a frame, two tick marks, and the times below.
pub const CHART_ROWS_MIN: u16 = 5;
/// Requests per second by kind. The title has their sum if no chart has it.
pub fn kinds(frame: &mut Frame<'_>, area: Rect, interval: &Interval, has_chart: bool) {
    let kinds = interval.kinds.iter();
    let kinds = kinds.map(|(kind, rate)| Row::new([(*kind).to_owned(), count(*rate)]));
    let widths = [Constraint::Length(12), Constraint::Min(8)];
    let title = match has_chart {
        true => "per second".to_owned(),
        false => title_of_requests(interval),
    };
    let block = framed(title, area);
    frame.render_widget(Table::new(kinds, widths).block(block), area);
}

/// Lines of [`now`].
pub fn now_lines(interval: &Interval) -> u16 {
    let further = [
        interval.inside_us.is_some(),
        interval.accelerator.is_some(),
        interval.packets.is_some(),
    ];
    6 + further.into_iter().map(u16::from).sum::<u16>()
}

/// Single values, one line per subject.
pub fn now(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let interval = &view.interval;
    let [received, sent] = interval.traffic_bytes_per_s.map(memory);
    let (evicted, total) = interval.evictions;
    let cores = interval.cores_busy;
    let mut lines: Vec<(&str, Vec<String>)> = vec![
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
    if let Some(times) = interval.inside_us {
        lines.push(("inside", inside(times)));
    }
    if let Some(accelerator) = &interval.accelerator {
        let share = format!("{} of reads", percent(accelerator.share));
        let paused = accelerator.paused.first().map(|_| "paused".to_owned());
        lines.push((
            "accelerator",
            std::iter::once(share).chain(paused).collect(),
        ));
    }
    if let Some(packets) = &interval.packets {
        let about = [packets.transport.clone()];
        lines.push((
            "packets",
            packets.rates().into_iter().chain(about).collect(),
        ));
    }
    let width = inner(area);
    let lines = lines.into_iter().map(|(name, fields)| {
        let fields = fit(&fields, ", ", width.saturating_sub(NAME_WIDTH));
        match fields.is_empty() {
            true => Line::default(),
            false => Line::from(format!("{name:<NAME_WIDTH$}{fields}")),
        }
    });
    let block = framed("now".to_owned(), area);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
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

fn title_of_requests(interval: &Interval) -> String {
    format!("requests per second: {}", count(interval.requests_per_s))
}

/// Requests per second over time, the newest at the right edge: one column per interval, with a
/// scale from zero.
pub fn chart(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let block = framed(title_of_requests(&view.interval), area);
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
        // In a low chart, the middle row is the first one, which has the largest mark.
        let is_middle = std::ptr::eq(mark, &marks[1]);
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

/// Draws a panel.
type Draw = fn(&mut Frame<'_>, Rect, &Interval);
/// A table in the lower part of the screen: its rows with heading and frame, and what draws it.
type Lower = (u16, Draw);

/// The tables that have something to show, the more important ones first.
fn tables(interval: &Interval) -> Vec<Lower> {
    let keys = interval.hot.len().min(HOT_MAX);
    let accelerator = interval.accelerator.as_ref();
    let accelerator = accelerator.map_or(0, |it| it.lines().len());
    let tables: [(usize, usize, Draw); 4] = [
        (interval.workers.len(), 3, workers),
        (interval.sizes.len(), 3, sizes),
        (keys, 3, hot::keys),
        (accelerator, 2, hot::accelerator),
    ];
    let used = tables.into_iter().filter(|(rows, ..)| *rows > 0);
    used.map(|(rows, around, draw)| ((rows + around) as u16, draw))
        .collect()
}

/// Rows of a table with its heading and its frame, and one row of figures.
pub const TABLE_ROWS_MIN: u16 = 4;

/// Rows that the tables need for one row of figures each, and those that they would fill.
pub fn lower_rows(interval: &Interval, is_wide: bool) -> (u16, u16) {
    let tables = tables(interval);
    let least = |column: &[Lower]| -> u16 {
        let rows = column.iter().map(|(rows, _)| *rows);
        rows.map(|rows| rows.min(TABLE_ROWS_MIN)).sum()
    };
    let wanted = |column: &[Lower]| -> u16 { column.iter().map(|(rows, _)| *rows).sum() };
    if !is_wide {
        return (least(&tables), wanted(&tables));
    }
    let [left, right] = columns(tables);
    (
        least(&left).max(least(&right)),
        wanted(&left).max(wanted(&right)),
    )
}

/// Two columns of tables: each table is in the one that has fewer rows up to there.
fn columns(tables: Vec<Lower>) -> [Vec<Lower>; 2] {
    let (mut columns, mut rows) = ([Vec::new(), Vec::new()], [0, 0]);
    for table in tables {
        let shorter = usize::from(rows[1] < rows[0]);
        rows[shorter] += table.0;
        columns[shorter].push(table);
    }
    columns
}

/// Workers, sizes, the hottest keys and the accelerator, in a wide terminal in two columns.
pub fn lower(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    let tables = tables(interval);
    let is_wide = area.width >= WIDE_FROM && tables.len() > 1;
    if !is_wide {
        stack(frame, area, interval, &tables);
        return;
    }
    let areas: [Rect; 2] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
    for (area, column) in areas.into_iter().zip(columns(tables)) {
        stack(frame, area, interval, &column);
    }
}

/// Draws tables below one another, as far as there is room. All but the last that fits get no more
/// rows than they need, and leave those that follow a row each.
fn stack(frame: &mut Frame<'_>, area: Rect, interval: &Interval, tables: &[Lower]) {
    const LEAST: u16 = TABLE_ROWS_MIN;
    let mut left = area;
    for (place, (rows, draw)) in tables.iter().enumerate() {
        let Some(room) = left.height.checked_sub(LEAST.min(*rows)) else {
            return;
        };
        let others = tables[place + 1..].iter().scan(0, |sum, (rows, _)| {
            *sum += LEAST.min(*rows);
            (*sum <= room).then_some(*sum)
        });
        let height = match others.last() {
            None => left.height,
            Some(others) => (left.height - others).min(*rows),
        };
        let [mine, rest] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(left);
        draw(frame, mine, interval);
        left = rest;
    }
}

/// How many of these columns fit side by side.
fn fitting(widths: impl Iterator<Item = usize>, area: Rect) -> usize {
    let mut used = 0;
    widths
        .take_while(|width| {
            used += width + usize::from(used > 0);
            used <= inner(area)
        })
        .count()
}

fn title(name: &str, shown: usize, all: usize) -> String {
    match shown < all {
        true => format!("{name}: {shown} of {all}"),
        false => name.to_owned(),
    }
}

fn sizes(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    let heads = SizeRow::HEADS;
    let columns = fitting(heads.iter().map(|(_, width)| *width), area);
    let room = usize::from(area.height.saturating_sub(3));
    let shown = most_telling(&interval.sizes, room);
    let mut title = title("sizes", shown.len(), interval.sizes.len());
    if let Some(bytes) = interval.large_from_bytes {
        title += &format!(", large from {}", memory(bytes as f64));
    }
    let rows = shown.into_iter();
    let rows = rows.map(|row| Row::new(row.cells().into_iter().take(columns)));
    let table = headed(&heads[..columns], rows);
    frame.render_widget(table.block(framed(title, area)), area);
}

fn workers(frame: &mut Frame<'_>, area: Rect, interval: &Interval) {
    const HEADS: [(&str, usize); 6] = [
        ("worker", 6),
        ("busy", 6),
        ("requests/s", 10),
        ("role", 10),
        ("queue", 9),
        ("connections", 11),
    ];
    let has_roles = interval.workers.iter().any(|worker| worker.role.is_some());
    let is_shown = |place: usize| has_roles || !(3..5).contains(&place);
    let heads: Vec<_> = (0..HEADS.len())
        .filter(|&place| is_shown(place))
        .map(|place| HEADS[place])
        .collect();
    let columns = fitting(heads.iter().map(|(_, width)| *width), area);
    let room = usize::from(area.height.saturating_sub(3));
    let (shown, all) = (room.min(interval.workers.len()), interval.workers.len());
    let workers = interval.workers.iter().take(room).enumerate();
    let rows = workers.map(|(number, worker)| {
        let queue = worker.queue.map(|[now, most]| format!("{now}/{most}"));
        let cells = [
            number.to_string(),
            percent(worker.load),
            count(worker.requests_per_s),
            worker.role.clone().unwrap_or_default(),
            queue.unwrap_or_default(),
            worker.connections.to_string(),
        ];
        let cells = cells.into_iter().enumerate();
        let cells = cells.filter(|(place, _)| is_shown(*place));
        Row::new(cells.map(|(_, cell)| cell).take(columns))
    });
    let table = headed(&heads[..columns], rows);
    let title = title("workers", shown, all);
    frame.render_widget(table.block(framed(title, area)), area);
}

/// A table with these heads and the widths of their columns.
fn headed<'a>(
    heads: &[(&'static str, usize)],
    rows: impl IntoIterator<Item = Row<'a>>,
) -> Table<'a> {
    let widths = heads
        .iter()
        .map(|(_, width)| Constraint::Length(*width as u16));
    let head = Row::new(heads.iter().map(|(head, _)| *head)).bold();
    Table::new(rows, widths).header(head)
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
