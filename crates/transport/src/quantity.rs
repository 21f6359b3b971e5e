//! Quantities with their units, as they stand in scenario files: `"384 kbps"`, `"10 ms"`, `"99 pkt"`, `"64 KiB"`, `"2 %"`.

use crate::time::{Duration, Instant};
use crate::units::BitRate;
#[cfg(feature = "schema")]
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserialize, Deserializer, Expected, Unexpected, Visitor};
use serde::{Serialize, Serializer};
#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;

/// What a quantity is and which units it takes.
struct Measure {
    /// With its article and bounds: "a bit rate above zero".
    what: &'static str,
    example: &'static str,
    /// Unit and its size; the first is the base unit.
    units: &'static [(&'static str, f64)],
    /// The smallest count of base units.
    min: f64,
    /// The largest count of base units.
    max: f64,
}

const RATE: Measure = Measure {
    what: "a bit rate above zero",
    example: "384 kbps",
    units: &[
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
    ],
    min: 1.0,
    max: 1e15,
};

const SPAN: Measure = Measure {
    what: "a time that is not negative",
    example: "10 ms",
    units: &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)],
    min: 0.0,
    max: 9e18,
};

const SIZE: Measure = Measure {
    what: "a number of octets above zero",
    example: "64 KiB",
    units: &[("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0)],
    min: 1.0,
    max: 9e15,
};

const LENGTH: Measure = Measure {
    what: "a distance that is not negative",
    example: "200 m",
    units: &[("mm", 1.0), ("cm", 10.0), ("m", 1e3), ("km", 1e6)],
    min: 0.0,
    max: 1e10,
};

const PACKETS: Measure = Measure { what: "", example: "", units: &[("pkt", 1.0), ("pkts", 1.0)], min: 1.0, max: 1e9 };

const CAPACITY_ALLOWED: &str =
    "at least \"1 pkt\" or \"1 B\", such as \"99 pkt\" or \"64 KiB\", in pkt, B, kB, MB, GB, KiB, MiB or GiB";

impl Measure {
    fn allowed(&self) -> String {
        let (last, first) = self.units.split_last().expect("a measure has units");
        let first: Vec<_> = first.iter().map(|(unit, _)| *unit).collect();
        format!("{} such as \"{}\", in {} or {}", self.what, self.example, first.join(", "), last.0)
    }

    /// The number of base units that `text` stands for, rounded to a whole number, or what is allowed instead.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let split =
            text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_' | 'e' | 'E'))).unwrap_or(text.len());
        let (number, unit) = (text[..split].trim().replace('_', ""), text[split..].trim());
        let number: f64 = number.parse().map_err(|_| self.allowed())?;
        let Some((_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            // Only a slip of case or prefix is a hint: a unit of something else is no misspelling.
            let near = self.units.iter().map(|(name, _)| *name).find(|name| name.eq_ignore_ascii_case(unit));
            return Err(match near {
                Some(near) => format!("{} (did you mean `{near}`?)", self.allowed()),
                None => self.allowed(),
            });
        };
        let base = number * scale;
        if !(self.min..=self.max).contains(&base) {
            return Err(self.allowed());
        }
        Ok((base + 0.5) as u64)
    }

    /// `base` units in the largest unit in which they are whole.
    fn show(&self, base: u64) -> String {
        let whole = |(_, scale): &&(&str, f64)| base % (*scale as u64) == 0 && base >= *scale as u64;
        let best = self.units.iter().filter(whole).fold(self.units[0], |best, unit| if unit.1 > best.1 { *unit } else { best });
        format!("{} {}", base / best.1 as u64, best.0)
    }
}

/// What is allowed, for serde's errors.
struct Allowed(String);

impl Expected for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Takes a string and, to be able to say what is wrong with it, everything else.
struct Text<T> {
    parse: fn(&str) -> Result<T, String>,
    allowed: fn() -> String,
}

impl<T> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&(self.allowed)())
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        (self.parse)(text).map_err(|allowed| E::invalid_value(Unexpected::Str(text), &Allowed(allowed)))
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $measure:ident, $examples:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// Reads a number with its unit, or says what is allowed.
            pub fn parse(text: &str) -> Result<Self, String> {
                $measure.parse(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$measure.show(self.0))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text { parse: Self::parse, allowed: || $measure.allowed() })
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                text_schema(&$measure.allowed(), $measure.units, &$examples)
            }
        }
    };
}

#[cfg(feature = "schema")]
fn text_schema(allowed: &str, units: &[(&str, f64)], examples: &[&str]) -> Schema {
    let units: Vec<_> = units.iter().map(|(unit, _)| *unit).collect();
    json_schema!({
        "type": "string",
        "description": allowed,
        "pattern": format!(r"^[0-9][0-9_.eE+-]* *({})$", units.join("|")),
        "examples": examples,
    })
}

quantity!(
    /// A bit rate in bits per second.
    Rate, RATE, ["384 kbps", "10 Mbps"]
);
quantity!(
    /// A time in nanoseconds.
    Span, SPAN, ["10 ms", "600 s"]
);
quantity!(
    /// A number of octets.
    Size, SIZE, ["1 MB", "64 KiB"]
);

quantity!(
    /// A distance in millimetres.
    Length, LENGTH, ["200 m", "1.5 km"]
);

impl Length {
    /// The length in metres.
    pub fn metres(self) -> f64 {
        self.0 as f64 / 1000.0
    }
}

impl From<Rate> for BitRate {
    fn from(rate: Rate) -> Self {
        Self::from_bps(rate.0)
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(duration.as_nanos())
    }
}

impl From<BitRate> for Rate {
    fn from(rate: BitRate) -> Self {
        Self(rate.as_bps())
    }
}

impl From<Span> for Instant {
    fn from(span: Span) -> Self {
        Self::from_nanos(span.0)
    }
}

impl From<Instant> for Span {
    fn from(instant: Instant) -> Self {
        Self(instant.as_nanos())
    }
}

/// Lets a type of the engine stand in files as the quantity of another.
macro_rules! written_as {
    ($type:ty as $quantity:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $quantity::from(*self).serialize(serializer)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $quantity::deserialize(deserializer).map(Self::from)
            }
        }

        #[cfg(feature = "schema")]
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $quantity::schema_name()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $quantity::json_schema(generator)
            }
        }
    };
}

written_as!(Duration as Span);
written_as!(Instant as Span);
written_as!(BitRate as Rate);

/// Reads and writes a number as a [`Probability`].
pub mod probability {
    use super::{Deserialize, Deserializer, Probability, Serialize, Serializer};

    /// Writes the share as a number from 0 to 1.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(share: &f64, serializer: S) -> Result<S::Ok, S::Error> {
        Probability(*share).serialize(serializer)
    }

    /// Reads the share, written as a number or a percentage.
    ///
    /// # Errors
    /// If it is no number from 0 to 1 and no percentage.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
        Probability::deserialize(deserializer).map(|share| share.0)
    }
}

/// Reads and writes a number of octets as a [`Size`].
pub mod size {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Size};

    /// Writes the number with its unit.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(octets: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        Size(*octets).serialize(serializer)
    }

    /// Reads a number with its unit.
    ///
    /// # Errors
    /// If it is no number of octets.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        Size::deserialize(deserializer).map(u64::from)
    }
}

/// Defines a module that reads and writes what can be absent on purpose as an [`OrNone`].
macro_rules! or_none {
    ($(#[$doc:meta])* $module:ident, $type:ty as $given:ty) => {
        $(#[$doc])*
        pub mod $module {
            use super::{Deserialize, Deserializer, OrNone, Serialize, Serializer};

            /// Writes the value, or "none".
            ///
            /// # Errors
            /// Those of the serializer.
            pub fn serialize<S: Serializer>(value: &Option<$type>, serializer: S) -> Result<S::Ok, S::Error> {
                OrNone(value.map(<$given>::from)).serialize(serializer)
            }

            /// Reads a value, or `None` from "none".
            ///
            /// # Errors
            /// If it is neither such a value nor "none".
            pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<$type>, D::Error> {
                OrNone::<$given>::deserialize(deserializer).map(Option::from)
            }
        }
    };
}

or_none!(
    /// Reads and writes a number of octets, or none, as `OrNone<Size>`.
    size_or_none, u64 as super::Size
);
or_none!(
    /// Reads and writes a number, or none, as `OrNone<u32>`.
    count_or_none, u32 as u32
);

/// How much a queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Capacity {
    /// This many packets.
    Packets(u64),
    /// This many octets.
    Octets(u64),
}

impl Capacity {
    /// Reads a number of packets or octets, or says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || ".-+_".contains(c)).trim();
        if PACKETS.units.iter().any(|(name, _)| *name == unit) {
            return PACKETS.parse(text).map(Self::Packets).map_err(|_| CAPACITY_ALLOWED.to_owned());
        }
        SIZE.parse(text).map(Self::Octets).map_err(|_| CAPACITY_ALLOWED.to_owned())
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(count) => write!(f, "{count} pkt"),
            Self::Octets(count) => f.write_str(&SIZE.show(*count)),
        }
    }
}

impl Serialize for Capacity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Capacity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text { parse: Self::parse, allowed: || CAPACITY_ALLOWED.to_owned() })
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Capacity {
    fn schema_name() -> Cow<'static, str> {
        "Capacity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units: Vec<_> = PACKETS.units.iter().chain(SIZE.units).copied().collect();
        text_schema(CAPACITY_ALLOWED, &units, &["99 pkt", "64 KiB"])
    }
}

/// A probability, as a number from 0 to 1 or in percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(pub f64);

const PROBABILITY_ALLOWED: &str = "a number from 0 to 1, such as 8.3e-6, or a percentage, such as \"2 %\"";

impl Probability {
    /// Reads a percentage, or says what is allowed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        number
            .map(|percent| percent / 100.0)
            .filter(|p| (0.0..=1.0).contains(p))
            .map(Self)
            .ok_or_else(|| PROBABILITY_ALLOWED.to_owned())
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Probability;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(PROBABILITY_ALLOWED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Probability, E> {
                Probability::parse(text).map_err(|_| E::invalid_value(Unexpected::Str(text), &PROBABILITY_ALLOWED))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Probability, E> {
                if (0.0..=1.0).contains(&number) {
                    Ok(Probability(number))
                } else {
                    Err(E::invalid_value(Unexpected::Float(number), &PROBABILITY_ALLOWED))
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Probability, E> {
                match number {
                    0 => Ok(Probability(0.0)),
                    1 => Ok(Probability(1.0)),
                    _ => Err(E::invalid_value(Unexpected::Unsigned(number), &PROBABILITY_ALLOWED)),
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(feature = "schema")]
impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        "Probability".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": PROBABILITY_ALLOWED,
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^[0-9][0-9.]* *%$" },
            ],
            "examples": [8.3e-6, "2 %"],
        })
    }
}

impl From<Probability> for f64 {
    fn from(probability: Probability) -> Self {
        probability.0
    }
}

impl From<Size> for u64 {
    fn from(size: Size) -> Self {
        size.0
    }
}

impl From<u64> for Size {
    fn from(octets: u64) -> Self {
        Self(octets)
    }
}

impl From<OrNone<Size>> for Option<u64> {
    fn from(size: OrNone<Size>) -> Self {
        size.0.map(u64::from)
    }
}

impl From<OrNone<Span>> for Option<Duration> {
    fn from(span: OrNone<Span>) -> Self {
        span.0.map(Duration::from)
    }
}

impl From<OrNone<u32>> for Option<u32> {
    fn from(count: OrNone<u32>) -> Self {
        count.0
    }
}

/// A value that can also be absent on purpose: `"none"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrNone<T>(pub Option<T>);

impl<T: Serialize> Serialize for OrNone<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            None => serializer.serialize_str("none"),
            Some(value) => value.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for OrNone<Size> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text {
            parse: |text| if text == "none" { Ok(Self(None)) } else { Size::parse(text).map(|size| Self(Some(size))) },
            allowed: || format!("\"none\" or {}", SIZE.allowed()),
        })
    }
}

impl<'de> Deserialize<'de> for OrNone<Span> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Text {
            parse: |text| if text == "none" { Ok(Self(None)) } else { Span::parse(text).map(|span| Self(Some(span))) },
            allowed: || format!("\"none\" or {}", SPAN.allowed()),
        })
    }
}

impl<'de> Deserialize<'de> for OrNone<u32> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const ALLOWED: &str = "a whole number or \"none\"";
        struct Count;
        impl Visitor<'_> for Count {
            type Value = OrNone<u32>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(ALLOWED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                if text == "none" {
                    Ok(OrNone(None))
                } else {
                    Err(E::invalid_value(Unexpected::Str(text), &ALLOWED))
                }
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                let count = u32::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &ALLOWED))?;
                Ok(OrNone(Some(count)))
            }
        }
        deserializer.deserialize_any(Count)
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for OrNone<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrNone", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let inner = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [inner, { "const": "none" }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_multiply() {
        assert_eq!(Rate::parse("384 kbps"), Ok(Rate(384_000)));
        assert_eq!(Rate::parse("1.5Mbps"), Ok(Rate(1_500_000)));
        assert_eq!(Span::parse("0 s"), Ok(Span(0)));
        assert_eq!(Span::parse("1.1 ms"), Ok(Span(1_100_000)));
        assert_eq!(Size::parse("1 MB"), Ok(Size(1_000_000)));
        assert_eq!(Size::parse("1 MiB"), Ok(Size(1 << 20)));
        assert_eq!(Size::parse("1e6 B"), Ok(Size(1_000_000)));
        assert_eq!(Capacity::parse("99 pkt"), Ok(Capacity::Packets(99)));
        assert_eq!(Capacity::parse("64 KiB"), Ok(Capacity::Octets(65_536)));
        assert_eq!(Probability::parse("2 %"), Ok(Probability(0.02)));
        assert_eq!(Length::parse("1.5 km"), Ok(Length(1_500_000)));
    }

    #[test]
    fn nonsense_is_answered_with_what_is_allowed() {
        for text in ["", "5", "-5 Mbps", "0 bps", "fast", "5 ms", "1e99 Gbps", "NaN bps", "inf bps"] {
            assert!(Rate::parse(text).is_err(), "{text}");
        }
        assert!(Rate::parse("5 Kbps").unwrap_err().ends_with("(did you mean `kbps`?)"));
        for text in ["0 pkt", "-1 pkt", "99", "99 packets", "0 B"] {
            assert_eq!(Capacity::parse(text), Err(CAPACITY_ALLOWED.to_owned()), "{text}");
        }
        for text in ["2", "-1 %", "101 %", "x %"] {
            assert!(Probability::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_shown_can_be_read_back() {
        for bps in [1, 999, 1000, 384_000, 1_500_000, 10_000_000_000] {
            assert_eq!(Rate::parse(&Rate(bps).to_string()), Ok(Rate(bps)));
        }
        for nanos in [0, 1, 1_500, 10_000_000, 90_000_000_000, 3_600_000_000_000] {
            assert_eq!(Span::parse(&Span(nanos).to_string()), Ok(Span(nanos)));
        }
        for millimetres in [0, 5, 200_000, 1_500_000] {
            assert_eq!(Length::parse(&Length(millimetres).to_string()), Ok(Length(millimetres)));
        }
        for octets in [1, 1000, 1024, 65_535, 1 << 20, 3_000_000] {
            assert_eq!(Size::parse(&Size(octets).to_string()), Ok(Size(octets)));
        }
    }
}
