//! Scenarios and files that several tests use.
use knee_scenario::{Embedded, Errors, InputFile, Override, Scenario, Source, parse};

/// Input files of the scenarios.
pub const FILES: &[(&str, &[u8])] = &[
    // Three opportunities in nine milliseconds: 4 Mbit/s.
    ("lte.down", b"1\n5\n9\n"),
    ("old/lte.down", b"2\n3\n"),
    ("lost.txt", b"0010"),
    ("drive.csv", b"run,t,rate,rtt,loss\n1,0,8,40,0\n1,1,4,60,2\n1,3,6,50,1\n2,0,9,9,9\n"),
    ("page.csv", b"name,bytes,after\nindex,5000,\nstyle,2000,index\nlogo,300,index style\n"),
    ("film.mpd", FILM),
    ("old/access.csv", b"time,bytes,class,client_rtt_ms\n12:00,700,page,\n12:01,90,api,50\n"),
];

/// Three bitrates; two segments of 4 s and one of 2 s.
pub const FILM: &[u8] = b"<MPD mediaPresentationDuration=\"PT10S\"><Period><AdaptationSet contentType=\"video\">
    <SegmentTemplate duration=\"4\"/><Representation bandwidth=\"700000\"/><Representation bandwidth=\"3000000\"/>
    <Representation bandwidth=\"1500000\"/></AdaptationSet></Period></MPD>";

/// A scenario that uses every key.
pub const FULL: &str = r##"
name = "Everything"
duration = "60 s"
seed = 7
sample_interval = "50 ms"
warmup = "2 s"
start_jitter = "3 ms"

[transport]
mss = "1000 B"
header = "40 B"
initial_window = 4
acks = "quic"
ack_every = 1
ack_bytes = "20 kB"
ack_frequency = { per_round = 8, min_delay = "2 ms", reordering = 3 }
ack_delay = "25 ms"
quick_acks = 0
receive_window = "1 MiB"
pacing = "on"
ecn = true
sampler = "ns3-3.35"
recovery = "quic"
min_rto = "1 s"
max_burst = "64 kB"
send_jitter = "1 ms"

[link.steps]
rate = [{ at = "0 s", rate = "10 Mbit/s" }, { at = "9 s", rate = "0 bit/s" }]
delay = [{ at = "0 s", delay = "10 ms" }, { at = "1.5 s", delay = "20 ms" }]
jitter = { amount = [{ at = "0 s", amount = "5 ms" }, { at = "4 s", amount = "0 s" }], reorder = true }
buffer = "8 BDP"
aqm = { name = "red", min_threshold = "10 kB", max_threshold = "30 kB", max_probability = "10 %", weight = 0.01 }
ecn = true
loss = { good_to_bad = "1 %", bad_to_good = "30 %", loss_good = "0.1 %", loss_bad = "80 %" }
policer = { rate = "8 Mbit/s", burst = "64 kB" }
down = [{ from = "20 s", until = "21 s" }, { from = "10 s", until = "11 s" }]
hold = [{ from = "30 s", until = "31 s" }, { from = "22 s", until = "23 s" }]
circuit_breaker = { interval = "2 s", loss = "5 %", intervals = 4, reset_after = "10 s" }
ecn_bleached = true

[link.trace]
rate = { trace = "old/lte.down" }
delay = "5 ms"
loss = { file = "lost.txt" }
aqm = { name = "fq-codel", target = "4 ms", interval = "80 ms", flows = 16, quantum = "300 B" }
device = "30 kB"
buffer = "200 packets"

[link."other trace"]
rate = { trace = "lte.down", offset = "2 ms" }
loss = { every = 1000 }
aqm = { name = "pie", target = "10 ms", update = "20 ms", burst = "100 ms" }

[link.mark]
rate = "1 Gbit/s"
circuit_breaker = {}
loss = "0.25 %"
aqm = { name = "threshold", delay = "1 ms" }

[link.air]
delay = "1 ms"
jitter = { amount = "1 ms", at_least = "500 us", share = "20 %" }
loss = [{ at = "0 s", loss = "0 %" }, { at = "3 s", loss = { every = 9 } }]

[link.dual]
rate = "2 Gbit/s"
delay = "1 ms"
jitter = { distribution = "normal", mean = "3 ms", deviation = "500 us", reorder = true }
aqm = { name = "dualpi2", target = "15 ms", update = "16 ms", rtt_max = "100 ms", coupling = 2, step = "1 ms", range = "400 us", classic_share = "10 %" }

[link.host]
rate = "1 Gbit/s"
loss = { super_packets = "0.1 %" }

[link.port]
rate = "100 Mbit/s"
buffer = "1000 packets"
pause = { at = "75 %", until = "50 %" }

[link.drive]
rate = { table = "drive.csv", time = "t s", value = "rate Mbit/s", rows = "run = 1", scale = 0.5, offset = "1 s", repeat = false, gap = "zero" }
delay = { table = "drive.csv", time = "t s", value = "rtt ms", rows = "run = 1", scale = 0.5, reorder = true }
loss = { table = "drive.csv", time = "t s", value = "loss %", rows = "run = 1" }

[link.sky]
rate = "20 Mbit/s"

[path.one]
forward = ["steps", "trace"]
reverse_delay = "30 ms"

[path.two]
forward = ["other trace"]
reverse = ["mark", "air", "dual"]
absent = [{ from = "30 s" }, { from = "2 s", until = "5 s" }]
tunnel = "home"

[path.three]
forward = ["host", "port"]
reverse_delay = "1 ms"

[path.drive]
forward = ["drive"]
reverse_delay = "1 ms"

[path.sky]
like = "leo-handover"
reverse_delay = "30 ms"
tunnel = "home"

[[flow]]
name = "many"
count = 3
path = "one"
cc = { name = "bbr", drain_to_target = true }
workload = { file = "1.5 MB" }
start = "1 s"
start_interval = "2 s"
start_jitter = "500 ms"
stop = "50 s"
mss = "500 B"
receive_window = "unlimited"

[[flow]]
cc = "reno"
path = "one"
receiver = { conceal_loss = true, ack_ahead = 3, ack_division = 2, false_duplicates = true }

[[flow]]
name = "both"
paths = ["two", "one"]
scheduler = { name = "ecf", beta = 0.5 }
reinjection = false
backup = ["one"]
cc = "cubic"

[[flow]]
name = "reading"
paths = ["one", "two"]
cc = "cubic"
workload = { page = { objects = "page.csv", http = "1.1", connections = 2 } }

[[flow]]
name = "watching"
path = "one"
cc = "cubic"

[flow.workload.dash]
manifest = "film.mpd"
ladder = ["400 kbit/s", "1.3 Mbit/s"]
segment = "2 s"
media = "30 s"
buffer = "12 s"
rule = "bola"

[[flow]]
name = "asking"
path = "one"
cc = "cubic"
workload = { bursts = { size = "20 kB", pause = "300 ms", count = 12 } }

[[flow]]
name = "small"
path = "one"
cc = "cubic"
workload = { mix = { process = "clients", arrival_interval = "50 ms", count = 9, sizes = { median = "30 kB", sigma = 2, max = "1 GB" } } }

[[flow]]
name = "heavy"
path = "one"
cc = "cubic"
workload = { mix = { arrival_interval = "1 s", sizes = { min = "4 kB", shape = 1.2, max = "1 GB" } } }

[[flow]]
name = "logged"
path = "one"
cc = "cubic"
workload = { mix = { arrival_interval = "1 s", sizes = { log = "old/access.csv" } } }

[[flow]]
name = "replayed"
path = "one"
cc = "cubic"
workload = { mix = { arrivals = "log", from = "0 s", until = "10 min", speed = 1, sizes = { log = "old/access.csv", class = "api", rtt_at_least = "20 ms", rtt_below = "60 ms" } } }

[[flow]]
name = "answering"
path = "one"
cc = "cubic"
after = "heavy"
workload = { mix = { sizes = "30 kB" } }

[[flow]]
name = "stack"
path = "one"
cc = "cubic"

[flow.program]
server = ["qs", "--listen", "{here}:{port}", "--cc={cc}"]
client = ["qc", "https://{peer}:{port}/{bytes}"]
bytes = "20 MB"
ready = "line: ready"
timeout = "9 s"

[[claim]]
id = "A1"
says = "the queue stays short"
measure = "queueing_delay_p95"
of = "trace"
at_most = "20 ms"
at_least = "1 ms"
from = "10 s"
until = "20 s"
source = "a paper"
source_figure = "about 15 ms"
finding = "{value}: the trace stands still at 12 s"
outcome = "fails"
measured = "41 ms"
drift = "2 %"

[[claim]]
says = "they converge"
measure = "convergence_time"
band = "25 %"
hold = "2 s"
of = "many"
relative_to = "reno"
between = [0.5, 2]

[[claim]]
says = "one takes over"
measure = "takeover_time"
fraction = "90 %"
hold = "200 ms"
of = "many[2]"
equals = "600 ms"
within = "10 %"

[[claim]]
says = "the reserve stays one"
measure = "path_share"
path = "one"
of = "both"
at_most = "5 %"

[[claim]]
says = "mostly the best picture"
measure = "video_quality_share"
quality = 1
of = "watching"
at_least = "90 %"

[[claim]]
says = "middling transfers are quick"
measure = "flow_completion_p95"
size_at_least = "10 kB"
size_below = "3 MB"
of = "small"
at_most = "2 s"

[[claim]]
says = "little has to wait"
measure = "receive_buffer_peak"
of = "both"
at_most = "256 kB"

[[claim]]
says = "start-up ends in a drain"
measure = "phase_followed_by"
phase = "startup"
next = "drain"
of = "many"
at_least = "100 %"

[[claim]]
says = "mostly in probe_bw"
measure = "phase_share"
phase = "probe_bw"
of = "many"
at_least = "98 %"
"##;

pub fn with_files(
    text: &str,
    files: &[(&str, &[u8])],
    overrides: &[Override],
) -> Result<Scenario, Errors> {
    let loader = Embedded(files);
    parse(text, &Source { name: "case.toml", loader: &loader }, overrides)
}

/// Reads a scenario that must be valid.
pub fn read(text: &str) -> Scenario {
    with_files(text, FILES, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// Reads a resolved scenario again, with copies of its files.
pub fn again(scenario: &Scenario) -> Scenario {
    let file = |file: &InputFile| (file.name.clone(), file.bytes.clone());
    let files: Vec<_> = scenario.files.iter().map(file).collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, b)| (name.as_str(), &b[..])).collect();
    with_files(&scenario.resolved, &files, &[])
        .unwrap_or_else(|errors| panic!("{errors}\n{}", scenario.resolved))
}

/// Asserts that a resolved scenario, read with its files, is the same scenario, except for the
/// files' original names.
pub fn assert_resolves_to_itself(scenario: &Scenario) {
    let mut expected = scenario.clone();
    for file in &mut expected.files {
        file.written.clone_from(&file.name);
    }
    assert_eq!(again(scenario), expected);
}
