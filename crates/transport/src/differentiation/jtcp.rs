//! JTCP's jitter ratio (Wu & Chen 2004).

use super::common::{falling, window};
use super::{LossDifferentiator, Verdict};
use crate::estimate::{Clock, Jitter};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss, Trigger};
use crate::time::Instant;
use crate::{choices, settings};

pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "jtcp",
    summary: "Takes a loss for congestion if segments arrive farther apart than they left, by more than one segment a round trip.",
    reference: "Wu & Chen 2004",
    notes: Notes {
        idea: "While a queue grows, segments leave it more slowly than they enter. The jitter ratio of a round trip is the share of the window that \
               stayed in the queue.",
        formula: "Jr = ((R_B - R_A) - (S_B - S_A)) / (R_B - R_A) over the last round trip; congestion if Jr > k / W and no recovery began within the last \
                  SRTT, else corruption",
        threshold: "`k`: a larger one takes more losses for corruption, so A_w rises and A_c falls.",
        fails: "A queue that is full does not grow: Jr is about zero just when it overflows, so most congestion losses look like corruption. Jitter of the \
                link, delayed acknowledgements and coarse timestamps drown the one segment that it looks for.",
        errata: "The published condition on time can be read in two ways; here losses within an SRTT of the previous episode's beginning belong to that \
                 congestion and are not judged again. It counts from the previous episode, however that was judged, so that no verdict depends on an \
                 earlier one. Arrival times are those of the receiver's timestamps, whose tick is measured, or of the acknowledgements where \
                 timestamps are too coarse. Fewer than three acknowledgements in a round are no evidence. Park & Chung 2010 describe the ratio as \
                 the average of the inter-arrival jitter during one round trip. Taken literally (`ratio = seconds`) that is the mean of D = (R_i - \
                 R_(i-1)) - (S_i - S_(i-1)) and a time, which is compared with 1/W, a number: the outcome depends on the unit. In seconds a window of W \
                 segments calls congestion only what slows down by more than a second in a round trip. The text takes for corruption whatever does not \
                 satisfy its conditions, so in this reading a round with fewer than three acknowledgements is corruption, too.",
    },
    thresholds: &[Threshold::of_corruption("k", Cut::Falling)],
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// Segments by which the queue has to grow in a round trip.
        k: f64 = 1.0, 0.0..=1000.0;
        /// Jitter from the first to the last segment of a round trip as a share of the time between them; the mean of such shares over all
        /// neighbours, by the sender's clock; or the mean of the jitter itself between neighbours, in seconds.
        ratio: Ratio;
        /// Whose clock tells when segments arrived: the receiver's, if its timestamps are fine enough, or the sender's.
        clock: Clock;
        /// Take an episode that begins within an SRTT of the beginning of the one before for corruption.
        time_condition: bool = true;
    }
}

impl Build<dyn LossDifferentiator> for Settings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Jtcp {
            k: self.k,
            ratio: self.ratio,
            time_condition: self.time_condition,
            jitter: Jitter::new(self.clock, self.ratio == Ratio::Mean),
            episode: None,
        })
    }
}

/// The differentiator of JTCP.
#[derive(Debug)]
pub struct Jtcp {
    /// Segments by which the queue has to grow in a round trip.
    pub k: f64,
    /// How the jitter of a round trip becomes one number.
    pub ratio: Ratio,
    /// Take an episode that begins within an SRTT of the beginning of the one before for corruption.
    pub time_condition: bool,
    /// The jitter of each round trip.
    pub jitter: Jitter,
    /// When the latest episode began.
    episode: Option<Instant>,
}

choices! {
    /// How the jitter of a round trip becomes one number.
    pub enum Ratio {
        /// From its first to its last segment.
        Telescoped = "telescoped",
        /// The mean over neighbours.
        Mean = "mean",
        /// The mean over neighbours of the jitter itself, a time in seconds (Park & Chung 2010, II, taken literally). Corruption where there
        /// is none.
        Seconds = "seconds",
    }
}

impl Jtcp {
    /// The verdict on a jitter ratio of `ratio` with a window of `window` segments.
    pub fn verdict(ratio: f64, window: f64, k: f64) -> Verdict {
        let window = window.max(2.0);
        Verdict::decided(ratio <= k / window, falling(ratio * window))
    }
}

impl LossDifferentiator for Jtcp {
    fn on_ack(&mut self, ack: &Ack) {
        self.jitter.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let (now, window, mss) = (loss.path.now, window(loss.path), loss.path.mss);
        let span = self.jitter.latest(window, mss);
        let ratio = match self.ratio {
            Ratio::Telescoped => self.jitter.ratio(span, mss),
            Ratio::Mean => span.mean_ratio(),
            Ratio::Seconds => self.jitter.mean_seconds(span, mss),
        };
        if loss.first_of_episode && loss.trigger != Trigger::Timeout {
            let before = self.episode.replace(now);
            let same = before.zip(loss.path.srtt).is_some_and(|(before, srtt)| now.since(before) <= srtt);
            if self.time_condition && same {
                return Verdict::decided(true, 1.0);
            }
        }
        match ratio {
            Some(ratio) => Self::verdict(ratio, window, self.k),
            // Park & Chung 2010, II: what does not satisfy both conditions is a wireless loss.
            None if self.ratio == Ratio::Seconds => Verdict::decided(true, 1.0),
            None => Verdict::UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};
    use super::Jtcp;
    use crate::kit::Value;
    use crate::time::Duration;

    /// Ten segments that left within 90 ms and arrived within 100 ms, for a window of `window`.
    fn sender(window: u64, parameters: &[(&str, Value)]) -> Script {
        let mut sender = Script::new(built("jtcp", parameters));
        sender.window(window).pause(1000.0);
        for n in 0..10 {
            // Spacings of 10 ms become 100 / 9 ms: each waits 10 / 9 ms longer than the one before.
            sender.pause(if n == 0 { 0.0 } else { 100.0 / 9.0 }).ack(100.0 + 10.0 / 9.0 * f64::from(n));
        }
        sender
    }

    #[test]
    fn more_than_one_segment_of_growth_is_congestion() {
        let clock = [("clock", "sender".into())];
        assert_eq!(sender(9, &clock).judge().cause, Corruption, "0.1 <= 1/9");
        assert_eq!(sender(11, &clock).judge().cause, Congestion, "0.1 > 1/11");
        assert_eq!(sender(11, &[clock[0].clone(), ("k", 2.0.into())]).judge().cause, Corruption, "0.1 <= 2/11");
        let score = sender(11, &clock).judge().score;
        assert!((score - 1.0 / 2.1).abs() < 1e-6, "{score}");
    }

    #[test]
    fn one_segment_of_growth_is_not_more_than_one() {
        assert_eq!(Jtcp::verdict(0.1, 10.0, 1.0).cause, Corruption);
        assert_eq!(Jtcp::verdict(0.1, 11.0, 1.0).cause, Congestion);
        assert_eq!(Jtcp::verdict(0.4, 1.0, 1.0).cause, Corruption, "a window of less than two counts as two");
    }

    #[test]
    fn the_mean_of_neighbours_agrees_where_they_are_alike() {
        let score = sender(11, &[("ratio", "mean".into())]).judge().score;
        assert!((score - 1.0 / 2.1).abs() < 1e-6, "{score}");
    }

    #[test]
    fn the_literal_mean_is_a_time() {
        // Each of the nine neighbours arrives 10 / 9 ms farther apart than it left: 1.1 ms are far below 1 / 11.
        let seconds = [("ratio", "seconds".into()), ("clock", "sender".into())];
        let verdict = sender(11, &seconds).judge();
        assert_eq!(verdict.cause, Corruption);
        assert!((verdict.score - 1.0 / (1.0 + 11.0 * 0.01 / 9.0)).abs() < 1e-6, "{}", verdict.score);
        // 11 * 10 / 9 ms are 12.2 ms.
        for (k, cause) in [(0.0123, Corruption), (0.0122, Congestion)] {
            assert_eq!(sender(11, &[seconds[0].clone(), seconds[1].clone(), ("k", k.into())]).judge().cause, cause, "{k}");
        }
    }

    #[test]
    fn a_second_episode_within_a_round_trip_is_not_judged() {
        for (condition, cause) in [(true, Corruption), (false, Congestion)] {
            let mut sender = sender(11, &[("clock", "sender".into()), ("time_condition", condition.into())]);
            sender.path.srtt = Some(Duration::from_millis(100));
            assert_eq!(sender.judge().cause, Congestion);
            sender.pause(100.0);
            assert_eq!(sender.judge().cause, cause, "{condition}");
            assert_eq!(sender.judge_later().cause, Congestion, "within its episode the queue alone counts");
            assert_eq!(sender.judge_timeout().cause, Congestion, "at a timeout too");
            sender.pause(101.0);
            assert_eq!(sender.judge().cause, Congestion);
        }
    }

    #[test]
    fn two_acknowledgements_are_no_evidence_which_the_literal_text_takes_for_corruption() {
        for (ratio, cause) in [("telescoped", Unknown), ("mean", Unknown), ("seconds", Corruption)] {
            let mut sender = Script::new(built("jtcp", &[("ratio", ratio.into())]));
            sender.pause(200.0).ack(100.0).pause(10.0).ack(101.0);
            assert_eq!(sender.judge().cause, cause, "{ratio}");
            assert_eq!(sender.judge_timeout().cause, cause, "{ratio}, at a timeout");
        }
    }
}
