//! `auto` by what it does: how much of a link it carries whatever befalls the packets, how long its queue is, what it leaves to CUBIC.

use crate::common::{product, Bulk, SHARE};
use whyloss_sim::{ChannelSpec, Effect, Errors};
use whyloss_testkit::ring::{Fault, Link, Passing, Ring, Setup, Side};
use whyloss_transport::scheme::Selection;
use whyloss_transport::{BitRate, Config, Duration, Instant};

fn bulk(scheme: &str, mbps: u64, rtt_ms: u64, queue: u32, loss: f64) -> Bulk {
    Bulk {
        config: Config { receive_buffer: 64 << 20, send_buffer: 64 << 20, ..Config::linux() },
        selection: Selection::scheme(scheme),
        rate: BitRate::from_bps(mbps * 1_000_000),
        rtt: Duration::from_millis(rtt_ms),
        queue,
        loss,
        lasts: Duration::from_secs(10) + Duration::from_millis(50 * rtt_ms),
    }
}

/// The share of the link that is carried, and what waits on average in milliseconds.
fn carried(of: &Bulk, effect: Effect) -> (f64, f64) {
    let records = of.records(0, |link| link.channel.effect = effect);
    let rate = of.rate.as_bps() as f64;
    (records.flows[0].goodput_bps / (rate * SHARE), records.links[0].mean_queue_packets * 12e6 / rate)
}

#[test]
fn alone_it_fills_a_path_and_keeps_its_queue_short() {
    for (mbps, rtt_ms) in [(10, 10), (10, 50), (100, 50), (100, 200)] {
        let queue = ((4.0 * product(mbps, rtt_ms)) as u32).max(20);
        let (share, waiting) = carried(&bulk("auto", mbps, rtt_ms, queue, 0.0), Effect::Erase);
        assert!(share > 0.9, "{mbps} Mbit/s, {rtt_ms} ms: {share}");
        assert!(waiting < 7.0, "{mbps} Mbit/s, {rtt_ms} ms: {waiting} ms");
    }
}

#[test]
fn damage_and_erasure_cost_little_more_than_what_they_take() {
    for effect in [Effect::Damage, Effect::Erase] {
        for (mbps, rtt_ms, loss, least) in
            [(10, 20, 0.01, 0.9), (100, 50, 0.01, 0.85), (10, 20, 0.05, 0.8), (100, 50, 0.05, 0.75)]
        {
            let queue = product(mbps, rtt_ms) as u32;
            let share = |scheme| carried(&bulk(scheme, mbps, rtt_ms, queue, loss), effect).0;
            let (ours, cubic) = (share("auto"), share("cubic"));
            assert!(ours > least && cubic < 0.8, "{effect:?}, {mbps} Mbit/s, {rtt_ms} ms, {loss}: {ours} beside {cubic}");
        }
    }
}

#[test]
fn a_queue_shorter_than_a_burst_does_not_pass_for_congestion_where_packets_are_corrupted() {
    let paths = [(100, 5, 0.01, 1.05), (100, 5, 0.05, 1.05), (100, 50, 0.01, 0.95), (10, 20, 0.01, 0.95)];
    for (effect, (mbps, rtt_ms, loss, least)) in paths.map(|path| [(Effect::Damage, path), (Effect::Erase, path)]).concat() {
        let share = |scheme| {
            let mut of = bulk(scheme, mbps, rtt_ms, 5, loss);
            of.config.pacing_burst = Duration::from_millis(1);
            let runs = (0..3).map(|run| of.records(run, |link| link.channel.effect = effect).flows[0].goodput_bps);
            runs.sum::<f64>() / (3.0 * of.rate.as_bps() as f64 * SHARE)
        };
        let (ours, bbr) = (share("auto"), share("bbr"));
        assert!(ours > least * bbr, "{effect:?}, {mbps} Mbit/s, {rtt_ms} ms, {loss}: {ours} beside {bbr}");
    }
}

/// Linux paces after ten segments, of which a short queue drops some.
#[test]
fn what_a_short_queue_drops_of_the_first_segments_does_not_end_slow_start() {
    for (mbps, rtt_ms) in [(10, 50), (10, 200), (100, 50), (100, 200)] {
        let share = |unpaced| {
            let mut of = bulk("auto", mbps, rtt_ms, 5, 0.0);
            of.lasts = Duration::from_millis(25 * rtt_ms);
            of.config.unpaced_segments = unpaced;
            carried(&of, Effect::Erase).0
        };
        let (at_once, paced) = (share(10), share(0));
        assert!(at_once > 0.9 * paced, "{mbps} Mbit/s, {rtt_ms} ms: {at_once} beside {paced}");
    }
}

/// How long a megabyte takes when the segments with these numbers are lost on the way.
fn megabyte(scheme: &str, mbps: u64, rtt_ms: u64, queue: usize, lost: &'static [u64]) -> Duration {
    const OCTETS: u64 = 1_000_000;
    let way = || Link::new(Duration::from_micros(500 * rtt_ms));
    let forward = way()
        .bottleneck(BitRate::from_bps(mbps * 1_000_000), queue)
        .fault(Fault::Drop, |passing: &Passing| passing.data_index.is_some_and(|index| lost.contains(&index)));
    let sender = Setup::sender(Config::linux(), OCTETS).with(Selection::scheme(scheme));
    let mut ring = Ring::new(1, sender, Setup::receiver(Config::linux()), forward, way()).unwrap();
    ring.run_until(Instant::from_nanos(60_000_000_000), |ring| ring.host(Side::Server).received() == OCTETS).unwrap();
    ring.now().since(Instant::ZERO)
}

#[test]
fn a_stray_loss_does_not_end_slow_start() {
    let megabyte = |lost| megabyte("auto", 100, 50, 417, lost);
    let whole = megabyte(&[]);
    for lost in [&[12], &[30], &[100], &[300], &[12, 100]] as [&[u64]; 5] {
        let took = megabyte(lost);
        assert!(took < whole * 5 / 4, "{lost:?}: {took:?} instead of {whole:?}");
    }
}

/// SRTT remembers the queue that slow start filled long after it is gone.
#[test]
fn the_link_is_not_left_idle_where_a_queue_has_become_shorter() {
    for (mbps, rtt_ms, queue) in [(1, 20, 7), (1, 200, 17), (10, 5, 17), (10, 20, 17), (10, 20, 67)] {
        let took = |scheme| megabyte(scheme, mbps, rtt_ms, queue, &[]).as_secs_f64();
        let (ours, cubic) = (took("auto"), took("cubic"));
        assert!(ours < 1.01 * cubic, "{mbps} Mbit/s, {rtt_ms} ms, {queue} packets: {ours} beside {cubic} s");
    }
}

/// What a flow of `scheme` and one of CUBIC that begins 120 to 210 ms later get, in bit/s: means of four runs.
fn beside_one(scheme: &str, mbps: u64, rtt_ms: u64, queue: u32) -> [f64; 2] {
    let of = Bulk { lasts: Duration::from_secs(40), ..bulk(scheme, mbps, rtt_ms, queue, 0.0) };
    let runs = [120, 150, 180, 210].map(|after| of.side_by_side(5, &[scheme, "cubic"], Duration::from_millis(after)));
    [0, 1].map(|flow| runs.iter().map(|records| records.flows[flow].goodput_bps).sum::<f64>() / runs.len() as f64)
}

/// What flows of `scheme` get beside four CUBIC flows at 10 Mbit/s and 20 ms, in Mbit/s.
fn beside_four(scheme: &str, queue: u32, seed: u64) -> f64 {
    let of = Bulk { lasts: Duration::from_secs(30), ..bulk(scheme, 10, 20, queue, 0.0) };
    let records = of.side_by_side(seed, &[scheme, "cubic", "cubic", "cubic", "cubic"], Duration::from_millis(40));
    records.flows[0].goodput_bps / 1e6
}

#[test]
fn it_does_not_starve_beside_four_cubic_flows() {
    for queue in [5, 8, 17, 67] {
        let (mut fair, mut ours) = (0.0, 0.0);
        for seed in 0..4 {
            fair += beside_four("cubic", queue, seed);
            ours += beside_four("auto", queue, seed);
        }
        assert!(ours > 0.8 * fair, "queue of {queue}: {ours}, CUBIC {fair}, of four runs");
    }
}

#[test]
fn a_neighbour_with_cubic_keeps_its_share() {
    // Beside others it sends in pairs and by acknowledgements on slow links. In single segments and evenly paced it leaves 0.74 at 10 Mbit/s and 20 ms
    // with one product, and 0.64 at 4 Mbit/s with one.
    let paths =
        [(10, 20, 17, 0.85), (10, 20, 67, 0.95), (10, 50, 42, 0.88), (4, 20, 7, 0.72), (4, 50, 17, 0.88), (20, 20, 33, 0.88)];
    for (mbps, rtt_ms, queue, kept) in paths {
        let ([_, fair], [_, ours]) = (beside_one("cubic", mbps, rtt_ms, queue), beside_one("auto", mbps, rtt_ms, queue));
        assert!(ours > kept * fair, "{mbps} Mbit/s, {rtt_ms} ms, {queue}: {ours}, {fair} beside CUBIC");
    }
}

/// What four CUBIC flows get beside one of `scheme` at 10 Mbit/s and 20 ms where a share of the packets is damaged, in Mbit/s: the mean of three runs.
fn left_to_four(scheme: &str, queue: u32, damaged: f64) -> f64 {
    let of = Bulk { lasts: Duration::from_secs(30), ..bulk(scheme, 10, 20, queue, 0.0) };
    let flows = [scheme, "cubic", "cubic", "cubic", "cubic"].map(|scheme| (scheme, Selection::scheme(scheme)));
    let channel = ChannelSpec { errors: Errors::Packets { probability: damaged }, effect: Effect::Damage };
    let of_run = |seed| {
        let late = Duration::from_micros(1200);
        let records = of.flows_side_by_side(seed, &flows, Duration::from_millis(40), late, |link| link.channel = channel.clone());
        records.flows[1..].iter().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6
    };
    (0..3).map(of_run).sum::<f64>() / 3.0
}

#[test]
fn four_neighbours_whose_windows_damage_bounds_lose_half_of_what_bbr_takes_at_most() {
    // Bound by damage they leave a long queue empty: a flow that grew as CUBIC would take what BBR does.
    for (queue, damaged) in [(17, 0.02), (17, 0.05), (67, 0.02), (67, 0.05), (67, 0.1)] {
        let [fair, ours, bbr] = ["cubic", "auto", "bbr"].map(|scheme| left_to_four(scheme, queue, damaged));
        println!("{queue} packets, {damaged} damaged: {fair:.2} Mbit/s beside CUBIC, {ours:.2} beside auto, {bbr:.2} beside BBR");
        assert!(fair - ours < (fair - bbr) / 2.0, "{queue} packets, {damaged} damaged: {fair}, {ours}, {bbr}");
    }
}

#[test]
fn a_neighbour_that_grows_slowly_does_not_take_its_share() {
    // A first flow with CUBIC keeps more than half of the link. With long queues there is less for it: docs/what-to-use/grid.md. At 10 Mbit/s it has half.
    for (mbps, rtt_ms, queue, kept) in [(10, 20, 67, 0.82), (100, 20, 167, 0.8), (50, 50, 208, 0.6), (100, 50, 208, 0.5)] {
        let ([fair, _], [ours, _]) = (beside_one("cubic", mbps, rtt_ms, queue), beside_one("auto", mbps, rtt_ms, queue));
        assert!(ours > kept * fair, "{mbps} Mbit/s, {rtt_ms} ms, {queue}: {ours}, {fair} with CUBIC");
    }
}
