//! What a flow may say, and what it means for both ends.

use crate::error::{argument, nearest, InputError};
use crate::format::Flow;
use std::sync::Arc;
use whyloss_sim::Rhythm;
use whyloss_transport::datagram;
use whyloss_transport::scheme::{Arguments, Catalogue, SelectionError};
use whyloss_transport::tcp::{Config, PROFILES};
use whyloss_transport::{BitRate, Duration};

/// What both ends of a flow are configured with: checked once, when the scenario is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FlowConfig {
    Tcp(Arc<Config>),
    /// Datagrams with congestion control.
    Controlled(Box<datagram::Config>),
    /// Datagrams of a source that waits for no acknowledgements.
    Cbr,
}

/// Whether `flow` says nothing beside when it runs between which hosts, and what `except` takes out of it.
fn says_only(flow: &Flow, except: impl FnOnce(&mut Flow)) -> bool {
    let plain = Flow::default();
    let mut rest = Flow {
        name: String::new(),
        from: None,
        to: None,
        traffic: None,
        count: plain.count,
        start: plain.start,
        start_spread: plain.start_spread,
        ..flow.clone()
    };
    rest.playback = None;
    except(&mut rest);
    rest == plain
}

/// Checks everything that a flow says.
pub(crate) fn check_flow(flow: &Flow, field: &str, catalogue: &Catalogue) -> Result<FlowConfig, InputError> {
    let at = |name: &str| format!("{field}.{name}");
    if flow.count == 0 {
        return Err(InputError::default().at(at("count")).found("0").allowed("1 or more"));
    }
    check_playback(flow, field)?;
    if let Some(cbr) = &flow.cbr {
        if !says_only(flow, |rest| rest.cbr = None) {
            return Err(InputError::new("datagrams know nothing of TCP")
                .at(at("cbr"))
                .allowed("name, from, to, traffic, count, start, start_spread, playback"));
        }
        if !(29..=65_535).contains(&cbr.packet.0) {
            return Err(InputError::default()
                .at(at("cbr.packet"))
                .found(format!("\"{}\"", cbr.packet))
                .allowed("29 B to 65535 B, 28 B of headers included"));
        }
        check_rhythm(&cbr.rhythm(), cbr.burst.is_some() == cbr.idle.is_some(), &at("cbr"))?;
        check_stop(cbr.stop, flow, &at("cbr"))?;
        return Ok(FlowConfig::Cbr);
    }
    if flow.datagram_scheme().is_some() {
        return check_controlled(flow, field).map(|config| FlowConfig::Controlled(Box::new(config)));
    }
    if flow.datagrams.is_some() {
        let names: Vec<_> = datagram::TABLE.iter().map(|row| row.name).collect();
        return Err(InputError::new("`datagrams` says nothing without a scheme of datagrams")
            .at(at("datagrams"))
            .allowed(format!("scheme = {}", names.join(" or "))));
    }
    match flow.striped {
        Some(0) => return Err(InputError::default().at(at("striped")).found("0").allowed("1 connection or more")),
        Some(_) if flow.size.is_none() => {
            return Err(InputError::new("missing: striped data needs a size").at(at("size")).allowed("a size such as \"1 MB\""))
        }
        _ => {}
    }
    let config = flow.config(catalogue).map_err(|error| InputError { field: format!("{field}.{}", error.field), ..error })?;
    config.check().map_err(|error| {
        InputError::default().at(format!("{field}.tcp.{}", error.field)).found(error.found).allowed(error.allowed)
    })?;
    for (name, octets) in [("receive_buffer", config.receive_buffer), ("send_buffer", config.send_buffer)] {
        if octets < u64::from(config.mss) {
            return Err(InputError::default()
                .at(format!("{field}.tcp.{name}"))
                .found(format!("\"{octets} B\""))
                .allowed("at least one segment (mss)"));
        }
    }
    if let Some(stream) = &flow.stream {
        let write = stream.write.map_or(u64::from(config.mss), |size| size.0);
        if !(1..=1 << 20).contains(&write) {
            return Err(InputError::default().at(at("stream.write")).found(format!("\"{write} B\"")).allowed("1 B to 1 MiB"));
        }
        if flow.size.is_some() {
            return Err(InputError::new("a stream takes the place of a size").at(at("stream")).allowed("either stream or size"));
        }
        check_rhythm(&stream.rhythm(), stream.burst.is_some() == stream.idle.is_some(), &at("stream"))?;
        check_stop(stream.stop, flow, &at("stream"))?;
    }
    if let Some(web) = &flow.web {
        if flow.size.is_some() || flow.stream.is_some() {
            return Err(InputError::new("pages take the place of a size or a stream")
                .at(at("web"))
                .allowed("one of web, stream, size"));
        }
        if let Some((name, found, allowed)) = web.flaw() {
            return Err(InputError::default().at(at(&format!("web.{name}"))).found(found).allowed(allowed));
        }
    }
    if flow.striped.is_some() && flow.chunk.0 > config.send_buffer {
        return Err(InputError::new("a chunk does not fit the send buffer")
            .at(at("chunk"))
            .found(format!("\"{}\"", flow.chunk))
            .allowed(format!("at most {} B", config.send_buffer)));
    }
    Ok(FlowConfig::Tcp(Arc::new(config)))
}

/// What plays at the receiver makes sense.
fn check_playback(flow: &Flow, field: &str) -> Result<(), InputError> {
    let Some(playback) = &flow.playback else { return Ok(()) };
    if flow.striped.is_some() {
        return Err(InputError::new("a striped transfer is not played").at(format!("{field}.playback")));
    }
    let Some(spec) = playback.spec(flow.given_rate()) else {
        return Err(InputError::new("missing: nothing says at which rate it plays")
            .at(format!("{field}.playback.rate"))
            .allowed("a rate such as \"1 Mbps\""));
    };
    spec.flaw().map_or(Ok(()), |(name, found, allowed)| {
        Err(InputError::default().at(format!("{field}.playback.{name}")).found(found).allowed(allowed))
    })
}

/// Bursts and silences make sense; `paired` says that there are both or neither.
fn check_rhythm(rhythm: &Rhythm, paired: bool, field: &str) -> Result<(), InputError> {
    if !paired {
        return Err(InputError::new("bursts need silences, and silences bursts")
            .at(field)
            .allowed("both `burst` and `idle`, or neither"));
    }
    rhythm.flaw().map_or(Ok(()), |(name, found, allowed)| {
        Err(InputError::default().at(format!("{field}.{name}")).found(found).allowed(allowed))
    })
}

fn check_stop(stop: Option<Duration>, flow: &Flow, field: &str) -> Result<(), InputError> {
    if stop.is_some_and(|stop| stop <= flow.start + flow.start_spread) {
        return Err(InputError::new("it stops before it starts").at(format!("{field}.stop")).allowed("a time after `start`"));
    }
    Ok(())
}

/// A flow of datagrams says nothing that only TCP has, and its parameters fit.
fn check_controlled(flow: &Flow, field: &str) -> Result<datagram::Config, InputError> {
    let datagrams_alone = |rest: &mut Flow| {
        rest.scheme = None;
        rest.datagrams = None;
        rest.parameters.clear();
    };
    if !says_only(flow, datagrams_alone) {
        return Err(InputError::new("DCCP and TFRC know nothing of TCP")
            .at(format!("{field}.scheme"))
            .found(format!("\"{}\" with fields of TCP", flow.scheme.as_deref().unwrap_or_default()))
            .allowed("name, from, to, traffic, count, start, start_spread, playback, datagrams, parameters"));
    }
    flow.datagram_config().map_err(|error| InputError { field: format!("{field}.{}", error.field), ..error })
}

impl Flow {
    /// The rate at which its application gives out data, if it says so.
    pub(crate) fn given_rate(&self) -> Option<BitRate> {
        let stream = self.stream.as_ref().map(|stream| stream.rate);
        let datagrams = self.datagrams.as_ref().and_then(|given| given.rate).or(self.cbr.as_ref().map(|cbr| cbr.rate));
        stream.or(datagrams)
    }

    /// The configuration of both ends of a flow of datagrams. Fields of errors are relative to the flow.
    fn datagram_config(&self) -> Result<datagram::Config, InputError> {
        let row = self.datagram_scheme().ok_or_else(|| InputError::new("no scheme of datagrams").at("scheme"))?;
        if let Some(other) = self.parameters.keys().find(|name| *name != row.name) {
            return Err(InputError::new("parameters for a part that is not chosen")
                .at(format!("parameters.{other}"))
                .allowed(row.name));
        }
        let arguments = Arguments::check(row, &self.values_of(row.name)).map_err(|error| self.name_field(error.into()))?;
        let given = self.datagrams.clone().unwrap_or_default();
        if !(1..=64_000).contains(&given.packet.0) {
            return Err(InputError::default()
                .at("datagrams.packet")
                .found(format!("\"{}\"", given.packet))
                .allowed("1 B to 64000 B of data"));
        }
        let config = row.build(&arguments).with_packet(given.packet.0 as u32);
        let covered = u32::from(config.coverage().saturating_sub(1)) * 4;
        if covered > config.packet() {
            return Err(InputError::new("more data is covered than a packet has")
                .at(format!("parameters.{}.coverage", row.name))
                .found(config.coverage().to_string())
                .allowed(format!("at most {}", config.packet() / 4 + 1)));
        }
        if given.rate.is_some_and(|rate| rate.as_bps() == 0) {
            return Err(InputError::default().at("datagrams.rate").found("\"0 bps\"").allowed("a rate above zero"));
        }
        if given.stop.is_some_and(|stop| stop <= self.start) {
            return Err(InputError::new("it stops before it starts").at("datagrams.stop").allowed("a time after `start`"));
        }
        Ok(config)
    }

    /// The configuration of both ends: the profile, as the scheme changes it, as `tcp` changes that. Fields of errors are relative to the
    /// flow.
    fn config(&self, catalogue: &Catalogue) -> Result<Config, InputError> {
        let mut config = Config::profile(&self.profile).ok_or_else(|| {
            let names: Vec<_> = PROFILES.iter().map(|(name, _)| *name).collect();
            InputError::new("no such profile")
                .at("profile")
                .found(format!("\"{}\"", self.profile))
                .nearest(nearest(&self.profile, names.iter().copied()))
                .allowed(names.join(", "))
        })?;
        self.selection().build_from(catalogue, &mut config).map_err(|error| self.name_field(error))?;
        Ok(self.tcp.apply(&config))
    }

    fn name_field(&self, error: SelectionError) -> InputError {
        match error {
            SelectionError::Unknown { role, name, nearest, allowed } => {
                let field = match role {
                    "scheme" => "scheme".to_owned(),
                    "congestion control" => "congestion".to_owned(),
                    "reaction" => "reaction".to_owned(),
                    "timeout policy" => "timeout".to_owned(),
                    "receiver agent" => "receiver".to_owned(),
                    _ => match self.shadows.iter().position(|shadow| *shadow == name) {
                        Some(position) if self.differentiator.as_ref() != Some(&name) => format!("shadows[{position}]"),
                        _ => "differentiator".to_owned(),
                    },
                };
                // A scheme may name a part that does not exist yet; then it is the scheme that is at fault.
                let given = [&self.congestion, &self.differentiator, &self.reaction, &self.timeout, &self.receiver];
                let own =
                    role == "scheme" || field.starts_with("shadows") || given.iter().any(|part| part.as_ref() == Some(&name));
                // Datagrams are a choice too where a whole scheme is named.
                let datagrams: Vec<_> =
                    if role == "scheme" { datagram::TABLE.iter().map(|row| row.name).collect() } else { Vec::new() };
                let allowed = std::iter::once(allowed.as_str()).chain(datagrams.iter().copied()).collect::<Vec<_>>().join(", ");
                let nearest = nearest.or_else(|| crate::error::nearest(&name, datagrams.iter().copied()));
                InputError::new(format!("no such {role}"))
                    .at(if own { field } else { "scheme".to_owned() })
                    .found(format!("\"{name}\""))
                    .nearest(nearest)
                    .allowed(allowed)
            }
            SelectionError::Argument(error) => {
                let part = error.part();
                argument(error, |name| format!("parameters.{part}.{name}"))
            }
            SelectionError::Unused { name, chosen } => {
                InputError::new("parameters for a part that is not chosen").at(format!("parameters.{name}")).allowed(chosen)
            }
        }
    }
}
