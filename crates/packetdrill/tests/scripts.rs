//! Our own scripts, run by packetdrill itself where it is installed (`PACKETDRILL` names it, or it lies on the path).

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn packetdrill() -> Option<PathBuf> {
    let named = std::env::var_os("PACKETDRILL").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    named.into_iter().chain(std::env::split_paths(&path).map(|folder| folder.join("packetdrill"))).find(|file| file.is_file())
}

#[test]
fn packetdrill_runs_our_scripts() {
    let Some(packetdrill) = packetdrill() else {
        let _ = writeln!(std::io::stderr(), "packetdrill_runs_our_scripts skipped: packetdrill is not installed");
        return;
    };
    // …/deps/scripts-1234 → …/libwhyloss_packetdrill.so
    let executable = std::env::current_exe().unwrap();
    let shared = executable.ancestors().nth(2).unwrap().join("libwhyloss_packetdrill.so");
    assert!(shared.is_file(), "{} was not built", shared.display());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut scripts: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(scripts.len() >= 2);
    for script in scripts {
        let text = std::fs::read_to_string(&script).unwrap();
        let flags: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("// so_flags: ")).collect();
        let option = |name: &str, value: &dyn AsRef<std::ffi::OsStr>| {
            let mut option = OsString::from(format!("--{name}="));
            option.push(value);
            option
        };
        let output = Command::new(&packetdrill)
            .arg(option("so_filename", &shared))
            .arg(option("so_flags", &flags.join("\n")))
            .args(["--ip_version=ipv4", "--local_ip=192.168.0.1"])
            .arg(&script)
            .env("LD_PRELOAD", &shared)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{}: {said}", script.display());
    }
}
