//! What makes vectors of chunks: an encoder, or something predictable in tests.

use std::path::Path;

use serde::Deserialize;
use serde::de::Error;

use crate::corpus::store::manifest::{MANIFEST, ManifestFile};
use crate::corpus::{damaged, differs};
use crate::diagnosis::Failure;
use crate::encoder::{Document, Embedded, Encoder, EncoderError, EncoderOptions, cut_to};
use crate::hub::Card;
use crate::ops::{Device, Quantisation};

/// Texts to vectors, each a function of its own text alone.
pub trait Embed {
    /// What the vectors depend on; two corpora may be searched together where this is equal.
    fn identity(&self) -> Result<toml::Table, Failure>;

    /// Whether vectors have length 1.
    fn is_normalised(&self) -> bool;

    /// Numbers in a vector.
    fn width(&self) -> usize;

    /// `[documents][width]`.
    fn embed(&self, documents: &[Document<'_>]) -> Result<Vec<Vec<f32>>, Failure>;

    /// `[queries][width]`, and whether a query was cut.
    fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, Failure>;
}

impl Embed for Encoder {
    fn identity(&self) -> Result<toml::Table, Failure> {
        Ok(toml::Table::try_from(&self.identity).map_err(std::io::Error::other)?)
    }

    fn is_normalised(&self) -> bool {
        self.identity.normalised
    }

    fn width(&self) -> usize {
        self.identity.dims
    }

    fn embed(&self, documents: &[Document<'_>]) -> Result<Vec<Vec<f32>>, Failure> {
        Ok(self.embed_documents(documents)?)
    }

    fn embed_queries(&self, queries: &[&str]) -> Result<Embedded, Failure> {
        Ok(Encoder::embed_queries(self, queries)?)
    }
}

/// Whether two identities are of one encoder, by whatever name.
///
/// # Errors
/// They are not; the message names the first field that differs.
pub fn expect_encoder(one: &toml::Table, other: &toml::Table) -> Result<(), Failure> {
    let text = |table: &toml::Table, key: &str| {
        table.get(key).map_or("nothing".to_owned(), |value| value.to_string())
    };
    let keys = one.keys().chain(other.keys());
    let mut keys = keys.filter(|key| *key != "name");
    match keys.find(|key| one.get(*key) != other.get(*key)) {
        None => Ok(()),
        Some(key) => Err(differs(
            &format!("the encoder's `{key}`"),
            text(one, key),
            text(other, key),
            "vectors of two encoders cannot be compared: take the encoder of the corpus, as `wardround corpus verify DIR` names it",
        )),
    }
}

/// How a folder is opened: by the card of what was fetched into it.
pub fn encoder_options(directory: &Path, device: Device) -> Result<EncoderOptions, Failure> {
    let known = Card::of_directory(directory)?.map(Card::known);
    Ok(EncoderOptions { known, ..EncoderOptions::new(directory, device) })
}

/// The encoder of a folder as it is, on all of this machine's threads.
pub fn open_encoder(directory: &Path) -> Result<Encoder, Failure> {
    let cpu = Device::cpu(rayon::current_num_threads()).map_err(EncoderError::from)?;
    Ok(Encoder::open(&encoder_options(directory, cpu)?)?)
}

/// How the encoder of a corpus is opened again: as its identity says.
///
/// # Errors
/// A provenance that cannot be read; a quantisation or type that this version does not know.
pub fn encoder_of(
    file: &ManifestFile,
    directory: Option<&Path>,
    device: Device,
) -> Result<EncoderOptions, Failure> {
    let directory = directory.unwrap_or(&file.local.encoder);
    let options = encoder_options(directory, device)?;
    let read = of_identity(&file.manifest.encoder, options);
    read.map_err(|error| damaged(Path::new(MANIFEST), format!("of its encoder, {error}")))
}

/// What of an identity says how the encoder is opened again. One of an older version may lack a field, which then has its default; what it
/// names and this version does not know is no default.
#[derive(Deserialize)]
struct Opened {
    name: Option<String>,
    #[serde(default)]
    quantisation: Quantisation,
    dtype: Option<String>,
    dims: Option<usize>,
    document_tokens: Option<usize>,
}

fn of_identity(
    identity: &toml::Table,
    options: EncoderOptions,
) -> Result<EncoderOptions, toml::de::Error> {
    let opened: Opened = identity.clone().try_into()?;
    let card = opened.name.as_deref().and_then(Card::find);
    let dtype = opened.dtype.as_deref().unwrap_or("auto").parse();
    Ok(EncoderOptions {
        known: card.map(Card::known).or(options.known),
        quantisation: opened.quantisation,
        dtype: dtype.map_err(toml::de::Error::custom)?,
        dims: opened.dims,
        max_tokens: opened.document_tokens,
        ..options
    })
}

/// The first `dims` numbers, at length 1 again where the whole is.
pub fn cut(vector: &[f32], dims: usize, is_normalised: bool) -> Vec<f32> {
    if dims >= vector.len() {
        return vector.to_vec();
    }
    let wide: Vec<f64> = vector.iter().copied().map(f64::from).collect();
    cut_to(&wide, dims, is_normalised)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Cpu;

    #[test]
    fn what_an_identity_names_and_nobody_knows_is_no_default() {
        let read = |text: &str| {
            let options =
                EncoderOptions::new(Path::new("encoder"), Device::Cpu(Cpu::new(1).unwrap()));
            of_identity(&text.parse().unwrap(), options)
        };
        let known = read("quantisation = \"q8_0\"\ndims = 64").unwrap();
        assert_eq!((known.quantisation.name(), known.dims), ("q8_0", Some(64)));
        assert_eq!(read("").unwrap().quantisation, Quantisation::None);
        for (text, said) in [
            ("quantisation = \"q3_k\"", "unknown variant `q3_k`"),
            ("quantisation = 8", "`quantisation`"),
            ("dtype = \"f8\"", "f8"),
            ("dims = -1", "invalid value: integer `-1`"),
            ("document_tokens = \"many\"", "invalid type: string \"many\""),
        ] {
            let error = read(text).err().unwrap().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
