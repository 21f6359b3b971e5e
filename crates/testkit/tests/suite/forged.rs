//! Forged reports: what somebody on the path, or a receiver that lies, can gain and what not.

use whyloss_testkit::ring::{End, Fault, Link, Ring, Setup, Side};
use whyloss_transport::scheme::{Selection, SCHEMES};
use whyloss_transport::{differentiation, BitRate, Config, Duration, Instant};

const OCTETS: u64 = 300_000;
/// A forged report can be shorter than what it displaces, and its segment leaves a little earlier: less than one data segment takes.
const TOLERANCE: Duration = Duration::from_millis(1);

/// Every scheme, and every differentiator at the receiver.
fn selections() -> Vec<(&'static str, Selection)> {
    let schemes = SCHEMES.iter().map(|scheme| (scheme.name, Selection::scheme(scheme.name)));
    let at_receiver = differentiation::AT_RECEIVER.iter().map(|part| {
        let (differentiator, reaction) = (Some(part.name.to_owned()), Some("keep".to_owned()));
        (part.name, Selection { differentiator, reaction, ..Selection::default() })
    });
    schemes.chain(at_receiver).collect()
}

/// How long the transfer took, and its last window. Slow start grows by a segment an acknowledgement, and what arrives twice is acknowledged
/// at once, so that the acknowledgement that was delayed covers one segment instead of two: the window does not count what that adds.
fn transfer(selection: &Selection, seed: u64, forged: f64, loss: f64) -> (Duration, u64) {
    let config = Config::modern();
    let link = || Link::new(Duration::from_millis(20)).bottleneck(BitRate::from_bps(10_000_000), 1000);
    let forward = link().fault_data_randomly(Fault::Drop, loss).fault_randomly(Fault::Forge, forged);
    let backward = link().fault_randomly(Fault::Forge, forged);
    let sender = Setup { selection: selection.clone(), ..Setup::sender(config.clone(), OCTETS) };
    let receiver = Setup { selection: selection.clone(), ..Setup::receiver(config) };
    let mut ring = Ring::new(seed, sender, receiver, forward, backward).unwrap();
    assert_eq!(ring.run().unwrap_or_else(|failure| panic!("{failure}")), End::Quiet);
    assert_eq!(ring.host(Side::Server).received(), OCTETS);
    let took = ring.host(Side::Server).told.peer_closed.expect("it ended").since(Instant::ZERO);
    let window = ring.host(Side::Client).endpoint.window();
    let twice = ring.host(Side::Server).endpoint.stats().duplicates_received;
    (took, window.cwnd().saturating_sub(twice * u64::from(window.mss())))
}

/// A report can keep a loss from shrinking the window. It cannot make the window grow, nor fill a hole, nor keep the connection from
/// ending.
#[test]
fn forged_reports_make_nobody_faster_than_a_path_without_losses() {
    for (name, selection) in selections() {
        let runs = |forged, loss| (0..4).map(move |seed| (seed, forged, loss));
        let (fastest, _) = transfer(&selection, 0, 0.0, 0.0);
        // Losses by themselves move the window of a control that steers by delay, also up.
        let unforged = runs(0.0, 0.0).chain(runs(0.0, 0.03));
        let largest = unforged.map(|(seed, forged, loss)| transfer(&selection, seed, forged, loss).1).max().unwrap();
        for (seed, forged, loss) in runs(0.5, 0.03).chain(runs(0.5, 0.0)) {
            let (took, window) = transfer(&selection, seed, forged, loss);
            assert!(
                took + TOLERANCE >= fastest && window <= largest,
                "{name}, {loss} lost: {took} with {window}, without losses {fastest}, unforged at most {largest}"
            );
        }
    }
}
