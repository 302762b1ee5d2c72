//! What a user leaves out of the kernels by wgmma.

use crate::OpsError;

/// What to leave out where a GPU stumbles over it: `wgmma`, or of its kernels `units`, products by CTAs that stay, `waves`, those of few
/// rows, or `attention`. That changes how fast a step is, not its bits.
pub const WITHOUT: &str = "WARDROUND_CUDA_WITHOUT";

pub fn left_out() -> Result<LeftOut, OpsError> {
    LeftOut::named(&std::env::var(WITHOUT).unwrap_or_default())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub units: bool,
    pub waves: bool,
    pub attention: bool,
}

impl LeftOut {
    const ALL: LeftOut = LeftOut { units: true, waves: true, attention: true };

    fn named(names: &str) -> Result<LeftOut, OpsError> {
        let mut left_out = LeftOut::default();
        for name in names.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            match name {
                "wgmma" => left_out = LeftOut::ALL,
                "units" => left_out.units = true,
                "waves" => left_out.waves = true,
                "attention" => left_out.attention = true,
                other => {
                    return Err(OpsError::unknown(format!(
                        "{WITHOUT} names `{other}`, which cannot be left out; known: wgmma, units, waves, attention"
                    )));
                }
            }
        }
        Ok(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_are_left_out_have_names() {
        let named = |names| LeftOut::named(names).ok();
        assert_eq!(named(""), Some(LeftOut::default()));
        assert_eq!(named(" wgmma"), Some(LeftOut::ALL));
        assert_eq!(named("units, waves,attention"), Some(LeftOut::ALL));
        assert_eq!(named("units"), Some(LeftOut { units: true, ..LeftOut::default() }));
        let error = LeftOut::named("wgmma,graphs").unwrap_err();
        assert!(error.to_string().contains("`graphs`"), "{error}");
    }
}
