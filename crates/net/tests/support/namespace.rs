//! Network namespaces without names.
//!
//! Each is kept alive by an open descriptor alone, so that nothing can be left behind: when the test ends, in whatever way, the kernel
//! takes namespace, devices and routes away.

use nix::sched::{setns, unshare, CloneFlags};
use std::fs::File;
use std::io::{self, Write};
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

/// Which of these programs is missing, given as `(name, Debian package)`, if one is.
pub fn missing_tool(tools: &[(&str, &str)]) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let absent = |name: &str| !std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    tools
        .iter()
        .find(|(name, _)| absent(name))
        .map(|(name, package)| format!("`{name}` is not installed (Debian package {package})"))
}

/// Why namespaces, TUN devices or `ip` cannot be used here, if they cannot.
pub fn missing_capability() -> Option<String> {
    if let Some(reason) = missing_tool(&[("ip", "iproute2")]) {
        return Some(reason);
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

/// Says on standard error why a test is skipped. Not by `eprintln!`, whose words the test runner keeps to itself.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(io::stderr(), "{test} skipped: {reason}");
}
