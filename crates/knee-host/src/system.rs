//! System calls that no crate offers safely; the only unsafe code of the workspace. All functions
//! take and return only safe types.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_uint, c_ulong};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Maximum size of `struct tcp_info` that is read.
pub(crate) const TCP_INFO_BYTES: usize = 256;

/// Turns an open `/dev/net/tun` into a network device of the namespace in which it was opened;
/// `flags` are those of `TUNSETIFF` (`IFF_TUN`, …). The device lives as long as the file is open.
///
/// # Errors
///
/// `InvalidInput` for a name of more than 15 bytes, or if the kernel refuses.
pub fn attach_tun(tun: &impl AsFd, name: &str, flags: c_int) -> io::Result<()> {
    // SAFETY: an ifreq of zeroes is valid: bytes, integers, null pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let result = unsafe {
        libc::ioctl(tun.as_fd().as_raw_fd(), libc::TUNSETIFF as c_ulong, &raw mut request)
    };
    checked(result)
}

/// Sets which super-packets a TUN device may deliver (`TUN_F_…` of include/uapi/linux/if_tun.h).
///
/// # Errors
///
/// If the kernel refuses, such as for a bit that it does not know.
pub fn set_tun_offload(tun: &impl AsFd, offload: c_uint) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes an integer and touches no memory of ours.
    let result = unsafe {
        libc::ioctl(tun.as_fd().as_raw_fd(), libc::TUNSETOFFLOAD as c_ulong, c_ulong::from(offload))
    };
    checked(result)
}

/// Puts the calling thread under SCHED_FIFO, at a priority from 1 to 99.
///
/// # Errors
///
/// If the host does not permit it.
pub fn set_realtime(priority: c_int) -> io::Result<()> {
    // SAFETY: a sched_param of zeroes is valid: it holds integers.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the call reads one sched_param, which outlives it; 0 names the
    // calling thread.
    checked(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) })
}

/// Maximum number of datagrams that [`receive_many`] reads.
pub(crate) const DATAGRAMS_MAX: usize = 64;

/// Reads pending datagrams with one system call, without waiting: one into each slice of
/// `buffers`, at most [`DATAGRAMS_MAX`]. Stores their lengths in `lens` and returns their number; a
/// datagram that is longer than its slice is truncated.
///
/// # Errors
///
/// `WouldBlock` if none is pending, or if the kernel refuses.
pub(crate) fn receive_many<'b>(
    socket: &impl AsFd,
    buffers: impl Iterator<Item = &'b mut [u8]>,
    lens: &mut [usize; DATAGRAMS_MAX],
) -> io::Result<usize> {
    let none = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
    let mut vectors = [none; DATAGRAMS_MAX];
    // SAFETY: an mmsghdr of zeroes is valid: integers and null pointers.
    let mut headers: [libc::mmsghdr; DATAGRAMS_MAX] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    for ((header, vector), buffer) in headers.iter_mut().zip(&mut vectors).zip(buffers) {
        *vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        header.msg_hdr.msg_iov = &raw mut *vector;
        header.msg_hdr.msg_iovlen = 1;
        count += 1;
    }
    // SAFETY: the kernel reads the first `count` headers, writes their lengths and flags, and
    // writes within the slices that their vectors name; all of these outlive the call, the slices
    // are distinct, and any byte is a valid u8.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_fd().as_raw_fd(),
            headers.as_mut_ptr(),
            count,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    checked(received)?;
    let received = received as usize;
    for (len, header) in lens.iter_mut().zip(&headers[..received]) {
        *len = header.msg_len as usize;
    }
    Ok(received)
}

/// Sets an integer option of a socket, such as those of `SOL_TCP` that no
/// crate names.
///
/// # Errors
///
/// If the kernel refuses.
pub fn set_option(socket: &impl AsFd, level: c_int, name: c_int, value: u32) -> io::Result<()> {
    // SAFETY: the kernel reads four bytes from `value`, which outlives the
    // call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    checked(result)
}

/// Opens a socket of a protocol that no crate knows.
pub(crate) fn socket_of(family: c_int, kind: c_int, protocol: c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call touches no memory of ours.
    let socket = unsafe { libc::socket(family, kind, protocol) };
    checked(socket)?;
    // SAFETY: the descriptor is open, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Commands of `SIOCETHTOOL`, and the set of statistics (include/uapi/linux/ethtool.h).
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
/// Words of a name of a statistic (`ETH_GSTRING_LEN`).
const ETHTOOL_NAME_WORDS: usize = 4;
/// Room for statistics that a driver adds between two calls: the kernel writes as many as there
/// are. No driver has that many.
const ETHTOOL_SPARE: usize = 1 << 14;

/// Reads the statistics that the driver of an interface has (`ethtool -S`), by name. `socket` is any
/// of the namespace.
///
/// # Errors
///
/// `EOPNOTSUPP` if the driver has none, or if the kernel refuses.
pub(crate) fn ethtool_statistics(
    socket: &impl AsFd,
    interface: &str,
) -> io::Result<Vec<(String, u64)>> {
    let pair = |low: u32, high: u32| {
        let [low, high] = [low.to_ne_bytes(), high.to_ne_bytes()];
        u64::from_ne_bytes([low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]])
    };
    let halves = |word: u64| {
        let bytes = word.to_ne_bytes();
        let half = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        [half(0), half(4)]
    };
    // struct ethtool_sset_info: the mask of sets, then the number of each.
    let mut about = [pair(ETHTOOL_GSSET_INFO, 0), 1 << ETH_SS_STATS, 0];
    ethtool(socket, interface, &mut about)?;
    let count = if about[1] == 0 { 0 } else { halves(about[2])[0] };
    if count == 0 {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    let room = count as usize + ETHTOOL_SPARE;
    // struct ethtool_gstrings: command, set and number, then the names from the twelfth byte.
    let mut names = vec![0; 2 + room * ETHTOOL_NAME_WORDS];
    names[0] = pair(ETHTOOL_GSTRINGS, ETH_SS_STATS);
    names[1] = pair(count, 0);
    ethtool(socket, interface, &mut names)?;
    // struct ethtool_stats: command and number, then the values.
    let mut values = vec![0; 1 + room];
    values[0] = pair(ETHTOOL_GSTATS, count);
    ethtool(socket, interface, &mut values)?;
    let count = halves(values[0])[1].min(halves(names[1])[0]).min(count) as usize;
    let used = &names[..2 + count * ETHTOOL_NAME_WORDS];
    let bytes: Vec<u8> = used.iter().flat_map(|word| word.to_ne_bytes()).skip(12).collect();
    let name = |bytes: &[u8]| {
        let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(name).trim().to_owned()
    };
    let names = bytes.chunks_exact(8 * ETHTOOL_NAME_WORDS).map(name);
    Ok(names.zip(values[1..].iter().copied()).take(count).collect())
}

/// Calls `SIOCETHTOOL`, for which `data` must have room for what its command returns.
fn ethtool(socket: &impl AsFd, interface: &str, data: &mut [u64]) -> io::Result<()> {
    // SAFETY: an ifreq of zeroes is valid: bytes, integers, null pointers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: the kernel reads and writes one ifreq and the structure in `data`, which both outlive
    // the call. How much it writes depends on the command, which the callers above make room for.
    let result = unsafe {
        libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request)
    };
    checked(result)
}

/// Reads a TCP option such as `TCP_INFO`, and returns its length.
pub(crate) fn tcp_option(socket: &impl AsFd, name: c_int, bytes: &mut [u8]) -> io::Result<usize> {
    option(socket, libc::IPPROTO_TCP, name, bytes)
}

/// Reads an option of any socket, and returns its length.
pub(crate) fn socket_option(
    socket: &impl AsFd,
    name: c_int,
    bytes: &mut [u8],
) -> io::Result<usize> {
    option(socket, libc::SOL_SOCKET, name, bytes)
}

/// Reads an option of an MPTCP socket, and returns its length.
pub(crate) fn mptcp_option(socket: &impl AsFd, name: c_int, bytes: &mut [u8]) -> io::Result<usize> {
    /// As in include/linux/socket.h.
    const SOL_MPTCP: c_int = 284;
    option(socket, SOL_MPTCP, name, bytes)
}

/// Reads an option; the kernel may read the initial contents of `bytes` as parameters.
fn option(socket: &impl AsFd, level: c_int, name: c_int, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = bytes.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes to `bytes` and the number
    // written to `len`; both outlive the call, and any byte is a valid u8.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            bytes.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    checked(result).map(|()| len as usize)
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
