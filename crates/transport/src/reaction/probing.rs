//! TCP-Probing's answer to duplicate acknowledgements: probe first.

use super::{Reaction, Response};
use crate::kit::{Build, Notes, Part};
use crate::path::{Loss, Probed};
use crate::settings;
use crate::verdict::Verdict;

pub(super) const PART: Part<dyn Reaction> = Part {
    name: "probing",
    summary: "Data waits while probes measure two round trips; the window stays if both are short, else it is reduced.",
    reference: "Tsaoussidis & Badr 2000",
    notes: Notes {
        idea: "What the network is like after the loss says whether there is a reason to slow down. While nothing passes, as in a fade or a hand-off, \
               nothing but probes is sent.",
        formula: "keep if both round trips <= best + between (last - best), of the round trips before the loss; else as for congestion",
        threshold: "`between`: a larger one keeps the window more often, rightly and wrongly.",
        fails: "Each loss costs two round trips without data. Data that waits empties the queue that it filled: the second round trip flatters, and both do if the first probe is lost. A \
                peer that permits no reports is not probed, and every loss is congestion. Without SACK and proportional rate reduction the whole \
                window leaves at once after the cycle, which a short queue does not take.",
        errata: "The texts that we could read name the best and the last round trip, not how they are compared: the point between them is our reading, \
                 and so are the layout of the probes and their timer.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// What can be set.
    struct Settings {
        /// The longest round trip that is short: so far from the best of the connection (0) to the last before the loss (1).
        between: f64 = 0.5, 0.0..=1.0;
        /// Factor by which the probe timer, an RTO at first, grows with each probe in a row that is lost.
        growth: f64 = 1.0, 1.0..=2.0;
    }
}

impl Build<dyn Reaction> for Settings {
    fn build(self) -> Box<dyn Reaction> {
        Box::new(Probing { between: self.between, growth: self.growth, good: None, keeps: false })
    }
}

/// Decides by the probe cycle that comes before.
#[derive(Debug)]
pub struct Probing {
    between: f64,
    growth: f64,
    /// What the latest cycle found, until it is answered.
    good: Option<bool>,
    /// What was answered to the episode.
    keeps: bool,
}

impl Reaction for Probing {
    fn listens(&self) -> bool {
        false
    }

    fn probes(&self) -> Option<f64> {
        Some(self.growth)
    }

    fn on_probed(&mut self, probed: &Probed) {
        self.good = Some(probed.is_good(self.between));
    }

    fn respond(&mut self, _verdict: &Verdict, loss: &Loss) -> Response {
        if loss.first_of_episode {
            self.keeps = self.good.take().unwrap_or(false);
        }
        if self.keeps {
            Response::Keep
        } else {
            Response::Reduce
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Path, Trigger};
    use crate::time::{Duration, Instant};

    fn loss(path: &Path, first_of_episode: bool) -> Loss<'_> {
        let (start, sent_at) = (0, Instant::ZERO);
        Loss { path, start, len: 1000, transmission: 0, sent_at, trigger: Trigger::DuplicateAcks, first_of_episode }
    }

    #[test]
    fn an_episode_is_answered_by_the_probes_before_it() {
        let path = Path::default();
        let mut reaction = Settings::default().build();
        let ms = Duration::from_millis;
        let probed = |second| Probed { trips: [ms(100), ms(second)], best: Some(ms(90)), last: Some(ms(130)), lasted: ms(210) };
        assert_eq!(reaction.respond(&Verdict::UNKNOWN, &loss(&path, true)), Response::Reduce, "nothing is known");
        reaction.on_probed(&probed(110));
        assert_eq!(reaction.respond(&Verdict::UNKNOWN, &loss(&path, true)), Response::Keep);
        assert_eq!(reaction.respond(&Verdict::UNKNOWN, &loss(&path, false)), Response::Keep, "the same episode");
        assert_eq!(reaction.respond(&Verdict::UNKNOWN, &loss(&path, true)), Response::Reduce, "another one");
        reaction.on_probed(&probed(111));
        assert_eq!(reaction.respond(&Verdict::UNKNOWN, &loss(&path, true)), Response::Reduce);
    }
}
