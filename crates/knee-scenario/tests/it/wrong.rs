//! Invalid scenarios and studies, each with the complete report: place, what is wrong, what to
//! write. Snapshots are reviewed before they are accepted.

use crate::common::FILM;
use knee_scenario::{Embedded, Errors, Override, Source, StudyChanges, load_study, parse};
use std::fmt::Write;

/// A valid scenario; each case replaces one part of it.
const RIGHT: &str = r#"duration = "60 s"
seed = 1

[link.bottleneck]
rate = "10 Mbit/s"
delay = "30 ms"
buffer = "2 BDP"

[link.uplink]
delay = "5 ms"

[path.main]
forward = ["bottleneck"]
reverse_delay = "30 ms"

[[flow]]
name = "web"
cc = "cubic"
path = "main"

[[claim]]
says = "it is busy"
measure = "goodput"
of = "web"
at_least = "9 Mbit/s"
"#;

const FILES: &[(&str, &[u8])] = &[
    ("good.down", b"1\n5\n9\n"),
    ("broken.down", b"1\nx\n9\n"),
    ("empty.down", b""),
    ("binary.down", &[0xff, 0xff]),
    ("packed.down", &[0x28, 0xb5, 0x2f, 0xfd, 4]),
    ("broken.loss", b"0102"),
    ("good.csv", b"t,r,zero\n0,1,0\n1,2,0\n2,3,0\n"),
    ("broken.csv", b"t,r\n0,x\n1,y\n2,3\n"),
    ("broken-page.csv", b"name,bytes,after\nindex,5000,\nlogo,5 kB,index\n"),
    ("circle.csv", b"name,bytes,after\nindex,500,\na,1,index b\nb,1,c\nc,1,a\n"),
    ("half.har", b"{\"log\":{\"entries\":[{"),
    ("net.json", b"{\"constants\":{},\"events\":[]}"),
    ("film.mpd", FILM),
    ("half.mpd", b"<MPD>\n<Period>"),
    (
        "slow.mpd",
        b"<MPD><Period duration=\"PT200S\"><AdaptationSet><SegmentTemplate duration=\"100\"/>\
      <Representation bandwidth=\"9000\"/></AdaptationSet></Period></MPD>",
    ),
    ("list.m3u8", b"#EXTM3U\n#EXTINF:4,\n1.ts\n"),
    ("broken-log.csv", b"time,bytes\n12:00,700\n12:01\n"),
];

/// Name of the case, what is replaced, and by what.
const CASES: &[(&str, &str, &str)] = &[
    ("no TOML", "seed = 1", "seed = "),
    ("a string that does not end", "\"10 Mbit/s\"", "\"10 Mbit/s"),
    ("a key twice", "seed = 1", "seed = 1\nseed = 2"),
    ("unknown key at the top", "seed = 1", "sead = 1"),
    ("unknown key, nothing near", "seed = 1", "weather = 1"),
    ("unknown key of a link", "delay = \"30 ms\"", "dealy = \"30 ms\""),
    ("unknown key of a flow", "cc = \"cubic\"", "cc = \"cubic\"\nack_evry = 1"),
    ("no duration", "duration = \"60 s\"\n", ""),
    ("bare duration", "\"60 s\"", "60"),
    ("bare rate", "\"10 Mbit/s\"", "10"),
    ("bare rate in a string", "\"10 Mbit/s\"", "\"10\""),
    ("bare fraction", "buffer = \"2 BDP\"", "loss = 0.01"),
    ("bare buffer", "\"2 BDP\"", "2"),
    ("bare bytes", "path = \"main\"", "path = \"main\"\nmss = 1448"),
    ("colloquial unit", "\"10 Mbit/s\"", "\"10 mbps\""),
    ("bytes per second", "\"10 Mbit/s\"", "\"10 MB/s\""),
    ("wrong unit", "delay = \"30 ms\"", "delay = \"30 Mbit/s\""),
    ("seconds spelt out", "\"60 s\"", "\"60 sec\""),
    ("unit that nobody knows", "\"2 BDP\"", "\"2 buckets\""),
    ("no number", "\"10 Mbit/s\"", "\"fast\""),
    ("negative time", "\"5 ms\"", "\"-5 ms\""),
    ("finer than a nanosecond", "\"5 ms\"", "\"0.5 ns\""),
    ("duration zero", "\"60 s\"", "\"0 s\""),
    ("duration beyond four hours", "\"60 s\"", "\"5000 min\""),
    ("duration beyond everything", "\"60 s\"", "\"99999999999999 s\""),
    ("seed in a string", "seed = 1", "seed = \"one\""),
    ("negative seed", "seed = 1", "seed = -1"),
    ("fractional seed", "seed = 1", "seed = 1.5"),
    ("sampling too fine", "seed = 1", "sample_interval = \"1 us\""),
    ("warm-up longer than the run", "seed = 1", "warmup = \"61 s\""),
    ("rate zero", "\"10 Mbit/s\"", "\"0 bit/s\""),
    ("rate absurd", "\"10 Mbit/s\"", "\"100000 Gbit/s\""),
    ("rate a switch", "\"10 Mbit/s\"", "true"),
    ("first step late", "\"10 Mbit/s\"", "[{ at = \"1 s\", rate = \"1 Mbit/s\" }]"),
    (
        "steps descend",
        "\"10 Mbit/s\"",
        "[{ at = \"0 s\", rate = \"1 Mbit/s\" }, { at = \"5 s\", rate = \"2 Mbit/s\" }, { at = \"3 s\", rate = \"3 Mbit/s\" }]",
    ),
    ("a step without rate", "\"10 Mbit/s\"", "[{ at = \"0 s\" }]"),
    ("no step", "\"10 Mbit/s\"", "[]"),
    ("all steps zero", "\"10 Mbit/s\"", "[{ at = \"0 s\", rate = \"0 bit/s\" }]"),
    (
        "BDP of a link that stands still at first",
        "\"10 Mbit/s\"",
        "[{ at = \"0 s\", rate = \"0 bit/s\" }, { at = \"1 s\", rate = \"1 Mbit/s\" }]",
    ),
    ("trace missing", "\"10 Mbit/s\"", "{ trace = \"lost.down\" }"),
    ("trace broken", "\"10 Mbit/s\"", "{ trace = \"broken.down\" }"),
    ("trace empty", "\"10 Mbit/s\"", "{ trace = \"empty.down\" }"),
    ("trace no text", "\"10 Mbit/s\"", "{ trace = \"binary.down\" }"),
    ("offset beyond a trace", "\"10 Mbit/s\"", "{ trace = \"good.down\", offset = \"9 ms\" }"),
    ("negative offset", "\"10 Mbit/s\"", "{ trace = \"good.down\", offset = \"-1 ms\" }"),
    ("bare offset", "\"10 Mbit/s\"", "{ trace = \"good.down\", offset = 5 }"),
    ("offset of another word", "\"10 Mbit/s\"", "{ trace = \"good.down\", offset = \"late\" }"),
    ("offset without a trace", "\"10 Mbit/s\"", "{ offset = \"5 ms\" }"),
    ("unknown key beside a trace", "\"10 Mbit/s\"", "{ trace = \"good.down\", loop = true }"),
    (
        "table missing",
        "\"10 Mbit/s\"",
        "{ table = \"lost.csv\", time = \"t s\", value = \"r Mbit/s\" }",
    ),
    (
        "table broken",
        "\"10 Mbit/s\"",
        "{ table = \"broken.csv\", time = \"t s\", value = \"r Mbit/s\" }",
    ),
    (
        "table empty",
        "\"10 Mbit/s\"",
        "{ table = \"empty.down\", time = \"t s\", value = \"r Mbit/s\" }",
    ),
    (
        "table compressed",
        "\"10 Mbit/s\"",
        "{ table = \"packed.down\", time = \"t s\", value = \"r Mbit/s\" }",
    ),
    ("table without columns", "\"10 Mbit/s\"", "{ table = \"good.csv\" }"),
    (
        "table with another column",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"speed Mbit/s\" }",
    ),
    (
        "table with another unit",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"r ms\" }",
    ),
    (
        "table of no rate",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"zero Mbit/s\" }",
    ),
    (
        "offset beyond a table",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"r Mbit/s\", offset = \"3 s\" }",
    ),
    (
        "scale of a table zero",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"r Mbit/s\", scale = 0 }",
    ),
    (
        "table that repeats too often",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t ns\", value = \"r Mbit/s\" }",
    ),
    (
        "rate that reorders",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"r Mbit/s\", reorder = true }",
    ),
    (
        "gap of another word",
        "\"10 Mbit/s\"",
        "{ table = \"good.csv\", time = \"t s\", value = \"r Mbit/s\", gap = \"none\" }",
    ),
    (
        "delay with gaps of zero",
        "delay = \"5 ms\"",
        "delay = { table = \"good.csv\", time = \"t s\", value = \"r ms\", gap = \"zero\" }",
    ),
    (
        "delay table absurd",
        "delay = \"5 ms\"",
        "delay = { table = \"good.csv\", time = \"t s\", value = \"r min\", scale = 600 }",
    ),
    (
        "delay table without a table",
        "delay = \"5 ms\"",
        "delay = { time = \"t s\", value = \"r ms\" }",
    ),
    (
        "loss table above one",
        "delay = \"5 ms\"",
        "loss = { table = \"good.csv\", time = \"t s\", value = \"r %\", scale = 99 }",
    ),
    ("like an unknown path", "forward = [\"bottleneck\"]", "like = \"le\""),
    (
        "like an unknown path, and nothing else",
        "forward = [\"bottleneck\"]\nreverse_delay = \"30 ms\"",
        "like = \"le\"",
    ),
    ("like a number", "forward = [\"bottleneck\"]", "like = 5"),
    (
        "like a path, with a wrong key",
        "reverse_delay = \"30 ms\"",
        "like = \"leo\"\nrate = \"1 Mbit/s\"",
    ),
    ("delay absurd", "delay = \"5 ms\"", "delay = \"60 min\""),
    (
        "jitter always late",
        "delay = \"5 ms\"",
        "jitter = { amount = [{ at = \"1 s\", amount = \"1 ms\" }] }",
    ),
    ("jitter of no steps", "delay = \"5 ms\"", "jitter = { amount = [] }"),
    (
        "loss steps out of order",
        "delay = \"5 ms\"",
        "loss = [{ at = \"0 s\", loss = \"1 %\" }, { at = \"2 s\", loss = \"2 %\" }, { at = \"1 s\", loss = \"3 %\" }]",
    ),
    ("loss steps within a step", "delay = \"5 ms\"", "loss = [{ at = \"0 s\", loss = [] }]"),
    (
        "hold that ends before it begins",
        "delay = \"5 ms\"",
        "hold = [{ from = \"2 s\", until = \"1 s\" }]",
    ),
    (
        "holds that overlap",
        "delay = \"5 ms\"",
        "hold = [{ from = \"1 s\", until = \"3 s\" }, { from = \"2 s\", until = \"4 s\" }]",
    ),
    ("device without a rate", "delay = \"5 ms\"", "device = \"3 packets\""),
    ("device behind drop-tail", "buffer = \"2 BDP\"", "device = \"3 packets\""),
    (
        "device behind an AQM that decides on entry",
        "buffer = \"2 BDP\"",
        "aqm = \"pie\"\ndevice = \"3 packets\"",
    ),
    ("device of nothing", "buffer = \"2 BDP\"", "aqm = \"codel\"\ndevice = \"0 packets\""),
    ("device in BDP", "buffer = \"2 BDP\"", "aqm = \"codel\"\ndevice = \"1 BDP\""),
    ("jitter incomplete", "delay = \"5 ms\"", "jitter = { reorder = true }"),
    (
        "jitter of more than all packets",
        "delay = \"5 ms\"",
        "jitter = { amount = \"5 ms\", share = \"101 %\" }",
    ),
    ("jitter share bare", "delay = \"5 ms\"", "jitter = { amount = \"5 ms\", share = 0.5 }"),
    (
        "jitter of no less than more than its most",
        "delay = \"5 ms\"",
        "jitter = { amount = \"5 ms\", at_least = \"6 ms\" }",
    ),
    ("jitter without table", "delay = \"5 ms\"", "jitter = \"5 ms\""),
    (
        "jitter of an amount with a mean",
        "delay = \"5 ms\"",
        "jitter = { amount = \"5 ms\", mean = \"2 ms\" }",
    ),
    (
        "normal jitter without deviation",
        "delay = \"5 ms\"",
        "jitter = { distribution = \"normal\", mean = \"5 ms\" }",
    ),
    (
        "normal jitter with an amount",
        "delay = \"5 ms\"",
        "jitter = { distribution = \"normal\", deviation = \"5 ms\", amount = \"5 ms\" }",
    ),
    (
        "normal jitter of a share",
        "delay = \"5 ms\"",
        "jitter = { distribution = \"normal\", deviation = \"5 ms\", share = \"5 %\" }",
    ),
    (
        "normal jitter that is none",
        "delay = \"5 ms\"",
        "jitter = { distribution = \"normal\", deviation = \"0 ms\" }",
    ),
    (
        "jitter of an unknown distribution",
        "delay = \"5 ms\"",
        "jitter = { amount = \"5 ms\", distribution = \"pareto\" }",
    ),
    ("buffer without a rate", "delay = \"5 ms\"", "buffer = \"20 packets\"\naqm = \"codel\""),
    ("buffer smaller than a packet", "\"2 BDP\"", "\"0.01 BDP\""),
    ("buffer of nothing", "\"2 BDP\"", "\"0 packets\""),
    ("buffer absurd", "\"2 BDP\"", "\"5000 GB\""),
    (
        "BDP of a link that no path uses",
        "delay = \"5 ms\"",
        "rate = \"1 Mbit/s\"\nbuffer = \"1 BDP\"",
    ),
    ("default buffer of a link that no path uses", "delay = \"5 ms\"", "rate = \"1 Mbit/s\""),
    (
        "BDP of a path without delay",
        "delay = \"30 ms\"\nbuffer = \"2 BDP\"\n\n[link.uplink]\ndelay = \"5 ms\"\n\n[path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"30 ms\"",
        "buffer = \"2 BDP\"\n\n[path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"0 s\"",
    ),
    ("unknown AQM", "buffer = \"2 BDP\"", "aqm = \"cobalt\""),
    ("AQM misspelt", "buffer = \"2 BDP\"", "aqm = \"fq_codel\""),
    (
        "parameter of another AQM",
        "buffer = \"2 BDP\"",
        "aqm = { name = \"pie\", interval = \"100 ms\" }",
    ),
    ("AQM without a name", "buffer = \"2 BDP\"", "aqm = { target = \"5 ms\" }"),
    ("threshold without delay", "buffer = \"2 BDP\"", "aqm = \"threshold\""),
    ("red in an unlimited buffer", "buffer = \"2 BDP\"", "buffer = \"unlimited\"\naqm = \"red\""),
    (
        "red upside down",
        "buffer = \"2 BDP\"",
        "aqm = { name = \"red\", min_threshold = \"30 kB\", max_threshold = \"10 kB\" }",
    ),
    (
        "AQM with a key of none",
        "buffer = \"2 BDP\"",
        "aqm = { name = \"codel\", targte = \"5 ms\" }",
    ),
    (
        "AQM with a time in bytes",
        "buffer = \"2 BDP\"",
        "aqm = { name = \"codel\", target = \"5 kB\" }",
    ),
    (
        "AQM with a time out of range",
        "buffer = \"2 BDP\"",
        "aqm = { name = \"fq-codel\", interval = \"2 min\", flows = 0 }",
    ),
    (
        "AQM that is unknown with a wrong value",
        "buffer = \"2 BDP\"",
        "aqm = { name = \"cobalt\", target = 5 }",
    ),
    ("marking by drop-tail", "buffer = \"2 BDP\"", "ecn = true"),
    ("loss above one", "buffer = \"2 BDP\"", "loss = \"101 %\""),
    ("loss of every zeroth packet", "buffer = \"2 BDP\"", "loss = { every = 0 }"),
    ("two patterns of loss", "buffer = \"2 BDP\"", "loss = { every = 9, file = \"x\" }"),
    (
        "super-packets and bursts",
        "buffer = \"2 BDP\"",
        "loss = { super_packets = \"1 %\", every = 9 }",
    ),
    ("half a burst model", "buffer = \"2 BDP\"", "loss = { good_to_bad = \"1 %\" }"),
    ("loss record broken", "buffer = \"2 BDP\"", "loss = { file = \"broken.loss\" }"),
    (
        "policer smaller than a packet",
        "buffer = \"2 BDP\"",
        "policer = { rate = \"1 Mbit/s\", burst = \"1 kB\" }",
    ),
    ("policer incomplete", "buffer = \"2 BDP\"", "policer = { rate = \"1 Mbit/s\" }"),
    (
        "breaker faster than the RTT",
        "rate = \"10 Mbit/s\"\ndelay = \"30 ms\"",
        "rate = \"10 Mbit/s\"\ndelay = \"90 ms\"\ncircuit_breaker = { interval = \"120 ms\" }",
    ),
    ("breaker of a microsecond", "buffer = \"2 BDP\"", "circuit_breaker = { interval = \"1 us\" }"),
    ("breaker by a bare loss", "buffer = \"2 BDP\"", "circuit_breaker = { loss = 0.1 }"),
    ("breaker beyond all packets", "buffer = \"2 BDP\"", "circuit_breaker = { loss = \"110 %\" }"),
    ("breaker of no interval", "buffer = \"2 BDP\"", "circuit_breaker = { intervals = 0 }"),
    (
        "breaker that is reset too soon",
        "buffer = \"2 BDP\"",
        "circuit_breaker = { reset_after = \"10 s\" }",
    ),
    ("breaker a switch", "buffer = \"2 BDP\"", "circuit_breaker = true"),
    ("unknown key of a breaker", "buffer = \"2 BDP\"", "circuit_breaker = { trips = 3 }"),
    ("bleached in words", "buffer = \"2 BDP\"", "ecn_bleached = \"yes\""),
    (
        "tunnel without a name",
        "reverse_delay = \"30 ms\"",
        "reverse_delay = \"30 ms\"\ntunnel = \"\"",
    ),
    ("tunnel a switch", "reverse_delay = \"30 ms\"", "reverse_delay = \"30 ms\"\ntunnel = true"),
    ("outage upside down", "buffer = \"2 BDP\"", "down = [{ from = \"5 s\", until = \"4 s\" }]"),
    (
        "outages overlap",
        "buffer = \"2 BDP\"",
        "down = [{ from = \"5 s\", until = \"9 s\" }, { from = \"8 s\", until = \"10 s\" }]",
    ),
    ("link without a name", "[link.uplink]", "[link]"),
    ("link with a point in its name", "[link.uplink]", "[link.\"up.link\"]"),
    ("path over an unknown link", "[\"bottleneck\"]", "[\"botleneck\"]"),
    ("path over no link", "[\"bottleneck\"]", "[]"),
    ("path over a link twice", "[\"bottleneck\"]", "[\"bottleneck\", \"uplink\", \"bottleneck\"]"),
    ("path a string", "[\"bottleneck\"]", "\"bottleneck\""),
    ("path without a way back", "reverse_delay = \"30 ms\"\n", ""),
    (
        "path with two ways back",
        "reverse_delay = \"30 ms\"",
        "reverse_delay = \"30 ms\"\nreverse = [\"uplink\"]",
    ),
    ("flow over an unknown path", "path = \"main\"", "path = \"mian\""),
    ("flow without a controller", "cc = \"cubic\"\n", ""),
    ("unknown controller", "\"cubic\"", "\"cubik\""),
    ("unknown parameter", "\"cubic\"", "{ name = \"cubic\", betta = 0.7 }"),
    ("parameter of the wrong kind", "\"cubic\"", "{ name = \"cubic\", beta = true }"),
    ("controller a number", "\"cubic\"", "3"),
    ("count zero", "path = \"main\"", "count = 0"),
    ("too many flows", "path = \"main\"", "count = 100001"),
    ("two flows with one name", "[[claim]]", "[[flow]]\nname = \"web\"\ncc = \"bbr\"\n\n[[claim]]"),
    (
        "two flows named after one controller",
        "[[claim]]",
        "[[flow]]\ncc = \"bbr\"\n\n[[flow]]\ncc = \"bbr\"\n\n[[claim]]",
    ),
    ("flow called like a link", "[link.uplink]", "[link.web]"),
    ("unknown workload", "path = \"main\"", "workload = \"video\""),
    ("workload without its settings", "path = \"main\"", "workload = \"bursts\""),
    ("a list of one path", "path = \"main\"", "path = [\"main\"]"),
    ("rate with a comma", "\"10 Mbit/s\"", "\"1,5 Mbit/s\""),
    ("workload without a unit", "path = \"main\"", "workload = { file = 1000000 }"),
    ("empty file", "path = \"main\"", "workload = { file = \"0 B\" }"),
    ("start after the end", "path = \"main\"", "start = \"60 s\""),
    ("last start after the end", "path = \"main\"", "count = 10\nstart_interval = \"7 s\""),
    (
        "a program and a workload",
        "path = \"main\"",
        "path = \"main\"\nworkload = \"bulk\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\n",
    ),
    (
        "a program that waits for another flow",
        "path = \"main\"",
        "path = \"main\"\nafter = \"web\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\n",
    ),
    (
        "a program with parameters for a controller of its own",
        "cc = \"cubic\"\npath = \"main\"",
        "cc = { name = \"own\", gain = 2 }\npath = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\n",
    ),
    (
        "a program without a client",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]",
    ),
    (
        "a command in one string",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = \"s -p 1\"\nclient = [\"c\"]",
    ),
    (
        "a command without a program",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = []\nclient = [\"\"]\n",
    ),
    (
        "an unknown placeholder",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\", \"{peers}:{port}\"]\n",
    ),
    (
        "a placeholder for a size that is not given",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\", \"{bytes}\"]\n",
    ),
    (
        "a server that is ready some time",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\nready = \"soon\"",
    ),
    (
        "a server that is ready with no line",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\nready = \"line:\"",
    ),
    (
        "a server that is ready late",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\nready = \"after 1 min\"",
    ),
    (
        "a server that is ready after nothing",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\nready = \"after a while\"",
    ),
    (
        "an empty transfer by a program",
        "path = \"main\"",
        "path = \"main\"\n[flow.program]\nserver = [\"s\"]\nclient = [\"c\"]\nbytes = \"0 B\"\ntimeout = \"0 s\"",
    ),
    ("stop before start", "path = \"main\"", "start = \"5 s\"\nstop = \"4 s\""),
    ("initial window zero", "path = \"main\"", "initial_window = 0"),
    ("segment too large", "path = \"main\"", "mss = \"1 MB\""),
    ("receive window below a segment", "path = \"main\"", "receive_window = \"1 kB\""),
    (
        "no window, and losses concealed",
        "path = \"main\"",
        "path = \"main\"\nreceiver = { conceal_loss = true }\nreceive_window = \"unlimited\"",
    ),
    ("unknown pacing", "path = \"main\"", "pacing = \"yes\""),
    ("pacing a switch", "path = \"main\"", "pacing = true"),
    ("unknown sampler", "path = \"main\"", "sampler = \"ns3\""),
    ("transport key at the top", "seed = 1", "ack_every = 1"),
    ("unknown measure", "\"goodput\"", "\"goodputt\""),
    ("measure without its parameter", "\"goodput\"", "\"convergence_time\""),
    ("measure with another's parameter", "\"goodput\"", "\"goodput\"\nband = \"25 %\""),
    ("measure without its path", "\"goodput\"", "\"path_share\""),
    ("share of an unknown path", "\"goodput\"", "\"path_share\"\npath = \"mian\""),
    ("quality beyond every ladder", "\"goodput\"", "\"video_quality_share\"\nquality = 100"),
    ("sizes of a measure of no transfers", "\"goodput\"", "\"goodput\"\nsize_below = \"3 MB\""),
    (
        "sizes upside down",
        "\"goodput\"",
        "\"flow_throughput_p50\"\nsize_at_least = \"3 MB\"\nsize_below = \"1 MB\"",
    ),
    (
        "bytes without a unit",
        "measure = \"goodput\"\nof = \"web\"\nat_least = \"9 Mbit/s\"",
        "measure = \"receive_buffer_peak\"\nat_most = 64",
    ),
    ("claim about nobody", "of = \"web\"", "of = \"wep\""),
    ("claim about a flow that is not there", "of = \"web\"", "of = \"web[1]\""),
    ("measure of a link taken of a flow", "\"goodput\"", "\"drops\""),
    ("measure of a flow taken of a link", "of = \"web\"", "of = \"bottleneck\""),
    ("bound without a unit", "\"9 Mbit/s\"", "9"),
    ("bound in another unit", "\"9 Mbit/s\"", "\"9 ms\""),
    (
        "bound with a needless unit",
        "measure = \"goodput\"\nof = \"web\"\nat_least = \"9 Mbit/s\"",
        "measure = \"jain\"\nat_least = \"9 ms\"",
    ),
    ("bounds upside down", "at_least = \"9 Mbit/s\"", "between = [\"9 Mbit/s\", \"8 Mbit/s\"]"),
    ("bounds twice", "at_least = \"9 Mbit/s\"", "at_least = \"9 Mbit/s\"\nequals = \"9 Mbit/s\""),
    ("equals without within", "at_least = \"9 Mbit/s\"", "equals = \"9 Mbit/s\""),
    ("no bound", "at_least = \"9 Mbit/s\"\n", ""),
    ("claim after the end", "of = \"web\"", "from = \"70 s\""),
    ("claim until before from", "of = \"web\"", "from = \"9 s\"\nuntil = \"8 s\""),
    ("failing without a finding", "of = \"web\"", "outcome = \"fails\""),
    ("unknown outcome", "of = \"web\"", "outcome = \"maybe\""),
    ("a record without a drift", "of = \"web\"", "measured = \"9.2 Mbit/s\""),
    ("a drift without a record", "of = \"web\"", "drift = \"2 %\""),
    ("a record in another unit", "of = \"web\"", "measured = \"9 ms\"\ndrift = \"2 %\""),
    ("a finding on no claim", "of = \"web\"", "finding = \"{value}, not {A7}\""),
    (
        "no flow at all",
        "[[flow]]\nname = \"web\"\ncc = \"cubic\"\npath = \"main\"\n\n[[claim]]\nsays = \"it is busy\"\nmeasure = \"goodput\"\nof = \"web\"\nat_least = \"9 Mbit/s\"\n",
        "",
    ),
    ("flow in single brackets", "[[flow]]", "[flow]"),
    (
        "a round trip that takes no time",
        "rate = \"10 Mbit/s\"\ndelay = \"30 ms\"\nbuffer = \"2 BDP\"\n\n[link.uplink]\n\
         delay = \"5 ms\"\n\n[path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"30 ms\"",
        "loss = \"1 %\"\n\n[link.uplink]\n\
         delay = [{ at = \"0 s\", delay = \"5 ms\" }, { at = \"1 s\", delay = \"0 s\" }]\n\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse = [\"uplink\"]",
    ),
    (
        "several at once",
        "rate = \"10 Mbit/s\"\ndelay = \"30 ms\"",
        "rate = 10\ndelay = 30\nloss = \"200 %\"\ncolour = \"red\"",
    ),
];

/// A valid flow over two of three paths, with a page, a video and a mix.
const SEVERAL: &str = r#"duration = "60 s"

[link.air]
rate = "10 Mbit/s"
delay = "30 ms"

[path.wifi]
forward = ["air"]
reverse_delay = "30 ms"

[path.lte]
forward = ["air"]
reverse_delay = "30 ms"
absent = [{ from = "2 s", until = "5 s" }]

[path.dsl]
forward = ["air"]
reverse_delay = "30 ms"

[[flow]]
name = "both"
cc = "lia"
paths = ["wifi", "lte"]
scheduler = "sctc"
backup = ["lte"]

[[flow]]
name = "page"
cc = "cubic"
path = "dsl"
workload = { page = { http = "1.1", connections = 6 } }

[[flow]]
name = "video"
cc = "cubic"
path = "dsl"
workload = { dash = { ladder = ["400 kbit/s", "1 Mbit/s"], segment = "4 s" } }

[[flow]]
name = "mix"
cc = "cubic"
path = "dsl"
workload = { mix = { arrival_interval = "50 ms", sizes = "30 kB" } }

[[flow]]
name = "chat"
cc = "cubic"
path = "dsl"
workload = { bursts = { size = "20 kB", pause = "2 s", count = 4 } }
"#;

const SEVERAL_CASES: &[(&str, &str, &str)] = &[
    (
        "path and paths",
        "paths = [\"wifi\", \"lte\"]",
        "path = \"dsl\"\npaths = [\"wifi\", \"lte\"]",
    ),
    (
        "paths of a single flow",
        "paths = [\"wifi\", \"lte\"]\n",
        "path = \"dsl\"\nreinjection = true\n",
    ),
    ("several paths in path", "paths =", "path ="),
    (
        "a single flow on a path that is absent",
        "path = \"dsl\"\nworkload = { page",
        "path = \"lte\"\nworkload = { page",
    ),
    ("no path in paths", "paths = [\"wifi\", \"lte\"]", "paths = []"),
    ("unknown path", "\"wifi\", \"lte\"", "\"wifi\", \"let\""),
    ("a path twice", "\"wifi\", \"lte\"", "\"wifi\", \"lte\", \"wifi\""),
    (
        "33 paths",
        "\"wifi\", \"lte\"",
        "\"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\", \"k\", \"l\", \"m\", \
         \"n\", \"o\", \"p\", \"q\", \"r\", \"s\", \"t\", \"u\", \"v\", \"w\", \"x\", \"y\", \"z\", \
         \"aa\", \"ab\", \"ac\", \"ad\", \"ae\", \"af\", \"ag\"",
    ),
    ("unknown scheduler", "\"sctc\"", "\"minrrt\""),
    ("unknown parameter of a scheduler", "\"sctc\"", "{ name = \"ecf\", betta = 0.5 }"),
    ("scheduler without a name", "\"sctc\"", "{ beta = 0.5 }"),
    ("scheduler a number", "\"sctc\"", "1"),
    (
        "a scheduler of two paths over three",
        "\"wifi\", \"lte\"]\nscheduler = \"sctc\"",
        "\"wifi\", \"lte\", \"dsl\"]\nscheduler = \"dems\"",
    ),
    ("backup beside paths", "backup = [\"lte\"]", "backup = [\"dsl\"]"),
    ("every path a backup", "backup = [\"lte\"]", "backup = [\"lte\", \"wifi\"]"),
    (
        "a tuned window over one path",
        "path = \"dsl\"\n",
        "path = \"dsl\"\nreceive_window = \"auto\"\n",
    ),
    (
        "a tuned window for all",
        "[link.air]",
        "[transport]\nreceive_window = \"auto\"\n\n[link.air]",
    ),
    ("absence upside down", "until = \"5 s\"", "until = \"1 s\""),
    ("absences overlap", "until = \"5 s\" }", "until = \"5 s\" }, { from = \"4 s\" }"),
    (
        "absence after it is gone for good",
        "until = \"5 s\" }",
        "until = \"5 s\" }, { from = \"9 s\" }, { from = \"7 s\" }",
    ),
    ("unknown kind of workload", "{ page = {", "{ pages = {"),
    (
        "two workloads",
        "{ page = { http = \"1.1\", connections = 6 } }",
        "{ page = {}, file = \"1 MB\" }",
    ),
    ("no workload", "{ page = { http = \"1.1\", connections = 6 } }", "{}"),
    ("page missing", "http = \"1.1\",", "objects = \"lost.csv\","),
    ("page with a broken line", "http = \"1.1\",", "objects = \"broken-page.csv\","),
    ("page whose objects wait for each other", "http = \"1.1\",", "objects = \"circle.csv\","),
    ("half a HAR", "http = \"1.1\",", "objects = \"half.har\","),
    ("JSON that is no page", "http = \"1.1\",", "objects = \"net.json\","),
    ("a manifest as a page", "http = \"1.1\",", "objects = \"film.mpd\","),
    ("manifest missing", "segment = \"4 s\"", "manifest = \"lost.mpd\""),
    ("half a manifest", "segment = \"4 s\"", "manifest = \"half.mpd\""),
    ("a page as a manifest", "segment = \"4 s\"", "manifest = \"circle.csv\""),
    ("no manifest", "segment = \"4 s\"", "manifest = []"),
    ("manifest a number", "segment = \"4 s\"", "manifest = 4"),
    ("two manifests", "segment = \"4 s\"", "manifest = [\"film.mpd\", \"film.mpd\"]"),
    ("a playlist without bitrates", "segment = \"4 s\"", "manifest = \"list.m3u8\""),
    ("segments of minutes", "segment = \"4 s\"", "manifest = \"slow.mpd\""),
    ("media beyond the manifest", "segment = \"4 s\"", "manifest = \"film.mpd\", media = \"11 s\""),
    ("unknown HTTP", "\"1.1\"", "\"2\""),
    ("connections of a multiplexed page", "\"1.1\"", "\"multiplexed\""),
    ("no connection", "connections = 6", "connections = 0"),
    ("empty ladder", "[\"400 kbit/s\", \"1 Mbit/s\"]", "[]"),
    ("ladder descends", "[\"400 kbit/s\", \"1 Mbit/s\"]", "[\"1 Mbit/s\", \"400 kbit/s\"]"),
    ("ladder from zero", "\"400 kbit/s\"", "\"0 bit/s\""),
    ("unknown ladder", "[\"400 kbit/s\", \"1 Mbit/s\"]", "\"mesured\""),
    ("unknown rule", "segment = \"4 s\"", "rule = \"bolla\""),
    ("buffer below a segment", "segment = \"4 s\"", "segment = \"4 s\", buffer = \"3 s\""),
    ("media below a segment", "segment = \"4 s\"", "segment = \"4 s\", media = \"3 s\""),
    ("a mix of nothing", "sizes = \"30 kB\"", "sizes = \"0 B\""),
    (
        "mixes of one process that differ",
        "workload = { mix = { arrival_interval = \"50 ms\", sizes = \"30 kB\" } }",
        "workload = { mix = { arrival_interval = \"50 ms\", sizes = \"30 kB\", process = \"p\" } }\n\n[[flow]]\nname = \"control\"\npath = \"dsl\"\ncc = \"reno\"\nworkload = { mix = { arrival_interval = \"60 ms\", sizes = \"30 kB\", process = \"p\" } }",
    ),
    ("bursts of nothing", "size = \"20 kB\"", "size = \"0 B\""),
    ("bursts without a pause", ", pause = \"2 s\"", ""),
    ("bursts that never end", "pause = \"2 s\", count = 4", "pause = \"0 s\""),
    ("no bursts", "count = 4", "count = 0"),
    ("a mix without sizes", ", sizes = \"30 kB\"", ""),
    ("arrivals all at once", "\"50 ms\"", "\"0 s\""),
    ("hardly an arrival", "\"50 ms\"", "\"61 s\""),
    ("no arrivals", "sizes = \"30 kB\"", "sizes = \"30 kB\", count = 0"),
    ("arrivals beyond bearing", "\"50 ms\"", "\"5 us\""),
    ("rate instead of interval", "arrival_interval = \"50 ms\"", "arrival_rate = 20"),
    ("median zero", "\"30 kB\"", "{ median = \"0 B\", sigma = 2.0, max = \"1 GB\" }"),
    ("sigma negative", "\"30 kB\"", "{ median = \"30 kB\", sigma = -2.0, max = \"1 GB\" }"),
    (
        "median above the largest",
        "\"30 kB\"",
        "{ median = \"30 kB\", sigma = 2.0, max = \"1 kB\" }",
    ),
    ("shape zero", "\"30 kB\"", "{ min = \"4 kB\", shape = 0, max = \"1 GB\" }"),
    ("smallest above the largest", "\"30 kB\"", "{ min = \"4 kB\", shape = 1.2, max = \"1 kB\" }"),
    ("half a distribution", "\"30 kB\"", "{ median = \"30 kB\", shape = 1.2 }"),
    ("a mix without arrivals", "arrival_interval = \"50 ms\", ", ""),
    ("arrivals of another kind", "arrival_interval = \"50 ms\"", "arrivals = \"uniform\""),
    (
        "arrivals of two kinds",
        "arrival_interval = \"50 ms\"",
        "arrival_interval = \"50 ms\", arrivals = \"log\"",
    ),
    ("arrivals of no log", "arrival_interval = \"50 ms\"", "arrivals = \"log\""),
    (
        "class without a log",
        "\"30 kB\"",
        "{ median = \"30 kB\", sigma = 2.0, max = \"1 GB\", class = \"api\" }",
    ),
    ("a compressed trace", "\"10 Mbit/s\"", "{ trace = \"packed.down\" }"),
    ("access log with a broken line", "\"30 kB\"", "{ log = \"broken-log.csv\" }"),
];

const OVERRIDES: &[&str] = &[
    "link.bottleneck.rate=10",
    "link.bottleneck.raet=20 Mbit/s",
    "link.botleneck.rate=20 Mbit/s",
    "flow.wep.cc=bbr",
    "flow.web.cc=bbrr",
    "flow.web.cc.beta=5",
    "flow.web.cc.betta=0.5",
    "link.bottleneck.delay.base=5 ms",
    "durration=5 s",
    "seed=x",
    "path.main.forward=[\"up\"]",
    "transport.ack_every=0",
];

fn scenario(text: &str, overrides: &[Override]) -> Result<knee_scenario::Scenario, Errors> {
    let loader = Embedded(FILES);
    parse(text, &Source { name: "case.toml", loader: &loader }, overrides)
}

/// Every problem's place must be inside its text, so that it can be shown.
fn shown(errors: &Errors) -> String {
    for problem in &errors.problems {
        let text = &errors.source_of(problem).text;
        assert!(text.get(problem.span.clone()).is_some(), "{problem:?}");
        assert!(!problem.message.is_empty() && !problem.help.is_empty(), "{problem:?}");
    }
    errors.to_string()
}

fn told(right: &str, cases: &[(&str, &str, &str)]) -> String {
    scenario(right, &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut told = String::new();
    for (title, part, replacement) in cases {
        assert!(right.contains(part), "{title}");
        let text = right.replacen(part, replacement, 1);
        let Err(errors) = scenario(&text, &[]) else { panic!("{title} is accepted") };
        writeln!(told, "# {title}\n{}\n", shown(&errors)).expect("a text takes any line");
    }
    told
}

#[test]
fn wrong_scenarios() {
    insta::assert_snapshot!(told(RIGHT, CASES));
}

#[test]
fn wrong_paths_and_workloads() {
    insta::assert_snapshot!(told(SEVERAL, SEVERAL_CASES));
}

/// A file for something else is named, once, with what takes it.
#[test]
fn files_that_are_no_scenarios_are_named() {
    for (text, what, takes) in [
        ("{\n  \"log\": {\"entries\": []}\n}\n", "a HAR", "objects = \"case.toml\""),
        ("{\"start\":{},\"intervals\":[]}", "a result of iperf3", "knee fit case.toml"),
        ("<MPD>\n</MPD>", "XML, such as the manifest of a video", "manifest = \"case.toml\""),
        ("#EXTM3U\nlow.m3u8\n", "a playlist of HLS", "manifest = \"case.toml\""),
    ] {
        let Err(errors) = scenario(text, &[]) else { panic!("{text} is accepted") };
        let [problem] = &errors.problems[..] else { panic!("{errors}") };
        assert_eq!(problem.message, format!("this is {what}, not a scenario"));
        assert!(problem.help.contains(takes), "{}", problem.help);
    }
}

#[test]
fn wrong_overrides() {
    let mut told = String::new();
    for text in OVERRIDES {
        let Err(errors) = scenario(RIGHT, &[text.parse().unwrap()]) else {
            panic!("{text} is accepted")
        };
        writeln!(told, "# --set {text}\n{}\n", shown(&errors)).unwrap();
    }
    insta::assert_snapshot!(told);
}

const STUDY: &str = r#"name = "Two controllers"
source = "a paper"

[[run]]
name = "plain"
file = "right.toml"

[[run]]
name = "other"
file = "right.toml"
set = { "flow.web.cc" = "bbr", link.bottleneck.rate = "20 Mbit/s" }

[[model]]
name = "pair"
model = "alternate-probing"
gain = 1.25
start = [0.9, 0.1]
rounds = 40

[[claim]]
says = "they differ"
measure = "goodput"
of = "other/web"
relative_to = "plain/web"
at_least = 1.9

[[claim]]
says = "the smaller share"
measure = "model.share_low"
of = "pair"
equals = 0.4444
within = 0.0005
"#;

const STUDY_CASES: &[(&str, &str, &str)] = &[
    ("no source", "source = \"a paper\"\n", ""),
    (
        "scenario missing",
        "name = \"plain\"\nfile = \"right.toml\"",
        "name = \"plain\"\nfile = \"wrong.toml\"",
    ),
    (
        "wrong scenario",
        "name = \"plain\"\nfile = \"right.toml\"",
        "name = \"plain\"\nfile = \"broken.toml\"",
    ),
    ("set of an unknown key", "rate = \"20", "raet = \"20"),
    ("set of an unknown name", "flow.web.cc", "flow.wep.cc"),
    ("set of a wrong value", "\"bbr\"", "\"bbrr\""),
    ("two runs with one name", "name = \"other\"", "name = \"plain\""),
    ("unknown ground", "name = \"plain\"", "name = \"plain\"\non = [\"simulator\"]"),
    ("unknown model", "\"alternate-probing\"", "\"probing\""),
    ("one flow in a model", "[0.9, 0.1]", "[0.9]"),
    ("a model without a start", "start = [0.9, 0.1]\n", ""),
    ("a model with two kinds of starts", "[0.9, 0.1]", "[0.9, 0.1]\nstarts = 100"),
    ("a model of too many flows", "start = [0.9, 0.1]", "starts = 100\nflows = 51"),
    ("gain below one", "1.25", "0.75"),
    ("claim without its run", "\"other/web\"", "\"web\""),
    ("claim about an unknown run", "\"other/web\"", "\"another/web\""),
    ("claim about an unknown flow", "\"plain/web\"", "\"plain/wep\""),
    ("claim about nothing", "of = \"other/web\"\n", ""),
    ("ratio with a unit", "1.9", "\"1.9 Mbit/s\""),
    ("measure of a model taken of a run", "of = \"pair\"", "of = \"plain/web\""),
    ("unknown number of a model", "share_low", "share_least"),
];

#[test]
fn wrong_studies() {
    let read = |study: &str| {
        let broken = RIGHT.replace("10 Mbit/s", "10");
        let files: &[(&str, &[u8])] = &[
            ("study.toml", study.as_bytes()),
            ("right.toml", RIGHT.as_bytes()),
            ("broken.toml", broken.as_bytes()),
        ];
        load_study(&Embedded(files), "study.toml", &[], &StudyChanges::default())
    };
    read(STUDY).unwrap_or_else(|errors| panic!("{errors}"));
    let mut told = String::new();
    for (title, part, replacement) in STUDY_CASES {
        assert!(STUDY.contains(part), "{title}");
        let text = STUDY.replacen(part, replacement, 1);
        let Err(errors) = read(&text) else { panic!("{title} is accepted") };
        writeln!(told, "# {title}\n{}\n", shown(&errors)).unwrap();
    }
    insta::assert_snapshot!(told);
}
