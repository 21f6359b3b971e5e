//! The same transfer in the simulator.
#![allow(dead_code)]

use super::parts;
use super::path::Link;
use std::ops::ControlFlow;
use whyloss_sim::{Amount, Builder, ChannelSpec, End, Limits, LinkSpec, QueueLimit, TcpFlow};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Judgement;
use whyloss_transport::{BitRate, Config, Duration, Instant};

/// What the simulator says.
#[derive(Debug)]
pub struct Simulated {
    pub mbps: f64,
    pub mean_cwnd: f64,
    /// Number of episodes of loss.
    pub episodes: u64,
    /// Those of them that were judged corruption.
    pub kept: u64,
}

/// The engine's parts for a control.
fn selection(control: &str) -> Selection {
    let timeout = if control == "newreno" { "f-rto" } else { "aware" };
    Selection { timeout: Some(timeout.to_owned()), ..parts::selection(control) }
}

/// Sends over `link` under `control` for `seconds`.
pub fn simulate(control: &str, link: &Link, seconds: u64) -> Simulated {
    let mut builder = Builder::new(link.seed, 0);
    let (from, to) = (builder.host("near"), builder.host("far"));
    let spec = |channel: &ChannelSpec| LinkSpec {
        rate: BitRate::from_bps(link.rate_bps),
        delay: Duration::from_millis(link.delay_ms),
        queue: QueueLimit::Packets(link.queue_packets),
        channel: channel.clone(),
        ..LinkSpec::default()
    };
    builder.link(from, to, spec(&link.channel), spec(&ChannelSpec::default()));
    let end = || {
        let mut config = Config::linux();
        let parts = selection(control).build(&mut config).expect("a control of the engine");
        End::new(config, parts)
    };
    let (name, start, amount) = (control.to_owned(), Instant::ZERO, Amount::Unlimited);
    builder.tcp(TcpFlow { name, from, to, start, amount, sender: end(), receiver: end() });
    builder.sample_every(Duration::from_millis(4));
    let mut simulation = builder.build().expect("a network");
    let limits = Limits { until: Some(Instant::ZERO + Duration::from_secs(seconds)) };
    simulation.run(&limits, |_| ControlFlow::Continue(())).expect("runs");
    let records = simulation.into_records();
    let mss = f64::from(Config::linux().mss) - 12.0;
    let windows: Vec<_> = records.flow_samples.iter().map(|sample| sample.cwnd as f64 / mss).collect();
    let judged = |judgement| records.losses.iter().filter(|loss| loss.record.judgement == judgement).count() as u64;
    // Veno reduces for corruption too, only less.
    let forgiven = records
        .losses
        .iter()
        .filter(|loss| loss.record.judgement != Judgement::Covered && loss.record.verdict.cause == Cause::Corruption);
    Simulated {
        mbps: records.flows[0].octets_delivered as f64 * 8e-6 / seconds as f64,
        mean_cwnd: windows.iter().sum::<f64>() / windows.len() as f64,
        episodes: judged(Judgement::Kept) + judged(Judgement::Reduced),
        kept: forgiven.count() as u64,
    }
}
