//! DCCP over one link in the simulator.

use std::ops::ControlFlow;
use whyloss_sim::{
    Builder, Cause, ChannelSpec, DatagramFlow, Discipline, Effect, Errors, FlowRecord, Limits, LinkSpec, QueueLimit, Records,
    Supply, Truth, Warn,
};
use whyloss_transport::datagram::dccp::{Ccid, Config, Mode};
use whyloss_transport::datagram::tfrc::{Rules, Version};
use whyloss_transport::datagram::{self, tfrc};
use whyloss_transport::differentiation;
use whyloss_transport::path::Trigger;
use whyloss_transport::tcp::{Closing, Judgement};
use whyloss_transport::{BitRate, Duration, Instant};

/// One flow from host to host, over 10 Mbit/s and 40 ms there and back if nothing else is said.
#[derive(Clone)]
struct Path {
    config: datagram::Config,
    supply: Supply,
    errors: Errors,
    effect: Effect,
    discipline: Option<Discipline>,
    rate: u64,
    queue: u32,
    delay: Duration,
    seconds: u64,
    seed: u64,
}

impl Default for Path {
    fn default() -> Self {
        let config = Config::default().into();
        let (supply, errors, effect) = (Supply::Saturated, Errors::None, Effect::Erase);
        Self {
            config,
            supply,
            errors,
            effect,
            discipline: None,
            rate: RATE,
            queue: 50,
            delay: Duration::from_millis(20),
            seconds: 60,
            seed: 1,
        }
    }
}

const RATE: u64 = 10_000_000;

impl Path {
    fn run(&self) -> Records {
        let mut builder = Builder::new(self.seed, 0);
        let (from, to) = (builder.host("from"), builder.host("to"));
        let way = |errors: &Errors, effect| LinkSpec {
            rate: BitRate::from_bps(self.rate),
            delay: self.delay,
            queue: QueueLimit::Packets(self.queue),
            channel: ChannelSpec { errors: errors.clone(), effect },
            ..LinkSpec::default()
        };
        let forward = LinkSpec { discipline: self.discipline, ..way(&self.errors, self.effect) };
        builder.link(from, to, forward, way(&Errors::None, Effect::Erase));
        builder.datagrams(DatagramFlow {
            name: "flow".to_owned(),
            from,
            to,
            start: Instant::ZERO,
            stop: Instant::MAX,
            supply: self.supply,
            sender: self.config.clone(),
            receiver: self.config.clone(),
        });
        builder.sample_every(Duration::from_millis(100));
        let mut simulation = builder.build().unwrap();
        let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(self.seconds)) };
        simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap();
        simulation.into_records()
    }

    fn flow(&self) -> FlowRecord {
        self.run().flows.remove(0)
    }

    /// The mean goodput of a few seeds, in bit/s.
    fn goodput(&self) -> f64 {
        let seeds = 1..=4;
        seeds.clone().map(|seed| Self { seed, ..self.clone() }.flow().goodput_bps).sum::<f64>() / seeds.count() as f64
    }
}

fn dccp(ccid: Ccid, mode: Mode) -> Config {
    Config { ccid, mode, ..Config::default() }
}

fn config(ccid: Ccid, mode: Mode) -> datagram::Config {
    dccp(ccid, mode).into()
}

fn loss(probability: f64) -> Errors {
    Errors::Packets { probability }
}

#[test]
fn a_lossless_link_is_filled() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let flow = Path { config: config(ccid, Mode::Rfc), ..Path::default() }.flow();
        // 1440 of at most 1500 octets are data.
        let most = RATE as f64 * 1440.0 / (1440 + 20 + 16 + 8) as f64;
        assert!((0.93 * most..=most).contains(&flow.goodput_bps), "{ccid:?}: {}", flow.goodput_bps);
        // A Request and a Response there and back: 40 ms and the transmissions.
        let connected = flow.connected.unwrap().as_secs_f64();
        assert!((0.040..0.041).contains(&connected), "{connected}");
        println!("{ccid:?}: {:.0} of {most:.0}", flow.goodput_bps);
        assert!(flow.forward.balanced() && flow.reverse.balanced());
    }
}

/// A router that marks what finds twenty packets waiting, in front of a queue of two hundred. Who is told of marks keeps the queue there and loses nothing; who is
/// not fills it until it overflows.
#[test]
fn marks_take_the_place_of_losses() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let run = |ecn| {
            let discipline = Some(Discipline::Warn(Warn { threshold: 20.0, weight: 1.0 }));
            let config = Config { ecn, ..dccp(ccid, Mode::Rfc) }.into();
            Path { config, discipline, queue: 200, ..Path::default() }.run()
        };
        let (told, deaf) = (run(true), run(false));
        println!(
            "{ccid:?}: {:?}",
            [&told, &deaf].map(|run| (run.drops.len(), run.links[0].mean_queue_packets, run.flows[0].goodput_bps))
        );
        assert!(told.drops.is_empty() && !deaf.drops.is_empty(), "{ccid:?}: {} and {} drops", told.drops.len(), deaf.drops.len());
        let [short, long] = [&told, &deaf].map(|run| run.links[0].mean_queue_packets);
        assert!(short < 0.5 * long && short < 60.0, "{ccid:?}: {short} and {long} packets wait");
        assert!(told.flows[0].goodput_bps > 0.85 * RATE as f64, "{ccid:?}: {}", told.flows[0].goodput_bps);
    }
}

#[test]
fn every_loss_has_its_cause() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let path = Path {
            config: config(ccid, Mode::Rfc),
            errors: Errors::Bits { ber: 1e-6 },
            effect: Effect::Damage,
            ..Path::default()
        };
        let records = path.run();
        let flow = &records.flows[0];
        let (mut reported, mut inferred) = (0, 0);
        for loss in &records.losses {
            match (loss.record.trigger, loss.truth) {
                // Damage to the data alone arrives and is reported; nothing else is.
                (Trigger::Report, Truth::Lost(Cause::PayloadDamaged)) => {
                    assert_eq!(loss.record.verdict.cause, differentiation::Cause::Corruption);
                    reported += 1;
                }
                (Trigger::DuplicateAcks | Trigger::Timeout, Truth::Lost(cause)) => {
                    assert_ne!(cause, Cause::PayloadDamaged);
                    assert_ne!(loss.record.verdict.cause, differentiation::Cause::Corruption);
                    inferred += 1;
                }
                // A timeout gives up what is merely late.
                (Trigger::Timeout, _) => {}
                other => panic!("{other:?}: {loss:?}"),
            }
        }
        let damaged = flow.forward.dropped.get(Cause::PayloadDamaged);
        assert!(reported > 20 && inferred > 0, "{ccid:?}: {reported} reported, {inferred} inferred");
        assert!(damaged >= reported && damaged - reported < 20, "{ccid:?}: {reported} of {damaged} reported");
        assert_eq!(flow.receiver.unwrap().damaged_received, damaged);
        assert_eq!((flow.octets_corrupted, flow.forward.damaged_unnoticed), (0, 0));
    }
}

/// IPv6 has no header checksum: damage to the fields that no pseudo-header covers goes unnoticed, also where the Data Checksum finds the
/// data of the same packet damaged.
#[test]
fn a_damaged_header_over_damaged_data_is_known_to_the_books() {
    let path = Path {
        config: Config { coverage: 1, ip_header: 40, mode: Mode::Differentiating, ..Config::default() }.into(),
        // Few packets keep their data, two thirds their covered header.
        errors: Errors::Bits { ber: 5e-4 },
        effect: Effect::Damage,
        ..Path::default()
    };
    let records = path.run();
    let unnoticed = records.flows[0].forward.damaged_unnoticed;
    assert_eq!(records.packets.damaged_unnoticed, unnoticed);
    let reported = records.losses.iter().filter(|loss| loss.record.trigger == Trigger::Report);
    let with_data = reported.filter(|loss| loss.truth == Truth::Lost(Cause::IpHeaderDamaged)).count() as u64;
    // What is left are packets that carry no data.
    assert!(with_data > 5 && (with_data..2 * with_data).contains(&unnoticed), "{with_data} of {unnoticed}");
}

/// Without a Data Checksum nobody notices damage outside the coverage; with full coverage it is an unexplained loss.
#[test]
fn what_no_checksum_covers_arrives_damaged() {
    let errors = Errors::Bits { ber: 1e-6 };
    let path = |coverage, data_checksum| Path {
        config: Config { coverage, data_checksum, ..Config::default() }.into(),
        errors: errors.clone(),
        effect: Effect::Damage,
        ..Path::default()
    };
    let open = path(1, false).flow();
    assert!(open.octets_corrupted > 0 && open.forward.damaged_unnoticed > 0, "{open:?}");
    assert_eq!(open.forward.dropped.get(Cause::PayloadDamaged), 0);
    let covered = path(0, true).run();
    assert!(covered.losses.iter().all(|loss| loss.record.trigger != Trigger::Report));
    assert!(covered.flows[0].forward.dropped.get(Cause::PayloadDamaged) > 0);
    assert_eq!(covered.flows[0].octets_corrupted, 0);
    let taken = Path { config: Config { accept_corrupt: true, ..Config::default() }.into(), ..path(1, true) }.flow();
    assert!(taken.octets_corrupted > 0);
    assert_eq!((taken.forward.damaged_unnoticed, taken.forward.dropped.get(Cause::PayloadDamaged)), (0, 0));
}

/// A differentiating sender goes on where a conformant one slows down, if the link damages; where it erases there is nothing to tell
/// the difference by.
#[test]
fn differentiation_helps_where_packets_are_damaged() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let goodput = |mode, effect| Path { config: config(ccid, mode), errors: loss(0.01), effect, ..Path::default() }.goodput();
        let [conformant, differentiating] = [Mode::Rfc, Mode::Differentiating].map(|mode| goodput(mode, Effect::Damage));
        println!("{ccid:?}: {conformant:.0} conformant, {differentiating:.0} differentiating");
        assert!(differentiating > 1.5 * conformant, "{ccid:?}: {conformant} and {differentiating}");
        let [conformant, differentiating] = [Mode::Rfc, Mode::Differentiating].map(|mode| goodput(mode, Effect::Erase));
        assert_eq!(conformant, differentiating, "{ccid:?}");
    }
}

#[test]
fn what_is_kept_is_damage() {
    let path =
        Path { config: config(Ccid::Two, Mode::Differentiating), errors: loss(0.01), effect: Effect::Damage, ..Path::default() };
    let records = path.run();
    let kept: Vec<_> = records.losses.iter().filter(|loss| loss.record.judgement == Judgement::Kept).collect();
    assert!(kept.len() > 50);
    assert!(kept.iter().all(|loss| loss.truth == Truth::Lost(Cause::PayloadDamaged)));
}

/// RFC 4341 is TCP in packets: with delayed acknowledgements its goodput under random loss is near the square-root law.
#[test]
fn ccid_2_follows_the_square_root_law() {
    let p = 0.005;
    let path = Path { errors: loss(p), seconds: 120, queue: 1000, ..Path::default() };
    let goodput = path.goodput();
    // 1.22 / sqrt(p) packets a round trip of 40 ms; halving once a window, growth by one a window.
    let law = 1440.0 * 8.0 / 0.0425 * (1.5 / p).sqrt();
    println!("{goodput:.0} of {law:.0}");
    assert!((0.75 * law..1.1 * law).contains(&goodput), "{goodput} of {law}");
}

/// CCID 3 sends as the equation says for the loss events that there were.
#[test]
fn ccid_3_follows_its_equation() {
    for p in [0.003, 0.01, 0.03, 0.1] {
        let path = Path { config: config(Ccid::Three, Mode::Rfc), errors: loss(p), seconds: 600, queue: 1000, ..Path::default() };
        let records = path.run();
        let flow = &records.flows[0];
        let events = records.losses.iter().filter(|loss| loss.record.judgement == Judgement::Reduced).count();
        let event_rate = events as f64 / flow.forward.sent as f64;
        // 40 ms and the transmission of a packet; the queue stays empty.
        let equation = 8.0 * tfrc::rate(1440.0, 0.0413, event_rate);
        let ratio = flow.goodput_bps / (1.0 - p) / equation;
        println!("loss {p}: event rate {event_rate:.5}, {:.0} of {equation:.0} bit/s, {ratio:.3}", flow.goodput_bps);
        assert!((0.87..1.13).contains(&ratio), "loss {p}: {ratio}");
    }
}

/// The loss event rate when each packet is lost with probability `loss` and `n` packets leave in a round trip: an event is the first loss and what is lost
/// in the round trip after it, and then 1 / `loss` packets pass on average until the next.
fn event_rate(version: Version, size: f64, rtt: f64, loss: f64) -> f64 {
    let (mut low, mut high) = (1e-6, 1.0f64);
    for _ in 0..60 {
        let p = f64::sqrt(low * high);
        let n = version.rate(size, rtt, p) * rtt / size;
        if 1.0 / (n + 1.0 / loss) < p {
            high = p;
        } else {
            low = p;
        }
    }
    low
}

/// TFRC sends as the equation says for independent losses of 0.2 to 10 %, within 12 %. The mean of the loss intervals varies (eight of them count, whose
/// lengths are spread like those of independent losses), and the longer of two means counts; a wrong constant in the equation would show: without its
/// second term the rate at 10 % is twice as high.
#[test]
fn tfrc_follows_its_equation() {
    for version in [Version::Rfc5348, Version::Sigcomm2000] {
        for p in [0.002, 0.005, 0.01, 0.03, 0.1] {
            let config = tfrc::Config { rules: Rules { version, ..Rules::default() }, ..tfrc::Config::default() };
            let path = Path { config: config.into(), errors: loss(p), seconds: 600, queue: 1000, ..Path::default() };
            // 40 ms and the transmission of a packet and of feedback; the queue stays empty.
            let rtt = 0.0413;
            let rate = 8.0 * version.rate(1440.0, rtt, event_rate(version, 1440.0, rtt, p));
            let ratio = path.goodput() / (1.0 - p) / rate;
            println!("{version:?}, loss {p}: {ratio:.3} of {rate:.0} bit/s");
            assert!((0.88..1.12).contains(&ratio), "{version:?}, loss {p}: {ratio:.3}");
        }
    }
}

#[test]
fn tfrc_fills_a_lossless_link_and_smoothly() {
    for version in [Version::Rfc5348, Version::Sigcomm2000] {
        let config = tfrc::Config { rules: Rules { version, ..Rules::default() }, ..tfrc::Config::default() };
        let flow = Path { config: config.into(), ..Path::default() }.flow();
        // 1440 octets of data, 16 of TFRC, 28 of UDP and IP.
        let most = RATE as f64 * 1440.0 / 1484.0;
        println!("{version:?}: {:.0} of {most:.0}", flow.goodput_bps);
        assert!((0.9 * most..=most).contains(&flow.goodput_bps), "{version:?}: {}", flow.goodput_bps);
        assert!(flow.forward.balanced() && flow.reverse.balanced());
        let connected = flow.connected.unwrap().as_secs_f64();
        assert!((0.040..0.043).contains(&connected), "the first feedback: {connected}");
    }
}

/// Damage that UDP's checksum finds costs the packet; nothing corrupt reaches the application.
#[test]
fn damaged_datagrams_of_tfrc_are_lost() {
    let path = Path {
        config: tfrc::Config::default().into(),
        errors: Errors::Bits { ber: 1e-6 },
        effect: Effect::Damage,
        ..Path::default()
    };
    let records = path.run();
    let flow = &records.flows[0];
    let damaged = flow.forward.dropped.get(Cause::PayloadDamaged);
    assert!(damaged > 100, "{damaged}");
    assert_eq!(flow.octets_corrupted, 0);
    assert!(flow.forward.balanced() && records.packets.balanced());
}

#[test]
fn an_application_slower_than_the_path_gets_through_unhindered() {
    for ccid in [Ccid::Two, Ccid::Three] {
        let supply = Supply::Rate(BitRate::from_bps(500_000));
        let flow = Path { config: config(ccid, Mode::Rfc), supply, ..Path::default() }.flow();
        assert!((495_000.0..=500_500.0).contains(&flow.goodput_bps), "{ccid:?}: {}", flow.goodput_bps);
        assert_eq!(flow.forward.dropped.total(), 0);
    }
}

#[test]
fn a_flow_stops_when_it_is_told_to() {
    let mut builder = Builder::new(1, 0);
    let (from, to) = (builder.host("from"), builder.host("to"));
    let way = || LinkSpec {
        rate: BitRate::from_bps(RATE),
        delay: Duration::from_millis(5),
        queue: QueueLimit::Packets(50),
        channel: ChannelSpec::default(),
        ..LinkSpec::default()
    };
    builder.link(from, to, way(), way());
    for (name, supply) in [("saturated", Supply::Saturated), ("paced", Supply::Rate(BitRate::from_bps(100_000)))] {
        builder.datagrams(DatagramFlow {
            name: name.to_owned(),
            from,
            to,
            start: Instant::ZERO + Duration::from_secs(1),
            stop: Instant::ZERO + Duration::from_secs(3),
            supply,
            sender: Config::default().into(),
            receiver: Config::default().into(),
        });
    }
    let mut simulation = builder.build().unwrap();
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(20)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap();
    for flow in simulation.into_records().flows {
        assert_eq!(flow.closing, Some(Closing::Normal), "{}", flow.name);
        let last = flow.last_data.unwrap().as_secs_f64();
        assert!((2.8..3.2).contains(&last), "{}: {last}", flow.name);
        assert_eq!(flow.forward.in_flight + flow.reverse.in_flight, 0);
    }
}

/// An acknowledgement a round trip has to tell of thousands of packets where the queue is long: nobody takes for lost what it cannot tell.
#[test]
fn what_arrived_is_not_taken_for_lost_however_long_the_queue() {
    for ccid in [Ccid::Two, Ccid::Three] {
        // The last two: more gaps in the time of a delayed acknowledgement than a report can tell.
        for (megabits, milliseconds, queue) in [(10, 20, 4000), (10, 150, 2000), (30, 50, 1000), (100, 50, 2000)] {
            let delay = Duration::from_millis(milliseconds);
            // RFC 4340, 7.5.2: a window of several times what is under way.
            let config = Config { sequence_window: 32_768, ..dccp(ccid, Mode::Rfc) }.into();
            let seconds = if megabits > 10 { 20 } else { 60 };
            let records = Path { config, rate: megabits * 1_000_000, queue, delay, seconds, ..Path::default() }.run();
            // A timeout gives up what is merely late.
            let by_report = records.losses.iter().filter(|loss| loss.record.trigger != Trigger::Timeout);
            let (arrived, all) = (by_report.clone().filter(|loss| loss.truth == Truth::Arrived).count(), by_report.count());
            assert!(all > 0 || queue == 4000, "{ccid:?}: the queue never overflowed");
            assert_eq!(arrived, 0, "{ccid:?} at {megabits} Mbit/s with a queue of {queue}: of {all}");
        }
    }
}

/// 10 Mbit/s, 300 ms there and back: the losses of slow start's end fall into one round trip and are one event.
#[test]
fn the_overshoot_of_slow_start_is_one_loss_event() {
    let path = |round_trip_events| {
        let config = Config { round_trip_events, ..dccp(Ccid::Three, Mode::Rfc) }.into();
        Path { config, delay: Duration::from_millis(150), queue: 250, seconds: 50, ..Path::default() }.run()
    };
    let events = |records: &Records| records.losses.iter().filter(|loss| loss.record.judgement == Judgement::Reduced).count();
    let (merged, counted) = (path(true), path(false));
    assert_eq!((events(&merged), events(&counted)), (1, 2));
    assert!(merged.flows[0].goodput_bps > 1.3 * counted.flows[0].goodput_bps);
}
