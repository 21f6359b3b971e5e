//! The command in a network namespace: what it serves the kernel's programs can read, and what it reports.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use whyloss_net::namespace::{missing_capability, Namespace};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_whyloss-tun"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits until `child` says where it listens; gives that line and the rest of what it says.
fn listening(child: &mut Child) -> (String, impl BufRead) {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    (line, said)
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// A file through the kernel's TCP, by hand.
fn get(namespace: &Namespace, file: &str) -> Vec<u8> {
    namespace.run(|| {
        use std::io::Write;
        let mut connection = TcpStream::connect("198.18.1.2:80").unwrap();
        write!(connection, "GET /{file} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n").unwrap();
        let mut octets = Vec::new();
        connection.read_to_end(&mut octets).unwrap();
        let head = octets.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        octets.split_off(head + 4)
    })
}

#[test]
fn what_it_serves_arrives_and_what_it_reports_is_json() {
    if let Some(reason) = missing_capability() {
        eprintln!("skipped: {reason}");
        return;
    }
    let namespace = Namespace::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let octets: Vec<u8> = (0..1_000_000_u32).flat_map(u32::to_le_bytes).collect();
    std::fs::write(folder.path().join("file"), &octets).unwrap();
    let path = folder.path().to_str().unwrap();
    let arguments = ["--scheme", "cubic", "--shadow", "veno", "serve", path, "--clients", "1"];
    let mut server = namespace.run(|| command(&arguments).spawn()).unwrap();
    let (line, _said) = listening(&mut server);
    assert!(line.starts_with("listening: http://198.18.1.2/"), "{line}");
    assert!(get(&namespace, "file") == octets, "the file differs");
    let done = server.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let report = report(&done);
    assert_eq!((&report["scheme"], &report["clients"]), (&"cubic".into(), &1.into()), "{report:#}");
    assert!(report["octets"].as_u64() >= Some(octets.len() as u64), "{report:#}");
}

#[test]
fn two_of_them_reach_each_other_and_a_signal_ends_the_server() {
    if let Some(reason) = missing_capability() {
        eprintln!("skipped: {reason}");
        return;
    }
    let namespace = Namespace::new().unwrap();
    namespace.sysctl("ipv4/ip_forward", "1").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let octets = vec![7; 1 << 20];
    std::fs::write(folder.path().join("file"), &octets).unwrap();
    let served = folder.path().join("file");
    let copy = folder.path().join("copy");
    let mut server = namespace.run(|| command(&["serve", served.to_str().unwrap()]).spawn()).unwrap();
    let (_, _said) = listening(&mut server);
    let arguments = ["--tun", "other", "--address", "198.18.2.2", "--scheme", "lda-eq", "fetch", "http://198.18.1.2/file"];
    let fetched = namespace.run(|| command(&arguments).arg("-o").arg(&copy).output()).unwrap();
    assert!(fetched.status.success(), "{fetched:?}");
    assert!(std::fs::read(&copy).unwrap() == octets, "the copy differs");
    assert_eq!(report(&fetched)["octets"], octets.len());
    Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
    let done = server.wait_with_output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(report(&done)["requests"], 1);
}

#[test]
fn what_is_wrong_is_said_with_status_2() {
    let wrong: [(&[&str], &str); 5] = [
        (&["--scheme", "cubik", "serve", "."], "cubik"),
        (&["--profile", "windows", "serve", "."], "there is no profile `windows`; there are "),
        (&["--mtu", "100", "serve", "."], "100"),
        (&["--scheme", "cubic", "fetch", "ftp://198.18.1.1/"], "ftp://198.18.1.1/"),
        (&[], "Usage"),
    ];
    for (arguments, said) in wrong {
        let done = command(arguments).output().unwrap();
        let message = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(said), "{arguments:?}: {message}");
    }
}

#[test]
fn it_lists_the_schemes() {
    let done = command(&["schemes"]).output().unwrap();
    let schemes = report(&done);
    assert!(schemes["lda-eq"].as_str().is_some_and(|what| what.ends_with('.')), "{schemes:#}");
}
