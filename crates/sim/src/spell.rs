//! Times that are always the same or drawn anew each time: of outages, of bursts, of silence.

use crate::error::Flaw;
use crate::random::Stream;
use whyloss_transport::Duration;

/// A time that is always the same, or drawn anew each time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spell {
    /// The same each time.
    Always(Duration),
    /// Another one each time.
    Drawn(Drawn),
}

/// A time that is drawn anew each time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drawn {
    /// Its mean, whatever its law.
    pub mean: Duration,
    /// Its law.
    pub law: SpellLaw,
    /// `"pareto"` only: its shape, above 1; 1.5 if nothing is said, as in ns-2. The variance is infinite up to a shape of 2.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub shape: Option<f64>,
}

/// The law of a time that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SpellLaw {
    /// Exponential.
    Exponential,
    /// Pareto: `P(X > x) = (s / x)^shape` above its smallest value `s = mean (shape - 1) / shape`.
    Pareto,
}

/// Shape of the law of Pareto if nothing is said: that of ns-2's on/off source.
const PARETO_SHAPE: f64 = 1.5;

impl Spell {
    /// Exponential with this mean.
    pub const fn exponential(mean: Duration) -> Self {
        Self::Drawn(Drawn { mean, law: SpellLaw::Exponential, shape: None })
    }

    /// Pareto with this mean and shape.
    pub const fn pareto(mean: Duration, shape: f64) -> Self {
        Self::Drawn(Drawn { mean, law: SpellLaw::Pareto, shape: Some(shape) })
    }

    /// Its mean.
    pub const fn mean(&self) -> Duration {
        match self {
            Self::Always(time) => *time,
            Self::Drawn(drawn) => drawn.mean,
        }
    }

    /// The time if it is always the same.
    pub const fn always(&self) -> Option<Duration> {
        match self {
            Self::Always(time) => Some(*time),
            Self::Drawn(_) => None,
        }
    }

    /// What makes no sense in its law; `field` is that of the shape.
    pub(crate) fn flaw(&self, field: &'static str) -> Option<Flaw> {
        let Self::Drawn(Drawn { law, shape: Some(shape), .. }) = self else { return None };
        let fits = *law == SpellLaw::Pareto && *shape > 1.0 && *shape <= 1000.0;
        (!fits).then(|| (field, shape.to_string(), "a number above 1, at most 1000, for `law = \"pareto\"`"))
    }

    /// Draws a time, in nanoseconds.
    pub(crate) fn draw(&self, stream: &mut Stream) -> u64 {
        let Drawn { mean, law, shape } = match self {
            Self::Always(time) => return time.as_nanos(),
            Self::Drawn(drawn) => drawn,
        };
        let mean = mean.as_nanos() as f64;
        // In (0, 1].
        let left = 1.0 - stream.unit();
        match law {
            SpellLaw::Exponential => (mean * -libm::log(left)) as u64,
            SpellLaw::Pareto => {
                let shape = shape.unwrap_or(PARETO_SHAPE);
                (mean * (shape - 1.0) / shape * libm::pow(left, -1.0 / shape)) as u64
            }
        }
    }
}

impl From<Duration> for Spell {
    fn from(time: Duration) -> Self {
        Self::Always(time)
    }
}

#[cfg(feature = "serde")]
mod file {
    use super::{Drawn, Spell};
    use serde::de::value::{MapAccessDeserializer, StrDeserializer};
    use serde::de::{Error, MapAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::fmt;
    use whyloss_transport::Duration;

    impl Serialize for Spell {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Always(time) => time.serialize(serializer),
                Self::Drawn(drawn) => drawn.serialize(serializer),
            }
        }
    }

    impl<'de> Deserialize<'de> for Spell {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Either)
        }
    }

    struct Either;

    impl<'de> Visitor<'de> for Either {
        type Value = Spell;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a time such as \"500 ms\", or { mean = \"500 ms\", law = \"exponential\" }")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Spell, E> {
            Duration::deserialize(StrDeserializer::new(text)).map(Spell::Always)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Spell, A::Error> {
            Drawn::deserialize(MapAccessDeserializer::new(map)).map(Spell::Drawn)
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Spell {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Spell".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let (always, drawn) = (generator.subschema_for::<Duration>(), generator.subschema_for::<Drawn>());
        schemars::json_schema!({
            "description": "A time that is always the same, or drawn anew each time.",
            "anyOf": [always, drawn],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: Duration = Duration::from_millis(500);
    const COUNT: usize = 200_000;

    /// Times that were drawn, in seconds, ascending.
    fn drawn(spell: Spell) -> Vec<f64> {
        let mut stream = Stream::new(1, 0, "test", "spells");
        let mut times: Vec<_> = (0..COUNT).map(|_| spell.draw(&mut stream) as f64 / 1e9).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn mean(times: &[f64]) -> f64 {
        times.iter().sum::<f64>() / times.len() as f64
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected} within {tolerance}");
    }

    #[test]
    fn what_is_always_the_same_takes_no_random_number() {
        let (mut stream, mut untouched) = (Stream::new(1, 0, "test", "spells"), Stream::new(1, 0, "test", "spells"));
        assert_eq!(Spell::from(MEAN).draw(&mut stream), MEAN.as_nanos());
        assert_eq!(stream.bits(), untouched.bits());
    }

    #[test]
    fn the_exponential_law_has_its_mean_deviation_and_quantiles() {
        let times = drawn(Spell::exponential(MEAN));
        // Four standard errors: 0.5 / sqrt(200,000) = 0.0011.
        near(mean(&times), 0.5, 0.0045);
        let variance = times.iter().map(|time| (time - 0.5) * (time - 0.5)).sum::<f64>() / COUNT as f64;
        // The variance of the squares is 8 mean^4, so that the standard error is sqrt(8) * 0.25 / sqrt(200,000) = 0.0016.
        near(variance, 0.25, 0.0065);
        near(times[COUNT / 2], 0.5 * libm::log(2.0), 0.005);
        near(times[COUNT * 9 / 10], 0.5 * libm::log(10.0), 0.015);
    }

    #[test]
    fn the_law_of_pareto_has_its_mean_smallest_value_and_tail() {
        // Shape 3: the smallest is 1/3 s, the variance 3 / (2^2 * 1) * (1/3)^2 = 1/12, the standard error 0.00065.
        let times = drawn(Spell::pareto(MEAN, 3.0));
        near(mean(&times), 0.5, 0.003);
        for shape in [1.2, 1.5, 3.0] {
            let times = drawn(Spell::pareto(MEAN, shape));
            let smallest = 0.5 * (shape - 1.0) / shape;
            assert!(times[0] >= smallest - 1e-9 && times[0] < smallest * 1.001, "{}", times[0]);
            // Hill's estimate of the tail index over all values has the standard error shape / sqrt(200,000).
            let hill = COUNT as f64 / times.iter().map(|time| libm::log(time / smallest)).sum::<f64>();
            near(hill, shape, 4.0 * shape / (COUNT as f64).sqrt());
            // And over the largest hundredth of them: shape / sqrt(2000).
            let (tail, from) = (&times[COUNT - 2000..], times[COUNT - 2001]);
            let hill = 2000.0 / tail.iter().map(|time| libm::log(time / from)).sum::<f64>();
            near(hill, shape, 4.0 * shape / 2000.0_f64.sqrt());
        }
        assert_eq!(
            drawn(Spell::Drawn(Drawn { mean: MEAN, law: SpellLaw::Pareto, shape: None })),
            drawn(Spell::pareto(MEAN, 1.5)),
            "ns-2's shape"
        );
    }

    #[test]
    fn senseless_shapes_are_found() {
        for shape in [1.0, -2.0, f64::NAN, 1e9] {
            assert_eq!(Spell::pareto(MEAN, shape).flaw("here").map(|(field, ..)| field), Some("here"), "{shape}");
        }
        let exponential = Spell::Drawn(Drawn { mean: MEAN, law: SpellLaw::Exponential, shape: Some(2.0) });
        assert!(exponential.flaw("here").is_some(), "it has no shape");
        assert_eq!(Spell::pareto(MEAN, 1.5).flaw("here"), None);
        assert_eq!(Spell::exponential(MEAN).flaw("here"), None);
    }
}
