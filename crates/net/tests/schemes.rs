//! Every scheme and every profile of the catalogue on real packets: between two engines, and with the kernel at the other end, which speaks none
//! of their options unless `wl_checksum` is loaded on this machine. Then it permits reports, and knows no other of their options.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;
use support::bed::{Bed, Family, PATIENCE};
use support::relay::Impairment;
use support::serve::{fetch, serving, setup};
use support::stream::{octets, sha256};
use support::web::Folder;
use whyloss_net::Setup;
use whyloss_transport::scheme::{Selection, SCHEMES};
use whyloss_transport::tcp::PROFILES;

const OCTETS: usize = 256 << 10;

/// Packets are lost and damaged, on both ways.
const BAD: Impairment = Impairment {
    lose: 0.005,
    flip: 0.005,
    duplicate: 0.001,
    reorder: 0.002,
    hold: Duration::from_millis(2),
    mark: 0.0,
    delay: Duration::from_millis(1),
    swallow_beyond: None,
};

/// What a stock client gets from `from`: the body of the answer.
fn get(from: SocketAddr, what: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(from).expect("the engine answers");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /file HTTP/1.1\r\nHost: engine\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    read.unwrap_or_else(|error| panic!("{what}: {error} after {} octets", answer.len()));
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a header") + 4;
    answer.split_off(body)
}

/// Answers one request with `file`, as a stock server.
fn answer(listener: &TcpListener, file: &[u8]) {
    let mut stream = listener.accept().unwrap().0;
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        let mut octet = [0];
        stream.read_exact(&mut octet).unwrap();
        request.push(octet[0]);
    }
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", file.len()).unwrap();
    stream.write_all(file).unwrap();
}

/// The file crosses from engine to engine, from an engine to the kernel and from the kernel to an engine.
fn crosses(bed: &Bed, folder: &Path, file: &[u8], what: &str, change: impl Fn(Setup) -> Setup) {
    let [near, far] =
        [Family::V4.engine(), Family::V4.far_engine()].map(|address| change(setup("engine", vec![address], "sack")));
    let copy = folder.join("copy");
    let whole = |whose: &str| assert_eq!(sha256(&std::fs::read(&copy).unwrap()), sha256(file), "{what}: {whose}");

    let (_, fetched) = serving(&bed.near, &near, folder, 1, |urls| fetch(&bed.peer, &far, &format!("{}file", urls[0]), &copy));
    fetched.unwrap_or_else(|error| panic!("{what}: {error}"));
    whole("between engines");

    let (report, got) = serving(&bed.near, &near, folder, 1, |_| bed.peer.run(|| get((Family::V4.engine(), 80).into(), what)));
    assert_eq!(sha256(&got), sha256(file), "{what}: to the kernel, {report:#}");
    assert_eq!(report["losses"]["triggers"]["snack"].as_u64().unwrap_or(0), 0, "{what}: {report:#}");

    let listener = bed.peer.run(|| TcpListener::bind((Family::V4.peer(), 0))).unwrap();
    let url = format!("http://{}/file", listener.local_addr().unwrap());
    let before = bed.permits();
    let fetched = std::thread::scope(|scope| {
        scope.spawn(|| answer(&listener, file));
        fetch(&bed.near, &near, &url, &copy).unwrap_or_else(|error| panic!("{what}: {error}"))
    });
    whole("from the kernel");
    let reports = fetched["reports_sent"].as_u64().unwrap_or(0);
    assert!(reports == 0 || bed.permits() > before, "{what}: {fetched:#}");
}

fn world(seed: u64, name: &str) -> Option<(Bed, Folder, Vec<u8>)> {
    let bed = Bed::new([BAD; 2], seed)?;
    let (folder, file) = (Folder::new(name), octets(seed, OCTETS));
    std::fs::write(folder.path().join("file"), &file).unwrap();
    Some((bed, folder, file))
}

#[test]
fn every_scheme_crosses_between_engines_and_does_without_its_options_at_the_kernel() {
    let Some((bed, folder, file)) = world(31, "whyloss-schemes") else { return };
    for scheme in SCHEMES {
        crosses(&bed, folder.path(), &file, scheme.name, |setup| Setup {
            selection: Selection::scheme(scheme.name),
            link_hints: true,
            ..setup
        });
    }
}

#[test]
fn every_profile_crosses_between_engines_and_to_the_kernel() {
    let Some((bed, folder, file)) = world(32, "whyloss-profiles") else { return };
    for (profile, _) in PROFILES {
        crosses(&bed, folder.path(), &file, profile, |setup| Setup { profile: (*profile).to_owned(), ..setup });
    }
}
