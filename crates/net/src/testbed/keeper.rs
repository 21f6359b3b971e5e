//! The thread from which a test bed's processes are started, and the process that takes them with it.
//!
//! Its children are born into a process namespace whose first process, the *warden*, dies with this thread, however it ends; the kernel
//! then kills all others of that namespace, daemons included. Each node has a mount namespace of its own with a private `/etc/hosts`.

use super::TestbedError;
use crate::namespace::Namespace;
use nix::errno::Errno;
use nix::libc;
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag};
use nix::unistd::{pipe2, Pid};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the end of all processes is waited for. Those that our own process has started must be waited for by their owner.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// What a process of a node sees.
#[derive(Debug)]
struct View {
    network: Arc<Namespace>,
    mounts: File,
    machine: File,
}

type Job = Box<dyn FnOnce() + Send>;

struct Request {
    node: usize,
    folder: Option<PathBuf>,
    job: Job,
}

/// The thread; all processes end when it is dropped.
#[derive(Debug)]
pub(super) struct Keeper {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// A keeper for nodes with these names and network namespaces.
    pub fn start(nodes: Vec<(String, Arc<Namespace>)>, hosts_file: String) -> Result<Self, TestbedError> {
        let (requests, inbox) = channel::<Request>();
        let (tell, told) = channel();
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .spawn(move || {
                let prepared = prepare(nodes, &hosts_file);
                let (views, warden) = match prepared {
                    Ok(prepared) => prepared,
                    Err(error) => {
                        let _ = tell.send(Err(error));
                        return;
                    }
                };
                let _ = tell.send(Ok(()));
                while let Ok(Request { node, folder, job }) = inbox.recv() {
                    // A job that does not run says so: its end of the answer is dropped.
                    if views[node].enter(folder.as_deref()).is_ok() {
                        job();
                    }
                }
                dismiss(warden);
            })
            .map_err(TestbedError::system("starting a thread"))?;
        told.recv().map_err(|_| TestbedError::system("starting a thread")(io::Error::other("it ended")))??;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Runs `job` on the keeper's thread as seen from `node`; processes that it starts stay there. It must not start threads.
    pub fn run<T: Send + 'static>(&self, node: usize, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (tell, told) = channel();
        let folder = std::env::current_dir().ok();
        let job: Job = Box::new(move || {
            let _ = tell.send(job());
        });
        let gone = || io::Error::other("the test bed cannot start processes any more");
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(Request { node, folder, job }).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl View {
    /// Gives the calling thread this view.
    fn enter(&self, folder: Option<&Path>) -> io::Result<()> {
        self.network.enter()?;
        setns(&self.machine, CloneFlags::CLONE_NEWUTS)?;
        setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
        // Entering a mount namespace leads to its root.
        match folder {
            Some(folder) => std::env::set_current_dir(folder).or_else(|_| std::env::set_current_dir("/")),
            None => Ok(()),
        }
    }
}

/// Makes the namespaces and the warden.
fn prepare(nodes: Vec<(String, Arc<Namespace>)>, hosts_file: &str) -> Result<(Vec<View>, Pid), TestbedError> {
    // A mount namespace of our own, which we may enter again: that of the process may belong to another user namespace.
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| TestbedError::system("making a mount namespace")(error.into()))?;
    let outside = File::open("/proc/thread-self/ns/mnt").map_err(TestbedError::system("opening our mount namespace"))?;
    let mut views = Vec::new();
    for (name, network) in nodes {
        let view = || -> io::Result<View> {
            setns(&outside, CloneFlags::CLONE_NEWNS)?;
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWUTS)?;
            // What is mounted outside later is seen here, but not the other way round.
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)?;
            nix::unistd::sethostname(&name)?;
            put_hosts_file(hosts_file)?;
            let open = |kind| File::open(format!("/proc/thread-self/ns/{kind}"));
            Ok(View { network, mounts: open("mnt")?, machine: open("uts")? })
        };
        views.push(view().map_err(TestbedError::system(format!("making the mount namespace of {name}")))?);
    }
    let warden = appoint(&views).map_err(TestbedError::system("making a process namespace"))?;
    Ok((views, warden))
}

/// Lays a file over `/etc/hosts` in the mount namespace of the calling thread. It lives in memory, where nothing is left of it.
fn put_hosts_file(text: &str) -> io::Result<()> {
    let target = Path::new("/etc/hosts");
    let folder = ["/mnt", "/tmp", "/run"].iter().map(Path::new).find(|folder| folder.is_dir());
    let (Some(folder), true) = (folder, target.exists()) else { return Ok(()) };
    mount(Some("whyloss"), folder, Some("tmpfs"), MsFlags::empty(), Some("size=1m,mode=755"))?;
    let file = folder.join("hosts");
    let written =
        std::fs::write(&file, text).and_then(|()| Ok(mount(Some(&file), target, None::<&str>, MsFlags::MS_BIND, None::<&str>)?));
    umount2(folder, MntFlags::MNT_DETACH)?;
    written
}

/// Forks the first process of a new process namespace. From now on the calling thread's children belong to that namespace.
fn appoint(views: &[View]) -> io::Result<Pid> {
    unshare(CloneFlags::CLONE_NEWPID)?;
    let (answer, report) = pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let child = fork()?;
    if child.as_raw() == 0 {
        watch(views, &report);
    }
    drop(report);
    let mut said = [0; 4];
    let outcome = io::Read::read_exact(&mut File::from(answer), &mut said);
    let refused = match outcome {
        Ok(()) => i32::from_ne_bytes(said),
        Err(_) => libc::ECHILD,
    };
    if refused != 0 {
        dismiss(child);
        return Err(io::Error::from_raw_os_error(refused));
    }
    Ok(child)
}

/// The system call alone: what libraries of this process have asked to be told of forks (`pthread_atfork`) is not for two threads at
/// a time; `OpenBLAS` waits for ever there.
fn fork() -> io::Result<Pid> {
    // SAFETY: the child only makes system calls and never returns; it touches no lock and no allocator.
    #[allow(unsafe_code)]
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) };
    Errno::result(child).map(|child| Pid::from_raw(child as libc::pid_t)).map_err(io::Error::from)
}

/// What the warden does: mounts `/proc` for each node, reports the error or 0, and waits to be killed.
#[allow(unsafe_code)]
fn watch(views: &[View], report: &impl AsFd) -> ! {
    let begun = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL);
    // SAFETY: plain system calls on constants and open descriptors.
    unsafe {
        for number in 1..32 {
            // Children that nobody waits for disappear by themselves; a key on a terminal is not for the warden.
            libc::signal(number, libc::SIG_IGN);
        }
        libc::setsid();
    }
    let mounted = begun.and_then(|()| {
        views.iter().try_for_each(|view| {
            setns(&view.mounts, CloneFlags::CLONE_NEWNS)?;
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            mount(Some(c"proc"), c"/proc", Some(c"proc"), flags, None::<&std::ffi::CStr>)
        })
    });
    let errno = mounted.err().map_or(0, |error| error as i32);
    let said = nix::unistd::write(report, &errno.to_ne_bytes());
    // SAFETY: plain system calls.
    unsafe {
        if said.is_err() {
            libc::_exit(1);
        }
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        loop {
            libc::pause();
        }
    }
}

/// Ends the warden, and by that all other processes.
fn dismiss(warden: Pid) {
    let _ = kill(warden, Signal::SIGKILL);
    let start = std::time::Instant::now();
    while matches!(waitpid(warden, Some(WaitPidFlag::WNOHANG)), Ok(nix::sys::wait::WaitStatus::StillAlive) | Err(Errno::EINTR)) {
        if start.elapsed() > LAST_WAIT {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
