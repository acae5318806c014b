//! `knee observe --open`: what open connections do in each interval, and where packets are lost.

use super::{Arguments, stoppable, text};
use crate::arguments::Format;
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_live::{
    Change, Groups, InterfaceChange, Look, OpenConnection, OpenObserver, OpenSettings,
};
use knee_present::words::{bytes, count, time_us};
use knee_present::{Cell, Document, Head, Table, number};
use knee_record::{Unit, rfc3339};
use knee_units::Time;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The shortest interval: the kernel's timer ticks have up to 10 ms.
const INTERVAL_MIN: Time = Time::from_millis(100);
/// Maximum wait until the stop condition is checked.
const PATIENCE: Duration = Duration::from_millis(100);
/// Rows of a table, if the output is no terminal.
const ROWS: usize = 20;
/// The fewest rows on a terminal.
const ROWS_MIN: usize = 3;

/// Observes until it is stopped.
#[expect(clippy::disallowed_methods, reason = "a host is observed as time passes")]
pub fn observe(arguments: &Arguments) -> Result<Ending, Failure> {
    let format = arguments.print.format();
    if !matches!(format, Format::Text | Format::Json) {
        let what = "--open prints text or JSON lines".to_string();
        let advice = "remove --format, or write --json; the files have the same rows";
        return Err(Failure::Usage(what, advice.to_string()));
    }
    if arguments.interval < INTERVAL_MIN {
        let what = format!("--interval {} is too short", arguments.interval);
        return Err(Failure::Usage(what, format!("write {INTERVAL_MIN} or more")));
    }
    let mut observer = OpenObserver::begin(OpenSettings {
        directory: arguments.out.clone(),
        groups: Groups::new(arguments.group.clone())?,
        keep_addresses: arguments.addresses,
        bytes_max: arguments.limit.get(),
    })?;
    let (handle, until) = stoppable(arguments)?;
    screen::say(&format!(
        "Observing open connections every {} {until}, into {}.",
        arguments.interval,
        arguments.out.display()
    ));
    let [interval, duration] = [Some(arguments.interval), arguments.duration]
        .map(|time| time.map(|time| Duration::from_nanos(time.as_nanos())));
    let interval = interval.unwrap_or(PATIENCE);
    let began = Instant::now();
    let mut due = interval;
    let mut failed = None;
    while failed.is_none() && duration.is_none_or(|duration| due <= duration) {
        while began.elapsed() < due && !handle.is_stopped() {
            thread::sleep(due.saturating_sub(began.elapsed()).min(PATIENCE));
        }
        if handle.is_stopped() {
            break;
        }
        failed = look(&mut observer, arguments, format).err();
        // Whole intervals are skipped if one took longer.
        while due <= began.elapsed() {
            due += interval;
        }
    }
    let written = observer.finish();
    if let Some(error) = failed {
        return Err(error);
    }
    for file in written?.files {
        screen::say(&format!("file     {}", file.display()));
    }
    Ok(Ending::Done)
}

/// Ends an interval and prints it.
fn look(observer: &mut OpenObserver, arguments: &Arguments, format: Format) -> Result<(), Failure> {
    let look = observer.look()?;
    if format == Format::Json {
        let prefix = |one: &OpenConnection| observer.prefix(one);
        return screen::print_json_line(&line(&look, prefix));
    }
    let named = !arguments.group.is_empty();
    let mut client = |one: &OpenConnection| match arguments.addresses {
        true => one.remote.ip().to_string(),
        false => observer.prefix(one).to_string(),
    };
    let height = screen::height();
    let mut rows = height.unwrap_or(ROWS);
    let text = loop {
        let text = document(&look, named, rows, &mut client).text(screen::layout());
        // Beside the line of the cursor.
        let excess = height.map_or(0, |height| (text.lines().count() + 1).saturating_sub(height));
        if excess == 0 || rows <= ROWS_MIN {
            break text;
        }
        // A table that is too wide has each row twice.
        rows = rows.saturating_sub(excess.div_ceil(2)).max(ROWS_MIN);
    };
    screen::clear()?;
    let end = if height.is_some() { "" } else { "\n" };
    screen::print(&(text + end))
}

fn document(
    look: &Look,
    named: bool,
    rows: usize,
    client: impl FnMut(&OpenConnection) -> String,
) -> Document {
    let mut active: Vec<&OpenConnection> =
        look.connections.iter().filter(|one| one.is_active()).collect();
    active.sort_by_key(|one| {
        let most = [one.change.retransmitted_bytes, one.change.sent_bytes];
        (most.map(|bytes| u64::MAX - bytes), one.cookie)
    });
    let time = rfc3339(look.unix.as_secs());
    let open = count(look.connections.len() as u64);
    let head = format!(
        "{time}  {open} connections open, {} active in {}\n",
        count(active.len() as u64),
        time_us(Some(look.length.as_secs_f64() * 1e6))
    );
    let mut document = Document::default().words(head).said(look.lost.sentence()).words("\n");
    document = document.table(table(look, &active[..rows.min(active.len())], named, client));
    if let Some(rest) = active.get(rows..).filter(|rest| !rest.is_empty()) {
        let mut all = Change::default();
        rest.iter().for_each(|one| all.add(&one.change));
        document = document.words(format!(
            "{} more: sent {}, retransmitted {}\n",
            count(rest.len() as u64),
            rate(look, all.sent_bytes).shown,
            Unit::Fraction.show(all.retransmitted_ratio().unwrap_or(0.0)),
        ));
    }
    if named {
        document = document.words("\n").table(group_table(look, &groups(look)));
    }
    document.words("\n").table(host_table(look)).said(stack(look))
}

fn rate(look: &Look, bytes: u64) -> Cell {
    let seconds = look.length.as_secs_f64().max(1e-9);
    Cell::figure(Unit::BitsPerSecond, Some(bytes as f64 * 8.0 / seconds))
}

/// Columns of what connections did, and their cells.
fn figures() -> impl Iterator<Item = Head> {
    ["sent", "acked", "retransmitted"].into_iter().map(number)
}

fn figures_of(look: &Look, change: &Change) -> [Cell; 3] {
    [
        rate(look, change.sent_bytes),
        rate(look, change.acked_bytes),
        Cell::figure(Unit::Fraction, change.retransmitted_ratio()),
    ]
}

fn table(
    look: &Look,
    connections: &[&OpenConnection],
    named: bool,
    mut client: impl FnMut(&OpenConnection) -> String,
) -> Table {
    let heads = ["client", "port", "local"].map(knee_present::text).into_iter();
    let heads = heads.chain(named.then(|| knee_present::text("group")));
    let heads = heads.chain(["cc", "state"].map(knee_present::text)).chain(figures());
    let heads = heads.chain(["RTT", "smallest", "window", "unacked"].map(number));
    let mut table = Table::new(heads).called("connections");
    for one in connections {
        let told = &one.info;
        let us = |us: u32| Cell::us((us > 0).then(|| f64::from(us)));
        let window = f64::from(told.window) * f64::from(told.mss);
        let names = [client(one), one.remote.port().to_string(), one.local.port().to_string()];
        let names = names.iter().map(|name| text(name));
        let names = names.chain(named.then(|| text(&one.group)));
        let names = names.chain([text(&one.controller), text(told.state())]);
        let measured = [
            us(told.srtt_us),
            Cell::us(told.min_rtt().map(|rtt| rtt.as_nanos() as f64 / 1e3)),
            Cell::shown(bytes(Some(window)), window),
            Cell::count(told.unacked),
        ];
        table.row(names.chain(figures_of(look, &one.change)).chain(measured));
    }
    table
}

/// What the connections of each group did, and their number.
fn groups(look: &Look) -> BTreeMap<Arc<str>, (u64, Change)> {
    let mut groups = BTreeMap::<Arc<str>, (u64, Change)>::new();
    for one in &look.connections {
        let (connections, change) = groups.entry(one.group.clone()).or_default();
        *connections += 1;
        change.add(&one.change);
    }
    groups
}

fn group_table(look: &Look, groups: &BTreeMap<Arc<str>, (u64, Change)>) -> Table {
    let heads = [knee_present::text("group"), number("connections")].into_iter().chain(figures());
    let mut table = Table::new(heads).called("groups");
    for (name, (connections, change)) in groups {
        let names = [text(name), Cell::count(*connections)];
        table.row(names.into_iter().chain(figures_of(look, change)));
    }
    table
}

/// Counters of the interfaces that sent or dropped anything.
fn host_table(look: &Look) -> Table {
    let texts = ["interface", "qdisc"].map(knee_present::text).into_iter();
    let figures = ["sent", "qdisc drops", "overlimits", "requeues", "backlog"].into_iter();
    let figures = figures.chain(["tx_dropped", "tx_errors", "card drops"]).map(number);
    let mut table = Table::new(texts.chain(figures)).called("interfaces");
    for one in &look.host.interfaces {
        let card = card_drops(one);
        let driver = |name: &str| one.driver.get(name).copied().unwrap_or(0);
        let is_quiet = driver("tx_packets") + driver("tx_dropped") + driver("tx_errors") == 0
            && card.unwrap_or(0) == 0
            && one.qdiscs.iter().all(|qdisc| qdisc.drops == 0);
        if is_quiet {
            continue;
        }
        let of_interface = || {
            [
                Cell::count(driver("tx_dropped")),
                Cell::count(driver("tx_errors")),
                card.map_or_else(|| Cell::figure(Unit::Number, None), Cell::count),
            ]
        };
        let none = || [(); 4].map(|()| Cell::figure(Unit::Number, None));
        // A queueing discipline with others below it, which sends nothing itself, is left out.
        let mut qdiscs = one.qdiscs.iter().filter(|qdisc| qdisc.sent_packets + qdisc.drops > 0);
        let first = qdiscs.next();
        let row = |qdisc: Option<&knee_live::QdiscChange>, is_first: bool| {
            let name = text(if is_first { &one.name } else { "" });
            let kind = qdisc.map_or_else(|| "none".to_string(), |qdisc| qdisc.kind.clone());
            let sent = qdisc.map_or(driver("tx_packets"), |qdisc| qdisc.sent_packets);
            let counted = qdisc.map_or_else(none, |qdisc| {
                let backlog = qdisc.backlog_bytes as f64;
                [
                    Cell::count(qdisc.drops),
                    Cell::count(qdisc.overlimits),
                    Cell::count(qdisc.requeues),
                    Cell::shown(bytes(Some(backlog)), backlog),
                ]
            });
            let own = if is_first { of_interface().to_vec() } else { Vec::new() };
            [name, text(&kind), Cell::count(sent)].into_iter().chain(counted).chain(own)
        };
        table.row(row(first, true));
        qdiscs.for_each(|qdisc| table.row(row(Some(qdisc), false)));
    }
    table
}

/// The most that a statistic of the card counts as not sent; `None` if it has no such statistic.
fn card_drops(one: &InterfaceChange) -> Option<u64> {
    one.card.iter().flatten().map(|(_, drops)| *drops).max()
}

/// Counters of TCP and IP, in a line.
fn stack(look: &Look) -> String {
    let of = |name: &str| count(look.host.stack(name));
    let discarded = look.host.stack("IpOutDiscards") + look.host.stack("Ip6OutDiscards");
    format!(
        "TCP: {} segments sent, {} retransmitted, {} timeouts; refused by this host {}, \
         discarded by IP {}, memory pressure {}.",
        of("TcpOutSegs"),
        of("TcpRetransSegs"),
        of("TcpExtTCPTimeouts"),
        of("TcpExtTCPRetransFail"),
        count(discarded),
        of("TcpExtTCPMemoryPressures"),
    )
}

/// An interval for programs. Typed, since there may be many rows.
#[derive(Serialize)]
struct Line<'l> {
    schema: &'static str,
    unix_ns: u64,
    seconds: f64,
    connections: usize,
    rows: Vec<Row<'l>>,
    groups: Vec<Value>,
    host: Value,
    lost: Value,
}

/// An active connection. Totals are of its whole life.
#[derive(Serialize)]
struct Row<'l> {
    connection: u64,
    prefix: String,
    local_port: u16,
    remote_port: u16,
    group: &'l str,
    cc: &'l str,
    state: &'static str,
    interval: OfInterval,
    sent_bytes: u64,
    retransmitted_bytes: u64,
    acked_bytes: u64,
    retransmitted_packets: u32,
    srtt_us: Option<u32>,
    rtt_min_us: Option<u64>,
    window_bytes: u64,
    mss_bytes: u32,
    unacked_packets: u32,
    unsent_bytes: u32,
}

#[derive(Serialize)]
struct OfInterval {
    sent_bytes: u64,
    retransmitted_bytes: u64,
    acked_bytes: u64,
    retransmitted_packets: u64,
    dsacks: u64,
}

impl OfInterval {
    fn of(change: &Change) -> OfInterval {
        OfInterval {
            sent_bytes: change.sent_bytes,
            retransmitted_bytes: change.retransmitted_bytes,
            acked_bytes: change.acked_bytes,
            retransmitted_packets: change.retransmitted_packets,
            dsacks: change.dsacks,
        }
    }
}

fn row(one: &OpenConnection, prefix: String) -> Row<'_> {
    let info = &one.info;
    Row {
        connection: one.cookie,
        prefix,
        local_port: one.local.port(),
        remote_port: one.remote.port(),
        group: &one.group,
        cc: &one.controller,
        state: info.state(),
        interval: OfInterval::of(&one.change),
        sent_bytes: info.sent_bytes,
        retransmitted_bytes: info.retransmitted_bytes,
        acked_bytes: info.delivered_bytes(),
        retransmitted_packets: info.retransmitted_packets,
        srtt_us: (info.srtt_us > 0).then_some(info.srtt_us),
        rtt_min_us: info.min_rtt().map(|rtt| rtt.as_nanos() / 1000),
        window_bytes: u64::from(info.window) * u64::from(info.mss),
        mss_bytes: info.mss,
        unacked_packets: info.unacked,
        unsent_bytes: info.unsent_bytes,
    }
}

fn line(look: &Look, mut prefix: impl FnMut(&OpenConnection) -> Arc<str>) -> Line<'_> {
    let active = look.connections.iter().filter(|one| one.is_active());
    let rows = active.map(|one| row(one, prefix(one).to_string())).collect();
    let group = |(group, (connections, change)): (&Arc<str>, &(u64, Change))| {
        let interval = OfInterval::of(change);
        json!({ "group": &**group, "connections": connections, "interval": interval })
    };
    Line {
        schema: "knee-open-interval/1",
        unix_ns: u64::try_from(look.unix.as_nanos()).unwrap_or(u64::MAX),
        seconds: look.length.as_secs_f64(),
        connections: look.connections.len(),
        rows,
        groups: groups(look).iter().map(group).collect(),
        host: host(look),
        lost: lost(look),
    }
}

fn host(look: &Look) -> Value {
    let interfaces = look.host.interfaces.iter().map(|one| {
        let qdiscs = one.qdiscs.iter().map(|qdisc| {
            json!({
                "kind": qdisc.kind,
                "handle": qdisc.handle,
                "sent_packets": qdisc.sent_packets,
                "drops": qdisc.drops,
                "overlimits": qdisc.overlimits,
                "requeues": qdisc.requeues,
                "backlog_bytes": qdisc.backlog_bytes,
                "backlog_packets": qdisc.backlog_packets,
            })
        });
        let card = one.card.as_ref();
        let card = card.map(|all| all.iter().cloned().collect::<BTreeMap<String, u64>>());
        json!({
            "name": one.name,
            "driver": one.driver,
            "qdiscs": qdiscs.collect::<Vec<_>>(),
            "card": card,
        })
    });
    json!({ "stack": look.host.stack, "interfaces": interfaces.collect::<Vec<_>>() })
}

fn lost(look: &Look) -> Value {
    let lost = &look.lost;
    let places = lost.places.iter().map(
        |(place, drops)| json!({ "kind": place.kind(), "place": place.words(), "drops": drops }),
    );
    json!({
        "sentence": lost.sentence(),
        "seconds": lost.seconds,
        "retransmitted_packets": lost.retransmitted_packets,
        "undecided_packets": lost.undecided_packets,
        "in_vain_packets": lost.in_vain_packets,
        "network_packets": lost.network_packets,
        "unexplained_packets": lost.unexplained_packets,
        "packets_per_drop": lost.packets_per_drop,
        "places": places.collect::<Vec<_>>(),
    })
}
