//! What holds between the parts, in one program: to build one for each file takes twice as long.

mod agreement;
mod architecture;
mod auto;
mod base_station;
mod bbr;
mod command_line;
mod common;
mod cubic;
mod dccp;
mod forged;
mod formulas;
mod golden;
mod hand_offs;
mod modules;
mod networks;
mod recovery;
mod ring;
mod roles;
mod scripts;
mod separations;
mod seq;
mod stations;
mod timeouts;
mod waves;
mod worlds;
