//! What tests on the running kernel share.

use std::io::Write as _;

/// Whether programs can be loaded here; if not, says on standard error why the test is skipped.
pub fn can_load() -> bool {
    let reason = if !nix::unistd::geteuid().is_root() {
        "not root"
    } else if !std::path::Path::new("/sys/kernel/btf/vmlinux").exists() {
        "the kernel has no BTF"
    } else {
        return true;
    };
    let test = std::thread::current().name().unwrap_or("test").to_owned();
    // Not by `eprintln!`, whose words the test runner keeps to itself.
    let _ = writeln!(std::io::stderr(), "{test} skipped: {reason}");
    false
}

/// The controls that the kernel has now.
pub fn available() -> Vec<String> {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").expect("TCP is there");
    names.split_whitespace().map(str::to_owned).collect()
}
