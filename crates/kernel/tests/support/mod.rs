//! What tests on the running kernel share.
// Each test takes what it needs.
#![allow(dead_code)]

pub mod middlebox;
pub mod parts;
pub mod path;
pub mod simulated;
pub mod traffic;

use libbpf_rs::{MapCore as _, MapHandle};
use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use whyloss_kernel::place::Place;
use whyloss_net::namespace::missing_capability;

/// Whether programs can be loaded here; if not, says on standard error why the test is skipped.
pub fn can_load() -> bool {
    match whyloss_kernel::check::loadable() {
        Ok(()) => true,
        Err(reason) => {
            skip(&reason.to_string());
            false
        }
    }
}

/// Says on standard error why a test is skipped. Not by `eprintln!`, whose words the test runner keeps to itself.
pub fn skip(reason: &str) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let _ = writeln!(std::io::stderr(), "{test} skipped: {reason}");
}

/// The controls that the kernel has now whose names begin with `prefix`.
pub fn available(prefix: &str) -> Vec<String> {
    whyloss_kernel::check::available().into_iter().filter(|name| name.starts_with(prefix)).collect()
}

/// A place that no other test and no user of the machine has. Names of controls are global, so each test has its own `prefix`.
pub struct PrivatePlace(Place);

/// What the names of all private places begin with.
const PLACES: &str = "/run/whyloss-test-";

/// `prefix` ends with an underscore.
pub fn private_place(prefix: &str) -> PrivatePlace {
    unload_leftovers();
    PrivatePlace(Place { folder: PathBuf::from(format!("{PLACES}{prefix}{}", std::process::id())), prefix: prefix.to_owned() })
}

/// Unloads what tests have left that were killed: their programs would write options into the segments of this one.
fn unload_leftovers() {
    for entry in Path::new("/run").read_dir().into_iter().flatten().flatten() {
        let folder = entry.path();
        let Some((prefix, process)) = folder.to_str().and_then(|name| name.strip_prefix(PLACES)?.rsplit_once('_')) else {
            continue;
        };
        if process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists() {
            let _ = whyloss_kernel::load::unload(&Place { folder: folder.clone(), prefix: format!("{prefix}_") });
        }
    }
}

impl std::ops::Deref for PrivatePlace {
    type Target = Place;

    fn deref(&self) -> &Place {
        &self.0
    }
}

impl Drop for PrivatePlace {
    /// Whatever became of the test, the machine is as before.
    fn drop(&mut self) {
        let _ = whyloss_kernel::load::unload(&self.0);
    }
}

/// Controls that are loaded under a prefix of their own, for one test at a time; unloaded at the end.
pub struct Loaded {
    pub place: PrivatePlace,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Loaded {
    /// Loads `controls`, all if none is named; says why and gives `None` where this machine cannot.
    pub fn new(prefix: &str, controls: &[&str]) -> Option<Self> {
        if !can_load() {
            return None;
        }
        if let Some(reason) = missing_capability() {
            skip(&reason);
            return None;
        }
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = private_place(prefix);
        let controls: Vec<_> = controls.iter().map(|&name| name.to_owned()).collect();
        whyloss_kernel::load::load(&place, &controls).expect("loads");
        Some(Self { place, _alone: alone })
    }
}

/// Waits until `condition` holds. Gives whether it did within ten seconds: the kernel takes some things away a little later,
/// on a busy machine some seconds.
pub fn soon(condition: impl FnMut() -> bool) -> bool {
    within(Duration::from_secs(10), condition)
}

/// Waits until `condition` holds. Gives whether it did within `time`.
pub fn within(time: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while !condition() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

/// Connections of test beds, by their addresses, among those whose damaged segments are recognised. The machine may have others.
pub fn flows(place: &Place) -> usize {
    let map = MapHandle::from_pinned_path(place.mounted_on().join("maps/wl_flows")).expect("a map");
    let of_bed = |key: &Vec<u8>| {
        let remote = key.first_chunk::<16>().map(|octets| Ipv6Addr::from(*octets).to_canonical());
        match remote.expect("a key begins with an address") {
            IpAddr::V4(address) => matches!(address.octets(), [10, 77 | 100, ..]),
            IpAddr::V6(address) => address.segments()[0] == 0xfd77,
        }
    };
    map.keys().filter(of_bed).count()
}

/// How often a test repeats: `quick` times, or as often as `WHYLOSS_SOAK` says (see `make soak`).
pub fn repetitions(quick: usize) -> usize {
    std::env::var("WHYLOSS_SOAK").ok().and_then(|count| count.parse().ok()).unwrap_or(quick)
}

const CHILD: &str = "WHYLOSS_TEST_CHILD";

/// Starts this test program again, to do the job `job` at `place` in its (ignored) test `child`.
pub fn start_child(job: &str, place: &Place) -> Child {
    start_child_under(&[], job, place)
}

/// As [`start_child`], by a command that starts the one which it is given.
pub fn start_child_under(starter: &[&str], job: &str, place: &Place) -> Child {
    let program = std::env::current_exe().expect("the test program");
    let mut words = starter.iter().map(|&word| word.into()).chain([program.into_os_string()]);
    Command::new(words.next().expect("at least the program"))
        .args(words)
        .args(["--ignored", "--exact", "child"])
        .env(CHILD, job)
        .env("WHYLOSS_KERNEL_FOLDER", &place.folder)
        .env("WHYLOSS_KERNEL_PREFIX", &place.prefix)
        .stdout(Stdio::null())
        .spawn()
        .expect("the test program starts")
}

/// The job that this process was started for by [`start_child`].
pub fn job_of_child() -> Option<String> {
    std::env::var(CHILD).ok()
}
