//! Timeout policies at work: what a verdict may win after a timeout, and what it must never cost.

use crate::common::Bulk;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use whyloss_testkit::ring::{Closes, Fault, Link, Ring, Setup, Side};
use whyloss_transport::scheme::{Selection, Value};
use whyloss_transport::tcp::{ClosedWindow, Granularity, TimeoutRecord};
use whyloss_transport::timeout::{self, TimeoutOutcome};
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// A timeout policy with a differentiator that calls so large a part of the losses corruption, at random.
fn policy(timeout: &str, corruption: f64) -> Selection {
    let p = BTreeMap::from([("p".to_owned(), Value::Number(corruption))]);
    Selection {
        timeout: Some(timeout.to_owned()),
        differentiator: Some("coin".to_owned()),
        parameters: BTreeMap::from([("coin".to_owned(), p)]),
        ..Selection::default()
    }
}

fn with(mut selection: Selection, part: &str, name: &str, value: Value) -> Selection {
    selection.parameters.entry(part.to_owned()).or_default().insert(name.to_owned(), value);
    selection
}

fn at_ms(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn delay() -> Duration {
    Duration::from_millis(30)
}

/// A transfer without end from the client to the server.
fn ring(selection: &Selection, config: &Config, forward: Link) -> Ring {
    let sender = Setup { closes: Closes::Never, produces: true, ..Setup::sender(config.clone(), 1 << 40) };
    let receiver = Setup { closes: Closes::Never, ..Setup::receiver(config.clone()) };
    Ring::new(7, sender.with(selection.clone()), receiver.with(selection.clone()), forward, Link::new(delay())).unwrap()
}

const SEGMENT: u64 = 1024;

/// QualNet's Reno; a window of 16 segments that ran into congestion avoidance at 8.
fn qualnet() -> Config {
    Config { initial_ssthresh: Some(8 * SEGMENT), max_window: Some(16 * SEGMENT), ..Config::qualnet() }
}

/// The window, threshold and timeout right after the repair of a segment that is lost with its first `times` transmissions.
fn after_a_lost_segment(selection: &Selection, config: &Config, times: u32) -> (Ring, u64, u64) {
    let victim = 100 * SEGMENT;
    // The rest of its window is lost too, so that there are no duplicate acknowledgements.
    let forward = Link::new(delay()).bottleneck(BitRate::from_bps(250_000), 50).fault(Fault::Drop, move |p| {
        p.offset.is_some_and(|offset| offset == victim && p.transmission < times)
            || p.offset.is_some_and(|offset| offset > victim && offset < victim + 16 * SEGMENT) && p.transmission == 0
    });
    let mut ring = ring(selection, config, forward);
    ring.run_until(at_ms(600_000), |ring| !ring.host(Side::Client).told.outcomes.is_empty()).unwrap();
    assert!(ring.host(Side::Client).endpoint.octets_acknowledged() > victim);
    let (cwnd, ssthresh) = {
        let window = ring.host(Side::Client).endpoint.window();
        (window.cwnd() / SEGMENT, window.ssthresh() / SEGMENT)
    };
    (ring, cwnd, ssthresh)
}

#[test]
fn a_timeout_by_corruption_gives_the_window_back_and_keeps_the_back_off() {
    for (times, outcome) in [(1, TimeoutOutcome::Forgiven), (2, TimeoutOutcome::Forgiven), (3, TimeoutOutcome::Genuine)] {
        let (ring, _, ssthresh) = after_a_lost_segment(&policy("aware", 1.0), &qualnet(), times);
        let (standard, _, halved) = after_a_lost_segment(&policy("standard", 1.0), &qualnet(), times);
        let told = &ring.host(Side::Client).told;
        assert_eq!(told.timeouts.len(), times as usize);
        assert_eq!(told.outcomes, [outcome], "{times}");
        assert!(halved <= 8, "{halved}");
        if outcome == TimeoutOutcome::Forgiven {
            assert!(ssthresh >= 15, "the window of before comes back: {ssthresh}");
        } else {
            assert_eq!(ssthresh, halved, "three in a row are congestion");
        }
        // The timer backs off as without a verdict.
        let rtos = |ring: &Ring| ring.host(Side::Client).told.timeouts.iter().map(|t| (t.at, t.rto_ns)).collect::<Vec<_>>();
        assert_eq!(rtos(&ring), rtos(&standard));
        // They double. The first is left out: it heeds the latest sample, too, and the next ones do not.
        for (nth, (_, rto)) in rtos(&ring).iter().enumerate().skip(1) {
            assert_eq!(*rto, rtos(&ring)[1].1 << (nth - 1));
        }
    }
}

/// BSD's timers end with a tick of the host's clock, and one tick is no time.
#[test]
fn timers_end_with_the_clock_of_their_host() {
    for granularity in [Granularity::Net3(Duration::from_millis(500)), Granularity::FreeBsd(Duration::from_millis(500))] {
        for phase in [0, 120, 499] {
            let config = Config { granularity, clock_phase: Some(Duration::from_millis(phase)), ..qualnet() };
            let (ring, ..) = after_a_lost_segment(&policy("standard", 0.0), &config, 3);
            let timeouts = &ring.host(Side::Client).told.timeouts;
            assert_eq!(timeouts.len(), 3);
            for timeout in timeouts {
                assert_eq!(timeout.at.as_nanos() / 1_000_000 % 500, phase, "{granularity:?}: {}", timeout.at);
                let lasted = timeout.at.since(timeout.sent_at).as_nanos();
                assert!(lasted <= timeout.rto_ns + 500_000_000, "{lasted} of {}", timeout.rto_ns);
            }
            // Sent a while ago, but never less than the minimum, and less than the 3 s of ever longer round trips.
            let first = timeouts[0].at.since(timeouts[0].sent_at);
            assert!(first >= Duration::from_secs(1), "{granularity:?}, {phase}: {first}");
        }
    }
}

/// Nothing that was not lost is sent again, and the first flight is what is in the network and an initial window.
#[test]
fn a_forgiven_window_comes_back_without_a_burst() {
    for exit in ["slow-start", "paced"] {
        let selection = with(policy("aware", 1.0), "aware", "exit", Value::Word(exit.to_owned()));
        for config in [qualnet(), Config { sack: true, ..qualnet() }, Config { initial_window: 4, sack: true, ..qualnet() }] {
            let (mut ring, cwnd, _) = after_a_lost_segment(&selection, &config, 1);
            let pipe = ring.host(Side::Client).endpoint.pipe();
            assert!(pipe <= cwnd * SEGMENT);
            assert!(cwnd < 16 || !config.sack, "{exit}: {cwnd}");
            let before = ring.now();
            ring.run_until(before + Duration::from_secs(20), |ring| {
                ring.host(Side::Client).endpoint.window().cwnd() >= 16 * SEGMENT
            })
            .unwrap();
            let stats = ring.host(Side::Client).endpoint.stats();
            assert_eq!(stats.timeouts, 1, "{exit}");
            assert!(stats.retransmissions <= 16, "{exit}: {}", stats.retransmissions);
            let srtt = ring.host(Side::Client).endpoint.path().srtt.unwrap();
            if exit == "paced" && config.sack {
                assert!(ring.now().since(before) <= srtt * 2, "{}", ring.now().since(before));
            }
        }
    }
}

/// Without SACK what was outstanding at the timeout is acknowledged at once when the last hole closes. What had left the network long
/// before must not make room then for a whole window.
#[test]
fn what_has_left_the_network_makes_no_room() {
    for exit in ["slow-start", "paced"] {
        let selection = with(policy("aware", 1.0), "aware", "exit", Value::Word(exit.to_owned()));
        let selection = Selection { reaction: Some("keep".to_owned()), ..selection };
        let left = Arc::new(Mutex::new(Vec::new()));
        let log = left.clone();
        // Reno's fast recovery repairs the first of three holes; the timeout the others.
        let holes = [100, 104, 110].map(|segment| segment * SEGMENT);
        let forward = Link::new(delay()).bottleneck(BitRate::from_bps(250_000), 50).fault(Fault::Drop, move |passing| {
            log.lock().unwrap().push(passing.now);
            passing.offset.is_some_and(|offset| holes.contains(&offset)) && passing.transmission == 0
        });
        let mut ring = ring(&selection, &qualnet(), forward);
        ring.run_until(at_ms(60_000), |ring| !ring.host(Side::Client).told.outcomes.is_empty()).unwrap();
        let forgiven_at = ring.now();
        ring.run_until(forgiven_at + Duration::from_secs(5), |_| false).unwrap();
        let client = ring.host(Side::Client);
        assert_eq!(
            (client.told.outcomes.as_slice(), client.endpoint.stats().retransmissions),
            ([TimeoutOutcome::Forgiven].as_slice(), 3)
        );
        let left = left.lock().unwrap();
        let burst = left.chunk_by(|a, b| a == b).filter(|burst| burst[0] >= forgiven_at).map(<[_]>::len).max().unwrap();
        // Two segments that F-RTO let out, an initial window, and what slow start adds for an acknowledgement.
        assert!(burst <= 5, "{exit}: {burst}");
        assert!(client.endpoint.window().cwnd() >= 16 * SEGMENT, "the window of before comes back");
    }
}

/// With a differentiator that never says corruption, every segment leaves when it would leave by the standard, unless timestamps prove
/// that nothing was lost.
#[test]
fn without_a_verdict_it_is_the_standard_policy_step_by_step() {
    let modern = Config::modern();
    let without_timestamps = Config { timestamps: false, ..modern.clone() };
    let mut timeouts = 0;
    for config in [modern, without_timestamps, qualnet(), Config::ns2(), Config::ns2_2001(), Config::freebsd45()] {
        for seed in 0..6 {
            let run = |timeout: &str| {
                let forward = Link::new(delay()).bottleneck(BitRate::from_bps(5_000_000), 50).fault_randomly(Fault::Drop, 0.05);
                let sender = Setup::sender(config.clone(), 300_000).with(policy(timeout, 0.0));
                let receiver = Setup::receiver(config.clone());
                let mut ring = Ring::new(seed, sender, receiver, forward, Link::new(delay())).unwrap();
                ring.run().unwrap();
                (ring.digest(), *ring.host(Side::Client).endpoint.stats())
            };
            let (standard, aware) = (run("standard"), run("aware"));
            if aware.1.spurious_timeouts == 0 {
                assert_eq!(standard, aware);
                timeouts += aware.1.timeouts;
            } else {
                assert!(config.timestamps);
            }
        }
    }
    assert!(timeouts > 30, "{timeouts}");
}

/// How many segments the client sends into a path that is dead from second 3 to 63, not counting those that left while the last
/// acknowledgements came in, and the expiries.
fn sent_into_an_outage(selection: &Selection, config: &Config) -> (u64, Vec<TimeoutRecord>) {
    let (from, until) = (at_ms(3000), at_ms(63_000));
    let sent = Arc::new(AtomicU64::new(0));
    let count = sent.clone();
    let forward =
        Link::new(delay()).bottleneck(BitRate::from_bps(1_000_000), 30).down(from, until).fault(Fault::Drop, move |passing| {
            let dead = passing.now >= from + Duration::from_millis(700) && passing.now < until;
            count.fetch_add(u64::from(dead), Ordering::Relaxed);
            false
        });
    let mut ring = ring(selection, config, forward);
    ring.run_until(until, |_| false).unwrap();
    let expiries = ring.host(Side::Client).told.timeouts.iter().filter(|timeout| timeout.at >= from).cloned().collect();
    (sent.load(Ordering::Relaxed), expiries)
}

#[test]
fn a_dead_path_is_hammered_no_faster_than_by_the_standard() {
    for config in [Config::modern(), qualnet(), Config::freebsd45()] {
        // Nothing is lost before.
        let config = Config { max_window: Some(16 * SEGMENT), max_retransmissions: None, ..config };
        let (standard, expiries) = sent_into_an_outage(&policy("standard", 1.0), &config);
        assert!((5..12).contains(&expiries.len()), "{expiries:?}");
        for part in timeout::TABLE {
            let (sent, own) = sent_into_an_outage(&policy(part.name, 1.0), &config);
            let at = |expiries: &[TimeoutRecord]| expiries.iter().map(|expiry| expiry.at).collect::<Vec<_>>();
            match part.name {
                "fixed-rto" => {
                    let more = own.len() - expiries.len();
                    assert!((1..=3).contains(&more), "{more} more");
                }
                "judged" => {
                    assert_eq!(at(&own), at(&expiries), "its timer is the standard one");
                    let window = 17 * own.len() as u64;
                    assert!(standard < sent && sent <= window, "{sent} segments of at most a window an expiry, {window}");
                }
                "probing" => {
                    // It asks once a timeout, which does not grow, and data waits.
                    let every = 60.0 / config.min_rto.as_secs_f64();
                    assert!(own.is_empty() && (standard..=every as u64).contains(&sent), "{sent} probes of {every}");
                }
                _ => assert_eq!((sent, at(&own)), (standard, at(&expiries)), "{}", part.name),
            }
        }
        let growing = with(policy("probing", 1.0), "probing", "growth", Value::Number(2.0));
        let (sent, own) = sent_into_an_outage(&growing, &config);
        assert!(own.is_empty() && sent <= standard + 1, "{sent} probes, {standard} retransmissions");
        // Without its guard the path is asked every two timeouts for as long as it is dead.
        let unguarded = with(policy("fixed-rto", 0.0), "fixed-rto", "limit", Value::Number(0.0));
        let (_, own) = sent_into_an_outage(&unguarded, &config);
        let all = 60.0 / (1e-9 * own[1].rto_ns as f64);
        assert!((all - 1.0..=all + 1.0).contains(&(own.len() as f64)), "{} of {all}", own.len());
    }
}

/// Two seconds in which nothing arrives and nothing is lost.
#[test]
fn a_delay_spike_is_undone() {
    let config = Config { rack: false, tlp: false, undo: false, min_rto: Duration::from_millis(1200), ..Config::modern() };
    let config = Config { max_window: Some(100_000), ..config };
    let spike = at_ms(700);
    let resume = spike + Duration::from_secs(2);
    // With timestamps whatever the verdict; without them only if the verdict lets F-RTO have its way.
    for (timestamps, corruption, found) in [(true, 0.0, true), (true, 1.0, true), (false, 1.0, true), (false, 0.0, false)] {
        let config = Config { timestamps, ..config.clone() };
        let mut forward = Link::new(delay());
        for step in 0..2000 {
            let at = spike + Duration::from_millis(step);
            let hold = Fault::Delay(resume.since(at));
            forward = forward.fault(hold, move |passing| at <= passing.now && passing.now < at + Duration::from_millis(1));
        }
        let mut ring = ring(&policy("aware", corruption), &config, forward);
        ring.run_until(at_ms(4000), |_| false).unwrap();
        let client = ring.host(Side::Client);
        let expected = if found { TimeoutOutcome::Spurious } else { TimeoutOutcome::Genuine };
        assert_eq!(client.told.outcomes, [expected], "timestamps {timestamps}, corruption {corruption}");
        assert_eq!(client.endpoint.window().cwnd() == 100_000, found, "timestamps {timestamps}, corruption {corruption}");
        if found {
            assert_eq!(client.endpoint.stats().retransmissions, 1);
        }
    }
}

/// The most expiries in `span` if the timer starts from `rto` and doubles, up to `max`.
fn most_expiries(mut span: f64, rto: f64, max: f64) -> u64 {
    let (mut expiries, mut wait) = (0, rto);
    while span >= wait {
        span -= wait;
        expiries += 1;
        wait = (2.0 * wait).min(max);
    }
    expiries
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the verdicts, the policy and the losses before: a path that has died sees no more than one segment for each time that a
    /// doubling timer can expire (and one tail probe). Only of `judged` it sees a window; the probes of `probing` are told to grow apart.
    #[test]
    fn verdicts_never_quicken_the_timer(
        part in select(timeout::TABLE.iter().map(|part| part.name).filter(|name| !matches!(*name, "fixed-rto" | "judged")).collect::<Vec<_>>()),
        corruption in 0.0..=1.0f64,
        seed in 0..1_000_000u32,
        loss in 0.0..0.1f64,
        dies_ms in 500..8000u64,
        profile in select(vec!["modern", "qualnet", "freebsd45", "ns2"]),
    ) {
        let config = Config::profile(profile).unwrap();
        let selection = with(policy(part, corruption), "coin", "seed", Value::Number(f64::from(seed)));
        let selection = if part == "probing" { with(selection, part, "growth", Value::Number(2.0)) } else { selection };
        let (from, until) = (at_ms(dies_ms), at_ms(dies_ms + 60_000));
        let sent = Arc::new(AtomicU64::new(0));
        let count = sent.clone();
        let quiet = Duration::from_secs(1);
        let forward = Link::new(delay())
            .bottleneck(BitRate::from_bps(2_000_000), 30)
            .fault_randomly(Fault::Drop, loss)
            .down(from, until)
            .fault(Fault::Drop, move |passing| {
                count.fetch_add(u64::from(passing.now >= from + quiet), Ordering::Relaxed);
                false
            });
        let mut ring = ring(&selection, &config, forward);
        ring.run_until(until, |_| false).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        let most = most_expiries(60.0, config.min_rto.as_secs_f64(), config.max_rto.as_secs_f64()) + 1;
        let sent = sent.load(Ordering::Relaxed);
        prop_assert!(sent <= most, "{sent} segments, at most {most}");
    }
}

fn like_five_hops(config: Config, selection: Selection, loss: f64) -> Bulk {
    let (rate, rtt, lasts) = (BitRate::from_bps(250_000), Duration::from_millis(60), Duration::from_secs(200));
    Bulk { config, selection, rate, rtt, queue: 50, loss, lasts }
}

/// QualNet's Reno, whose timers tick five times as often.
fn fine() -> Config {
    Config { granularity: Granularity::FreeBsd(Duration::from_millis(100)), ..Config::qualnet() }
}

/// What the policies get out of a path like five hops of 2 Mbit/s: 250 kbit/s, 60 ms, 16 segments of 1024 octets. `cargo test -p
/// whyloss-testkit --test timeouts -- --ignored --nocapture` prints it.
#[test]
#[ignore = "a measurement"]
fn goodput_under_erasure() {
    let modern = Config { mss: 1024 + 12, max_window: Some(16 * SEGMENT), receive_buffer: 16_384, ..Config::modern() };
    for (profile, config) in [("qualnet", Config::qualnet()), ("qualnet, 100 ms ticks", fine()), ("modern", modern)] {
        println!("{profile}: goodput in kbit/s (timeouts, forgiven) in 200 s, mean of 10 runs");
        for loss in [0.01, 0.02, 0.03, 0.04, 0.05, 0.06] {
            print!("{:>3.0} %", loss * 100.0);
            for part in timeout::TABLE {
                for reaction in ["reduce", "keep"] {
                    let selection = Selection { reaction: Some(reaction.to_owned()), ..policy(part.name, 1.0) };
                    let bulk = like_five_hops(config.clone(), selection, loss);
                    let runs: Vec<_> = (0..10).map(|run| bulk.run(run)).collect();
                    let mean = |of: &dyn Fn(usize) -> f64| (0..runs.len()).map(of).sum::<f64>() / runs.len() as f64;
                    let goodput = mean(&|run| runs[run].goodput_bps) / 1000.0;
                    let timeouts = mean(&|run| runs[run].sender.unwrap().timeouts as f64);
                    let forgiven = mean(&|run| runs[run].sender.unwrap().forgiven_timeouts as f64);
                    print!(" | {}/{reaction} {goodput:.1} ({timeouts:.1}, {forgiven:.1})", part.name);
                }
            }
            println!();
        }
    }
}

/// How long the timeouts of that path are. Printed with it.
#[test]
#[ignore = "a measurement"]
fn timeouts_under_erasure() {
    for (profile, config) in [("qualnet", Config::qualnet()), ("qualnet, 100 ms ticks", fine())] {
        for (part, reaction) in [("standard", "reduce"), ("standard", "keep"), ("aware", "reduce"), ("aware", "keep")] {
            let selection = Selection { reaction: Some(reaction.to_owned()), ..policy(part, 1.0) };
            let bulk = like_five_hops(config.clone(), selection, 0.05);
            let mut first: BTreeMap<u64, u32> = BTreeMap::new();
            let mut later = 0;
            for row in (0..10).flat_map(|run| bulk.records(run, |_| ()).timeouts) {
                if row.record.consecutive == 1 {
                    *first.entry(row.record.rto_ns / 1_000_000).or_default() += 1;
                } else {
                    later += 1;
                }
            }
            let number: u32 = first.values().sum();
            let mean = first.iter().map(|(ms, n)| *ms as f64 * f64::from(*n)).sum::<f64>() / f64::from(number);
            println!("{profile}, {part}/{reaction}, 5 %, 10 runs: {number} first expiries of {mean:.0} ms on average, {later} later; by ms: {first:?}");
        }
    }
}

/// When data left after the timer had expired over a path that was down, in milliseconds after that: the window of 16 segments stays by the verdict.
fn after_a_kept_timeout(resume: &str) -> Vec<f64> {
    let config = Config { max_window: Some(16 * 1448), closed_window: ClosedWindow::Retransmit, ..Config::freebsd45() };
    let selection = with(policy("judged", 1.0), "judged", "resume", Value::Word(resume.to_owned()));
    let (from, until) = (at_ms(3000), at_ms(3100));
    let left = Arc::new(Mutex::new(Vec::new()));
    let log = left.clone();
    let forward = Link::new(delay()).down(from, until).fault(Fault::Drop, move |passing| {
        if passing.offset.is_some() && passing.now > until {
            log.lock().unwrap().push(passing.now);
        }
        false
    });
    let mut ring = ring(&selection, &config, forward);
    ring.run_until(at_ms(6000), |_| false).unwrap();
    let timeouts = &ring.host(Side::Client).told.timeouts;
    assert_eq!(timeouts.len(), 1, "{timeouts:?}");
    let expired = timeouts[0].at;
    let left = left.lock().unwrap();
    left.iter().filter(|at| **at >= expired).map(|at| at.since(expired).as_secs_f64() * 1000.0).collect()
}

/// What clocks a kept window out: nothing, a timer, or acknowledgements, the first of which comes a round trip of 60 ms later.
#[test]
fn a_kept_window_goes_on_as_it_is_told_to() {
    let before = |left: &[f64], ms: f64| left.iter().filter(|at| **at < ms).count();
    let [burst, paced, clocked] = ["burst", "paced", "clocked"].map(after_a_kept_timeout);
    assert_eq!(before(&burst, 0.001), 16, "all at once: {:?}", &burst[..20]);
    assert_eq!(before(&burst, 59.0), 16);
    assert_eq!(before(&paced, 0.001), 1);
    // 66 ms by the host's clock, a sixteenth of it apart.
    assert!((14..=16).contains(&before(&paced, 60.0)), "one window in a smoothed round trip: {:?}", &paced[..20]);
    let gaps = paced[..14].windows(2).map(|pair| pair[1] - pair[0]);
    assert!(gaps.clone().all(|gap| (1.0..10.0).contains(&gap)), "evenly: {:?}", gaps.collect::<Vec<_>>());
    assert!((1..=2).contains(&before(&clocked, 59.0)), "nothing clocks more out: {:?}", &clocked[..20]);
    assert!((2..=6).contains(&(before(&clocked, 119.0) - before(&clocked, 59.0))), "as in slow start: {:?}", &clocked[..20]);
}
