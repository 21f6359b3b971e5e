//! TCP-Real's waves at work: what forms them decides whether it measures the path or itself.

mod common;

use common::Bulk;
use std::collections::BTreeMap;
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::{BitRate, Config, Duration};

/// What TCP-Real, with these waves and this reaction, or Reno gets out of 10 Mbit/s in Mbit/s, by ns-2's TCP with a window of 200 segments.
fn goodput(scheme: &str, waves: Option<&str>, reaction: Option<&str>, rtt_ms: u64, loss: f64) -> f64 {
    let parameters = waves.map(|waves| BTreeMap::from([("waves".to_owned(), Value::Word(waves.to_owned()))]));
    let bulk = Bulk {
        config: Config { receive_buffer: 200_000, ..Config::ns2() },
        selection: Selection {
            scheme: Some(scheme.to_owned()),
            reaction: reaction.map(str::to_owned),
            parameters: parameters.map(|given| ("tcp-real".to_owned(), given)).into_iter().collect(),
            ..Selection::default()
        },
        rate: BitRate::from_bps(10_000_000),
        rtt: Duration::from_millis(rtt_ms),
        queue: 50,
        loss,
        lasts: Duration::from_secs(60),
    };
    bulk.goodput(2) / 1e6
}

/// On a path of its own the rate of a wave is the link's, whatever the window: nothing slows the window's growth. That is only so if a wave
/// does not span the time in which nothing leaves.
#[test]
fn alone_and_without_errors_waves_come_at_the_rate_of_the_link() {
    for rtt in [20, 40, 70, 200] {
        // What is dropped at the end of a full queue halves the window as Reno's, so that the waves alone make the difference.
        let real = |waves| goodput("tcp-real", waves, Some("reduce"), rtt, 0.0);
        let (reno, train) = (goodput("reno", None, None, rtt, 0.0), real(None));
        assert!(train > 0.95 * reno, "{rtt} ms: {train:.2} of {reno:.2} Mbit/s");
        if rtt > 50 {
            let window = real(Some("cwnd"));
            assert!(
                window < 0.5 * reno,
                "{rtt} ms: a window that takes a round trip measures throughput: {window:.2} of {reno:.2} Mbit/s"
            );
        }
    }
}

/// A whole window that leaves at once and waits for all of its acknowledgements carries W in a round trip and W transmissions: of 26 to 51 segments,
/// where the queue overflows, 38 in 20 ms + 38 * 0.8 ms, or 6 Mbit/s, less what repairs cost.
#[test]
fn waves_that_are_held_cost_the_idle_part_of_a_round_trip() {
    let hold = goodput("tcp-real", Some("hold"), Some("reduce"), 20, 0.0);
    assert!((4.0..6.5).contains(&hold), "{hold:.2} Mbit/s");
}

#[test]
fn waves_tell_errors_from_congestion_unless_they_are_too_small() {
    let reno = goodput("reno", None, None, 70, 0.01);
    let [train, burst] = [None, Some("burst")].map(|waves| goodput("tcp-real", waves, None, 70, 0.01));
    assert!(train > 2.0 * reno, "{train:.2}, Reno {reno:.2} Mbit/s");
    assert!(burst < 1.25 * reno, "without five segments a wave it is Reno: {burst:.2}, Reno {reno:.2} Mbit/s");
}
