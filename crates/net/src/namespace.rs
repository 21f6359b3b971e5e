//! Network namespaces without names.
//!
//! Each is kept alive by an open descriptor alone, so that nothing can be left behind: when the process ends, in whatever way, the
//! kernel takes namespace, devices and routes away.

use nix::sched::{setns, unshare, CloneFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, Stdio};

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
        namespace.ip("link set lo up")?;
        Ok(namespace)
    }

    /// Runs `job` on a thread of its own inside the namespace. Sockets, devices and processes that it makes belong there for good.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let handle = scope.spawn(|| {
                self.enter().expect("entering a namespace that we made");
                job()
            });
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves the calling thread into the namespace.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.file, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `ip` inside with `commands`, each a line of arguments separated by blanks. The first that fails ends it.
    pub fn ip(&self, commands: &str) -> io::Result<()> {
        let output = self.run(|| {
            let mut child = Command::new("ip")
                .args(["-batch", "-"])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .map_err(|error| io::Error::new(error.kind(), format!("`ip` (package iproute2) cannot be started: {error}")))?;
            // An `ip` that has given up does not read to the end; its words say why.
            let _ = child.stdin.take().expect("its input is ours").write_all(commands.as_bytes());
            child.wait_with_output()
        })?;
        if output.status.success() {
            return Ok(());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let line = words.rsplit_once("Command failed -:").and_then(|(_, number)| number.trim().parse::<usize>().ok());
        let command = line.and_then(|line| commands.lines().nth(line - 1)).unwrap_or(commands);
        Err(io::Error::other(format!("ip {}: {}", command.trim(), words.lines().next().unwrap_or_default())))
    }

    /// Sets `/proc/sys/net/KEY`.
    pub fn sysctl(&self, key: &str, value: &str) -> io::Result<()> {
        let path = format!("/proc/sys/net/{key}");
        self.run(|| std::fs::write(&path, value))
            .map_err(|error| io::Error::new(error.kind(), format!("writing {value} to {path}: {error}")))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Of programs that have ended the kernel goes on to send what was not acknowledged, for two minutes. Nobody hears it any more, and the
        // namespace lasts as long.
        std::thread::scope(|scope| {
            let give_up = || {
                self.enter()?;
                std::fs::write("/proc/sys/net/ipv4/tcp_orphan_retries", "1")
            };
            if let Ok(thread) = std::thread::Builder::new().spawn_scoped(scope, give_up) {
                let _ = thread.join();
            }
        });
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    /// TCP sockets of a namespace that are not closed yet.
    fn sockets(file: &File) -> usize {
        let inside = || {
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap().lines().count() - 1
        };
        std::thread::scope(|scope| scope.spawn(inside).join()).unwrap()
    }

    #[test]
    fn connections_of_programs_that_have_ended_go_soon_when_it_is_dropped() {
        if missing_capability().is_some() {
            return;
        }
        let namespace = Namespace::new().unwrap();
        let ends = namespace.run(|| {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        });
        // Nothing arrives any more: both ends wait in FIN-WAIT-1.
        namespace.ip("link set lo down").unwrap();
        drop(ends);
        let held = namespace.file.try_clone().unwrap();
        assert_eq!(sockets(&held), 2);
        drop(namespace);
        let end = Instant::now() + Duration::from_secs(20);
        while sockets(&held) > 0 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(sockets(&held), 0);
    }
}
