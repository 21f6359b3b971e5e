//! Random worlds in families, each with captures at the sender, in the middle and at the receiver.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use whyloss_sim::{
    Amount, Builder, CaptureSpec, CbrFlow, ChannelSpec, CoDel, Discipline, Effect, End, Errors, Jitter, JitterLaw, Limits,
    LinkSpec, NodeId, Outage, Pie, Policer, QueueLimit, Records, Reorder, Rhythm, Spell, Step, TcpFlow, WhileDown,
};
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

/// What a world is about; the rest of it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Nothing but a queue that overflows, smaller or larger than the path.
    DropTail,
    /// CoDel or PIE.
    Aqm,
    /// A queue so small that it polices.
    Tight,
    /// Random packet or bit errors.
    Corruption,
    /// Errors in bursts.
    Bursts,
    /// The link is down now and then.
    Outages,
    /// Packets overtake each other.
    Reordering,
    /// Delays that now and then exceed the retransmission timeout.
    Spikes,
    /// Acknowledgements are lost.
    AckLoss,
    /// A small receive window.
    Receiver,
    /// Several flows share the queue.
    Flows,
    /// Datagrams come and go in the same queue.
    Cross,
    /// The way back is slow.
    Asymmetric,
    /// The link copies packets.
    Duplication,
    /// A small queue and random errors.
    Mixed,
    /// A token bucket polices what comes to the bottleneck; it is none of [`ALL`](Self::ALL).
    Policed,
}

impl Family {
    /// All that learned causes are measured on.
    pub const ALL: [Self; 15] = [
        Self::DropTail,
        Self::Aqm,
        Self::Tight,
        Self::Corruption,
        Self::Bursts,
        Self::Outages,
        Self::Reordering,
        Self::Spikes,
        Self::AckLoss,
        Self::Receiver,
        Self::Flows,
        Self::Cross,
        Self::Asymmetric,
        Self::Duplication,
        Self::Mixed,
    ];
}

/// The places where captures are taken, in their order.
pub const PLACES: [&str; 3] = ["sender", "middle", "receiver"];

/// How well the captures are taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taking {
    /// Octets kept of each packet; 0: all.
    pub snaplen: u32,
    /// The share of packets that they miss.
    pub holes: f64,
    /// Hosts see what they send behind the queues of their links, as on Linux.
    pub behind_queue: bool,
}

/// What a world has left.
#[derive(Debug)]
pub struct Outcome {
    /// The captures at [`PLACES`].
    pub captures: [Vec<u8>; 3],
    /// What the simulator says.
    pub records: Records,
    /// What was drawn, in words.
    pub about: String,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(octets)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Numbers that look random (splitmix64).
struct Dice(u64);

impl Dice {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, share: f64) -> bool {
        self.unit() < share
    }

    /// Between two numbers, evenly in their logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.unit() * choices.len() as f64) as usize]
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// What differs between senders.
#[derive(Clone, Copy, Debug)]
struct Habits {
    profile: &'static str,
    scheme: &'static str,
    sack: bool,
    timestamps: bool,
    rack: bool,
    frto: bool,
}

impl Habits {
    fn draw(dice: &mut Dice) -> Self {
        let profile = dice.of(&["modern", "modern", "linux", "linux", "freebsd45"]);
        let scheme = dice.of(&["newreno", "sack", "cubic", "cubic", "westwood", "veno"]);
        let today = profile != "freebsd45";
        Self {
            profile,
            scheme,
            sack: dice.chance(if today { 0.8 } else { 0.2 }),
            timestamps: dice.chance(0.7),
            rack: today && dice.chance(0.5),
            frto: dice.chance(0.3),
        }
    }

    fn end(self, receive_buffer: Option<u64>) -> End {
        let mut config = Config::profile(self.profile).expect("a profile");
        let mut selection = Selection::scheme(self.scheme);
        if self.frto {
            selection.timeout = Some("f-rto".to_owned());
        }
        let parts = selection.build(&mut config).expect("a scheme");
        (config.sack, config.timestamps) = (self.sack, self.timestamps);
        config.dsack = self.sack;
        (config.rack, config.tlp) = (self.rack && self.sack, self.rack && self.sack);
        if let Some(octets) = receive_buffer {
            config.receive_buffer = octets;
        }
        End::new(config, parts)
    }
}

/// Lets the world of this number in its family happen.
pub fn run(family: Family, number: u64, taking: Taking) -> Outcome {
    let mut dice = Dice(number << 8 | family as u64);
    let rate = dice.between(1e6, 2e7);
    let trip = dice.between(0.01, 0.2);
    let path = rate * trip / 8.0;
    let share = match family {
        Family::DropTail => dice.between(0.1, 3.0),
        Family::Tight => 0.0,
        Family::Mixed | Family::Flows | Family::Cross => dice.between(0.3, 1.5),
        Family::Asymmetric => 1.0,
        _ => dice.between(0.7, 2.0),
    };
    let packets = ((path * share / 1500.0) as u32).clamp(if family == Family::Tight { 3 } else { 8 }, 1000);
    let effect = if dice.chance(0.5) { Effect::Damage } else { Effect::Erase };
    let errors = match family {
        Family::Corruption if dice.chance(0.3) => Errors::Bits { ber: dice.between(3e-7, 3e-6) },
        Family::Corruption | Family::Mixed => Errors::Packets { probability: dice.between(0.001, 0.03) },
        Family::Bursts => {
            let step = if dice.chance(0.5) { Step::Packet } else { Step::Time(seconds(12_000.0 / rate)) };
            Errors::Gilbert {
                stay_good: 1.0 - dice.between(0.0005, 0.005),
                stay_bad: dice.between(0.3, 0.9),
                hits: Errors::IN_BAD,
                step,
            }
        }
        _ => Errors::None,
    };
    let mut forward = LinkSpec {
        rate: BitRate::from_bps(rate as u64),
        delay: seconds(trip * 0.3),
        queue: QueueLimit::Packets(packets),
        ..LinkSpec::default()
    };
    let mut reverse = LinkSpec { queue: QueueLimit::Packets(1000), ..forward.clone() };
    let mut last = LinkSpec {
        rate: BitRate::from_bps(200_000_000),
        delay: seconds(trip * 0.15),
        queue: QueueLimit::Packets(1000),
        ..LinkSpec::default()
    };
    let access = LinkSpec { rate: BitRate::from_bps(1_000_000_000), delay: seconds(trip * 0.05), ..last.clone() };
    let back = last.clone();
    match family {
        Family::Aqm => {
            forward.queue = QueueLimit::Packets(packets.max(60) * 2);
            forward.discipline =
                Some(if dice.chance(0.5) { Discipline::CoDel(CoDel::default()) } else { Discipline::Pie(Pie::default()) });
        }
        Family::Outages => {
            let outage = Outage {
                at: Instant::ZERO + seconds(dice.between(0.3, 2.0)),
                lasts: Spell::Always(seconds(dice.between(0.05, 1.5))),
                every: Some(seconds(dice.between(3.0, 8.0))),
                gap: None,
                packets: WhileDown::Dropped,
            };
            (forward.outage, reverse.outage) = (vec![outage], vec![outage]);
        }
        Family::Reordering => {
            let late = Some(seconds(trip * dice.between(0.02, 0.6)));
            last.reorder = Some(Reorder { share: dice.between(0.002, 0.05), late, early: None });
        }
        Family::Spikes => {
            // Nothing is lost in these: packets wait while the link is away.
            let outage = Outage {
                at: Instant::ZERO + seconds(1.0),
                lasts: Spell::Always(seconds(dice.between(0.4, 2.0))),
                every: Some(seconds(dice.between(3.0, 6.0))),
                gap: None,
                packets: WhileDown::Held,
            };
            forward.outage = vec![outage];
            forward.jitter = Some(Jitter::new(seconds(trip * 0.05), JitterLaw::Exponential));
        }
        Family::AckLoss => {
            reverse.channel =
                ChannelSpec { errors: Errors::Packets { probability: dice.between(0.05, 0.4) }, effect: Effect::Erase };
        }
        Family::Asymmetric => {
            reverse.rate = BitRate::from_bps((rate / dice.between(60.0, 200.0)) as u64);
            reverse.queue = QueueLimit::Packets(20);
        }
        Family::Policed => {
            let share = dice.between(0.3, 0.8);
            let burst = (rate * share / 8.0 * dice.between(0.05, 0.4)).max(20_000.0) as u64;
            forward.policer = Some(Policer { rate: BitRate::from_bps((rate * share) as u64), burst });
        }
        Family::Duplication => last.duplicate = dice.between(0.002, 0.05),
        _ => {}
    }
    let spoilt = ChannelSpec { errors, effect };
    if dice.chance(0.5) {
        last.channel = spoilt;
    } else {
        forward.channel = spoilt;
    }
    let habits = Habits::draw(&mut dice);
    let early = dice.chance(0.5);
    let buffer = (family == Family::Receiver).then(|| (path * dice.between(0.3, 1.5)).max(8_000.0) as u64);
    let octets = (rate * 8.0 / 8.0).clamp(6e5, 4e6) as u64;
    let about = format!(
        "{family:?} {number}: {:.1} Mbit/s, {:.0} ms, queue of {packets}, {habits:?}, middle {} the bottleneck",
        rate / 1e6,
        trip * 1e3,
        if early { "before" } else { "behind" }
    );
    let mut builder = Builder::new(number, family as u64);
    let [a, x, b, y] = ["a", "x", "b", "y"].map(|name| builder.host(name));
    let [left, right] = ["left", "right"].map(|name| builder.router(name));
    builder.link(a, left, access.clone(), access.clone());
    builder.link(x, left, access.clone(), access);
    builder.link(left, right, forward, reverse);
    builder.link(right, b, last, back.clone());
    builder.link(right, y, back.clone(), back);
    let flow = |name: &str, (from, to), start: f64, octets| TcpFlow {
        name: name.to_owned(),
        from,
        to,
        start: Instant::ZERO + seconds(start),
        amount: Amount::Octets(octets),
        sender: habits.end(None),
        receiver: habits.end(buffer),
    };
    builder.tcp(flow("main", (a, b), 0.0, octets));
    if family == Family::Flows {
        for (name, start) in [("second", 0.1), ("third", 0.7), ("fourth", 1.5)] {
            builder.tcp(flow(name, if name == "third" { (a, b) } else { (x, y) }, start, octets / 2));
        }
    }
    if family == Family::Cross {
        let rhythm = Rhythm { jitter: 0.5, ..Rhythm::default() };
        let (start, stop) = (Instant::ZERO + seconds(0.5), Instant::ZERO + seconds(60.0));
        let rate = BitRate::from_bps((rate * dice.between(0.1, 0.6)) as u64);
        builder.cbr(CbrFlow { name: "noise".to_owned(), from: x, to: y, start, stop, rate, octets: 500, rhythm });
    }
    let files = [(a, Shared::default()), (if early { left } else { right }, Shared::default()), (b, Shared::default())];
    for (place, (node, file)) in PLACES.iter().zip(&files) {
        let behind_queue = taking.behind_queue && *place != PLACES[1];
        tap(&mut builder, place, *node, file, Taking { behind_queue, ..taking });
    }
    let mut simulation = builder.build().unwrap_or_else(|error| panic!("{about}: {error}"));
    let limits = Limits { until: Some(Instant::ZERO + seconds(120.0)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).unwrap_or_else(|error| panic!("{about}: {error}"));
    let captures = files.map(|(_, file)| std::mem::take(&mut *file.0.lock().unwrap()));
    Outcome { captures, records: simulation.into_records(), about }
}

fn tap(builder: &mut Builder, name: &str, node: NodeId, file: &Shared, Taking { snaplen, holes, behind_queue }: Taking) {
    let (name, out) = (name.to_owned(), Box::new(file.clone()));
    builder.capture(CaptureSpec { name, node, link: None, behind_queue, snaplen, digits: 6, holes, out });
}
