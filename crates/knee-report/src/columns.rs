//! Finds embedded columns by the path that charts use.

use crate::bands::GroupSeries;
use crate::chart::Columns;
use crate::encode::Column;
use crate::series::{Embedded, FlowSeries, LinkSeries};

impl Columns for Embedded {
    /// `*` refers to the selected flow.
    fn column(&self, place: &str) -> Option<&[u64]> {
        let parts: Vec<&str> = place.split('.').collect();
        let at = |part: &str| part.parse::<usize>().unwrap_or(self.picked);
        let column = match parts.as_slice() {
            ["flows", flow, field @ ..] => self.flows.get(at(flow))?.column(field),
            ["multipath", flow, "paths", path, field @ ..] => {
                self.multipath.get(at(flow))?.paths.get(at(path))?.column(field)
            }
            ["multipath", flow, "time_ns"] => Some(&self.multipath.get(at(flow))?.time_ns),
            ["multipath", flow, "reassembly_bytes"] => {
                self.multipath.get(at(flow))?.reassembly_bytes.as_ref()
            }
            ["links", link, field] => self.links.get(at(link))?.column(field),
            ["groups", group, "time_ns"] => Some(&self.groups.get(at(group))?.time_ns),
            ["groups", group, field, edge] => self.groups.get(at(group))?.column(field, edge),
            ["rtt_distribution", "rtt_ns"] => Some(&self.rtt_distribution.as_ref()?.rtt_ns),
            ["rtt_distribution", "curves", curve, "at_or_below"] => {
                Some(&self.rtt_distribution.as_ref()?.curves.get(at(curve))?.at_or_below)
            }
            _ => None,
        };
        column.map(Column::numbers)
    }

    fn picked(&self) -> usize {
        self.picked
    }

    fn tints(&self) -> Vec<&'static str> {
        self.phases.iter().map(|phase| phase.tint).collect()
    }
}

impl FlowSeries {
    fn column(&self, field: &[&str]) -> Option<&Column> {
        match field {
            ["time_ns"] => Some(&self.time_ns),
            ["delivered_bytes"] => self.delivered_bytes.as_ref(),
            ["rtt_ns"] => self.rtt_ns.as_ref(),
            ["window_bytes"] => self.window_bytes.as_ref(),
            ["in_flight_bytes"] => self.in_flight_bytes.as_ref(),
            ["slow_start_threshold_bytes"] => self.slow_start_threshold_bytes.as_ref(),
            ["bandwidth_estimate_bps"] => self.bandwidth_estimate_bps.as_ref(),
            ["min_rtt_estimate_ns"] => self.min_rtt_estimate_ns.as_ref(),
            ["phases", "at"] => self.phases.as_ref().map(|spans| &spans.at),
            ["phases", "phase"] => self.phases.as_ref().map(|spans| &spans.phase),
            _ => None,
        }
    }
}

impl LinkSeries {
    fn column(&self, field: &str) -> Option<&Column> {
        match field {
            "time_ns" => Some(&self.time_ns),
            "queue_bytes" => self.queue_bytes.as_ref(),
            "queue_delay_ns" => self.queue_delay_ns.as_ref(),
            "dropped_packets" => self.dropped_packets.as_ref(),
            "capacity_bytes" => self.capacity_bytes.as_ref(),
            "used_bytes" => self.used_bytes.as_ref(),
            _ => None,
        }
    }
}

impl GroupSeries {
    fn column(&self, field: &str, edge: &str) -> Option<&Column> {
        let edges = match field {
            "rate_bps" => self.rate_bps.as_ref(),
            "rtt_ns" => self.rtt_ns.as_ref(),
            "window_bytes" => self.window_bytes.as_ref(),
            "in_flight_bytes" => self.in_flight_bytes.as_ref(),
            _ => None,
        }?;
        match edge {
            "low" => Some(&edges.low),
            "median" => Some(&edges.median),
            "high" => Some(&edges.high),
            _ => None,
        }
    }
}
