//! What middleboxes at a base station are worth: the golden table of one transfer to a mobile host, for each that helps.
//!
//! It is a snapshot. A change in a number is not a mistake by itself, but somebody has to look at it and say why.

use std::fmt::Write;
use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, Middlebox, MiddleboxKind, Outage, QueueLimit, Records,
    TcpFlow,
};
use whyloss_transport::kit::Value;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::ClosedWindow;
use whyloss_transport::{BitRate, Config, Duration, Instant};

const RUNS_ON: ClosedWindow = ClosedWindow::Retransmit;

/// A fixed host, its wired way of 40 ms there and back, a base station, and a mobile host 10 ms there and back from it.
#[derive(Clone, Copy, Debug)]
struct World {
    scheme: &'static str,
    middlebox: Option<&'static str>,
    /// Share of packets that the wireless link loses in the direction of the data.
    loss: f64,
    /// The mobile host sends, instead of the fixed one.
    up: bool,
    /// The wireless link goes down for 2 s every 10 s.
    outages: bool,
    /// What the sender does when its window is closed.
    closed_window: ClosedWindow,
    run: u64,
}

/// An intact link and a mobile host that receives.
const PLAIN: World =
    World { scheme: "newreno", middlebox: None, loss: 0.0, up: false, outages: false, closed_window: RUNS_ON, run: 0 };

impl World {
    fn run(self) -> Records {
        self.run_as(&Config::modern(), &[])
    }

    /// With hosts of this configuration, and these parameters of the middlebox.
    fn run_as(self, config: &Config, parameters: &[(&str, Value)]) -> Records {
        let mut builder = Builder::new(7, self.run);
        let (fixed, station, mobile) = (builder.host("fixed"), builder.router("station"), builder.host("mobile"));
        let link = |mbps: u64, ms: u64, loss: f64| LinkSpec {
            rate: BitRate::from_bps(mbps * 1_000_000),
            delay: Duration::from_millis(ms),
            // A sender that does not reduce fills any queue; what it loses there nobody keeps, and what a mobile host loses in its own is to
            // the base station no other than what the link loses.
            queue: QueueLimit::Packets(if self.up || self.scheme == "selective" { 2000 } else { 50 }),
            channel: ChannelSpec { errors: Errors::Packets { probability: loss }, effect: Effect::Erase },
            ..LinkSpec::default()
        };
        builder.link(fixed, station, link(10, 20, 0.0), link(10, 20, 0.0));
        let air = |loss: f64| {
            let lasts = Duration::from_secs(2);
            let once = Outage::once(Instant::ZERO + Duration::from_secs(10), lasts);
            let outage = Outage { every: Some(Duration::from_secs(10)), ..once };
            LinkSpec { outage: Some(outage).filter(|_| self.outages).into_iter().collect(), ..link(2, 5, loss) }
        };
        let [down, up] = if self.up { [0.0, self.loss] } else { [self.loss, 0.0] };
        let wireless = builder.link(station, mobile, air(down), air(up));
        if let Some(kind) = self.middlebox {
            let kind = MiddleboxKind::named(kind).expect("it is in the table");
            let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            builder.middlebox(Middlebox { parameters, ..Middlebox::new(station, wireless, kind) });
        }
        let end = || {
            let mut config = Config { closed_window: self.closed_window, ..config.clone() };
            let parts = Selection::scheme(self.scheme).build(&mut config).expect("it is in the table");
            End::new(config, parts)
        };
        let (start, amount) = (Instant::ZERO, Amount::Unlimited);
        let (from, to) = if self.up { (mobile, fixed) } else { (fixed, mobile) };
        builder.tcp(TcpFlow { name: "flow".into(), from, to, start, amount, sender: end(), receiver: end() });
        builder.sample_every(Duration::from_millis(100));
        let mut simulation = builder.build().expect("the network fits together");
        let limits = Limits { until: Some(start + Duration::from_secs(100)) };
        simulation.run(&limits, |_| ControlFlow::Continue(())).expect("it runs");
        simulation.into_records()
    }
}

/// Mean goodput in kbit/s over three runs, retransmissions and timeouts of the sender, and the most memory of a middlebox in octets.
fn outcome(world: World) -> (f64, u64, u64, u64) {
    let (mut goodput, mut resent, mut timeouts, mut memory) = (0.0, 0, 0, 0);
    for run in 0..3 {
        let records = World { run, ..world }.run();
        let sender = records.flows[0].sender.expect("it is TCP");
        goodput += records.flows[0].goodput_bps / 3000.0;
        resent += sender.retransmissions;
        timeouts += sender.timeouts;
        memory = memory.max(records.middleboxes.iter().map(|own| own.peak.octets).max().unwrap_or(0));
        assert!(records.packets.balanced());
    }
    (goodput, resent, timeouts, memory)
}

const KINDS: [Option<&str>; 7] =
    [None, Some("packet-control"), Some("snoop"), Some("snack-snoop"), Some("wtcp-proxy"), Some("i-tcp"), Some("m-tcp")];

#[test]
fn every_middlebox_keeps_its_worth() {
    for scheme in ["newreno", "sack"] {
        let mut out = format!(
            "{scheme} to a mobile host, 2 Mbit/s, 3 runs of 100 s\n  loss middlebox        kbit/s  resent timeouts  memory B"
        );
        for loss in [0.0, 0.005, 0.02, 0.05] {
            for middlebox in KINDS {
                let (goodput, resent, timeouts, memory) = outcome(World { scheme, middlebox, loss, ..PLAIN });
                let name = middlebox.unwrap_or("none");
                write!(out, "\n{:>5.1}% {name:<15} {goodput:>7.0} {resent:>7} {timeouts:>8} {memory:>9}", loss * 100.0).unwrap();
            }
        }
        insta::assert_snapshot!(format!("base_station_{scheme}"), out);
    }
}

#[test]
fn every_middlebox_keeps_its_worth_through_outages() {
    let mut out = "newreno to a mobile host that is away for 2 s of 10, 3 runs of 100 s\nmiddlebox        kbit/s  resent timeouts  memory B".to_owned();
    let persisting = [None, Some("m-tcp")].map(|middlebox| (middlebox, ClosedWindow::Persist));
    for (middlebox, closed_window) in KINDS.map(|middlebox| (middlebox, RUNS_ON)).into_iter().chain(persisting) {
        let world = World { scheme: "newreno", middlebox, loss: 0.0, outages: true, closed_window, ..PLAIN };
        let (goodput, resent, timeouts, memory) = outcome(world);
        let persists = if closed_window == ClosedWindow::Persist { ", persist" } else { "" };
        let name = format!("{}{persists}", middlebox.unwrap_or("none"));
        write!(out, "\n{name:<15} {goodput:>7.0} {resent:>7} {timeouts:>8} {memory:>9}").unwrap();
    }
    insta::assert_snapshot!("base_station_outages", out);
}

/// Data of the mobile host, which the base station asks for: both ends speak SNACK.
#[test]
fn every_middlebox_keeps_its_worth_for_a_mobile_sender() {
    let mut out =
        "snack from a mobile host, 2 Mbit/s, 3 runs of 100 s\n  loss middlebox        kbit/s  resent timeouts  memory B"
            .to_owned();
    for loss in [0.005, 0.02, 0.05] {
        for middlebox in [None, Some("snoop"), Some("snack-snoop")] {
            let (goodput, resent, timeouts, memory) = outcome(World { scheme: "snack", middlebox, loss, up: true, ..PLAIN });
            let name = middlebox.unwrap_or("none");
            write!(out, "\n{:>5.1}% {name:<15} {goodput:>7.0} {resent:>7} {timeouts:>8} {memory:>9}", loss * 100.0).unwrap();
        }
    }
    insta::assert_snapshot!("base_station_up", out);
}

#[test]
fn a_mobile_sender_is_asked_by_the_base_station() {
    let world = World { scheme: "snack", middlebox: None, loss: 0.02, up: true, ..PLAIN };
    let (plain, helped) = (world.run(), World { middlebox: Some("snack-snoop"), ..world }.run());
    let sender = |records: &Records| records.flows[0].sender.expect("it is TCP");
    assert!(helped.flows[0].goodput_bps > 1.2 * plain.flows[0].goodput_bps);
    assert!(4 * sender(&helped).reductions < sender(&plain).reductions);
    // Duplicates end at the station, and nearly all repairs are those that somebody has asked for.
    let (asked, all) = (sender(&helped).snack_retransmissions, sender(&helped).retransmissions);
    assert!(helped.middleboxes[0].sent > 200 && asked > 200 && 10 * asked > 9 * all, "{asked} of {all}");
    assert!(helped.middleboxes[0].suppressed > 200);
}

#[test]
fn a_base_station_that_hears_of_its_link_closes_the_sender_s_window() {
    let world = World { scheme: "newreno", middlebox: Some("m-tcp"), loss: 0.0, outages: true, ..PLAIN };
    let records = world.run();
    // Nine outages: the window is closed and opened in each, and probes are answered.
    let sent = records.middleboxes[0].sent;
    assert!((18..1000).contains(&sent), "{sent}");
    let steady = World { outages: false, ..world }.run();
    assert!(steady.middleboxes[0].sent < sent / 2, "{} without outages", steady.middleboxes[0].sent);
}

#[test]
fn a_sender_that_persists_loses_no_window_while_its_mobile_host_is_away() {
    for scheme in ["newreno", "sack"] {
        let closed_window = ClosedWindow::Persist;
        let plain = World { scheme, middlebox: None, loss: 0.0, outages: true, closed_window, ..PLAIN };
        let (alone, _, timeouts, _) = outcome(plain);
        let (helped, _, helped_timeouts, _) = outcome(World { middlebox: Some("m-tcp"), ..plain });
        // What is left follows from the burst at the old window, which can fill the queue.
        assert!(timeouts >= 3 * 9 && 4 * helped_timeouts < timeouts, "{scheme}: {timeouts} and {helped_timeouts} timeouts");
        assert!(helped > 1.1 * alone, "{scheme}: {helped} against {alone} kbit/s");
    }
}

#[test]
fn a_split_connection_keeps_the_wired_half_clean() {
    let world = World { scheme: "sack", middlebox: Some("i-tcp"), loss: 0.05, ..PLAIN };
    let records = world.run();
    let sender = records.flows[0].sender.expect("it is TCP");
    // The base station takes everything in; beyond the losses of the beginning, in its own full queue, the sender has none.
    assert!(records.flows[0].forward.suppressed > 10_000);
    let plain = World { middlebox: None, ..world }.run();
    assert!(4 * sender.retransmissions < plain.flows[0].sender.expect("it is TCP").retransmissions);
    assert!(records.flows[0].octets_corrupted == 0 && records.flows[0].goodput_bps > 1.5 * plain.flows[0].goodput_bps);
}

#[test]
fn snacks_are_answered_at_the_base_station() {
    let world = World { scheme: "selective", middlebox: None, loss: 0.05, ..PLAIN };
    let (goodput, resent, ..) = outcome(world);
    let (helped, helped_resent, ..) = outcome(World { middlebox: Some("snack-snoop"), ..world });
    assert!(helped > 1.1 * goodput, "{helped} against {goodput}");
    assert!(4 * helped_resent < 3 * resent, "the sender resends {helped_resent} segments instead of {resent}");
}

#[test]
fn a_snoop_agent_hides_what_the_link_loses() {
    let world = World { scheme: "newreno", middlebox: None, loss: 0.02, ..PLAIN };
    let (plain, helped) = (world.run(), World { middlebox: Some("snoop"), ..world }.run());
    let sender = |records: &Records| records.flows[0].sender.expect("it is TCP");
    assert!(helped.flows[0].goodput_bps > 1.3 * plain.flows[0].goodput_bps);
    assert!(10 * sender(&helped).reductions < sender(&plain).reductions);
    // The agent sends again what was lost, and what it keeps back is no loss.
    assert!(helped.flows[0].forward.inserted > 100 && helped.flows[0].reverse.suppressed > 100);
    assert_eq!(helped.flows[0].reverse.dropped.total(), 0);
}

/// Mean of the sender's smoothed round-trip time in milliseconds, and its timeouts, over three runs.
fn round_trips(world: World, config: &Config, hide: bool) -> (f64, u64) {
    let (mut sum, mut samples, mut timeouts) = (0.0, 0.0, 0);
    for run in 0..3 {
        let records = World { run, ..world }.run_as(config, &[("hide", Value::Flag(hide))]);
        for srtt in records.flow_samples.iter().filter_map(|sample| sample.srtt) {
            (sum, samples) = (sum + srtt.as_nanos() as f64 / 1e6, samples + 1.0);
        }
        timeouts += records.flows[0].sender.expect("it is TCP").timeouts;
    }
    (sum / samples, timeouts)
}

#[test]
fn what_local_repairs_take_is_hidden_from_a_sender_that_goes_by_timestamps() {
    let world = World { scheme: "newreno", middlebox: Some("wtcp-proxy"), loss: 0.05, ..PLAIN };
    let ratio = |config: &Config| round_trips(world, config, true).0 / round_trips(world, config, false).0;
    let by_timestamps = ratio(&Config::freebsd45());
    assert!(by_timestamps < 0.8, "{by_timestamps}");
    // A sender that times its segments itself sees what they really took.
    let by_own_clock = ratio(&Config::modern());
    assert!((0.85..1.15).contains(&by_own_clock), "{by_own_clock}");
    // Without losses nothing is here for longer than it takes to pass.
    let steady = World { loss: 0.0, ..world };
    let config = Config::freebsd45();
    assert_eq!(round_trips(steady, &config, true), round_trips(steady, &config, false));
}

#[test]
fn a_proxy_at_the_base_station_keeps_losses_from_the_sender() {
    let world = World { scheme: "newreno", middlebox: None, loss: 0.05, ..PLAIN };
    let (plain, helped) = (world.run(), World { middlebox: Some("wtcp-proxy"), ..world }.run());
    let sender = |records: &Records| records.flows[0].sender.expect("it is TCP");
    assert!(helped.flows[0].goodput_bps > 1.5 * plain.flows[0].goodput_bps);
    assert!(3 * sender(&helped).reductions < sender(&plain).reductions);
    assert!(helped.flows[0].forward.inserted > 100 && helped.flows[0].octets_corrupted == 0);
}
