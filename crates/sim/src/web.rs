//! A web user: pages over one connection, with time to think between them.
//!
//! The model is that of SURGE (Barford & Crovella 1998, "Generating representative web workloads for network and server performance
//! evaluation"): how large files are, how many belong to a page, how long users are idle. All files of a page are asked for at once, so that
//! its pauses between the files of a page, and its popularity of files, have no place here.

use crate::error::Flaw;
use crate::random::Stream;
use crate::spell::Spell;
use whyloss_transport::{Duration, Instant};

/// A web user at the receiver, who reads page after page, all over one connection, by the model of SURGE (Barford & Crovella 1998). Each of a `count` of
/// flows is a user. Where nothing is said the parameters are those published.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields, default))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Web {
    /// Idle time from the end of a page to the request of the next; Pareto with mean 3 s and shape 1.5 if nothing is said.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "is_published"))]
    pub think: Spell,
    /// Body of the files' sizes, a lognormal law: mean of the logarithm of the size in octets.
    pub body_mu: f64,
    /// Standard deviation of that logarithm.
    pub body_sigma: f64,
    /// Share of the files in the body.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::probability"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Probability"))]
    pub body_share: f64,
    /// Where the tail of the files' sizes begins, a law of Pareto.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub tail_from: u64,
    /// Shape of the tail.
    pub tail_shape: f64,
    /// No file is larger.
    #[cfg_attr(feature = "serde", serde(with = "whyloss_transport::quantity::size"))]
    #[cfg_attr(feature = "schema", schemars(with = "whyloss_transport::quantity::Size"))]
    pub largest: u64,
    /// Shape of the number of files of a page, a law of Pareto from 1 on, rounded down.
    pub files_shape: f64,
}

/// Idle times of SURGE: of Pareto from 1 s on, with a mean of 3 s.
const THINK: Spell = Spell::pareto(Duration::from_secs(3), 1.5);

#[cfg(feature = "serde")]
fn is_published(think: &Spell) -> bool {
    *think == THINK
}

/// Files of a page, at most.
const MOST_FILES: f64 = 1000.0;

impl Default for Web {
    /// The parameters of SURGE.
    fn default() -> Self {
        Self {
            body_mu: 9.357,
            body_sigma: 1.318,
            body_share: 0.93,
            tail_from: 133_000,
            tail_shape: 1.1,
            largest: 100_000_000,
            files_shape: 2.43,
            think: THINK,
        }
    }
}

impl Web {
    /// What makes no sense in it.
    pub fn flaw(&self) -> Option<Flaw> {
        const SHAPE: &str = "a number from 0.1 to 1000";
        let shape = |shape: f64| (0.1..=1000.0).contains(&shape);
        let Self { body_mu, body_sigma, body_share, tail_from, tail_shape, largest, files_shape, think } = self;
        // A body that lies beyond its end could be drawn for ever.
        if !(0.0..=libm::log(*tail_from as f64)).contains(body_mu) {
            return Some(("body_mu", body_mu.to_string(), "a number from 0 to the logarithm of `tail_from`"));
        }
        match () {
            () if !(0.0..=10.0).contains(body_sigma) => Some(("body_sigma", body_sigma.to_string(), "a number from 0 to 10")),
            () if !(0.0..=1.0).contains(body_share) => Some(("body_share", body_share.to_string(), "a number from 0 to 1")),
            () if !shape(*tail_shape) => Some(("tail_shape", tail_shape.to_string(), SHAPE)),
            () if !shape(*files_shape) => Some(("files_shape", files_shape.to_string(), SHAPE)),
            () if !(*tail_from..=1_000_000_000_000).contains(largest) => {
                Some(("largest", format!("{largest} B"), "`tail_from` to 1 TB"))
            }
            () => think.flaw("think.shape"),
        }
    }

    /// The size of a file.
    fn file(&self, stream: &mut Stream) -> u64 {
        if stream.unit() >= self.body_share {
            let size = self.tail_from as f64 * libm::pow(1.0 - stream.unit(), -1.0 / self.tail_shape);
            return (size as u64).min(self.largest);
        }
        loop {
            let size = libm::exp(self.body_mu + self.body_sigma * stream.normal());
            if size < self.tail_from as f64 {
                return (size as u64).max(1);
            }
        }
    }

    /// How many files a page has.
    fn files(&self, stream: &mut Stream) -> u64 {
        libm::pow(1.0 - stream.unit(), -1.0 / self.files_shape).min(MOST_FILES) as u64
    }
}

/// What a web user got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// Pages that were complete.
    pub pages: u64,
    /// The time that they took, added up: from the request until everything was in order at the user.
    pub took: Duration,
}

/// A web user at work.
#[derive(Clone, Debug)]
pub(crate) struct Browser {
    web: Web,
    sizes: Stream,
    numbers: Stream,
    idle: Stream,
    /// Octets that have been asked for so far.
    asked: u64,
    /// When the page was asked for that is not complete.
    since: Option<Instant>,
    pub counts: PageCounts,
}

impl Browser {
    /// One with these random streams for each purpose.
    pub fn new(web: Web, stream: impl Fn(&str) -> Stream) -> Self {
        let (sizes, numbers, idle) = (stream("file sizes"), stream("files"), stream("idle times"));
        Self { web, sizes, numbers, idle, asked: 0, since: None, counts: PageCounts::default() }
    }

    /// Asks for a page; how many octets it has.
    pub fn ask(&mut self, now: Instant) -> u64 {
        let files = self.web.files(&mut self.numbers);
        let octets = (0..files).map(|_| self.web.file(&mut self.sizes)).sum();
        self.asked += octets;
        self.since = Some(now);
        octets
    }

    /// So many octets have arrived in all; when the next page is asked for, if one is complete with them.
    pub fn arrived(&mut self, now: Instant, octets: u64) -> Option<u64> {
        let since = self.since.filter(|_| octets >= self.asked)?;
        self.since = None;
        self.counts.pages += 1;
        self.counts.took += now.since(since);
        Some(now.as_nanos().saturating_add(self.web.think.draw(&mut self.idle)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(purpose: &str) -> Stream {
        Stream::new(1, 0, "web", purpose)
    }

    fn near(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected} within {tolerance}");
    }

    #[test]
    fn files_have_the_body_and_the_tail_of_the_model() {
        let (web, mut stream, count) = (Web::default(), stream("sizes"), 200_000);
        let mut sizes: Vec<_> = (0..count).map(|_| web.file(&mut stream) as f64).collect();
        sizes.sort_by(f64::total_cmp);
        let body = sizes.iter().filter(|size| **size < 133_000.0).count();
        // Standard deviation sqrt(0.93 * 0.07 / 200,000) = 0.00057.
        near(body as f64 / f64::from(count), 0.93, 0.0025);
        // The body is cut at z = (ln 133,000 - 9.357) / 1.318 = 1.852, which 96.80 % lie below: its median is at 48.40 %, z = -0.0401.
        near(libm::log(sizes[body / 2]), 9.357 - 0.0401 * 1.318, 0.02);
        // Hill's estimate of the tail below the cap; its standard error is shape / sqrt(14,000) = 0.0093.
        let tail = &sizes[body..];
        let hill = tail.len() as f64 / tail.iter().map(|size| libm::log(size / 133_000.0)).sum::<f64>();
        near(hill, 1.1, 0.04);
        assert!(sizes[sizes.len() - 1] <= 1e8);
    }

    #[test]
    fn pages_have_the_number_of_files_of_the_model() {
        let (web, mut stream, count) = (Web::default(), stream("files"), 200_000);
        let files: Vec<_> = (0..count).map(|_| web.files(&mut stream)).collect();
        // P(floor X >= n) = n^-2.43: a second file in 18.56 %, and the mean is the zeta function of 2.43, 1.37.
        near(files.iter().filter(|files| **files >= 2).count() as f64 / f64::from(count), 0.1856, 0.004);
        near(files.iter().sum::<u64>() as f64 / f64::from(count), 1.37, 0.03);
    }

    #[test]
    fn a_page_is_complete_when_all_of_it_has_arrived() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut browser = Browser::new(Web { think: Duration::from_secs(7).into(), ..Web::default() }, stream);
        assert_eq!(browser.arrived(at(0), 0), None, "nothing was asked for");
        let first = browser.ask(at(1));
        assert_eq!(browser.arrived(at(2), first - 1), None);
        assert_eq!(browser.arrived(at(3), first), Some(10_000_000_000));
        assert_eq!(browser.arrived(at(4), first), None, "it was complete before");
        let second = browser.ask(at(10));
        assert!(browser.arrived(at(11), first + second).is_some());
        assert_eq!(browser.counts, PageCounts { pages: 2, took: Duration::from_secs(3) });
    }

    #[test]
    fn senseless_values_are_found() {
        let web = Web::default();
        assert_eq!(web.flaw(), None);
        for (web, field) in [
            (Web { body_mu: 20.0, ..web }, "body_mu"),
            (Web { body_sigma: -1.0, ..web }, "body_sigma"),
            (Web { body_share: 2.0, ..web }, "body_share"),
            (Web { tail_shape: 0.0, ..web }, "tail_shape"),
            (Web { files_shape: f64::NAN, ..web }, "files_shape"),
            (Web { largest: 1000, ..web }, "largest"),
            (Web { think: Spell::pareto(Duration::from_secs(1), 1.0), ..web }, "think.shape"),
        ] {
            assert_eq!(web.flaw().map(|(field, ..)| field), Some(field));
        }
    }
}
