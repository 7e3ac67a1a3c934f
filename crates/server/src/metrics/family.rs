//! A metric, and how it is encoded.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use super::{Source, families};

/// What a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only grows.
    Counter,
    /// A state.
    Gauge,
    /// How many of something were how large.
    Histogram,
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum In {
    /// Things.
    Units,
    Bytes,
    Seconds,
    Ratio,
}

/// A metric: name, unit, kind, help, and its samples.
pub(crate) struct Family {
    /// Without the suffixes of its unit and its kind.
    pub stem: &'static str,
    pub unit: In,
    pub kind: Kind,
    pub help: &'static str,
    pub sample: fn(&Source, &mut Samples),
}

impl Family {
    /// Something that only grows.
    pub const fn counter(
        stem: &'static str,
        unit: In,
        help: &'static str,
        sample: fn(&Source, &mut Samples),
    ) -> Family {
        let kind = Kind::Counter;
        Family {
            stem,
            unit,
            kind,
            help,
            sample,
        }
    }

    /// A state.
    pub const fn gauge(
        stem: &'static str,
        unit: In,
        help: &'static str,
        sample: fn(&Source, &mut Samples),
    ) -> Family {
        let kind = Kind::Gauge;
        Family {
            stem,
            unit,
            kind,
            help,
            sample,
        }
    }

    /// How many of something were how large.
    pub const fn histogram(
        stem: &'static str,
        unit: In,
        help: &'static str,
        sample: fn(&Source, &mut Samples),
    ) -> Family {
        let kind = Kind::Histogram;
        Family {
            stem,
            unit,
            kind,
            help,
            sample,
        }
    }

    /// The name of its samples.
    pub fn name(&self) -> String {
        let unit = match self.unit {
            In::Units => "",
            In::Bytes => "_bytes",
            In::Seconds => "_seconds",
            In::Ratio => "_ratio",
        };
        let kind = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{unit}{kind}", self.stem)
    }

    /// Its samples now.
    pub fn samples(&self, source: &Source) -> Vec<Sample> {
        let mut samples = Samples::default();
        (self.sample)(source, &mut samples);
        samples.0
    }
}

/// A value with its labels.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub labels: Labels,
    pub value: Value,
}

pub(crate) type Labels = Vec<(&'static str, Cow<'static, str>)>;

/// The value of a sample.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Number(f64),
    Histogram {
        sum: f64,
        /// The bound of each bucket, and how many are below it and not below the bound before. The
        /// last bound is infinite.
        buckets: Vec<(f64, u64)>,
    },
}

/// The samples of a metric.
#[derive(Debug, Default)]
pub(crate) struct Samples(Vec<Sample>);

impl Samples {
    /// The only one.
    pub fn put(&mut self, value: impl Number) {
        self.with([], value);
    }

    /// One with a label whose values are known.
    pub fn one(&mut self, label: &'static str, name: &'static str, value: impl Number) {
        self.with([(label, name.into())], value);
    }

    /// One of a worker.
    pub fn of_worker(&mut self, worker: usize, value: impl Number) {
        self.with([("worker", worker.to_string().into())], value);
    }

    /// One with these labels.
    pub fn with<const N: usize>(
        &mut self,
        labels: [(&'static str, Cow<'static, str>); N],
        value: impl Number,
    ) {
        self.0.push(Sample {
            labels: labels.into(),
            value: Value::Number(value.into_f64()),
        });
    }

    /// A histogram with these labels.
    pub fn histogram<const N: usize>(
        &mut self,
        labels: [(&'static str, Cow<'static, str>); N],
        sum: f64,
        buckets: Vec<(f64, u64)>,
    ) {
        self.0.push(Sample {
            labels: labels.into(),
            value: Value::Histogram { sum, buckets },
        });
    }
}

/// A number. Counts are exact up to 2^53, as everywhere in Prometheus.
pub(crate) trait Number {
    fn into_f64(self) -> f64;
}

impl Number for f64 {
    fn into_f64(self) -> f64 {
        self
    }
}

impl Number for u64 {
    fn into_f64(self) -> f64 {
        self as f64
    }
}

impl Number for usize {
    fn into_f64(self) -> f64 {
        self as f64
    }
}

impl Number for bool {
    fn into_f64(self) -> f64 {
        f64::from(u8::from(self))
    }
}

/// A registry that shows all metrics.
pub(super) fn registry(source: Arc<Source>) -> Registry {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Everything(source)));
    registry
}

#[derive(Debug)]
struct Everything(Arc<Source>);

impl Collector for Everything {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in families() {
            let samples = family.samples(&self.0);
            if samples.is_empty() {
                continue;
            }
            let unit = match family.unit {
                In::Units => None,
                In::Bytes => Some(Unit::Bytes),
                In::Seconds => Some(Unit::Seconds),
                In::Ratio => Some(Unit::Other("ratio".into())),
            };
            let kind = match family.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            let unit = unit.as_ref();
            let mut metric = encoder.encode_descriptor(family.stem, family.help, unit, kind)?;
            for sample in &samples {
                let mut encoder = metric.encode_family(&sample.labels)?;
                match (&sample.value, family.kind) {
                    (&Value::Number(value), Kind::Counter) => {
                        ConstCounter::new(value).encode(encoder)?;
                    }
                    (&Value::Number(value), _) => ConstGauge::new(value).encode(encoder)?,
                    (Value::Histogram { sum, buckets }, _) => {
                        let count = buckets.iter().map(|(_, count)| count).sum();
                        encoder.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}
