//! The objects inside the package, and one of them in the kernel for as long as a value lives.

use crate::{controls, Error, Result};
use libbpf_rs::{Link, MapCore as _, MapType, Object, ObjectBuilder, PrintLevel};
use std::ffi::{c_int, OsStr};
use std::path::PathBuf;
use std::sync::Mutex;

/// An object as clang made it.
#[derive(Debug)]
pub struct Embedded {
    /// The name of its source without `.bpf.c`.
    pub name: &'static str,
    /// The whole ELF file.
    pub octets: &'static [u8],
}

/// Where an ELF file's headers can be read in place.
#[repr(align(8))]
struct Aligned<const N: usize>([u8; N]);

extern "C" {
    /// libelf's last error, which is none afterwards: ours, see `elf_error.c`.
    fn elf_errno() -> c_int;
}

/// All objects of the package.
pub const OBJECTS: &[Embedded] = include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// A digest over all objects: two packages with the same digest load the same programs.
pub const DIGEST: &str = env!("WHYLOSS_BPF_DIGEST");

/// What the name of every control begins with.
pub const PREFIX: &str = "wl_";

/// The octets of a control's name in the kernel, with the zero at its end.
const NAME_SIZE: usize = 16;

/// A program of the object `select` for a security hook: it gives accepted connections their timer before a rule gives them their control. A kernel
/// without such hooks (`CONFIG_BPF_LSM`), or that refuses programs there, does without.
pub const OPTIONAL: &str = "wl_accept";

/// How to load an object.
#[derive(Debug, Clone)]
pub struct Options {
    /// The controls to load, by name; `None` is all that the object has.
    pub controls: Option<Vec<String>>,
    /// What stands in the kernel in place of [`PREFIX`]: names of controls are global, and a test that has its own disturbs nobody.
    pub prefix: String,
    /// A folder in a BPF file system where objects share their maps: a map whose name begins with [`PREFIX`] is taken from there, or put
    /// there by the first that has it.
    pub maps: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self { controls: None, prefix: PREFIX.to_owned(), maps: None }
    }
}

/// A control of a loaded object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// Its name in this package, which is that of the variable in C.
    pub name: String,
    /// Its name in the kernel: at most 15 octets, what `TCP_CONGESTION` takes.
    pub kernel_name: String,
}

/// An object in the kernel. Its programs and maps go when this value goes, and all links to them.
#[derive(Debug)]
pub struct Loaded {
    /// The object, for its maps and programs.
    pub object: Object,
    controls: Vec<Control>,
    whole: bool,
}

impl Loaded {
    /// Loads the object `name` of the package: every program passes the verifier, nothing is registered yet.
    pub fn new(name: &str, options: &Options) -> Result<Self> {
        match Self::load(name, options, true) {
            // Why the others are refused is told by the second attempt.
            Err(_) if name == "select" => Self::load(name, options, false),
            loaded => loaded,
        }
    }

    fn load(name: &str, options: &Options, whole: bool) -> Result<Self> {
        let embedded = OBJECTS.iter().find(|object| object.name == name).ok_or_else(|| Error::NoObject(name.to_owned()))?;
        let doing = format!("loading {name}");
        let mut open = said(&doing, || ObjectBuilder::default().open_memory(embedded.octets))?;
        for mut program in open.progs_mut().filter(|program| program.name() == OPTIONAL) {
            program.set_autoload(whole);
        }
        let mut controls = Vec::new();
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let name = map.name().to_string_lossy().into_owned();
            if options.controls.as_ref().is_some_and(|wanted| !wanted.contains(&name)) {
                said(&doing, || map.set_autocreate(false))?;
                continue;
            }
            let kernel_name = rename(map.initial_value_mut().unwrap_or_default(), &options.prefix);
            controls.push(Control { name, kernel_name });
        }
        if let Some(missing) =
            options.controls.iter().flatten().find(|wanted| controls.iter().all(|control| control.name != **wanted))
        {
            let known: Vec<_> = open.maps().filter(|map| map.map_type() == MapType::StructOps).collect();
            let known: Vec<_> = known.iter().map(|map| map.name().to_string_lossy()).collect();
            return Err(Error::NoControl { name: missing.clone(), known: known.join(", ") });
        }
        let shared = |name: &OsStr, kind: MapType| {
            // What holds a control is a map too, but belongs to one object.
            let is_shared = kind != MapType::StructOps && name.to_string_lossy().starts_with(PREFIX);
            options.maps.as_ref().filter(|_| is_shared).map(|folder| folder.join(name))
        };
        for mut map in open.maps_mut() {
            if let Some(path) = shared(map.name(), map.map_type()).filter(|path| path.exists()) {
                said(&doing, || map.reuse_pinned_map(path))?;
            }
        }
        let mut object = said(&doing, || open.load())?;
        for mut map in object.maps_mut() {
            if let Some(path) = shared(map.name(), map.map_type()).filter(|path| !path.exists()) {
                said(&doing, || map.pin(path))?;
            }
        }
        let loaded = Self { object, controls, whole };
        loaded.begin_counting()?;
        Ok(loaded)
    }

    /// Makes the rows that the controls count in: a program adds to a row, but makes none, so that no name fills the map.
    fn begin_counting(&self) -> Result<()> {
        let Some(map) = self.object.maps().find(|map| map.name() == "wl_controls") else { return Ok(()) };
        let processors = said("counting the processors", libbpf_rs::num_possible_cpus)?;
        for control in &self.controls {
            let sets_rto_min = controls::control(&control.name).is_some_and(|control| control.sets_rto_min);
            // Its last field; the others are counts.
            let counts = vec![0; map.value_size() as usize - size_of::<u64>()];
            let row = [counts, u64::from(sets_rto_min).to_ne_bytes().to_vec()].concat();
            said("making a row of counters", || {
                map.update_percpu(&name_field(&control.kernel_name), &vec![row; processors], libbpf_rs::MapFlags::ANY)
            })?;
        }
        Ok(())
    }

    /// Whether the kernel has taken all programs, [`OPTIONAL`] among them.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// The controls that were loaded.
    pub fn controls(&self) -> &[Control] {
        &self.controls
    }

    /// Registers the control `name`, so that connections can take it. It is registered until the link goes; connections that have it
    /// then keep it.
    pub fn register(&mut self, name: &str) -> Result<Link> {
        let map = self.object.maps_mut().find(|map| map.map_type() == MapType::StructOps && map.name() == name);
        let mut map = map.ok_or_else(|| Error::NoControl {
            name: name.to_owned(),
            known: self.controls.iter().map(|control| control.name.as_str()).collect::<Vec<_>>().join(", "),
        })?;
        said(&format!("registering {name}"), || map.attach_struct_ops())
    }
}

/// The controls of an object, if it is loaded with `prefix`.
pub fn controls(object: &Embedded, prefix: &str) -> Result<Vec<Control>> {
    let mut open = said(&format!("reading {}", object.name), || ObjectBuilder::default().open_memory(object.octets))?;
    let controls = open.maps_mut().filter(|map| map.map_type() == MapType::StructOps).map(|mut map| Control {
        name: map.name().to_string_lossy().into_owned(),
        kernel_name: rename(map.initial_value_mut().unwrap_or_default(), prefix),
    });
    Ok(controls.collect())
}

/// Puts `prefix` in the place of [`PREFIX`] in the name that a `tcp_congestion_ops` begins with, and gives the name.
fn rename(ops: &mut [u8], prefix: &str) -> String {
    let field = &mut ops[..NAME_SIZE];
    let old = String::from_utf8_lossy(field).trim_end_matches('\0').to_owned();
    let mut new = format!("{prefix}{}", old.strip_prefix(PREFIX).unwrap_or(&old));
    new.truncate(NAME_SIZE - 1);
    field.copy_from_slice(&name_field(&new));
    new
}

/// A control's name as the kernel keeps it.
pub fn name_field(name: &str) -> [u8; NAME_SIZE] {
    let mut field = [0; NAME_SIZE];
    let octets = &name.as_bytes()[..name.len().min(NAME_SIZE - 1)];
    field[..octets.len()].copy_from_slice(octets);
    field
}

/// What libbpf has said since the current call began; one call at a time.
static SAID: Mutex<String> = Mutex::new(String::new());
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Does `call` and puts what libbpf says meanwhile into the error.
pub(crate) fn said<T>(doing: &str, call: impl FnOnce() -> libbpf_rs::Result<T>) -> Result<T> {
    let guard = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, message| {
        SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push_str(&message);
    })));
    // SAFETY: it reads and writes a variable of this thread. That it is called here is also what makes the linker take ours.
    unsafe { elf_errno() };
    let result = call();
    let said = std::mem::take(&mut *SAID.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    drop(guard);
    result.map_err(|error| Error::Bpf {
        doing: doing.to_owned(),
        cause: error.to_string(),
        said: if said.is_empty() { said } else { format!("\n{}", said.trim_end()) },
    })
}
