//! Wires that vary: jitter, reordering, duplication, outages, traces, changes, CoDel; in a simulation and by themselves.

use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::Arc;
use whyloss_sim::{
    AdaptiveRed, Amount, Arrival, Builder, Cause, CbrFlow, Change, ChannelSpec, CoDel, Crossing, DelayEstimate, Discipline,
    Effect, End, Errors, FqCoDel, Jitter, JitterLaw, Limits, LinkNames, LinkSpec, LogSpec, Outage, Packet, Pie, Policer,
    QueueLimit, Records, Red, Reorder, Rhythm, Spell, TcpFlow, Trace, Truth, Way, WhileDown,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::segment::{Dscp, Ecn};
use whyloss_transport::{BitRate, Config, Duration, Instant};

const MS: u64 = 1_000_000;
const OCTETS: u32 = 500;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * MS)
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// 4 Mbit/s: 500 octets take 1 ms; 5 ms of delay.
fn plain() -> LinkSpec {
    LinkSpec { rate: BitRate::from_bps(4_000_000), delay: ms(5), ..LinkSpec::default() }
}

/// What becomes of packets of 500 octets that come at these milliseconds: number and time in microseconds, lost ones with their cause.
fn cross(spec: &LinkSpec, times: &[u64]) -> Vec<(u64, u64, Option<Cause>)> {
    let mut crossing = Crossing::new(spec, 1, 0, "a>b").unwrap();
    for (token, time) in times.iter().enumerate() {
        let packet = Packet { token: token as u64, octets: OCTETS, ecn: Ecn::NotCapable, dscp: Dscp::DEFAULT, flow: 0 };
        crossing.offer(at(*time), packet);
    }
    let mut passages = Vec::new();
    while let Some(next) = crossing.next_event() {
        while let Some(passage) = crossing.poll(next) {
            let cause = if let Arrival::Lost(cause) = passage.arrival { Some(cause) } else { None };
            passages.push((passage.token, passage.at.as_nanos() / 1000, cause));
        }
    }
    assert_eq!(crossing.under_way(), 0);
    passages.sort_by_key(|&(_, micros, _)| micros);
    passages
}

fn outage(from: u64, lasts: u64, packets: WhileDown) -> Outage {
    Outage { packets, ..Outage::once(at(from), ms(lasts)) }
}

#[test]
fn a_link_that_is_down_drops_what_it_transmits() {
    // In transmission from 0, 1, … to 1, 2, … ms. Down from 1.0 to 3.0 ms: it takes the second and the third.
    let spec = LinkSpec { outage: vec![outage(1, 2, WhileDown::Dropped)], ..plain() };
    let down = Some(Cause::LinkDown);
    assert_eq!(cross(&spec, &[0; 4]), [(0, 6000, None), (1, 7000, down), (2, 8000, down), (3, 9000, None)]);
    let touched = LinkSpec { outage: vec![outage(2, 1, WhileDown::Dropped)], ..plain() };
    assert_eq!(cross(&touched, &[0; 3]), [(0, 6000, None), (1, 7000, None), (2, 8000, down)]);
}

#[test]
fn a_link_that_is_down_can_hold_packets() {
    // The second has half of its transmission behind it at 1.5 ms, and the other half from 11.5 ms on.
    let outage = Outage { packets: WhileDown::Held, ..Outage::once(Instant::from_nanos(3 * MS / 2), ms(10)) };
    let spec = LinkSpec { outage: vec![outage], queue: QueueLimit::Packets(2), ..plain() };
    assert_eq!(cross(&spec, &[0, 0]), [(0, 6000, None), (1, 17_000, None)]);
    // What comes meanwhile waits, as far as there is room.
    let full = Some(Cause::QueueFull);
    assert_eq!(
        cross(&spec, &[2, 3, 4]),
        [(2, 4000, full), (0, 17_500, None), (1, 18_500, None)],
        "the transmitter is idle, but it cannot begin"
    );
}

#[test]
fn changes_hold_from_their_times_on() {
    let change = |from| Change { at: at(from), ..Change::default() };
    let spec = LinkSpec {
        queue: QueueLimit::Packets(1),
        change: vec![
            Change { rate: Some(BitRate::from_bps(1_000_000)), ..change(10) },
            Change { delay: Some(ms(50)), queue: Some(QueueLimit::Packets(2)), ..change(20) },
            Change { delay: Some(Duration::ZERO), ..change(40) },
            Change {
                channel: Some(ChannelSpec { errors: Errors::Packets { probability: 1.0 }, effect: Effect::Erase }),
                ..change(100)
            },
        ],
        ..plain()
    };
    let full = Some(Cause::QueueFull);
    assert_eq!(
        cross(&spec, &[0, 0, 0, 10, 20, 20, 20, 20, 90, 96, 97]),
        [
            (2, 0, full),
            (0, 6000, None),
            (1, 7000, None),
            // 4 ms at 1 Mbit/s, 5 ms of delay.
            (3, 19_000, None),
            (7, 20_000, full),
            // Transmitted by 24, 28 and 32 ms, 50 ms of delay.
            (4, 74_000, None),
            (5, 78_000, None),
            (6, 82_000, None),
            // The delay has gone.
            (8, 94_000, None),
            // It ends at 100 ms, where the channel begins.
            (9, 100_000, Some(Cause::Erased)),
            (10, 104_000, Some(Cause::Erased)),
        ]
    );
}

#[test]
fn a_shorter_way_is_overtaken_only_where_it_may_be() {
    let shorter = Change { at: at(2), delay: Some(ms(1)), ..Change::default() };
    let spec = LinkSpec { delay: ms(20), change: vec![shorter], ..plain() };
    assert_eq!(cross(&spec, &[0, 2]), [(0, 21_000, None), (1, 21_000, None)]);
    let overtaking = LinkSpec { overtaking: true, ..spec };
    assert_eq!(cross(&overtaking, &[0, 2]), [(1, 4000, None), (0, 21_000, None)]);
}

#[test]
fn what_is_reordered_is_overtaken() {
    let reorder = |reorder| LinkSpec { reorder: Some(reorder), ..plain() };
    let all_late = reorder(Reorder::late(1.0, ms(3)));
    assert_eq!(cross(&all_late, &[0, 0]), [(0, 9000, None), (1, 10_000, None)]);
    let all_early = reorder(Reorder::early(1.0, ms(7)));
    assert_eq!(cross(&all_early, &[0, 0]), [(0, 1000, None), (1, 2000, None)]);
    let times: Vec<_> = (0..1000).collect();
    let some = cross(&reorder(Reorder::late(0.1, ms(3))), &times);
    let overtaken = some.iter().filter(|(number, micros, _)| *micros == 1000 * number + 9000).count();
    let on_time = some.iter().filter(|(number, micros, _)| *micros == 1000 * number + 6000).count();
    // Standard deviation 9.5.
    assert!((65..135).contains(&overtaken) && overtaken + on_time == 1000, "{overtaken}, {on_time}");
    assert!(some.windows(2).any(|pair| pair[0].0 > pair[1].0));
}

#[test]
fn a_packet_that_comes_twice_is_said_to() {
    let spec = LinkSpec { duplicate: 1.0, ..plain() };
    let mut crossing = Crossing::new(&spec, 1, 0, "a>b").unwrap();
    let packet = Packet { token: 7, octets: OCTETS, ecn: Ecn::NotCapable, dscp: Dscp::DEFAULT, flow: 0 };
    crossing.offer(at(0), packet);
    let mut heard = Vec::new();
    while let Some(passage) = crossing.poll(at(100)) {
        heard.push((passage.token, passage.at, passage.last));
    }
    assert_eq!(heard, [(7, at(6), false), (7, at(6), true)]);
    let counts = crossing.counts();
    assert_eq!((counts.offered, counts.duplicated, counts.delivered, crossing.under_way()), (1, 1, 2, 0));
}

#[test]
fn a_trace_decides_when_packets_leave() {
    // Opportunities of 1000 octets, two packets each, at 3, 4 and 9 ms, then at 12, 13, 18 ms.
    let trace = Some(Arc::new(Trace::new(&[3, 4, 9]).unwrap()));
    let spec = LinkSpec { trace, trace_octets: 1000, rate: BitRate::default(), delay: ms(5), ..LinkSpec::default() };
    let arrivals: Vec<_> = cross(&spec, &[0, 1, 2, 5, 5, 5, 10]).iter().map(|passage| passage.1 / 1000).collect();
    assert_eq!(arrivals, [8, 8, 9, 14, 14, 17, 17]);
}

/// A sender that fills the queue of a bottleneck for 10 s.
fn transfer(bottleneck: LinkSpec, ecn: bool) -> Records {
    let mut builder = Builder::new(1, 0);
    let (from, router, to) = (builder.host("from"), builder.router("router"), builder.host("to"));
    let fast = LinkSpec { rate: BitRate::from_bps(1_000_000_000), ..LinkSpec::default() };
    builder.link(from, router, fast.clone(), fast.clone());
    builder.link(router, to, bottleneck, fast);
    let end = || {
        let mut config = Config { ecn, ..Config::profile("modern").unwrap() };
        let parts = Selection { congestion: Some("newreno".to_owned()), ..Selection::default() }.build(&mut config).unwrap();
        End::new(config, parts)
    };
    let (sender, receiver, start, amount) = (end(), end(), Instant::ZERO, Amount::Octets(10_000_000));
    builder.tcp(TcpFlow { name: "flow".to_owned(), from, to, start, amount, sender, receiver });
    builder.sample_every(ms(10));
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits { until: Some(at(60_000)) }, |_| ControlFlow::Continue(())).unwrap();
    simulation.into_records()
}

fn slow() -> LinkSpec {
    LinkSpec { rate: BitRate::from_bps(10_000_000), delay: ms(20), queue: QueueLimit::Packets(500), ..LinkSpec::default() }
}

#[test]
fn codel_keeps_the_queue_short_and_the_link_busy() {
    let controlled = |codel| LinkSpec { discipline: Some(Discipline::CoDel(codel)), ..slow() };
    let tail = transfer(slow(), false);
    let codel = transfer(controlled(CoDel::default()), false);
    let seconds = |records: &Records| records.flows[0].finished.unwrap().as_secs_f64();
    // 500 packets of 1500 octets are 600 ms.
    assert!(tail.links[2].mean_queue_packets > 100.0, "{}", tail.links[2].mean_queue_packets);
    // 5 ms are 4 packets; one flow's sawtooth goes above and below.
    assert!(codel.links[2].mean_queue_packets < 15.0, "{}", codel.links[2].mean_queue_packets);
    assert!(seconds(&codel) < 1.1 * seconds(&tail), "{} and {}", seconds(&codel), seconds(&tail));
    let dropped = codel.links[2].dropped;
    assert!(dropped.get(Cause::Aqm) > 0 && dropped.get(Cause::Aqm) == dropped.total(), "{dropped:?}");
    assert!(codel.losses.iter().all(|loss| loss.truth == Truth::Lost(Cause::Aqm) && loss.dropped.is_some()));
    // A marking one loses nothing.
    let marking = transfer(controlled(CoDel { mark: true, ..CoDel::default() }), true);
    assert_eq!(marking.links[2].dropped.total(), 0);
    assert!(marking.flows[0].sender.unwrap().ecn_reductions > 0);
    assert!(marking.links[2].mean_queue_packets < 15.0, "{}", marking.links[2].mean_queue_packets);
}

/// A change that changes nothing makes a wire one that varies.
fn forced(spec: &LinkSpec) -> LinkSpec {
    LinkSpec { change: vec![Change { at: Instant::MAX, delay: Some(spec.delay), ..Change::default() }], ..spec.clone() }
}

#[test]
fn where_nothing_varies_both_kinds_of_wire_are_the_same() {
    let errors = |ber| ChannelSpec { errors: Errors::Bits { ber }, effect: Effect::Damage };
    let short = |channel| LinkSpec { queue: QueueLimit::Packets(20), channel, ..slow() };
    let red = Discipline::Red(Red { weight: 0.05, ..Red::default() });
    for spec in [
        slow(),
        short(errors(1e-6)),
        short(ChannelSpec { errors: Errors::Packets { probability: 0.01 }, effect: Effect::Erase }),
        LinkSpec { queue: QueueLimit::Octets(40_000), ..slow() },
        LinkSpec { discipline: Some(red), ..slow() },
    ] {
        let mut records = [spec.clone(), forced(&spec)].map(|spec| transfer(spec, false));
        assert!(records[0].events < records[1].events, "one is plain, the other is not");
        for records in &mut records {
            records.events = 0;
        }
        let [plain, varying] = records;
        assert!(!plain.losses.is_empty());
        assert!(plain == varying, "{spec:?}");
    }
}

#[test]
fn a_lost_copy_is_no_loss() {
    // Everything comes twice; one in ten is lost behind that, hardly ever both.
    let mut builder = Builder::new(1, 0);
    let (from, router, to) = (builder.host("from"), builder.router("router"), builder.host("to"));
    let doubling = LinkSpec { duplicate: 1.0, queue: QueueLimit::Unlimited, ..slow() };
    let loss = ChannelSpec { errors: Errors::Packets { probability: 0.1 }, effect: Effect::Erase };
    let lossy = LinkSpec { rate: BitRate::from_bps(1_000_000_000), channel: loss, ..LinkSpec::default() };
    builder.link(from, router, doubling.clone(), doubling);
    builder.link(router, to, lossy.clone(), lossy);
    let end = || {
        let mut config = Config::profile("modern").unwrap();
        let parts = Selection { differentiator: Some("oracle".to_owned()), ..Selection::default() }.build(&mut config).unwrap();
        End::new(config, parts)
    };
    let (sender, receiver, start, amount) = (end(), end(), Instant::ZERO, Amount::Octets(2_000_000));
    builder.tcp(TcpFlow { name: "flow".to_owned(), from, to, start, amount, sender, receiver });
    builder.log_packets(LogSpec { from: Instant::ZERO, until: Instant::MAX, at_most: 100_000 });
    let mut simulation = builder.build().unwrap();
    simulation.run(&Limits::default(), |_| ControlFlow::Continue(())).unwrap();
    let records = simulation.into_records();
    let forward = &records.flows[0].forward;
    assert!(forward.duplicated + 3 > forward.sent, "all but what is still on the first link at the end: {forward:?}");
    let lost = forward.dropped.get(Cause::Erased);
    // A tenth of the copies.
    assert!(10 * lost > forward.sent && 5 * lost < 2 * forward.sent, "{forward:?}");
    let both = records.losses.iter().filter(|loss| loss.truth == Truth::Lost(Cause::Erased)).count() as u64;
    // A hundredth of the packets.
    assert!(200 * both > forward.sent && 50 * both < forward.sent, "{both} of {}", forward.sent);
    assert!(records.losses.iter().all(|loss| (loss.truth != Truth::Arrived) == loss.dropped.is_some()));
    // The log has a row for a packet and all its copies, with one fate.
    let rows = || records.log.iter().filter(|row| row.way == Way::Forward);
    assert_eq!(rows().count() as u64, forward.sent);
    for loss in &records.losses {
        let row = rows().find(|row| (row.offset, row.sent_at) == (loss.record.offset, loss.record.sent_at)).unwrap();
        assert_eq!(row.truth, loss.truth);
        assert_eq!(row.ended.filter(|_| row.link.is_some()), loss.dropped.map(|(at, ..)| at));
    }
}

#[test]
fn what_one_link_does_moves_nobody_elses_numbers() {
    let run = |first: LinkSpec| {
        let mut builder = Builder::new(1, 0);
        let (a, b, c) = (builder.host("a"), builder.router("b"), builder.host("c"));
        let loss = ChannelSpec { errors: Errors::Packets { probability: 0.1 }, effect: Effect::Erase };
        let lossy = LinkSpec { rate: BitRate::from_bps(100_000_000), channel: loss, ..LinkSpec::default() };
        builder.link(a, b, first, lossy.clone());
        builder.link(b, c, lossy.clone(), lossy);
        let rate = BitRate::from_bps(1_000_000);
        builder.cbr(CbrFlow {
            name: "cbr".to_owned(),
            from: a,
            to: c,
            start: at(0),
            stop: at(10_000),
            rate,
            octets: OCTETS,
            rhythm: Rhythm::default(),
        });
        let mut simulation = builder.build().unwrap();
        simulation.run(&Limits { until: Some(at(20_000)) }, |_| ControlFlow::Continue(())).unwrap();
        let records = simulation.into_records();
        let lost = |link: usize| {
            let mut sent: Vec<_> =
                records.drops.iter().filter(|drop| drop.link.index() == link).map(|drop| drop.sent_at.as_nanos()).collect();
            sent.sort_unstable();
            sent
        };
        [lost(0), lost(1)]
    };
    let channel = ChannelSpec { errors: Errors::Packets { probability: 0.05 }, effect: Effect::Erase };
    let lossy = LinkSpec { channel, ..plain() };
    let without = run(lossy.clone());
    assert!(without[0].len() > 80 && without[1].len() > 160);
    let jitter = Some(Jitter::new(ms(2), JitterLaw::Exponential));
    assert_eq!(run(LinkSpec { jitter, ..lossy.clone() }), without, "the same packets in the same order meet the same errors");
    let late = Some(Reorder::late(0.0, ms(10)));
    assert_eq!(run(LinkSpec { jitter, reorder: late, ..lossy.clone() }), without);
    // An outage takes packets, but those that the channel takes are the same.
    let down = run(LinkSpec { outage: vec![outage(5000, 500, WhileDown::Dropped)], ..lossy });
    assert!(down[0].len() > without[0].len() && without[0].iter().all(|sent| down[0].contains(sent)));
}

/// All kinds of links.
fn any_link() -> impl Strategy<Value = LinkSpec> {
    let jitter = (1_u64..20, 0..4).prop_map(|(mean, law)| match law {
        0 => Jitter::new(ms(mean), JitterLaw::Uniform),
        1 => Jitter::normal(ms(mean), Duration::from_micros(700)),
        2 => Jitter::new(ms(mean), JitterLaw::Exponential),
        _ => Jitter { shape: Some(2.0), ..Jitter::new(ms(mean), JitterLaw::Pareto) },
    });
    let jitter = prop::option::of(jitter);
    let reorder = (0.0..1.0, 1_u64..30, prop::bool::ANY).prop_map(|(share, by, late)| {
        if late {
            Reorder::late(share, ms(by))
        } else {
            Reorder::early(share, ms(by))
        }
    });
    let reorder = prop::option::of(reorder);
    let down = prop_oneof![Just(WhileDown::Dropped), Just(WhileDown::Held)];
    let again = prop_oneof![
        Just([None, None]),
        (51_u64..200).prop_map(|ms| [Some(ms), None]),
        (1_u64..200).prop_map(|ms| [None, Some(ms)])
    ];
    let outage = (0_u64..300, 1_u64..50, again, down, any::<bool>()).prop_map(|(from, lasts, again, packets, drawn)| {
        let spell = |millis| if drawn { Spell::exponential(ms(millis)) } else { ms(millis).into() };
        let [every, gap] = again;
        Outage { at: at(from), lasts: spell(lasts), every: every.map(ms), gap: gap.map(spell), packets }
    });
    let trace = prop::option::of(prop::collection::vec(0_u64..100, 1..20).prop_map(|mut millis| {
        millis.sort_unstable();
        millis.push(101);
        Arc::new(Trace::new(&millis).unwrap())
    }));
    let queue = || {
        prop_oneof![
            Just(QueueLimit::Unlimited),
            (1_u32..30).prop_map(QueueLimit::Packets),
            (1_u64..9000).prop_map(QueueLimit::Octets)
        ]
    };
    let errors = || {
        prop_oneof![
            Just(Errors::None),
            (0.0..1e-4).prop_map(|ber| Errors::Bits { ber }),
            (0.0..0.5).prop_map(|probability| Errors::Packets { probability }),
        ]
    };
    let channel = || {
        (errors(), any::<bool>())
            .prop_map(|(errors, erases)| ChannelSpec { errors, effect: if erases { Effect::Erase } else { Effect::Damage } })
    };
    let change = (
        1_u64..100,
        prop::option::of(100_u64..10_000),
        prop::option::of(0_u64..50),
        prop::option::of(queue()),
        prop::option::of(channel()),
    );
    let discipline = prop::option::of(prop_oneof![
        Just(Discipline::CoDel(CoDel::default())),
        Just(Discipline::CoDel(CoDel { target: ms(1), interval: ms(10), mark: true })),
        Just(Discipline::Red(Red { weight: 0.1, ..Red::default() })),
        Just(Discipline::Red(Red { weight: 0.1, bytes: true, queue_in_bytes: true, wait: false, mark: true, ..Red::default() })),
        Just(Discipline::AdaptiveRed(AdaptiveRed::default())),
        (any::<bool>(), any::<bool>(), 0_u64..30).prop_map(|(mark, timestamps, burst)| {
            let estimate = if timestamps { DelayEstimate::Timestamps } else { DelayEstimate::DepartureRate };
            Discipline::Pie(Pie { mark, estimate, target: ms(2), interval: ms(3), burst: ms(burst), ..Pie::default() })
        }),
        (any::<bool>(), 1_u32..5, 1_u64..3000, 1_u64..20_000).prop_map(|(mark, queues, quantum, memory)| {
            Discipline::FqCoDel(FqCoDel { mark, queues, quantum, memory, target: ms(1), interval: ms(10) })
        }),
        Just(Discipline::Biased),
    ]);
    (
        (100_u64..10_000, 0_u64..30, queue(), channel(), trace),
        (jitter, any::<bool>(), reorder, 0.0..0.5),
        prop::collection::vec(outage, 0..3),
        prop::collection::vec(change, 0..4),
        (discipline, prop::option::of((100_u64..5000, 1_u64..20_000))),
    )
        .prop_map(
            |(
                (kbps, delay, queue, channel, trace),
                (jitter, overtaking, reorder, duplicate),
                outage,
                change,
                (discipline, policer),
            )| {
                let mut from = 0;
                let change = change.into_iter().map(|(gap, kbps, delay, queue, channel)| {
                    from += gap;
                    let kbps = kbps.filter(|_| trace.is_none());
                    let delay = if kbps.is_none() && queue.is_none() && channel.is_none() { delay.or(Some(1)) } else { delay };
                    Change {
                        at: at(from),
                        rate: kbps.map(|kbps| BitRate::from_bps(kbps * 1000)),
                        delay: delay.map(ms),
                        queue,
                        channel,
                    }
                });
                let change = change.collect();
                let rate = BitRate::from_bps(kbps * 1000);
                let delay = ms(delay);
                let trace_octets = Trace::OCTETS;
                LinkSpec {
                    rate,
                    delay,
                    queue,
                    policer: policer.map(|(kbps, burst)| Policer { rate: BitRate::from_bps(kbps * 1000), burst }),
                    discipline,
                    channel,
                    trace,
                    trace_octets,
                    jitter,
                    overtaking,
                    reorder,
                    duplicate,
                    outage,
                    change,
                }
            },
        )
}

/// A packet that comes: its time in microseconds, its length, whether it is ECN-capable and of high drop precedence.
type Coming = (u64, u32, bool, bool);

fn coming() -> impl Strategy<Value = Vec<Coming>> {
    prop::collection::vec((0_u64..2000, 40_u32..1501, any::<bool>(), any::<bool>()), 1..300).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, octets, capable, out)| {
                now += gap;
                (now, octets, capable, out)
            })
            .collect()
    })
}

/// Lets packets cross, with polls every so many offers, and holds the books. What became of each, in order of number and time.
fn balance(spec: &LinkSpec, coming: &[Coming], every: usize) -> Vec<(u64, Instant, String)> {
    let name = LinkNames::default().name("a", "b");
    let mut crossing = Crossing::new(spec, 3, 1, &name).unwrap();
    let mut passages = Vec::new();
    let mut finished = vec![0; coming.len()];
    let mut poll = |crossing: &mut Crossing, now: Instant| {
        while let Some(passage) = crossing.poll(now) {
            assert!(passage.at <= now);
            finished[passage.token as usize] += i32::from(passage.last);
            passages.push((passage.token, passage.at, format!("{:?}", passage.arrival)));
        }
        let counts = crossing.counts();
        let ended = counts.delivered + counts.dropped.total();
        assert_eq!(counts.offered + counts.duplicated, ended + crossing.under_way() as u64, "{counts:?}");
    };
    for (token, &(micros, octets, capable, out)) in coming.iter().enumerate() {
        let now = Instant::from_nanos(micros * 1000);
        if token % every == 0 {
            poll(&mut crossing, now);
        }
        let ecn = if capable { Ecn::Capable0 } else { Ecn::NotCapable };
        let dscp = if out { Dscp::AF12 } else { Dscp::DEFAULT };
        crossing.offer(now, Packet { token: token as u64, octets, ecn, dscp, flow: u64::from(octets) % 5 });
    }
    let mut now = Instant::ZERO;
    while let Some(next) = crossing.next_event() {
        // A drop that has not been told yet lies in the past, and time does not go back.
        now = now.max(next).max(Instant::from_nanos(coming.last().map_or(0, |coming| coming.0 * 1000)));
        poll(&mut crossing, now);
    }
    assert_eq!(crossing.under_way(), 0);
    assert!(finished.iter().all(|times| *times == 1), "each packet ends once");
    passages.sort_by_key(|&(token, at, _)| (token, at));
    passages
}

proptest! {
    #[test]
    fn packets_are_conserved_whatever_the_driver_does(spec in any_link(), coming in coming()) {
        // A driver that comes late hears the same.
        let punctual = balance(&spec, &coming, 1);
        prop_assert_eq!(&punctual, &balance(&spec, &coming, 17));
    }

    #[test]
    fn a_simulation_conserves_them_too(spec in any_link(), back in any_link()) {
        let mut builder = Builder::new(5, 0);
        let (a, b, c) = (builder.host("a"), builder.router("b"), builder.host("c"));
        builder.link(a, b, spec, back);
        builder.link(b, c, plain(), LinkSpec { duplicate: 0.2, ..plain() });
        for (name, from, to) in [("there", a, c), ("back", c, a)] {
            let rate = BitRate::from_bps(2_000_000);
            builder.cbr(CbrFlow { name: name.to_owned(), from, to, start: at(0), stop: at(400), rate, octets: OCTETS, rhythm: Rhythm::default() });
        }
        let mut simulation = builder.build().unwrap();
        // `run` itself fails if a packet is missing or came from nothing, also in the middle.
        for until in [at(150), at(401), at(1000)] {
            simulation.run(&Limits { until: Some(until) }, |_| ControlFlow::Continue(())).unwrap();
        }
        let records = simulation.into_records();
        prop_assert!(records.packets.balanced());
        prop_assert_eq!(records.links[0].offered, 200);
    }
}
