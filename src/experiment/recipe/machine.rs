//! What a recipe was begun with of the flags about the machine: those that change an answer.

use serde::{Deserialize, Serialize};

use crate::diagnosis::Failure;
use crate::experiment::hardware::Hardware;
use crate::model::WantedType;
use crate::ops::Quantisation;

/// `--context`, `--dtype`, `--quant`, `--kv-dtype` and `--fast`, where they were given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    context: Option<usize>,
    dtype: Option<String>,
    quant: Quantisation,
    kv_dtype: Option<String>,
    fast: bool,
}

impl Machine {
    pub fn of(hardware: &Hardware) -> Machine {
        let exactly = |wanted| match wanted {
            WantedType::Auto => None,
            WantedType::Exactly(stored) => Some(stored.to_string()),
        };
        let Hardware { compute, context, .. } = hardware;
        Machine {
            context: *context,
            dtype: exactly(compute.dtype),
            quant: compute.quant,
            kv_dtype: exactly(compute.kv_dtype),
            fast: compute.fast,
        }
    }

    pub fn is_default(&self) -> bool {
        *self == Machine::default()
    }

    /// `hardware` as it was; what a flag says of it wins.
    ///
    /// # Errors
    /// What is no number format.
    pub fn under(&self, mut hardware: Hardware) -> Result<Hardware, Failure> {
        let compute = &mut hardware.compute;
        for (wanted, own) in
            [(&mut compute.dtype, &self.dtype), (&mut compute.kv_dtype, &self.kv_dtype)]
        {
            if let (WantedType::Auto, Some(own)) = (*wanted, own) {
                *wanted = own.parse().map_err(Failure::from)?;
            }
        }
        if compute.quant.is_none() {
            compute.quant = self.quant;
        }
        compute.fast |= self.fast;
        hardware.context = hardware.context.or(self.context);
        Ok(hardware)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::StoredType;

    #[test]
    fn a_recipe_goes_on_with_the_flags_that_it_was_begun_with() {
        let mut begun = Hardware { context: Some(4096), ..Hardware::default() };
        begun.compute.dtype = WantedType::Exactly(StoredType::Bf16);
        begun.compute.quant = Quantisation::Q8_0;
        begun.compute.fast = true;
        let machine = Machine::of(&begun);
        let text = toml::to_string(&machine).unwrap();
        assert_eq!(text, "context = 4096\ndtype = \"bf16\"\nquant = \"q8_0\"\nfast = true\n");
        let read: Machine = toml::from_str(&text).unwrap();
        assert_eq!(read, machine);
        assert_eq!(Machine::of(&read.under(Hardware::default()).unwrap()), machine);
        let flag = Hardware { context: Some(8192), ..Hardware::default() };
        assert_eq!(read.under(flag).unwrap().context, Some(8192));
        assert!(Machine::of(&Hardware::default()).is_default());
    }
}
