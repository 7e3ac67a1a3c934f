//! Formats numbers.

use glimmer_notation::microseconds;

use super::latency::Latency;

/// A number with a unit letter: `950`, `1.2k`, `34M`.
pub fn count(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    // Adding zero turns a negative zero, the sum of an empty list, into a positive one.
    let value = value + 0.0;
    match UNITS.iter().find(|(unit, _)| value >= *unit) {
        Some((unit, name)) if value < 10.0 * unit => format!("{:.1}{name}", value / unit),
        Some((unit, name)) => format!("{:.0}{name}", value / unit),
        None => format!("{value:.0}"),
    }
}

/// A share in percent, or a dash if there is none.
pub fn percent(part: Option<f64>) -> String {
    part.map_or("-".to_owned(), |part| format!("{:.1}%", part * 100.0))
}

/// Percentiles, in order.
pub fn latency(latency: Option<Latency>) -> Vec<String> {
    let Some(latency) = latency else {
        return vec!["-".to_owned()];
    };
    let time = |us: u64| microseconds(us as f64);
    vec![
        format!("p50 {}", time(latency.p50_us)),
        format!("p99 {}", time(latency.p99_us)),
        format!("longest {}", time(latency.max_us)),
        format!("of {}", latency.count),
    ]
}

/// What the server says of its own times of reads: median and 99th percentile in microseconds.
pub fn inside([p50_us, p99_us]: [f64; 2]) -> Vec<String> {
    vec![
        format!("p50 {}", microseconds(p50_us)),
        format!("p99 {}", microseconds(p99_us)),
    ]
}

/// The first of these fields, as many as fit into `width` side by side. A field that does not fit
/// completely is left out, with all fields after it: half a number is a wrong number.
pub fn fit(fields: &[String], between: &str, width: usize) -> String {
    let mut line = String::new();
    for field in fields {
        let joined = match line.is_empty() {
            true => field.clone(),
            false => format!("{line}{between}{field}"),
        };
        if joined.chars().count() > width {
            break;
        }
        line = joined;
    }
    line
}

/// A name, truncated with a mark if it does not fit.
pub fn cut(name: &str, width: usize) -> String {
    match name.chars().count() <= width {
        true => name.to_owned(),
        false if width == 0 => String::new(),
        false => name.chars().take(width - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            [-0.0, 0.0, 950.0, 1234.0, 56_789.0, 3.4e6].map(count),
            ["0", "0", "950", "1.2k", "57k", "3.4M"]
        );
        assert_eq!([Some(0.905), None].map(percent), ["90.5%", "-"]);
    }

    #[test]
    fn fields_are_whole_or_not_there() {
        let fields = ["version 1", "process 29684", "up 5s"].map(str::to_owned);
        assert_eq!(fit(&fields, ", ", 100), "version 1, process 29684, up 5s");
        assert_eq!(fit(&fields, ", ", 24), "version 1, process 29684");
        assert_eq!(fit(&fields, ", ", 23), "version 1");
        assert_eq!(fit(&fields, ", ", 8), "");
        assert_eq!(
            ["user:17", "user:1"].map(|key| cut(key, 6)),
            ["user:…", "user:1"]
        );
        assert_eq!(cut("x", 0), "");
    }
}
