//! `/api/stats`: the same figures as `/metrics`, and what `stats` shows, as JSON.

use serde_json::{Map, Value, json};

use crate::metrics::{self, Source, families};
use crate::stats::{Kind, slow_fields};

/// Slow requests in the reply.
const SLOW_SHOWN_MAX: usize = 32;

/// `{"time": SECONDS, "epoch": SECONDS, "ready": ..., "metrics": {NAME: [{"labels": {...}, "value":
/// ...}]}, "stats": {KIND: {NAME: TEXT}}}`. `hotkeys` and `slow` are lists, the hottest and the
/// newest first.
pub(super) fn stats(source: &Source) -> Vec<u8> {
    let metrics = families().map(|family| {
        let samples = family.samples(source).into_iter().map(|sample| {
            let labels = sample.labels.into_iter();
            let labels = labels.map(|(name, value)| (name.to_owned(), value.into()));
            let value = match sample.value {
                metrics::Value::Number(number) => number.into(),
                metrics::Value::Histogram { sum, buckets } => json!({
                    "sum": sum,
                    // The bound of the last one is null.
                    "buckets": buckets,
                }),
            };
            json!({"labels": labels.collect::<Map<_, _>>(), "value": value})
        });
        (family.name(), samples.collect())
    });
    let texts = &source.figures.texts;
    let kinds = Kind::ALL.into_iter().map(|kind| {
        let each = texts.of(kind);
        let shown = match kind {
            Kind::HotKeys => each
                .map(|(key, about)| json!({"key": key, "about": about}))
                .collect(),
            _ => Value::Object(
                each.map(|(name, it)| (name.to_owned(), it.into()))
                    .collect(),
            ),
        };
        (kind.name().to_owned(), shown)
    });
    let slow = source.figures.slow.iter().take(SLOW_SHOWN_MAX).map(|slow| {
        let fields = slow_fields(slow).into_iter();
        let fields = fields.map(|(name, value)| (name.to_owned(), value.into()));
        Value::Object(fields.collect())
    });
    let mut shown = kinds.collect::<Map<_, _>>();
    shown.insert("slow".to_owned(), slow.collect());
    let all = json!({
        "time": (source.figures.now.epoch_unix_ms + source.figures.now.ms) as f64 / 1e3,
        "epoch": source.figures.now.epoch_unix_ms as f64 / 1e3,
        "ready": source.watched.is_ready(),
        "metrics": metrics.collect::<Map<_, _>>(),
        "stats": shown,
    });
    all.to_string().into_bytes()
}
