//! Putting a network together.

use crate::address::{LinkId, NodeId, Way};
use crate::capture::CaptureSpec;
use crate::channel::ChannelSpec;
use crate::middlebox::Middlebox;
use crate::moves::Move;
use crate::pacing::{Pacing, Rhythm};
use crate::playback::Playback;
use crate::radio::RadioSpec;
use crate::record::LogSpec;
use crate::shape::LinkSpec;
use crate::smoothness::Smoothness;
use crate::web::Web;
use std::fmt;
use std::sync::Arc;
use whyloss_transport::datagram;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant, Parts};

/// One end of a TCP connection.
#[derive(Debug)]
pub struct End {
    /// Its configuration. The nonce key is replaced by a random one; the application reads everything at once and checks it, whatever
    /// [`Config::auto_read`] says.
    pub config: Arc<Config>,
    /// Congestion control, differentiators, reaction, timeout policy and receiver agent.
    pub parts: Parts,
}

impl End {
    /// An end with this configuration, which many can share.
    pub fn new(config: impl Into<Arc<Config>>, parts: Parts) -> Self {
        Self { config: config.into(), parts }
    }
}

/// How much a flow sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// As much as it can until the run ends.
    Unlimited,
    /// This many octets; then the connection is closed.
    Octets(u64),
    /// What an application gives out at a rate; then the connection is closed. What TCP does not take at once waits for it.
    Paced(Pacing),
    /// The pages that a web user at the receiving host asks for, one after another over one connection, until the run ends. A request takes no time.
    Web(Web),
}

/// Data over one TCP connection.
#[derive(Debug)]
pub struct TcpFlow {
    /// Its name, unique among the flows. Its random streams depend on it.
    pub name: String,
    /// The host that opens the connection and sends the data.
    pub from: NodeId,
    /// The host that receives it.
    pub to: NodeId,
    /// When the connection is opened.
    pub start: Instant,
    /// How much is sent.
    pub amount: Amount,
    /// Configuration and algorithms of the sender.
    pub sender: End,
    /// Configuration and algorithms of the receiver.
    pub receiver: End,
}

/// Datagrams of one size at a bit rate.
#[derive(Clone, Debug)]
pub struct CbrFlow {
    /// Its name, unique among the flows.
    pub name: String,
    /// The host that sends.
    pub from: NodeId,
    /// The host that receives.
    pub to: NodeId,
    /// When the first datagram leaves.
    pub start: Instant,
    /// No datagram leaves at or after this time.
    pub stop: Instant,
    /// Rate over all octets of the IP packet.
    pub rate: BitRate,
    /// Octets of each IP packet, 28 octets of headers included.
    pub octets: u32,
    /// How evenly they leave.
    pub rhythm: Rhythm,
}

/// Datagrams with congestion control: over a DCCP connection, or by TFRC.
#[derive(Clone, Debug)]
pub struct DatagramFlow {
    /// Its name, unique among the flows.
    pub name: String,
    /// The host that opens the connection and sends the data.
    pub from: NodeId,
    /// The host that receives it.
    pub to: NodeId,
    /// When the connection is opened.
    pub start: Instant,
    /// When the connection is closed.
    pub stop: Instant,
    /// How much is sent. Every packet has [`Config::packet`](datagram::Config::packet) octets of data.
    pub supply: Supply,
    /// Configuration of the sender.
    pub sender: datagram::Config,
    /// Configuration of the receiver.
    pub receiver: datagram::Config,
}

/// What an application gives to a flow of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// As much as the congestion control lets go.
    Saturated,
    /// Data at this rate. What finds the send queue full is not sent.
    Rate(BitRate),
}

/// A file over several TCP connections at once, put together again in order at the receiver.
///
/// The file is cut into chunks. Whenever an open connection has less than a chunk left to send and its send buffer has room for one, it
/// takes the next, so that faster connections carry more. Which connection took which chunk is known to the receiver without a header on
/// the wire.
#[derive(Debug)]
pub struct StripedTransfer {
    /// Its name; the connections are flows `name/0`, `name/1`, …
    pub name: String,
    /// The host that opens the connections and sends the file.
    pub from: NodeId,
    /// The host that receives it.
    pub to: NodeId,
    /// When the connections are opened.
    pub start: Instant,
    /// Length of the file in octets.
    pub octets: u64,
    /// Length of a chunk in octets.
    pub chunk: u32,
    /// Sender's and receiver's end of each connection.
    pub connections: Vec<(End, End)>,
}

/// Takes the parts of a network and checks that they fit together.
#[derive(Default)]
pub struct Builder {
    pub(crate) seed: u64,
    pub(crate) run: u64,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) links: Vec<LinkEnds>,
    pub(crate) airs: Vec<Air>,
    pub(crate) flows: Vec<FlowSpec>,
    pub(crate) send_overhead: Duration,
    pub(crate) sampling: Option<Duration>,
    pub(crate) smoothness: Smoothness,
    pub(crate) log: Option<LogSpec>,
    pub(crate) captures: Vec<CaptureSpec>,
    pub(crate) inputs: Vec<InputSpec>,
    pub(crate) middleboxes: Vec<Middlebox>,
    pub(crate) moves: Vec<(NodeId, Vec<Move>)>,
    pub(crate) playbacks: Vec<(String, Playback)>,
}

/// A channel in front of a host's transport.
#[derive(Debug)]
pub(crate) struct InputSpec {
    pub host: NodeId,
    pub way: Way,
    pub channel: ChannelSpec,
}

#[derive(Debug)]
pub(crate) struct NodeSpec {
    pub name: String,
    pub host: bool,
}

#[derive(Debug)]
pub(crate) struct LinkEnds {
    pub ends: [NodeId; 2],
    pub line: LineSpec,
}

#[derive(Debug)]
pub(crate) enum LineSpec {
    Wire(Arc<[LinkSpec; 2]>),
    /// Through the air of the radio channel of this number.
    Air(usize),
}

/// A radio channel and where its stations are.
#[derive(Debug)]
pub(crate) struct Air {
    pub spec: RadioSpec,
    pub stations: Vec<(NodeId, [f64; 2])>,
}

#[derive(Debug)]
pub(crate) enum FlowSpec {
    Tcp(Box<TcpFlow>),
    Cbr(CbrFlow),
    Datagrams(Box<DatagramFlow>),
    Striped(StripedTransfer),
}

impl FlowSpec {
    /// How many flows of packets it becomes.
    pub fn connections(&self) -> usize {
        match self {
            Self::Striped(transfer) => transfer.connections.len(),
            Self::Tcp(_) | Self::Cbr(_) | Self::Datagrams(_) => 1,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Tcp(flow) => &flow.name,
            Self::Cbr(flow) => &flow.name,
            Self::Datagrams(flow) => &flow.name,
            Self::Striped(transfer) => &transfer.name,
        }
    }
}

impl Builder {
    /// An empty network. All random numbers of run `run` follow from `seed` and `run`.
    pub fn new(seed: u64, run: u64) -> Self {
        Self { seed, run, ..Self::default() }
    }

    /// Adds a host: packets start and end here. A host does not forward.
    pub fn host(&mut self, name: impl Into<String>) -> NodeId {
        self.node(name.into(), true)
    }

    /// Adds a router: it forwards packets on the shortest way (fewest links; the link that was added first on a tie).
    pub fn router(&mut self, name: impl Into<String>) -> NodeId {
        self.node(name.into(), false)
    }

    fn node(&mut self, name: String, host: bool) -> NodeId {
        self.nodes.push(NodeSpec { name, host });
        NodeId::new(self.nodes.len() - 1)
    }

    /// Joins two nodes; `forward` is the direction from `a` to `b`.
    pub fn link(&mut self, a: NodeId, b: NodeId, forward: LinkSpec, reverse: LinkSpec) -> LinkId {
        self.link_like(a, b, Arc::new([forward, reverse]))
    }

    /// The same for one of many links that are alike: they share what is said of both directions.
    pub fn link_like(&mut self, a: NodeId, b: NodeId, directions: Arc<[LinkSpec; 2]>) -> LinkId {
        self.join([a, b], LineSpec::Wire(directions))
    }

    /// Adds a radio channel with stations at these nodes, at positions in metres. Each pair of stations that can decode each other is
    /// a link, forward from the one that comes first in the list; all links are returned with their ends, in the order of the pairs
    /// (first with second, first with third, …).
    pub fn radio(&mut self, spec: RadioSpec, stations: &[(NodeId, [f64; 2])]) -> Vec<(LinkId, [NodeId; 2])> {
        let number = self.airs.len();
        let mut links = Vec::new();
        for (index, &(a, here)) in stations.iter().enumerate() {
            for &(b, there) in &stations[index + 1..] {
                if spec.reaches(here, there) {
                    links.push((self.join([a, b], LineSpec::Air(number)), [a, b]));
                }
            }
        }
        self.airs.push(Air { spec, stations: stations.to_vec() });
        links
    }

    fn join(&mut self, ends: [NodeId; 2], line: LineSpec) -> LinkId {
        self.links.push(LinkEnds { ends, line });
        LinkId::new(self.links.len() - 1)
    }

    /// Puts an agent to work at a router, for what crosses one of the router's links. Of several agents of a link, the last that was added
    /// is the nearest to the link: it is the first to see what comes over it and the last to see what leaves over it. What an agent sends
    /// itself passes those between it and where that goes.
    pub fn middlebox(&mut self, middlebox: Middlebox) {
        self.middleboxes.push(middlebox);
    }

    /// Has a host move from link to link, at these times in ascending order. All its links are wires, of which it has one at a time: the first
    /// that was added until its first move.
    pub fn moves(&mut self, host: NodeId, moves: Vec<Move>) {
        self.moves.push((host, moves));
    }

    /// Adds a TCP flow.
    pub fn tcp(&mut self, flow: TcpFlow) {
        self.flows.push(FlowSpec::Tcp(Box::new(flow)));
    }

    /// Adds a flow of datagrams without congestion control.
    pub fn cbr(&mut self, flow: CbrFlow) {
        self.flows.push(FlowSpec::Cbr(flow));
    }

    /// Adds a flow of datagrams with congestion control.
    pub fn datagrams(&mut self, flow: DatagramFlow) {
        self.flows.push(FlowSpec::Datagrams(Box::new(flow)));
    }

    /// Adds a striped transfer.
    pub fn striped(&mut self, transfer: StripedTransfer) {
        self.flows.push(FlowSpec::Striped(transfer));
    }

    /// Puts a player at the receiver of the flow of this name. A connection of a striped transfer has none.
    pub fn playback(&mut self, flow: impl Into<String>, playback: Playback) {
        self.playbacks.push((flow.into(), playback));
    }

    /// Delays each packet by a random time, uniform in `[0, max)`, before it enters its host's link; packets of one endpoint keep
    /// their order. It stands for the scheduling noise of real hosts and breaks the phase effects of drop-tail queues
    /// (Floyd & Jacobson 1992). Zero, the default, switches it off.
    pub fn send_overhead(&mut self, max: Duration) {
        self.send_overhead = max;
    }

    /// Takes a sample of every flow and queue at every multiple of `interval`.
    pub fn sample_every(&mut self, interval: Duration) {
        self.sampling = Some(interval);
    }

    /// Says in which bins of time it is counted how evenly flows send; in those of a second if nothing is said.
    pub fn smoothness(&mut self, smoothness: Smoothness) {
        self.smoothness = smoothness;
    }

    /// Writes down the packets that endpoints send, one by one.
    pub fn log_packets(&mut self, spec: LogSpec) {
        self.log = Some(spec);
    }

    /// Takes a packet capture, as pcapng. Each packet in it has a comment that says what became of it.
    pub fn capture(&mut self, spec: CaptureSpec) {
        self.captures.push(spec);
    }

    /// Lets a channel have its way with packets that have arrived at a host, before its transport sees them: end-to-end errors, which
    /// no link repairs. With [`Way::Forward`] it meets the packets that carry data of the flows that the host receives, with
    /// [`Way::Reverse`] all packets of the flows that it sends. What it spoils counts as lost on the link that brought it.
    pub fn input(&mut self, host: NodeId, way: Way, channel: ChannelSpec) {
        self.inputs.push(InputSpec { host, way, channel });
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("seed", &self.seed)
            .field("run", &self.run)
            .field("nodes", &self.nodes)
            .field("links", &self.links)
            .field("flows", &self.flows)
            .finish_non_exhaustive()
    }
}
