#![allow(unused)] fn main() {}
