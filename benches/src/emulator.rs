//! The link emulator: how many packets it carries, and how late.

use crate::report::Entry;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use whyloss_net::emulate::{Audit, Bounds, Options, Stretch};
use whyloss_net::testbed::{Plan, Testbed, TestbedError, WireLink, WireNode};
use whyloss_sim::{LinkSpec, QueueLimit};
use whyloss_transport::{BitRate, Duration as Delay};

/// Measures it `repetitions` times between two hosts of this machine's kernel, one TCP connection, packets of 1500 octets; the median counts. Says why
/// not where that cannot be.
pub fn measure(seconds: u64, repetitions: usize) -> Vec<Entry> {
    let unshaped = (BitRate::from_bps(1_000_000_000_000), Delay::ZERO, QueueLimit::Unlimited);
    let shaped = (BitRate::from_bps(100_000_000), Delay::from_millis(10), QueueLimit::Packets(200));
    let runs = (0..repetitions.max(1)).map(|_| Ok([carry(unshaped, seconds)?, carry(shaped, seconds)?]));
    match runs.collect::<Result<Vec<_>, _>>() {
        Ok(runs) => {
            let median = |value: &dyn Fn(&[Vec<Audit>; 2]) -> f64| {
                let mut values: Vec<_> = runs.iter().map(value).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            let late = |pick: fn(&Audit) -> f64| median(&|[_, exact]| exact.iter().map(pick).fold(0.0, f64::max));
            vec![
                Entry::new(
                    "emulator/unshaped/packets-per-second",
                    median(&|[fast, _]| fast[0].sent as f64 / fast[0].seconds),
                    "packet/s",
                )
                .limit("target", 3e5),
                Entry::new(
                    "emulator/unshaped/rate",
                    median(&|[fast, _]| fast[0].sent_octets as f64 * 8.0 / fast[0].seconds),
                    "bit/s",
                ),
                Entry::new("emulator/100Mbps/late-p50", late(|audit| audit.error.p50_us), "us"),
                Entry::new("emulator/100Mbps/late-p99", late(|audit| audit.error.p99_us), "us").limit("target", 100.0),
                Entry::new("emulator/100Mbps/late-p99.9", late(|audit| audit.error.p999_us), "us"),
            ]
        }
        Err(TestbedError::Unavailable(reason)) => {
            eprintln!("emulator left out: {reason}");
            Vec::new()
        }
        Err(error) => {
            eprintln!("emulator left out: {error}");
            Vec::new()
        }
    }
}

/// Sends as much as TCP can from one host to another for so many seconds over a link.
fn carry((rate, delay, queue): (BitRate, Delay, QueueLimit), seconds: u64) -> Result<Vec<Audit>, TestbedError> {
    let hop = |name: &str| {
        let spec = LinkSpec { rate, delay, queue, channel: whyloss_sim::ChannelSpec::default(), ..LinkSpec::default() };
        vec![Stretch { name: name.to_owned(), spec }]
    };
    let node = |name: &str| WireNode { name: name.to_owned(), router: false };
    let links = vec![WireLink { ends: [0, 1], ways: [hop("a>b"), hop("b>a")], ..WireLink::default() }];
    // What is late is the result here, not a flaw.
    let bounds = Bounds { p99_error: u64::MAX, ..Bounds::default() };
    let bed =
        Testbed::new(Plan { nodes: vec![node("a"), node("b")], links, mtu: 1500 }, &Options { bounds, ..Options::new(1, 0) })?;
    let to = (bed.plan().v4(1), 5000);
    let failed = |source| TestbedError::System { what: "a TCP connection".to_owned(), source };
    let listener = bed.namespace(1).run(|| TcpListener::bind(to)).map_err(failed)?;
    let sink = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; 1 << 20];
        while stream.read(&mut buffer)? > 0 {}
        std::io::Result::Ok(())
    });
    let mut stream = bed.namespace(0).run(|| TcpStream::connect(to)).map_err(failed)?;
    let (data, start) = (vec![0; 1 << 18], Instant::now());
    while start.elapsed() < Duration::from_secs(seconds) {
        stream.write_all(&data).map_err(failed)?;
    }
    let audit = bed.audit();
    drop(stream);
    let _ = sink.join();
    bed.stop()?;
    Ok(audit)
}
