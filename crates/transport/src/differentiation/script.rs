//! A sender whose every acknowledgement is written down, for hand calculations.

use super::{LossDifferentiator, Verdict, TABLE};
use crate::kit::{Arguments, Value};
use crate::path::{Ack, Loss, Path, Sent, Trigger};
use crate::segment::{Options, Timestamps};
use crate::time::{Duration, Instant};
use std::collections::BTreeMap;

pub(super) const MSS: u64 = 1000;

/// The differentiator `name` with these parameters and the defaults of all others.
pub(super) fn built(name: &str, parameters: &[(&str, Value)]) -> Box<dyn LossDifferentiator> {
    let part = TABLE.iter().find(|part| part.name == name).unwrap();
    let given: BTreeMap<_, _> = parameters.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    part.build(&Arguments::check(part, &given).unwrap())
}

fn span(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1e3)
}

/// A sender with a window of 10 segments. Times are in milliseconds, and pass only in [`Script::pause`] and [`Script::rounds`].
pub(super) struct Script {
    differentiator: Box<dyn LossDifferentiator>,
    pub path: Path,
    pub ece: bool,
    window: u64,
}

impl Script {
    pub fn new(differentiator: Box<dyn LossDifferentiator>) -> Self {
        let now = Instant::ZERO + Duration::from_secs(10);
        let path = Path { now, mss: MSS as u32, una: 1 << 32, ..Path::default() };
        let mut script = Self { differentiator, path, ece: false, window: 0 };
        script.window(10);
        script
    }

    /// Changes the window to so many segments.
    pub fn window(&mut self, segments: u64) -> &mut Self {
        self.window = segments;
        self.path.cwnd = segments * MSS;
        self.fill();
        self
    }

    fn fill(&mut self) {
        while self.path.nxt < self.path.una + self.path.cwnd {
            let start = self.path.nxt.max(self.path.una);
            let sent = Sent { now: self.path.now, start, len: MSS as u32, transmission: 0, was_idle: false, wave: None };
            self.differentiator.on_sent(&sent);
            self.path.nxt = start + MSS;
        }
        self.path.flight = self.path.nxt - self.path.una;
        self.path.pipe = self.path.flight;
    }

    pub fn pause(&mut self, ms: f64) -> &mut Self {
        self.path.now += span(ms);
        self
    }

    /// One segment is acknowledged, which left so many milliseconds ago.
    pub fn ack(&mut self, rtt_ms: f64) -> &mut Self {
        self.path.una += MSS;
        self.acknowledge(Some(rtt_ms), false)
    }

    /// A duplicate acknowledgement, with the round-trip time of what it reports as delivered.
    pub fn duplicate(&mut self, rtt_ms: Option<f64>) -> &mut Self {
        self.acknowledge(rtt_ms, true)
    }

    fn acknowledge(&mut self, rtt_ms: Option<f64>, duplicate: bool) -> &mut Self {
        self.path.delivered += MSS;
        self.fill();
        let delay = rtt_ms.map(span);
        let value = (self.path.now.as_nanos() / 1_000_000) as u32;
        let options = Options { timestamps: Some(Timestamps { value, echo: 0 }), ..Options::default() };
        self.differentiator.on_ack(&Ack {
            path: &self.path,
            acked: if duplicate { 0 } else { MSS },
            delivered: MSS,
            rtt: delay,
            delay,
            newest_sent_at: delay.map(|delay| self.path.now - delay),
            duplicate,
            ece: self.ece,
            in_recovery: false,
            window_limited: true,
            sample: None,
            options: &options,
        });
        self
    }

    /// So many times a window of acknowledgements, spread over a round trip of `rtt_ms`.
    pub fn rounds(&mut self, rounds: u64, rtt_ms: f64) -> &mut Self {
        for _ in 0..rounds * self.window {
            self.pause(rtt_ms / self.window as f64).ack(rtt_ms);
        }
        self
    }

    /// The verdict on a loss that begins an episode.
    pub fn judge(&mut self) -> Verdict {
        self.judge_as(Trigger::DuplicateAcks, true)
    }

    /// The verdict on another loss of the same episode.
    pub fn judge_later(&mut self) -> Verdict {
        self.judge_as(Trigger::DuplicateAcks, false)
    }

    /// The verdict on a timeout.
    pub fn judge_timeout(&mut self) -> Verdict {
        self.judge_as(Trigger::Timeout, true)
    }

    pub fn judge_as(&mut self, trigger: Trigger, first_of_episode: bool) -> Verdict {
        let verdict = self.differentiator.judge(&Loss {
            path: &self.path,
            start: self.path.una,
            len: MSS as u32,
            transmission: 0,
            sent_at: self.path.now - span(100.0),
            trigger,
            first_of_episode,
        });
        assert!((0.0..=1.0).contains(&verdict.score), "{verdict:?}");
        verdict
    }
}
