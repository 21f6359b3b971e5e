//! What a channel may say, and what the simulator makes of it.

use crate::error::InputError;
use crate::format::{Channel, Input, CHANNEL_ERRORS};
use crate::patterns::LinkFiles;
use whyloss_sim::{AtEnd, ChannelSpec, Effect, Errors, Step};
use whyloss_transport::Duration;

/// Checks that a channel has one kind of error at most, and numbers that make sense.
pub(crate) fn check_channel(channel: &Channel, field: &str) -> Result<(), InputError> {
    let Channel { ber, pattern, loss, spaced, markov, .. } = channel;
    let given = [ber.is_some(), pattern.is_some(), loss.is_some(), spaced.is_some(), markov.is_some()];
    let given: Vec<_> = CHANNEL_ERRORS.iter().zip(given).filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if given.len() > 1 {
        return Err(InputError::new("more than one kind of error")
            .at(field)
            .found(given.join(" and "))
            .allowed(format!("one of {}", CHANNEL_ERRORS.join(", "))));
    }
    if channel.ber.is_some_and(|ber| ber.0 >= 1.0) {
        return Err(InputError::default().at(format!("{field}.ber")).found("1").allowed("a number from 0 to below 1"));
    }
    if channel.pattern_end.is_some() && channel.pattern.is_none() {
        return Err(InputError::new("`pattern_end` says nothing without a pattern").at(format!("{field}.pattern_end")));
    }
    if channel.markov.as_ref().is_some_and(|markov| markov.every == Some(Duration::ZERO)) {
        return Err(InputError::default().at(format!("{field}.markov.every")).found("\"0 s\"").allowed("a time above zero"));
    }
    Ok(())
}

/// A pattern belongs to one direction of one link.
pub(crate) fn check_no_pattern(channel: &Channel, field: &str) -> Result<(), InputError> {
    if channel.pattern.is_some() {
        return Err(InputError::new("a pattern is possible for wires only").at(format!("{field}.pattern")));
    }
    Ok(())
}

/// Checks the channels of a host's IP input.
pub(crate) fn check_input(input: &Input, field: &str) -> Result<(), InputError> {
    for (channel, name) in [(&input.data, "data"), (&input.acks, "acks")] {
        if let Some(channel) = channel {
            let field = format!("{field}.{name}");
            check_channel(channel, &field)?;
            check_no_pattern(channel, &field)?;
        }
    }
    Ok(())
}

impl Channel {
    /// What an error does, said or not.
    pub fn effective(&self) -> Effect {
        let by_packet = self.loss.is_some() || self.spaced.is_some() || self.markov.is_some();
        self.effect.unwrap_or(if by_packet { Effect::Erase } else { Effect::Damage })
    }

    /// What comes after a pattern, said or not.
    pub fn end(&self) -> AtEnd {
        self.pattern_end.unwrap_or_default()
    }

    /// What the simulator makes of it, with the pattern that it names.
    pub(crate) fn spec(&self, files: Option<&LinkFiles>) -> ChannelSpec {
        let errors = if let Some(ber) = self.ber {
            Errors::Bits { ber: ber.0 }
        } else if let (Some(_), Some(pattern)) = (&self.pattern, files.and_then(|files| files.pattern.as_ref())) {
            Errors::Pattern { pattern: pattern.clone(), at_end: self.end() }
        } else if let Some(loss) = self.loss {
            Errors::Packets { probability: loss.0 }
        } else if let Some(spaced) = &self.spaced {
            Errors::Spaced { rate: spaced.rate.0, spacing: spaced.law }
        } else if let Some(markov) = &self.markov {
            let step = markov.every.map_or(Step::Packet, Step::Time);
            let hits = markov.hits();
            Errors::Gilbert { stay_good: markov.stay_good.0, stay_bad: markov.stay_bad.0, hits, step }
        } else {
            return ChannelSpec::default();
        };
        ChannelSpec { errors, effect: self.effective() }
    }
}
