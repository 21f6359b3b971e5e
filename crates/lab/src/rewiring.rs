//! What becomes different on wires that are at work.

use crate::error::{Error, InputError};
use crate::scenario::Scenario;
use crate::wires::Wires;
use whyloss_sim::{Change, LinkSpec};

/// One stretch of a wire becomes different.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewiring {
    /// The wire, by position in [`Wires::links`].
    pub link: usize,
    /// Its direction, 0 or 1.
    pub way: usize,
    /// The stretch in this direction.
    pub hop: usize,
    /// What it is from now on.
    pub change: Change,
}

impl Wires {
    /// What makes these wires those of `other` while they are at work. Rate, delay, queue and channel can change; what else is different
    /// is refused.
    pub fn rewiring(&self, other: &Self) -> Result<Vec<Rewiring>, Error> {
        let same = self.nodes == other.nodes
            && self.links.len() == other.links.len()
            && self.links.iter().zip(&other.links).all(|(old, new)| old.ends == new.ends);
        if !same {
            return Err(refuse("the network"));
        }
        if self.links.iter().zip(&other.links).any(|(old, new)| old.agent != new.agent) {
            return Err(refuse("a middlebox"));
        }
        let mut found = Vec::new();
        for (link, (old, new)) in self.links.iter().zip(&other.links).enumerate() {
            for way in 0..2 {
                for (hop, (old, new)) in old.ways[way].iter().zip(&new.ways[way]).enumerate() {
                    if !similar(&old.spec, &new.spec) {
                        return Err(refuse(&format!("what else link {} says", new.name)));
                    }
                    let change = difference(&old.spec, &new.spec);
                    if change != Change::default() {
                        found.push(Rewiring { link, way, hop, change });
                    }
                }
            }
        }
        Ok(found)
    }

    /// Makes these wires those of `scenario` in the same run, and gives what makes them so. If that is refused they stay what they are.
    pub fn become_those_of(&mut self, scenario: &Scenario) -> Result<Vec<Rewiring>, Error> {
        let run = u32::try_from(self.run).expect("the number of a run has 32 bits");
        let other = scenario.wires(run)?;
        let changes = self.rewiring(&other)?;
        *self = other;
        Ok(changes)
    }
}

fn refuse(what: &str) -> Error {
    InputError::new(format!("{what} cannot change while it is at work; rate, delay, queue and channel can")).into()
}

fn difference(from: &LinkSpec, to: &LinkSpec) -> Change {
    Change {
        rate: (from.rate != to.rate).then_some(to.rate),
        delay: (from.delay != to.delay).then_some(to.delay),
        queue: (from.queue != to.queue).then_some(to.queue),
        channel: (from.channel != to.channel).then(|| to.channel.clone()),
        ..Change::default()
    }
}

/// Whether nothing is different but what can change.
fn similar(from: &LinkSpec, to: &LinkSpec) -> bool {
    let (rate, delay, queue, channel) = (to.rate, to.delay, to.queue, to.channel.clone());
    LinkSpec { rate, delay, queue, channel, ..from.clone() } == *to
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyloss_transport::Duration;

    const PATH: &str = "[path]\nrate = '1 Mbps'\ndelay = '10 ms'\nqueue = '99 pkt'\n";

    fn wires(text: &str) -> Wires {
        Scenario::from_toml(text, "t").unwrap().wires(0).unwrap()
    }

    fn changed(arguments: &[&str]) -> Result<Vec<Rewiring>, String> {
        let scenario = Scenario::from_toml(PATH, "t").unwrap();
        let other = arguments.iter().fold(scenario, |scenario, argument| scenario.with_argument(argument).unwrap());
        wires(PATH).rewiring(&other.wires(0).unwrap()).map_err(|error| error.to_string())
    }

    #[test]
    fn what_can_change_is_told_stretch_by_stretch() {
        assert_eq!(changed(&[]), Ok(vec![]));
        let found = changed(&["path.delay=20 ms", "path.forward.channel.ber=1e-5"]).unwrap();
        // The stretch that the scenario calls `path` lies behind the router on the way there and in front of it on the way back.
        assert_eq!(found.iter().map(|one| (one.link, one.way, one.hop)).collect::<Vec<_>>(), [(0, 0, 1), (0, 1, 0)]);
        let told = |one: &Rewiring| {
            let Change { rate, delay, queue, channel, .. } = &one.change;
            (rate.is_some(), delay.map(Duration::as_nanos), queue.is_some(), channel.is_some())
        };
        assert_eq!(told(&found[0]), (false, Some(20_000_000), false, true));
        assert_eq!(told(&found[1]), (false, Some(20_000_000), false, false));
    }

    #[test]
    fn what_else_is_different_is_refused() {
        for (argument, what) in [
            ("path.reorder={ share = \"0.1 %\", late = \"10 ms\" }", "what else link emulator>client says"),
            ("path.discipline=biased", "what else link emulator>client says"),
        ] {
            let Err(message) = changed(&[argument]) else { panic!("{argument} was taken") };
            assert!(message.contains(what) && message.contains("cannot change while it is at work"), "{message}");
        }
        let other = wires("[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[link]]\nbetween = ['a', 'b']\nrate = '1 Mbps'\n");
        let message = wires(PATH).rewiring(&other).unwrap_err().to_string();
        assert_eq!(message, "the network cannot change while it is at work; rate, delay, queue and channel can");
    }

    #[test]
    fn wires_become_those_of_scenarios_one_after_the_other() {
        let scenario = |rate: &str| Scenario::from_toml(&PATH.replace("1 Mbps", rate), "t").unwrap();
        let mut wires = Scenario::from_toml(PATH, "t").unwrap().wires(7).unwrap();
        assert_eq!(wires.become_those_of(&scenario("2 Mbps")).unwrap().len(), 2);
        assert!(wires.become_those_of(&scenario("2 Mbps")).unwrap().is_empty());
        let other = scenario("2 Mbps").with_argument("path.discipline=biased").unwrap();
        assert!(wires.become_those_of(&other).is_err());
        assert!(wires.become_those_of(&scenario("2 Mbps")).unwrap().is_empty());
        assert_eq!(wires.run, 7);
    }
}
