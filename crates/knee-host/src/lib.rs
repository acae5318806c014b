//! Access to a Linux host: network namespaces and their devices, routes, diverting the traffic of
//! programs to one process, `TCP_INFO`, connections that end, counters of drops, MPTCP, controllers
//! in BPF and programs that assign them, privileges.
//!
//! What this crate never does: know scenarios, run a tool, print, leave anything behind that has an
//! effect, except on request (`bpf::load`, `bpf::Steering::pin`). It alone has `unsafe` code, in
//! one file.

#[cfg(feature = "bpf")]
pub mod bpf;
mod checksum;
mod clock;
mod counters;
mod diversion;
mod error;
mod hops;
mod interface;
mod links;
mod marks;
pub mod mptcp;
mod namespace;
mod netlink;
mod privileges;
mod routes;
mod sock_diag;
mod system;
mod tcp_info;

/// Knee's own controllers in BPF, by their names in the kernel (at most 15 bytes).
pub const BPF_CONTROLLERS: [&str; 3] = ["bbr_low_delay", "knee_bbr3", "knee_copa"];

pub use clock::{is_locked, since_boot};
pub use counters::{CounterReader, Counters, InterfaceCounters, QdiscCounters};
pub use diversion::{
    Datagram, Diversion, DiversionSettings, EchoRequest, Impersonator, diverted_udp, echo_header,
    echo_socket, ping_socket, read_reply, receive_datagram, receive_echo, reply_to_echo,
    report_tos, send_datagram, set_transparent,
};
pub use error::HostError;
pub use hops::{Exceeded, HopProbe, PROBES_MAX};
pub use interface::{Interface, Routing};
pub use links::{Link, LinkChanges};
pub use marks::{Arm, Choice, Marked, marked, return_marked, unpin_marks};
pub use namespace::{Namespace, set_sysctl, sysctl};
pub use privileges::{
    MOUNT_CGROUPS, cgroup_root, enter_user_namespace, give_up_capabilities, raise_open_files_limit,
};
pub use routes::{Route, RouteChanges, Routes, Rule, TABLE_MAIN};
pub use sock_diag::{ClosedSockets, Heard, TcpSocket, each_connection};
pub use system::{attach_tun, set_option, set_realtime, set_tun_offload};
pub use tcp_info::{BbrInfo, ControllerState, TcpInfo};
