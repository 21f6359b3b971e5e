//! The differentiators of a sender: the one that rules and those in shadow.

use crate::differentiation::LossDifferentiator;
use crate::path::{Ack, Loss, Passed, Reported, Sent, TransmissionFate};
use crate::verdict::Verdict;

/// Takes every event once and tells each differentiator of it, so that those in shadow judge what the ruling one judges, from what it knows.
#[derive(Debug)]
pub struct Differentiators {
    /// The one whose verdicts count. What segments carry for a differentiator they carry for this one.
    pub ruling: Box<dyn LossDifferentiator>,
    /// Those that judge every loss and change nothing, with the names of their columns.
    pub shadows: Vec<(String, Box<dyn LossDifferentiator>)>,
}

impl Differentiators {
    fn each(&mut self, mut tell: impl FnMut(&mut dyn LossDifferentiator)) {
        tell(&mut *self.ruling);
        for (_, shadow) in &mut self.shadows {
            tell(&mut **shadow);
        }
    }

    /// Whether any of them wants to be told what really became of packets.
    pub fn want_truth(&self) -> bool {
        self.ruling.wants_truth() || self.shadows.iter().any(|(_, shadow)| shadow.wants_truth())
    }

    pub(super) fn on_truth(&mut self, fate: &TransmissionFate) {
        self.each(|differentiator| differentiator.on_truth(fate));
    }

    pub(super) fn on_sent(&mut self, sent: &Sent) {
        self.each(|differentiator| differentiator.on_sent(sent));
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.each(|differentiator| differentiator.on_ack(ack));
    }

    pub(super) fn on_report(&mut self, reported: &Reported) {
        self.each(|differentiator| differentiator.on_report(reported));
    }

    pub(super) fn on_passed(&mut self, passed: &Passed) {
        self.each(|differentiator| differentiator.on_passed(passed));
    }

    /// Of each loss that is found at this moment: the verdict that counts, and those of the shadows in their order.
    pub(super) fn judge_all(&mut self, losses: &[Loss]) -> Vec<(Verdict, Vec<Verdict>)> {
        self.each(|differentiator| differentiator.on_found(losses));
        let judge = |loss| (self.ruling.judge(loss), self.shadows.iter_mut().map(|(_, shadow)| shadow.judge(loss)).collect());
        losses.iter().map(judge).collect()
    }
}
