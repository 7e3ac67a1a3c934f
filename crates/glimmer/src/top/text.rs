//! Numbers as they are shown.

use super::latency::Latency;

/// A number with a unit's letter: `950`, `1.2k`, `34M`.
pub fn count(value: f64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    scaled(value, &units)
}

/// Bytes: `512`, `1.0Ki`, `64Mi`.
pub fn bytes(value: f64) -> String {
    let units = [
        (f64::from(1u32 << 30) * 1024.0, "Ti"),
        (f64::from(1u32 << 30), "Gi"),
        (f64::from(1u32 << 20), "Mi"),
        (f64::from(1u32 << 10), "Ki"),
    ];
    scaled(value, &units)
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    match units.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) if value < 10.0 * unit => format!("{:.1}{name}", value / unit),
        Some((unit, name)) => format!("{:.0}{name}", value / unit),
        None => format!("{value:.0}"),
    }
}

/// A part of one in percent, or a dash where there is nothing to take a part of.
pub fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:.1}%", part * 100.0))
}

/// Microseconds, or milliseconds from ten of them on.
pub fn time(us: u64) -> String {
    match us {
        0..10_000 => format!("{us} µs"),
        _ => format!("{:.1} ms", us as f64 / 1e3),
    }
}

/// Percentiles in a line.
pub fn latency(latency: Option<Latency>) -> String {
    match latency {
        Some(Latency {
            p50_us,
            p99_us,
            max_us,
            count,
        }) => format!(
            "p50 {}, p99 {}, longest {} of {count}",
            time(p50_us),
            time(p99_us),
            time(max_us)
        ),
        None => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [0.0, 950.0, 1234.0, 56_789.0, 3.4e6].map(count),
            ["0", "950", "1.2k", "57k", "3.4M"]
        );
        assert_eq!(
            [512.0, 1024.0, 67_108_864.0].map(bytes),
            ["512", "1.0Ki", "64Mi"]
        );
        assert_eq!([Some(0.905), None].map(percent), ["90.5%", "-"]);
        assert_eq!(
            [80, 9999, 12_345].map(time),
            ["80 µs", "9999 µs", "12.3 ms"]
        );
    }
}
