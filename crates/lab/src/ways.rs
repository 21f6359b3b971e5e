//! One direction of a link, written out.

use crate::channels::{check_channel, check_no_pattern};
use crate::error::InputError;
use crate::format::{Channel, Direction, Jitter, JitterLaw, Shape};
use crate::patterns::LinkFiles;
use whyloss_sim::{LinkSpec, QueueLimit};

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// What shapes it. Of a trace it has the path, with `{run}` in it, relative to the scenario.
    pub spec: LinkSpec<Channel, String>,
    /// The field of the scenario that says what it does to packets.
    pub channel_field: String,
    /// The field of the scenario that says when it delivers.
    pub trace_field: String,
}

/// What holds where a scenario says nothing.
const QUEUE: QueueLimit = QueueLimit::Packets(100);

impl Way {
    /// The direction `name` of the link at `field`.
    pub(crate) fn new(shape: &Shape, direction: Option<&Direction>, field: &str, name: &str) -> Result<Self, InputError> {
        let none = Direction::default();
        let own = direction.unwrap_or(&none);
        let mut both = shape.both();
        let place = |said: &str| if own.says(said) { format!("{field}.{name}.{said}") } else { format!("{field}.{said}") };
        check_pace(own, &format!("{field}.{name}"))?;
        check_pace(&both, field)?;
        // Rate and trace take each other's place.
        if own.rate.is_some() || own.trace.is_some() {
            (both.rate, both.trace) = (None, None);
        }
        let usual = LinkSpec { queue: QUEUE, ..LinkSpec::default() };
        let spec = own.apply(both.apply(usual));
        let has_rate = own.rate.or(both.rate).is_some();
        if !has_rate && spec.trace.is_none() {
            return Err(InputError::new("missing")
                .at(format!("{field}.rate"))
                .allowed("a bit rate such as \"384 kbps\", or a trace"));
        }
        if has_rate && (own.trace_octets.is_some() || (shape.trace_octets.is_some() && shape.trace.is_none())) {
            return Err(InputError::new("`trace_octets` says nothing without a trace").at(place("trace_octets")));
        }
        let (channel_field, trace_field) = (place("channel"), place("trace"));
        check_channel(&spec.channel, &channel_field)?;
        if let Some(discipline) = &spec.discipline {
            if let Some((flaw, found, allowed)) = discipline.flaw() {
                let field = format!("{}.{}.{flaw}", place("discipline"), discipline.name());
                return Err(InputError::default().at(field).found(found).allowed(allowed));
            }
        }
        if let Some(jitter) = &spec.jitter {
            check_jitter(jitter, &place("jitter"))?;
        }
        for (number, change) in spec.change.iter().enumerate() {
            if let Some(channel) = &change.channel {
                let field = format!("{}[{number}].channel", place("change"));
                check_channel(channel, &field)?;
                check_no_pattern(channel, &field)?;
            }
        }
        if let Some((flaw, found, allowed)) = spec.flaw() {
            let (said, rest) = flaw.split_at(flaw.find('.').unwrap_or(flaw.len()));
            return Err(InputError::default().at(place(said) + rest).found(found).allowed(allowed));
        }
        Ok(Self { spec, channel_field, trace_field })
    }

    /// What simulator and emulator make of it, with the files that it names.
    pub(crate) fn spec(&self, files: Option<&LinkFiles>) -> LinkSpec {
        self.spec.map(|channel| channel.spec(files), |_| files.and_then(|files| files.trace.clone()))
    }
}

/// Whether there is a rate or a trace, not both.
fn check_pace(said: &Direction, field: &str) -> Result<(), InputError> {
    if said.rate.is_some() && said.trace.is_some() {
        return Err(InputError::new("a trace takes the place of a rate")
            .at(format!("{field}.trace"))
            .allowed("either rate or trace"));
    }
    Ok(())
}

/// Whether a jitter says what belongs to its law, and nothing else.
fn check_jitter(jitter: &Jitter, field: &str) -> Result<(), InputError> {
    let normal = jitter.law == JitterLaw::Normal;
    if normal && jitter.deviation.is_none() {
        return Err(InputError::new("missing").at(format!("{field}.deviation")).allowed("a time above zero, at most the mean"));
    }
    if !normal && jitter.deviation.is_some() {
        return Err(InputError::new("only the normal law has a deviation").at(format!("{field}.deviation")));
    }
    if jitter.shape.is_some() && jitter.law != JitterLaw::Pareto {
        return Err(InputError::new("only the law of Pareto has a shape").at(format!("{field}.shape")));
    }
    Ok(())
}
