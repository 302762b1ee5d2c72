//! Bundles as senders and hospitals meet them: made, signed, carried through hostile hands, installed, gone back from.

mod contents;
mod create;
mod gates;
mod install;
mod maker;
mod mutations;
mod updates;
mod verify;
