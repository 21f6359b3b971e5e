//! The network's own word: marks (RFC 3168). Where routers mark before they drop, a loss without marks is no congestion.

use super::{LossDifferentiator, Verdict};
use crate::kit::{Build, Cut, Notes, Part, Threshold};
use crate::path::{Ack, Loss};
use crate::settings;
use crate::time::Instant;

/// The row of the test with a horizon.
pub(super) const PART: Part<dyn LossDifferentiator> = Part {
    name: "ecn",
    summary: "Takes a loss for congestion if the network has marked a segment within the last round trip.",
    reference: "after RFC 3168 and Ramakrishnan & Floyd 1999",
    notes: Notes {
        idea: "A router that marks early announces congestion before it has to drop. A loss that nothing announced was not its doing.",
        formula: "congestion if the last echo of a mark is at most `horizon` SRTT old, else corruption",
        threshold: "`horizon`: a larger one takes more losses for congestion, so A_w falls and A_c rises.",
        fails: "One bottleneck that drops without marking, or one that overflows before it marks, and its congestion losses are called corruption. A \
                receiver that hides marks gains by it.",
        errata: "An idea told in several places without constants; the horizon and its default are our reading. Until the first mark shows that the path \
                 marks at all there is no verdict, unless `trust_silence` says otherwise.",
    },
    thresholds: &[Threshold::of_congestion("horizon", Cut::Rising)],
    ..Part::of::<EcnSettings>()
};

settings! {
    /// What can be set.
    struct EcnSettings {
        /// Smoothed round-trip times for which a mark counts.
        horizon: f64 = 1.0, 0.0..=1000.0;
        silence: Silence;
    }
}

impl Build<dyn LossDifferentiator> for EcnSettings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Ecn { horizon: self.horizon, marks: Marks::new(self.silence) })
    }
}

/// The row of TCP-Jersey's test.
pub(super) const JERSEY: Part<dyn LossDifferentiator> = Part {
    name: "jersey",
    summary: "Takes a loss for congestion if the acknowledgement that tells of it warns of congestion.",
    reference: "Xu, Tian & Ansari 2004",
    notes: Notes {
        idea: "Routers mark every packet while their average queue is above a threshold, so each acknowledgement says whether it is.",
        formula: "congestion if the latest acknowledgement echoes a mark, else corruption",
        threshold: "",
        fails: "As for ecn. The queue of a router that does not mark is invisible.",
        errata: "Made for routers that mark all packets above one threshold. With RFC 3168 the echo stays until the sender says that it has reduced its \
                 window, about a round trip; and the sender's reduction for the mark itself comes before any loss.",
    },
    ..Part::of::<JerseySettings>()
};

settings! {
    /// What can be set.
    struct JerseySettings {
        silence: Silence;
    }
}

impl Build<dyn LossDifferentiator> for JerseySettings {
    fn build(self) -> Box<dyn LossDifferentiator> {
        Box::new(Jersey { warned: false, marks: Marks::new(self.silence) })
    }
}

settings! {
    /// What both can be told of the path.
    struct Silence {
        /// Believe that the path marks before it has ever done so.
        trust_silence: bool = false;
    }
}

/// The marks that came back.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// When the latest came.
    pub latest: Option<Instant>,
    /// Believe that the path marks before it has ever done so.
    pub trust_silence: bool,
}

impl Marks {
    fn new(silence: Silence) -> Self {
        Self { latest: None, trust_silence: silence.trust_silence }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.ece {
            self.latest = Some(ack.path.now);
        }
    }

    /// The verdict while there has been no mark.
    fn without(self) -> Verdict {
        if self.trust_silence {
            Verdict::decided(true, 1.0)
        } else {
            Verdict::UNKNOWN
        }
    }
}

/// Marks count for a time.
#[derive(Debug)]
pub struct Ecn {
    /// Smoothed round-trip times for which a mark counts.
    pub horizon: f64,
    /// The marks that came back.
    pub marks: Marks,
}

impl LossDifferentiator for Ecn {
    fn on_ack(&mut self, ack: &Ack) {
        self.marks.on_ack(ack);
    }

    fn judge(&mut self, loss: &Loss) -> Verdict {
        let Some(latest) = self.marks.latest else { return self.marks.without() };
        let Some(srtt) = loss.path.srtt.filter(|srtt| srtt.as_nanos() > 0) else { return Verdict::UNKNOWN };
        let age = loss.path.now.since(latest).as_nanos() as f64 / srtt.as_nanos() as f64;
        Verdict::decided(age > self.horizon, age / (1.0 + age))
    }
}

/// Only the latest acknowledgement counts.
#[derive(Debug)]
pub struct Jersey {
    /// Whether it echoed a mark.
    warned: bool,
    /// The marks that came back.
    pub marks: Marks,
}

impl LossDifferentiator for Jersey {
    fn on_ack(&mut self, ack: &Ack) {
        self.warned = ack.ece;
        self.marks.on_ack(ack);
    }

    fn judge(&mut self, _loss: &Loss) -> Verdict {
        match (self.warned, self.marks.latest) {
            (true, _) => Verdict::decided(false, 0.0),
            (false, Some(_)) => Verdict::decided(true, 1.0),
            (false, None) => self.marks.without(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::{built, Script};
    use super::super::Cause::{Congestion, Corruption, Unknown};
    use crate::time::Duration;

    fn sender(name: &str, trust_silence: bool) -> Script {
        let mut sender = Script::new(built(name, &[("trust_silence", trust_silence.into())]));
        sender.path.srtt = Some(Duration::from_millis(100));
        sender.ack(100.0);
        sender
    }

    fn mark(sender: &mut Script) {
        sender.ece = true;
        sender.ack(100.0);
        sender.ece = false;
    }

    #[test]
    fn a_mark_counts_for_a_round_trip() {
        let mut sender = sender("ecn", false);
        mark(&mut sender);
        for (pause, cause, score) in
            [(0.0, Congestion, 0.0), (100.0, Congestion, 0.5), (0.001, Corruption, 0.5), (299.999, Corruption, 0.8)]
        {
            let verdict = sender.pause(pause).judge();
            assert_eq!(verdict.cause, cause);
            assert!((verdict.score - score).abs() < 1e-4, "{verdict:?}");
        }
    }

    #[test]
    fn silence_counts_only_once_the_path_has_marked() {
        for name in ["ecn", "jersey"] {
            let mut careful = sender(name, false);
            assert_eq!(careful.judge().cause, Unknown);
            assert_eq!(sender(name, true).judge().cause, Corruption);
            mark(&mut careful);
            assert_eq!(careful.judge().cause, Congestion);
            careful.pause(101.0).ack(100.0);
            assert_eq!(careful.judge().cause, Corruption, "{name}");
        }
    }

    #[test]
    fn jersey_hears_only_the_latest_acknowledgement() {
        let mut sender = sender("jersey", false);
        mark(&mut sender);
        sender.ack(100.0);
        assert_eq!((sender.judge().cause, sender.judge().score), (Corruption, 1.0));
    }
}
