//! `whyloss serve` and `whyloss fetch` against the kernel's web programs, and against each other.

mod support;

use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use support::bed::{Bed, Family};
use support::relay::Impairment;
use support::serve::{fetch, serving, setup};
use support::skip::skip;
use support::stream::{octets, sha256};
use support::web::{curl, Folder, WebServer};
use whyloss_net::deliver::DeliverError;
use whyloss_net::namespace::{missing_capability, missing_tool, Namespace};
use whyloss_net::{Setup, SetupError};
use whyloss_transport::scheme::{Selection, Value};

/// Packets are damaged and lost, on both ways.
const BAD: Impairment = Impairment {
    lose: 0.001,
    flip: 0.003,
    duplicate: 0.001,
    reorder: 0.002,
    hold: std::time::Duration::from_millis(2),
    mark: 0.0,
    delay: std::time::Duration::from_millis(1),
    swallow_beyond: None,
};

#[test]
fn curl_gets_what_is_served_over_a_device_that_the_server_makes() {
    if let Some(reason) = missing_capability().or_else(|| missing_tool(&[("curl", "curl")])) {
        skip(&reason);
        return;
    }
    let namespace = Namespace::new().unwrap();
    let folder = Folder::new("whyloss-serve");
    let file = octets(1, 3 << 20);
    std::fs::write(folder.path().join("a file"), &file).unwrap();
    std::fs::write(folder.path().join("empty"), "").unwrap();
    let setup = setup("own", vec![[198, 18, 7, 2].into(), "fd00:18::2".parse().unwrap()], "cubic");
    let (report, ()) = serving(&namespace, &setup, folder.path(), 7, |urls| {
        assert_eq!(urls, ["http://198.18.7.2/", "http://[fd00:18::2]/"]);
        for url in urls {
            assert_eq!(sha256(&curl(&namespace, &format!("{url}a%20file")).unwrap()), sha256(&file));
            assert_eq!(curl(&namespace, &format!("{url}empty")).unwrap(), b"");
            assert_eq!(curl(&namespace, &format!("{url}../../etc/passwd")), Err("404".to_owned()));
        }
        let page = String::from_utf8(curl(&namespace, "http://198.18.7.2/").unwrap()).unwrap();
        assert!(page.contains("href=\"a%20file\""), "{page}");
    });
    assert_eq!((&report["clients"], &report["requests"]), (&7.into(), &7.into()), "{report:#}");
    assert!(report["octets"].as_u64() > Some(6 << 20), "{report:#}");
    assert!(!namespace.run(|| Path::new("/sys/class/net/own").exists()), "a device that the server made goes with it");
}

#[test]
fn files_cross_a_bad_path_from_the_kernel_and_to_it() {
    let Some(bed) = Bed::new([BAD; 2], 21) else { return };
    if let Some(reason) = missing_tool(&[("curl", "curl"), ("python3", "python3")]) {
        skip(&reason);
        return;
    }
    let folder = Folder::new("whyloss-bad-path");
    let file = octets(2, 8 << 20);
    std::fs::write(folder.path().join("file"), &file).unwrap();
    let setup = setup("engine", vec![Family::V4.engine(), Family::V6.engine()], "veno");
    for family in [Family::V4, Family::V6] {
        let web = WebServer::start(&bed.peer, SocketAddr::new(family.peer(), 8000), folder.path());
        let copy = folder.path().join("copy");
        let report = fetch(&bed.near, &setup, &format!("http://{}/file", web.address()), &copy).unwrap();
        assert_eq!(sha256(&std::fs::read(&copy).unwrap()), sha256(&file), "{report:#}");
        assert_eq!(report["octets"], file.len(), "{report:#}");
        assert!(report["damaged_received"].as_u64() > Some(0), "{report:#}");
        let missing = fetch(&bed.near, &setup, &format!("http://{}/nothing", web.address()), &copy).unwrap_err();
        assert!(missing.to_string().contains("404"), "{missing}");
        assert_eq!(std::fs::read(&copy).unwrap().len(), file.len(), "a failed fetch leaves the old file");
    }
    let (report, ()) = serving(&bed.near, &setup, &folder.path().join("file"), 1, |_| {
        let url = format!("http://{}/file", Family::V4.engine());
        assert_eq!(sha256(&curl(&bed.peer, &url).unwrap()), sha256(&file));
    });
    let sum = |name: &str| -> u64 { report["losses"][name].as_object().unwrap().values().filter_map(Json::as_u64).sum() };
    let losses = report["losses"]["segments"].as_u64().unwrap();
    assert!(losses > 5, "{report:#}");
    assert_eq!((sum("verdicts"), sum("judgements"), sum("triggers")), (losses, losses, losses), "{report:#}");
}

/// Garcia & Brunstrom 2004: the fetching engine reports what arrives damaged, the serving one keeps its window.
#[test]
fn engine_to_engine_the_causes_of_losses_are_told() {
    let damaging = Impairment { flip: 0.01, ..Impairment::default() };
    let Some(bed) = Bed::new([Impairment::default(), damaging], 22) else { return };
    let folder = Folder::new("whyloss-two-engines");
    let file = octets(3, 8 << 20);
    std::fs::write(folder.path().join("file"), &file).unwrap();
    let near = setup("engine", vec![Family::V4.engine()], "checksum-ld");
    let far = setup("engine", vec![Family::V4.far_engine()], "checksum-ld");
    let copy = folder.path().join("copy");
    let (report, fetched) =
        serving(&bed.near, &near, folder.path(), 1, |urls| fetch(&bed.peer, &far, &format!("{}file", urls[0]), &copy));
    let fetched = fetched.unwrap();
    assert_eq!(sha256(&std::fs::read(&copy).unwrap()), sha256(&file), "{fetched:#}");
    let verdicts = &report["losses"]["verdicts"];
    assert!(verdicts["corruption"].as_u64() > Some(20), "{report:#}");
    assert!(report["losses"]["judgements"]["kept"].as_u64() > Some(10), "{report:#}");
    assert!(fetched["reports_sent"].as_u64() > Some(20), "{fetched:#}");
}

/// SNACK and Selective-TCP over TUN. The path has no rate, so Biaz would be lost on it: marks tell.
#[test]
fn engine_to_engine_what_is_lost_is_asked_for() {
    let losing = Impairment { lose: 0.01, delay: std::time::Duration::from_millis(1), ..Impairment::default() };
    let folder = Folder::new("whyloss-snack");
    let file = octets(5, 8 << 20);
    std::fs::write(folder.path().join("file"), &file).unwrap();
    for (scheme, differentiator) in [("snack", None), ("selective", Some("casablanca".to_owned()))] {
        let Some(bed) = Bed::new([losing, losing], 23) else { return };
        let mut selection = Selection { differentiator, ..Selection::scheme(scheme) };
        // Else duplicate acknowledgements, which take 2 ms, would be faster than the list.
        if scheme == "snack" {
            let at_once = BTreeMap::from([("snack_delay_ms".to_owned(), Value::Number(0.0))]);
            selection.parameters.insert("snack".to_owned(), at_once);
        }
        let [near, far] = [Family::V4.engine(), Family::V4.far_engine()]
            .map(|address| Setup { selection: selection.clone(), ..setup("engine", vec![address], scheme) });
        let copy = folder.path().join("copy");
        let (report, fetched) =
            serving(&bed.near, &near, folder.path(), 1, |urls| fetch(&bed.peer, &far, &format!("{}file", urls[0]), &copy));
        let fetched = fetched.unwrap();
        assert_eq!(sha256(&std::fs::read(&copy).unwrap()), sha256(&file), "{scheme}: {fetched:#}");
        let (triggers, judgements) = (&report["losses"]["triggers"], &report["losses"]["judgements"]);
        assert!(triggers["snack"].as_u64() > Some(10), "{scheme}: {report:#}");
        if scheme == "selective" {
            assert!(judgements["kept"].as_u64() > Some(10), "{report:#}");
            assert_eq!(report["losses"]["verdicts"]["corruption"], triggers["snack"], "{report:#}");
        }
        println!("{scheme}: {report:#}");
    }
}

/// WTCP over TUN: the fetching engine sets the rate of the serving one, over losses and in real time.
#[test]
fn engine_to_engine_the_receiver_sets_the_rate() {
    let losing = Impairment { lose: 0.01, delay: std::time::Duration::from_millis(5), ..Impairment::default() };
    let Some(bed) = Bed::new([losing, losing], 25) else { return };
    let folder = Folder::new("whyloss-wtcp");
    let file = octets(7, 8 << 20);
    std::fs::write(folder.path().join("file"), &file).unwrap();
    let [near, far] = [Family::V4.engine(), Family::V4.far_engine()].map(|address| setup("engine", vec![address], "wtcp"));
    let copy = folder.path().join("copy");
    let (report, fetched) =
        serving(&bed.near, &near, folder.path(), 1, |urls| fetch(&bed.peer, &far, &format!("{}file", urls[0]), &copy));
    let fetched = fetched.unwrap();
    assert_eq!(sha256(&std::fs::read(&copy).unwrap()), sha256(&file), "{fetched:#}");
    // Each acknowledgement asks for a rate; how many there are hangs on how many segments come at a time.
    let (reports, packets) = (fetched["reports_sent"].as_u64(), fetched["device"]["sent"].as_u64());
    assert!(reports.unwrap() * 10 > packets.unwrap() * 9 && packets > Some(100), "{fetched:#}");
    assert!(report["losses"]["segments"].as_u64() > Some(20), "{report:#}");
    println!("{report:#}");
}

/// The kernel knows none of them: the engine is plain TCP then.
#[test]
fn without_options_at_the_kernel_files_cross_all_the_same() {
    let Some(bed) = Bed::new([BAD; 2], 24) else { return };
    if let Some(reason) = missing_tool(&[("curl", "curl"), ("python3", "python3")]) {
        skip(&reason);
        return;
    }
    let folder = Folder::new("whyloss-no-snack");
    let file = octets(6, 4 << 20);
    std::fs::write(folder.path().join("file"), &file).unwrap();
    for scheme in ["snack", "selective", "wtcp"] {
        let setup = setup("engine", vec![Family::V4.engine()], scheme);
        let (report, ()) = serving(&bed.near, &setup, &folder.path().join("file"), 1, |_| {
            let url = format!("http://{}/file", Family::V4.engine());
            assert_eq!(sha256(&curl(&bed.peer, &url).unwrap()), sha256(&file), "{scheme}");
        });
        let triggers = &report["losses"]["triggers"];
        assert!(triggers["snack"].as_u64().unwrap_or(0) == 0, "{scheme}: {report:#}");
        assert!(report["losses"]["segments"].as_u64() > Some(3), "{scheme}: {report:#}");
        let web = WebServer::start(&bed.peer, SocketAddr::new(Family::V4.peer(), 8000), folder.path());
        let copy = folder.path().join("copy");
        let fetched = fetch(&bed.near, &setup, &format!("http://{}/file", web.address()), &copy).unwrap();
        assert_eq!(sha256(&std::fs::read(&copy).unwrap()), sha256(&file), "{scheme}: {fetched:#}");
    }
}

#[test]
fn what_cannot_be_done_is_said_in_a_sentence() {
    if let Some(reason) = missing_capability() {
        skip(&reason);
        return;
    }
    let namespace = Namespace::new().unwrap();
    let said = |setup: &Setup, url: &str| match fetch(&namespace, setup, url, Path::new("/dev/null")) {
        Err(DeliverError::Setup(SetupError::Unavailable(text))) => text,
        Err(error) => error.to_string(),
        Ok(report) => panic!("{report:#}"),
    };
    let own = setup("own", vec![[198, 18, 7, 2].into()], "cubic");
    assert_eq!(said(&own, "http://198.18.7.1:9/"), "the server refuses the connection");
    assert!(said(&own, "https://198.18.7.1/").contains("no TLS"));
    namespace.ip("tuntap add down mode tun").unwrap();
    let down = Setup { tun: "down".to_owned(), ..own.clone() };
    assert_eq!(said(&down, "http://198.18.7.1/"), "device `down` is down; bring it up with `ip link set dev down up`");
    let loopback = Setup { tun: "lo".to_owned(), ..own.clone() };
    assert!(said(&loopback, "http://198.18.7.1/").contains("not a TUN device"), "{}", said(&loopback, "http://198.18.7.1/"));
    namespace.ip("link set dev down up").unwrap();
    let held = namespace.run(|| whyloss_net::Tun::open("down")).unwrap();
    assert_eq!(said(&down, "http://198.18.7.1/"), "another program has taken TUN device `down`");
    drop(held);
}
