//! WTCP's blackouts (Sinha et al. 1999): a silence says nothing of the rate. The sender probes until the path is back, and goes on.

use super::{AfterTimeout, Assessment, Exit, Pardon, Timeout, TimeoutPolicy, TimeoutResponse, TimeoutWindow};
use crate::kit::{Build, Notes, Part};
use crate::settings;

pub(super) const PART: Part<dyn TimeoutPolicy> = Part {
    name: "blackout",
    summary: "Probes with the first missing segment while nothing is heard, and goes on as before; for senders that go by a rate.",
    reference: "Sinha et al. 1999",
    notes: Notes {
        idea: "Where the receiver sets the rate, silence is no signal of congestion: a queue that overflows still lets most segments through. What \
               is missing, SACK tells once the path is back.",
        formula: "probe every RTO, which doubles with each probe after the first `steady`",
        threshold: "",
        fails: "With a window that acknowledgements clock it keeps a window that congestion has emptied.",
        errata: "Our readings: the probe is the first missing segment rather than a packet without data, so that its answer repairs something; it \
                 begins when the retransmission timer of the engine expires; and probes come ever more seldom after `steady` of them, because a \
                 peer may be gone. If the sides have not agreed on reports it is the standard timeout.",
    },
    ..Part::of::<Settings>()
};

settings! {
    /// How it probes.
    struct Settings {
        /// Probes in a row before the timer doubles.
        steady: u32 = 4, 0..=64;
    }
}

impl Build<dyn TimeoutPolicy> for Settings {
    fn build(self) -> Box<dyn TimeoutPolicy> {
        Box::new(Blackout { steady: self.steady, agreed: false })
    }
}

/// Probes.
#[derive(Debug)]
pub struct Blackout {
    /// Probes in a row before the timer doubles.
    pub steady: u32,
    /// Both sides have agreed on reports.
    agreed: bool,
}

impl TimeoutPolicy for Blackout {
    fn listens(&self) -> bool {
        false
    }

    fn on_timeout(&mut self, timeout: &Timeout) -> TimeoutResponse {
        self.agreed = timeout.path.reports;
        if !self.agreed {
            return TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: false };
        }
        TimeoutResponse { window: TimeoutWindow::KeepAtOnce, back_off: timeout.consecutive > self.steady, head_only: true }
    }

    fn assess(&mut self, after: &AfterTimeout) -> Assessment {
        match after {
            _ if !self.agreed => Assessment::Genuine,
            AfterTimeout { original_delivered: true, .. } if after.number == 1 => Assessment::Spurious,
            _ => Assessment::Forgiven(Pardon { halvings: 0, timer: true, exit: Exit::SlowStart }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{Ack, Path};
    use crate::segment::Options;
    use crate::verdict::Verdict;

    fn expiry(policy: &mut Blackout, reports: bool, consecutive: u32) -> TimeoutResponse {
        let (path, verdict) = (Path { reports, ..Path::default() }, Verdict::UNKNOWN);
        policy.on_timeout(&Timeout { consecutive, ..Timeout::new(&path, &verdict) })
    }

    #[test]
    fn it_probes_steadily_then_ever_more_seldom_and_forgives() {
        let mut policy = Blackout { steady: 2, agreed: false };
        for (consecutive, back_off) in [(1, false), (2, false), (3, true), (9, true)] {
            let expected = TimeoutResponse { window: TimeoutWindow::KeepAtOnce, back_off, head_only: true };
            assert_eq!(expiry(&mut policy, true, consecutive), expected);
        }
        let (path, options) = (Path::default(), Options::default());
        let ack = Ack::new(&path, &options);
        assert!(matches!(policy.assess(&AfterTimeout::new(&ack)), Assessment::Forgiven(_)));
        let late = AfterTimeout { original_delivered: true, ..AfterTimeout::new(&ack) };
        assert_eq!(policy.assess(&late), Assessment::Spurious);
    }

    #[test]
    fn without_reports_it_is_the_standard() {
        let mut policy = Blackout { steady: 4, agreed: true };
        let standard = TimeoutResponse { window: TimeoutWindow::Collapse, back_off: true, head_only: false };
        assert_eq!(expiry(&mut policy, false, 1), standard);
        let (path, options) = (Path::default(), Options::default());
        assert_eq!(policy.assess(&AfterTimeout::new(&Ack::new(&path, &options))), Assessment::Genuine);
    }
}
