//! Log-probabilities on the GPU: rows and tokens go there, what they come from comes back, and no logits.

use super::arguments::Arguments;
use super::driver::{Pinned, Stream};
use super::kernels::SCORE_SHARED_BYTES;
use super::region::Region;
use super::stage::Words;
use super::{Buffer, Cuda};
use crate::OpsError;
use crate::sampling::{Drawn, Normaliser, SamplingRequest, TokenLogprobs};

/// Words of what is wanted of a row, and bytes of what is found, as kernels/score.cu declares them.
const WANTED_WORDS: usize = 4;
const FOUND_BYTES: usize = 24;

/// A token under a row of logits, and how many of the likeliest are wanted beside it.
#[derive(Clone, Copy, Debug)]
pub struct Scored {
    pub row: usize,
    pub token: u32,
    pub count: usize,
}

/// What scores pass through; made with the first, and as large as was asked for so far.
#[derive(Debug, Default)]
pub struct Scorer {
    /// A bit for each row of the head, all set.
    present: Option<Region>,
    wanted: Option<Room>,
    /// `[rows]` of what is found, and then the keys of the likeliest tokens.
    found: Option<Room>,
}

#[derive(Debug)]
struct Room {
    region: Region,
    pinned: Pinned,
}

impl Room {
    /// What was kept, where it is large enough.
    fn of(kept: Option<Room>, stream: &Stream, bytes: usize) -> Result<Room, OpsError> {
        if let Some(room) = kept.filter(|room| room.region.bytes() >= bytes) {
            return Ok(room);
        }
        let bytes = bytes.next_power_of_two();
        let region = stream.allocate(bytes, "log-probabilities")?;
        Ok(Room { region, pinned: stream.pin(bytes)? })
    }
}

impl Scorer {
    /// Where the bits of so many tokens are.
    fn present(&mut self, stream: &Stream, tokens: usize) -> Result<u64, OpsError> {
        let bytes = 4 * tokens.div_ceil(32);
        if let Some(region) = self.present.as_ref().filter(|region| region.bytes() == bytes) {
            return Ok(region.address());
        }
        let region = stream.allocate(bytes, "the rows that there are")?;
        stream.write(&region, 0, &vec![u8::MAX; bytes]);
        Ok(self.present.insert(region).address())
    }

    pub fn score(
        &mut self,
        gpu: &Cuda,
        logits: &Buffer,
        scored: &[Scored],
    ) -> Result<Vec<TokenLogprobs>, OpsError> {
        if scored.is_empty() {
            return Ok(Vec::new());
        }
        let stream = &gpu.stream;
        let vocabulary = logits.width;
        let counts = scored.iter().map(|one| one.count.min(vocabulary));
        let present = self.present(stream, vocabulary)?;
        let wanted_bytes = 4 * WANTED_WORDS * scored.len();
        let wanted = Room::of(self.wanted.take(), stream, wanted_bytes)?;
        let wanted = self.wanted.insert(wanted);
        wanted.pinned.await_upload();
        let mut words = Words(wanted.pinned.bytes_mut());
        let mut place = 0;
        for ((index, one), count) in scored.iter().enumerate().zip(counts.clone()) {
            let fits = one.row < logits.room() && (one.token as usize) < vocabulary;
            assert!(fits, "a score of a row or a token that is not there");
            words.put(
                index * WANTED_WORDS,
                &[one.row as u32, one.token, count as u32, place as u32],
            );
            place += count;
        }
        stream.upload(&wanted.pinned, &wanted.region, wanted_bytes);
        let keys_at = FOUND_BYTES * scored.len();
        let bytes = keys_at + 8 * place;
        let found = Room::of(self.found.take(), stream, bytes)?;
        let found = self.found.insert(found);
        let function = (gpu.kernels.score, SCORE_SHARED_BYTES);
        let launch = gpu.kernels.by_clusters(function, scored.len(), stream);
        let arguments = Arguments::default()
            .region(&logits.region)
            .int(vocabulary)
            .address(present)
            .region(&wanted.region)
            .region(&found.region)
            .address(found.region.address() + keys_at as u64);
        stream.launch(launch, arguments);
        stream.download(&found.region, &mut found.pinned, bytes)?;
        let (of_rows, keys) = found.pinned.bytes()[..bytes].split_at(keys_at);
        let mut keys = keys.as_chunks::<8>().0.iter().map(|key| u64::from_le_bytes(*key));
        let of_rows = of_rows.as_chunks::<FOUND_BYTES>().0.iter();
        Ok(of_rows.zip(counts).map(|(of_row, count)| read(of_row, &mut keys, count)).collect())
    }
}

/// What was found of a row; its keys are the next `count`.
fn read(
    found: &[u8; FOUND_BYTES],
    keys: &mut impl Iterator<Item = u64>,
    count: usize,
) -> TokenLogprobs {
    let [low, high, maximum, own, rank, _] = found.as_chunks::<4>().0 else {
        unreachable!("a row of six words");
    };
    let [low, high, maximum, own, rank] =
        [low, high, maximum, own, rank].map(|word| u32::from_le_bytes(*word));
    let total = u64::from(high) << 32 | u64::from(low);
    let normaliser = Normaliser::new(f32::from_bits(maximum), total);
    let of_key = |key: u64| (key as u32 & 0x7F_FFFF, normaliser.logprob(logit_of(key)));
    TokenLogprobs {
        chosen: normaliser.logprob(f32::from_bits(own)),
        rank,
        top: keys.take(count).map(of_key).collect(),
    }
}

/// See kernels/sampler_row.cuh: 32 bits of the logit's rank, 23 of the id.
fn logit_of(key: u64) -> f32 {
    let ordered = !((key >> 23) as u32);
    f32::from_bits(if ordered >> 31 != 0 { ordered & 0x7FFF_FFFF } else { !ordered })
}

impl Cuda {
    /// Gives drawn tokens the log-probabilities that their requests ask for; draws leave the logits as they were.
    pub(super) fn score_draws(
        &self,
        logits: &Buffer,
        requests: &[Option<SamplingRequest>],
        drawn: &mut [Drawn],
        scorer: &mut Scorer,
    ) -> Result<(), OpsError> {
        let rows = requests.iter().zip(&*drawn).enumerate();
        let scored = rows.filter_map(|(row, (request, drawn))| {
            let count = request.as_ref()?.logprobs?;
            Some(Scored { row, token: drawn.token?, count })
        });
        let scored: Vec<Scored> = scored.collect();
        for (scored, found) in scored.iter().zip(scorer.score(self, logits, &scored)?) {
            drawn[scored.row].logprobs = Some(found);
        }
        Ok(())
    }
}
