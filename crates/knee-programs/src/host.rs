//! A host with programs: its namespaces, and how a program gets into them.

use crate::first::{NAME, READY_WITHOUT_PROC};
use crate::load::numbers;
use crate::names::Names;
use knee_host::{HostError, Namespace};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

pub(crate) const ADVICE: &str = "run as root (CAP_SYS_ADMIN), or permit user namespaces \
    (sysctl user.max_user_namespaces=10000)";

/// A host that runs programs. Dropping it ends them all.
#[derive(Debug)]
pub struct ProgramHost {
    first: Child,
    /// The first process ends when this is closed.
    held: Option<ChildStdin>,
    inside: Inside,
    sees_own_processes: bool,
}

impl ProgramHost {
    /// Starts the first process of a host in this network. `run` is the folder of the run, by which
    /// [`Inside::of_run`] recognises the process.
    ///
    /// # Errors
    ///
    /// The host does not permit the namespaces, or the running program does not call
    /// [`first::run`](crate::first::run).
    pub fn start(network: &Namespace, names: &Names, run: &Path) -> Result<ProgramHost, HostError> {
        let refused = |what: &str, source: io::Error| HostError::refused(what, source, ADVICE);
        let mut first = network.within(|| {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)
                .map_err(|source| refused("create namespaces for programs", source.into()))?;
            // Nothing that is mounted here is seen elsewhere.
            let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
                .map_err(|source| refused("separate the mounts of a host", source.into()))?;
            names.mount()?;
            Command::new("/proc/self/exe")
                .arg0(NAME)
                .arg(run)
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                // A signal from the terminal is for the programs.
                .process_group(0)
                .spawn()
                .map_err(|source| refused("start the first process of a host", source))
        })?;
        let held = first.stdin.take();
        let mut answer = [0];
        let answered = first.stdout.take().map(|mut out| out.read_exact(&mut answer));
        if !matches!(answered, Some(Ok(()))) {
            let _ = first.kill().and_then(|()| first.wait());
            let source = io::Error::other("it ended at once");
            let advice = "use the program knee itself";
            return Err(HostError::refused("start the first process of a host", source, advice));
        }
        let inside = Inside::of(first.id())
            .map_err(|source| HostError::call("open the namespaces of a host", source))?;
        let sees_own_processes = answer[0] != READY_WITHOUT_PROC;
        Ok(ProgramHost { first, held, inside, sees_own_processes })
    }

    /// Starts a program in it.
    ///
    /// # Errors
    ///
    /// [`Inside::start`].
    pub fn start_program(&self, command: &mut Command) -> io::Result<Child> {
        self.inside.start(command)
    }

    /// Number of its first process, outside of its namespace.
    pub fn first_process(&self) -> u32 {
        self.first.id()
    }

    /// Returns how many processes run in it beside the first one; 0 if [its own
    /// view](Self::sees_own_processes) is missing.
    pub fn processes(&self) -> usize {
        if !self.sees_own_processes {
            return 0;
        }
        let processes = numbers(Path::new(&format!("/proc/{}/root/proc", self.first.id())));
        let runs = |process: &u32| {
            let stat = format!("/proc/{}/root/proc/{process}/stat", self.first.id());
            // The state is behind the name, which may contain anything (proc_pid_stat(5)).
            let text = fs::read_to_string(stat).unwrap_or_default();
            let state = text.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
            *process != 1 && !matches!(state, None | Some('Z' | 'X'))
        };
        processes.iter().filter(|process| runs(process)).count()
    }

    /// Whether `/proc` shows its own processes alone.
    pub fn sees_own_processes(&self) -> bool {
        self.sees_own_processes
    }
}

impl Drop for ProgramHost {
    fn drop(&mut self) {
        drop(self.held.take());
        // It ends once the kernel has removed all other processes of the namespace.
        let _ = self.first.wait();
    }
}

/// The namespaces of a host.
#[derive(Debug)]
pub struct Inside {
    network: File,
    processes: File,
    mounts: File,
}

impl Inside {
    fn of(process: u32) -> io::Result<Inside> {
        let open = |name: &str| File::open(format!("/proc/{process}/ns/{name}"));
        Ok(Inside { network: open("net")?, processes: open("pid")?, mounts: open("mnt")? })
    }

    /// Opens those of a first process of another Knee, if it is one of the run in this folder.
    ///
    /// # Errors
    ///
    /// There is no such process, or it may not be joined.
    pub fn of_run(process: u32, run: &Path) -> io::Result<Inside> {
        // Opened before the check: a number may be given to another process in between.
        let inside = Inside::of(process)?;
        let line = fs::read(format!("/proc/{process}/cmdline"))?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let ours = words.first() == Some(&NAME.as_bytes())
            && words.get(1) == Some(&run.as_os_str().as_encoded_bytes());
        if ours { Ok(inside) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    /// Enters the user namespace of a process, which another Knee without root made for itself. Must
    /// be called before any thread is started (user_namespaces(7)).
    ///
    /// # Errors
    ///
    /// The process belongs to another user.
    pub fn enter_user_namespace_of(process: u32) -> io::Result<()> {
        let theirs = format!("/proc/{process}/ns/user");
        if fs::read_link(&theirs)? == fs::read_link("/proc/self/ns/user")? {
            return Ok(());
        }
        Ok(setns(File::open(theirs)?, CloneFlags::CLONE_NEWUSER)?)
    }

    /// Starts a program in the namespaces, in the folder where the caller is.
    ///
    /// # Errors
    ///
    /// There is no such program, or the namespaces may not be entered.
    pub fn start(&self, command: &mut Command) -> io::Result<Child> {
        // Entering a mount namespace moves a thread to its root.
        let here: PathBuf = std::env::current_dir()?;
        command.current_dir(here);
        let start = || -> io::Result<Child> {
            // A thread that shares its folder with others may not enter a mount namespace.
            unshare(CloneFlags::CLONE_FS)?;
            setns(&self.network, CloneFlags::CLONE_NEWNET)?;
            setns(&self.processes, CloneFlags::CLONE_NEWPID)?;
            setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
            command.spawn()
        };
        let joined = thread::scope(|scope| scope.spawn(start).join());
        joined.unwrap_or_else(|_| Err(io::Error::other("a thread panicked")))
    }
}
