//! What can be moved: keys of a scenario's file, each with the values that it may take.

use super::PlayError;
use knee_link::{Buffer, Loss, RateModel};
use knee_scenario::{Algorithms, Flow, Link, Reverse, Scenario};
use knee_units::{Rate, Time};
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// Steps within a factor of ten, in tenths: each is about a quarter more than the one before.
const DECADE: [u64; 10] = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80];
/// Numbers of flows.
const FLOWS: [u64; 15] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50];
/// How far two values may be apart and still be the same step.
const SAME: f64 = 1e-6;

/// A key that moves, and its values in ascending order.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Short name, as in the address of a result.
    pub name: &'static str,
    /// Name on the page.
    pub label: &'static str,
    /// Whether its values have no order.
    pub is_list: bool,
    /// Its values.
    pub steps: Vec<Step>,
    /// The value in the file, by its position.
    pub start: usize,
}

/// A value of a setting.
#[derive(Clone, Debug)]
pub struct Step {
    /// The value as shown.
    pub text: String,
    /// What it is in the file; empty for the value that the file has.
    edits: Vec<Edit>,
}

#[derive(Clone, Debug)]
struct Edit {
    place: Place,
    key: &'static str,
    value: Value,
}

/// The table of a key.
#[derive(Clone, Debug)]
enum Place {
    Link(String),
    Path(String),
    /// The first group of flows.
    Flow,
}

impl Place {
    /// Returns its table.
    fn table<'d>(&self, document: &'d mut DocumentMut) -> Option<&'d mut dyn TableLike> {
        let item: &mut Item = match self {
            Place::Link(name) => document.get_mut("link")?.get_mut(name)?,
            Place::Path(name) => document.get_mut("path")?.get_mut(name)?,
            Place::Flow => document.get_mut("flow")?.get_mut(0)?,
        };
        item.as_table_like_mut()
    }

    /// Returns the value of a key as it is written; `None` if it is not a text.
    fn written(&self, document: &DocumentMut, key: &str) -> Option<String> {
        let mut document = document.clone();
        self.table(&mut document)?.get(key)?.as_str().map(str::to_string)
    }

    fn has_table(&self, document: &DocumentMut) -> bool {
        self.table(&mut document.clone()).is_some()
    }
}

impl Step {
    /// Puts the value into the file. What stands around the old one stays.
    pub fn apply(&self, document: &mut DocumentMut) {
        for Edit { place, key, value } in &self.edits {
            let Some(table) = place.table(document) else { continue };
            let mut value = value.clone();
            match table.get_mut(key) {
                Some(old) => {
                    if let Some(old) = old.as_value() {
                        *value.decor_mut() = old.decor().clone();
                    }
                    *old = Item::Value(value);
                }
                None => {
                    table.insert(key, Item::Value(value));
                }
            }
        }
    }
}

/// Returns what can be moved in a scenario, and what cannot, with the reason.
pub fn settings(
    scenario: &Scenario,
    document: &DocumentMut,
    algorithms: &Algorithms,
) -> Result<(Vec<Setting>, Vec<String>), PlayError> {
    let flow = scenario.flows.first().filter(|flow| flow.multipath.is_none());
    let [path] = flow.ok_or(PlayError::NotOnePath)?.paths[..] else {
        return Err(PlayError::NotOnePath);
    };
    let flow = &scenario.flows[0];
    let link = bottleneck(scenario, path);
    let found = [
        rate(link, document),
        rtt(scenario, path, document),
        buffer(scenario, path, link, document),
        loss(link, document),
        flows(scenario, flow, document),
        controller(flow, document, algorithms),
    ];
    let (mut moved, mut fixed) = (Vec::new(), Vec::new());
    for one in found {
        match one {
            Ok(setting) => moved.push(setting),
            Err(why) => fixed.push(why.to_string()),
        }
    }
    Ok((moved, fixed))
}

/// Returns the slowest link of a path, or its first if none has a rate.
pub fn bottleneck(scenario: &Scenario, path: usize) -> &Link {
    let links = scenario.paths[path].forward.iter().map(|link| &scenario.links[*link]);
    let slowest = links.filter(|link| link.nominal_rate.is_some());
    let slowest = slowest.min_by_key(|link| link.nominal_rate);
    slowest.unwrap_or(&scenario.links[scenario.paths[path].forward[0]])
}

/// Merges the values of a setting with the one that the file has, which is shown as it is written.
fn steps(
    values: impl Iterator<Item = (f64, String, Vec<Edit>)>,
    own: f64,
    written: String,
) -> (Vec<Step>, usize) {
    let others = values.filter(|(value, ..)| (value - own).abs() > SAME * own.abs().max(SAME));
    let mut all: Vec<(f64, Step)> =
        others.map(|(value, text, edits)| (value, Step { text, edits })).collect();
    let start = all.partition_point(|(value, _)| *value < own);
    all.insert(start, (own, Step { text: written, edits: Vec::new() }));
    (all.into_iter().map(|(_, step)| step).collect(), start)
}

/// Returns round numbers from one power of ten to another, both included.
fn round_numbers(decades: u32, first: u64) -> impl Iterator<Item = u64> {
    let powers = (0..decades).map(|power| 10_u64.pow(power));
    let within = powers.flat_map(move |power| DECADE.map(|tenths| first * power * tenths / 10));
    within.chain([first * 10_u64.pow(decades)])
}

fn rate(link: &Link, document: &DocumentMut) -> Result<Setting, &'static str> {
    let place = Place::Link(link.name.clone());
    let RateModel::Constant(own) = link.config.rate else {
        return Err("The rate is as in the file: it is not constant.");
    };
    let written = place.written(document, "rate");
    let written = written.ok_or("The rate is as in the file: it is not written in its link.")?;
    let values = round_numbers(4, 100_000).map(|bps| {
        let text = Rate::from_bits_per_second(bps).to_string();
        let edit = Edit { place: place.clone(), key: "rate", value: text.clone().into() };
        (bps as f64, text, vec![edit])
    });
    let (steps, start) = steps(values, own.as_bits_per_second() as f64, written);
    Ok(Setting { name: "rate", label: "Rate", is_list: false, steps, start })
}

/// Every propagation delay of the path, there and back, in the same proportion.
fn rtt(scenario: &Scenario, path: usize, document: &DocumentMut) -> Result<Setting, &'static str> {
    const NOT_WRITTEN: &str =
        "The RTT is as in the file: its delays are not constant values there.";
    let (name, forward) = (&scenario.paths[path].name, &scenario.paths[path].forward);
    let Reverse::Delay(back) = scenario.paths[path].reverse else {
        return Err("The RTT is as in the file: the way back has links.");
    };
    let back_place = Place::Path(name.clone());
    back_place.written(document, "reverse_delay").ok_or(NOT_WRITTEN)?;
    let mut parts: Vec<(Place, Time)> = Vec::new();
    for (position, link) in forward.iter().enumerate() {
        let Link { name, config, .. } = &scenario.links[*link];
        let place = Place::Link(name.clone());
        let (once, written) =
            (!forward[..position].contains(link), place.written(document, "delay"));
        match &config.delay.base.0[..] {
            [(_, delay)] if once && written.is_some() => parts.push((place, *delay)),
            _ => return Err(NOT_WRITTEN),
        }
    }
    let own = parts.iter().fold(back, |sum, (_, delay)| sum.saturating_add(*delay)).as_nanos();
    if own == 0 {
        return Err("The RTT is as in the file: all its delays are zero.");
    }
    let values = round_numbers(3, 1_000_000).map(|ns| {
        let scaled =
            |delay: &Time| (u128::from(delay.as_nanos()) * u128::from(ns) / u128::from(own)) as u64;
        let there: Vec<u64> = parts.iter().map(|(_, delay)| scaled(delay)).collect();
        let back = ns - there.iter().sum::<u64>();
        let edit = |place: &Place, key, ns| {
            let value = Time::from_nanos(ns).to_string().into();
            Edit { place: place.clone(), key, value }
        };
        let links = parts.iter().zip(there).map(|((place, _), ns)| edit(place, "delay", ns));
        let edits = links.chain([edit(&back_place, "reverse_delay", back)]).collect();
        (ns as f64, Time::from_nanos(ns).to_string(), edits)
    });
    let (steps, start) = steps(values, own as f64, Time::from_nanos(own).to_string());
    Ok(Setting { name: "rtt", label: "RTT", is_list: false, steps, start })
}

fn buffer(
    scenario: &Scenario,
    path: usize,
    link: &Link,
    document: &DocumentMut,
) -> Result<Setting, &'static str> {
    let place = Place::Link(link.name.clone());
    let rate = link.nominal_rate.ok_or("The buffer is as in the file: its link has no rate.")?;
    if !place.has_table(document) {
        return Err("The buffer is as in the file: its link is not written there.");
    }
    // As for buffers in scenarios: the rate by the propagation delays.
    let rtt = scenario.one_way_delay(path).saturating_add(scenario.way_back(path));
    let bdp = rate.as_bits_per_second() as f64 / 8.0 * rtt.as_secs_f64();
    if bdp <= 0.0 {
        return Err("The buffer is as in the file: its path has no bandwidth-delay product.");
    }
    let own = match link.config.buffer {
        Buffer::Unlimited => f64::MAX,
        Buffer::Bytes(bytes) => bytes as f64 / bdp,
        Buffer::Packets(packets) => packets as f64 * 1500.0 / bdp,
    };
    // Shown as it is written; a value in BDP is the one of its text.
    let written = place.written(document, "buffer").unwrap_or_else(|| "not written".to_string());
    let own = written.strip_suffix(" BDP").and_then(|times| times.parse().ok()).unwrap_or(own);
    let values = round_numbers(2, 10).chain([1200, 1500, 2000]).map(|hundredths| {
        let text = format!("{} BDP", hundredths as f64 / 100.0);
        let edit = Edit { place: place.clone(), key: "buffer", value: text.clone().into() };
        (hundredths as f64 / 100.0, text, vec![edit])
    });
    let (steps, start) = steps(values, own, written);
    Ok(Setting { name: "buffer", label: "Buffer", is_list: false, steps, start })
}

fn loss(link: &Link, document: &DocumentMut) -> Result<Setting, &'static str> {
    let place = Place::Link(link.name.clone());
    let own = match link.config.loss {
        Loss::None => 0.0,
        Loss::Independent(part) => 100.0 * part,
        _ => return Err("The loss is as in the file: it is not independent for each packet."),
    };
    if !place.has_table(document) {
        return Err("The loss is as in the file: its link is not written there.");
    }
    let written = place.written(document, "loss").unwrap_or_else(|| "0 %".to_string());
    // In millionths of all packets, up to a tenth of them.
    let values = [0].into_iter().chain(round_numbers(3, 100)).map(|parts| {
        let percent = parts as f64 / 1e4;
        let text = format!("{percent} %");
        let edit = Edit { place: place.clone(), key: "loss", value: text.clone().into() };
        (percent, text, vec![edit])
    });
    let (steps, start) = steps(values, own, written);
    Ok(Setting { name: "loss", label: "Random loss", is_list: false, steps, start })
}

fn flows(
    scenario: &Scenario,
    flow: &Flow,
    document: &DocumentMut,
) -> Result<Setting, &'static str> {
    if !Place::Flow.has_table(document) {
        return Err("The number of flows is as in the file.");
    }
    let own = scenario.flows.iter().filter(|other| other.name == flow.name).count();
    let values = FLOWS.into_iter().map(|count| {
        let edit = Edit { place: Place::Flow, key: "count", value: (count as i64).into() };
        (count as f64, count.to_string(), vec![edit])
    });
    let (steps, start) = steps(values, own as f64, own.to_string());
    Ok(Setting { name: "flows", label: "Flows", is_list: false, steps, start })
}

fn controller(
    flow: &Flow,
    document: &DocumentMut,
    algorithms: &Algorithms,
) -> Result<Setting, &'static str> {
    if !Place::Flow.has_table(document) {
        return Err("The controller is as in the file.");
    }
    let own = &flow.controller.name;
    let plain = flow.controller.parameters.is_empty();
    let entries = algorithms.controllers.entries();
    let presets = |entry: &'_ knee_cc::Entry| entry.presets.iter().map(|preset| preset.name);
    let mut names: Vec<&str> =
        entries.flat_map(|entry| std::iter::once(entry.name).chain(presets(entry))).collect();
    names.retain(|name| !plain || name != own);
    names.sort_unstable();
    let step = |name: &str| {
        let edit = Edit { place: Place::Flow, key: "cc", value: name.into() };
        Step { text: name.to_string(), edits: vec![edit] }
    };
    let mut steps: Vec<Step> = names.into_iter().map(step).collect();
    let start = steps.partition_point(|step| step.text < *own);
    let text = if plain { own.clone() } else { format!("{own}, as in the file") };
    steps.insert(start, Step { text, edits: Vec::new() });
    Ok(Setting { name: "cc", label: "Controller", is_list: true, steps, start })
}
