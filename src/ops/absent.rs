//! In place of a backend that this build does not have: a machine that is never there.

use std::convert::Infallible;
use std::fmt::Debug;
use std::marker::PhantomData;

use super::checkpoint::RawTensor;
use super::sampling::{Drawn, Order};
use super::{
    Activation, AttentionShape, Backend, HeadNorms, Machine, Numbers, OpsError, PageShape,
    Precision, Rows,
};

/// What kind of machine it would be.
pub trait Kind: Clone + Debug + Send + Sync + 'static {
    const MACHINE: Machine;
}

/// No value of this type exists.
#[derive(Clone, Debug)]
pub struct Absent<K>(pub(super) Infallible, PhantomData<K>);

impl<K: Kind> Absent<K> {
    /// What this build can say of such machines.
    pub fn describe_all() -> Vec<String> {
        Vec::new()
    }

    pub fn threads(&self) -> usize {
        match self.0 {}
    }
}

impl<K: Kind> Backend for Absent<K> {
    type Buffer = Infallible;
    type Matrix = Infallible;
    type Vector = Infallible;
    type Rope = Infallible;
    type Pages = Infallible;
    type Stage = Infallible;
    type Step<'a> = Infallible;

    const MACHINE: Machine = K::MACHINE;

    fn kind(&self) -> String {
        match self.0 {}
    }

    fn run<T: Send>(&self, _: impl FnOnce() -> T + Send) -> T {
        match self.0 {}
    }

    fn pack(&self, _: &[RawTensor<'_>], _: usize, _: Precision) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn pack_gated(
        &self,
        _: &[RawTensor<'_>; 2],
        _: usize,
        _: Precision,
    ) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn vector(&self, _: Vec<f32>) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn rope(&self, _: &[f32], _: usize) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn pages(&self, _: PageShape, _: usize) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn buffer(&self, _: usize, _: usize, _: Numbers) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn stage(
        &self,
        _: PageShape,
        _: usize,
        _: (usize, usize, usize),
    ) -> Result<Infallible, OpsError> {
        match self.0 {}
    }

    fn compute<'a>(
        &self,
        _: Rows<'a>,
        _: &'a [usize],
        _: &'a mut Infallible,
        _: impl FnMut(Self::Step<'a>),
    ) {
        match self.0 {}
    }

    fn embed(&self, _: &Infallible, _: Infallible, _: f32, _: &mut Infallible) {
        match self.0 {}
    }

    fn rms_norm(&self, _: &Infallible, _: &Infallible, _: f32, _: &mut Infallible) {
        match self.0 {}
    }

    fn add_norm(
        &self,
        _: (&mut Infallible, &Infallible),
        _: (Option<&Infallible>, Option<&Infallible>),
        _: f32,
        _: &mut Infallible,
    ) {
        match self.0 {}
    }

    fn gather_norm(
        &self,
        _: &Infallible,
        _: Infallible,
        _: &Infallible,
        _: f32,
        _: &mut Infallible,
    ) {
        match self.0 {}
    }

    fn matmul(&self, _: &Infallible, _: &Infallible, _: &mut Infallible) {
        match self.0 {}
    }

    fn matmul_gated(
        &self,
        _: &Infallible,
        _: &Infallible,
        _: Activation,
        _: &mut Infallible,
        _: &mut Infallible,
    ) {
        match self.0 {}
    }

    fn rotate_and_store(
        &self,
        _: (&mut Infallible, &mut Infallible),
        _: Option<&HeadNorms<Infallible>>,
        _: &Infallible,
        _: Infallible,
        _: (&mut Infallible, usize),
    ) {
        match self.0 {}
    }

    fn attention(
        &self,
        _: &Infallible,
        _: AttentionShape,
        _: Infallible,
        _: (&Infallible, usize),
        _: &mut Infallible,
    ) {
        match self.0 {}
    }

    fn draw(
        &self,
        _: &mut Infallible,
        _: &[Option<Order>],
        _: &mut Infallible,
    ) -> Result<Vec<Drawn>, OpsError> {
        match self.0 {}
    }

    fn read(&self, _: &Infallible, _: usize) -> Result<Vec<f32>, OpsError> {
        match self.0 {}
    }
}
