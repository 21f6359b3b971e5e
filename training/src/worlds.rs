//! Random worlds in families. Models are trained on some families and judged on others.

use rand_pcg::rand_core::{Rng as _, SeedableRng as _};
use rand_pcg::Pcg64;
use std::ops::{Deref, DerefMut};
use whyloss_sim::{
    Amount, Builder, CbrFlow, ChannelSpec, CoDel, Discipline, Effect, End, Errors, Jitter, JitterLaw, LinkSpec, NodeId, Outage,
    Pie, QueueLimit, RadioSpec, Reorder, Rhythm, Spell, Step, TcpFlow, Way, WhileDown,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant, Parts};

/// What worlds have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The bottleneck is the lossy last hop; few flows.
    LastHop,
    /// The bottleneck is a clean link in the middle, the last hops lose packets.
    Backbone,
    /// Bit errors that damage packets, so that long ones suffer more.
    Bits,
    /// Datagrams come and go beside the connections.
    CrossTraffic,
    /// Other connections fill a link further up.
    Upstream,
    /// Stations around an access point share its radio channel.
    Cell,
    /// Losses come in bursts.
    Bursts,
    /// Half a second of round trip.
    Satellite,
    /// Three bottlenecks in a row with flows across each.
    ParkingLot,
    /// Twenty and more flows.
    Many,
    /// Queues of a few packets.
    ShortQueues,
    /// Acknowledgements pass a slow and lossy way back.
    Asymmetric,
    /// Hosts send after a random delay.
    Noisy,
    /// A chain of 802.11b stations.
    Radio,
    /// The bottleneck is down both ways now and then.
    Outages,
    /// The last hop, which also loses packets, fades: all that it should carry to the receiver for a while is lost.
    Fades,
    /// The bottleneck pauses for longer than timers wait; its packets wait, too.
    Pauses,
    /// Packets overtake each other.
    Overtaking,
    /// Many acknowledgements are lost.
    LostAnswers,
    /// A queue that is managed, and delays that vary.
    Managed,
    /// Short transfers one after another, on hosts whose delays vary: most of each is its slow start.
    Transfers,
}

impl Family {
    /// All families of worlds.
    pub const ALL: &[Self] = &[
        Self::LastHop,
        Self::Backbone,
        Self::Bits,
        Self::CrossTraffic,
        Self::Upstream,
        Self::Cell,
        Self::Bursts,
        Self::Satellite,
        Self::ParkingLot,
        Self::Many,
        Self::ShortQueues,
        Self::Asymmetric,
        Self::Noisy,
        Self::Radio,
    ];

    /// Those that captures are taken of: these and what shows in captures only. A live sender does not tell these from other losses.
    pub const CAPTURED: &[Self] = &[
        Self::LastHop,
        Self::Backbone,
        Self::Bits,
        Self::CrossTraffic,
        Self::Upstream,
        Self::Cell,
        Self::Bursts,
        Self::Satellite,
        Self::ParkingLot,
        Self::Many,
        Self::ShortQueues,
        Self::Asymmetric,
        Self::Noisy,
        Self::Radio,
        Self::Outages,
        Self::Fades,
        Self::Pauses,
        Self::Overtaking,
        Self::LostAnswers,
        Self::Managed,
        Self::Transfers,
    ];

    /// Its name in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LastHop => "last-hop",
            Self::Backbone => "backbone",
            Self::Bits => "bits",
            Self::CrossTraffic => "cross-traffic",
            Self::Upstream => "upstream",
            Self::Cell => "cell",
            Self::Bursts => "bursts",
            Self::Satellite => "satellite",
            Self::ParkingLot => "parking-lot",
            Self::Many => "many",
            Self::ShortQueues => "short-queues",
            Self::Asymmetric => "asymmetric",
            Self::Noisy => "noisy",
            Self::Radio => "radio",
            Self::Outages => "outages",
            Self::Fades => "fades",
            Self::Pauses => "pauses",
            Self::Overtaking => "overtaking",
            Self::LostAnswers => "lost-answers",
            Self::Managed => "managed",
            Self::Transfers => "transfers",
        }
    }
}

/// A world and how long it lasts.
pub struct World {
    pub builder: Builder,
    pub seconds: u64,
    /// All hosts, in the order of their addresses.
    pub hosts: Vec<NodeId>,
    /// From where to where each connection sends, in the order of their numbers.
    pub flows: Vec<(NodeId, NodeId)>,
    /// A router that all observed connections pass; with a link to watch there, unless all of them are to be.
    pub middle: Option<NodeId>,
}

/// A network that is being put together.
struct Site {
    builder: Builder,
    hosts: Vec<NodeId>,
    flows: Vec<(NodeId, NodeId)>,
    middle: Option<NodeId>,
    /// Differentiators that listen at the observed senders.
    shadows: Vec<&'static str>,
}

impl Site {
    fn host(&mut self, name: impl Into<String>) -> NodeId {
        let host = self.builder.host(name);
        self.hosts.push(host);
        host
    }

    fn lasting(self, seconds: u64) -> World {
        let Self { builder, hosts, flows, middle, .. } = self;
        World { builder, seconds, hosts, flows, middle }
    }
}

impl Deref for Site {
    type Target = Builder;

    fn deref(&self) -> &Builder {
        &self.builder
    }
}

impl DerefMut for Site {
    fn deref_mut(&mut self) -> &mut Builder {
        &mut self.builder
    }
}

/// A source of choices.
struct Dice(Pcg64);

impl Dice {
    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in the logarithm.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + (self.unit() * (high - low + 1) as f64) as u64
    }

    fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.between(0, all.len() as u64 - 1) as usize]
    }
}

/// A link from plain numbers: bit/s, seconds, packets.
fn link(bps: f64, delay: f64, queue: f64, errors: Errors, effect: Effect) -> LinkSpec {
    LinkSpec {
        rate: BitRate::from_bps(bps as u64),
        delay: Duration::from_secs_f64(delay),
        queue: QueueLimit::Packets((queue as u32).max(1)),
        channel: ChannelSpec { errors, effect },
        ..LinkSpec::default()
    }
}

fn clean(bps: f64, delay: f64) -> LinkSpec {
    link(bps, delay, 1e5, Errors::None, Effect::Erase)
}

/// What a family leaves to chance.
struct Plan {
    rate: f64,
    /// One way over the bottleneck, in seconds.
    delay: f64,
    /// Size of the queue, in bandwidth-delay products.
    queue: f64,
    flows: u64,
    errors: Errors,
    effect: Effect,
    /// Share of the bottleneck that datagrams take, at times.
    datagrams: f64,
    overhead: Duration,
    back: Option<f64>,
}

fn plan(family: Family, dice: &mut Dice) -> Plan {
    let probability = dice.scale(0.001, 0.05);
    let mut plan = Plan {
        rate: dice.scale(1e6, 30e6),
        delay: dice.scale(0.003, 0.12),
        queue: dice.scale(0.15, 4.0),
        flows: dice.pick(&[1, 1, 2, 3, 4, 6, 8, 12]),
        errors: Errors::Packets { probability },
        effect: Effect::Erase,
        datagrams: 0.0,
        overhead: Duration::ZERO,
        back: None,
    };
    match family {
        Family::LastHop | Family::Backbone | Family::Upstream | Family::ParkingLot | Family::Cell | Family::Radio => {}
        Family::Bits => {
            plan.errors = Errors::Bits { ber: dice.scale(1e-7, 4e-6) };
            plan.effect = Effect::Damage;
        }
        Family::CrossTraffic => plan.datagrams = 0.1 + 0.5 * dice.unit(),
        Family::Bursts => {
            let bad = 1.0 - 1.0 / dice.scale(1.5, 6.0);
            let good = 1.0 - probability * (1.0 - bad);
            plan.errors = Errors::Gilbert { stay_good: good, stay_bad: bad, hits: Errors::IN_BAD, step: Step::Packet };
        }
        Family::Satellite => {
            plan.delay = 0.24 + 0.06 * dice.unit();
            plan.rate = dice.scale(2e6, 20e6);
            plan.queue = dice.scale(0.25, 2.0);
            plan.errors = Errors::Packets { probability: dice.scale(0.0005, 0.02) };
        }
        Family::Many => {
            plan.flows = dice.between(20, 40);
            plan.rate = dice.scale(20e6, 100e6);
        }
        Family::ShortQueues => plan.queue = 0.0,
        Family::Asymmetric => plan.back = Some(dice.scale(0.02, 0.1)),
        Family::Noisy => plan.overhead = Duration::from_secs_f64(dice.scale(0.0005, 0.01)),
        Family::Transfers => {
            plan.rate = dice.scale(3e6, 150e6);
            plan.delay = dice.scale(0.002, 0.06);
            plan.queue = dice.scale(0.2, 6.0);
            plan.flows = dice.between(4, 12);
            plan.overhead = Duration::from_secs_f64(dice.scale(10e-6, 300e-6));
            plan.errors = if dice.unit() < 0.3 { Errors::None } else { Errors::Packets { probability: dice.scale(0.003, 0.04) } };
        }
        Family::Outages | Family::Fades | Family::Pauses | Family::Overtaking | Family::LostAnswers | Family::Managed => {
            if family != Family::Fades && dice.unit() < 0.7 {
                plan.errors = Errors::None;
            }
            plan.flows = dice.pick(&[1, 1, 2, 3, 4]);
            plan.queue = dice.scale(0.5, 3.0);
        }
    }
    plan
}

/// Times in which a link is away, of a length and at distances that are drawn once for all or each time anew.
fn away(dice: &mut Dice, lasts: (f64, f64), packets: WhileDown) -> Outage {
    let time = Duration::from_secs_f64;
    let (lasts, every) = (time(dice.scale(lasts.0, lasts.1)), time(dice.scale(3.0, 12.0)));
    let at = Instant::ZERO + time(dice.scale(0.5, 4.0));
    if dice.unit() < 0.5 {
        Outage { at, lasts: Spell::Always(lasts), every: Some(every), gap: None, packets }
    } else {
        Outage { at, lasts: Spell::exponential(lasts), every: None, gap: Some(Spell::exponential(every)), packets }
    }
}

/// What the links of a family do beside queueing and losing: those of the bottleneck, forward and back.
fn habits(family: Family, dice: &mut Dice, delay: f64, (forward, back): (&mut LinkSpec, &mut LinkSpec)) {
    match family {
        Family::Outages => {
            let outage = away(dice, (0.03, 3.0), WhileDown::Dropped);
            (forward.outage, back.outage) = (vec![outage], vec![outage]);
        }
        Family::Pauses => {
            forward.outage = vec![away(dice, (0.2, 2.5), WhileDown::Held)];
            if dice.unit() < 0.5 {
                forward.jitter = Some(Jitter::new(Duration::from_secs_f64(delay * 0.1), JitterLaw::Exponential));
            }
        }
        Family::Overtaking => {
            let late = Some(Duration::from_secs_f64(delay * dice.scale(0.05, 1.0)));
            forward.reorder = Some(Reorder { share: dice.scale(0.002, 0.05), late, early: None });
        }
        Family::LostAnswers => {
            let errors = Errors::Packets { probability: dice.scale(0.05, 0.4) };
            back.channel = ChannelSpec { errors, effect: Effect::Erase };
        }
        Family::Managed => {
            forward.queue = QueueLimit::Packets(1000);
            forward.discipline =
                Some(if dice.unit() < 0.5 { Discipline::CoDel(CoDel::default()) } else { Discipline::Pie(Pie::default()) });
            if dice.unit() < 0.5 {
                forward.jitter = Some(Jitter::new(Duration::from_secs_f64(delay * 0.05), JitterLaw::Exponential));
            }
        }
        _ => {}
    }
}

/// Adds a flow with parts and profile by chance; `watch` may add listeners to its sender. `short`: it has an end, and begins after so many seconds.
fn flow(
    builder: &mut Site,
    dice: &mut Dice,
    name: &str,
    (from, to): (NodeId, NodeId),
    watch: Option<&mut impl FnMut(&mut Parts)>,
    short: Option<f64>,
) {
    let scheme = dice.pick(&["newreno", "sack", "sack", "cubic", "cubic"]);
    let profile = dice.pick(&["modern", "modern", "linux"]);
    let judge = dice.pick(&["none", "none", "none", "oracle", "coin"]);
    let selection = Selection {
        differentiator: Some(judge.to_owned()),
        reaction: Some(if judge == "none" { "reduce" } else { "keep" }.to_owned()),
        ..Selection::scheme(scheme)
    };
    let end = |observed: bool| {
        let mut config = Config::profile(profile).expect("the profile exists");
        config.receive_buffer = 4 << 20;
        config.send_buffer = 4 << 20;
        let shadows = builder.shadows.iter().map(|name| (*name).to_owned()).collect();
        let selection = if observed { Selection { shadows, ..selection.clone() } } else { selection.clone() };
        let parts = selection.build(&mut config).expect("the parts exist");
        End::new(config, parts)
    };
    let (mut sender, receiver) = (end(watch.is_some()), end(watch.is_some()));
    if let Some(watch) = watch {
        watch(&mut sender.parts);
    }
    let start = Instant::ZERO + Duration::from_secs_f64(short.unwrap_or(0.0) + 2.0 * dice.unit());
    let amount = if short.is_some() { Amount::Octets(dice.scale(2e5, 8e6) as u64) } else { Amount::Unlimited };
    builder.flows.push((from, to));
    builder.tcp(TcpFlow { name: name.to_owned(), from, to, start, amount, sender, receiver });
}

/// A chain of stations; errors strike above the MAC, which would repair them.
fn radio(builder: &mut Site, dice: &mut Dice, mut watch: impl FnMut(&mut Parts)) {
    let hops = dice.between(1, 5);
    let last = hops;
    let nodes: Vec<NodeId> = (0..=hops)
        .map(|n| if n == 0 || n == last { builder.host(format!("n{n}")) } else { builder.router(format!("n{n}")) })
        .collect();
    let stations: Vec<_> = nodes.iter().enumerate().map(|(n, &node)| (node, [200.0 * n as f64, 0.0])).collect();
    let queue = QueueLimit::Octets(dice.between(20_000, 60_000));
    builder.radio(RadioSpec { queue, ..RadioSpec::default() }, &stations);
    let errors = Errors::Packets { probability: dice.scale(0.005, 0.05) };
    let (first, end) = (nodes[0], nodes[hops as usize]);
    builder.input(end, Way::Forward, ChannelSpec { errors, effect: Effect::Erase });
    for n in 0..dice.between(1, 6) {
        flow(builder, dice, &format!("f{n}"), (first, end), Some(&mut watch), None);
    }
}

/// An access point between a wired server and stations around it; data goes down or up.
fn cell(builder: &mut Site, dice: &mut Dice, mut watch: impl FnMut(&mut Parts)) {
    let server = builder.host("server");
    let point = builder.router("point");
    builder.middle = Some(point);
    let delay = dice.scale(0.002, 0.08);
    builder.link(server, point, clean(100e6, delay), clean(100e6, delay));
    let count = dice.between(1, 6);
    let mut stations = vec![(point, [0.0, 0.0])];
    let mut hosts = Vec::new();
    for n in 0..count {
        let host = builder.host(format!("s{n}"));
        stations.push((host, [20.0 + 100.0 * dice.unit(), 100.0 * dice.unit()]));
        hosts.push(host);
    }
    let rate = BitRate::from_bps(dice.pick(&[1_000_000, 2_000_000, 5_500_000, 11_000_000]));
    let queue = QueueLimit::Packets(dice.between(10, 80) as u32);
    let rts = dice.pick(&[None, Some(1)]);
    builder.radio(RadioSpec { rate, queue, rts, ..RadioSpec::default() }, &stations);
    let probability = dice.scale(0.002, 0.05);
    for (n, &host) in hosts.iter().enumerate() {
        let down = dice.unit() < 0.7;
        let errors = Errors::Packets { probability };
        let ends = if down { (server, host) } else { (host, server) };
        if down {
            builder.input(host, Way::Forward, ChannelSpec { errors, effect: Effect::Erase });
        }
        flow(builder, dice, &format!("f{n}"), ends, Some(&mut watch), None);
    }
}

/// Builds world `number` of a family, with these differentiators in shadow at each observed sender. `watch` may add listeners to each observed sender.
pub fn build(family: Family, seed: u64, number: u32, shadows: &[&'static str], mut watch: impl FnMut(&mut Parts)) -> World {
    let mut dice = Dice(Pcg64::seed_from_u64(seed << 40 | (family as u64) << 32 | u64::from(number)));
    let plan = plan(family, &mut dice);
    let builder = Builder::new(seed, u64::from(number));
    let mut builder = Site { builder, hosts: Vec::new(), flows: Vec::new(), middle: None, shadows: shadows.to_vec() };
    if matches!(family, Family::Radio | Family::Cell) {
        if family == Family::Radio {
            radio(&mut builder, &mut dice, watch);
        } else {
            cell(&mut builder, &mut dice, watch);
        }
        return builder.lasting(120);
    }
    if plan.overhead > Duration::ZERO {
        builder.send_overhead(plan.overhead);
    }
    let product = plan.rate * 2.0 * (plan.delay + 0.005) / 12_000.0;
    let queue = if family == Family::ShortQueues { dice.between(3, 10) as f64 } else { (plan.queue * product).max(4.0) };
    let lossy_bottleneck = !matches!(family, Family::Backbone | Family::Fades);
    let errors = |here: bool| if here { plan.errors.clone() } else { Errors::None };
    let hops = match family {
        Family::ParkingLot => 3,
        Family::Upstream => 2,
        _ => 1,
    };
    let routers: Vec<NodeId> = (0..=hops).map(|n| builder.router(format!("r{n}"))).collect();
    // Before the bottleneck, or behind it.
    builder.middle = Some(routers[if number % 2 == 0 { 0 } else { hops }]);
    for (n, pair) in routers.windows(2).enumerate() {
        // In a row of bottlenecks the last one loses packets.
        let here = lossy_bottleneck && n + 1 == hops;
        let mut forward = link(plan.rate, plan.delay / hops as f64, queue, errors(here), plan.effect);
        let mut back = match plan.back {
            Some(share) => {
                link((plan.rate * share).max(100e3), plan.delay, 50.0, Errors::Packets { probability: 0.02 }, Effect::Erase)
            }
            None => clean(plan.rate, plan.delay / hops as f64),
        };
        habits(family, &mut dice, plan.delay, (&mut forward, &mut back));
        builder.link(pair[0], pair[1], forward, back);
    }
    let access = plan.rate * 10.0;
    let ends = |builder: &mut Site, dice: &mut Dice, name: &str, from: NodeId, to: NodeId, lossy: bool| {
        let (a, b) = (builder.host(format!("{name}a")), builder.host(format!("{name}b")));
        let delay = 0.0005 + 0.01 * dice.unit();
        builder.link(a, from, clean(access, delay), clean(access, delay));
        let mut last = link(access, 0.0005, 1e5, errors(lossy), plan.effect);
        if family == Family::Fades {
            last.outage = vec![away(dice, (0.02, 1.0), WhileDown::Dropped)];
        }
        builder.link(to, b, last, clean(access, 0.0005));
        (a, b)
    };
    let across: Vec<(NodeId, NodeId)> = if hops > 1 {
        routers.windows(2).take(if family == Family::Upstream { 1 } else { hops }).map(|pair| (pair[0], pair[1])).collect()
    } else {
        Vec::new()
    };
    let last = routers[hops];
    for n in 0..plan.flows as usize + across.len() {
        let own = n < plan.flows as usize;
        let (from, to) = if own { (routers[0], last) } else { across[n - plan.flows as usize] };
        // Short transfers are all between the same two.
        let again = if family == Family::Transfers { builder.flows.first().copied() } else { None };
        let new = |builder: &mut Site, dice: &mut Dice| ends(builder, dice, &format!("f{n}"), from, to, own && !lossy_bottleneck);
        let (a, b) = again.unwrap_or_else(|| new(&mut builder, &mut dice));
        // Of many flows a few are enough to watch.
        let observed = own && (n < 6 || family == Family::Transfers);
        let short = (family == Family::Transfers).then_some(4.0 * n as f64);
        flow(&mut builder, &mut dice, &format!("f{n}"), (a, b), observed.then_some(&mut watch), short);
    }
    if plan.datagrams > 0.0 {
        let (a, b) = ends(&mut builder, &mut dice, "cbr", routers[0], last, false);
        // On for a while, off for a while.
        let mut at = 0.0;
        for n in 0.. {
            let stop = at + dice.scale(0.5, 10.0);
            builder.cbr(CbrFlow {
                name: format!("cbr{n}"),
                from: a,
                to: b,
                start: Instant::ZERO + Duration::from_secs_f64(at),
                stop: Instant::ZERO + Duration::from_secs_f64(stop),
                rate: BitRate::from_bps((plan.rate * plan.datagrams) as u64),
                octets: 1000,
                rhythm: Rhythm::default(),
            });
            at = stop + dice.scale(0.5, 10.0);
            if at > 60.0 {
                break;
            }
        }
    }
    builder.lasting(if family == Family::Many { 30 } else { 60 })
}
