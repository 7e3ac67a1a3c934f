//! The drawn screen at several sizes of the terminal.

use super::*;
use crate::{
    hot::{Acceleration, HotKey},
    latency::Latency,
    packets::Packets,
    sample::{Interval, Memory, Worker},
    sizes::SizeRow,
};
use ratatui::{Terminal, backend::TestBackend};
use std::collections::BTreeSet;

const MIB: u64 = 1 << 20;

fn shown(view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view)).unwrap();
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(width));
    rows.map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect())
        .collect()
}

fn view() -> View {
    let worker = Worker {
        load: Some(0.4237),
        requests_per_s: 55_123.0,
        connections: 10_025,
        role: Some("dispatcher".to_owned()),
        queue: Some([123, 1024]),
    };
    let size = |below_bytes, share: f64, p99_us: f64| SizeRow {
        below_bytes,
        share,
        requests_per_s: share * 110_000.0,
        percentiles_us: Some([p99_us / 10.0, p99_us]),
    };
    View {
        server: "cache-17.example.com:11311".to_owned(),
        interval: Interval {
            about: [
                "glimmer crcw s3fifo",
                "version 1.6.45",
                "process 29684",
                "up 12days 3h 4m 5s",
            ]
            .map(str::to_owned)
            .into(),
            requests_per_s: 110_000.0,
            kinds: vec![("get", 123_456.0), ("set", 10_987.0), ("incr/decr", 17.0)],
            hit_ratio: [Some(0.7512), Some(0.8049)],
            items: 1_234_567_890,
            memory: Memory {
                limit: 64 * MIB,
                used: 41 * MIB,
                parts: vec![
                    ("items", 26 * MIB),
                    ("index", 8 * MIB),
                    ("buffers", 7 * MIB),
                ],
            },
            evictions: (5432.0, 98_765_432_109),
            connections: 10_050,
            traffic_bytes_per_s: [123_456_789.0, 987_654_321.0],
            cores_busy: Some(13.57),
            workers: vec![worker; 8],
            sizes: vec![
                size(128, 0.973, 91.0),
                size(2048, 0.025, 92.0),
                size(1 << 20, 0.002, 4321.0),
            ],
            large_from_bytes: Some(2048),
            inside_us: None,
            hot: vec![HotKey {
                key: "user:1234567890:profile".to_owned(),
                reads_per_s: 471_100.0,
                value_bytes: 1_047_000,
            }],
            accelerator: Some(Acceleration {
                body: "model".to_owned(),
                share: Some(0.4567),
                hits_per_s: [("get", 312_000.0), ("gets", 15.0), ("binary", 7800.0)],
                slots: [65_001, 65_536],
                retracts_per_s: 3456.0,
                refreshes_per_s: 3344.0,
                paused: vec!["watched".to_owned(), "clock_moved".to_owned()],
                circuit: None,
            }),
            packets: Some(Packets {
                transport: "xdp at eth17 (native, 4 queues)".to_owned(),
                received_per_s: 312_345.0,
                sent_per_s: 311_999.0,
                dropped_per_s: vec![("ring_full".to_owned(), 42.0)],
                burst: Some(32),
                ..Packets::default()
            }),
        },
        interval_s: 1.0,
        history: (0..300).map(|at| Some(at * 300)).collect(),
        latency: Some(Latency {
            p50_us: 80,
            p99_us: 2100,
            max_us: 12_345,
            count: 1200,
        }),
        gone: None,
    }
}

/// The words with digits on a screen, without frames and bars.
fn numbers(screen: &[String]) -> BTreeSet<String> {
    let is_drawn = |letter: char| matches!(letter, '\u{2500}'..='\u{259f}') || letter == ' ';
    screen
        .iter()
        .flat_map(|row| row.split(is_drawn))
        .filter(|word| word.chars().any(|letter| letter.is_ascii_digit()))
        .map(|word| word.trim_end_matches(',').to_owned())
        .collect()
}

#[test]
fn no_number_is_cut_in_a_narrow_terminal() {
    let view = view();
    // The scale and the times of the chart depend on its width and are counted separately.
    let wide = numbers(&shown(&view, 400, 60));
    assert!(
        wide.contains("29684") && wide.contains("98765432109"),
        "{wide:?}"
    );
    let sizes = (30..=200)
        .map(|width| (width, 24))
        .chain([(40, 60), (80, 60)]);
    for (width, height) in sizes {
        let screen = shown(&view, width, height);
        for number in numbers(&screen) {
            let is_whole = wide.contains(&number) || number.ends_with('…');
            let is_time = screen
                .iter()
                .any(|row| row.contains(&format!("{number} s ago")));
            let is_time = is_time
                || screen
                    .iter()
                    .any(|row| row.contains(&format!("{number} min ago")));
            let is_scale = ["100k", "50k", "25k", "0", "10k", "20k"].contains(&number.as_str());
            let is_shown = screen
                .iter()
                .any(|row| row.contains("workers: ") || row.contains("sizes: "));
            let is_count = is_shown && number.parse::<usize>().is_ok_and(|shown| shown <= 8);
            assert!(
                is_whole || is_time || is_scale || is_count,
                "{number} at {width}x{height}:\n{}",
                screen.join("\n")
            );
        }
    }
}

#[test]
fn the_most_important_fields_fit_into_every_terminal() {
    for (width, height) in [(40, 24), (80, 24), (120, 30), (200, 50)] {
        let screen = shown(&view(), width, height).join("\n");
        for text in [
            "cache-17.example.com:11311",
            "1234567890",
            "75.1% now",
            "41 MiB of 64 MiB",
            "p50 80 µs",
            "requests per second: 110k",
        ] {
            assert!(
                screen.contains(text),
                "{text} at {width}x{height}:\n{screen}"
            );
        }
    }
}

#[test]
fn a_wide_terminal_shows_every_field() {
    let screen = shown(&view(), 200, 50).join("\n");
    for text in [
        "glimmer crcw s3fifo  version 1.6.45  process 29684  up 12days 3h 4m 5s",
        "packets      312k/s in, 312k/s out, 42/s dropped, 0/s refused, bursts of 32, xdp at eth17 \
         (native, 4 queues)",
        "get          123k",
        "incr/decr    17",
        "evictions    5.4k/s, 98765432109 in all",
        "traffic      118 MiB/s in, 942 MiB/s out",
        "cores busy   13.57",
        "p50 80 µs, p99 2100 µs, longest 12.3 ms, of 1200",
        "75.1% now, 80.5% in all",
        "41 MiB of 64 MiB, items 26 MiB, index 8.0 MiB, buffers 7.0 MiB",
        "worker busy   requests/s role       queue     connections",
        "7      42.4%  55k        dispatcher 123/1024  10025",
        "sizes, large from 2.0 KiB",
        "values below requests/s p99      share  p50",
        "128 B        107k       91 µs    97.3%  9.1 µs",
        "1.0 MiB      220        4321 µs  0.2%   432 µs",
        "accelerator  45.7% of reads, paused",
        "accelerator: model",
        "share        45.7% of reads",
        "hits         312k/s get, 15/s gets, 7.8k/s binary",
        "paused       watched, clock_moved",
        "live slots   65001 of 65536",
        "changes      3.5k/s retracts, 3.3k/s refreshes",
        "reads/s value",
        "user:1234567890:profile",
        "471k    1022 KiB",
    ] {
        assert!(screen.contains(text), "{text} is not on\n{screen}");
    }
}

#[test]
fn a_server_without_dispatch_shows_workers_as_before() {
    let mut view = view();
    for worker in &mut view.interval.workers {
        (worker.role, worker.queue) = (None, None);
    }
    let screen = shown(&view, 200, 50).join("\n");
    assert!(
        screen.contains("worker busy   requests/s connections"),
        "{screen}"
    );
}

#[test]
fn the_classes_with_the_longest_times_stay_where_rows_are_few() {
    let screen = shown(&view(), 80, 24).join("\n");
    assert!(
        screen.contains("1.0 MiB") && screen.contains("dispatcher"),
        "{screen}"
    );
}

#[test]
fn a_common_terminal_shows_sizes_and_hot_keys_before_the_chart() {
    for has_accelerator in [false, true] {
        let mut view = view();
        if !has_accelerator {
            view.interval.accelerator = None;
        }
        let screen = shown(&view, 80, 24).join("\n");
        for text in ["requests per second: 110k", "1.0 MiB ", "hottest keys"] {
            assert!(screen.contains(text), "{text}: {screen}");
        }
        assert!(!screen.contains("ago"), "{screen}");
    }
}

/// Sizes have more rows than workers, so hot keys are below the workers and take none from them.
#[test]
fn tables_are_divided_among_two_columns() {
    let mut view = view();
    view.interval.accelerator = None;
    view.interval.workers.truncate(2);
    let screen = shown(&view, 80, 24);
    let column = |title: &str| screen.iter().find_map(|row| row.find(title));
    assert_eq!(column("hottest keys"), column("workers"), "{screen:#?}");
    assert!(column("sizes") > column("workers"), "{screen:#?}");
    let foot = &screen[screen.len() - 3];
    assert!(!foot.contains("│  "), "a column ends early: {screen:#?}");
}

#[test]
fn the_memory_bar_is_as_long_as_the_share_of_the_limit() {
    let mut view = view();
    view.interval.memory.used = 64 * MIB;
    let screen = shown(&view, 120, 40);
    let row = screen
        .iter()
        .find(|row| row.contains("64 MiB of 64 MiB"))
        .unwrap();
    let bar: String = row.chars().skip(60).collect();
    assert!(!bar.trim_matches(['│', ' ']).contains("  "), "{row}");
}

#[test]
fn the_chart_has_a_scale() {
    let mut view = view();
    view.history = [Some(10_000), Some(45_000), None, Some(20_000)].into();
    let low = shown(&view, 80, 30).join("\n");
    assert!(low.contains("60k ") && !low.contains("30k "), "{low}");
    let screen = shown(&view, 80, 40);
    let begin = screen
        .iter()
        .position(|row| row.contains("requests per second"))
        .unwrap();
    let chart: Vec<&String> = screen[begin + 1..]
        .iter()
        .take_while(|row| !row.contains('└'))
        .collect();
    assert!(chart[0].contains("60k "), "{chart:?}");
    assert!(chart[chart.len() - 2].contains(" 0 "), "{chart:?}");
    let times = chart.last().unwrap();
    assert!(
        times.contains("s ago") && times.contains("now"),
        "{chart:?}"
    );
    // The newest interval is at the right edge, and nothing is drawn for the interval without a
    // server.
    let lowest: Vec<char> = chart[chart.len() - 2].chars().collect();
    let columns = &lowest[lowest.len() - 5..lowest.len() - 1];
    assert_eq!(
        columns
            .iter()
            .map(|letter| *letter != ' ')
            .collect::<Vec<_>>(),
        [true, true, false, true]
    );
}

#[test]
fn a_server_that_is_gone_is_told_and_its_last_figures_stay() {
    let mut view = view();
    view.gone = Some("cannot connect to 127.0.0.1:11211: Connection refused".to_owned());
    for width in [40, 80, 200] {
        let screen = shown(&view, width, 40);
        assert!(screen[0].starts_with("cannot connect to"), "{screen:?}");
        assert!(
            screen.iter().any(|row| row.contains("1234567890")),
            "{screen:?}"
        );
    }
    let screen = shown(&view, 120, 40);
    assert!(screen[0].contains("trying again every 1 s"), "{screen:?}");
}

#[test]
fn nothing_asked_for_shows_no_negative_number() {
    let mut view = view();
    view.interval.requests_per_s = -0.0;
    view.interval.kinds = vec![("get", -0.0)];
    view.interval.evictions.0 = -0.0;
    let screen = shown(&view, 80, 24).join("\n");
    assert!(
        screen.contains("requests per second: 0") && !screen.contains("-0"),
        "{screen}"
    );
}

#[test]
fn panels_without_figures_are_not_there() {
    let mut view = view();
    view.interval.workers.clear();
    let screen = shown(&view, 80, 30).join("\n");
    assert!(
        !screen.contains("worker") && screen.contains("hottest keys"),
        "{screen}"
    );
    assert!(screen.contains("values below"), "{screen}");
    view.interval.sizes.clear();
    let screen = shown(&view, 80, 30).join("\n");
    assert!(!screen.contains("sizes"), "{screen}");
    assert!(screen.contains("accelerator"), "{screen}");
    view.interval.accelerator = None;
    let screen = shown(&view, 80, 30).join("\n");
    assert!(!screen.contains("accelerator"), "{screen}");
    view.interval.hot.clear();
    let screen = shown(&view, 80, 30).join("\n");
    assert!(!screen.contains("hottest keys"), "{screen}");
}

#[test]
fn rates_and_sizes_of_hot_keys_are_whole_at_every_width() {
    let mut view = view();
    view.interval.workers.clear();
    view.interval.sizes.clear();
    for width in 30..=200 {
        let screen = shown(&view, width, 50).join("\n");
        for text in [
            "471k    1022 KiB",
            "45.7% of reads",
            "312k/s get",
            "65001 of 65536",
            "3.5k/s retracts",
            "watched",
        ] {
            assert!(screen.contains(text), "{text} at {width}:\n{screen}");
        }
    }
}

#[test]
fn a_tiny_terminal_is_no_crash() {
    for (width, height) in [
        (1, 1),
        (2, 9),
        (20, 5),
        (40, 12),
        (63, 9),
        (64, 9),
        (300, 3),
    ] {
        shown(&view(), width, height);
        shown(&View::default(), width, height);
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
