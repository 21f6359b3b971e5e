//! What the algorithm does where it is plugged in.

use own_algorithm::{DIGEST, PART};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use whyloss_lab::arrow_array::{Array, Float64Array};
use whyloss_lab::{describe, extend, run, Control, RunOptions, Scenario};
use whyloss_net::deliver::{serve, ServerNews};
use whyloss_net::namespace::{missing_capability, Namespace};
use whyloss_net::Setup;
use whyloss_transport::congestion::{CongestionControl, Window};
use whyloss_transport::kit::{Arguments, Part};
use whyloss_transport::path::{Ack, Path};
use whyloss_transport::scheme::Selection;

/// A link that is never full, with one packet in a thousand lost by chance. Slow start ends at 80 segments: the way down from where it would end
/// otherwise takes a good part of the run, and is not what the law is about.
const LOSSY: &str =
    "scenario.duration = '120 s'\nscenario.seed = 5\n[path]\nrate = '100 Mbps'\ndelay = '50 ms'\nqueue = '2000 pkt'\n\
                     forward.channel.loss = '0.1 %'\n[[flow]]\nprofile = 'linux'\n\
                     tcp.initial_ssthresh = '115840 B'\n";

/// The mean window that the goodput stands for, in segments: the round trip is 100 ms, a segment carries 1448 octets.
fn window(flow: &str) -> f64 {
    let scenario = Scenario::from_toml(&format!("{LOSSY}{flow}"), "test").unwrap();
    let runs = (0..3).map(|number| {
        let tables = run(&scenario, &RunOptions { run: number, captures: None }, &mut Control::default()).unwrap();
        let column = tables.transfers.column_by_name("goodput_bps").unwrap();
        column.as_any().downcast_ref::<Float64Array>().unwrap().value(0)
    });
    runs.sum::<f64>() / 3.0 * 0.1 / (8.0 * 1448.0)
}

#[test]
fn the_window_follows_the_law_of_its_publication() {
    extend(&PART, DIGEST).unwrap();
    assert_eq!(describe("scalable").unwrap()[0].reference, "Kelly 2003");
    let scalable = window("congestion = 'scalable'\n");
    let newreno = window("congestion = 'newreno'\n");
    let gentle = window("congestion = 'scalable'\nparameters.scalable.decrease = 0.0625\n");
    // Kelly 2003, section 3: growth and fall are in balance at a / (b p) = 0.01 / (0.125 * 0.001) = 80 segments; that of NewReno at about
    // 1.22 / sqrt(p) = 39 (Mathis et al. 1997).
    assert!((64.0..96.0).contains(&scalable), "{scalable}");
    assert!((31.0..47.0).contains(&newreno), "{newreno}");
    // Half the fall, twice the window.
    assert!((1.6..2.4).contains(&(gentle / scalable)), "{gentle} and {scalable}");
}

/// Acknowledgements that the part below has heard.
static HEARD: AtomicU64 = AtomicU64::new(0);

/// Scalable TCP that counts what it hears.
#[derive(Debug)]
struct Counting(Box<dyn CongestionControl>);

impl CongestionControl for Counting {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        HEARD.fetch_add(1, Ordering::Relaxed);
        self.0.on_ack(window, ack);
    }

    fn threshold(&mut self, window: &Window, path: &Path) -> u64 {
        self.0.threshold(window, path)
    }
}

static COUNTING: Part<dyn CongestionControl> = Part {
    name: "counting",
    summary: "Scalable TCP that counts what it hears.",
    reference: "a test",
    ..Part::fixed(|_| Box::new(Counting(PART.build(&Arguments::check(&PART, &std::collections::BTreeMap::new()).unwrap()))))
};

#[test]
fn it_sends_real_packets_to_the_kernel() {
    if let Some(reason) = missing_capability() {
        // Not by `eprintln!`, whose words the test runner keeps to itself.
        writeln!(std::io::stderr(), "skipped: {reason}").unwrap();
        return;
    }
    let mut setup = Setup::default();
    setup.catalogue.add(&COUNTING).unwrap();
    setup.selection = Selection { congestion: Some("counting".to_owned()), ..Selection::default() };
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("offered");
    let expected: Vec<u8> = (0..1_000_000_u32).map(|position| (position % 251) as u8).collect();
    std::fs::write(&file, &expected).unwrap();
    let namespace = Namespace::new().unwrap();
    let report = std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let server = scope.spawn(|| {
            namespace.run(|| {
                serve(&setup, &file, 80, Some(1), move |news| {
                    if matches!(news, ServerNews::Listening(_)) {
                        tell.send(()).unwrap();
                    }
                    ControlFlow::Continue(())
                })
            })
        });
        told.recv_timeout(Duration::from_secs(30)).expect("it listens");
        let body = namespace.run(|| {
            let mut stream = TcpStream::connect(("198.18.1.2", 80)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
            stream.write_all(b"GET /offered HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an end of the head");
            answer.split_off(head + 4)
        });
        assert!(body == expected, "{} octets of {}", body.len(), expected.len());
        server.join().unwrap().unwrap()
    });
    assert_eq!(report["clients"], 1);
    // An acknowledgement at most doubles the window, of ten segments at first: the last octet of a million leaves after six of them at the earliest.
    assert!(HEARD.load(Ordering::Relaxed) >= 6, "{HEARD:?}");
}
