//! From evidence to causes: how probable each is, and why, in words and numbers.

pub mod features;
pub mod learned;
pub mod rules;
mod words;

pub use rules::probabilities;
pub use words::words;

use crate::evidence::Evidence;
use crate::half::Trigger;

/// Where `value` lies between the ends of `range`, from 0 to 1; `None` if they are too near each other to tell.
fn between(value: f64, (low, high): (f64, f64)) -> Option<f64> {
    // A tenth of a millisecond is what hosts add by themselves.
    (high - low > 1e-4).then(|| ((value - low) / (high - low)).clamp(0.0, 1.0))
}

/// How full the queue was before the loss, from 0 to 1 of what the direction ever saw.
fn fullness(evidence: &Evidence) -> Option<f64> {
    between(evidence.trips.0?, evidence.range)
}

/// How many segments of full length the path would have passed, at its best rate, from the first to the last loss of a row of losses.
fn blackout_expected(evidence: &Evidence) -> Option<f64> {
    let (row, rate) = evidence.blackout.zip(evidence.rates.1)?;
    Some(row.span().as_secs_f64() * rate / f64::from(evidence.mss.max(1)))
}

/// Whether a timer and nothing else made the sender repair it.
const fn by_timer(trigger: Trigger) -> bool {
    matches!(trigger, Trigger::Timeout | Trigger::BackedOff | Trigger::AfterTimeout)
}
