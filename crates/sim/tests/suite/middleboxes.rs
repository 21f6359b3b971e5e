//! What agents at a base station say of losses, against the truth.

use std::ops::ControlFlow;
use whyloss_sim::{
    Amount, Builder, Cause as TrueCause, ChannelSpec, Effect, End, Errors, Limits, LinkSpec, LossRow, Middlebox, MiddleboxKind,
    QueueLimit, Records, TcpFlow, Truth,
};
use whyloss_transport::differentiation::Cause;
use whyloss_transport::scheme::Selection;
use whyloss_transport::tcp::Config;
use whyloss_transport::{BitRate, Duration, Instant};

/// Where the mobile host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mobile {
    Sender,
    Receiver,
}

/// A mobile host, its base station, a wired bottleneck with a short queue, and a fixed host.
#[derive(Clone, Copy, Debug)]
struct World {
    mobile: Mobile,
    /// Share of packets that the wireless link loses, each way.
    loss: f64,
    /// Packets that may wait in front of the bottleneck.
    queue: u32,
    /// Names of the agents at the base station.
    agents: &'static [&'static str],
}

impl World {
    fn run(self, selection: &Selection, config: &Config) -> Records {
        let mut builder = Builder::new(11, 0);
        let (mobile, station, far, fixed) =
            (builder.host("mobile"), builder.router("station"), builder.router("far"), builder.host("fixed"));
        let link = |mbps: u64, ms: u64, queue: u32, per: f64| LinkSpec {
            rate: BitRate::from_bps(mbps * 1_000_000),
            delay: Duration::from_millis(ms),
            queue: QueueLimit::Packets(queue),
            channel: ChannelSpec { errors: Errors::Packets { probability: per }, effect: Effect::Erase },
            ..LinkSpec::default()
        };
        let air = || link(20, 5, 1000, self.loss);
        let wireless = builder.link(mobile, station, air(), air());
        builder.link(station, far, link(10, 15, self.queue, 0.0), link(10, 15, self.queue, 0.0));
        builder.link(far, fixed, link(100, 1, 1000, 0.0), link(100, 1, 1000, 0.0));
        for &agent in self.agents {
            builder.middlebox(Middlebox::new(station, wireless, MiddleboxKind::named(agent).unwrap()));
        }
        let end = || {
            let mut config = config.clone();
            let parts = selection.build(&mut config).unwrap();
            End::new(config, parts)
        };
        let (from, to) = if self.mobile == Mobile::Sender { (mobile, fixed) } else { (fixed, mobile) };
        let amount = Amount::Unlimited;
        builder.tcp(TcpFlow { name: "f".into(), from, to, start: Instant::ZERO, amount, sender: end(), receiver: end() });
        let mut simulation = builder.build().unwrap();
        simulation.run(&Limits { until: Some(Instant::ZERO + Duration::from_secs(60)) }, |_| ControlFlow::Continue(())).unwrap();
        simulation.into_records()
    }
}

fn truth(loss: &LossRow) -> Cause {
    match loss.truth {
        Truth::Lost(TrueCause::Erased) => Cause::Corruption,
        Truth::Lost(_) => Cause::Congestion,
        other => panic!("nothing was lost: {other:?}"),
    }
}

/// Numbers of judged first transmissions that were really lost, by truth and verdict: `[congestion, corruption][wrong, right]`.
fn score(records: &Records, verdict: impl Fn(&LossRow) -> Cause) -> [[usize; 2]; 2] {
    let mut table = [[0; 2]; 2];
    let lost = |loss: &&LossRow| loss.record.transmission == 0 && matches!(loss.truth, Truth::Lost(_));
    for loss in records.losses.iter().filter(lost) {
        let truth = truth(loss);
        table[usize::from(truth == Cause::Corruption)][usize::from(verdict(loss) == truth)] += 1;
    }
    table
}

fn ruling(loss: &LossRow) -> Cause {
    loss.record.verdict.cause
}

const BOTH: [Mobile; 2] = [Mobile::Sender, Mobile::Receiver];

/// Options without timestamps leave room for a notice beside three SACK blocks.
fn without_timestamps() -> Config {
    Config { timestamps: false, ..Config::modern() }
}

/// Only the acknowledgement number and duplicates.
fn without_sack() -> Config {
    Config { sack: false, timestamps: false, ..Config::modern() }
}

#[test]
fn explicit_loss_notification_never_takes_congestion_for_corruption() {
    for mobile in BOTH {
        for config in [Config::modern(), without_timestamps(), without_sack()] {
            let world = World { mobile, loss: 0.01, queue: 20, agents: &["eln"] };
            let [[wrong_c, right_c], [wrong_w, right_w]] = score(&world.run(&Selection::scheme("eln"), &config), ruling);
            let context = format!("{mobile:?}, sack {}, timestamps {}: {wrong_w} of {right_w}", config.sack, config.timestamps);
            assert!(wrong_c == 0 && right_c > 10 && right_w > 200, "{context}");
            match (mobile, config.sack, config.timestamps) {
                // Each hole is named again and again before the sender looks, except where it is its last chance that is lost.
                (Mobile::Sender, ..) | (_, false, _) => assert!(wrong_w <= 2, "{context}"),
                // RACK judges by the first acknowledgement that shows a hole; this one was lost, or four SACK blocks fill it.
                (_, _, false) => assert!(20 * wrong_w < right_w, "{context}"),
                // Three SACK blocks and timestamps leave no room for the notice.
                (_, _, true) => assert!(5 * wrong_w < right_w, "{context}"),
            }
        }
    }
}

#[test]
fn what_a_firewall_strips_does_no_harm() {
    for mobile in BOTH {
        let world = World { mobile, loss: 0.01, queue: 20, agents: &["eln", "strip"] };
        let helped = world.run(&Selection::scheme("eln"), &Config::modern());
        let plain = World { agents: &[], ..world }.run(&Selection::scheme("sack"), &Config::modern());
        if mobile == Mobile::Sender {
            // All notices cross the link on which they are stripped: nothing is heard, and everything is as without an agent.
            assert!(helped.losses.iter().all(|loss| ruling(loss) == Cause::Congestion));
            assert_eq!(helped.flows[0].octets_delivered, plain.flows[0].octets_delivered);
        }
        assert!(2 * helped.flows[0].octets_delivered > plain.flows[0].octets_delivered);
    }
}

#[test]
fn the_same_agents_do_the_same_again() {
    let world = World { mobile: Mobile::Receiver, loss: 0.02, queue: 10, agents: &["eln"] };
    let run = || world.run(&Selection::scheme("eln"), &Config::modern());
    assert_eq!(run(), run());
}

#[test]
fn the_numbers_of_a_base_station_locate_every_gap() {
    let world = World { mobile: Mobile::Receiver, loss: 0.01, queue: 20, agents: &["syndrome"] };
    let selection = Selection { shadows: vec!["syndrome".into()], ..Selection::scheme("syndrome") };
    let records = world.run(&selection, &Config::modern());
    let [[wrong_c, right_c], [wrong_w, right_w]] = score(&records, |loss| loss.record.shadows[0].cause);
    let context = format!("congestion {right_c} of {}, corruption {right_w} of {}", right_c + wrong_c, right_w + wrong_w);
    // Wrong are only gaps beside which a retransmission was lost, and gaps of both kinds, which are congestion as a whole.
    assert!(right_c > 20 && right_w > 300, "{context}");
    assert!(20 * wrong_c <= right_c + 20 && 50 * wrong_w <= right_w, "{context}");
    // The sender believes the verdict on the hole that it hears of.
    let [_, [wrong, right]] = score(&records, ruling);
    assert!(4 * wrong < right, "{wrong} of {right}");
}

#[test]
fn acknowledgements_of_hops_locate_losses() {
    for mobile in BOTH {
        let world = World { mobile, loss: 0.01, queue: 20, agents: &["ack-hop"] };
        let records = world.run(&Selection::scheme("ack-hop"), &Config::modern());
        let [[wrong_c, right_c], [wrong_w, right_w]] = score(&records, ruling);
        let context =
            format!("{mobile:?}: congestion {right_c} of {}, corruption {right_w} of {}", right_c + wrong_c, right_w + wrong_w);
        assert!(right_c > 20 && right_w > 200, "{context}");
        // To a mobile sender one notice in a hundred is lost on the air, and congestion then looks like corruption; to a fixed one none is.
        let allowed = if mobile == Mobile::Sender { 1 + (right_c + wrong_c) / 20 } else { 0 };
        assert!(wrong_c <= allowed && 50 * wrong_w <= right_w, "{context}");
        let reverse = &records.flows[0].reverse;
        assert!(reverse.inserted > 1000 && reverse.balanced(), "{reverse:?}");
    }
}

#[test]
fn notices_of_hops_acknowledge_nothing() {
    let agents: &[&str] = &["ack-hop"];
    for mobile in BOTH {
        let world = World { mobile, loss: 0.0, queue: 1000, agents };
        let told = world.run(&Selection::scheme("sack"), &Config::modern());
        let sender = told.flows[0].sender.unwrap();
        // Nothing is lost on a path without errors and with a long queue until the window fills it, and no duplicate comes before that.
        let plain = World { agents: &[], ..world }.run(&Selection::scheme("sack"), &Config::modern());
        let alone = plain.flows[0].sender.unwrap();
        assert!(told.flows[0].reverse.inserted > 1000);
        assert_eq!((sender.duplicate_acks, sender.challenge_acks), (alone.duplicate_acks, alone.challenge_acks));
    }
}

#[test]
fn the_share_of_corruption_is_what_the_link_makes_it() {
    for (scheme, mobile) in [("ceten-c", Mobile::Sender), ("ceten-a", Mobile::Receiver)] {
        let world = World { mobile, loss: 0.02, queue: 20, agents: &["ceten"] };
        let records = world.run(&Selection::scheme(scheme), &Config::modern());
        let lost = records
            .losses
            .iter()
            .filter(|loss| matches!(loss.truth, Truth::Lost(_)) && loss.record.at > Instant::ZERO + Duration::from_secs(20));
        let lost: Vec<_> = lost.collect();
        let corrupted = lost.iter().filter(|loss| truth(loss) == Cause::Corruption).count() as f64 / lost.len() as f64;
        let score = lost.iter().map(|loss| loss.record.verdict.score).sum::<f64>() / lost.len() as f64;
        // The loss rate comes from the last hundred losses: 10 % of error; the link's rate from a thousand packets at 2 %: 22 %.
        assert!((score - corrupted).abs() < 0.25, "{scheme}: {score} of {corrupted} over {}", lost.len());
        assert!(score > 0.5, "{scheme}: {score}");
    }
}

#[test]
fn no_scheme_needs_what_a_firewall_strips() {
    const ALL: &[&str] = &["eln", "syndrome", "ceten", "strip"];
    for scheme in ["eln", "syndrome", "ack-hop", "ceten-c", "ceten-a"] {
        let world = World { mobile: Mobile::Receiver, loss: 0.01, queue: 20, agents: ALL };
        let octets = |records: &Records| records.flows[0].octets_delivered;
        let stripped = octets(&world.run(&Selection::scheme(scheme), &Config::modern()));
        let plain = octets(&World { agents: &[], ..world }.run(&Selection::scheme("sack"), &Config::modern()));
        assert!(10 * stripped > 9 * plain, "{scheme}: {stripped} against {plain}");
    }
}
