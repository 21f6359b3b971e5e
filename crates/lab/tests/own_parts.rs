//! Parts that a program adds: what they do in scenarios, and what results are found by. By itself, since what is added is there for the whole process.

use std::sync::atomic::{AtomicUsize, Ordering};
use whyloss_lab::{
    describe, execute, extend, fail, has_failed, parts, run, Control, Error, ExecuteOptions, PartFailure, RunOptions, Scenario,
    Sweep,
};
use whyloss_transport::congestion::{CongestionControl, Window};
use whyloss_transport::kit::Part;
use whyloss_transport::path::{Ack, Path};
use whyloss_transport::scheme::{CatalogueError, Scheme};

const PATH: &str = "seed = 3\n[path]\nrate = '8 Mbps'\ndelay = '50 ms'\nqueue = '100 pkt'\n[[flow]]\nsize = '1 MB'\n";

/// Keeps the window at some segments.
#[derive(Debug)]
struct Fixed(u64);

impl CongestionControl for Fixed {
    fn on_ack(&mut self, window: &mut Window, _ack: &Ack) {
        window.set_cwnd(self.0 * u64::from(window.mss()));
    }

    fn threshold(&mut self, window: &Window, _path: &Path) -> u64 {
        self.0 * u64::from(window.mss())
    }
}

/// Fails at the tenth acknowledgement.
#[derive(Debug, Default)]
struct Failing {
    acks: u32,
}

impl CongestionControl for Failing {
    fn on_ack(&mut self, _window: &mut Window, _ack: &Ack) {
        self.acks += 1;
        if self.acks >= 10 {
            let source = format!("no more than {} acknowledgements", self.acks).into();
            fail(PartFailure { part: "failing".to_owned(), method: "on_ack".to_owned(), source });
        }
    }

    fn threshold(&mut self, window: &Window, _path: &Path) -> u64 {
        window.cwnd()
    }
}

const fn fixed(
    name: &'static str,
    build: fn(&whyloss_transport::kit::Arguments) -> Box<dyn CongestionControl>,
) -> Part<dyn CongestionControl> {
    Part { name, summary: "Keeps the window.", reference: "a test", ..Part::fixed(build) }
}

static FOUR: Part<dyn CongestionControl> = fixed("fixed", |_| Box::new(Fixed(4)));
static EIGHT: Part<dyn CongestionControl> = fixed("fixed", |_| Box::new(Fixed(8)));
static FAILING: Part<dyn CongestionControl> = fixed("failing", |_| Box::new(Failing::default()));
static NEWRENO: Part<dyn CongestionControl> = fixed("newreno", |_| Box::new(Fixed(4)));
static SCHEME: Scheme = Scheme { name: "fixed", summary: "Fixed.", congestion: "fixed", ..Scheme::PLAIN };

fn scenario(flow: &str) -> Result<Scenario, Error> {
    Scenario::from_toml(&format!("[scenario]\n{PATH}{flow}"), "own.toml")
}

/// Seconds that the transfer takes.
fn seconds(scenario: &Scenario) -> f64 {
    let tables = run(scenario, &RunOptions::default(), &mut Control::default()).unwrap();
    let goodput = tables.transfers.column_by_name("goodput_bps").expect("a column").clone();
    let goodput = goodput.as_any().downcast_ref::<whyloss_lab::arrow_array::Float64Array>().expect("numbers").value(0);
    8e6 / goodput
}

#[test]
fn a_part_of_ones_own_is_chosen_described_and_kept_apart_in_the_store() {
    let own = "congestion = 'fixed'\n";
    let unknown = scenario(own).unwrap_err().to_string();
    assert!(unknown.contains("no such congestion control"), "{unknown}");
    let plain = scenario("").unwrap();
    let before = plain.digest(0).unwrap();

    extend(&FOUR, "1").unwrap();
    extend(&SCHEME, "").unwrap();
    let four = scenario(own).unwrap();
    // A window of four segments a round trip of 100 ms: 1 MB is about 171 round trips of them. Eight take half as many.
    let slow = seconds(&four);
    assert!((17.0..20.0).contains(&slow), "{slow} s");
    assert_eq!(seconds(&scenario("scheme = 'fixed'\n").unwrap()), slow);
    assert_eq!(describe("fixed").unwrap().len(), 2, "scheme and part");
    assert!(parts().iter().any(|part| part.name == "fixed" && part.reference == "a test"));
    let wrong = scenario("congestion = 'fixd'\n").unwrap_err().to_string();
    assert!(wrong.contains("did you mean `fixed`?") && wrong.contains("westwood"), "{wrong}");

    // Another version under the same name: what exists keeps its meaning, what is made now has the new one.
    let (first, by_scheme) = (four.digest(0).unwrap(), scenario("scheme = 'fixed'\n").unwrap().digest(0).unwrap());
    extend(&EIGHT, "2").unwrap();
    assert_eq!((four.digest(0).unwrap(), seconds(&four)), (first.clone(), slow));
    let eight = scenario(own).unwrap();
    let fast = seconds(&eight);
    assert!((8.5..10.5).contains(&fast), "{fast} s");
    assert_ne!(eight.digest(0).unwrap(), first);
    assert_ne!(scenario("scheme = 'fixed'\n").unwrap().digest(0).unwrap(), by_scheme);
    assert_eq!(scenario("").unwrap().digest(0).unwrap(), before, "who does not name it does not depend on it");

    assert!(matches!(extend(&NEWRENO, "1"), Err(CatalogueError::Taken { name: "newreno", .. })));
    assert_eq!(seconds(&scenario(own).unwrap()), fast, "a refusal changes nothing");
}

#[test]
fn a_part_that_cannot_go_on_ends_its_run() {
    extend(&FAILING, "1").unwrap();
    let failing = scenario("congestion = 'failing'\n").unwrap();
    let said = |error: Error| match error {
        Error::Part(failure) => failure.to_string(),
        other => panic!("{other}"),
    };
    let expected = "on_ack of the part `failing` failed: no more than 10 acknowledgements";
    assert_eq!(said(run(&failing, &RunOptions::default(), &mut Control::default()).unwrap_err()), expected);
    assert!(!has_failed());
    // It is over with that run.
    seconds(&scenario("").unwrap());
    let plan = Sweep::repeat(failing, 4).plan().unwrap();
    let error = execute(&plan, &ExecuteOptions { store: None, threads: Some(2) }, &mut Control::default());
    assert_eq!(said(error.unwrap_err()), expected);
}

#[test]
fn a_program_can_prepare_the_threads_of_a_sweep() {
    static PREPARED: AtomicUsize = AtomicUsize::new(0);
    let plan = Sweep::repeat(scenario("").unwrap(), 4).plan().unwrap();
    let around: fn(&mut (dyn FnMut() + Send)) = |work| {
        PREPARED.fetch_add(1, Ordering::Relaxed);
        work();
    };
    let mut control = Control { around: Some(around), ..Control::default() };
    let tables = execute(&plan, &ExecuteOptions { store: None, threads: Some(2) }, &mut control).unwrap();
    assert_eq!((tables.runs.num_rows(), PREPARED.load(Ordering::Relaxed)), (4, 2));
}
