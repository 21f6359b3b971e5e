//! From a scenario file to a network in full: shorthands written out, defaults filled in, everything checked.

use crate::channels::{check_channel, check_input, check_no_pattern};
use crate::error::{nearest, InputError};
use crate::flows::check_flow;
use crate::format::{Chain, Document, Flow, Host, Input, Links, Segments, Shape, Taken};
use crate::network::{Link, Network, NetworkNode, Transfer};
use crate::ways::Way;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use whyloss_sim::{Move, QueueLimit};
use whyloss_transport::quantity::Length;
use whyloss_transport::scheme::Catalogue;
use whyloss_transport::{BitRate, Duration};

/// The simulated time at which a run of sized transfers ends if the scenario does not say.
pub const DEFAULT_DURATION: Duration = Duration::from_secs(3600);

/// Hosts of a kind, at most.
const MOST_OF_A_KIND: u32 = 1_000_000;

/// Nodes that kinds of hosts may come to, and links, at most: what [`MOST_CONNECTIONS`] need that have hosts of their own.
const MOST_NODES: usize = 2_100_000;

/// The names of hosts of a kind.
fn of_kind(name: &str, count: Option<u32>) -> Vec<String> {
    match count {
        Some(count @ 2..) => (0..count).map(|number| format!("{name}.{number}")).collect(),
        _ => vec![name.to_owned()],
    }
}

/// Connections of a scenario, at most. One takes some 6 kB before it carries data.
const MOST_CONNECTIONS: u64 = 1_000_000;

/// Rows of samples of a run, at most: some 100 octets each.
pub(crate) const MOST_SAMPLES: u64 = 20_000_000;

/// The shortest time between samples.
const SHORTEST_SAMPLE: Duration = Duration::from_micros(1);

/// What the flows of a scenario would cost is bounded before anything is written out.
fn check_cost(flows: &[Flow]) -> Result<(), InputError> {
    let mut all = 0_u64;
    for (index, flow) in flows.iter().enumerate() {
        let each = flow.striped.unwrap_or(1).max(1);
        all = all.saturating_add(u64::from(flow.count).saturating_mul(u64::from(each)));
        if all > MOST_CONNECTIONS {
            let field = if each > flow.count { "striped" } else { "count" };
            return Err(InputError::new(format!("that would be {all} connections, of some 6 kB each before they carry data"))
                .at(format!("flow[{index}].{field}"))
                .found(each.max(flow.count).to_string())
                .allowed(format!("{MOST_CONNECTIONS} connections in all flows")));
        }
    }
    Ok(())
}

const NETWORKS: &str = "[path], [dumbbell], [chain], or [[host]], [[router]] and [[link]]";

/// The directions of the links that one field of the scenario describes: those that are alike share them.
struct Alike<'a> {
    field: &'a str,
    last: Option<(Shape, Arc<[Way; 2]>)>,
}

impl<'a> Alike<'a> {
    const fn new(field: &'a str) -> Self {
        Self { field, last: None }
    }

    /// The directions of a link of this shape.
    fn ways(&mut self, shape: &Shape) -> Result<Arc<[Way; 2]>, InputError> {
        if let Some((_, ways)) = self.last.as_ref().filter(|(last, _)| last == shape) {
            return Ok(Arc::clone(ways));
        }
        let way = |own: &Option<_>, name| Way::new(shape, own.as_ref(), self.field, name);
        let ways = Arc::new([way(&shape.forward, "forward")?, way(&shape.reverse, "reverse")?]);
        self.last = Some((shape.clone(), Arc::clone(&ways)));
        Ok(ways)
    }
}

impl Network {
    /// Writes out the network of `document`, in which names of algorithms mean what they mean in `catalogue`.
    pub fn new(document: &Document, catalogue: &Catalogue) -> Result<Self, InputError> {
        let mut network = Self {
            nodes: Vec::new(),
            links: Vec::new(),
            middleboxes: Vec::new(),
            flows: Vec::new(),
            transfers: Vec::new(),
            named: BTreeMap::new(),
            kinds: BTreeMap::new(),
        };
        check_cost(&document.flow)?;
        let free = !(document.host.is_empty() && document.router.is_empty() && document.link.is_empty());
        match (&document.path, &document.dumbbell, &document.chain, free) {
            (Some(path), None, None, false) => network.path(path)?,
            (None, Some(dumbbell), None, false) => network.dumbbell(dumbbell, &document.flow)?,
            (None, None, Some(chain), false) => network.chain(chain)?,
            (None, None, None, true) => network.free(document)?,
            (None, None, None, false) => return Err(InputError::new("there is no network").allowed(NETWORKS)),
            _ => {
                let mut found = Vec::new();
                found.extend(document.path.is_some().then_some("[path]"));
                found.extend(document.dumbbell.is_some().then_some("[dumbbell]"));
                found.extend(document.chain.is_some().then_some("[chain]"));
                found.extend(free.then_some("[[host]], [[router]] or [[link]]"));
                return Err(InputError::new("there is more than one network")
                    .found(found.join(" and "))
                    .allowed(format!("one of {NETWORKS}")));
            }
        }
        network.radio(document)?;
        network.place_middleboxes(&document.middlebox)?;
        network.transfers(document, catalogue)?;
        network.check_output(document)?;
        Ok(network)
    }

    fn node(&mut self, name: impl Into<String>, host: bool) -> usize {
        let (name, number) = (name.into(), self.nodes.len());
        self.named.insert(name.clone(), number);
        self.nodes.push(NetworkNode { name, host, position: None, input: Input::default(), moves: Vec::new() });
        number
    }

    fn link(&mut self, name: impl Into<String>, ends: [usize; 2], shape: &Shape, field: &str) -> Result<(), InputError> {
        self.links.push(Link { name: name.into(), ends, ways: Some(Alike::new(field).ways(shape)?) });
        Ok(())
    }

    fn path(&mut self, path: &crate::format::Path) -> Result<(), InputError> {
        let server = self.node("server", true);
        let emulator = self.node("emulator", false);
        let client = self.node("client", true);
        self.link("access", [server, emulator], &Shape::from(&path.access), "path.access")?;
        self.link("path", [emulator, client], &path.shape(), "path")
    }

    fn dumbbell(&mut self, dumbbell: &crate::format::Dumbbell, flows: &[Flow]) -> Result<(), InputError> {
        let wanted: u32 = flows.iter().filter(|flow| flow.from.is_none()).map(|flow| flow.count).sum();
        let pairs = dumbbell.pairs.unwrap_or(wanted.max(1));
        if !(1..=1_000_000).contains(&pairs) {
            return Err(InputError::default().at("dumbbell.pairs").found(pairs.to_string()).allowed("1 to 1000000"));
        }
        let senders: Vec<_> = (0..pairs).map(|i| self.node(format!("sender{i}"), true)).collect();
        let left = self.node("left", false);
        let right = self.node("right", false);
        let receivers: Vec<_> = (0..pairs).map(|i| self.node(format!("receiver{i}"), true)).collect();
        self.link("bottleneck", [left, right], &dumbbell.bottleneck, "dumbbell.bottleneck")?;
        let access = |links: &Links, i: usize| {
            let shape = links.shape().nth(i, pairs as usize, links.delay_to);
            Shape {
                rate: shape.rate.or(shape.trace.is_none().then_some(BitRate::from_bps(1_000_000_000))),
                queue: shape.queue.or(Some(QueueLimit::Packets(1000))),
                ..shape
            }
        };
        let mut alike = [Alike::new("dumbbell.senders"), Alike::new("dumbbell.receivers")];
        self.links.reserve_exact(2 * pairs as usize);
        for (i, (sender, receiver)) in senders.into_iter().zip(receivers).enumerate() {
            let ways = Some(alike[0].ways(&access(&dumbbell.senders, i))?);
            self.links.push(Link { name: format!("sender{i}"), ends: [sender, left], ways });
            let ways = Some(alike[1].ways(&access(&dumbbell.receivers, i))?);
            self.links.push(Link { name: format!("receiver{i}"), ends: [right, receiver], ways });
        }
        Ok(())
    }

    fn chain(&mut self, chain: &Chain) -> Result<(), InputError> {
        if !(1..=1000).contains(&chain.hops) {
            return Err(InputError::default().at("chain.hops").found(chain.hops.to_string()).allowed("1 to 1000"));
        }
        if let Some(input) = &chain.input {
            check_input(input, "chain.input")?;
        }
        for number in 0..=chain.hops {
            let end = number == 0 || number == chain.hops;
            let node = self.node(format!("node{number}"), end);
            self.nodes[node].position = Some([chain.spacing.metres() * f64::from(number), 0.0]);
            if let (true, Some(input)) = (end, &chain.input) {
                self.nodes[node].input = input.clone();
            }
        }
        Ok(())
    }

    /// Joins the radio stations that are within reach of each other.
    fn radio(&mut self, document: &Document) -> Result<(), InputError> {
        let stations: Vec<_> = self.stations().collect();
        if stations.is_empty() {
            return match document.radio {
                Some(_) => Err(InputError::new("there is no radio station")
                    .at("radio")
                    .allowed("[chain], or a `position` for some [[host]] or [[router]]")),
                None => Ok(()),
            };
        }
        let radio = document.radio.clone().unwrap_or_default();
        if let Some(channel) = &radio.channel {
            check_channel(channel, "radio.channel")?;
            check_no_pattern(channel, "radio.channel")?;
        }
        let spec = radio.map(|channel| channel.spec(None));
        spec.check().map_err(|error| {
            InputError::default().at(format!("radio.{}", error.field)).found(error.found).allowed(error.allowed)
        })?;
        let names: BTreeSet<_> = self.links.iter().map(|link| link.name.clone()).collect();
        for (index, &(a, here)) in stations.iter().enumerate() {
            for &(b, _) in stations[index + 1..].iter().filter(|(_, there)| spec.reaches(here, *there)) {
                let name = format!("{}-{}", self.nodes[a].name, self.nodes[b].name);
                if names.contains(&name) {
                    let problem = format!("two links are called `{name}`, one of them a radio link");
                    return Err(InputError::new(problem).allowed("a name of its own for each [[link]]"));
                }
                self.links.push(Link { name, ends: [a, b], ways: None });
            }
        }
        Ok(())
    }

    fn free(&mut self, document: &Document) -> Result<(), InputError> {
        let hosts = document.host.iter().map(|host| (&host.name, host.count, "host", host.position, host.input.clone()));
        let routers = document.router.iter().map(|router| (&router.name, None, "router", router.position, None));
        let mut seen = BTreeSet::new();
        let mut position = [0_usize; 2];
        for (name, count, kind, place, input) in hosts.chain(routers) {
            let host = kind == "host";
            let item = format!("{kind}[{}]", position[usize::from(host)]);
            let field = format!("{item}.name");
            position[usize::from(host)] += 1;
            if name.is_empty() {
                return Err(InputError::default().at(field).found("\"\"").allowed("a name"));
            }
            if count.is_some_and(|count| !(1..=MOST_OF_A_KIND).contains(&count)) {
                let found = count.unwrap_or_default().to_string();
                return Err(InputError::default()
                    .at(format!("{item}.count"))
                    .found(found)
                    .allowed(format!("1 to {MOST_OF_A_KIND}")));
            }
            let all = self.nodes.len() + count.unwrap_or(1) as usize;
            if all > MOST_NODES {
                return Err(InputError::new(format!("that would be {all} nodes"))
                    .at(format!("{item}.count"))
                    .found(count.unwrap_or(1).to_string())
                    .allowed(format!("{MOST_NODES} nodes in all")));
            }
            if let (Some(2..), Some(_)) = (count, place) {
                return Err(InputError::new("several hosts cannot stand at one place").at(format!("{item}.position")));
            }
            if let Some(input) = &input {
                check_input(input, &format!("{item}.input"))?;
            }
            let first = self.nodes.len();
            if let Some(count @ 2..) = count {
                self.kinds.insert(name.clone(), first..first + count as usize);
            }
            for name in of_kind(name, count) {
                if !seen.insert(name.clone()) {
                    return Err(InputError::new("two nodes have the same name").at(field).found(format!("\"{name}\"")));
                }
                let node = self.node(name, host);
                self.nodes[node].position = place.map(|place| place.map(Length::metres));
                self.nodes[node].input = input.clone().unwrap_or_default();
            }
        }
        let mut names = BTreeSet::new();
        for (index, link) in document.link.iter().enumerate() {
            let field = format!("link[{index}]");
            let side = |side: usize| match self.kinds.get(&link.between[side]) {
                Some(nodes) => Ok(nodes.clone()),
                None => self
                    .find(&link.between[side], |_| true)
                    .map(|node| node..node + 1)
                    .map_err(|error| error.at(format!("{field}.between[{side}]"))),
            };
            let ends = [side(0)?, side(1)?];
            if ends[0] == ends[1] {
                return Err(InputError::new("a link cannot join a node to itself")
                    .at(format!("{field}.between"))
                    .found(format!("\"{}\" twice", link.between[0])));
            }
            let counts = ends.each_ref().map(Range::len);
            let count = counts[0].max(counts[1]);
            if counts.iter().any(|own| ![1, count].contains(own)) {
                return Err(InputError::new("hosts of two kinds are joined in pairs")
                    .at(format!("{field}.between"))
                    .found(format!("{} and {}", counts[0], counts[1]))
                    .allowed("the same number of both, or one of one of them"));
            }
            let all = self.links.len() + count;
            if all > MOST_NODES {
                return Err(InputError::new(format!("that would be {all} links"))
                    .at(format!("{field}.between"))
                    .found(count.to_string())
                    .allowed(format!("{MOST_NODES} links in all")));
            }
            if count == 1 && link.delay_to.is_some() {
                return Err(InputError::new("`delay_to` says nothing of a single link")
                    .at(format!("{field}.delay_to"))
                    .allowed("a link of hosts with a `count`"));
            }
            let mut alike = Alike::new(&field);
            self.links.reserve_exact(count);
            for number in 0..count {
                let ends = ends.each_ref().map(|nodes| nodes.start + number % nodes.len());
                let name = match (&link.name[..], count) {
                    ("", _) => ends.map(|end| self.nodes[end].name.as_str()).join("-"),
                    (name, 1) => name.to_owned(),
                    (name, _) => format!("{name}.{number}"),
                };
                if !names.insert(name.clone()) {
                    return Err(InputError::new(format!("two links are called `{name}`"))
                        .at(format!("{field}.name"))
                        .allowed("a name of its own for each link"));
                }
                let ways = Some(alike.ways(&link.shape().nth(number, count, link.delay_to))?);
                self.links.push(Link { name, ends, ways });
            }
        }
        for (index, host) in document.host.iter().enumerate().filter(|(_, host)| !host.moves.is_empty()) {
            if host.count.is_some_and(|count| count > 1) {
                return Err(InputError::new("several hosts of a kind do not move").at(format!("host[{index}].move")));
            }
            let node = self.find(&host.name, |node| node.host)?;
            self.nodes[node].moves = self.moves(node, host, index)?;
        }
        Ok(())
    }

    /// How a host moves: the names of its links become their positions.
    fn moves(&self, node: usize, host: &Host, index: usize) -> Result<Vec<Move<usize>>, InputError> {
        let own: Vec<_> = (0..self.links.len()).filter(|&link| self.links[link].ends.contains(&node)).collect();
        let mut moves = Vec::with_capacity(host.moves.len());
        for (number, step) in host.moves.iter().enumerate() {
            let found = own.iter().copied().find(|&link| self.links[link].name == step.link);
            let link = found.ok_or_else(|| {
                let names: Vec<_> = own.iter().map(|&link| self.links[link].name.as_str()).collect();
                InputError::new("no link of this host")
                    .at(format!("host[{index}].move[{number}].link"))
                    .found(format!("\"{}\"", step.link))
                    .nearest(nearest(&step.link, names.iter().copied()))
                    .allowed(if names.is_empty() { "there is none".to_owned() } else { names.join(", ") })
            })?;
            moves.push(step.placed(link));
        }
        let flaw = own.first().and_then(|first| Move::flaw(first, &moves));
        match flaw {
            None => Ok(moves),
            Some((number, (field, found, allowed))) => {
                let field =
                    if field == "move" { format!("host[{index}].move") } else { format!("host[{index}].move[{number}].{field}") };
                Err(InputError::default().at(field).found(found).allowed(allowed))
            }
        }
    }

    fn transfers(&mut self, document: &Document, catalogue: &Catalogue) -> Result<(), InputError> {
        if document.flow.is_empty() {
            // A network to look at, or for real hosts; a run asks for more.
            return Ok(());
        }
        let mut names = BTreeSet::new();
        let mut next_pair = 0;
        // How many flows have begun and ended at hosts of each kind.
        let mut taken = BTreeMap::new();
        let reach = self.reach();
        for (index, flow) in document.flow.iter().enumerate() {
            let field = format!("flow[{index}]");
            self.flows.push(check_flow(flow, &field, catalogue)?);
            let own = if flow.name.is_empty() { format!("flow{index}") } else { flow.name.clone() };
            for number in 0..flow.count {
                let pair = next_pair;
                let mut named = |name: &str, side: &'static str| match self.kinds.get(name) {
                    Some(nodes) => {
                        let next: &mut usize = taken.entry((name.to_owned(), side)).or_default();
                        *next += 1;
                        Ok(nodes.start + (*next - 1) % nodes.len())
                    }
                    None => self.find(name, |node| node.host).map_err(|error| error.at(format!("{field}.{side}"))),
                };
                let from = match (&flow.from, &document.path, &document.dumbbell) {
                    (Some(name), _, _) => named(name, "from")?,
                    (None, Some(_), _) => self.find("server", |node| node.host)?,
                    (None, None, None) if document.chain.is_some() => 0,
                    (None, None, Some(_)) => {
                        next_pair += 1;
                        self.nth("sender", pair)
                    }
                    (None, None, None) => return Err(self.missing_end(&field, "from")),
                };
                let to = match (&flow.to, &document.path, &document.dumbbell) {
                    (Some(name), _, _) => named(name, "to")?,
                    (None, Some(_), _) => self.find("client", |node| node.host)?,
                    (None, None, None) if document.chain.is_some() => self.nodes.len() - 1,
                    (None, None, Some(_)) => self.nth("receiver", pair),
                    (None, None, None) => return Err(self.missing_end(&field, "to")),
                };
                if from == to {
                    return Err(InputError::new("a flow needs two hosts")
                        .at(format!("{field}.to"))
                        .found(format!("\"{}\" at both ends", self.nodes[from].name)));
                }
                if !reach.between(from, to) {
                    let (from, to) = (&self.nodes[from].name, &self.nodes[to].name);
                    return Err(InputError::new(format!("no link leads from `{from}` to `{to}`")).at(field));
                }
                let name = if flow.count == 1 { own.clone() } else { format!("{own}.{number}") };
                if !names.insert(name.clone()) {
                    return Err(InputError::new(format!("two flows are called `{name}`"))
                        .at(format!("{field}.name"))
                        .allowed("a name of its own for each flow"));
                }
                self.transfers.push(Transfer { name, flow: index, from, to, traffic: flow.traffic });
            }
        }
        let ends = document.flow.iter().any(|flow| flow.size.is_some());
        if !ends && document.scenario.duration.is_none() {
            return Err(InputError::new("the run would never end: no flow has a `size` and there is no duration")
                .at("scenario.duration")
                .allowed("a time such as \"60 s\", or a `size` for at least one flow"));
        }
        if document.scenario.duration == Some(Duration::ZERO) {
            return Err(InputError::default().at("scenario.duration").found("\"0 s\"").allowed("a time above zero"));
        }
        Ok(())
    }

    fn missing_end(&self, field: &str, end: &str) -> InputError {
        let hosts: Vec<_> = self.nodes.iter().filter(|node| node.host).map(|node| node.name.as_str()).collect();
        InputError::new("missing").at(format!("{field}.{end}")).allowed(hosts.join(", "))
    }

    fn nth(&self, side: &str, number: usize) -> usize {
        // All senders, two routers, all receivers.
        let pairs = (self.nodes.len() - 2) / 2;
        let first = if side == "sender" { 0 } else { pairs + 2 };
        first + number % pairs
    }

    fn check_capture(&self, document: &Document, index: usize, capture: &Taken) -> Result<(), InputError> {
        let field = |name: &str| format!("output.capture[{index}]{name}");
        let node = self.find(&capture.at, |_| true).map_err(|error| error.at(field("")))?;
        let own = || self.links.iter().filter(|link| link.ends.contains(&node)).map(|link| link.name.as_str());
        if let Some(link) = capture.link.as_ref().filter(|link| !own().any(|own| own == link.as_str())) {
            let error = InputError::new(format!("no link of {}", capture.at)).at(field(".link")).found(format!("\"{link}\""));
            return Err(error.nearest(nearest(link, own())).allowed(own().collect::<Vec<_>>().join(", ")));
        }
        if capture.snaplen == Some(0) {
            return Err(InputError::default().at(field(".snaplen")).found("0").allowed("1 or more octets"));
        }
        if let (None, Some(resolution)) = (capture.digits(), capture.resolution) {
            let allowed = "a power of ten from \"1 ns\" to \"1 s\"";
            return Err(InputError::default().at(field(".resolution")).found(format!("\"{resolution}\"")).allowed(allowed));
        }
        if capture.behind_queue && !self.nodes[node].host {
            let error = InputError::default().at(field(".behind_queue")).found("true at a router");
            return Err(error.allowed("a host; at a router name the link behind it"));
        }
        if let Some(holes) = capture.holes.filter(|holes| holes.0 >= 1.0) {
            return Err(InputError::default().at(field(".holes")).found(holes.0.to_string()).allowed("less than 1"));
        }
        let file = capture.file();
        if file.is_empty() || file.contains(['/', '\\', '\0']) {
            return Err(InputError::default().at(field(".file")).found(format!("\"{file}\"")).allowed("the name of a file"));
        }
        if document.output.capture[..index].iter().any(|other| other.taken().file() == file) {
            let error = InputError::new("two captures in one file").at(field(".file")).found(format!("\"{file}\""));
            return Err(error.allowed("a name of its own"));
        }
        Ok(())
    }

    /// Rows of samples after `time`.
    pub(crate) fn samples(&self, time: Duration, interval: Duration) -> u64 {
        let each = self.transfers.len() as u64 + 2 * self.links.len() as u64;
        (time.as_nanos() / interval.as_nanos().max(1) + 1).saturating_mul(each)
    }

    pub(crate) fn too_many_samples(interval: Duration, rows: u64) -> InputError {
        let cost = if rows > MOST_SAMPLES { format!("that would be {rows} rows of samples") } else { "too often".to_owned() };
        InputError::new(cost)
            .at("output.sample")
            .found(format!("\"{} ns\"", interval.as_nanos()))
            .allowed(format!("1 us or more, and {MOST_SAMPLES} rows in a run: one a flow and two a link each time"))
    }

    fn check_output(&self, document: &Document) -> Result<(), InputError> {
        for (index, capture) in document.output.capture.iter().enumerate() {
            self.check_capture(document, index, &capture.taken())?;
        }
        if document.output.sample == Some(Duration::ZERO) {
            return Err(InputError::default().at("output.sample").found("\"0 s\"").allowed("a time above zero"));
        }
        if let Some(interval) = document.output.sample {
            let given = document.scenario.duration.map_or(0, |duration| self.samples(duration, interval));
            if interval < SHORTEST_SAMPLE || given > MOST_SAMPLES {
                return Err(Self::too_many_samples(interval, given));
            }
        }
        if let Some((field, found, allowed)) = document.output.smoothness.unwrap_or_default().flaw() {
            return Err(InputError::default()
                .at(format!("output.smoothness.{field}"))
                .found(format!("\"{found}\""))
                .allowed(allowed));
        }
        let Some(segments) = &document.output.segments else { return Ok(()) };
        if segments.at_most == 0 || segments.at_most > Segments::MOST {
            let allowed = format!("1 to {}", Segments::MOST);
            return Err(InputError::default().at("output.segments.at_most").found(segments.at_most.to_string()).allowed(allowed));
        }
        if let Some(until) = segments.until.filter(|until| *until <= segments.from) {
            let allowed = format!("a time after \"{}\", which is output.segments.from", segments.from);
            return Err(InputError::default().at("output.segments.until").found(format!("\"{until}\"")).allowed(allowed));
        }
        Ok(())
    }
}
