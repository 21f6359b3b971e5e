//! One control for any path: a small queue of its own where it is alone, CUBIC's rules where others compete and corruption is rare, and a window
//! that falls only for losses that come when the queue is full.

mod losses;
mod queue;
#[cfg(test)]
mod tests;

use super::{CongestionControl, Cubic, Window};
use crate::estimate::{Extremes, Recent, Remembered};
use crate::kit::{Build, Notes, Part};
use crate::path::{Ack, LostSegment, Path, Sent};
use crate::settings;
use crate::time::Duration;
use losses::Losses;
use queue::{Others, Queue};

pub(super) const PART: Part<dyn CongestionControl> = Part {
    name: "auto",
    summary: "Keeps a small queue where it is alone, competes by CUBIC's rules where it is not, and heeds losses that come when the queue is full.",
    reference: "own; after FAST (Wei et al. 2006), Copa (Arun & Balakrishnan 2018), LDA_EQ and RFC 9438",
    notes: Notes {
        idea: "Delay tells how much of the window waits, so the window needs no loss to stop growing. A loss is a sign of congestion if it comes when the \
               queue is as long as it ever gets, and a sign of corruption if it comes at any other time.",
        formula: "alone: W = W (base + target) / least delay of the round, target = clamp(base / 8, 0.5 ms, 4 ms), or 1.5 segments, and no less than 4 segments; a loss is congestion if the \
                  delay around it is above (mean + max) / 2 of 16 rounds, and above the mean where others keep the queue; then W = 0.7 W, and no less than rate x base where corruption is more frequent; \
                  where others are seen W grows to two thirds of what they have, (W2 d1 - W1 d2) / (d2 - d1) with delays d1 and d2 at windows W1 and W2, at most twice as much at a time, \
                  and on as CUBIC's while corruption is rare; \
                  pace: 1.1 W a round trip, 2 W in slow start, and where others are seen and that is below 3 segments/ms",
        threshold: "",
        fails: "Where the queue holds a segment or two, delay says nothing: most losses then pass for corruption until a fifth of what is sent is lost.",
        errata: "",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    pub struct Settings {
        /// The queue that is aimed at, as a share of the least delay.
        share: f64 = 0.125, 0.001..=1.0;
        /// The least and the most that this may come to, in seconds.
        least: f64 = 0.0005, 0.0..=1.0;
        most: f64 = 0.004, 0.0001..=1.0;
        /// Segments of its own that the queue may always hold.
        segments: f64 = 1.5, 1.0..=100.0;
        /// Unexplained losses that are forgiven, as a share of those that were explained lately.
        allowance: f64 = 0.05, 0.0..=1.0;
        /// Seconds after which the least delay is forgotten.
        history: f64 = 30.0, 1.0..=3600.0;
    }
}

impl Build<dyn CongestionControl> for Settings {
    fn build(self) -> Box<dyn CongestionControl> {
        Box::new(Auto::new(self))
    }
}

/// Cuts in a row that shortened the queue by less than half of what they should have, after which it competes, and rounds of competing after which it
/// looks whether it still has to.
const PRESSED: u32 = 3;
const LOOK: u32 = 128;
/// It competes, too, when shortening the queue has left it less than this part of the rate that it had: others have taken the rest.
const LEFT: f64 = 0.75;
/// Where others are seen the window grows to this part of what they have: two fifths of the link.
const OF_OTHERS: f64 = 2.0 / 3.0;
/// At a time it grows to no more than so many times what it was, and if it is to less than the second, growth is over.
const MOST_GROWTH: f64 = 2.0;
const LEAST_GROWTH: f64 = 1.1;
/// Times that it grows to while nothing tells what they have.
const PROBE: f64 = 1.5;
/// As [`LOOK`], after a loss at a full queue, which may be others' doing, and rounds without such a loss from which on a short queue ends it.
const LOOK_AFTER_LOSS: u32 = 16;
const CALM: u32 = 8;
/// The part of the window that every other round adds while there is no queue, at first and at most: each time it doubles. The round between shows what
/// came of it.
const STEP: f64 = 1.0 / 16.0;
const MOST_STEP: f64 = 0.5;
/// Towards a window at which the queue overflowed it goes by this part of the way at a time, until the way is short: a part of the window.
const APPROACH: f64 = 0.25;
const NEAR: f64 = 1.0 / 32.0;
/// The window does not grow beyond so many times what the rate fills.
const AHEAD: f64 = 1.25;
/// The window falls to no less at once because of delay.
const FALL: f64 = 0.5;
/// Segments to which the window grows whatever the delay, and below which delay does not cut it: of fewer a lone one waits for the receiver's delayed
/// acknowledgement, which would be taken for a queue. BBR's least window is the same.
const FEW: u64 = 4;
/// Segments of delay with which a window may grow that does not fill the path: of two that leave together the second waits for the first.
const PAIR: f64 = 1.25;
/// Pace over window a round trip: in slow start and where it goes by acknowledgements, and else.
const FAST_PACE: f64 = 2.0;
const PACE: f64 = 1.1;
/// Where others are seen and the faster pace is below so many segments a second, it goes by acknowledgements: where a millisecond holds no more than a
/// pair.
const BY_ACKNOWLEDGEMENTS: f64 = 3000.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// The queue is its own. Cuts in a row that hardly shortened it, and the delay that the latest one should have brought.
    Alone { pressed: u32, cut: Option<Cut> },
    /// It is or may be others': rounds of competing that are left, and rounds since congestion was answered.
    Competing { others: Others, left: u32, quiet: u32 },
}

/// What it had when it began to shorten a queue.
#[derive(Clone, Copy, Debug)]
struct Had {
    window: u64,
    /// Octets a second, once the first cut has had its effect.
    rate: Option<u64>,
}

/// The window and the delay as they were before it grew beside others. No delay: it has yet to grow.
#[derive(Clone, Copy, Debug)]
struct Probe {
    window: u64,
    delay: Option<Duration>,
    /// It has grown beyond what it had.
    begun: bool,
    /// A round has passed since, so that the next shows what came of it.
    settled: bool,
}

/// The window was cut to shorten the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cut {
    /// A least delay above this says that it did little.
    more_than: Duration,
    /// A round has passed since, so that its effect can be seen.
    settled: bool,
}

const ALONE: Mode = Mode::Alone { pressed: 0, cut: None };

/// A window in two modes; see the module.
#[derive(Debug)]
pub struct Auto {
    settings: Settings,
    cubic: Cubic,
    mode: Mode,
    /// The queue was short in the latest round.
    room: bool,
    queue: Queue,
    losses: Losses,
    /// Delivery rates of the latest rounds, in octets a second.
    rates: Recent<2>,
    /// The highest rate that is remembered: what the bottleneck carries even if others have most of it now.
    fastest: Remembered,
    /// `SND.NXT` and what had been delivered when the round began. It ends when the first is acknowledged, or when something is delivered that left
    /// after the round began: where much is lost, that is round trips sooner.
    until: (u64, u64),
    /// `SND.NXT` when what is remembered of losses and of the queue was last aged: that is done again when it is acknowledged. Where much is lost that
    /// takes more than a round, and losses are remembered for as long as their repair takes.
    aged: u64,
    /// Of the window, while there is no queue.
    step: f64,
    /// The latest round ended with growth.
    grown: bool,
    /// It was a loss to congestion that ended growth, on a path where corruption is rare: the window grows as CUBIC's.
    careful: bool,
    /// What is below this position was lost to the congestion that was answered.
    answered: u64,
    /// What is below this position left before the first acknowledgement, unpaced at some senders: a queue too short for that says nothing of how
    /// large a paced window may be.
    first: u64,
    /// Octets lost of that which have not been taken from the window yet.
    first_lost: u64,
    /// Since there was last no queue, or it competed.
    had: Option<Had>,
    /// It grows beside others for as long as the rate follows.
    probe: Option<Probe>,
    /// The window at which the queue overflowed on a path where corruption is frequent; 0 if none is known.
    overflowed: u64,
    rate: u64,
    /// The window before a reduction, should it prove wrong; 0 if there was none in this episode.
    saved: u64,
}

impl Auto {
    fn new(settings: Settings) -> Self {
        Self {
            cubic: Cubic::new(0.4, 0.7, true, false),
            mode: ALONE,
            room: true,
            queue: Queue::new(Duration::from_secs_f64(settings.history)),
            losses: Losses::new(settings.allowance),
            rates: Recent::default(),
            fastest: Remembered::new(Extremes::Windowed(Duration::from_secs_f64(settings.history))),
            until: (0, 0),
            aged: 0,
            step: STEP,
            grown: false,
            careful: false,
            answered: 0,
            first: 0,
            first_lost: 0,
            had: None,
            probe: None,
            overflowed: 0,
            rate: 0,
            saved: 0,
            settings,
        }
    }

    /// The time that a segment takes at the bottleneck, as far as is known. At the rate delivered now it would be long where others have the rest,
    /// and their queue would pass for a segment or two of its own.
    fn segment_time(&self, mss: u32) -> Duration {
        let rate = self.fastest.extent().max();
        if rate == 0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(f64::from(mss) / rate as f64)
    }

    /// The queue that is aimed at.
    fn target(&self, base: Duration, mss: u32) -> Duration {
        let Settings { share, least, most, segments, .. } = self.settings;
        let time = (base.as_secs_f64() * share).clamp(least, most.max(least));
        Duration::from_secs_f64(time).max(self.segment_time(mss).mul_f64(segments))
    }

    /// What fills the path at the rate at which segments cross it, those damaged behind it included: `share` for each that is delivered.
    fn path_fill(&self, base: Duration, share: f64) -> u64 {
        (self.rates.extent().max() as f64 * base.as_secs_f64() * (1.0 + share)) as u64
    }

    /// What the window grows by at the end of a round without a queue, in octets.
    fn growth(&mut self, window: &Window, full: Duration) -> f64 {
        let cwnd = window.cwnd() as f64;
        // As far as the rate follows.
        let few = (FEW * u64::from(window.mss())) as f64;
        let most = (self.path_fill(full, self.losses.corrupted_share()) as f64 * AHEAD).max(few);
        let way = self.overflowed as f64 - cwnd;
        let growth = if way > cwnd * NEAR {
            way * APPROACH
        } else {
            self.overflowed = 0;
            let growth = cwnd * self.step;
            self.step = (self.step * 2.0).min(MOST_STEP);
            growth
        };
        growth.min(most - cwnd).max(0.0)
    }

    /// Others have a part of the rate that it had before it began to shorten the queue.
    fn has_lost(&self) -> bool {
        let before = self.had.and_then(|had| had.rate).unwrap_or(0);
        (self.rates.extent().max() as f64) < before as f64 * LEFT
    }

    /// It has to grow as CUBIC does. Where corruption is frequent it bounds the windows of others: growth would take all that they leave, and the queue.
    fn grows_as_cubic(&self) -> bool {
        (self.competes() || self.room && self.careful) && !self.losses.corruption_prevails()
    }

    /// With this delay in the queue the window may grow.
    fn has_room(&self, window: &Window, waiting: Duration, base: Duration) -> bool {
        let mss = window.mss();
        let whole = whole_segments(window);
        let segment = self.segment_time(mss);
        let fills = whole as f64 >= self.fastest.extent().max() as f64 * (base + segment).as_secs_f64();
        let pair = !fills && waiting < segment.mul_f64(PAIR);
        waiting < self.target(base, mss) / 2 || pair
    }

    /// The window is a function of the delay.
    fn steer(&mut self, window: &mut Window, ack: &Ack, least: Duration, base: Duration) {
        let Mode::Alone { pressed, cut } = self.mode else { return };
        let target = self.target(base, window.mss());
        let careful = self.careful && !self.losses.corruption_prevails();
        let waiting = least.saturating_sub(base);
        let factor = ((base + target).as_secs_f64() / least.as_secs_f64()).clamp(FALL, 1.0);
        self.room = self.has_room(window, waiting, base);
        if window.in_slow_start() {
            return;
        }
        let few = window.cwnd() < FEW * u64::from(window.mss());
        if self.room {
            (self.mode, self.had) = (ALONE, None);
        }
        if self.room || few {
            self.grown = !self.grown && ack.window_limited && !careful;
            if self.grown {
                let growth = self.growth(window, base + target);
                window.grow(growth);
            }
            return;
        }
        self.step = STEP;
        if waiting <= target.mul_f64(1.25) {
            self.mode = ALONE;
            return;
        }
        let pressed = match cut {
            Some(cut) if !cut.settled => {
                self.mode = Mode::Alone { pressed, cut: Some(Cut { settled: true, ..cut }) };
                let rate = self.rates.extent().max();
                self.had = self.had.map(|had| Had { rate: had.rate.or(Some(rate)), ..had });
                return;
            }
            Some(cut) if least > cut.more_than => pressed + 1,
            Some(_) if self.has_lost() => PRESSED,
            Some(_) => {
                // The queue is its own: delay ends growth here, so that losses need not.
                self.careful = false;
                0
            }
            None => 0,
        };
        let had = *self.had.get_or_insert(Had { window: window.cwnd(), rate: None });
        if pressed >= PRESSED {
            (self.mode, self.had) = (Mode::Competing { others: Others::Seen, left: LOOK, quiet: 0 }, None);
            self.probe = Some(Probe { window: whole_segments(window), delay: Some(least), begun: false, settled: false });
            // Back to what it had, by slow start.
            window.set_ssthresh(had.window.max(window.cwnd()));
            return;
        }
        // Whole segments: a cut by less changes nothing that could be seen.
        let mss = u64::from(window.mss());
        let aimed = ((window.cwnd() as f64 * factor) as u64).min(window.cwnd().saturating_sub(mss)).max(FEW * mss);
        let aimed = (aimed - aimed % mss).min(window.cwnd());
        let expected = least.mul_f64(aimed as f64 / window.cwnd() as f64);
        self.mode = Mode::Alone { pressed, cut: Some(Cut { more_than: (least + expected) / 2, settled: false }) };
        window.set_cwnd(aimed);
        window.set_ssthresh(window.cwnd());
        self.cubic.on_timeout(window, ack.path);
    }

    /// The queue stands, so slow start is over: what fills the path is known by now.
    fn end_slow_start(&mut self, window: &mut Window) {
        let (Some(least), Some(base)) = (self.queue.standing(), self.queue.base()) else { return };
        let target = self.target(base, window.mss());
        if !window.in_slow_start() || least.saturating_sub(base) < target / 2 || self.mode != ALONE {
            return;
        }
        let factor = (base + target).as_secs_f64() / least.max(base + target).as_secs_f64();
        window.set_cwnd((window.cwnd() as f64 * factor) as u64);
        window.set_ssthresh(window.cwnd());
    }

    fn end_round(&mut self, window: &mut Window, ack: &Ack) {
        self.until = (ack.path.nxt, ack.path.delivered);
        let (least, base) = (self.queue.end_round(), self.queue.base());
        let (Some(least), Some(base)) = (least, base) else { return };
        match &mut self.mode {
            Mode::Alone { .. } => self.steer(window, ack, least, base),
            Mode::Competing { left, quiet, .. } => {
                let (over, calm) = (*left == 0, *quiet >= CALM);
                if over || calm && least.saturating_sub(base) < self.target(base, window.mss()) / 4 {
                    self.mode = ALONE;
                }
            }
        }
        self.grow_beside_others(window, ack, least);
    }

    /// Where others had the queue before slow start knew the path, what it had is little. So the window goes beyond that.
    fn grow_beside_others(&mut self, window: &mut Window, ack: &Ack, delay: Duration) {
        let Some(before) = self.probe.take().filter(|_| self.competes() && !self.losses.corruption_prevails()) else { return };
        // A window that is not used tells nothing.
        let waits = window.in_slow_start() || ack.path.una < self.answered || !ack.window_limited;
        if waits || !before.settled {
            self.probe = Some(Probe { settled: !waits, ..before });
            return;
        }
        let whole = whole_segments(window);
        let now = whole as f64;
        let next = match before.delay {
            None => now * PROBE,
            // In a window of few segments there is no step that would tell.
            Some(_) if whole <= before.window => return,
            Some(shorter) => (of_others(before.window as f64, shorter, now, delay) * OF_OTHERS).min(now * MOST_GROWTH),
        };
        if next < now * LEAST_GROWTH {
            return;
        }
        self.probe = Some(Probe { window: whole, delay: Some(delay), begun: true, settled: false });
        window.set_cwnd(next as u64);
        window.set_cwnd(whole_segments(window));
        window.set_ssthresh(window.cwnd());
        self.cubic.on_timeout(window, ack.path);
    }

    /// What is remembered was for a round trip longer.
    fn age(&mut self, path: &Path) {
        self.aged = path.nxt;
        self.losses.age();
        self.queue.age();
        self.rates.advance();
        if let Mode::Competing { left, quiet, .. } = &mut self.mode {
            (*left, *quiet) = (left.saturating_sub(1), *quiet + 1);
        }
    }

    fn competes(&self) -> bool {
        self.others() != Others::Unseen
    }

    fn others(&self) -> Others {
        match self.mode {
            Mode::Alone { .. } => Others::Unseen,
            Mode::Competing { others, .. } => others,
        }
    }

    /// Losses or a router's mark speak for congestion.
    fn reduce(&mut self, window: &mut Window, path: &Path, marked: bool) {
        self.answered = path.nxt;
        self.saved = window.cwnd();
        let climbing = window.in_slow_start();
        let threshold = self.cubic.threshold(window, path);
        // Where nothing tells of a queue but many are lost, the rate says how much is too much.
        let queued = marked || self.losses.came_at_full_queue();
        let share = if queued { self.losses.corrupted_share() } else { self.losses.explained_share() };
        let fill = self.queue.base().map_or(0, |base| self.path_fill(base, share));
        let holds = !self.competes() && (self.losses.corruption_prevails() || !queued);
        let floor = if climbing || holds { fill } else { 0 };
        let target = threshold.max(floor).min(window.cwnd());
        window.set_ssthresh(target);
        window.set_cwnd(target);
        self.losses.answered();
        // Before it went beyond what it had: the queue that overflows is still others', and what it has now is even less.
        let goes_on = self.others() == Others::Seen && target >= 2 * FEW * u64::from(window.mss());
        self.probe = self.probe.filter(|probe| goes_on && !probe.begun);
        self.probe = self.probe.map(|probe| Probe { window: target, delay: None, settled: false, ..probe });
        (self.careful, self.step) = (!holds, STEP);
        self.overflowed = if holds && !climbing { self.saved } else { 0 };
        if !climbing && !holds {
            let (others, left) = match self.mode {
                Mode::Competing { others, left, .. } => (others, left),
                Mode::Alone { .. } => (Others::Suspected, LOOK_AFTER_LOSS),
            };
            (self.mode, self.had) = (Mode::Competing { others, left, quiet: 0 }, None);
        }
    }

    /// SRTT remembers a queue for many round trips after that became shorter. A window paced by it would leave the link idle; the latest `delay` tells
    /// at once. Beside others on a slow link it goes by acknowledgements as they do: segments at even distances fill each gap of a full queue, and what
    /// it drops are the others'.
    fn set_pace(&mut self, window: &Window, path: &Path, delay: Option<Duration>) {
        let trip = path.srtt.into_iter().chain(delay).min().unwrap_or(Duration::from_millis(1)).max(Duration::from_micros(1));
        let windows = window.cwnd() as f64 / trip.as_secs_f64();
        let is_slow = windows * FAST_PACE < BY_ACKNOWLEDGEMENTS * f64::from(window.mss());
        let fast = window.in_slow_start() || is_slow && self.others() == Others::Seen;
        self.rate = (windows * if fast { FAST_PACE } else { PACE }) as u64;
    }
}

/// What others have on a link that is full, from two windows of its own and their delays: all that is under way is the link's rate times the delay. No
/// bound where the delay did not follow.
fn of_others(small: f64, shorter: Duration, large: f64, longer: Duration) -> f64 {
    let (shorter, longer) = (shorter.as_secs_f64(), longer.as_secs_f64());
    if longer > shorter {
        (large * shorter - small * longer) / (longer - shorter)
    } else {
        f64::INFINITY
    }
}

fn whole_segments(window: &Window) -> u64 {
    window.cwnd() - window.cwnd() % u64::from(window.mss())
}

impl CongestionControl for Auto {
    fn is_model_based(&self) -> bool {
        true
    }

    fn separation(&self, octets: u32) -> Option<Duration> {
        (self.rate > 0).then(|| Duration::from_nanos((f64::from(octets) * 1e9 / self.rate as f64) as u64))
    }

    /// Beside others in pairs, as those that go by acknowledgements send them.
    fn least_burst(&self) -> Option<u32> {
        (self.others() == Others::Seen).then_some(2)
    }

    fn on_established(&mut self, window: &mut Window, path: &Path) {
        self.until = (path.nxt, path.delivered);
        self.aged = path.nxt;
        self.first = path.nxt + window.cwnd();
        self.set_pace(window, path, None);
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.cubic.on_sent(sent);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let path = ack.path;
        if let Some(sample) = ack.sample.filter(|sample| !sample.app_limited || sample.rate > self.rates.extent().max()) {
            self.rates.insert(sample.rate);
            self.fastest.insert(sample.rate, path.now);
        }
        self.queue.on_ack(ack);
        self.losses.on_delivered(ack.delivered);
        let open = path.una >= self.answered;
        if open && ack.ece || self.losses.congested(open, window.cwnd()) {
            self.reduce(window, path, ack.ece);
        }
        if self.first_lost > 0 {
            // Slow start goes on from what arrived.
            let few = FEW * u64::from(window.mss());
            window.set_cwnd(window.cwnd().saturating_sub(self.first_lost).max(few.min(window.cwnd())));
            self.first_lost = 0;
        }
        if window.in_slow_start() && self.losses.in_a_row(window.cwnd(), u64::from(window.mss())) {
            // A queue too short to be seen may have overflowed.
            window.set_ssthresh(window.cwnd());
        }
        if window.in_slow_start() || self.grows_as_cubic() {
            // Beside others it does not grow while it repairs what it has answered.
            let in_recovery = self.competes() && !open;
            self.cubic.on_ack(window, &Ack { in_recovery, acked: ack.delivered, ..*ack });
        }
        self.end_slow_start(window);
        if path.una >= self.until.0 || ack.sample.is_some_and(|sample| sample.prior_delivered >= self.until.1) {
            self.end_round(window, ack);
        }
        if path.una >= self.aged {
            self.age(path);
        }
        self.set_pace(window, path, ack.delay);
    }

    fn on_lost(&mut self, window: &Window, lost: &LostSegment, _path: &Path) {
        if lost.start < self.first {
            self.first_lost += lost.octets;
        } else if lost.start >= self.answered {
            let unit = self.segment_time(window.mss());
            let full = self.queue.on_lost(unit, self.others());
            self.losses.on_lost(lost.octets, full);
        }
    }

    fn on_excused(&mut self, octets: u64) {
        self.losses.on_excused(octets);
    }

    fn save(&mut self) {
        self.cubic.save();
        self.saved = 0;
    }

    /// Losses are judged one by one: those that speak for congestion end slow start, and runs; others do not.
    fn threshold(&mut self, window: &Window, _path: &Path) -> u64 {
        window.ssthresh()
    }

    fn timeout_threshold(&mut self, window: &Window, path: &Path) -> u64 {
        self.saved = window.cwnd();
        let threshold = self.cubic.threshold(window, path);
        threshold.max(self.queue.base().map_or(0, |base| self.path_fill(base, self.losses.corrupted_share()))).min(window.cwnd())
    }

    fn on_timeout(&mut self, window: &mut Window, path: &Path) {
        self.cubic.on_timeout(window, path);
        self.answered = path.nxt;
        self.losses.answered();
        self.probe = None;
        self.queue.on_timeout();
        self.set_pace(window, path, None);
    }

    fn on_undo(&mut self, window: &mut Window, path: &Path) {
        self.cubic.on_undo(window, path);
        window.set_cwnd(window.cwnd().max(self.saved));
        self.set_pace(window, path, None);
    }
}
