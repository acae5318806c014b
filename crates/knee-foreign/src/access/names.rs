//! Names under which servers and delivery networks log what counts, compared case-insensitively.

/// Length of a unit of time, nanoseconds.
const NS: f64 = 1.0;
const US: f64 = 1e3;
const MS: f64 = 1e6;
const S: f64 = 1e9;

/// What the value of a key or column is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Field {
    /// A size; the number of its name in [`SIZES`].
    Size(usize),
    /// When the line was written, or the request began. Of several, the lowest rank counts.
    Time {
        rank: u8,
    },
    /// When the transfer ended.
    End,
    Date,
    Class,
    Client,
    Port,
    Protocol,
    /// The request with its protocol at the end, or an object with such keys.
    Request,
    Controller,
    /// In bytes per second, or in units of this many bits per second.
    DeliveryRate {
        unit_bps: f64,
    },
    Span(Span, Unit),
    /// Tells whose log it is.
    Sign(Program),
}

/// A span of time within a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// From the request to the last byte.
    Whole,
    /// From the first byte to the last.
    Sending,
    /// From the request to the first byte.
    FirstByte,
    /// The server's wait for the server behind it.
    Upstream,
    /// The client's round-trip time.
    Rtt,
}

/// The unit of a span.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// This many nanoseconds.
    Nanos(f64),
    /// Written with the number.
    Written,
    /// Written with the number, or that of the program.
    OfProgram,
}

/// A program whose logs use a name in a sense of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    Caddy,
    Envoy,
    H2o,
    Traefik,
}

impl Program {
    /// Returns the unit of `duration` in its logs, nanoseconds.
    pub fn unit_ns(self) -> f64 {
        match self {
            // https://caddyserver.com/docs/caddyfile/directives/log
            Program::Caddy => S,
            // %DURATION%: https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage
            Program::Envoy => MS,
            // https://h2o.examp1e.net/configure/access_log_directives.html
            Program::H2o => S,
            // https://doc.traefik.io/traefik/observability/access-logs/
            Program::Traefik => NS,
        }
    }
}

/// Names of sizes: plain words, and those of the W3C's extended log format, nginx, Cloudflare,
/// Fastly, Traefik, Akamai and Google.
pub(super) const SIZES: [&str; 14] = [
    "bytes",
    "size",
    "sc-bytes",
    "bytes_sent",
    "body_bytes_sent",
    "response_bytes",
    "response_size",
    "object_size",
    "EdgeResponseBytes",
    "response_body_size",
    "DownstreamContentSize",
    "totalBytes",
    "EdgeResponseBodyBytes",
    "responseSize",
];

/// Sizes that one program logs beside each other, with and without headers: the larger one counts.
const TOGETHER: [[&str; 2]; 4] = [
    ["bytes_sent", "body_bytes_sent"],
    ["totalBytes", "bytes"],
    ["EdgeResponseBytes", "EdgeResponseBodyBytes"],
    ["bytes_sent", "response_body_size"],
];

/// Returns whether two sizes of a line are the same transfer's.
pub(super) fn are_together(one: usize, other: usize) -> bool {
    let names = [SIZES[one], SIZES[other]];
    TOGETHER.iter().any(|two| names == *two || [names[1], names[0]] == *two)
}

const TIMES: [(&str, u8); 19] = [
    // Those of the beginning of the request, or finer than a second, come first.
    ("EdgeStartTimestamp", 0),
    ("reqTimeSec", 0),
    ("StartUTC", 0),
    ("msec", 0),
    ("start_time", 1),
    ("time_start", 1),
    ("ts", 1),
    ("time", 1),
    ("timestamp", 1),
    ("@timestamp", 1),
    ("datetime", 1),
    ("time_iso8601", 1),
    ("StartLocal", 2),
    ("time_local", 2),
    ("date_time", 2),
    ("timestamp_s", 2),
    ("timestamp_ms", 2),
    ("unix_time", 2),
    ("local_time", 2),
];
const ENDS: [&str; 3] = ["EdgeEndTimestamp", "time_end", "end_time"];
const CLASSES: [&str; 9] = [
    "class",
    "traffic_class",
    "service",
    "content_type",
    "type",
    "sc-content-type",
    "EdgeResponseContentType",
    "rspContentType",
    "mime_type",
];
const CLIENTS: [&str; 12] = [
    "client",
    "client_ip",
    "remote_addr",
    "c-ip",
    "ClientIP",
    "cliIP",
    "remote_ip",
    "ClientHost",
    "ClientAddr",
    "client_addr",
    "downstream_remote_address",
    "remoteIp",
];
const PORTS: [&str; 5] = ["port", "client_port", "remote_port", "c-port", "ClientSrcPort"];
const PROTOCOLS: [&str; 9] = [
    "cs-protocol-version",
    "cs-version",
    "ClientRequestProtocol",
    "protocol",
    "server_protocol",
    "proto",
    "request_protocol",
    "RequestProtocol",
    "http_version",
];
const REQUESTS: [&str; 2] = ["request", "httpRequest"];
const CONTROLLERS: [&str; 6] =
    ["cc.name", "cc_name", "cc", "congestion_control", "congestion_controller", "controller"];
/// TCP_INFO counts in bytes per second.
const DELIVERY_RATES: [(&str, f64); 5] = [
    ("delivery-rate", 8.0),
    ("delivery_rate", 8.0),
    ("tcpinfo_delivery_rate", 8.0),
    ("tcpi_delivery_rate", 8.0),
    ("delivery_rate_bps", 1.0),
];
const SIGNS: [(&str, Program); 10] = [
    ("bytes_read", Program::Caddy),
    ("resp_headers", Program::Caddy),
    ("response_flags", Program::Envoy),
    ("upstream_cluster", Program::Envoy),
    ("bytes_received", Program::Envoy),
    ("connection-id", Program::H2o),
    ("connect-time", Program::H2o),
    ("DownstreamStatus", Program::Traefik),
    ("RouterName", Program::Traefik),
    ("OriginContentSize", Program::Traefik),
];

const SPANS: [(&str, Span, Unit); 63] = {
    use Span::{FirstByte, Rtt, Sending, Upstream, Whole};
    use Unit::{Nanos, OfProgram, Written};
    [
        // Of nginx, as its variables are called and as its lines often abbreviate them.
        ("request_time", Whole, Nanos(S)),
        ("rt", Whole, Nanos(S)),
        ("upstream_header_time", FirstByte, Nanos(S)),
        ("uht", FirstByte, Nanos(S)),
        ("upstream_response_time", Upstream, Nanos(S)),
        ("urt", Upstream, Nanos(S)),
        ("tcpinfo_rtt", Rtt, Nanos(US)),
        // Of CloudFront and other logs in the W3C's format.
        ("time-taken", Whole, Nanos(S)),
        ("time-to-first-byte", FirstByte, Nanos(S)),
        // Of Cloudflare.
        ("EdgeTimeToFirstByteMs", FirstByte, Nanos(MS)),
        ("OriginResponseDurationMs", Upstream, Nanos(MS)),
        ("ClientTCPRTTMs", Rtt, Nanos(MS)),
        // Of Akamai.
        ("transferTimeMSec", Sending, Nanos(MS)),
        ("turnAroundTimeMSec", FirstByte, Nanos(MS)),
        // Of Fastly: %{time.elapsed.usec}V.
        ("time_elapsed", Whole, Nanos(US)),
        ("time_elapsed_usec", Whole, Nanos(US)),
        ("elapsed_usec", Whole, Nanos(US)),
        // Of Varnish and Apache: %D.
        ("D", Whole, Nanos(US)),
        ("Varnish:time_firstbyte", FirstByte, Nanos(S)),
        ("time_firstbyte", FirstByte, Nanos(S)),
        // Of h2o.
        ("process-time", FirstByte, Nanos(S)),
        ("response-time", Sending, Nanos(S)),
        // Of Envoy and Traefik.
        ("upstream_service_time", Upstream, Nanos(MS)),
        ("OriginDuration", Upstream, Nanos(NS)),
        ("duration", Whole, OfProgram),
        ("latency", Whole, Written),
        // With their unit.
        ("seconds", Whole, Nanos(S)),
        ("duration_s", Whole, Nanos(S)),
        ("elapsed_s", Whole, Nanos(S)),
        ("request_time_s", Whole, Nanos(S)),
        ("response_time_s", Whole, Nanos(S)),
        ("time_taken_s", Whole, Nanos(S)),
        ("total_time_s", Whole, Nanos(S)),
        ("ms", Whole, Nanos(MS)),
        ("duration_ms", Whole, Nanos(MS)),
        ("elapsed_ms", Whole, Nanos(MS)),
        ("time_elapsed_ms", Whole, Nanos(MS)),
        ("request_time_ms", Whole, Nanos(MS)),
        ("response_time_ms", Whole, Nanos(MS)),
        ("time_taken_ms", Whole, Nanos(MS)),
        ("latency_ms", Whole, Nanos(MS)),
        ("total_time_ms", Whole, Nanos(MS)),
        ("duration_us", Whole, Nanos(US)),
        ("duration_usec", Whole, Nanos(US)),
        ("elapsed_us", Whole, Nanos(US)),
        ("request_time_us", Whole, Nanos(US)),
        ("latency_us", Whole, Nanos(US)),
        ("duration_ns", Whole, Nanos(NS)),
        ("elapsed_ns", Whole, Nanos(NS)),
        ("ttfb", FirstByte, Nanos(S)),
        ("ttfb_s", FirstByte, Nanos(S)),
        ("ttfb_ms", FirstByte, Nanos(MS)),
        ("ttfb_us", FirstByte, Nanos(US)),
        ("time_to_first_byte_ms", FirstByte, Nanos(MS)),
        ("rtt", Rtt, Written),
        ("client_rtt", Rtt, Written),
        ("rtt_s", Rtt, Nanos(S)),
        ("client_rtt_s", Rtt, Nanos(S)),
        ("rtt_ms", Rtt, Nanos(MS)),
        ("client_rtt_ms", Rtt, Nanos(MS)),
        ("rtt_us", Rtt, Nanos(US)),
        ("client_rtt_us", Rtt, Nanos(US)),
        ("rtt_ns", Rtt, Nanos(NS)),
    ]
};

impl Field {
    /// Returns what a key or column of this name has, or `None` if it does not count.
    pub fn named(name: &str) -> Option<Field> {
        let is = |known: &&str| name.eq_ignore_ascii_case(known);
        let among = |names: &[&str]| names.iter().any(is);
        if let Some(at) = SIZES.iter().position(is) {
            return Some(Field::Size(at));
        }
        if let Some((_, rank)) = TIMES.iter().find(|(known, _)| is(known)) {
            return Some(Field::Time { rank: *rank });
        }
        if let Some((_, span, unit)) = SPANS.iter().find(|(known, ..)| is(known)) {
            return Some(Field::Span(*span, *unit));
        }
        if let Some((_, unit_bps)) = DELIVERY_RATES.iter().find(|(known, _)| is(known)) {
            return Some(Field::DeliveryRate { unit_bps: *unit_bps });
        }
        if let Some((_, program)) = SIGNS.iter().find(|(known, _)| is(known)) {
            return Some(Field::Sign(*program));
        }
        let lists: [(&[&str], Field); 8] = [
            (&ENDS, Field::End),
            (&["date"], Field::Date),
            (&CLASSES, Field::Class),
            (&CLIENTS, Field::Client),
            (&PORTS, Field::Port),
            (&PROTOCOLS, Field::Protocol),
            (&REQUESTS, Field::Request),
            (&CONTROLLERS, Field::Controller),
        ];
        lists.iter().find(|(names, _)| among(names)).map(|(_, field)| *field)
    }
}

/// Returns whether a column of this name has sizes.
pub(super) fn is_size(name: &str) -> bool {
    matches!(Field::named(name), Some(Field::Size(_)))
}
