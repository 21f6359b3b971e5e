//! One direction of the path between the two hosts: rate, delay, a drop-tail queue, and faults that a test asks for.

use super::damage::damage;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use whyloss_transport::differentiation::Cause;
use whyloss_transport::segment::{
    self, BandwidthReport, CauseReport, CorruptionReport, Ecn, Flags, HeaderReport, Integrity, PositionBasis, RateReport, Report,
    ReportedPosition, Segment, Separation, Wave, WaveRate,
};
use whyloss_transport::{BitRate, Duration, Instant, Seq};

/// What can happen to a segment on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The segment is dropped.
    Drop,
    /// It arrives later, and so perhaps out of order.
    Delay(Duration),
    /// A copy follows it after this long.
    Duplicate(Duration),
    /// Its bits are damaged, and the receiver is told as much as [`Integrity`] says.
    Damage(Integrity),
    /// A router marks it "congestion experienced" if it is ECN-capable, and drops it if it is not (RFC 3168, 5).
    Mark,
    /// A middlebox removes options.
    Strip(Strip),
    /// Somebody puts a wave and a report of any kind and content into it.
    Forge,
}

/// The options that a middlebox removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strip {
    /// SACK permitted and SACK blocks.
    pub sack: bool,
    /// Remove timestamps.
    pub timestamps: bool,
    /// Remove the window scale.
    pub window_scale: bool,
    /// Everything of kind 253: nonces, reports and the offer of them.
    pub reports: bool,
}

/// A segment on its way, as a fault's predicate sees it.
#[derive(Clone, Copy, Debug)]
pub struct Passing<'a> {
    /// When the segment enters the link.
    pub now: Instant,
    /// How many segments entered the link before it.
    pub index: u64,
    /// How many segments with data entered the link before it, if it has data.
    pub data_index: Option<u64>,
    /// Offset in the data stream of its first octet, if it has data.
    pub offset: Option<u64>,
    /// How often data that starts at this offset entered the link before.
    pub transmission: u32,
    /// The segment that enters.
    pub segment: &'a Segment,
}

type Predicate = Box<dyn FnMut(&Passing, &mut Pcg64Mcg) -> bool + Send>;

struct Rule {
    fault: Fault,
    applies: Predicate,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

/// What a link did; at any time `entered + copies = delivered + dropped + overflowed + on the way`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Segments that the sender handed over.
    pub entered: u64,
    /// Copies that duplication made, and segments that a test put on the way.
    pub copies: u64,
    /// Segments and copies handed to the receiver.
    pub delivered: u64,
    /// Dropped by a fault or while the link was down.
    pub dropped: u64,
    /// Dropped because the queue was full.
    pub overflowed: u64,
}

/// One direction of the path.
#[derive(Debug)]
pub struct Link {
    delay: Duration,
    rate: Option<BitRate>,
    queue: usize,
    rules: Vec<Rule>,
    outages: Vec<(Instant, Instant)>,

    busy_until: Instant,
    carried: u64,
    departures: VecDeque<Instant>,
    first_octet: Option<u32>,
    data_entered: u64,
    crossings: HashMap<u64, u32>,
    count: Count,
}

/// A segment that will reach the receiver.
#[derive(Debug)]
pub(super) struct Delivery {
    pub at: Instant,
    pub segment: Segment,
    pub integrity: Integrity,
}

/// Octets of headers below TCP that count on the link: IPv4.
const IP_HEADER: u64 = 20;

impl Link {
    /// A link without a limit of rate.
    pub fn new(delay: Duration) -> Self {
        Self {
            delay,
            rate: None,
            queue: usize::MAX,
            rules: Vec::new(),
            outages: Vec::new(),
            busy_until: Instant::ZERO,
            carried: 0,
            departures: VecDeque::new(),
            first_octet: None,
            data_entered: 0,
            crossings: HashMap::new(),
            count: Count::default(),
        }
    }

    /// Serialises at `rate`; at most `queue` segments wait or are being sent, the rest overflows.
    pub fn bottleneck(mut self, rate: BitRate, queue: usize) -> Self {
        self.rate = Some(rate);
        self.queue = queue.max(1);
        self
    }

    /// `fault` whenever `predicate` says so.
    pub fn fault(mut self, fault: Fault, mut predicate: impl FnMut(&Passing) -> bool + Send + 'static) -> Self {
        self.rules.push(Rule { fault, applies: Box::new(move |passing, _| predicate(passing)) });
        self
    }

    /// `fault` for the segments with data of these indices, counted from 0 with retransmissions.
    pub fn fault_at(self, fault: Fault, indices: impl IntoIterator<Item = u64>) -> Self {
        let indices: Vec<u64> = indices.into_iter().collect();
        self.fault(fault, move |passing| passing.data_index.is_some_and(|index| indices.contains(&index)))
    }

    /// `fault` for each segment independently with probability `p`.
    pub fn fault_randomly(mut self, fault: Fault, p: f64) -> Self {
        self.rules.push(Rule { fault, applies: Box::new(move |_, rng| rng.random_bool(p)) });
        self
    }

    /// `fault` for each segment with data independently with probability `p`.
    pub fn fault_data_randomly(mut self, fault: Fault, p: f64) -> Self {
        let applies = move |passing: &Passing, rng: &mut Pcg64Mcg| passing.data_index.is_some() && rng.random_bool(p);
        self.rules.push(Rule { fault, applies: Box::new(applies) });
        self
    }

    /// Nothing passes from `from` up to `until`.
    pub fn down(mut self, from: Instant, until: Instant) -> Self {
        self.outages.push((from, until));
        self
    }

    /// What the link has done so far.
    pub const fn count(&self) -> Count {
        self.count
    }

    pub(super) fn delivered_one(&mut self) {
        self.count.delivered += 1;
    }

    /// Somebody else put a segment on the way.
    pub(super) fn injected(&mut self) {
        self.count.copies += 1;
    }

    /// The time at which the last outage ends.
    pub(super) fn last_outage(&self) -> Instant {
        self.outages.iter().map(|o| o.1).max().unwrap_or(Instant::ZERO)
    }

    /// Takes a segment from the sender and says what will reach the receiver.
    pub(super) fn enter(&mut self, now: Instant, mut segment: Segment, rng: &mut Pcg64Mcg) -> (Vec<Delivery>, Vec<Fault>) {
        let faults = self.faults(now, &segment, rng);
        self.count.entered += 1;
        let down = self.outages.iter().any(|(from, until)| *from <= now && now < *until);
        if down || faults.contains(&Fault::Drop) {
            self.count.dropped += 1;
            return (Vec::new(), vec![Fault::Drop]);
        }
        let Some(departure) = self.serialise(now, &segment) else {
            self.count.overflowed += 1;
            return (Vec::new(), vec![Fault::Drop]);
        };
        let mut at = departure + self.delay;
        let mut integrity = Integrity::Intact;
        let mut copies = Vec::new();
        for fault in &faults {
            match *fault {
                Fault::Drop => {}
                Fault::Delay(extra) => at += extra,
                Fault::Duplicate(after) => copies.push(after),
                Fault::Damage(how) => {
                    damage(&mut segment, how, rng);
                    integrity = how;
                }
                Fault::Mark if segment.ecn == Ecn::NotCapable => {
                    self.count.dropped += 1;
                    return (Vec::new(), vec![Fault::Drop]);
                }
                Fault::Mark => segment.ecn = Ecn::CongestionExperienced,
                Fault::Strip(what) => strip(&mut segment, what),
                Fault::Forge => forge(&mut segment, rng),
            }
        }
        self.count.copies += copies.len() as u64;
        let mut deliveries: Vec<_> =
            copies.into_iter().map(|after| Delivery { at: at + after, segment: segment.clone(), integrity }).collect();
        deliveries.insert(0, Delivery { at, segment, integrity });
        (deliveries, faults)
    }

    fn faults(&mut self, now: Instant, segment: &Segment, rng: &mut Pcg64Mcg) -> Vec<Fault> {
        if segment.flags.contains(Flags::SYN) {
            self.first_octet = Some(segment.seq.0.wrapping_add(1));
        }
        let has_data = !segment.payload.is_empty();
        // The streams of these tests are shorter than 4 GiB.
        let offset = self.first_octet.filter(|_| has_data).map(|first| u64::from(segment.seq.0.wrapping_sub(first)));
        let crossings = offset.map(|offset| self.crossings.entry(offset).or_default());
        let passing = Passing {
            now,
            index: self.count.entered,
            data_index: has_data.then_some(self.data_entered),
            offset,
            transmission: crossings.as_deref().copied().unwrap_or(0),
            segment,
        };
        if let Some(crossings) = crossings {
            *crossings += 1;
        }
        self.data_entered += u64::from(has_data);
        // Every rule is asked for every segment, so that counting predicates and random ones do not depend on each other.
        self.rules.iter_mut().filter_map(|rule| (rule.applies)(&passing, rng).then_some(rule.fault)).collect()
    }

    /// When the last bit of the segment leaves, or `None` if the queue is full.
    fn serialise(&mut self, now: Instant, segment: &Segment) -> Option<Instant> {
        let Some(rate) = self.rate else { return Some(now) };
        while self.departures.front().is_some_and(|departure| *departure <= now) {
            self.departures.pop_front();
        }
        if self.departures.len() >= self.queue {
            return None;
        }
        let start = self.busy_until.max(now);
        let carried = if start == self.busy_until { self.carried } else { 0 };
        let (span, carried) = rate.serialise(segment.len() as u64 + IP_HEADER, carried);
        self.carried = carried;
        self.busy_until = start + span;
        self.departures.push_back(self.busy_until);
        Some(self.busy_until)
    }
}

fn forge(forged: &mut Segment, rng: &mut Pcg64Mcg) {
    let near = |seq: Seq, rng: &mut Pcg64Mcg| seq + rng.random_range(0..100_000);
    let report = match rng.random_range(0..6) {
        4 => Report::Bandwidth(BandwidthReport { kbps: rng.random() }),
        5 => {
            let hole = |rng: &mut Pcg64Mcg| segment::Snack {
                hole1_offset: rng.random_range(0..100),
                hole1_size: rng.random_range(0..100),
                bits: rng.random::<[u8; 2]>().to_vec().into(),
            };
            forged.options.rare.get_or_insert_default().snacks = vec![hole(rng), hole(rng)];
            return forged.options.fit();
        }
        0 => {
            let (wave, rate): (u8, u8) = (rng.random(), rng.random());
            // What asks for a rate is made to ask for another one.
            match forged.options.rare.as_ref().and_then(|rare| rare.report) {
                Some(Report::Pace(_)) => Report::Pace(u32::from(rate) << (wave % 24)),
                _ => Report::Rate(RateReport { wave, rate: WaveRate::Scaled(rate) }),
            }
        }
        1 => Report::HeaderIntact(HeaderReport { seq: near(forged.ack, rng), count: rng.random() }),
        2 => {
            let cause = [Cause::Unknown, Cause::Congestion, Cause::Corruption][rng.random_range(0..3)];
            let (seq, len) = (near(forged.ack, rng), rng.random_range(0..1 << 17));
            Report::Cause(CauseReport { cause, classifier: rng.random_range(0..16), seq, len })
        }
        _ => {
            let basis = PositionBasis::SeqConfirmed;
            let position = Some(ReportedPosition { seq: near(forged.ack, rng), len: 1460, basis });
            Report::Corruption(CorruptionReport { count: rng.random(), position, ..CorruptionReport::default() })
        }
    };
    let options = &mut forged.options;
    if !forged.payload.is_empty() {
        let (number, size): (u8, u8) = (rng.random(), rng.random());
        options.wave = Some(Wave { number, size });
        if let Some(separation) = options.rare.as_mut().and_then(|rare| rare.separation.as_mut()) {
            let micros = u32::from(size) << (number % 23);
            *separation = Separation { number, micros, kept: size % 2 == 0, trip: u16::from(size) };
        }
    }
    options.rare.get_or_insert_default().report = Some(report);
    options.fit();
}

fn strip(segment: &mut Segment, what: Strip) {
    let options = &mut segment.options;
    if what.sack {
        options.sack_permitted = false;
        options.sack.truncate(0);
    }
    if what.timestamps {
        options.timestamps = None;
    }
    if what.window_scale {
        options.window_scale = None;
    }
    if what.reports {
        options.nonce = None;
        options.header_check = false;
        options.wave = None;
        if let Some(rare) = &mut options.rare {
            rare.report = None;
            rare.separation = None;
            rare.reports_permitted = false;
            rare.words_permitted = false;
            rare.short_nonce = None;
            rare.scps = None;
            rare.snacks.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use whyloss_transport::{Payload, Seq};

    fn data(seq: u32, len: u32) -> Segment {
        Segment { seq: Seq(seq), flags: Flags::ACK, payload: Payload::Synthetic { offset: 0, len }, ..Segment::default() }
    }

    #[test]
    fn a_bottleneck_spaces_segments_and_overflows() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        // 1000 octets with all headers at 8 Mbit/s take 1 ms.
        let mut link = Link::new(Duration::from_millis(10)).bottleneck(BitRate::from_bps(8_000_000), 2);
        let times: Vec<_> =
            (0..3).flat_map(|_| link.enter(Instant::ZERO, data(0, 960), &mut rng).0).map(|d| d.at.as_nanos()).collect();
        assert_eq!(times, [11_000_000, 12_000_000]);
        assert_eq!(link.count().overflowed, 1);
    }

    #[test]
    fn faults_find_their_segments() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut link = Link::new(Duration::ZERO).fault_at(Fault::Drop, [1]).fault(Fault::Drop, |p| p.transmission == 1);
        let syn = Segment { seq: Seq(u32::MAX), flags: Flags::SYN, ..Segment::default() };
        let mut passes = |segment| !link.enter(Instant::ZERO, segment, &mut rng).0.is_empty();
        assert!(passes(syn));
        assert!(passes(data(0, 10)));
        assert!(!passes(data(10, 10)), "the second segment with data");
        assert!(passes(data(20, 10)));
        assert!(!passes(data(0, 10)), "the second crossing of offset 0");
    }

    #[test]
    fn an_outage_and_a_mark_drop_what_they_must() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let second = Instant::ZERO + Duration::from_secs(1);
        let mut link = Link::new(Duration::ZERO).down(Instant::ZERO, second).fault(Fault::Mark, |_| true);
        assert!(link.enter(Instant::ZERO, data(0, 1), &mut rng).0.is_empty());
        assert!(link.enter(second, data(0, 1), &mut rng).0.is_empty(), "not ECN-capable");
        let capable = Segment { ecn: Ecn::Capable0, ..data(0, 1) };
        let (deliveries, _) = link.enter(second, capable, &mut rng);
        assert_eq!(deliveries[0].segment.ecn, Ecn::CongestionExperienced);
    }
}
