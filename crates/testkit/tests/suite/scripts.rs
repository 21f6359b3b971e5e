//! What the RFCs ask of a connection, said in packetdrill's language: every script under `scripts/` has to pass.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use whyloss_testkit::packetdrill::{find, run_text, ScriptOutcome};
use whyloss_testkit::settings::Settings;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts")
}

#[test]
fn every_script_passes() {
    let scripts = find(&[scripts()]).unwrap();
    assert!(scripts.len() > 80, "only {} scripts were found", scripts.len());
    let defaults = Settings::profile("modern").unwrap();
    let mut report = String::new();
    for script in scripts {
        let text = std::fs::read_to_string(&script).unwrap();
        assert!(text.contains("// whyloss:"), "{} chooses no configuration", script.display());
        match run_text(&text, &defaults) {
            ScriptOutcome::Passed => {}
            ScriptOutcome::Failed { line, expected, got, trace } => {
                writeln!(report, "{}:{line}\n  expected {expected}\n  got {got}\n{trace}", script.display()).unwrap();
            }
            ScriptOutcome::NotSupported { line, what } => writeln!(report, "{}:{line}: {what}", script.display()).unwrap(),
        }
    }
    assert!(report.is_empty(), "{report}");
}

/// A runner that passes everything would pass the test above too: wrong expectations have to fail where they are wrong.
#[test]
fn a_wrong_expectation_fails_on_its_line() {
    let text = std::fs::read_to_string(scripts().join("open/active.pkt")).unwrap();
    let changes = [
        ("> S 0:0(0)", "> S. 0:0(0)", "flags"),
        ("win 65535 <mss 1460", "win 65534 <mss 1460", "win"),
        ("<mss 1460,", "<mss 1461,", "mss"),
        ("wscale 7", "wscale 6", "wscale"),
        ("sackOK,TS val 100", "TS val 100", "sackOK"),
        ("TS val 200 ecr 700", "TS val 200 ecr 701", "TS"),
        ("> P. 1:101(100)", "> P. 2:102(100)", "seq"),
        ("+0 > P.", "+.1 > P.", "this at"),
        ("[0], [4]) = 0", "[111], [4]) = 0", "0"),
        ("write(3, ..., 100) = 100", "write(3, ..., 100) = 99", "100"),
        ("+0...0.1 connect", "+0...0.2 connect", "returned"),
    ];
    for (from, to, difference) in changes {
        assert!(text.contains(from), "{from}");
        let line = text.lines().position(|line| line.contains(from)).unwrap() + 1;
        match run_text(&text.replacen(from, to, 1), &Settings::profile("modern").unwrap()) {
            ScriptOutcome::Failed { line: at, got, .. } => {
                assert!(got.contains(difference), "{from} -> {to}: {got}");
                // A call that returns too early is noticed when it returns.
                assert!(at == line || from.contains("..."), "{from} -> {to}: line {at} instead of {line}");
            }
            other => panic!("{from} -> {to}: {other:?}"),
        }
    }
}

#[test]
fn a_script_without_an_end_is_strict_about_what_is_left() {
    let text = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n\
                +0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)\n";
    let settings = Settings::profile("modern").unwrap();
    assert_eq!(run_text(text, &settings), ScriptOutcome::Passed, "as packetdrill does it");
    let strict = format!("// whyloss: profile=modern\n{text}");
    assert!(matches!(run_text(&strict, &settings), ScriptOutcome::Failed { line: 4, .. }));
}

#[test]
fn what_is_not_supported_is_named() {
    let settings = Settings::profile("modern").unwrap();
    let cases = [
        ("+0 < udp (1000)", "udp packets"),
        ("+0 %{ assert tcpi_snd_cwnd == 10 }%", "code in %{ }%"),
        ("`tc qdisc add dev tun0`\n+0 close(3) = 0", "shell command `tc qdisc add dev tun0`"),
        ("+0 socket(..., SOCK_DGRAM, IPPROTO_UDP) = 3", "SOCK_DGRAM"),
        ("+0 < S 0:0(0) win 1 <md5 012345>", "TCP option `md5 012345`"),
        ("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 sendmsg(3, ..., 0) = 10", "system call sendmsg"),
        ("--fancy=1\n+0 close(3) = 0", "option --fancy"),
        ("+0 this is no script", "syntax"),
    ];
    for (text, what) in cases {
        match run_text(text, &settings) {
            ScriptOutcome::NotSupported { what: said, .. } => assert!(said.contains(what), "{text}: {said}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}
