//! Results on disk, found by what they are the results of.
//!
//! A key is the digest of everything that decides a run: the resolved scenario, the contents of its pattern files, the number of the
//! run and the version of the engine. Runs of one point are kept together in *parts*: files that are written whole and never changed.
//! A part is a header, Arrow IPC streams and a digest over all of it, so that a file that a failing disk has spoilt is not believed.

use crate::error::Error;
use crate::key::ENGINE;
use crate::tables::{Tables, NAMES};
use crate::whole_file::{write_whole, TEMPORARY};
use arrow_array::RecordBatch;
use blake3::Hash;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::OsString;
use std::fs::{DirEntry, File};
use std::io::{BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

const MAGIC: &[u8; 8] = b"whyloss1";
const DIGEST: usize = 32;
/// Digits of a point's key that the names of its parts begin with.
const STEM: usize = 32;

/// A folder of results.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

/// What stands at the beginning of a part.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    engine: String,
    runs: Vec<HeaderRun>,
    /// Octets of each table's stream.
    streams: [usize; NAMES.len()],
}

/// One run of a part.
#[derive(Debug, Serialize, Deserialize)]
struct HeaderRun {
    key: String,
    /// Rows of each table.
    rows: [usize; NAMES.len()],
}

impl Store {
    /// Opens the folder `root`, making it if need be, and takes away what killed processes left half written.
    pub fn open(root: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(root).map_err(|source| Error::Write { path: root.to_owned(), source })?;
        let store = Self { root: root.to_owned() };
        for folder in std::fs::read_dir(root).into_iter().flatten().flatten() {
            remove_leftovers(&folder.path());
        }
        Ok(store)
    }

    fn folder(&self, point: &Hash) -> PathBuf {
        self.root.join(&point.to_hex()[..2])
    }

    /// That runs of `point` are not there any more.
    pub fn lacks(&self, point: &Hash) -> Error {
        let path = self.folder(point).join(format!("{}-*.part", stem(point)));
        Error::Read {
            path,
            source: std::io::Error::new(std::io::ErrorKind::NotFound, "runs of this point were taken away meanwhile"),
        }
    }

    /// What is there at this moment.
    pub fn listing(&self) -> Listing<'_> {
        Listing { store: self, folders: HashMap::new() }
    }

    /// Keeps runs of `point`, and says how many octets they take.
    pub fn keep(&self, point: &Hash, runs: &[(Hash, &Tables)]) -> Result<usize, Error> {
        let mut name = blake3::Hasher::new();
        for (key, _) in runs {
            name.update(key.as_bytes());
        }
        let folder = self.folder(point);
        std::fs::create_dir_all(&folder).map_err(|source| Error::Write { path: folder.clone(), source })?;
        let mut place = folder.join(format!("{}-{}.part", stem(point), &name.finalize().to_hex()[..16]));
        // Somebody's folder can be there.
        while place.is_dir() {
            place.set_extension("1.part");
        }
        let part = part_bytes(runs);
        write_whole(&place, &part)?;
        Ok(part.len())
    }

    /// Where it lies.
    pub fn place(&self) -> &Path {
        &self.root
    }
}

/// The parts of a store, as they were when the folder of each was first looked at: reading a folder for each of its points takes long.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    store: &'a Store,
    /// Names of the parts in a folder, by what they begin with.
    folders: HashMap<PathBuf, HashMap<String, Vec<OsString>>>,
}

impl Listing<'_> {
    /// The keys of the runs of `point` that are there, by what the parts say of themselves: a part that was spoilt is noticed when it is read.
    pub fn keys(&mut self, point: &Hash) -> HashSet<Hash> {
        self.parts(point).iter().flat_map(|path| keys_of(path)).collect()
    }

    /// The runs of `point` that are there.
    pub fn runs(&mut self, point: &Hash) -> Runs {
        let parts = self.parts(point);
        let mut at: HashMap<Hash, Vec<usize>> = HashMap::new();
        for (index, path) in parts.iter().enumerate() {
            keys_of(path).for_each(|key| at.entry(key).or_default().push(index));
        }
        Runs { parts, at, open: VecDeque::new() }
    }

    fn parts(&mut self, point: &Hash) -> Vec<PathBuf> {
        let (folder, stem) = (self.store.folder(point), stem(point));
        let parts = self.folders.entry(folder.clone()).or_insert_with(|| by_stem(&folder));
        parts.get(&stem).into_iter().flatten().map(|name| folder.join(name)).collect()
    }
}

/// The runs of a point in a store. Parts are read when a run of theirs is taken, and few are held at a time.
#[derive(Debug)]
pub(crate) struct Runs {
    parts: Vec<PathBuf>,
    /// Parts that say that they have a run, by its key.
    at: HashMap<Hash, Vec<usize>>,
    /// Parts that are read, and what has not been taken of them.
    open: VecDeque<(usize, HashMap<Hash, Tables>)>,
}

/// Parts that are held at a time. Runs lie in them nearly in order: threads finish some of them a little early or late.
const OPEN: usize = 4;

impl Runs {
    /// Takes the run with this key, if it is there and its part is whole.
    pub fn take(&mut self, key: &Hash) -> Option<Tables> {
        for index in self.at.get(key)? {
            if !self.open.iter().any(|(open, _)| open == index) {
                let runs = std::fs::read(&self.parts[*index]).ok().and_then(|bytes| read_part(&bytes)).unwrap_or_default();
                self.open.truncate(OPEN - 1);
                self.open.push_front((*index, runs.into_iter().collect()));
            }
            let found = self.open.iter_mut().find(|(open, _)| open == index).and_then(|(_, runs)| runs.remove(key));
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// What the names of all parts of `point` begin with.
pub(crate) fn stem(point: &Hash) -> String {
    point.to_hex()[..STEM].to_owned()
}

/// Names of the parts in `folder`, by what they begin with. What is no file is none: reading it may never end.
fn by_stem(folder: &Path) -> HashMap<String, Vec<OsString>> {
    let mut parts: HashMap<String, Vec<OsString>> = HashMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let stem = name.to_str().and_then(|name| name.split_once('-')).filter(|(stem, _)| stem.len() == STEM);
        if let Some((stem, _)) = stem.filter(|_| is_file(&entry)) {
            parts.entry(stem.to_owned()).or_default().push(name);
        }
    }
    parts
}

/// Whether it is a file, or a link to one.
fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_file() || (kind.is_symlink() && entry.path().is_file()))
}

/// The keys of the runs of a part, by what it says of itself.
fn keys_of(part: &Path) -> impl Iterator<Item = Hash> {
    let header = File::open(part).ok().and_then(|file| read_header(&mut BufReader::new(file)));
    header.into_iter().flat_map(|header| header.runs).filter_map(|run| Hash::from_hex(run.key).ok())
}

fn part_bytes(runs: &[(Hash, &Tables)]) -> Vec<u8> {
    let whole = Tables::concat(&runs.iter().map(|(_, tables)| *tables));
    let streams = whole.all().map(|(_, table)| stream_bytes(table));
    let header = Header {
        engine: ENGINE.to_owned(),
        runs: runs
            .iter()
            .map(|(key, tables)| HeaderRun {
                key: key.to_hex().to_string(),
                rows: tables.all().map(|(_, table)| table.num_rows()),
            })
            .collect(),
        streams: streams.each_ref().map(Vec::len),
    };
    let header = serde_json::to_vec(&header).expect("plain values");
    let mut bytes = Vec::with_capacity(64 + header.len() + streams.iter().map(Vec::len).sum::<usize>());
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&header);
    for stream in &streams {
        bytes.extend_from_slice(stream);
    }
    let digest = blake3::hash(&bytes);
    bytes.extend_from_slice(digest.as_bytes());
    bytes
}

/// What a part says of itself, or nothing if it is none.
fn read_header(part: &mut impl Read) -> Option<Header> {
    let (mut magic, mut length) = ([0; MAGIC.len()], [0; 8]);
    part.read_exact(&mut magic).ok().filter(|()| magic == *MAGIC)?;
    part.read_exact(&mut length).ok()?;
    let mut header = Vec::new();
    part.take(u64::from_le_bytes(length)).read_to_end(&mut header).ok()?;
    serde_json::from_slice(&header).ok()
}

/// The runs of a part, or nothing if it is not whole.
fn read_part(bytes: &[u8]) -> Option<Vec<(Hash, Tables)>> {
    let (body, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST)?)?;
    if blake3::hash(body).as_bytes() != digest {
        return None;
    }
    let (length, rest) = body.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let (header, mut rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let header: Header = serde_json::from_slice(header).ok()?;
    let mut tables = Vec::with_capacity(NAMES.len());
    for length in header.streams {
        let (stream, after) = rest.split_at_checked(length)?;
        tables.push(read_stream(stream)?);
        rest = after;
    }
    let whole = Tables::from_array(tables.try_into().ok()?);
    let mut at = [0; NAMES.len()];
    let mut runs = Vec::with_capacity(header.runs.len());
    for run in header.runs {
        let ranges: [(usize, usize); NAMES.len()] = std::array::from_fn(|table| (at[table], run.rows[table]));
        at.iter_mut().zip(run.rows).for_each(|(at, rows)| *at += rows);
        runs.push((Hash::from_hex(run.key).ok()?, whole.slice(&ranges)));
    }
    Some(runs)
}

fn stream_bytes(table: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(&mut bytes, &table.schema()).expect("memory takes everything");
    writer.write(table).expect("memory takes everything");
    writer.finish().expect("memory takes everything");
    drop(writer);
    bytes
}

fn read_stream(bytes: &[u8]) -> Option<RecordBatch> {
    let mut reader = arrow_ipc::reader::StreamReader::try_new(Cursor::new(bytes), None).ok()?;
    let schema = reader.schema();
    match reader.next() {
        Some(batch) => batch.ok(),
        None => Some(RecordBatch::new_empty(schema)),
    }
}

/// Takes away temporary files that nobody writes any more: writing one takes milliseconds.
fn remove_leftovers(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let old = |entry: &std::fs::DirEntry| {
            let age = SystemTime::now().duration_since(entry.metadata().ok()?.modified().ok()?).ok()?;
            Some(age > Duration::from_secs(60))
        };
        if entry.file_name().to_string_lossy().starts_with(TEMPORARY) && old(&entry) == Some(true) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}
