//! The program as its users run it: real processes, real sockets on the loopback interface, real files.

mod asking;
mod breaking;
mod configuring;
mod copying;
mod copying_again;
mod demonstrating;
mod depositing;
mod far;
mod hiding;
mod interop;
mod interrupting;
mod limiting;
mod linking;
mod man_pages;
mod piping;
mod profiles;
mod program;
mod refusing;
mod signals;
mod stdout;
mod surface;
mod telling;
mod terminal;
mod transferring;
mod tree;
mod trees;
