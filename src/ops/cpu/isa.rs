//! The instruction sets that kernels are written for, and which of them this machine has.

use std::sync::LazyLock;

/// Generations of vector instructions. Only products of bf16 tell them apart in the bits of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// No instruction by name; on AArch64 the compiler makes NEON of it.
    Portable,
    Avx2,
    /// Dots of four bytes in 256 bits.
    AvxVnni,
    Avx512,
    /// Dots of four bytes in 512 bits.
    Avx512Vnni,
}

impl Isa {
    /// The last one that this machine has.
    pub fn detect() -> Isa {
        static DETECTED: LazyLock<Isa> = LazyLock::new(|| {
            let all = Isa::available();
            all.last().copied().unwrap_or(Isa::Portable)
        });
        *DETECTED
    }

    /// All that this machine has, slowest first.
    pub fn available() -> Vec<Isa> {
        let mut available = vec![Isa::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c");
            let avx512 = avx2 && is_x86_feature_detected!("avx512f");
            let generations = [
                (Isa::Avx2, avx2),
                (Isa::AvxVnni, avx2 && is_x86_feature_detected!("avxvnni")),
                (Isa::Avx512, avx512),
                (
                    Isa::Avx512Vnni,
                    avx512
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512vnni"),
                ),
            ];
            available.extend(
                generations
                    .into_iter()
                    .filter_map(|(isa, has)| has.then_some(isa)),
            );
        }
        available
    }

    /// What decides the bits.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 | Isa::AvxVnni => "avx2",
            Isa::Avx512 | Isa::Avx512Vnni => "avx512",
        }
    }
}
