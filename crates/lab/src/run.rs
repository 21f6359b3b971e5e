//! One run: from a scenario to its tables.

use crate::control::{Cancel, Control, Progress, Sampled};
use crate::error::{Error, InputError};
use crate::expand::MOST_SAMPLES;
use crate::extension::{has_failed, take_failure};
use crate::flows::FlowConfig;
use crate::format::Flow;
use crate::network::{Network, Transfer};
use crate::patterns::{Files, LinkFiles};
use crate::room;
use crate::scenario::Scenario;
use crate::tables::{batches, series, Names, Origin, Tables, SERIES};
use crate::workload;
use arrow_array::RecordBatch;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time;
use whyloss_sim::{
    Amount, BuildError, Builder, CaptureSpec, CbrFlow, DatagramFlow, End, Limits, LogSpec, LossWatch, NodeId, Pacing, RunError,
    RunOutcome, Simulation, StripedTransfer, Supply, TcpFlow, Way, WholeFile,
};
use whyloss_transport::scheme::{Catalogue, Row};
use whyloss_transport::{Config, Duration, Instant};

/// What can be said about a run beside its scenario.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Number of the run. Runs of one scenario differ in their random numbers.
    pub run: u32,
    /// Folder for the packet captures that the scenario asks for; none are written without it. A file is called
    /// `<scenario>-<run>-<place>.pcapng`.
    pub captures: Option<PathBuf>,
}

/// Runs a scenario once.
pub fn run(scenario: &Scenario, options: &RunOptions, control: &mut Control<'_>) -> Result<Tables, Error> {
    scenario.check_something_is_sent()?;
    room::check_runs(scenario.network().transfers.len(), 1)?;
    let files = scenario.files(options.run, &Files::default())?;
    let mut watch = Watch::new(control);
    let tables = simulate(scenario, options, &files, |now| watch.look(now))?;
    watch.end();
    Ok(tables)
}

/// Runs a scenario once, and hands its rows to `take` as soon as nothing can change them any more; what comes at the end alone is returned, with
/// the rest of them. A run that is cancelled ends there, with what it has simulated.
pub(crate) fn run_apart(
    scenario: &Scenario,
    options: &RunOptions,
    control: &mut Control<'_>,
    take: Take<'_>,
) -> Result<(RunOutcome, Tables), Error> {
    scenario.check_something_is_sent()?;
    room::check_runs(scenario.network().transfers.len(), 1)?;
    let files = scenario.files(options.run, &Files::default())?;
    let mut watch = Watch::new(control);
    let ended = guarded(|| simulate_parts(scenario, options, &files, |now| has_failed() || watch.look(now), Some(take)))?;
    watch.end();
    Ok(ended)
}

/// Takes the rows of the tables that grow while a run goes on.
pub(crate) type Take<'a> = &'a mut dyn FnMut([RecordBatch; SERIES.end - SERIES.start]) -> Result<(), Error>;

/// Who watches a single run.
struct Watch<'a, 'b> {
    control: &'a mut Control<'b>,
    started: time::Instant,
    told: time::Instant,
    /// Samples that were told.
    samples: (usize, usize),
    losses: LossWatch,
}

impl<'a, 'b> Watch<'a, 'b> {
    fn new(control: &'a mut Control<'b>) -> Self {
        let now = time::Instant::now();
        Self { control, started: now, told: now, samples: (0, 0), losses: LossWatch::default() }
    }

    /// Tells how far the run is, and says whether it is to stop.
    fn look(&mut self, now: &mut Now<'_, '_>) -> bool {
        let due = self.told.elapsed() >= time::Duration::from_millis(100);
        if due {
            self.told = time::Instant::now();
            self.control.tell(&Progress::within_one_run(now.fraction, self.started.elapsed()));
        }
        if let Some(samples) = self.control.samples.as_mut().filter(|_| due || now.inside.is_full()) {
            let losses = now.inside.losses(&mut self.losses);
            let (senders, queues) = now.inside.samples(&mut self.samples);
            samples(&Sampled { flows: now.flows, senders, queues, losses: &losses });
        }
        if let Some(pace) = self.control.pace {
            keep_pace(self.started, now.inside.now.as_secs_f64() / pace, &self.control.cancel);
        }
        self.control.cancel.is_cancelled()
    }

    fn end(&mut self) {
        self.control.tell(&Progress::within_one_run(1.0, self.started.elapsed()));
    }
}

/// Waits until `due` seconds have passed since `started`, or somebody cancels.
fn keep_pace(started: time::Instant, due: f64, cancel: &Cancel) {
    const STEP: f64 = 0.05;
    while !cancel.is_cancelled() {
        let left = due - started.elapsed().as_secs_f64();
        if left <= 0.0 {
            return;
        }
        std::thread::sleep(time::Duration::from_secs_f64(left.min(STEP)));
    }
}

/// How far a run is, and what is inside.
pub(crate) struct Now<'a, 'b> {
    /// What is done, in `[0, 1]`.
    fraction: f64,
    /// Names of all flows.
    flows: &'a [String],
    /// What the simulation says.
    inside: &'a mut whyloss_sim::Progress<'b>,
}

/// Simulates one run. `cancelled` is asked every few milliseconds, and told how far it is.
pub(crate) fn simulate(
    scenario: &Scenario,
    options: &RunOptions,
    files: &[LinkFiles],
    mut cancelled: impl FnMut(&mut Now<'_, '_>) -> bool,
) -> Result<Tables, Error> {
    guarded(|| simulate_parts(scenario, options, files, |now| has_failed() || cancelled(now), None)).map(|(_, tables)| tables)
}

/// Does `work`, and says so if an own part has failed meanwhile.
fn guarded<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    // What another run on this thread has left.
    drop(take_failure());
    let result = work();
    take_failure().map_or(result, |failure| Err(Error::Part(Box::new(failure))))
}

fn simulate_parts(
    scenario: &Scenario,
    options: &RunOptions,
    files: &[LinkFiles],
    mut cancelled: impl FnMut(&mut Now<'_, '_>) -> bool,
    mut take: Option<Take<'_>>,
) -> Result<(RunOutcome, Tables), Error> {
    let mut world = World::new(scenario, options, files)?;
    let until = Instant::ZERO + scenario.duration();
    let captures = std::mem::take(&mut world.captures);
    let mut samples = 0;
    let (flows, shadows) = (world.simulation.flow_names(), world.simulation.shadow_names());
    let names = Names { run: options.run, network: scenario.network(), flows, shadows };
    let with_drops = scenario.document().output.drops;
    let mut taken = Ok(());
    let outcome = world
        .simulation
        .run(&Limits { until: Some(until) }, |progress| {
            let by_time = progress.now.as_secs_f64() / until.as_secs_f64();
            let by_transfers = progress.transfers_over as f64 / progress.transfers.max(1) as f64;
            if let Some(interval) = scenario.document().output.sample {
                samples = scenario.network().samples(Duration::from_nanos(progress.now.as_nanos()), interval);
            }
            let mut now = Now { fraction: by_time.max(by_transfers), flows: &names.flows, inside: progress };
            if samples > MOST_SAMPLES || cancelled(&mut now) {
                return ControlFlow::Break(());
            }
            if let Some(take) = take.as_mut().filter(|_| progress.is_full()) {
                taken = take(series(&names, &progress.take_settled(), with_drops));
            }
            if taken.is_ok() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })
        .map_err(|error| failed(scenario, options.run, error))?;
    if let Some(interval) = scenario.document().output.sample.filter(|_| samples > MOST_SAMPLES) {
        return Err(scenario.place(Network::too_many_samples(interval, samples)).into());
    }
    taken?;
    if outcome == RunOutcome::Cancelled && (take.is_none() || has_failed()) {
        return Err(Error::Cancelled);
    }
    let mut records = world.simulation.into_records();
    let settled = records.take_settled();
    for capture in captures {
        let path = capture.path().to_owned();
        capture.keep().map_err(|source| Error::Write { path, source })?;
    }
    let rest = series(&names, &settled, with_drops);
    drop(settled);
    let origin = Origin::new(&names, &world.schemes, &world.sizes, outcome, &records);
    Ok((outcome, batches(&origin, rest)))
}

fn failed(scenario: &Scenario, run: u32, error: RunError) -> Error {
    match error {
        RunError::Capture { name, source } => Error::Write { path: PathBuf::from(name), source },
        other => Error::Broken { scenario: scenario.name().to_owned(), run, message: other.to_string() },
    }
}

/// A simulation, and what its tables need to know beside its records.
struct World {
    simulation: Simulation,
    /// Captures that are being written.
    captures: Vec<WholeFile>,
    /// For each transfer, its scheme or parts.
    schemes: Vec<String>,
    /// For each transfer, the octets that it is to move.
    sizes: Vec<Option<u64>>,
}

impl World {
    fn new(scenario: &Scenario, options: &RunOptions, files: &[LinkFiles]) -> Result<Self, Error> {
        let (document, network) = (scenario.document(), scenario.network());
        let mut builder = Builder::new(document.scenario.seed, u64::from(options.run));
        let nodes: Vec<NodeId> = network
            .nodes
            .iter()
            .map(|node| if node.host { builder.host(&node.name) } else { builder.router(&node.name) })
            .collect();
        let mut links = Vec::with_capacity(network.links.len());
        // Links that are alike share what is said of them, unless files tell them apart.
        let mut alike = BTreeMap::new();
        for (index, link) in network.links.iter().enumerate() {
            let Some(ways) = &link.ways else { continue };
            let own = [0, 1].map(|way| LinkFiles::of(files, index, way));
            let make = || Arc::new([0, 1].map(|way| ways[way].spec(own[way])));
            let spec = match own {
                [None, None] => Arc::clone(alike.entry(Arc::as_ptr(ways)).or_insert_with(make)),
                _ => make(),
            };
            links.push(builder.link_like(nodes[link.ends[0]], nodes[link.ends[1]], spec));
        }
        let stations: Vec<_> = network.stations().map(|(node, position)| (nodes[node], position)).collect();
        if !stations.is_empty() {
            let radio = document.radio.clone().unwrap_or_default();
            links.extend(builder.radio(radio.map(|channel| channel.spec(None)), &stations).into_iter().map(|(link, _)| link));
        }
        for (node, host) in nodes.iter().zip(&network.nodes) {
            for (way, channel) in [(Way::Forward, &host.input.data), (Way::Reverse, &host.input.acks)] {
                if let Some(channel) = channel {
                    builder.input(*node, way, channel.spec(None));
                }
            }
        }
        for (node, host) in nodes.iter().zip(&network.nodes).filter(|(_, host)| !host.moves.is_empty()) {
            builder.moves(*node, host.moves.iter().map(|step| step.placed(links[step.link])).collect());
        }
        for middlebox in &network.middleboxes {
            builder.middlebox(middlebox.placed(nodes[middlebox.at], links[middlebox.link]));
        }
        let mut schemes = Vec::with_capacity(network.transfers.len());
        let mut sizes = Vec::with_capacity(network.transfers.len());
        for transfer in &network.transfers {
            let flow = &document.flow[transfer.flow];
            add_flow(&mut builder, scenario, transfer, flow, &nodes, options.run)?;
            schemes.push(workload::scheme_name(flow));
            sizes.push(flow.size.map(|size| size.0));
        }
        if document.scenario.send_overhead > Duration::ZERO {
            builder.send_overhead(document.scenario.send_overhead);
        }
        if let Some(interval) = document.output.sample {
            builder.sample_every(interval);
        }
        builder.smoothness(document.output.smoothness.unwrap_or_default());
        if let Some(segments) = &document.output.segments {
            builder.log_packets(LogSpec {
                from: Instant::ZERO + segments.from,
                until: segments.until.map_or(Instant::MAX, |until| Instant::ZERO + until),
                at_most: segments.at_most as usize,
            });
        }
        let mut captures = Vec::new();
        if let Some(folder) = &options.captures {
            for capture in &document.output.capture {
                let taken = capture.taken();
                let path = folder.join(format!("{}-{}-{}.pcapng", scenario.name(), options.run, taken.file()));
                let name = path.display().to_string();
                let created = std::fs::create_dir_all(folder).and_then(|()| WholeFile::create(&path));
                let (whole, file) = created.map_err(|source| Error::Write { path, source })?;
                captures.push(whole);
                let node = network.nodes.iter().position(|node| node.name == taken.at).expect("captures are checked");
                let number =
                    |name: &String| network.links.iter().position(|link| link.name == *name).expect("captures are checked");
                builder.capture(CaptureSpec {
                    name,
                    node: nodes[node],
                    link: taken.link.as_ref().map(|link| links[number(link)]),
                    behind_queue: taken.behind_queue,
                    snaplen: taken.snaplen.unwrap_or(0),
                    digits: taken.digits().expect("captures are checked"),
                    holes: taken.holes.map_or(0.0, |holes| holes.0),
                    out: Box::new(file),
                });
            }
        }
        let simulation = builder.build().map_err(|error| unbuildable(&error))?;
        Ok(Self { simulation, captures, schemes, sizes })
    }
}

fn unbuildable(error: &BuildError) -> Error {
    InputError::new(error.to_string()).into()
}

fn add_flow(
    builder: &mut Builder,
    scenario: &Scenario,
    transfer: &Transfer,
    flow: &Flow,
    nodes: &[NodeId],
    run: u32,
) -> Result<(), Error> {
    let (from, to) = (nodes[transfer.from], nodes[transfer.to]);
    let start = Instant::ZERO + workload::start(scenario, transfer, run);
    let name = transfer.name.clone();
    if let Some(playback) = flow.playback.as_ref().and_then(|playback| playback.spec(flow.given_rate())) {
        builder.playback(&name, playback);
    }
    let config = match &scenario.network().flows[transfer.flow] {
        FlowConfig::Tcp(config) => config,
        FlowConfig::Controlled(config) => {
            let given = flow.datagrams.clone().unwrap_or_default();
            let stop = given.stop.map_or(Instant::MAX, |stop| Instant::ZERO + stop);
            let supply = given.rate.map_or(Supply::Saturated, Supply::Rate);
            let (sender, receiver) = ((**config).clone(), (**config).clone());
            builder.datagrams(DatagramFlow { name, from, to, start, stop, supply, sender, receiver });
            return Ok(());
        }
        FlowConfig::Cbr => {
            let Some(cbr) = &flow.cbr else { return Ok(()) };
            let stop = Instant::ZERO + cbr.stop.unwrap_or_else(|| scenario.duration());
            let (rate, octets, rhythm) = (cbr.rate, cbr.packet.0 as u32, cbr.rhythm());
            builder.cbr(CbrFlow { name, from, to, start, stop, rate, octets, rhythm });
            return Ok(());
        }
    };
    let catalogue = scenario.catalogue();
    let ends = || Ok::<_, InputError>((end(flow, config, catalogue, true)?, end(flow, config, catalogue, false)?));
    match (flow.striped, flow.size) {
        (Some(count), Some(size)) => {
            let connections = (0..count).map(|_| ends()).collect::<Result<_, _>>()?;
            builder.striped(StripedTransfer { name, from, to, start, octets: size.0, chunk: flow.chunk.0 as u32, connections });
        }
        (_, size) => {
            let amount = match (size, &flow.stream) {
                (Some(size), _) => Amount::Octets(size.0),
                (None, Some(stream)) => Amount::Paced(Pacing {
                    rate: stream.rate,
                    octets: stream.write.map_or(config.mss.into(), |size| size.0 as u32),
                    stop: stream.stop.map_or(Instant::MAX, |stop| Instant::ZERO + stop),
                    rhythm: stream.rhythm(),
                }),
                (None, None) => flow.web.as_ref().map_or(Amount::Unlimited, |web| Amount::Web(*web)),
            };
            let (sender, receiver) = ends()?;
            builder.tcp(TcpFlow { name, from, to, start, amount, sender, receiver });
        }
    }
    Ok(())
}

/// One end of a connection. Only the sender has losses to judge, so at the receiver only those listen in shadow who work there.
fn end(flow: &Flow, config: &Arc<Config>, catalogue: &Catalogue, sender: bool) -> Result<End, InputError> {
    let mut selection = flow.selection();
    if !sender {
        let works_there = |name: &String| catalogue.rows().any(|row| matches!(row, Row::AtReceiver(part) if part.name == name));
        selection.shadows.retain(works_there);
        selection.parameters.retain(|part, _| !flow.shadows.contains(part) || flow.rules(part, catalogue) || works_there(part));
    }
    // The configuration is as the scheme and the scenario have it already.
    let parts = selection.build_from(catalogue, &mut (**config).clone()).map_err(|error| InputError::new(error.to_string()))?;
    Ok(End::new(Arc::clone(config), parts))
}

impl Flow {
    /// Whether `part` is chosen as something else than a shadow.
    fn rules(&self, part: &str, catalogue: &Catalogue) -> bool {
        let named = [&self.congestion, &self.differentiator, &self.reaction, &self.timeout, &self.receiver];
        let scheme = self.scheme.as_deref().and_then(|name| catalogue.scheme(name));
        named.iter().any(|own| own.as_deref() == Some(part)) || scheme.is_some_and(|scheme| scheme.parts().contains(&part))
    }
}
