//! Draws on the GPU: requests and masks go there, token ids come back.

use std::sync::Arc;

use super::arguments::Arguments;
use super::driver::Pinned;
use super::kernels::DRAW_SHARED_BYTES;
use super::region::Region;
use super::stage::Words;
use super::{Buffer, Cuda};
use crate::OpsError;
use crate::sampling::{Drawn, SamplingRequest};

/// No mask; no token.
const NONE: u32 = u32::MAX;
/// Words of a request, as kernels/sampler.cu declares it.
const REQUEST_WORDS: usize = 10;

#[derive(Debug)]
pub struct Drawer {
    /// Requests `[rows][10]`, then masks `[2 · rows][⌈vocabulary / 32⌉]`.
    pinned: Pinned,
    region: Region,
    drawn: Region,
    back: Pinned,
    rows: usize,
}

impl Drawer {
    pub fn new(gpu: &Cuda, rows: usize, vocabulary: usize) -> Result<Drawer, OpsError> {
        let bytes = 4 * rows * (REQUEST_WORDS + 2 * vocabulary.div_ceil(32));
        Ok(Drawer {
            pinned: gpu.stream.pin(bytes)?,
            region: gpu.stream.allocate(bytes, "masks")?,
            drawn: gpu.stream.allocate(4 * rows, "draws")?,
            back: gpu.stream.pin(4 * rows)?,
            rows,
        })
    }

    /// Samples the first rows of `logits`, one a request.
    pub fn draw(
        &mut self,
        gpu: &Cuda,
        logits: &Buffer,
        requests: &[Option<SamplingRequest>],
    ) -> Result<Vec<Drawn>, OpsError> {
        assert!(requests.len() <= self.rows, "more draws than the drawer was made for");
        self.pinned.await_upload();
        let mut masks = Masks {
            words: Words(self.pinned.bytes_mut()),
            first: self.rows * REQUEST_WORDS,
            each: logits.width.div_ceil(32),
            shared: Vec::new(),
            count: 0,
        };
        for (index, request) in requests.iter().enumerate() {
            let words = request.as_ref().map_or(IDLE, |request| masks.describe(request));
            masks.words.put(index * REQUEST_WORDS, &words);
        }
        let (first, used) = (masks.first, masks.first + masks.count * masks.each);
        gpu.stream.upload(&self.pinned, &self.region, 4 * used);
        let masks = self.region.address() + 4 * first as u64;
        let function = (gpu.kernels.draw, DRAW_SHARED_BYTES);
        let launch = gpu.kernels.by_clusters(function, requests.len(), &gpu.stream);
        let arguments = Arguments::default()
            .region(&logits.region)
            .int(logits.width)
            .address(masks)
            .address(masks)
            .region(&self.region)
            .region(&self.drawn);
        gpu.stream.launch(launch, arguments);
        let bytes = 4 * requests.len();
        gpu.stream.download(&self.drawn, &mut self.back, bytes)?;
        let ids = self.back.bytes()[..bytes].as_chunks::<4>().0.iter();
        let drawn = ids.zip(requests).map(|(id, request)| Drawn {
            token: Some(u32::from_le_bytes(*id)).filter(|id| *id != NONE && request.is_some()),
            logprobs: None,
            is_broken: false,
        });
        Ok(drawn.collect())
    }
}

/// The parameters of a row without a request: the likeliest token, which is not read.
const IDLE: [u32; REQUEST_WORDS] = [0, 0, 0, 0, 0x3F80_0000, 0, 0x3F80_0000, NONE, NONE, 0];

/// Masks as they are written; one that several requests share is sent once.
struct Masks<'a> {
    words: Words<'a>,
    first: usize,
    each: usize,
    shared: Vec<(Arc<[u32]>, u32)>,
    count: usize,
}

impl Masks<'_> {
    fn describe(&mut self, request: &SamplingRequest) -> [u32; REQUEST_WORDS] {
        let known = self.shared.iter().find(|(mask, _)| Arc::ptr_eq(mask, &request.allowed));
        let allowed = match known {
            Some((_, place)) => *place,
            None => {
                let place = self.add(&request.allowed);
                self.shared.push((request.allowed.clone(), place));
                place
            }
        };
        let sampling = &request.sampling;
        let seen = match sampling.penalty() {
            Some(_) => {
                let mut mask = vec![0; self.each];
                for token in &request.seen {
                    mask[*token as usize / 32] |= 1 << (token % 32);
                }
                self.add(&mask)
            }
            None => NONE,
        };
        [
            request.random as u32,
            (request.random >> 32) as u32,
            sampling.temperature.to_bits(),
            sampling.top_k.unwrap_or(0),
            sampling.top_p.unwrap_or(1.0).to_bits(),
            sampling.min_p.unwrap_or(0.0).to_bits(),
            sampling.penalty().unwrap_or(1.0).to_bits(),
            allowed,
            seen,
            0,
        ]
    }

    /// A mask that is shorter than the vocabulary forbids the rest.
    fn add(&mut self, mask: &[u32]) -> u32 {
        let place = self.count;
        let at = self.first + place * self.each;
        let given = &mask[..mask.len().min(self.each)];
        self.words.put(at, given);
        self.words.clear(at + given.len(), self.each - given.len());
        self.count += 1;
        place as u32
    }
}
