//! A user's choice of parts.

use super::{ArgumentError, Arguments, Part, Parts, Scheme, Value, SCHEMES};
use crate::{congestion, differentiation, reaction, receiver, tcp::Config, timeout};
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
        /// What was found.
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
        /// The part.
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

    /// Checks names and parameters, lets the scheme adjust `config`, and builds the parts.
    pub fn build(&self, config: &mut Config) -> Result<Parts, SelectionError> {
        let scheme = self.scheme.as_deref().map(|name| find("scheme", SCHEMES, |s: &Scheme| s.name, name)).transpose()?;
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
        let receiver = pick(&self.receiver, |s| s.receiver, "plain");

        let congestion = find("congestion control", congestion::TABLE, |part| part.name, &congestion)?;
        let differentiator = find("differentiator", differentiation::TABLE, |part| part.name, &differentiator)?;
        let shadows = self
            .shadows
            .iter()
            .map(|name| find("differentiator", differentiation::TABLE, |part| part.name, name))
            .collect::<Result<Vec<_>, _>>()?;
        let reaction = find("reaction", reaction::TABLE, |part| part.name, &reaction)?;
        let timeout = find("timeout policy", timeout::TABLE, |part| part.name, &timeout)?;
        let receiver = find("receiver agent", receiver::TABLE, |part| part.name, &receiver)?;

        let mut values = Values::of_scheme(scheme);
        values.declare(congestion);
        values.declare(differentiator);
        for shadow in &shadows {
            values.declare(shadow);
        }
        values.declare(reaction);
        values.declare(timeout);
        values.declare(receiver);
        values.overlay(&self.parameters)?;

        Ok(Parts {
            congestion: values.make(congestion)?,
            differentiator: values.make(differentiator)?,
            shadows: shadows
                .iter()
                .map(|part| Ok((part.name.to_owned(), values.make(part)?)))
                .collect::<Result<_, ArgumentError>>()?,
            reaction: values.make(reaction)?,
            timeout: values.make(timeout)?,
            receiver: values.make(receiver)?,
        })
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
        Ok((part.build)(&Arguments::check(part, &given)?))
    }
}

fn find<T>(
    role: &'static str,
    table: &'static [T],
    name_of: fn(&T) -> &'static str,
    name: &str,
) -> Result<&'static T, SelectionError> {
    table.iter().find(|row| name_of(row) == name).ok_or_else(|| {
        let names = || table.iter().map(name_of);
        let nearest = names().map(|n| (distance(n, name), n)).min().filter(|(d, n)| *d <= n.len().max(3) / 2).map(|(_, n)| n);
        SelectionError::Unknown { role, name: name.to_owned(), nearest, allowed: names().collect::<Vec<_>>().join(", ") }
    })
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
