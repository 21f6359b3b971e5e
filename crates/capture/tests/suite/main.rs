//! The reader of captures from outside, in one program: to build one for each file takes twice as long. What a reader
//! allocates is counted in another one.

mod both_ends;
mod bounds;
mod classification;
mod engine;
mod formats;
mod framing;
mod join;
mod limits;
mod odd;
mod order;
mod records;
mod series;
mod taken;
mod transformed;
mod truth;
mod worlds;
