//! A web server and a browser of sorts.

use super::bed::PATIENCE;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use whyloss_net::namespace::Namespace;

/// A folder of our own among the temporary files; removed when dropped.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A new empty folder.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for temporary files");
        Self(path)
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// `python3 -m http.server`; killed when dropped.
#[derive(Debug)]
pub struct WebServer {
    child: Child,
    address: SocketAddr,
}

impl WebServer {
    /// Serves `folder` at `address` in `namespace`.
    pub fn start(namespace: &Namespace, address: SocketAddr, folder: &Path) -> Self {
        let child = namespace.run(|| {
            Command::new("python3")
                .args(["-m", "http.server", "--bind", &address.ip().to_string(), &address.port().to_string()])
                .current_dir(folder)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("python3 can be started")
        });
        let server = Self { child, address };
        let start = Instant::now();
        while namespace.run(|| TcpStream::connect(address)).is_err() {
            assert!(start.elapsed() < PATIENCE, "the web server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Address and port on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for WebServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `curl` gets from `url`, or else the HTTP status as it stands in the answer.
pub fn curl(namespace: &Namespace, url: &str) -> Result<Vec<u8>, String> {
    let arguments = ["--silent", "--globoff", "--noproxy", "*", "--max-time", "30", "--write-out", "%{stderr}%{http_code}", url];
    let output = namespace.run(|| Command::new("curl").args(arguments).output()).expect("curl can be started");
    match String::from_utf8_lossy(&output.stderr).into_owned() {
        status if status == "200" && output.status.success() => Ok(output.stdout),
        status => Err(status),
    }
}
