//! Network namespaces that need no cleanup.
//!
//! A namespace made here has no name and no mount: it lives as long as a thread is in it or a
//! descriptor refers to it, and so do its devices. When the process ends, however it ends, the
//! kernel removes everything.

use crate::HostError;
use nix::fcntl::{OFlag, openat};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::stat::Mode;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;

const ADVICE: &str = "run as root (CAP_SYS_ADMIN), or permit user namespaces \
    (sysctl user.max_user_namespaces=10000), on a kernel with CONFIG_NET_NS";

/// A network namespace; it ends when nothing refers to it any more.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// Makes a new, empty namespace; the calling thread does not enter it.
    ///
    /// # Errors
    ///
    /// If the host does not permit it.
    pub fn create() -> Result<Namespace, HostError> {
        let made = on_its_own(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })?;
        let file = made
            .map_err(|source| HostError::refused("create a network namespace", source, ADVICE))?;
        Ok(Namespace { file })
    }

    /// Opens an existing namespace by a file that names it, such as `/proc/PID/ns/net`.
    ///
    /// # Errors
    ///
    /// If there is no such file, or it cannot be read.
    pub fn open(path: &Path) -> Result<Namespace, HostError> {
        let open = File::open(path);
        let file =
            open.map_err(|source| HostError::refused("open a network namespace", source, ADVICE))?;
        Ok(Namespace { file })
    }

    /// Moves the calling thread into the namespace permanently.
    ///
    /// # Errors
    ///
    /// If the host does not permit it.
    pub fn enter(&self) -> Result<(), HostError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|source| HostError::refused("enter a network namespace", source, ADVICE))
    }

    /// Runs `work` inside, on a thread of its own. Sockets and devices made there belong to the
    /// namespace.
    ///
    /// # Errors
    ///
    /// The errors of [`Namespace::enter`], errors of the work, and [`HostError::Panicked`].
    pub fn within<T: Send, E: From<HostError> + Send>(
        &self,
        work: impl FnOnce() -> Result<T, E> + Send,
    ) -> Result<T, E> {
        on_its_own(|| {
            self.enter()?;
            work()
        })?
    }
}

fn on_its_own<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, HostError> {
    thread::scope(|scope| scope.spawn(work).join()).map_err(|_| HostError::Panicked)
}

/// Writes `/proc/sys/…` of the calling thread's namespace:
/// `net.ipv4.tcp_ecn` and `1`.
///
/// # Errors
///
/// If there is no such setting, or it cannot be written.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), HostError> {
    let path = format!("sys/{}", name.replace('.', "/"));
    let written = match fs::write(format!("/proc/{path}"), value) {
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            own_proc().and_then(|proc| write_below(&proc, &path, value)).map_err(|_| error)
        }
        written => written,
    };
    written.map_err(|source| {
        HostError::refused(
            format!("set {name} in a namespace"),
            source,
            "run as root; in a container, add --cap-add SYS_ADMIN, or make /proc/sys writable",
        )
    })
}

/// Returns a `/proc` that no name leads to. Container engines mount `/proc/sys` read-only (OCI runtime
/// specification, `readonlyPaths`), where who has CAP_SYS_ADMIN may still have another.
fn own_proc() -> io::Result<OwnedFd> {
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

fn write_below(folder: &OwnedFd, path: &str, value: &str) -> io::Result<()> {
    let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let opened = openat(folder, path, flags, Mode::empty())?;
    File::from(opened).write_all(value.as_bytes())
}

/// Reads `/proc/sys/…` of the calling thread's namespace, without the newline.
///
/// # Errors
///
/// If there is no such setting, or it cannot be read.
pub fn sysctl(name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")))
        .map(|text| text.trim().to_owned())
}
