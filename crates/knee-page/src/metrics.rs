//! Metrics in the OpenMetrics 1.0 text format, which Prometheus reads.

use crate::text;
use axum::response::Response;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;
use std::fmt;

pub use prometheus_client::registry::Unit;

/// The media type.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A metric family.
#[derive(Clone, Debug)]
pub struct Family {
    /// Name without unit and `_total`.
    pub name: &'static str,
    /// Unit, which becomes the suffix of the name.
    pub unit: Option<Unit>,
    /// Description, as a sentence.
    pub help: &'static str,
    /// The samples, all of one type.
    pub samples: Samples,
}

/// The samples of a family, with their labels.
#[derive(Clone, Debug)]
pub enum Samples {
    /// Monotonically increasing values.
    Counters(Vec<Sample<f64>>),
    /// Current values.
    Gauges(Vec<Sample<f64>>),
    /// Distributions.
    Histograms(Vec<Sample<Histogram>>),
}

/// A value with its labels.
#[derive(Clone, Debug)]
pub struct Sample<V> {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: V,
}

/// A histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Sum of all values.
    pub sum: f64,
    /// Upper bound and count of each bucket, in ascending order, not cumulative; the last bound is
    /// infinite.
    pub buckets: Vec<(f64, u64)>,
}

/// Renders all families as a response.
pub fn open_metrics(families: Vec<Family>) -> Response {
    text(OPEN_METRICS, written(families))
}

/// Renders all families as text.
pub fn written(families: Vec<Family>) -> String {
    let (mut registry, mut text) = (Registry::default(), String::new());
    registry.register_collector(Box::new(Families(families)));
    // Writing to a string cannot fail.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Families(Vec<Family>);

/// Values have no exemplars.
const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Family { name, unit, help, samples } in &self.0 {
            let kind = match samples {
                Samples::Counters(_) => MetricType::Counter,
                Samples::Gauges(_) => MetricType::Gauge,
                Samples::Histograms(_) => MetricType::Histogram,
            };
            let mut family = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            match samples {
                Samples::Counters(samples) => {
                    for Sample { labels, value } in samples {
                        family.encode_family(labels)?.encode_counter(value, NO_EXEMPLAR)?;
                    }
                }
                Samples::Gauges(samples) => {
                    for Sample { labels, value } in samples {
                        family.encode_family(labels)?.encode_gauge(value)?;
                    }
                }
                Samples::Histograms(samples) => {
                    for Sample { labels, value: Histogram { sum, buckets } } in samples {
                        let count = buckets.iter().map(|(_, count)| count).sum();
                        let mut one = family.encode_family(labels)?;
                        one.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)?;
                    }
                }
            }
        }
        Ok(())
    }
}
