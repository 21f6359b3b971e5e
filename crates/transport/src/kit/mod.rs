//! What every part is made of: the row by which it is known, its parameters and their values.
//!
//! Everything here lies below the algorithms; what puts them together ([`scheme`](crate::scheme)) lies above.

mod settings;

pub use settings::{Build, Choice, Field, Number, Place, Settings};

use crate::verdict::Cause;
use std::collections::BTreeMap;

/// One algorithm of a role.
#[derive(Debug)]
pub struct Part<T: ?Sized + 'static> {
    /// Its name everywhere: scenario, command line, tables, docs.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
    /// What its page in the documentation says.
    pub notes: Notes,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Those of them that trade one accuracy of a differentiator for the other.
    pub thresholds: &'static [Threshold],
    /// How it is made.
    pub recipe: Recipe<T>,
}

/// How a part is made from checked arguments.
pub enum Recipe<T: ?Sized + 'static> {
    /// By a function of this program.
    Fixed(fn(&Arguments) -> Box<T>),
    /// By a function that knows more than its arguments, such as a class of another language.
    Shared(&'static (dyn Fn(&Arguments) -> Box<T> + Send + Sync)),
}

impl<T: ?Sized> Clone for Recipe<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Recipe<T> {}

impl<T: ?Sized> std::fmt::Debug for Recipe<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Fixed(_) => "Fixed",
            Self::Shared(_) => "Shared",
        })
    }
}

impl<T: ?Sized> Part<T> {
    /// The rest of the row of a part whose settings are `S`, to be completed with its names: `Part { name: …, ..Part::of::<Settings>() }`.
    pub const fn of<S: Build<T>>() -> Self {
        Self { parameters: S::PARAMETERS, ..Self::fixed(|arguments| S::read(arguments).build()) }
    }

    /// The same for a part with which nothing can be set.
    pub const fn fixed(build: fn(&Arguments) -> Box<T>) -> Self {
        Self::made_by(Recipe::Fixed(build))
    }

    /// The same for a part that is known only when the program runs. Its parameters are to be given, too.
    pub const fn shared(build: &'static (dyn Fn(&Arguments) -> Box<T> + Send + Sync)) -> Self {
        Self::made_by(Recipe::Shared(build))
    }

    const fn made_by(recipe: Recipe<T>) -> Self {
        Self { name: "", summary: "", reference: "", notes: Notes::NONE, parameters: &[], thresholds: &[], recipe }
    }

    /// Makes it with `arguments`, which were checked against its parameters.
    pub fn build(&self, arguments: &Arguments) -> Box<T> {
        match self.recipe {
            Recipe::Fixed(build) => build(arguments),
            Recipe::Shared(build) => build(arguments),
        }
    }
}

impl<T: ?Sized> Clone for Part<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: ?Sized> Copy for Part<T> {}

/// A parameter of a differentiator that trades its accuracy on one cause of losses for that on the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// The parameter's name in scenarios.
    pub parameter: &'static str,
    /// What a larger value takes more losses for.
    pub larger: Cause,
    /// Where it cuts the scores.
    pub cut: Cut,
}

impl Threshold {
    /// A larger value of `parameter` takes more losses for corruption.
    pub const fn of_corruption(parameter: &'static str, cut: Cut) -> Self {
        Self { parameter, larger: Cause::Corruption, cut }
    }

    /// A larger value of `parameter` takes more losses for congestion.
    pub const fn of_congestion(parameter: &'static str, cut: Cut) -> Self {
        Self { parameter, larger: Cause::Congestion, cut }
    }
}

/// The score from which on a loss is corruption, for the value `x` of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// At `x` itself.
    Score,
    /// At `1 - x`.
    Complement,
    /// At `1 / x`.
    Inverse,
    /// `1 / (1 + x)`.
    Falling,
    /// `x / (1 + x)`.
    Rising,
    /// It cuts the scores at a place that depends on more than its value.
    Own,
    /// None: it moves the scores.
    Nowhere,
}

impl Cut {
    /// The name in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Complement => "complement",
            Self::Inverse => "inverse",
            Self::Falling => "falling",
            Self::Rising => "rising",
            Self::Own => "own",
            Self::Nowhere => "nowhere",
        }
    }

    /// The score for the value `x`; `None` if the value does not say it.
    pub fn at(self, x: f64) -> Option<f64> {
        match self {
            Self::Score => Some(x),
            Self::Complement => Some(1.0 - x),
            Self::Inverse => Some(1.0 / x),
            Self::Falling => Some(1.0 / (1.0 + x)),
            Self::Rising => Some(x / (1.0 + x)),
            Self::Own | Self::Nowhere => None,
        }
    }
}

/// What the documentation says of an algorithm beyond its summary. Every differentiator has it; elsewhere it may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notes {
    /// Why it should work: what it observes and what that says about the cause of a loss. One or two sentences.
    pub idea: &'static str,
    /// The rule with its symbols, one line.
    pub formula: &'static str,
    /// The parameter that trades one accuracy for the other, and which way it moves them; empty if there is none.
    pub threshold: &'static str,
    /// Where it fails and why.
    pub fails: &'static str,
    /// What the publication leaves open or says wrongly, and what was chosen.
    pub errata: &'static str,
}

impl Notes {
    /// Notes without text.
    pub const NONE: Self = Self { idea: "", formula: "", threshold: "", fails: "", errata: "" };
}

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in a scenario.
    pub name: &'static str,
    /// What it means, with its unit.
    pub summary: &'static str,
    /// What it may be, and what it is if nothing is said.
    pub kind: Kind,
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A number in `[min, max]`.
    Number {
        /// The value if nothing is said.
        default: f64,
        /// The smallest value allowed.
        min: f64,
        /// The largest value allowed.
        max: f64,
    },
    /// True or false.
    Flag {
        /// The value if nothing is said.
        default: bool,
    },
    /// One of several words; the first is the default.
    Choice(&'static [&'static str]),
}

/// The value of a part's parameter.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(untagged, expecting = "a number, true or false, or a word")
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Parameter"))]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A floating-point number, in the parameter's unit.
    Number(f64),
    /// One of the parameter's words.
    Word(String),
}

/// The values of an algorithm's parameters, each checked against its [`Parameter`] and filled up with defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(BTreeMap<&'static str, Value>);

/// Why a value does not fit its parameter.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ArgumentError {
    /// No parameter of that name.
    #[error("{part} has no parameter `{name}`; it has {allowed}")]
    Unknown {
        /// The algorithm's name.
        part: &'static str,
        /// The name that was given.
        name: String,
        /// The parameters that exist.
        allowed: String,
    },
    /// The value is of another kind or out of range.
    #[error("parameter `{name}` of {part} is {found}; allowed is {allowed}")]
    Unfit {
        /// The algorithm's name.
        part: &'static str,
        /// The parameter's name.
        name: &'static str,
        /// The value that was given.
        found: String,
        /// The values that are allowed, in words.
        allowed: String,
    },
}

impl ArgumentError {
    /// The algorithm that it is about.
    pub const fn part(&self) -> &'static str {
        match self {
            Self::Unknown { part, .. } | Self::Unfit { part, .. } => part,
        }
    }

    pub(crate) fn unknown(part: &'static str, name: &str, parameters: &[&str]) -> Self {
        let allowed = if parameters.is_empty() { "none".to_owned() } else { parameters.join(", ") };
        Self::Unknown { part, name: name.to_owned(), allowed }
    }
}

impl Arguments {
    /// Checks `given` against `part`'s parameters and fills up with defaults.
    pub fn check<T: ?Sized>(part: &Part<T>, given: &BTreeMap<String, Value>) -> Result<Self, ArgumentError> {
        if let Some(name) = given.keys().find(|name| !part.parameters.iter().any(|p| p.name == **name)) {
            let names: Vec<_> = part.parameters.iter().map(|p| p.name).collect();
            return Err(ArgumentError::unknown(part.name, name, &names));
        }
        let mut values = BTreeMap::new();
        for parameter in part.parameters {
            let value = match given.get(parameter.name) {
                None => parameter.kind.default_value(),
                Some(value) if parameter.kind.admits(value) => value.clone(),
                Some(value) => {
                    return Err(ArgumentError::Unfit {
                        part: part.name,
                        name: parameter.name,
                        found: value.to_string(),
                        allowed: parameter.kind.to_string(),
                    })
                }
            };
            values.insert(parameter.name, value);
        }
        Ok(Self(values))
    }

    /// All values by the names of their parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.0.iter().map(|(name, value)| (*name, value))
    }

    /// The value of the parameter `name`.
    ///
    /// # Panics
    /// If they were checked against the parameters of another part.
    fn value(&self, name: &str) -> &Value {
        self.0.get(name).unwrap_or_else(|| panic!("`{name}` is not among the parameters: {self:?}"))
    }
}

impl Kind {
    /// The value if nothing is said.
    pub fn default_value(&self) -> Value {
        match *self {
            Self::Number { default, .. } => Value::Number(default),
            Self::Flag { default } => Value::Flag(default),
            Self::Choice(words) => Value::Word(words[0].to_owned()),
        }
    }

    fn admits(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Number { min, max, .. }, Value::Number(number)) => (*min..=*max).contains(number),
            (Self::Flag { .. }, Value::Flag(_)) => true,
            (Self::Choice(words), Value::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number { min, max, .. } => write!(f, "a number from {min} to {max}"),
            Self::Flag { .. } => f.write_str("true or false"),
            Self::Choice(words) => f.write_str(&words.join(", ")),
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for Value {
    fn from(word: &str) -> Self {
        Self::Word(word.to_owned())
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Word(word) => write!(f, "\"{word}\""),
        }
    }
}
