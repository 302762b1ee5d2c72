//! In place of the CUDA backend, in builds without it: a machine that is never there.

use std::convert::Infallible;

use super::checkpoint::RawTensor;
use super::sampling::{Drawn, Order};
use super::{
    Activation, AttentionShape, Backend, HeadNorms, Limits, Machine, Numbers, OpsError, PageShape,
    Precision, Rows,
};

/// No value of this type exists.
#[derive(Clone, Debug)]
pub struct Cuda(Infallible);

impl Cuda {
    /// # Errors
    /// Always.
    pub fn open(ordinal: usize) -> Result<Cuda, OpsError> {
        Err(OpsError::NoDevice {
            device: format!("cuda:{ordinal}"),
            reason: "this build has no CUDA (feature `cuda`)".to_owned(),
        })
    }

    /// What this build can say of its GPUs.
    pub fn describe_all() -> Vec<String> {
        Vec::new()
    }

    /// The same GPU with a stream of its own.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn for_engine(&self) -> Result<Cuda, OpsError> {
        match self.0 {}
    }

    pub fn threads(&self) -> usize {
        match self.0 {}
    }

    pub fn available_memory(&self) -> usize {
        match self.0 {}
    }

    pub fn measure_limits(&self, _buffer_bytes: usize) -> Limits {
        match self.0 {}
    }
}

impl Backend for Cuda {
    type Buffer = Infallible;
    type Matrix = Infallible;
    type Vector = Infallible;
    type Rope = Infallible;
    type Pages = Infallible;
    type Stage = Infallible;
    type Step<'a> = Infallible;

    const MACHINE: Machine = Machine::Cuda;

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
        _: impl FnOnce(Self::Step<'a>),
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
