//! What a scenario sends in a run, for those who carry it out: the simulator, or stacks on a real link.

use crate::error::InputError;
use crate::flows::FlowConfig;
use crate::format::Flow;
use crate::network::Transfer;
use crate::scenario::Scenario;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::Duration;

/// Data that one host is to send to another over TCP.
#[derive(Clone, Debug)]
pub struct TcpTransfer {
    /// Its name, unique in the scenario.
    pub name: String,
    /// Position of its entry in the scenario's list of flows.
    pub entry: usize,
    /// The host that opens the connections and sends.
    pub from: String,
    /// The host that receives.
    pub to: String,
    /// When the connections are opened.
    pub start: Duration,
    /// How much is sent; without end if nothing is said.
    pub octets: Option<u64>,
    /// Over how many connections at once.
    pub connections: u32,
    /// Length in octets of the pieces that are dealt out to several connections.
    pub chunk: u64,
    /// What tables call its algorithms.
    pub scheme: String,
    /// The parts of its engine, by name.
    pub selection: Selection,
    /// The configuration of both ends.
    pub config: Config,
}

impl Scenario {
    /// What is sent in run `run`, in the order of the scenario. Datagrams are refused.
    pub fn tcp_transfers(&self, run: u32) -> Result<Vec<TcpTransfer>, InputError> {
        let network = self.network();
        let told = |transfer: &Transfer| {
            let flow = &self.document().flow[transfer.flow];
            let FlowConfig::Tcp(config) = &network.flows[transfer.flow] else {
                return Err(InputError::new("real stacks carry TCP only")
                    .at(format!("flow[{}]", transfer.flow))
                    .found(scheme_name(flow))
                    .allowed("a scheme of TCP"));
            };
            if let Some(stream) = &flow.stream {
                return Err(InputError::new("applications with a rate exist in the simulator only")
                    .at(format!("flow[{}].stream", transfer.flow))
                    .found(format!("\"{}\"", stream.rate))
                    .allowed("a `size`, or nothing"));
            }
            if flow.web.is_some() {
                return Err(InputError::new("web users exist in the simulator only")
                    .at(format!("flow[{}].web", transfer.flow))
                    .allowed("a `size`, or nothing"));
            }
            Ok(TcpTransfer {
                name: transfer.name.clone(),
                entry: transfer.flow,
                from: network.nodes[transfer.from].name.clone(),
                to: network.nodes[transfer.to].name.clone(),
                start: start(self, transfer, run),
                octets: flow.size.map(|size| size.0),
                connections: flow.striped.unwrap_or(1),
                chunk: flow.chunk.0,
                scheme: scheme_name(flow),
                selection: flow.selection(),
                config: (**config).clone(),
            })
        };
        network.transfers.iter().map(told).collect()
    }
}

/// When a transfer starts in run `run`.
pub(crate) fn start(scenario: &Scenario, transfer: &Transfer, run: u32) -> Duration {
    let document = scenario.document();
    let flow = &document.flow[transfer.flow];
    let spread = random_below(flow.start_spread.as_nanos(), document.scenario.seed, run, &transfer.name);
    flow.start + Duration::from_nanos(spread)
}

/// What tables call the algorithms of a flow.
pub(crate) fn scheme_name(flow: &Flow) -> String {
    if flow.cbr.is_some() {
        return "cbr".to_owned();
    }
    let parts = [&flow.congestion, &flow.differentiator, &flow.reaction, &flow.timeout, &flow.receiver];
    let named: Vec<&str> = flow.scheme.iter().chain(parts.into_iter().flatten()).map(String::as_str).collect();
    if named.is_empty() {
        return flow.profile.clone();
    }
    named.join("+")
}

/// A number below `bound` that follows from its arguments alone; 0 if `bound` is.
fn random_below(bound: u64, seed: u64, run: u32, name: &str) -> u64 {
    let digest = blake3::hash(format!("start {seed} {run} {name}").as_bytes());
    let draw = u64::from_le_bytes(digest.as_bytes()[..8].try_into().expect("a hash is longer"));
    ((u128::from(draw) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(flows: &str, run: u32) -> Result<Vec<TcpTransfer>, InputError> {
        let text = format!("scenario.duration = \"5 s\"\n[path]\nrate = \"1 Mbps\"\ndelay = \"10 ms\"\n{flows}");
        Scenario::from_toml(&text, "test").expect("a scenario").tcp_transfers(run)
    }

    #[test]
    fn every_transfer_has_its_ends_and_its_amount() {
        let flows =
            "[[flow]]\nname = \"a\"\ncount = 2\nstart = \"1 s\"\nstart_spread = \"10 ms\"\nsize = \"1 MB\"\nscheme = \"cubic\"\n\
                     [[flow]]\nname = \"b\"\nfrom = \"client\"\nto = \"server\"\nprofile = \"freebsd45\"\n";
        let sent = transfers(flows, 3).expect("TCP");
        let told: Vec<_> = sent
            .iter()
            .map(|e| (e.name.as_str(), e.entry, e.from.as_str(), e.to.as_str(), e.octets, e.scheme.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("a.0", 0, "server", "client", Some(1_000_000), "cubic"),
                ("a.1", 0, "server", "client", Some(1_000_000), "cubic"),
                ("b", 1, "client", "server", None, "freebsd45"),
            ]
        );
        let (second, spread) = (Duration::from_secs(1), Duration::from_millis(10));
        assert!(sent[..2].iter().all(|e| e.start >= second && e.start < second + spread));
        assert_ne!(sent[0].start, sent[1].start);
        assert_ne!(sent[0].start, transfers(flows, 4).expect("TCP")[0].start, "the run matters");
        assert!(sent[0].config.sack && !sent[2].config.sack);
    }

    #[test]
    fn datagrams_are_refused_by_name() {
        let error = transfers("[[flow]]\ncbr = { rate = \"1 Mbps\", packet = \"500 B\" }\n", 0).expect_err("no TCP");
        assert_eq!(error.field, "flow[0]");
        assert!(error.to_string().contains("cbr"), "{error}");
    }
}
