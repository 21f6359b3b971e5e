//! One direction of a link, written out.

use crate::channels::{check_channel, check_no_pattern};
use crate::error::InputError;
use crate::format::{Change, Channel, Direction, Discipline, Jitter, JitterLaw, Outage, Reorder, Shape};
use crate::patterns::LinkFiles;
use std::sync::Arc;
use whyloss_sim::{ChannelSpec, LinkSpec, Trace};
use whyloss_transport::quantity::{Capacity, Rate, Size, Span};
use whyloss_transport::BitRate;

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// What the transmitter keeps to.
    pub pace: Pace,
    /// Propagation delay.
    pub delay: Span,
    /// Queue in front of the transmitter.
    pub queue: Capacity,
    /// What it does beside dropping at the tail.
    pub discipline: Option<Discipline>,
    /// What it does to packets.
    pub channel: Option<Channel>,
    /// The field of the scenario that `channel` comes from.
    pub channel_field: String,
    /// An extra delay that differs from packet to packet.
    pub jitter: Option<Jitter>,
    /// Whether packets may overtake each other.
    pub overtaking: bool,
    /// A share of the packets leaves the order.
    pub reorder: Option<Reorder>,
    /// Probability of a packet to arrive twice.
    pub duplicate: f64,
    /// When it is down.
    pub outage: Vec<Outage>,
    /// What becomes different while time passes.
    pub change: Vec<Change>,
}

/// What a transmitter keeps to.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// A bit rate.
    Rate(Rate),
    /// Opportunities that a file names.
    Trace {
        /// Path of the trace, with `{run}` in it, relative to the scenario.
        file: String,
        /// Octets of each.
        octets: Size,
        /// The field of the scenario that says so.
        field: String,
    },
}

/// Octets of an opportunity in mahimahi.
const TRACE_OCTETS: Size = Size(1504);

impl Way {
    /// The direction `name` of the link at `field`.
    pub(crate) fn new(shape: &Shape, direction: Option<&Direction>, field: &str, name: &str) -> Result<Self, InputError> {
        let none = Direction::default();
        let own = direction.unwrap_or(&none);
        let place = |own: bool| if own { format!("{field}.{name}") } else { field.to_owned() };
        let pace = pace(shape, own, place)?;
        let channel_field = format!("{}.channel", place(own.channel.is_some()));
        let channel = own.channel.as_ref().or(shape.channel.as_ref()).cloned();
        if let Some(channel) = &channel {
            check_channel(channel, &channel_field)?;
        }
        let discipline = own.discipline.or(shape.discipline);
        if let Some(discipline) = &discipline {
            if let Some((flaw, found, allowed)) = discipline.flaw() {
                let field = format!("{}.discipline.{}.{flaw}", place(own.discipline.is_some()), discipline.name());
                return Err(InputError::default().at(field).found(found).allowed(allowed));
            }
        }
        let way = Self {
            pace,
            delay: own.delay.or(shape.delay).unwrap_or_default(),
            queue: own.queue.or(shape.queue).unwrap_or(Capacity::Packets(100)),
            discipline,
            channel,
            channel_field,
            jitter: own.jitter.or(shape.jitter),
            overtaking: own.overtaking.or(shape.overtaking).unwrap_or_default(),
            reorder: own.reorder.or(shape.reorder),
            duplicate: own.duplicate.or(shape.duplicate).map_or(0.0, |share| share.0),
            outage: own.outage.as_ref().or(shape.outage.as_ref()).cloned().unwrap_or_default(),
            change: own.change.as_ref().or(shape.change.as_ref()).cloned().unwrap_or_default(),
        };
        if let Some(jitter) = &way.jitter {
            check_jitter(jitter, &format!("{}.jitter", place(own.jitter.is_some())))?;
        }
        for (number, change) in way.change.iter().enumerate() {
            if let Some(channel) = &change.channel {
                let field = format!("{}.change[{number}].channel", place(own.change.is_some()));
                check_channel(channel, &field)?;
                check_no_pattern(channel, &field)?;
            }
        }
        if let Some((flaw, found, allowed)) = way.spec(None).flaw() {
            let given = match flaw.split('.').next() {
                Some("jitter") => own.jitter.is_some(),
                Some("reorder") => own.reorder.is_some(),
                Some("outage") => own.outage.is_some(),
                Some("change") => own.change.is_some(),
                _ => false,
            };
            return Err(InputError::default().at(format!("{}.{flaw}", place(given))).found(found).allowed(allowed));
        }
        Ok(way)
    }

    /// What simulator and emulator make of it, with the files that it names.
    pub(crate) fn spec(&self, files: Option<&LinkFiles>) -> LinkSpec {
        let (rate, trace) = match &self.pace {
            Pace::Rate(rate) => ((*rate).into(), None),
            Pace::Trace { octets, .. } => {
                let trace = files.and_then(|files| files.trace.as_deref().cloned());
                // Where no file has been read yet, what is checked does not depend on it.
                let trace = trace.or_else(|| Trace::new(&[1])).map(|trace| Arc::new(trace.with_octets(octets.0 as u32)));
                (BitRate::default(), trace)
            }
        };
        LinkSpec {
            rate,
            delay: self.delay.into(),
            queue: self.queue.into(),
            channel: self.channel.as_ref().map_or_else(ChannelSpec::default, |channel| channel.spec(files)),
            trace,
            jitter: self.jitter,
            overtaking: self.overtaking,
            reorder: self.reorder,
            duplicate: self.duplicate,
            outage: self.outage.clone(),
            change: self.change.iter().map(|change| change.map(|channel| channel.spec(None))).collect(),
        }
    }
}

/// The rate or the trace of a direction: its own, or that of the link.
fn pace(shape: &Shape, own: &Direction, place: impl Fn(bool) -> String) -> Result<Pace, InputError> {
    for (both, own) in [(own.rate.is_some() && own.trace.is_some(), true), (shape.rate.is_some() && shape.trace.is_some(), false)]
    {
        if both {
            return Err(InputError::new("a trace takes the place of a rate")
                .at(format!("{}.trace", place(own)))
                .allowed("either rate or trace"));
        }
    }
    let is_own = own.rate.is_some() || own.trace.is_some();
    let (rate, trace) = if is_own { (own.rate, &own.trace) } else { (shape.rate, &shape.trace) };
    let octets = own.trace_octets.or(shape.trace_octets);
    match (rate, trace) {
        (Some(_), _) if own.trace_octets.is_some() || (shape.trace_octets.is_some() && shape.trace.is_none()) => {
            let field = format!("{}.trace_octets", place(own.trace_octets.is_some()));
            Err(InputError::new("`trace_octets` says nothing without a trace").at(field))
        }
        (Some(rate), _) => Ok(Pace::Rate(rate)),
        (None, Some(file)) => {
            let octets = octets.unwrap_or(TRACE_OCTETS);
            if octets.0 > 1 << 30 {
                let field = format!("{}.trace_octets", place(own.trace_octets.is_some()));
                return Err(InputError::default().at(field).found(format!("\"{octets}\"")).allowed("1 B to 1 GiB"));
            }
            Ok(Pace::Trace { file: file.clone(), octets, field: format!("{}.trace", place(own.trace.is_some())) })
        }
        (None, None) => Err(InputError::new("missing")
            .at(format!("{}.rate", place(false)))
            .allowed("a bit rate such as \"384 kbps\", or a trace")),
    }
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
