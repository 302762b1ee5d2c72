//! The published multi-agent systems, one directory each: the protocol as straight-line code.

pub mod in_flight;
pub mod medmad;
