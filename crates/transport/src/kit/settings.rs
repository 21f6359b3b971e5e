//! What can be set of a part, as a struct.
//!
//! [`settings!`](crate::settings) makes of one declaration the struct with its defaults, the rows that schema, documentation and `describe` are written
//! from, and the reading of checked arguments. [`choices!`](crate::choices) does the same for the words of a parameter. So there is no name that is
//! written twice, and no word that means the default because nobody thought of it.
//!
//! ```
//! use whyloss_transport::kit::{Arguments, Kind, Settings as _};
//! use whyloss_transport::{choices, settings};
//!
//! choices! {
//!     /// Whose clock tells.
//!     pub enum Clock {
//!         /// The receiver's.
//!         Receiver = "receiver",
//!         /// The sender's.
//!         Sender = "sender",
//!     }
//! }
//!
//! settings! {
//!     /// What can be set.
//!     pub struct Settings {
//!         /// Segments in queues from which on a loss is congestion.
//!         pub beta: f64 = 3.0, 0.0..=1000.0;
//!         /// Whose clock tells when segments arrived.
//!         pub clock: Clock;
//!         /// Judge timeouts, too.
//!         pub timeouts: bool = true;
//!     }
//! }
//!
//! assert_eq!(Settings::default(), Settings { beta: 3.0, clock: Clock::Receiver, timeouts: true });
//! let [beta, clock, timeouts] = Settings::PARAMETERS else { panic!() };
//! assert_eq!((beta.name, beta.kind), ("beta", Kind::Number { default: 3.0, min: 0.0, max: 1000.0 }));
//! assert_eq!(beta.summary, "Segments in queues from which on a loss is congestion.");
//! assert_eq!((clock.name, clock.kind), ("clock", Kind::Choice(&["receiver", "sender"])));
//! assert_eq!((timeouts.name, timeouts.kind), ("timeouts", Kind::Flag { default: true }));
//! ```

use super::{Arguments, Kind, Parameter, Value};

/// What can be set of a part. Made by [`settings!`](crate::settings).
pub trait Settings: Sized + 'static {
    /// A row for each field, in their order; those of a field that is a struct of settings itself stand in its place.
    const PARAMETERS: &'static [Parameter];

    /// The values of the fields. `arguments` were checked against [`Self::PARAMETERS`].
    fn read(arguments: &Arguments) -> Self;
}

/// Settings that know what they are settings of.
pub trait Build<T: ?Sized>: Settings {
    /// The part with these settings.
    fn build(self) -> Box<T>;
}

/// The words of a parameter. Made by [`choices!`](crate::choices).
pub trait Choice: Copy + 'static {
    /// All of them with their values; the first is the default.
    const ALL: &'static [(&'static str, Self)];
    /// The words that users choose among, in the order of the variants.
    const NAMES: &'static [&'static str];

    /// The value called `name`.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(word, _)| *word == name).map(|(_, value)| *value)
    }

    /// The word that means it.
    fn name(self) -> &'static str
    where
        Self: PartialEq,
    {
        Self::ALL.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }
}

/// The type of a field that needs no more than its name: words, or a struct of settings. What it stands for in the table of parameters.
pub trait Field: Sized {
    /// What the parameter may be, if it is one.
    const KIND: Option<Kind>;
    /// The parameters, if it is a struct of settings.
    const PARAMETERS: &'static [Parameter];

    /// Its value, where it is called `name`.
    fn read(arguments: &Arguments, name: &str) -> Self;

    /// Its value if nothing is said.
    fn if_nothing_is_said() -> Self;
}

/// The type of a field that is a number. Fractions of whole numbers are cut off.
pub trait Number {
    /// The number in this type.
    fn of(number: f64) -> Self;
}

macro_rules! numbers {
    ($($type:ty),*) => {$(
        impl Number for $type {
            fn of(number: f64) -> Self {
                number as $type
            }
        }
    )*};
}

numbers!(f64, u8, u32, u64, usize);

/// The place of a field in the table of parameters.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Place {
    One(Parameter),
    Many(&'static [Parameter]),
}

impl Place {
    /// That of a field whose type says it all.
    #[doc(hidden)]
    pub const fn of<F: Field>(name: &'static str, summary: &'static str) -> Self {
        match F::KIND {
            Some(kind) => Self::One(Parameter { name, summary: summary.trim_ascii(), kind }),
            None => Self::Many(F::PARAMETERS),
        }
    }

    /// That of a number or a flag.
    #[doc(hidden)]
    pub const fn one(name: &'static str, summary: &'static str, kind: Kind) -> Self {
        Self::One(Parameter { name, summary: summary.trim_ascii(), kind })
    }

    #[doc(hidden)]
    pub const fn count(places: &[Self]) -> usize {
        let (mut count, mut at) = (0, 0);
        while at < places.len() {
            count += match places[at] {
                Self::One(_) => 1,
                Self::Many(parameters) => parameters.len(),
            };
            at += 1;
        }
        count
    }

    #[doc(hidden)]
    pub const fn table<const N: usize>(places: &[Self]) -> [Parameter; N] {
        let mut table = [Parameter { name: "", summary: "", kind: Kind::Flag { default: false } }; N];
        let (mut count, mut at) = (0, 0);
        while at < places.len() {
            match places[at] {
                Self::One(parameter) => {
                    table[count] = parameter;
                    count += 1;
                }
                Self::Many(parameters) => {
                    let mut nth = 0;
                    while nth < parameters.len() {
                        table[count] = parameters[nth];
                        count += 1;
                        nth += 1;
                    }
                }
            }
            at += 1;
        }
        table
    }
}

impl Arguments {
    /// The word `name` as the value that it stands for.
    ///
    /// # Panics
    /// If they were checked against the parameters of another part.
    #[doc(hidden)]
    pub fn choice<C: Choice>(&self, name: &str) -> C {
        let word = self.value(name);
        let value = match word {
            Value::Word(word) => C::named(word),
            _ => None,
        };
        value.unwrap_or_else(|| panic!("`{name}` was not checked: {word:?}"))
    }

    /// The number `name`.
    ///
    /// # Panics
    /// If they were checked against the parameters of another part.
    #[doc(hidden)]
    pub fn typed<N: Number>(&self, name: &str) -> N {
        match self.value(name) {
            Value::Number(number) => N::of(*number),
            other => panic!("`{name}` was not checked: {other:?}"),
        }
    }

    /// The flag `name`.
    ///
    /// # Panics
    /// If they were checked against the parameters of another part.
    #[doc(hidden)]
    pub fn flag(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Flag(flag) => *flag,
            other => panic!("`{name}` was not checked: {other:?}"),
        }
    }
}

/// Declares the words of a parameter as an enum with the attributes and documentation that it is given; the first is the default. See
/// [`kit::settings`](crate::kit).
#[macro_export]
macro_rules! choices {
    (
        $(#[$meta:meta])* $vis:vis enum $name:ident {
            $(#[$first_meta:meta])* $first:ident = $first_word:literal
            $(, $(#[$variant_meta:meta])* $variant:ident = $word:literal)* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $name {
            $(#[$first_meta])* #[default] $first,
            $($(#[$variant_meta])* $variant,)*
        }

        impl $crate::kit::Choice for $name {
            const ALL: &'static [(&'static str, Self)] = &[($first_word, Self::$first) $(, ($word, Self::$variant))*];
            const NAMES: &'static [&'static str] = &[$first_word $(, $word)*];
        }

        impl $crate::kit::Field for $name {
            const KIND: Option<$crate::kit::Kind> = Some($crate::kit::Kind::Choice(<Self as $crate::kit::Choice>::NAMES));
            const PARAMETERS: &'static [$crate::kit::Parameter] = &[];

            fn read(arguments: &$crate::kit::Arguments, name: &str) -> Self {
                arguments.choice(name)
            }

            fn if_nothing_is_said() -> Self {
                Self::$first
            }
        }
    };
}

/// Declares what can be set of a part. Each field is a parameter of the same name, and its documentation what `describe` says of it.
///
/// | a field | is |
/// | --- | --- |
/// | `beta: f64 = 3.0, 0.0..=1000.0;` | a number with its default and its range, of any of the types of [`Number`](crate::kit::Number) |
/// | `timeouts: bool = true;` | a flag with its default |
/// | `clock: Clock;` | a word of [`choices!`](crate::choices), or other settings, whose parameters stand in its place |
///
/// See [`kit`](crate::kit) for an example.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident {
            $($(#[doc = $doc:expr])* $field_vis:vis $field:ident: $type:ty $(= $default:expr $(, $range:expr)?)?;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[allow(clippy::doc_markdown, clippy::struct_excessive_bools)]
        $vis struct $name {
            $($(#[doc = $doc])* $field_vis $field: $type,)*
        }

        impl $crate::kit::Settings for $name {
            #[allow(clippy::unnecessary_cast, clippy::cast_lossless)]
            const PARAMETERS: &'static [$crate::kit::Parameter] = {
                const PLACES: &[$crate::kit::Place] =
                    &[$($crate::settings!(@place $field, concat!($($doc),*), $type $(, $default $(, $range)?)?)),*];
                const TABLE: [$crate::kit::Parameter; $crate::kit::Place::count(PLACES)] = $crate::kit::Place::table(PLACES);
                &TABLE
            };

            fn read(arguments: &$crate::kit::Arguments) -> Self {
                let _ = arguments;
                Self { $($field: $crate::settings!(@read arguments, $field, $type $(, $default $(, $range)?)?)),* }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $crate::settings!(@default $type $(, $default $(, $range)?)?)),* }
            }
        }

        impl $crate::kit::Field for $name {
            const KIND: Option<$crate::kit::Kind> = None;
            const PARAMETERS: &'static [$crate::kit::Parameter] = <Self as $crate::kit::Settings>::PARAMETERS;

            fn read(arguments: &$crate::kit::Arguments, _name: &str) -> Self {
                <Self as $crate::kit::Settings>::read(arguments)
            }

            fn if_nothing_is_said() -> Self {
                Self::default()
            }
        }
    };
    (@place $field:ident, $doc:expr, $type:ty) => {
        $crate::kit::Place::of::<$type>(stringify!($field), $doc)
    };
    (@place $field:ident, $doc:expr, $type:ty, $default:expr) => {
        $crate::kit::Place::one(stringify!($field), $doc, $crate::kit::Kind::Flag { default: $default })
    };
    (@place $field:ident, $doc:expr, $type:ty, $default:expr, $range:expr) => {{
        const RANGE: std::ops::RangeInclusive<$type> = $range;
        let (min, max) = (*RANGE.start() as f64, *RANGE.end() as f64);
        $crate::kit::Place::one(stringify!($field), $doc, $crate::kit::Kind::Number { default: $default as f64, min, max })
    }};
    (@read $arguments:ident, $field:ident, $type:ty) => {
        <$type as $crate::kit::Field>::read($arguments, stringify!($field))
    };
    (@read $arguments:ident, $field:ident, $type:ty, $default:expr) => {
        $arguments.flag(stringify!($field))
    };
    (@read $arguments:ident, $field:ident, $type:ty, $default:expr, $range:expr) => {
        $arguments.typed::<$type>(stringify!($field))
    };
    (@default $type:ty) => {
        <$type as $crate::kit::Field>::if_nothing_is_said()
    };
    (@default $type:ty, $default:expr $(, $range:expr)?) => {
        $default
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{ArgumentError, Part};
    use std::collections::BTreeMap;

    choices! {
        /// A word.
        enum Word {
            /// The default.
            First = "first",
            /// Another.
            Second = "second",
        }
    }

    settings! {
        /// What others share.
        struct Shared {
            /// Shared.
            window_s: f64 = 60.0, 1.0..=3600.0;
            /// A shared word.
            word: Word;
        }
    }

    settings! {
        /// All kinds of fields.
        struct All {
            /// A number,
            /// told in two lines.
            number: u32 = 4, 1..=9;
            shared: Shared;
            /// A flag.
            flag: bool = true;
        }
    }

    impl Build<All> for All {
        fn build(self) -> Box<All> {
            Box::new(self)
        }
    }

    const PART: Part<All> = Part { name: "all", summary: "All.", reference: "nobody", ..Part::of::<All>() };

    fn built(given: &[(&str, Value)]) -> Result<All, ArgumentError> {
        let given: BTreeMap<_, _> = given.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Ok(*PART.build(&Arguments::check(&PART, &given)?))
    }

    #[test]
    fn one_declaration_is_struct_rows_and_defaults() {
        let rows: Vec<_> = PART.parameters.iter().map(|row| (row.name, row.summary, row.kind)).collect();
        assert_eq!(
            rows,
            [
                ("number", "A number, told in two lines.", Kind::Number { default: 4.0, min: 1.0, max: 9.0 }),
                ("window_s", "Shared.", Kind::Number { default: 60.0, min: 1.0, max: 3600.0 }),
                ("word", "A shared word.", Kind::Choice(&["first", "second"])),
                ("flag", "A flag.", Kind::Flag { default: true }),
            ]
        );
        let all = built(&[]).unwrap();
        assert_eq!(all, All::default());
        assert_eq!(all, All { number: 4, shared: Shared { window_s: 60.0, word: Word::First }, flag: true });
        let other = built(&[("number", 7.0.into()), ("word", "second".into()), ("flag", false.into())]).unwrap();
        assert_eq!(other, All { number: 7, shared: Shared { window_s: 60.0, word: Word::Second }, flag: false });
    }

    #[test]
    fn what_does_not_fit_is_told_with_part_parameter_and_what_is_allowed() {
        let message = |name: &str, value: Value| built(&[(name, value)]).unwrap_err().to_string();
        assert_eq!(message("word", "third".into()), "parameter `word` of all is \"third\"; allowed is first, second");
        assert_eq!(message("number", 10.0.into()), "parameter `number` of all is 10; allowed is a number from 1 to 9");
        assert_eq!(message("flag", "yes".into()), "parameter `flag` of all is \"yes\"; allowed is true or false");
        assert_eq!(message("wort", "first".into()), "all has no parameter `wort`; it has number, window_s, word, flag");
    }

    #[test]
    fn every_word_is_its_value_and_no_other_is_one() {
        assert_eq!(Word::NAMES.iter().map(|word| Word::named(word)).collect::<Vec<_>>(), [Some(Word::First), Some(Word::Second)]);
        assert_eq!(Word::named("third"), None);
    }
}
