//! How an application gives out data that comes at a rate: without end, in bursts, with jitter.

use crate::error::Flaw;
use crate::spell::Spell;
use whyloss_transport::{BitRate, Duration, Instant};

/// Data in pieces of one size, at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pacing {
    /// Rate over all octets of the pieces, while there is no silence.
    pub rate: BitRate,
    /// Octets of each piece.
    pub octets: u32,
    /// No piece comes at or after this time.
    pub stop: Instant,
    /// How even they come.
    pub rhythm: Rhythm,
}

/// How evenly pieces of data come; one after the other in equal distances if nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rhythm {
    /// Each distance is longer or shorter by up to this share of it, uniformly. ns-2's `random_` is 0.5.
    pub jitter: f64,
    /// Silence between bursts.
    pub bursts: Option<Bursts>,
}

/// Times of data and of silence, in turn; data comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// How long data comes at the rate. The piece in which a burst ends is a whole one.
    pub burst: Spell,
    /// The silence from the end of that piece on.
    pub idle: Spell,
}

impl Rhythm {
    /// The first value that makes no sense.
    pub fn flaw(&self) -> Option<Flaw> {
        if !(0.0..=1.0).contains(&self.jitter) {
            return Some(("jitter", self.jitter.to_string(), "a number from 0 to 1"));
        }
        let Bursts { burst, idle } = self.bursts?;
        if burst.mean() == Duration::ZERO {
            return Some(("burst", "0 s".to_owned(), "a time above zero"));
        }
        burst.flaw("burst.shape").or_else(|| idle.flaw("idle.shape"))
    }
}
