//! The laboratory from outside, in one program: linking Arrow and Parquet four times would take longer than all the tests.

mod applications;
mod bad_input;
mod documents;
mod examples;
mod kinds;
mod links;
mod long_runs;
mod sweeps;
