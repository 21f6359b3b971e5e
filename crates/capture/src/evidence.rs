//! What a capture shows around each suspected loss, in numbers: before it, and what a live sender cannot know, after it.

pub mod blackouts;
mod ranks;

use crate::connections::Place;
use crate::half::{Kind, Retransmission, Trigger, Unneeded};
use crate::headers::Segment;
use crate::policer::{Policer, Search};
use crate::replay::{Panel, Says};
use crate::rounds::Rounds;
use crate::scoreboard::{Piece, Scoreboard, Witness};
use blackouts::{Blackout, Blackouts};
use ranks::Order;
pub use ranks::Ranks;
use std::collections::VecDeque;
use whyloss_transport::differentiation::learned::features::{Features, COUNT};
use whyloss_transport::path::{Ack, Loss, Sent};
use whyloss_transport::segment::Flags;
use whyloss_transport::time::{Duration, Instant};

/// Delay samples that are remembered: those around a loss are among the latest.
const SAMPLES: usize = 128;
/// Suspected losses of a direction that wait for what follows.
const MAX_HELD: usize = 1024;
/// Losses of a direction whose delays and windows are remembered to compare others with.
const MAX_COMPARED: usize = 512;
/// A loss waits so long for what follows.
const HORIZON: Duration = Duration::from_secs(30);
/// Round trips after a loss in which a queue has to have drained if the sender's reduction drains it.
const AFTERMATH: u64 = 4;
/// Before anything is known a round trip is taken for so long.
const NOTHING_KNOWN: Duration = Duration::from_millis(100);
/// Times of silence that are remembered.
const MAX_SILENCES: usize = 16;
/// Holes in the row of arrivals that are remembered.
const MAX_HOLES: usize = 64;

/// Where the delays before the drops of a policer stand among all at most, in the mean: those before the drops of a full queue are among the longest.
const LATER: f64 = 0.85;

/// Segments after which the room that a direction takes is counted again.
const RECOUNT: u64 = 16;

/// What is known of a suspected loss. Times are seconds, lengths octets; `None` and NaN-free: what is not known is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// Where the capture was taken.
    pub place: Place,
    /// The lost transmission came to the capture.
    pub seen: bool,
    /// And it came damaged.
    pub damaged: bool,
    /// What made the sender repair it.
    pub trigger: Trigger,
    /// What shows that the repair was not needed.
    pub unneeded: Option<Unneeded>,
    /// From the repair to the first acknowledgement of what it carried.
    pub answered: Option<f64>,
    /// It had been selectively acknowledged.
    pub reneged: bool,
    /// It lay beyond the window that the receiver had announced.
    pub beyond: bool,
    /// Octets of data.
    pub octets: u32,
    /// The largest segment of the direction.
    pub mss: u32,
    /// Round trips of what was sent before and after it and arrived.
    pub trips: (Option<f64>, Option<f64>),
    /// The shortest and the longest round trip of the direction, what came later included.
    pub range: (f64, f64),
    /// The shortest round trip in the time after the loss was noticed.
    pub relieved: Option<f64>,
    /// Rounds without loss in which the delay went higher than before this loss, and all rounds without loss.
    pub fuller: (u32, u32),
    /// The median of the round trip before the direction's other losses.
    pub usual: Option<f64>,
    /// Losses for each packet that met about as long a delay, and those for each that met a much shorter one, over losses for each packet of all
    /// (the loss itself aside): damage is the same at any delay, a full queue is not.
    pub hazards: Option<(f64, f64)>,
    /// Where the round trip stands among those of all packets, and where those before the other losses do.
    pub ranks: Option<Ranks>,
    /// The share of the direction's other losses before which the round trip was longer.
    pub longer_elsewhere: Option<f64>,
    /// Octets outstanding when it was sent.
    pub flight: u64,
    /// The shortest and the longest round trip among the samples just before it was noticed.
    pub around: (f64, f64),
    /// The median of that for the other losses.
    pub usual_flight: Option<f64>,
    /// The largest of all rounds.
    pub largest_flight: u64,
    /// Its place in the flight, from 0 to 1.
    pub position: f64,
    /// Segments lost in the same episode, and how many of them one after the other with this one.
    pub together: u32,
    /// Those that were lost one after the other with it, if they were several.
    pub blackout: Option<Blackout>,
    /// Octets a second delivered in the round of the loss, in the best rounds, and in those after.
    pub rates: (Option<f64>, Option<f64>, Option<f64>),
    /// What a gap in the row of arrivals left open, in the time that one segment usually takes, for each missing segment.
    pub slots: Option<f64>,
    /// Round trips since the episode before.
    pub since: Option<f64>,
    /// How irregular the time between episodes is: standard deviation over mean.
    pub irregular: Option<f64>,
    /// Segments lost for each one sent.
    pub loss_rate: f64,
    /// Segments of the direction that came damaged to the capture.
    pub damaged_elsewhere: u64,
    /// Routers marked, or the receiver echoed marks, within a round trip.
    pub marked: bool,
    /// The direction's packets could be marked instead of dropped.
    pub markable: bool,
    /// For so long nothing came back around the loss, and in that time nothing that was sent arrived.
    pub silence: Option<f64>,
    /// Hop limits before and after differ.
    pub rerouted: bool,
    /// How often it had been sent again.
    pub transmission: u32,
    /// The policer of the direction.
    pub policer: Option<Policer>,
    /// What the features of the live learned differentiator say.
    pub live: Option<[f32; COUNT]>,
    /// Losses of other connections within a round trip, and how many chance would have brought.
    pub others: (u32, f64),
    /// Losses of other connections within a few milliseconds.
    pub others_close: u32,
}

/// A suspected loss and what is known of it.
#[derive(Clone, Debug)]
pub struct Suspect {
    /// The retransmission that repaired it, when all was known of that.
    pub repair: Retransmission,
    /// The record of the transmission that was lost.
    pub number: Option<u64>,
    /// When that was captured, or about when it would have been.
    pub at: Instant,
    /// What is known.
    pub evidence: Evidence,
    /// What each of the differentiators said.
    pub says: Vec<Says>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    left: Instant,
    trip: f64,
    hop_limit: u8,
}

/// A loss that was noticed.
#[derive(Clone, Debug)]
struct Noticed {
    piece: Piece,
    at: Instant,
    before: Option<Sample>,
    after: Option<Sample>,
    position: f64,
    episode: u64,
    live: Option<[f32; COUNT]>,
    says: Vec<Says>,
    slots: Option<f64>,
    /// The longest and the shortest of the round trips just before and after it.
    around: (f64, f64),
    beyond: bool,
    repair: Option<u64>,
    answered: Option<Instant>,
    repaired: Option<Instant>,
    settled: Option<Retransmission>,
}

/// Losses that were noticed within a round trip.
#[derive(Clone, Copy, Debug)]
struct Episode {
    number: u64,
    noticed: Instant,
    lost: u32,
    /// The shortest round trip afterwards, while it counts.
    relieved: f64,
    since: Option<f64>,
}

/// Round trips of a whole connection, every so many-th of them: when there are too many, every second goes.
#[derive(Clone, Debug)]
struct Thinned {
    kept: Vec<f64>,
    stride: u64,
    seen: u64,
}

impl Default for Thinned {
    fn default() -> Self {
        Self { kept: Vec::new(), stride: 1, seen: 0 }
    }
}

impl Thinned {
    fn put(&mut self, trip: f64) {
        if self.seen % self.stride == 0 {
            if self.kept.len() == MAX_COMPARED {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            self.kept.push(trip);
        }
        self.seen += 1;
    }
}

/// What is remembered of a loss to compare others with.
#[derive(Clone, Copy, Debug)]
struct Compared {
    trip: f64,
    flight: u64,
}

/// Follows one direction of a connection and remembers what may become evidence.
#[derive(Debug, Default)]
pub struct Trail {
    board: Scoreboard,
    watch: Watch,
    /// Octets for which there was room beside itself when that was counted last.
    room: usize,
}

#[derive(Debug, Default)]
struct Watch {
    features: Features,
    panel: Panel,
    samples: VecDeque<Sample>,
    rounds: Rounds,
    shortest: Option<f64>,
    longest: f64,
    mss: u32,
    sent: u64,
    lost: u64,
    damaged: u64,
    markable: bool,
    marked: VecDeque<Instant>,
    silences: VecDeque<(Instant, Instant)>,
    last_answer: Option<Instant>,
    episodes: VecDeque<Episode>,
    episode_number: u64,
    /// Seconds between episodes: how many, mean and sum of squared differences (Welford).
    intervals: (u32, f64, f64),
    noticed: VecDeque<Noticed>,
    compared: VecDeque<Compared>,
    ordinary: Thinned,
    blackouts: Blackouts,
    policer: Search,
    hop_limit: Option<u8>,
    /// Right edge of the receiver's window, and the shift of it.
    edge: Option<u64>,
    scale: Option<u8>,
    /// When data was last captured, and how long a segment usually takes.
    last_data: Option<Instant>,
    spacing: Option<f64>,
    /// Latest holes in the row of arrivals: where each began and ended, and how much room it left open.
    holes: VecDeque<(u64, u64, f64)>,
}

impl Trail {
    /// With differentiators that are to judge as well.
    pub fn new(panel: Panel) -> Self {
        Self { watch: Watch { panel, ..Watch::default() }, ..Self::default() }
    }

    /// A segment of this direction; `ready` gets the losses of which enough is known.
    pub fn on_segment(&mut self, segment: &Segment, kind: Kind, ready: &mut dyn FnMut(Suspect)) {
        if segment.seq_len() > 0 && !segment.flags.contains(Flags::SYN) {
            self.watch.on_data(&self.board, segment, kind);
        }
        self.watch.panel.on_segment(&self.board, segment, kind);
        self.board.on_segment(segment, kind, &mut self.watch);
        self.release(segment.at, ready);
        if self.watch.sent % RECOUNT == 0 {
            self.room = self.board.octets() + self.watch.octets();
        }
    }

    /// Octets that it takes; what came in the last few segments may not be counted yet.
    pub fn octets(&self) -> usize {
        size_of::<Self>() + self.room
    }

    /// An acknowledgement of this direction.
    pub fn on_ack(&mut self, segment: &Segment) {
        if segment.flags.contains(Flags::SYN) {
            self.watch.scale = segment.options.window_scale;
        }
        let path = self.board.path();
        self.watch.on_answer(segment.at, path.flight > 0, path.rto);
        if path.flight > 0 {
            self.watch.blackouts.on_answer(segment.at, path.srtt.unwrap_or(NOTHING_KNOWN) / 4);
        }
        self.board.on_ack(segment, &mut self.watch);
        let path = self.board.path();
        let shift = if segment.flags.contains(Flags::SYN) { 0 } else { self.watch.scale.unwrap_or(0) };
        let edge = self.board.position(segment.ack).saturating_add(u64::from(segment.window) << shift);
        self.watch.edge = Some(self.watch.edge.map_or(edge, |before| before.max(edge)));
        let una = path.una;
        self.watch.answer(una, segment.at);
    }

    /// All that will be known of a retransmission is known. Whether it will come out as a suspect; it does not if the scoreboard had no place for it.
    pub fn on_settled(&mut self, repair: &Retransmission) -> bool {
        let trip = self.board.path().srtt.unwrap_or(NOTHING_KNOWN);
        let noticed = &mut self.watch.noticed;
        let Some(index) = noticed.iter().position(|noticed| noticed.repair == Some(repair.number)) else { return false };
        noticed[index].settled = Some(repair.clone());
        if repair.unneeded.is_none() {
            self.watch.blackouts.on_lost(&noticed[index].piece, repair.at, trip);
        }
        true
    }

    /// The connection is over: every loss is given out.
    pub fn finish(&mut self, ready: &mut dyn FnMut(Suspect)) {
        let policer = self.watch.policer();
        let noticed = std::mem::take(&mut self.watch.noticed);
        for noticed in noticed {
            if let Some(suspect) = self.watch.conclude(&noticed, &self.board, policer) {
                ready(suspect);
            }
        }
    }

    /// Gives out what has waited long enough, or longest when there is too much.
    fn release(&mut self, now: Instant, ready: &mut dyn FnMut(Suspect)) {
        loop {
            let full = self.watch.noticed.len() > MAX_HELD;
            let Some(oldest) = self.watch.noticed.front() else { return };
            let waited = now > oldest.at && now.since(oldest.at) > HORIZON;
            if !(full || waited && oldest.settled.is_some() || now > oldest.at && now.since(oldest.at) > HORIZON * 4) {
                return;
            }
            let policer = self.watch.policer();
            let Some(oldest) = self.watch.noticed.pop_front() else { return };
            if let Some(suspect) = self.watch.conclude(&oldest, &self.board, policer) {
                ready(suspect);
            }
        }
    }
}

impl Watch {
    /// Octets for which there is room beside itself.
    fn octets(&self) -> usize {
        fn each<T>(of: &VecDeque<T>) -> usize {
            of.capacity() * size_of::<T>()
        }
        let histories =
            each(&self.samples) + each(&self.compared) + self.blackouts.octets() + each(&self.holes) + self.rounds.octets();
        let events = each(&self.marked) + each(&self.silences) + each(&self.episodes);
        let losses = each(&self.noticed) + self.noticed.len() * self.panel.octets_of_a_loss();
        let trips = self.ordinary.kept.capacity() * size_of::<f64>();
        histories + events + losses + trips + self.policer.octets() + self.panel.octets()
    }

    fn on_data(&mut self, board: &Scoreboard, segment: &Segment, kind: Kind) {
        self.mss = self.mss.max(segment.len);
        self.damaged += u64::from(segment.is_damaged());
        self.markable |= segment.ecn != 0;
        if segment.ecn == 3 {
            self.mark(segment.at);
        }
        self.hop_limit = Some(segment.hop_limit);
        let gap =
            self.last_data.replace(segment.at).filter(|last| segment.at > *last).map(|last| segment.at.since(last).as_secs_f64());
        let start = board.position(segment.seq);
        if kind != Kind::New {
            return;
        }
        let missing = (start.saturating_sub(board.path().nxt)).div_ceil(u64::from(self.mss.max(1)));
        match (gap, self.spacing) {
            (Some(gap), Some(spacing)) if missing > 0 && missing < 1 << 10 => {
                if self.holes.len() == MAX_HOLES {
                    self.holes.pop_front();
                }
                let slots = ((gap / spacing - 1.0) / missing as f64).clamp(-4.0, 16.0);
                self.holes.push_back((board.path().nxt, start, slots));
            }
            (Some(gap), spacing) if missing == 0 => {
                self.spacing = Some(spacing.map_or(gap, |spacing| spacing + (gap - spacing) / 16.0));
            }
            _ => {}
        }
    }

    fn mark(&mut self, at: Instant) {
        if self.marked.len() == MAX_SILENCES {
            self.marked.pop_front();
        }
        self.marked.push_back(at);
    }

    /// Something came back.
    fn on_answer(&mut self, at: Instant, awaited: bool, timeout: Duration) {
        if let Some(last) = self.last_answer.replace(at) {
            if awaited && at > last && at.since(last) > timeout {
                if self.silences.len() == MAX_SILENCES {
                    self.silences.pop_front();
                }
                self.silences.push_back((last, at));
            }
        }
    }

    /// Everything before `una` has arrived.
    fn answer(&mut self, una: u64, at: Instant) {
        for noticed in self.noticed.iter_mut().rev().take(64) {
            if noticed.repaired.is_some() && noticed.answered.is_none() && noticed.piece.end <= una {
                noticed.answered = Some(at);
            }
        }
    }

    /// Round trips of the segments that left just before and just after.
    fn neighbours(&self, left: Instant) -> (Option<Sample>, Option<Sample>) {
        let mut after = None;
        for sample in self.samples.iter().rev() {
            if sample.left < left {
                return (Some(*sample), after);
            }
            after = Some(*sample);
        }
        (None, after)
    }

    /// What the hole that a piece lies in left open.
    fn hole_of(&self, piece: &Piece) -> Option<f64> {
        let holes = self.holes.iter().rev().filter(|_| piece.number.is_none() && piece.transmission == 0);
        holes.into_iter().find(|(start, end, _)| *start <= piece.start && piece.start < *end).map(|(_, _, slots)| *slots)
    }

    /// The median of what made the round trip longer when losses happened, judged by all of them.
    fn policer(&mut self) -> Option<Policer> {
        let shortest = self.shortest?;
        let late = median(self.compared.iter().map(|compared| compared.trip - shortest))?;
        // Without a queue a loss is no later than anything else.
        let rank = Order::of(&self.ordinary.kept)?.mean(self.compared.iter().map(|compared| compared.trip))?;
        if rank > LATER {
            return None;
        }
        self.policer.verdict(Duration::from_secs_f64(late.max(0.0)))
    }

    fn conclude(&self, noticed: &Noticed, board: &Scoreboard, policer: Option<Policer>) -> Option<Suspect> {
        let repair = noticed.settled.clone()?;
        let piece = &noticed.piece;
        let trip_of = |sample: Option<Sample>| sample.map(|sample| sample.trip);
        let before = trip_of(noticed.before);
        let episode = self.episodes.iter().find(|episode| episode.number == noticed.episode);
        let quiet = || self.rounds.done().iter().filter(|round| round.lost == 0 && round.trips.1 > 0.0);
        let fuller = before.map_or(0, |before| quiet().filter(|round| round.trips.1 > before).count());
        let others = || {
            let mut left_out = false;
            self.compared.iter().filter(move |compared| {
                // The loss itself is among them, once.
                let own = !left_out && Some(compared.trip) == before && compared.flight == piece.flight;
                left_out |= own;
                !own
            })
        };
        let longer = before.map(|before| others().filter(|compared| compared.trip > before).count());
        let compared = others().count();
        let rates: Vec<f64> = self.rounds.done().iter().filter_map(crate::rounds::Round::rate).collect();
        let plateau = quantile(rates.into_iter(), 0.9);
        let place = self.rounds.find(piece.left);
        let rate = place.and_then(|(_, round)| round.rate());
        let rate_after = place.and_then(|(index, _)| self.rounds.done().get(index + 2)).and_then(crate::rounds::Round::rate);
        let trip = board.path().srtt.map_or(0.0, Duration::as_secs_f64);
        let near = |at: Instant, span: f64| {
            at.as_secs_f64() + span >= piece.left.as_secs_f64() && at.as_secs_f64() <= noticed.at.as_secs_f64() + span
        };
        let silence = self
            .silences
            .iter()
            .filter(|(from, to)| *to >= piece.left && from.as_secs_f64() <= piece.left.as_secs_f64() + 2.0 * trip)
            .map(|(from, to)| to.since(*from).as_secs_f64())
            .fold(None, |most: Option<f64>, span| Some(most.map_or(span, |most| most.max(span))));
        let (count, mean, squares) = self.intervals;
        let hop = |sample: Option<Sample>| sample.map(|sample| sample.hop_limit);
        Some(Suspect {
            number: repair.before.or(piece.number),
            at: piece.at,
            says: noticed.says.clone(),
            evidence: Evidence {
                place: Place::Unknown,
                seen: piece.number.is_some(),
                damaged: piece.damaged || repair.damaged,
                trigger: repair.trigger,
                unneeded: repair.unneeded,
                answered: noticed
                    .answered
                    .zip(noticed.repaired)
                    .map(|(answered, repaired)| answered.since(repaired).as_secs_f64()),
                reneged: piece.sacked,
                beyond: noticed.beyond,
                octets: (piece.end - piece.start) as u32,
                mss: self.mss,
                trips: (before, trip_of(noticed.after)),
                range: (self.shortest.unwrap_or(0.0), self.longest),
                relieved: episode.map(|episode| episode.relieved).filter(|trip| trip.is_finite()),
                fuller: (fuller as u32, quiet().count() as u32),
                usual: median(others().map(|compared| compared.trip)),
                hazards: before.and_then(|before| self.hazards(before)),
                ranks: before
                    .and_then(|own| Some(Order::of(&self.ordinary.kept)?.ranks(own, others().map(|compared| compared.trip)))),
                around: noticed.around,
                longer_elsewhere: longer.filter(|_| compared > 0).map(|longer| longer as f64 / compared as f64),
                flight: piece.flight,
                usual_flight: median(others().map(|compared| compared.flight as f64)),
                largest_flight: self.rounds.done().iter().map(|round| round.flight).max().unwrap_or(piece.flight),
                position: noticed.position,
                together: episode.map_or(1, |episode| episode.lost.max(1)),
                blackout: self.blackouts.of(piece).filter(|row| row.count > 1),
                rates: (rate, plateau, rate_after),
                slots: noticed.slots,
                since: episode.and_then(|episode| episode.since),
                irregular: (count > 2 && mean > 0.0).then(|| (squares / f64::from(count)).sqrt() / mean),
                loss_rate: self.lost as f64 / self.sent.max(1) as f64,
                damaged_elsewhere: self.damaged,
                marked: self.marked.iter().any(|at| near(*at, trip)),
                markable: self.markable,
                silence,
                rerouted: matches!((hop(noticed.before), hop(noticed.after)), (Some(before), Some(after)) if before != after),
                transmission: piece.transmission,
                policer,
                live: noticed.live,
                others: (0, 0.0),
                others_close: 0,
            },
            repair,
        })
    }

    /// The range of the latest samples.
    fn around(&self) -> (f64, f64) {
        let latest = self.samples.iter().rev().take(32);
        latest.fold((f64::INFINITY, 0.0), |(low, high), sample| (low.min(sample.trip), f64::max(high, sample.trip)))
    }

    /// See [`Evidence::hazards`]; `None` while there is little to compare with.
    fn hazards(&self, trip: f64) -> Option<(f64, f64)> {
        let width = self.longest - self.shortest?;
        let (losses, packets) = (self.compared.len(), self.ordinary.kept.len());
        if losses < 8 || packets < 32 || width <= 0.0 {
            return None;
        }
        let near = |other: f64| (other - trip).abs() <= width * 0.06;
        let below = |other: f64| other < trip - width * 0.15;
        let count = |holds: &dyn Fn(f64) -> bool| {
            let lost = self.compared.iter().filter(|compared| holds(compared.trip)).count();
            (lost as f64, self.ordinary.kept.iter().filter(|trip| holds(**trip)).count() as f64)
        };
        let (lost_near, packets_near) = count(&near);
        let (lost_below, packets_below) = count(&below);
        let all = (losses as f64 - 1.0) / packets as f64;
        // Half a loss and its packets stand for what was not seen.
        let hazard = |lost: f64, packets: f64| (lost + 0.5) / (packets + 0.5 / all) / all;
        Some((hazard((lost_near - 1.0).max(0.0), packets_near), hazard(lost_below, packets_below)))
    }
}

impl Witness for Watch {
    fn on_sent(&mut self, sent: &Sent, piece: &Piece) {
        self.sent += 1;
        self.policer.on_sent(piece.left, piece.start, sent.len);
        self.panel.on_sent(sent);
    }

    fn on_ack(&mut self, ack: &Ack) {
        self.features.on_ack(ack);
        self.panel.on_ack(ack);
        self.policer.on_acked(ack.path.una);
        let now = ack.path.now;
        if ack.ece {
            self.mark(now);
        }
        let round = self.rounds.at(now, ack.path.srtt);
        round.delivered += ack.delivered;
        round.flight = round.flight.max(ack.path.flight);
        let Some((delay, left)) = ack.delay.zip(ack.newest_sent_at) else { return };
        let trip = delay.as_secs_f64();
        round.trips = (round.trips.0.min(trip), round.trips.1.max(trip));
        self.shortest = Some(self.shortest.map_or(trip, |shortest| shortest.min(trip)));
        self.longest = self.longest.max(trip);
        self.ordinary.put(trip);
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        let sample = Sample { left, trip, hop_limit: self.hop_limit.unwrap_or(0) };
        self.samples.push_back(sample);
        for episode in self.episodes.iter_mut().rev().take(4) {
            let until = AFTERMATH * ack.path.srtt.unwrap_or(delay).as_nanos();
            if left > episode.noticed && left.since(episode.noticed).as_nanos() <= until {
                episode.relieved = episode.relieved.min(trip);
            }
        }
        for noticed in self.noticed.iter_mut().rev().take(64).filter(|noticed| noticed.after.is_none()) {
            if left > noticed.piece.left {
                noticed.after = Some(sample);
            }
        }
    }

    fn on_lost(&mut self, losses: &[(Loss, Piece)]) {
        let says = self.panel.judge(losses);
        for ((loss, piece), says) in losses.iter().zip(says) {
            let path = loss.path;
            let now = path.now;
            let trip = path.srtt.unwrap_or(NOTHING_KNOWN);
            let last = self.episodes.back().copied();
            let new = last.is_none_or(|last| loss.first_of_episode && now.since(last.noticed) > trip);
            if new {
                self.episode_number += 1;
                let since = last.map(|last| now.since(last.noticed).as_secs_f64());
                if let Some(since) = since {
                    let (count, mean, squares) = &mut self.intervals;
                    *count += 1;
                    let off = since - *mean;
                    *mean += off / f64::from(*count);
                    *squares += off * (since - *mean);
                }
                if self.episodes.len() == MAX_HELD {
                    self.episodes.pop_front();
                }
                self.episodes.push_back(Episode {
                    number: self.episode_number,
                    noticed: now,
                    lost: 0,
                    relieved: f64::INFINITY,
                    since: since.map(|since| since / trip.as_secs_f64().max(1e-9)),
                });
            }
            let (before, after) = self.neighbours(piece.left);
            let flight = path.nxt.saturating_sub(path.una).max(1);
            self.noticed.push_back(Noticed {
                piece: *piece,
                at: now,
                before,
                after,
                position: piece.start.saturating_sub(path.una) as f64 / flight as f64,
                episode: self.episode_number,
                live: self.features.observe(loss),
                says,
                around: self.around(),
                slots: self.hole_of(piece),
                beyond: self.edge.is_some_and(|edge| piece.end > edge),
                repair: None,
                answered: None,
                repaired: None,
                settled: None,
            });
        }
    }

    fn on_repair(&mut self, number: u64, at: Instant, lost: &Piece) {
        let noticed = self.noticed.iter_mut().rev().find(|noticed| {
            noticed.repair.is_none() && noticed.piece.start == lost.start && noticed.piece.transmission == lost.transmission
        });
        // What was overtaken for a moment may have been noticed, too. Only what the sender repairs counts.
        let Some(noticed) = noticed else { return };
        (noticed.repair, noticed.repaired) = (Some(number), Some(at));
        if let Some(episode) = self.episodes.iter_mut().rev().find(|episode| episode.number == noticed.episode) {
            episode.lost += 1;
        }
        if let Some(before) = noticed.before {
            if self.compared.len() == MAX_COMPARED {
                self.compared.pop_front();
            }
            self.compared.push_back(Compared { trip: before.trip, flight: lost.flight });
        }
        self.lost += 1;
        self.rounds.now().lost += 1;
        self.policer.on_lost(lost.start);
    }
}

/// The value below which `share` of them lie.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    if values.is_empty() {
        return None;
    }
    let index = ((values.len() - 1) as f64 * share) as usize;
    Some(*values.select_nth_unstable_by(index, f64::total_cmp).1)
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    quantile(values, 0.5)
}

#[cfg(test)]
pub(crate) mod tests;
