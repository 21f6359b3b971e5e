//! The simulator from outside, in one program: to build one for each file takes twice as long.

mod captures;
mod crossing;
mod datagrams;
mod dccp;
mod differentiators;
mod disciplines;
mod last_hop_and_backbone;
mod middleboxes;
mod moves;
mod queues;
mod radio;
mod receiver_side;
mod reports;
mod selective;
mod shared;
mod transfers;
mod varying;
