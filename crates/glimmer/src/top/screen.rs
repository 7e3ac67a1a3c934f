//! On a terminal: panels that are drawn anew every interval.

use std::time::Duration;

use anyhow::Result;
use ratatui::{
    Frame,
    crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers},
    layout::{Constraint, Layout, Rect},
    style::{Color, Style, Stylize},
    text::Line,
    widgets::{Block, Gauge, Paragraph, Row, Sparkline, Table},
};

use super::{
    text::{bytes, count, latency, percent},
    watch::{View, Watch},
};

const ACCENT: Color = Color::Cyan;

/// Shows the server until the user types `q`, Escape or Ctrl-C, or the server is gone.
pub fn live(watch: &mut Watch) -> Result<()> {
    let mut terminal = ratatui::try_init()?;
    let result = (|| {
        let mut view = View::default();
        terminal.draw(|frame| draw(frame, &view))?;
        loop {
            let (seen, idle) = watch.turn()?;
            if let Some(seen) = seen {
                view = seen;
                terminal.draw(|frame| draw(frame, &view))?;
            }
            if event::poll(idle)? {
                let event = event::read()?;
                if ends(&event) {
                    return Ok(());
                }
                if matches!(event, Event::Resize(..)) {
                    terminal.draw(|frame| draw(frame, &view))?;
                }
            } else if idle.is_zero() {
                std::thread::sleep(Duration::from_millis(1));
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

/// Draws everything. A panel whose figures the server does not report is not there.
pub fn draw(frame: &mut Frame<'_>, view: &View) {
    let interval = &view.interval;
    let lower = interval.workers.len().max(interval.hot.len().min(10)) as u16;
    let lower = if lower == 0 { 0 } else { lower + 3 };
    let [head, numbers, chart, gauges, rest, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(interval.kinds.len().max(6) as u16 + 2),
        Constraint::Min(4),
        Constraint::Length(3),
        Constraint::Length(lower),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let title = format!("{}  {}", view.target, interval.title);
    frame.render_widget(Line::from(title).bold(), head);
    self::numbers(frame, numbers, view);
    let now = count(interval.requests_per_s);
    let block = Block::bordered().title(format!("requests per second: {now}"));
    // The newest at the right edge.
    let wide = usize::from(chart.width.saturating_sub(2));
    let shown = view
        .history
        .iter()
        .skip(view.history.len().saturating_sub(wide));
    let line = Sparkline::default().data(shown.copied()).style(ACCENT);
    frame.render_widget(line.block(block), chart);
    self::gauges(frame, gauges, view);
    if lower > 0 {
        below(frame, rest, view);
    }
    frame.render_widget(Line::from("q: quit").dim(), foot);
}

fn numbers(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let interval = &view.interval;
    let [left, right] =
        Layout::horizontal([Constraint::Percentage(35), Constraint::Percentage(65)]).areas(area);
    let kinds = interval.kinds.iter();
    let kinds = kinds.map(|(kind, rate)| Row::new([(*kind).to_owned(), count(*rate)]));
    let widths = [Constraint::Length(12), Constraint::Min(8)];
    let table = Table::new(kinds, widths).block(Block::bordered().title("per second"));
    frame.render_widget(table, left);
    let [received, sent] = interval.traffic_bytes_per_s.map(bytes);
    let (evicted, total) = interval.evictions;
    let cores = interval
        .cores_busy
        .map_or("-".to_owned(), |cores| format!("{cores:.2}"));
    let lines = vec![
        Line::from(format!("items        {}", interval.items)),
        Line::from(format!("evictions    {}/s, {total} in all", count(evicted))),
        Line::from(format!("connections  {}", interval.connections)),
        Line::from(format!("traffic      {received}B/s in, {sent}B/s out")),
        Line::from(format!("cores busy   {cores}")),
        Line::from(format!("round trip   {}", latency(view.latency))),
    ];
    let text = Paragraph::new(lines).block(Block::bordered().title("now"));
    frame.render_widget(text, right);
}

fn gauges(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let interval = &view.interval;
    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2]).areas(area);
    let [now, always] = interval.hit_ratio;
    let hits = Gauge::default()
        .block(Block::bordered().title("hit ratio"))
        .gauge_style(Style::new().fg(ACCENT))
        .ratio(now.or(always).unwrap_or(0.0).clamp(0.0, 1.0))
        .label(format!("{} now, {} in all", percent(now), percent(always)));
    frame.render_widget(hits, left);
    let [used, limit] = interval.memory_bytes;
    let part = used as f64 / limit.max(1) as f64;
    let memory = Gauge::default()
        .block(Block::bordered().title("memory"))
        .gauge_style(Style::new().fg(ACCENT))
        .ratio(part.clamp(0.0, 1.0))
        .label(format!(
            "{}B of {}B",
            bytes(used as f64),
            bytes(limit as f64)
        ));
    frame.render_widget(memory, right);
}

fn below(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let interval = &view.interval;
    let shown = [!interval.workers.is_empty(), !interval.hot.is_empty()];
    let parts = shown.map(|shown| Constraint::Fill(u16::from(shown)));
    let [left, right] = Layout::horizontal(parts).areas(area);
    if shown[0] {
        let workers = interval.workers.iter().enumerate().map(|(number, worker)| {
            Row::new([
                number.to_string(),
                percent(worker.load),
                count(worker.requests_per_s),
                worker.connections.to_string(),
            ])
        });
        let head = Row::new(["worker", "busy", "requests/s", "connections"]).bold();
        let widths = [
            Constraint::Length(8),
            Constraint::Length(8),
            Constraint::Length(11),
            Constraint::Min(8),
        ];
        let table = Table::new(workers, widths).header(head);
        frame.render_widget(table.block(Block::bordered().title("workers")), left);
    }
    if shown[1] {
        let keys = interval.hot.iter();
        let keys = keys.map(|(key, times)| Row::new([key.clone(), times.clone()]));
        let table = Table::new(keys, [Constraint::Fill(1), Constraint::Length(12)]);
        frame.render_widget(table.block(Block::bordered().title("hottest keys")), right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::{
        latency::Latency,
        sample::{Interval, Worker},
    };
    use ratatui::{Terminal, backend::TestBackend};

    fn shown(view: &View, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, view)).unwrap();
        terminal.backend().to_string()
    }

    fn view() -> View {
        View {
            target: "127.0.0.1:11211".to_owned(),
            interval: Interval {
                title: "version 1.6".to_owned(),
                requests_per_s: 110_000.0,
                kinds: vec![("get", 100_000.0), ("set", 10_000.0)],
                hit_ratio: [Some(0.75), Some(0.8)],
                items: 12_345,
                memory_bytes: [32 << 20, 64 << 20],
                evictions: (5.0, 99),
                connections: 50,
                cores_busy: Some(1.5),
                ..Interval::default()
            },
            history: [10, 20, 30].into(),
            latency: Some(Latency {
                p50_us: 80,
                p99_us: 210,
                max_us: 12_000,
                count: 600,
            }),
        }
    }

    #[test]
    fn every_panel_shows_its_figures() {
        let screen = shown(&view(), 100, 30);
        for text in [
            "127.0.0.1:11211",
            "requests per second: 110k",
            "get",
            "100k",
            "75.0% now, 80.0% in all",
            "12345",
            "32MiB of 64MiB",
            "5/s, 99 in all",
            "cores busy   1.50",
            "p50 80 µs, p99 210 µs, longest 12.0 ms of 600",
        ] {
            assert!(screen.contains(text), "{text} is not on\n{screen}");
        }
        assert!(
            !screen.contains("workers") && !screen.contains("hottest"),
            "{screen}"
        );
    }

    #[test]
    fn workers_and_hot_keys_appear_when_the_server_reports_them() {
        let mut view = view();
        let worker = Worker {
            load: Some(0.42),
            requests_per_s: 55_000.0,
            connections: 25,
        };
        view.interval.workers = vec![worker; 2];
        let screen = shown(&view, 100, 30);
        assert!(
            screen.contains("workers") && screen.contains("42.0%"),
            "{screen}"
        );
        assert!(!screen.contains("hottest keys"), "{screen}");
        view.interval.hot = vec![("user:1".to_owned(), "4711".to_owned())];
        let screen = shown(&view, 100, 30);
        assert!(
            screen.contains("hottest keys") && screen.contains("4711"),
            "{screen}"
        );
    }

    #[test]
    fn a_small_terminal_is_no_crash() {
        for (width, height) in [(1, 1), (20, 5), (40, 12)] {
            shown(&view(), width, height);
        }
    }

    #[test]
    fn q_escape_and_control_c_end_it() {
        let key = |code, modifiers| Event::Key(event::KeyEvent::new(code, modifiers));
        assert!(ends(&key(KeyCode::Char('q'), KeyModifiers::NONE)));
        assert!(ends(&key(KeyCode::Esc, KeyModifiers::NONE)));
        assert!(ends(&key(KeyCode::Char('c'), KeyModifiers::CONTROL)));
        assert!(!ends(&key(KeyCode::Char('c'), KeyModifiers::NONE)));
        assert!(!ends(&Event::FocusLost));
    }
}
