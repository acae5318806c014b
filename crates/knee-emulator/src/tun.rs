//! TUN devices that pass whole super-packets (segmentation offload).

use crate::merge::Sink;
use crate::wire::VnetHeader;
use knee_host::{HostError, attach_tun, set_tun_offload};
use nix::errno::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum size of a packet with its vnet header.
pub const PACKET_BYTES_MAX: usize = 65_536 + VnetHeader::BYTES;

const TUN_F_CSUM: u32 = 1;
const TUN_F_TSO4: u32 = 2;
const TUN_F_TSO6: u32 = 4;
const TUN_F_TSO_ECN: u32 = 8;
/// Since Linux 6.2.
const TUN_F_USO4: u32 = 0x20;
const TUN_F_USO6: u32 = 0x40;

/// One end of a path, from the emulator's side: reads return what the host sends, and the host
/// receives what is written.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Makes the device in the namespace of the calling thread. Dropping the value removes it.
    ///
    /// # Errors
    ///
    /// If the host has no TUN or does not permit it, or a device of the name (at most 15 bytes)
    /// exists already.
    pub fn create(name: &str) -> Result<Tun, HostError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(|source| {
                let advice = "run as root, load the module tun (modprobe tun), let the container see \
                    /dev/net/tun, or permit it to users: chmod 666 /dev/net/tun";
                HostError::refused("open /dev/net/tun", source, advice)
            })?;
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR;
        attach_tun(&file, name, flags).map_err(|source| {
            HostError::refused("make a TUN device", source, "run as root (CAP_NET_ADMIN)")
        })?;
        let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        set_tun_offload(&file, tcp | TUN_F_USO4 | TUN_F_USO6)
            .or_else(|_| set_tun_offload(&file, tcp))
            .map_err(|source| {
                let advice = "use a kernel whose TUN has segmentation offload";
                HostError::refused("switch on offload of a TUN device", source, advice)
            })?;
        Ok(Tun { file })
    }

    /// Reads a packet with its vnet header, or returns `None` if there is none now.
    #[inline]
    pub(crate) fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(into) {
            Ok(len) => Ok(Some(len)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Sink for Tun {
    /// The call runs the host's whole receive path.
    #[inline]
    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<bool> {
        loop {
            match (&self.file).write_vectored(parts) {
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if refused(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Temporarily out of memory, or a packet that the host rejects: lost, as on a real wire, and
/// counted.
fn refused(error: &io::Error) -> bool {
    let codes = [Errno::EAGAIN, Errno::ENOMEM, Errno::ENOBUFS, Errno::EINVAL];
    error.raw_os_error().is_some_and(|code| codes.contains(&Errno::from_raw(code)))
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
