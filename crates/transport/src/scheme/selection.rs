//! A user's choice of parts.

use super::{ArgumentError, Arguments, Catalogue, Part, Parts, Scheme, Value};
use crate::differentiation::{GapDifferentiator, LossDifferentiator, Relayed};
use crate::receiver::{LossCause, ReceiverAgent};
use crate::tcp::{Config, Differentiators};
use std::collections::BTreeMap;

/// Parts chosen by name: a scheme, or single parts, or a scheme with some of its parts replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// A named scheme; `newreno` parts if none.
    pub scheme: Option<String>,
    /// Congestion control, instead of the scheme's.
    pub congestion: Option<String>,
    /// Ruling differentiator, instead of the scheme's.
    pub differentiator: Option<String>,
    /// Differentiators that listen in shadow.
    pub shadows: Vec<String>,
    /// Reaction, instead of the scheme's.
    pub reaction: Option<String>,
    /// Timeout policy, instead of the scheme's.
    pub timeout: Option<String>,
    /// Receiver agent, instead of the scheme's.
    pub receiver: Option<String>,
    /// Parameters: part name → parameter → value, instead of the scheme's and the parts' own. Where two chosen parts of different
    /// roles bear one name (`none`), each takes the parameters that it has.
    pub parameters: BTreeMap<String, BTreeMap<String, Value>>,
}

/// Why a selection cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectionError {
    /// No such scheme or part.
    #[error("there is no {role} `{name}`{}; there are {allowed}", .nearest.map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default())]
    Unknown {
        /// The role: "scheme", "congestion control", …
        role: &'static str,
        /// The name that was given.
        name: String,
        /// The nearest name that exists.
        nearest: Option<&'static str>,
        /// All names that exist.
        allowed: String,
    },
    /// A parameter does not fit.
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    /// Parameters for a part that is not chosen.
    #[error("parameters are given for `{name}`, which is not among the chosen parts: {chosen}")]
    Unused {
        /// Name of the part.
        name: String,
        /// The parts that are chosen.
        chosen: String,
    },
}

impl Selection {
    /// The scheme `name` with all its parts.
    pub fn scheme(name: &str) -> Self {
        Self { scheme: Some(name.to_owned()), ..Self::default() }
    }

    /// All names in it, of a scheme and of parts.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let roles = [&self.scheme, &self.congestion, &self.differentiator, &self.reaction, &self.timeout, &self.receiver];
        roles.into_iter().flatten().chain(&self.shadows).map(String::as_str)
    }

    /// Checks names and parameters, lets the scheme adjust `config`, and builds the parts, all of them of this crate.
    pub fn build(&self, config: &mut Config) -> Result<Parts, SelectionError> {
        self.build_from(Catalogue::builtin(), config)
    }

    /// As [`Self::build`], with names that mean what they mean in `catalogue`.
    pub fn build_from(&self, catalogue: &Catalogue, config: &mut Config) -> Result<Parts, SelectionError> {
        let find_scheme = |name: &str| {
            let found = catalogue.schemes.iter().find(|scheme| scheme.name == name);
            found.copied().ok_or_else(|| unknown(catalogue, "scheme", name))
        };
        let scheme = self.scheme.as_deref().map(find_scheme).transpose()?;
        if let Some(scheme) = scheme {
            (scheme.adjust)(config);
        }
        let pick = |own: &Option<String>, of_scheme: fn(&Scheme) -> &'static str, default: &'static str| -> String {
            own.clone().unwrap_or_else(|| scheme.map_or(default, of_scheme).to_owned())
        };
        let congestion = pick(&self.congestion, |s| s.congestion, "newreno");
        let differentiator = pick(&self.differentiator, |s| s.differentiator, "none");
        let reaction = pick(&self.reaction, |s| s.reaction, "reduce");
        let timeout = pick(&self.timeout, |s| s.timeout, "standard");
        // A differentiator at the receiver brings its agent along.
        let agent = catalogue.at_receiver.iter().map(|part| part.name).find(|name| *name == differentiator);
        let of_scheme = scheme.map_or("plain", |scheme| scheme.receiver);
        let default = if of_scheme == "plain" { agent.unwrap_or("plain") } else { of_scheme };
        let receiver = self.receiver.as_deref().unwrap_or(default);

        let congestion = find(catalogue, "congestion control", &catalogue.congestion, &congestion)?;
        let differentiator = find_differentiator(catalogue, &differentiator)?;
        let shadows = self.shadows.iter().map(|name| find_differentiator(catalogue, name)).collect::<Result<Vec<_>, _>>()?;
        let reaction = find(catalogue, "reaction", &catalogue.reactions, &reaction)?;
        let timeout = find(catalogue, "timeout policy", &catalogue.timeouts, &timeout)?;
        let receiver = Agent::find(catalogue, receiver)?;

        let mut values = Values::of_scheme(scheme);
        values.declare(congestion);
        for differentiator in std::iter::once(&differentiator).chain(&shadows) {
            match differentiator {
                Differentiator::AtSender(part) => values.declare(part),
                Differentiator::AtReceiver(part) => values.declare(part),
            }
        }
        values.declare(reaction);
        values.declare(timeout);
        match receiver {
            Agent::Own(part) => values.declare(part),
            Agent::Relaying(_, part) => values.declare(part),
        }
        values.overlay(&self.parameters)?;

        let judges = matches!(receiver, Agent::Own(_));
        let mut receiver = match receiver {
            Agent::Own(part) => values.make(part)?,
            Agent::Relaying(number, part) => Box::new(LossCause::new(number, values.make(part)?)),
        };
        if let (true, Differentiator::AtReceiver(part)) = (judges, &differentiator) {
            receiver.judge_by(values.make(part)?);
        }
        config.drop_precedence = config.drop_precedence.or(receiver.drop_precedence());

        let mut at_sender = Vec::new();
        let mut at_receiver = Vec::new();
        for shadow in shadows {
            match shadow {
                Differentiator::AtSender(part) => at_sender.push((part.name.to_owned(), values.make(part)?)),
                Differentiator::AtReceiver(part) => at_receiver.push((part.name.to_owned(), values.make(part)?)),
            }
        }

        Ok(Parts {
            congestion: values.make(congestion)?,
            differentiators: Differentiators {
                ruling: match differentiator {
                    Differentiator::AtSender(part) => values.make(part)?,
                    Differentiator::AtReceiver(_) => Box::new(Relayed::default()),
                },
                shadows: at_sender,
            },
            receiver_shadows: at_receiver,
            reaction: values.make(reaction)?,
            timeout: values.make(timeout)?,
            receiver,
        })
    }
}

/// A differentiator by the place where it works.
enum Differentiator {
    AtSender(&'static Part<dyn LossDifferentiator>),
    AtReceiver(&'static Part<dyn GapDifferentiator>),
}

fn find_differentiator(catalogue: &Catalogue, name: &str) -> Result<Differentiator, SelectionError> {
    match catalogue.at_receiver.iter().find(|part| part.name == name) {
        Some(part) => Ok(Differentiator::AtReceiver(part)),
        None => find(catalogue, "differentiator", &catalogue.at_sender, name).map(Differentiator::AtSender),
    }
}

/// What works at the receiver: an agent of its own, or the one that reports the verdicts of a differentiator (with its number).
enum Agent {
    Own(&'static Part<dyn ReceiverAgent>),
    Relaying(u8, &'static Part<dyn GapDifferentiator>),
}

impl Agent {
    fn find(catalogue: &Catalogue, name: &str) -> Result<Self, SelectionError> {
        match catalogue.at_receiver.iter().position(|part| part.name == name) {
            Some(number) => Ok(Self::Relaying(number as u8, catalogue.at_receiver[number])),
            None => find(catalogue, "receiver agent", &catalogue.receivers, name).map(Self::Own),
        }
    }
}

/// The values that the scheme and the user give, and what the chosen parts could take.
struct Values {
    given: BTreeMap<String, BTreeMap<String, Value>>,
    declared: BTreeMap<&'static str, Vec<&'static str>>,
}

impl Values {
    fn of_scheme(scheme: Option<&Scheme>) -> Self {
        let mut given: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for &(part, parameter, value) in scheme.map_or(&[][..], |scheme| scheme.parameters) {
            given.entry(part.to_owned()).or_default().insert(parameter.to_owned(), value.into());
        }
        Self { given, declared: BTreeMap::new() }
    }

    fn declare<T: ?Sized>(&mut self, part: &Part<T>) {
        self.declared.entry(part.name).or_default().extend(part.parameters.iter().map(|parameter| parameter.name));
    }

    /// Puts the user's values over the scheme's.
    fn overlay(&mut self, own: &BTreeMap<String, BTreeMap<String, Value>>) -> Result<(), SelectionError> {
        for (name, values) in own {
            let Some((part, declared)) = self.declared.get_key_value(name.as_str()) else {
                let chosen = self.declared.keys().copied().collect::<Vec<_>>().join(", ");
                return Err(SelectionError::Unused { name: name.clone(), chosen });
            };
            if let Some(unknown) = values.keys().find(|parameter| !declared.contains(&parameter.as_str())) {
                return Err(ArgumentError::unknown(part, unknown, declared).into());
            }
            self.given.entry(name.clone()).or_default().extend(values.clone());
        }
        Ok(())
    }

    fn make<T: ?Sized>(&self, part: &Part<T>) -> Result<Box<T>, ArgumentError> {
        let mut given = self.given.get(part.name).cloned().unwrap_or_default();
        given.retain(|name, _| part.parameters.iter().any(|parameter| parameter.name == name));
        Ok(part.build(&Arguments::check(part, &given)?))
    }
}

fn find<T: ?Sized>(
    catalogue: &Catalogue,
    role: &'static str,
    rows: &[&'static Part<T>],
    name: &str,
) -> Result<&'static Part<T>, SelectionError> {
    rows.iter().find(|row| row.name == name).copied().ok_or_else(|| unknown(catalogue, role, name))
}

fn unknown(catalogue: &Catalogue, role: &'static str, name: &str) -> SelectionError {
    let names = catalogue.names(role);
    let nearest =
        names.iter().map(|&n| (strsim::levenshtein(n, name), n)).min().filter(|(d, n)| *d <= n.len().max(3) / 2).map(|(_, n)| n);
    SelectionError::Unknown { role, name: name.to_owned(), nearest, allowed: names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::SCHEMES;
    use crate::{differentiation, receiver, timeout};

    fn build(selection: &Selection) -> Result<(Parts, Config), SelectionError> {
        let mut config = Config::modern();
        selection.build(&mut config).map(|parts| (parts, config))
    }

    fn with(mut selection: Selection, part: &str, parameter: &str, value: Value) -> Selection {
        selection.parameters.entry(part.to_owned()).or_default().insert(parameter.to_owned(), value);
        selection
    }

    fn message(selection: &Selection) -> String {
        build(selection).unwrap_err().to_string()
    }

    #[test]
    fn every_scheme_builds() {
        for scheme in SCHEMES {
            let (parts, _) = build(&Selection::scheme(scheme.name)).unwrap_or_else(|error| panic!("{}: {error}", scheme.name));
            assert!(parts.differentiators.shadows.is_empty());
        }
    }

    #[test]
    fn nothing_chosen_is_newreno() {
        let (parts, config) = build(&Selection::default()).unwrap();
        assert_eq!(format!("{parts:?}"), format!("{:?}", build(&Selection::scheme("sack")).unwrap().0));
        assert_eq!(config, Config::modern());
    }

    #[test]
    fn a_scheme_sets_parameters_and_the_user_wins() {
        let hardened = Selection::scheme("checksum-ld-hardened");
        let debug = |selection: &Selection| format!("{:?}", build(selection).unwrap().0);
        assert!(build(&hardened).unwrap().0.differentiators.ruling.wants_nonce());
        assert!(debug(&hardened).contains("p_wl_max: 0.3"));
        assert!(debug(&hardened).contains("evidence: SeqConfirmed"));
        let own = with(hardened.clone(), "reported", "p_wl_max", Value::Number(0.5));
        assert!(debug(&own).contains("p_wl_max: 0.5"));
        assert!(debug(&own).contains("evidence: SeqConfirmed"), "the scheme's other values stay");
        let replaced = Selection { receiver: Some("plain".into()), ..hardened };
        assert!(!build(&replaced).unwrap().0.receiver.wants_reports());
    }

    #[test]
    fn parts_go_together_freely() {
        let selection = Selection {
            congestion: Some("cubic".into()),
            differentiator: Some("reported".into()),
            shadows: vec!["none".into(), "reported".into()],
            reaction: Some("keep".into()),
            timeout: Some("f-rto".into()),
            receiver: Some("checksum".into()),
            ..Selection::scheme("reno")
        };
        let (parts, config) = build(&selection).unwrap();
        assert_eq!(parts.differentiators.shadows.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["none", "reported"]);
        assert!(parts.receiver.wants_reports() && !parts.differentiators.ruling.wants_nonce());
        assert!(!config.sack, "the scheme's changes of the configuration stay");
    }

    #[test]
    fn a_parameter_goes_to_the_part_that_has_it() {
        // A fixed window and no differentiation bear the same name.
        let selection = Selection { congestion: Some("none".into()), ..Selection::default() };
        let selection = with(selection, "none", "segments", Value::Number(25.0));
        assert!(format!("{:?}", build(&selection).unwrap().0).contains("segments: 25"));
    }

    #[test]
    fn wrong_names_are_answered_with_the_nearest() {
        // Which names there are changes with every algorithm: the message must begin with the fault and end with the whole table.
        let check = |selection: &Selection, begin: &str, names: Vec<&str>| {
            assert_eq!(message(selection), format!("{begin}; there are {}", names.join(", ")));
        };
        let schemes = SCHEMES.iter().map(|scheme| scheme.name).collect();
        check(&Selection::scheme("newrno"), "there is no scheme `newrno` (did you mean `newreno`?)", schemes);
        let selection = Selection { timeout: Some("frto".into()), ..Selection::default() };
        let policies = timeout::TABLE.iter().map(|part| part.name).collect();
        check(&selection, "there is no timeout policy `frto` (did you mean `f-rto`?)", policies);
        let selection = Selection { receiver: Some("xyzzy".into()), ..Selection::default() };
        let agents = receiver::TABLE.iter().map(|part| part.name);
        let agents = agents.chain(differentiation::AT_RECEIVER.iter().map(|part| part.name)).collect();
        check(&selection, "there is no receiver agent `xyzzy`", agents);
        let selection = Selection { shadows: vec!["reportd".into()], ..Selection::default() };
        assert!(message(&selection).contains("no differentiator `reportd` (did you mean `reported`?)"));
    }

    #[test]
    fn wrong_parameters_are_answered_with_what_is_allowed() {
        let cubic = || Selection::scheme("cubic");
        assert_eq!(
            message(&with(cubic(), "cubic", "gamma", Value::Number(1.0))),
            "cubic has no parameter `gamma`; it has c, beta, fast_convergence, growth, hystart"
        );
        assert_eq!(
            message(&with(cubic(), "cubic", "beta", Value::Number(1.5))),
            "parameter `beta` of cubic is 1.5; allowed is a number from 0.1 to 0.99"
        );
        assert_eq!(
            message(&with(cubic(), "cubic", "beta", Value::Number(f64::NAN))),
            "parameter `beta` of cubic is NaN; allowed is a number from 0.1 to 0.99"
        );
        assert_eq!(
            message(&with(cubic(), "cubic", "hystart", Value::Word("yes".into()))),
            "parameter `hystart` of cubic is \"yes\"; allowed is true or false"
        );
        let reported = Selection { differentiator: Some("reported".into()), ..Selection::default() };
        assert_eq!(
            message(&with(reported, "reported", "evidence", Value::Word("hearsay".into()))),
            "parameter `evidence` of reported is \"hearsay\"; allowed is count-only, order-inferred, seq-confirmed"
        );
        assert_eq!(
            message(&with(cubic(), "checksum", "hardened", Value::Flag(true))),
            "parameters are given for `checksum`, which is not among the chosen parts: cubic, none, plain, reduce, standard"
        );
        assert_eq!(message(&with(cubic(), "plain", "x", Value::Flag(true))), "plain has no parameter `x`; it has none");
    }
}
