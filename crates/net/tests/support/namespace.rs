//! Network namespaces without names.
//!
//! Each is kept alive by an open descriptor alone, so that nothing can be left behind: when the test ends, in whatever way, the kernel
//! takes namespace, devices and routes away.

use nix::sched::{setns, unshare, CloneFlags};
use std::fs::File;
use std::io;
use std::process::Command;

/// A network namespace; gone when dropped (and when no process is left in it).
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new namespace with its loopback device up.
    pub fn new() -> io::Result<Self> {
        let file = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })
        .join()
        .expect("a thread that only opens a namespace")?;
        let namespace = Self { file };
        namespace.ip("link set lo up");
        Ok(namespace)
    }

    /// Runs `job` on a thread of its own inside the namespace. Sockets, devices and processes that it makes belong there for good.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let handle = scope.spawn(|| {
                setns(&self.file, CloneFlags::CLONE_NEWNET).expect("entering a namespace that we made");
                job()
            });
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Runs `ip` with `arguments` (separated by blanks) inside.
    ///
    /// # Panics
    /// If it fails.
    pub fn ip(&self, arguments: &str) {
        let output = self.run(|| Command::new("ip").args(arguments.split_whitespace()).output()).expect("ip can be started");
        assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Sets `/proc/sys/net/KEY`.
    ///
    /// # Panics
    /// If it fails.
    pub fn sysctl(&self, key: &str, value: &str) {
        let path = format!("/proc/sys/net/{key}");
        self.run(|| std::fs::write(&path, value)).unwrap_or_else(|error| panic!("writing {value} to {path}: {error}"));
    }
}

/// Why namespaces, TUN devices or tools that the tests need are missing here, if they are.
pub fn missing_capability(tools: &[(&str, &str)]) -> Option<String> {
    for (tool, package) in tools {
        if Command::new(tool).arg("--version").output().is_err() && Command::new(tool).arg("-V").output().is_err() {
            return Some(format!("`{tool}` is not installed (Debian package {package})"));
        }
    }
    if let Err(error) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        return Some(format!("/dev/net/tun cannot be opened: {error}"));
    }
    match std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join() {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(format!("no network namespace can be made: {error} (root is needed)")),
        Err(_) => Some("no network namespace can be made".to_owned()),
    }
}
