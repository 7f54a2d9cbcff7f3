//! The program as its users run it: real processes, real sockets on the loopback interface, real files.

mod asking;
mod breaking;
mod demonstrating;
mod program;
mod refusing;
mod transferring;
mod tree;
