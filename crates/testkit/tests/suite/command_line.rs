//! The command `whyloss-packetdrill`.

use std::process::{Command, Output};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_whyloss-packetdrill")).args(arguments).output().unwrap()
}

fn folder(name: &str, scripts: &[(&str, &str)]) -> String {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (script, text) in scripts {
        let path = folder.join(script);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

const SOCKET: &str = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = ";

#[test]
fn each_script_is_accounted_for() {
    let good = format!("{SOCKET}3\n");
    let bad = format!("{SOCKET}3\n+0 close(3) = -1 EBADF (Bad file descriptor)\n");
    let folder = folder("mixed", &[("a.pkt", &good), ("deep/b.pkt", &bad), ("deep/c.pkt", "+0 < udp (10)\n"), ("d.txt", "no")]);
    let output = run(&[&folder, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let results: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["result"].as_str().unwrap()).collect();
    assert_eq!(results, ["passed", "failed", "not-supported"]);
    assert_eq!(rows[1]["line"], 2);
    assert_eq!(rows[1]["expected"], "close = -1 EBADF");
    assert_eq!(rows[1]["got"], "close = 0");
    assert_eq!(rows[2]["what"], "udp packets");

    let text = String::from_utf8(run(&[&folder]).stdout).unwrap();
    assert!(text.ends_with("1 passed, 1 failed, 1 not supported\n"), "{text}");
}

#[test]
fn the_exit_status_tells() {
    let good = folder("good", &[("a.pkt", &format!("{SOCKET}3\n")), ("b.pkt", "+0 < udp (10)\n")]);
    assert_eq!(run(&[&good]).status.code(), Some(0), "what is not supported has not failed");
    for wrong in [&["/no/such/folder"][..], &[&good, "--set", "sack=maybe"], &[&good, "--profile", "solaris"], &[]] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(!output.stderr.is_empty());
    }
}
